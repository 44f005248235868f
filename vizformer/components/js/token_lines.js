// @ts-check
// The lines of one token, drawn over the others, and their weights as numbers beside the tokens of the other side.

import { shorten } from "./canvas_text.js";
import { headColour, headDashes } from "./colours.js";
import { offsetOf, reasonAt, reasonName, reasonsOf } from "./heads.js";
import { lineOpacity, lineWidth, slotShift } from "./line_layer.js";
import { fill } from "./text.js";

/** @import { HeadModel, LineLayout, LineScene, Spot } from "./types.d.ts" */

// The pair of a token and one of the other side: its query, its key and its place in a map.
/** @param {HeadModel} model @param {Spot} spot @param {number} other */
export function pairOf(model, spot, other) {
  const [query, key] = spot.side === "query" ? [spot.index, other] : [other, spot.index];
  return { query, key, pair: query * model.keys + key };
}

// spot: the token; partner: index on the other side that is pointed at, or null.
/**
 * @param {CanvasRenderingContext2D} context
 * @param {LineLayout} layout
 * @param {LineScene} scene
 * @param {Spot} spot
 * @param {number | null} partner
 */
export function drawTokenLines(context, layout, scene, spot, partner) {
  const { model, layer, heads, threshold, theme } = scene;
  const reasons = reasonsOf(model, layer);
  const fromQuery = spot.side === "query";
  const count = fromQuery ? model.keys : model.queries;
  const side = fromQuery ? "key" : "query";
  const numbers = layoutNumbers(context, layout, scene);
  const starts = heads.map((head) => offsetOf(model, layer, head));
  const near = fromQuery ? 0 : layout.width;
  const far = fromQuery ? layout.width - numbers.width : numbers.width;
  /** @type {(index: number, slot: number, scroll: number) => number} */
  const at = (index, slot, scroll) => (index + 0.5) * layout.row - scroll + slotShift(slot, heads.length, layout.row);
  heads.forEach((head, slot) => {
    context.strokeStyle = headColour(theme, head);
    context.setLineDash(headDashes(head));
    for (let other = 0; other < count; other++) {
      const { pair } = pairOf(model, spot, other);
      const weight = model.weights[starts[slot] + pair] / model.one;
      if (weight < threshold || weight === 0 || (reasons && reasons[pair])) continue;
      context.globalAlpha = (0.3 + 0.7 * lineOpacity(weight)) * (partner === null || partner === other ? 1 : 0.25);
      context.lineWidth = lineWidth(weight, layout.row) + 0.5;
      context.beginPath();
      context.moveTo(near, at(spot.index, slot, layout.scroll[spot.side]));
      context.lineTo(far, at(other, slot, layout.scroll[side]));
      context.stroke();
    }
  });
  context.globalAlpha = 1;
  context.setLineDash([]);
  const first = Math.max(0, Math.floor(layout.scroll[side] / layout.row));
  const last = Math.min(count, Math.ceil((layout.scroll[side] + layout.height) / layout.row));
  for (let other = first; other < last; other++) drawNumbers(context, layout, scene, numbers, starts, spot, other, partner);
}

// How large the numbers are, and whether those of all heads fit side by side; else the largest one stands for them.
/** @param {CanvasRenderingContext2D} context @param {LineLayout} layout @param {LineScene} scene */
function layoutNumbers(context, layout, scene) {
  const { heads, theme } = scene;
  const size = Math.max(10, Math.min(14, layout.row * 0.62));
  const font = `${size}px ${theme.font}`;
  context.font = font;
  const cell = Math.ceil(context.measureText("0.000").width) + 13;
  const all = heads.length * cell <= Math.max(cell, layout.width * 0.55);
  const name = heads.length > 1 && !all ? Math.ceil(context.measureText("H00").width) + 4 : 0;
  return { size, font, cell, all, name, width: all ? heads.length * cell : cell + name };
}

/**
 * @param {CanvasRenderingContext2D} context
 * @param {LineLayout} layout
 * @param {LineScene} scene
 * @param {ReturnType<typeof layoutNumbers>} numbers
 * @param {number[]} starts
 * @param {Spot} spot
 * @param {number} other
 * @param {number | null} partner
 */
function drawNumbers(context, layout, scene, numbers, starts, spot, other, partner) {
  const { model, layer, heads, threshold, theme, words } = scene;
  const { query, key, pair } = pairOf(model, spot, other);
  const y = (other + 0.5) * layout.row - layout.scroll[spot.side === "query" ? "key" : "query"];
  const left = spot.side === "query" ? layout.width - numbers.width : 0;
  context.textBaseline = "middle";
  const reason = reasonAt(model, layer, query, key);
  if (reason) {
    context.font = `italic ${numbers.font}`;
    context.fillStyle = theme.muted;
    context.textAlign = spot.side === "query" ? "right" : "left";
    const text = shorten(context, reasonName(words, reason), layout.width * 0.6);
    context.fillText(text, spot.side === "query" ? layout.width - 6 : 6, y);
    context.font = numbers.font;
    return;
  }
  const values = starts.map((start) => model.weights[start + pair] / model.one);
  const bold = partner === other;
  if (bold) context.font = `700 ${numbers.font}`;
  const slots = numbers.all ? [...values.keys()] : [values.indexOf(Math.max(...values))];
  context.textAlign = "right";
  slots.forEach((slot, place) => {
    const right = left + (place + 1) * numbers.cell - 5;
    const faint = values[slot] < threshold || values[slot] === 0;
    context.fillStyle = headColour(theme, heads[slot]);
    if (!faint) context.fillRect(right - numbers.cell + 8, y - numbers.size * 0.55, 3, numbers.size * 1.1);
    context.fillStyle = faint ? theme.muted : theme.text;
    context.fillText(values[slot].toFixed(3), right, y);
    if (numbers.name) context.fillText(fill(words.head_short, { head: heads[slot] }), right + numbers.name, y);
  });
  if (bold) context.font = numbers.font;
}
