// @ts-check
// Where things go in the line view. Pure arithmetic.

/** @import { HeadModel } from "./types.d.ts" */

// Rows become thinner, to a limit, before the picture scrolls; labels get what they need, lines at least a third.
/**
 * @param {HeadModel} model
 * @param {{ query: number, key: number }} labels
 * @param {number} width
 * @param {number} height
 */
export function layoutLines(model, labels, width, height) {
  const rows = Math.max(model.queries, model.keys);
  const least = matchMedia("(pointer: coarse)").matches ? 22 : 15;
  const row = Math.max(least, Math.min(30, Math.floor(height / rows)));
  const font = Math.max(11, Math.min(17, row * 0.62));
  const place = width >= 420 ? 30 : 0;  // the position of a token, where there is room for it
  const column = (/** @type {number} */ label) => Math.ceil(Math.min(label * font + 18 + place, width * 0.32, 240));
  const [left, right] = [column(labels.query), column(labels.key)];
  const scrolls = rows * row > height ? 16 : 0;
  const seen = Math.min(rows * row, Math.floor(height));
  return {
    row, font, left, right, height: seen,
    width: Math.max(60, Math.min(520, width - left - right - scrolls)),
    scroll: { query: 0, key: 0 },
    stays: { query: model.queries * row <= seen, key: model.keys * row <= seen },  // a side that is all in sight
  };
}
