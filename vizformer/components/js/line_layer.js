// @ts-check
// The lines of a layer: which ones are drawn, and drawing them. Lines of about the same strength are one path: thousands
// of them then cost a few strokes.

import { headColour, headDashes } from "./colours.js";
import { offsetOf, reasonsOf } from "./heads.js";

/** @import { FoundLines, HeadModel, LineGroup, LineLayout, Theme } from "./types.d.ts" */

/** @typedef {(act: (weight: number, pair: number, slot: number) => void, least?: number) => void} Visit */

const STRENGTHS = 16;   // steps of width and opacity
const MOST_LINES = 30000;
const BINS = 65536;

// In px; thin rows get thin lines.
/** @param {number} weight @param {number} row */
export function lineWidth(weight, row) {
  return 0.75 + 4.25 * weight * Math.max(0.5, Math.min(1, row / 28));
}

// By the square root: most weights are small, and should be faint rather than absent.
/** @param {number} weight */
export function lineOpacity(weight) {
  return 0.08 + 0.92 * Math.sqrt(weight);
}

// Lines of the given heads whose weight reaches `threshold`; of more than MOST_LINES the strongest.
// Groups of weak lines come first; null while the layer is not here.
/**
 * @param {HeadModel} model
 * @param {number} layer
 * @param {number[]} heads
 * @param {number} threshold
 * @returns {FoundLines | null}
 */
export function findLines(model, layer, heads, threshold) {
  if (heads.some((head) => offsetOf(model, layer, head) < 0)) return null;
  const { weights, one } = model;
  const reasons = reasonsOf(model, layer);
  const size = model.queries * model.keys;
  /** @type {Visit} */
  const visit = (act, least = threshold) => {
    heads.forEach((head, slot) => {
      const start = offsetOf(model, layer, head);
      for (let pair = 0; pair < size; pair++) {
        const weight = weights[start + pair] / one;
        if (weight >= least && weight > 0 && !(reasons && reasons[pair])) act(weight, pair, slot);
      }
    });
  };
  let count = 0;
  let largest = 0;
  visit(() => { count++; });
  if (count === 0) visit((weight) => { largest = Math.max(largest, weight); }, 0);
  const limit = count > MOST_LINES ? limitBin(visit) : null;
  let room = limit ? limit.room : 0;
  /** @type {Map<number, LineGroup>} */
  const groups = new Map();
  visit((weight, pair, slot) => {
    if (limit) {
      const bin = Math.floor(weight * (BINS - 1));
      if (bin < limit.bin || (bin === limit.bin && room-- <= 0)) return;
    }
    const level = Math.max(1, Math.ceil(Math.sqrt(weight) * STRENGTHS));
    const name = level * heads.length + slot;
    let group = groups.get(name);
    if (!group) {
      group = { head: heads[slot], slot, weight: Math.min(1, (level / STRENGTHS) ** 2), pairs: [] };
      groups.set(name, group);
    }
    group.pairs.push(pair);
  });
  const masked = reasons ? reasons.reduce((sum, reason) => sum + (reason ? 1 : 0), 0) : 0;
  return {
    shown: Math.min(count, MOST_LINES),
    total: (size - masked) * heads.length,
    from: limit ? limit.bin / (BINS - 1) : threshold,
    cut: limit !== null,
    largest,  // where none is drawn
    groups: [...groups.entries()].sort(([a], [b]) => a - b).map(([, group]) => group),
  };
}

// The bin of weights in which the strongest MOST_LINES end, and how many of that bin still belong to them.
/** @param {Visit} visit */
function limitBin(visit) {
  const counts = new Uint32Array(BINS);
  visit((weight) => { counts[Math.min(BINS - 1, Math.floor(weight * (BINS - 1)))]++; });
  let bin = BINS - 1;
  let room = MOST_LINES;
  while (counts[bin] < room) room -= counts[bin--];
  return { bin, room };
}

// Lines of different heads between the same tokens run beside each other.
/** @param {number} slot @param {number} count @param {number} row */
export function slotShift(slot, count, row) {
  return count < 2 ? 0 : (slot - (count - 1) / 2) * Math.min(3.5, (row * 0.6) / (count - 1));
}

// heads: those shown, in the order of their slots.
/**
 * @param {CanvasRenderingContext2D} context
 * @param {LineLayout} layout
 * @param {HeadModel} model
 * @param {FoundLines} found
 * @param {number[]} heads
 * @param {Theme} theme
 */
export function drawLines(context, layout, model, found, heads, theme) {
  for (const { head, slot, weight, pairs } of found.groups) {
    const shift = layout.row / 2 + slotShift(slot, heads.length, layout.row);
    context.strokeStyle = headColour(theme, head);
    context.globalAlpha = lineOpacity(weight);
    context.lineWidth = lineWidth(weight, layout.row);
    context.setLineDash(headDashes(head));
    context.beginPath();
    for (const pair of pairs) {
      const key = pair % model.keys;
      const left = ((pair - key) / model.keys) * layout.row + shift - layout.scroll.query;
      const right = key * layout.row + shift - layout.scroll.key;
      if (Math.max(left, right) < 0 || Math.min(left, right) > layout.height) continue;
      context.moveTo(0, left);
      context.lineTo(layout.width, right);
    }
    context.stroke();
  }
  context.globalAlpha = 1;
  context.setLineDash([]);
}
