// @ts-check
// Where things go in the large map: cell sizes, room for labels, the size of the letters. Pure arithmetic.

/** @import { HeadModel, MapLayout } from "./types.d.ts" */

const ROWS_LABEL_SHARE = 0.28;  // at most this share of the width goes to the labels of the rows
export const ENLARGED = 14;            // px of the letters in an enlarged map: the margins hold them from the start
const SLANT = Math.SQRT1_2;     // labels that do not fit side by side are turned by 45 degrees

// The size of the letters that goes with cells of a size.
/** @param {number} side */
export function letterSize(side) {
  return Math.max(9, Math.min(20, 4 + 0.36 * side, side < 14 ? Math.max(9, side * 0.95) : 20));
}

// `widths`: label widths in px at a font size of 1px, {queries: [...], keys: [...]}.
/**
 * @param {HeadModel} model
 * @param {{ queries: number[], keys: number[] }} widths
 * @param {number} width
 * @param {number} height
 * @returns {MapLayout}
 */
export function layoutMap(model, widths, width, height) {
  const { queries, keys } = model;
  const longest = (/** @type {number[]} */ list) => list.reduce((most, one) => Math.max(most, one), 0);
  const rowText = longest(widths.queries);
  const keyText = longest(widths.keys);
  const cap = Math.max(queries, keys) <= 2 ? 150 : 96;
  const longMost = Math.max(queries, keys) > 32 ? 90 : 120;  // px of a label; the cells need the room more
  let font = 14;
  let angle = 0;
  /** @type {MapLayout | null} */ let layout = null;
  for (let pass = 0; pass < 4; pass++) {  // labels decide the cells and cells the letters: a few rounds settle it
    const margin = Math.max(font, ENLARGED);
    const left = Math.ceil(Math.min(rowText * margin, width * ROWS_LABEL_SHARE, longMost * 1.4)) + 12;
    const keyRoom = Math.min(keyText * margin, longMost);
    /** @type {number} */ const pitch = layout ? layout.cellWidth : Math.min(cap, (width - left - 2) / keys);
    /** @type {number} */ const fitting = (pitch - 4) / (keyText * font);
    if (fitting < 0.72) angle = Math.max(angle, pitch >= font * 1.1 ? 45 : 90);
    const top = Math.ceil(angle === 0 ? font * 1.7 : angle === 45 ? (keyRoom + font) * SLANT + 4 : keyRoom + 8);
    let right = 2;
    if (angle === 45) {
      widths.keys.forEach((one, key) => {
        const reach = Math.min(one * font, keyRoom) * SLANT - (keys - key - 0.5) * pitch + 4;
        right = Math.max(right, Math.min(reach, 90));
      });
    }
    const roomX = width - left - right;
    const roomY = Math.max(120, height - top - 2);
    const side = Math.min(roomX / keys, roomY / queries, cap);
    let [cellWidth, cellHeight] = [side, side];
    // a map much wider than high (or the reverse) would be a thread: let its short side grow
    if (keys > 1.6 * queries) cellHeight = Math.max(side, Math.min(26, roomY / queries));
    if (queries > 1.6 * keys) cellWidth = Math.max(side, Math.min(40, roomX / keys));
    const small = Math.min(cellWidth, cellHeight);
    font = letterSize(small);
    layout = {
      left, top, angle, keyRoom, font, keyScale: angle === 0 ? Math.min(1, fitting) : 1, cellWidth, cellHeight,
      plotWidth: cellWidth * keys,
      plotHeight: cellHeight * queries,
      width: Math.ceil(left + cellWidth * keys + right),
      height: Math.ceil(top + cellHeight * queries + 2),
      zoomMost: Math.max(1, 64 / small),
    };
  }
  return /** @type {MapLayout} */ (/** @type {unknown} */ (layout));
}
