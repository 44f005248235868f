// @ts-check
// A head that came as its queries and keys: its map is computed here, row by row.

/** @import { NumberColumn } from "./types.d.ts" */

// What a head is computed from, as it travels to a worker too.
/**
 * @typedef {object} Operands
 * @property {Float32Array} q [queries, width], times the scale
 * @property {Float32Array} k [keys, width]
 * @property {Float32Array | null} byDistance [queries + keys - 1]
 * @property {Uint8Array | null} reasons [queries, keys]
 * @property {number} queries
 * @property {number} keys
 */

// The scores of a head and what turns a row of them into weights: weight = exp(score - norm of the row).
export class RowScores {
  /** @param {Operands} operands */
  constructor({ q, k, byDistance, reasons, queries, keys }) {
    this.q = q;
    this.k = k;
    this.byDistance = byDistance;
    this.reasons = reasons;
    this.queries = queries;
    this.keys = keys;
    this.width = q.length / queries;
  }

  // Some rows, written one after the other: of the keys that a query sees, which in a causal map is half of the work.
  /** @param {number} first @param {number} end @param {Float32Array} scores @param {Float64Array} norms */
  fill(first, end, scores, norms) {
    const { reasons, keys } = this;
    for (let query = first; query < end; query++) {
      const [from, to] = [query * keys, (query - first) * keys];
      let most = -Infinity;
      for (let key = 0; key < keys; key++) {
        if (reasons && reasons[from + key]) continue;
        const score = this.scoreOf(query, key);
        scores[to + key] = score;
        if (score > most) most = score;
      }
      let total = 0;
      for (let key = 0; key < keys; key++) if (!(reasons && reasons[from + key])) total += Math.exp(scores[to + key] - most);
      norms[query - first] = total ? most + Math.log(total) : Infinity;  // of a row that sees nothing every weight is 0
    }
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
}

// The whole map of a head, as far as its rows are there.
class ComputedHead extends RowScores {
  /** @param {Operands} operands */
  constructor(operands) {
    super(operands);
    this.scores = new Float32Array(this.queries * this.keys);
    this.norms = new Float64Array(this.queries);
    this.done = 0;  // rows
  }

  get complete() {
    return this.done === this.queries;
  }

  // Rows that were computed elsewhere.
  /** @param {number} first @param {Float32Array} scores @param {Float64Array} norms */
  put(first, scores, norms) {
    this.scores.set(scores, first * this.keys);
    this.norms.set(norms, first);
    this.done += norms.length;
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
  return new ComputedHead({ q, k, byDistance, reasons: readRuns(columns, queries * keys), queries, keys });
}

// A map of reasons that came as runs of equal ones.
/** @param {Record<string, NumberColumn | null>} columns @param {number} size @returns {Uint8Array | null} */
function readRuns({ run_starts: starts, run_reasons: values }, size) {
  if (!starts || !values) return null;
  const map = new Uint8Array(size);
  starts.forEach((start, run) => map.fill(values[run], start, starts[run + 1] ?? size));
  return map;
}
