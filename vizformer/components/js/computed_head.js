// @ts-check
// A head that came as its queries and keys: its map is computed here, row by row, while the page goes on answering.

import { readColumn } from "./numbers.js";

/** @import { SentHeads } from "./types.d.ts" */

const SLICE = 12;  // ms of work between two looks at what people do

class ComputedHead {
  // One score a cell, and what turns a row of them into weights: weight = exp(score - norm of the row).
  /** @type {Float32Array} */ scores;
  /** @type {Float64Array} */ norms;

  /**
   * @param {Float32Array} q [queries, width], times the scale
   * @param {Float32Array} k [keys, width]
   * @param {Float32Array | null} byDistance [queries + keys - 1]
   * @param {Uint8Array | null} reasons [queries, keys]
   * @param {number} queries
   * @param {number} keys
   */
  constructor(q, k, byDistance, reasons, queries, keys) {
    this.q = q;
    this.k = k;
    this.byDistance = byDistance;
    this.reasons = reasons;
    this.queries = queries;
    this.keys = keys;
    this.width = q.length / queries;
    this.scores = new Float32Array(queries * keys);
    this.norms = new Float64Array(queries).fill(Infinity);  // of a row that sees nothing: every weight is 0
    this.done = 0;  // rows
  }

  get complete() {
    return this.done === this.queries;
  }

  // Works for some milliseconds; true when all rows are there.
  /** @param {number} [ms] */
  work(ms = SLICE) {
    const end = performance.now() + ms;
    while (!this.complete && performance.now() < end) this.row(this.done++);
    return this.complete;
  }

  /** @param {number} query */
  row(query) {
    const { q, k, byDistance, reasons, keys, width, scores } = this;
    const from = query * width;
    const start = query * keys;
    const shift = this.queries - 1 - query;
    let most = -Infinity;
    for (let key = 0; key < keys; key++) {
      const at = key * width;
      let sum = byDistance ? byDistance[key + shift] : 0;
      for (let i = 0; i < width; i++) sum += q[from + i] * k[at + i];
      scores[start + key] = sum;
      if (sum > most && !(reasons && reasons[start + key])) most = sum;
    }
    if (most === -Infinity) return;
    let total = 0;
    for (let key = 0; key < keys; key++) if (!(reasons && reasons[start + key])) total += Math.exp(scores[start + key] - most);
    this.norms[query] = most + Math.log(total);
  }

  /** @param {number} query @param {number} key */
  weight(query, key) {
    const at = query * this.keys + key;
    return this.reasons && this.reasons[at] ? 0 : Math.exp(this.scores[at] - this.norms[query]);
  }
}

// What was sent of a head, ready to be computed; null where its numbers came themselves.
/** @param {SentHeads<any>} data @returns {ComputedHead | null} */
export function readOperands(data) {
  const [, , queries, keys] = data.shape;
  const types = data.types ?? {};
  /** @type {Float32Array | null} */ const q = readColumn(data.q, types.q);
  /** @type {Float32Array | null} */ const k = readColumn(data.k, types.k);
  if (!q || !k) return null;
  return new ComputedHead(q, k, readColumn(data.by_distance, types.by_distance), readRuns(data, queries * keys), queries, keys);
}

// A map of reasons that came as runs of equal ones.
/** @param {SentHeads<any>} data @param {number} size @returns {Uint8Array | null} */
function readRuns(data, size) {
  const types = data.types ?? {};
  /** @type {Uint32Array | null} */ const starts = readColumn(data.run_starts, types.run_starts);
  /** @type {Uint8Array | null} */ const values = readColumn(data.run_reasons, types.run_reasons);
  if (!starts || !values) return null;
  const map = new Uint8Array(size);
  starts.forEach((start, run) => map.fill(values[run], start, starts[run + 1] ?? size));
  return map;
}
