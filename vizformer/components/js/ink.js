// How the canvases write and shade: numbers, shortened labels, plates under letters, the hatching of what is masked.

// A number with a true minus sign, and no minus before a zero.
function signed(value, digits) {
  const text = value.toFixed(digits);
  return Number(text) === 0 ? text.replace("-", "") : text.replace("-", "−");
}

// Cuts a text to `room` px with an ellipsis, never inside a character that the reader sees as one.
const GRAPHEMES = typeof Intl.Segmenter === "function" ? new Intl.Segmenter() : null;

function shorten(context, text, room) {
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

// A plate under a label that stands out: [plate, letters].
function drawPlate(context, x, y, text, size, [plate, ink]) {
  context.fillStyle = plate;
  context.beginPath();
  context.roundRect(x - 4, y - size * 0.68, context.measureText(text).width + 8, size * 1.36, 4);
  context.fill();
  context.fillStyle = ink;
}

function hatching(context, theme, density) {
  const side = Math.round(7 * density);
  const tile = document.createElement("canvas");
  tile.width = tile.height = side;
  const ink = tile.getContext("2d");
  ink.fillStyle = theme.hatch;
  ink.fillRect(0, 0, side, side);
  ink.strokeStyle = theme.hatchLine;
  ink.lineWidth = density;
  ink.beginPath();
  for (const shift of [-side, 0, side]) {  // a diagonal, and its neighbours, so that the tiles meet
    ink.moveTo(shift - 1, side + 1);
    ink.lineTo(shift + side + 1, -1);
  }
  ink.stroke();
  const pattern = context.createPattern(tile, "repeat");
  pattern.setTransform(new DOMMatrix([1 / density, 0, 0, 1 / density, 0, 0]));
  return pattern;
}
