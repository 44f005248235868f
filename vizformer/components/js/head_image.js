// @ts-check
// How a head becomes a picture: as many pixels as the screen can show, and no more.

import { isHere, offsetOf, ofLayer, reasonsOf, weightAt } from "./heads.js";
import { paint, scoreStep, weightStep } from "./paint.js";

/** @import { HeadModel, Theme, WeightsOrScores } from "./types.d.ts" */
/** @typedef {{ x: number, y: number, columns: number, rows: number }} CellsInSight from the first column x and row y on */
/** @typedef {{ picture: HTMLCanvasElement, x: number, y: number }} HeadPicture x, y: column and row at its corner */

const WHOLE_CELLS = 1_200_000;  // cells; of a larger map the part in sight is painted, with as much again around it

// The pictures of one head, each painted when it is first needed.
export class HeadImage {
  /** @type {Map<number, HTMLCanvasElement>} */ pooled = new Map();
  /** @type {HeadPicture & { columns: number, rows: number } | null} */ part = null;

  /**
   * @param {HeadModel} model
   * @param {number} layer
   * @param {number} head
   * @param {WeightsOrScores} view
   * @param {Theme} theme
   * @param {number} range
   */
  constructor(model, layer, head, view, theme, range) {
    this.model = model;
    this.layer = layer;
    this.head = head;
    this.view = view;
    this.theme = theme;
    this.range = range;
  }

  // A picture of one pixel for each pool of cells that has all cells in sight.
  /** @param {number} pool cells per side @param {CellsInSight} sight @returns {HeadPicture} */
  of(pool, sight) {
    if (pool === 1) return this.cells(sight);
    const picture = this.pooled.get(pool) ?? this.strongest(pool);
    this.pooled.set(pool, picture);
    return { picture, x: 0, y: 0 };
  }

  /** @param {CellsInSight} sight @returns {HeadPicture} */
  cells({ x, y, columns, rows }) {
    const { part, model } = this;
    const has = part && part.x <= x && part.y <= y && part.x + part.columns >= x + columns && part.y + part.rows >= y + rows;
    if (has) return part;
    const whole = model.queries * model.keys <= WHOLE_CELLS;
    const around = (/** @type {number} */ size) => whole ? Infinity : Math.ceil(size / 2);
    const [left, top] = [Math.max(0, x - around(columns)), Math.max(0, y - around(rows))];
    const size = {
      columns: Math.min(model.keys, x + columns + around(columns)) - left,
      rows: Math.min(model.queries, y + rows + around(rows)) - top,
    };
    const { layer, head, view, theme, range } = this;
    const picture = /** @type {HTMLCanvasElement} */ (
      paintCells(model, layer, head, view, theme, range, { x: left, y: top, ...size }));
    this.part = { picture, x: left, y: top, ...size };
    return this.part;
  }

  // For maps with more cells than the screen has pixels: the strongest cell of each pool.  A mean would hide single ones.
  /** @param {number} pool */
  strongest(pool) {
    const { model, layer, head, view, theme, range } = this;
    const { queries, keys, scores, weights, computed, one } = model;
    const start = offsetOf(model, layer, head);
    const reasons = reasonsOf(model, layer);
    const columns = Math.ceil(keys / pool);
    const rows = Math.ceil(queries / pool);
    const byWeight = view === "weights" || !scores;
    const [values, from] = byWeight ? [computed ? computed.scores : weights, start] : [scores, start];
    const found = new Float32Array(rows * columns).fill(NaN);
    for (let query = 0; query < queries; query++) {
      const row = Math.floor(query / pool) * columns;
      const norm = byWeight && computed ? computed.norms[query] : 0;  // the logarithm of a weight has the same order
      for (let column = 0; column < columns; column++) {
        const end = query * keys + Math.min(keys, (column + 1) * pool);
        let most = found[row + column];
        for (let cell = query * keys + column * pool; cell < end; cell++) {
          if (reasons && reasons[cell]) continue;
          const value = values[from + cell] - norm;
          if (!(byWeight ? value <= most : Math.abs(value) <= Math.abs(most))) most = value;
        }
        found[row + column] = most;
      }
    }
    return paint(rows, columns, (i) => {
      if (Number.isNaN(found[i])) return 0;
      if (!byWeight) return theme.scores[scoreStep(found[i], range)];
      return theme.weights[weightStep(computed ? Math.exp(found[i]) : found[i] / one, range)];
    });
  }
}

// A head as a canvas of one pixel per cell; masked cells stay transparent, so that the hatching below shows.
/**
 * @param {HeadModel} model
 * @param {number} layer
 * @param {number} head
 * @param {WeightsOrScores} view
 * @param {Theme} theme
 * @param {number} range
 * @param {CellsInSight} part of the map
 */
function paintCells(model, layer, head, view, theme, range, part) {
  const start = offsetOf(model, layer, head);
  if (start < 0) return null;
  const { keys, scores } = model;
  const reasons = reasonsOf(model, layer);
  return paint(part.rows, part.columns, (i) => {
    const query = part.y + Math.floor(i / part.columns);
    const key = part.x + (i % part.columns);
    const cell = query * keys + key;
    if (reasons && reasons[cell]) return 0;
    if (view === "weights" || !scores) return theme.weights[weightStep(weightAt(model, start, query, key), range)];
    const score = scores[start + cell];
    return Number.isNaN(score) ? 0 : theme.scores[scoreStep(score, range)];
  });
}

// The small map of a head: its thumbnail, or the head itself where that is small enough; null while it has not come.
/** @param {HeadModel} model @param {number} layer @param {number} head @param {Theme} theme */
export function paintThumb(model, layer, head, theme) {
  const { thumbRows: rows, thumbColumns: columns, thumbs } = model;
  if (!isHere(model, layer)) return null;
  if (!thumbs) return paintCells(model, layer, head, "weights", theme, 1, { x: 0, y: 0, columns: model.keys, rows: model.queries });
  const reasons = ofLayer(model.thumbReasons, layer, rows * columns);
  const start = (layer * model.heads + head) * rows * columns;
  return paint(rows, columns, (i) => (reasons && reasons[i] ? 0 : theme.weights[thumbs[start + i]]));
}
