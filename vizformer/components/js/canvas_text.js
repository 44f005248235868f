// @ts-check
// How the canvases write: shortened labels, and plates under those that stand out.

// Cuts a text to `room` px with an ellipsis, never inside a character that the reader sees as one.
const GRAPHEMES = typeof Intl.Segmenter === "function" ? new Intl.Segmenter() : null;

/** @param {CanvasRenderingContext2D} context @param {string} text @param {number} room */
export function shorten(context, text, room) {
  if (context.measureText(text).width <= room) return text;
  const parts = GRAPHEMES ? Array.from(GRAPHEMES.segment(text), (part) => part.segment) : Array.from(text);
  let [low, high] = [0, parts.length - 1];
  while (low < high) {
    const middle = Math.ceil((low + high) / 2);
    if (context.measureText(parts.slice(0, middle).join("") + "…").width <= room) low = middle;
    else high = middle - 1;
  }
  return parts.slice(0, Math.max(1, low)).join("") + "…";
}

// A plate under a label that stands out: the colours of the plate and of the letters.
/**
 * @param {CanvasRenderingContext2D} context
 * @param {number} x
 * @param {number} y
 * @param {string} text
 * @param {number} size
 * @param {[string, string]} plate
 */
export function drawPlate(context, x, y, text, size, plate) {
  const [ground, letters] = plate;
  context.fillStyle = ground;
  context.beginPath();
  context.roundRect(x - 4, y - size * 0.68, context.measureText(text).width + 8, size * 1.36, 4);
  context.fill();
  context.fillStyle = letters;
}
