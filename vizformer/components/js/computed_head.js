// @ts-check
// A head that came as its queries and keys: its map is computed here, row by row.

/** @import { NumberColumn } from "./types.d.ts" */

// What a head is computed from, as it travels to a worker too.
/**
 * @typedef {object} Operands
 * @property {Float32Array} q [queries, width], times the scale
 * @property {Float32Array} k [keys, width]
 * @property {Float32Array | null} byDistance [queries + keys - 1]
 * @property {number} queries
 * @property {number} keys
 */

/** @typedef {{ starts: NumberColumn, values: NumberColumn }} Runs where each run of equal reasons begins, and its reason */

// The scores of a head, and what turns a row of them into weights: weight = exp(score - norm of the row).
export class RowScores {
  /** @param {Operands} operands */
  constructor({ q, k, byDistance, queries, keys }) {
    this.q = q;
    this.k = k;
    this.byDistance = byDistance;
    this.queries = queries;
    this.keys = keys;
    this.width = q.length / queries;
  }

  // Some rows, written one after the other, and the norm of each.
  /**
   * @param {number} first
   * @param {number} end
   * @param {Uint8Array | null} reasons of these rows, as `scores`
   * @param {Float32Array} scores
   * @param {Float64Array} norms
   */
  fill(first, end, reasons, scores, norms) {
    this.computeScores(first, end, reasons, scores);
    const { keys } = this;
    for (let row = 0; row < end - first; row++) {
      const [from, to] = [row * keys, (row + 1) * keys];
      let most = -Infinity;
      for (let at = from; at < to; at++) if (scores[at] > most && !(reasons && reasons[at])) most = scores[at];
      let total = 0;
      for (let at = from; at < to; at++) if (!(reasons && reasons[at])) total += Math.exp(scores[at] - most);
      norms[row] = total ? most + Math.log(total) : Infinity;  // of a row that sees nothing every weight is 0
    }
  }

  // Their scores: of the keys that a query sees, which in a causal map is half of the work; 0 elsewhere.
  /** @param {number} first @param {number} end @param {Uint8Array | null} reasons @param {Float32Array} scores */
  computeScores(first, end, reasons, scores) {
    const { keys } = this;
    for (let query = first, at = 0; query < end; query++) {
      for (let key = 0; key < keys; key++, at++) scores[at] = reasons && reasons[at] ? 0 : this.scoreOf(query, key);
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
  /** @param {Operands & { reasons: Uint8Array | null, runs: Runs | null }} operands @param {Float32Array | null} room for its scores */
  constructor({ reasons, runs, ...operands }, room) {
    super(operands);
    this.reasons = reasons;
    this.runs = runs;
    const cells = this.queries * this.keys;
    this.scores = room?.length === cells ? room : new Float32Array(cells);
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
/**
 * @param {Record<string, NumberColumn | null>} columns
 * @param {number[]} shape
 * @param {ComputedHead | null} [like] a head whose map of reasons serves for this one too, where it is the same
 * @param {Float32Array | null} [room] for its scores, of a head that is not needed any more
 * @returns {ComputedHead | null}
 */
export function readOperands(columns, [, , queries, keys], like = null, room = null) {
  const [q, k, byDistance] = /** @type {(Float32Array | null)[]} */ ([columns.q, columns.k, columns.by_distance ?? null]);
  if (!q || !k) return null;
  const { run_starts: starts, run_reasons: values } = columns;
  const runs = starts && values ? { starts, values } : null;
  const reasons = runs && like?.keys === keys && like.queries === queries && sameRuns(runs, like.runs)
    ? like.reasons
    : runs && readRuns(runs, queries * keys);
  return new ComputedHead({ q, k, byDistance, reasons, runs, queries, keys }, room);
}

// A map of reasons that came as runs of equal ones.
/** @param {Runs} runs @param {number} size @returns {Uint8Array} */
function readRuns({ starts, values }, size) {
  const map = new Uint8Array(size);
  starts.forEach((start, run) => map.fill(values[run], start, starts[run + 1] ?? size));
  return map;
}

/** @param {Runs} one @param {Runs | null} other */
function sameRuns({ starts, values }, other) {
  return other !== null && starts.length === other.starts.length
    && starts.every((start, run) => start === other.starts[run] && values[run] === other.values[run]);
}
