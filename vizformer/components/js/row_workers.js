// @ts-check
// Computes the rows of a head: a small one in turns with the page, a large one in workers, on every core and on the graphics
// processor where there is one, so that the page answers meanwhile as if nothing were under way.

import { RowScores } from "./computed_head.js";
import { GraphicsScores } from "./graphics_scores.js";

/** @typedef {NonNullable<ReturnType<typeof import("./computed_head.js").readOperands>>} ComputedHead */
/**
 * Some rows on their way to a worker and back, in memory that they keep: nothing is allocated for the next ones.
 * @typedef {{ reasons: Uint8Array | null, scores: Float32Array, norms: Float64Array }} Sheet
 */
/** @typedef {{ name: number, first: number, end: number, sheet: Sheet }} Rows */

const SMALL_CELLS = 400_000;  // of a map that is there sooner than a worker
const SLICE = 24;  // ms of work between two looks at what people do
const ROWS_AT_ONCE = 64;  // that a worker computes at a time: in a causal map the later ones are more work
const SHEETS = 2;  // of a worker: one is computed while the other is on its way
const MOST_WORKERS = 4;

export class RowWorkers {
  /** @type {Worker[]} */ workers = [];
  /** @type {ComputedHead | null} */ head = null;
  /** @type {() => void} */ done = () => {};
  /** @type {number | undefined} */ timer;
  name = 0;  // of the head that is computed: rows of an earlier one come too late
  next = 0;  // the row that is computed next
  none = typeof Worker === "undefined";  // a page may forbid workers

  // Starts the workers for a head of so many cells, while its numbers are still on their way.
  /** @param {number} cells */
  prepare(cells) {
    if (cells > SMALL_CELLS && !this.none && !this.workers.length) this.start();
  }

  // Computes all rows of a head that are not there yet, instead of those of the head before.
  /** @param {ComputedHead} head @param {() => void} done */
  compute(head, done) {
    if (head === this.head) return;
    this.stop();
    head.done = 0;
    [this.head, this.done, this.next] = [head, done, 0];
    if (this.none || head.queries * head.keys <= SMALL_CELLS) this.inTurns();
    else this.inWorkers();
  }

  inTurns() {
    const head = /** @type {ComputedHead} */ (this.head);
    const end = performance.now() + SLICE;
    while (!head.complete && performance.now() < end) {
      const row = head.done++;
      const [from, to] = [row * head.keys, (row + 1) * head.keys];
      head.fill(row, row + 1, head.reasons && head.reasons.subarray(from, to), head.scores.subarray(from, to), head.norms.subarray(row, row + 1));
    }
    if (head.complete) this.end();
    else this.timer = setTimeout(() => this.inTurns(), 0);
  }

  inWorkers() {
    const { q, k, byDistance, reasons, queries, keys } = /** @type {ComputedHead} */ (this.head);
    if (!this.workers.length) this.start();
    const cells = ROWS_AT_ONCE * keys;
    for (const worker of this.workers) worker.postMessage({ name: this.name, operands: { q, k, byDistance, queries, keys } });
    for (let sheet = 0; sheet < SHEETS; sheet++) {
      for (const worker of this.workers) {
        this.ask(worker, {
          reasons: reasons && new Uint8Array(cells), scores: new Float32Array(cells), norms: new Float64Array(ROWS_AT_ONCE),
        });
      }
    }
  }

  start() {
    const source = `${RowScores}\n${GraphicsScores}\n(${answerWithRows})(RowScores, GraphicsScores, ${movedWith});`;
    const address = URL.createObjectURL(new Blob([source], { type: "text/javascript" }));
    const count = Math.max(1, Math.min(MOST_WORKERS, navigator.hardwareConcurrency || 1));
    for (let at = 0; at < count; at++) {
      const worker = new Worker(address);
      worker.addEventListener("message", ({ data }) => this.take(worker, data));
      worker.addEventListener("error", () => this.without());
      this.workers.push(worker);
    }
  }

  // The next rows from a worker.
  /** @param {Worker} worker @param {Sheet} sheet */
  ask(worker, sheet) {
    const { queries, keys, reasons } = /** @type {ComputedHead} */ (this.head);
    if (this.next >= queries) return;
    const [first, end] = [this.next, Math.min(queries, this.next + ROWS_AT_ONCE)];
    this.next = end;
    if (reasons) sheet.reasons?.set(reasons.subarray(first * keys, end * keys));
    /** @type {Rows} */ const rows = { name: this.name, first, end, sheet };
    worker.postMessage(rows, movedWith(sheet));
  }

  /** @param {Worker} worker @param {Rows} rows */
  take(worker, { name, first, end, sheet }) {
    if (name !== this.name || !this.head) return;
    this.head.put(first, sheet.scores.subarray(0, (end - first) * this.head.keys), sheet.norms.subarray(0, end - first));
    if (this.head.complete) this.end();
    else this.ask(worker, sheet);
  }

  end() {
    this.head = null;
    this.done();
  }

  // Where workers cannot be had: all rows again, here.
  without() {
    const { head, done } = this;
    this.close();
    this.none = true;
    if (head) this.compute(head, done);
  }

  // Gives up the head that is computed. A worker ends the rows that it has begun.
  stop() {
    clearTimeout(this.timer);
    this.name++;
    this.head = null;
  }

  close() {
    this.stop();
    for (const worker of this.workers) worker.terminate();
    this.workers = [];
  }
}

// What runs in a worker: it is told a head once, and then which rows of it to compute; on the graphics processor where there
// is one.
/** @param {typeof RowScores} Scores @param {typeof GraphicsScores} Graphics @param {typeof movedWith} moved */
function answerWithRows(Scores, Graphics, moved) {
  /** @type {RowScores} */ let head;
  const gl = Graphics.context();
  addEventListener("message", (event) => {
    const { operands, first, end, sheet } = event.data;
    if (operands) {
      if (head instanceof Graphics) head.close();
      head = gl && Graphics.fits(operands, gl) ? new Graphics(operands, gl) : new Scores(operands);
      return;
    }
    head.fill(first, end, sheet.reasons, sheet.scores, sheet.norms);
    /** @type {{ postMessage(message: unknown, moved: ArrayBuffer[]): void }} */ (/** @type {unknown} */ (self)).postMessage(event.data, moved(sheet));
  });
}

// The memory of a sheet, which moves from one to the other with it.
/** @param {Sheet} sheet */
function movedWith({ reasons, scores, norms }) {
  return /** @type {ArrayBuffer[]} */ ([scores.buffer, norms.buffer, ...(reasons ? [reasons.buffer] : [])]);
}
