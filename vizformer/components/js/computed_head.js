// @ts-check
// A head that came as its queries and keys: its map is computed here, row by row, while the page goes on answering.

/** @import { NumberColumn } from "./types.d.ts" */

const SLICE = 24;  // ms of work between two looks at what people do

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

  // The scores of a row, of the keys that it sees: in a causal map that is half of the work.
  /** @param {number} query */
  row(query) {
    const { reasons, keys, scores } = this;
    const start = query * keys;
    let most = -Infinity;
    for (let key = 0; key < keys; key++) {
      if (reasons && reasons[start + key]) continue;
      const score = this.scoreOf(query, key);
      scores[start + key] = score;
      if (score > most) most = score;
    }
    if (most === -Infinity) return;
    let total = 0;
    for (let key = 0; key < keys; key++) if (!(reasons && reasons[start + key])) total += Math.exp(scores[start + key] - most);
    this.norms[query] = most + Math.log(total);
  }

  // One score, of a masked cell too.  Four sums side by side, which a processor adds at the same time.
  /** @param {number} query @param {number} key */
  scoreOf(query, key) {
    const { q, k, byDistance, width } = this;
    const [from, at, even] = [query * width, key * width, width - (width % 4)];
    let [a, b, c, d] = [byDistance ? byDistance[key + this.queries - 1 - query] : 0, 0, 0, 0];
    for (let i = 0; i < even; i += 4) {
      a += q[from + i] * k[at + i];
      b += q[from + i + 1] * k[at + i + 1];
      c += q[from + i + 2] * k[at + i + 2];
      d += q[from + i + 3] * k[at + i + 3];
    }
    for (let i = even; i < width; i++) a += q[from + i] * k[at + i];
    return a + b + (c + d);
  }

  /** @param {number} query @param {number} key */
  weight(query, key) {
    const at = query * this.keys + key;
    return this.reasons && this.reasons[at] ? 0 : Math.exp(this.scores[at] - this.norms[query]);
  }
}

// What came of a head, ready to be computed; null where its numbers came themselves.
/** @param {Record<string, NumberColumn | null>} columns @param {number[]} shape @returns {ComputedHead | null} */
export function readOperands(columns, [, , queries, keys]) {
  const [q, k, byDistance] = /** @type {(Float32Array | null)[]} */ ([columns.q, columns.k, columns.by_distance ?? null]);
  if (!q || !k) return null;
  return new ComputedHead(q, k, byDistance, readRuns(columns, queries * keys), queries, keys);
}

// A map of reasons that came as runs of equal ones.
/** @param {Record<string, NumberColumn | null>} columns @param {number} size @returns {Uint8Array | null} */
function readRuns({ run_starts: starts, run_reasons: values }, size) {
  if (!starts || !values) return null;
  const map = new Uint8Array(size);
  starts.forEach((start, run) => map.fill(values[run], start, starts[run + 1] ?? size));
  return map;
}
