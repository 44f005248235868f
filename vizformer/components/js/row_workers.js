// @ts-check
// Computes the rows of a head: a small one in turns with the page, a large one in workers, on every core that there is,
// so that the page answers meanwhile as if nothing were under way.

import { RowScores } from "./computed_head.js";

/** @typedef {NonNullable<ReturnType<typeof import("./computed_head.js").readOperands>>} ComputedHead */
/** @typedef {{ name: number, first: number, scores: Float32Array, norms: Float64Array }} Rows */

const SMALL_CELLS = 400_000;  // of a map that is there sooner than a worker
const SLICE = 24;  // ms of work between two looks at what people do
const ROWS_AT_ONCE = 64;  // that a worker computes at a time: in a causal map the later ones are more work
const MOST_WORKERS = 4;

export class RowWorkers {
  /** @type {Worker[]} */ workers = [];
  /** @type {ComputedHead | null} */ head = null;
  /** @type {() => void} */ done = () => {};
  /** @type {number | undefined} */ timer;
  name = 0;  // of the head that is computed: rows of an earlier one come too late
  next = 0;  // the row that is computed next
  none = typeof Worker === "undefined";  // a page may forbid workers

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
      head.fill(row, row + 1, head.scores.subarray(row * head.keys, (row + 1) * head.keys), head.norms.subarray(row, row + 1));
    }
    if (head.complete) this.end();
    else this.timer = setTimeout(() => this.inTurns(), 0);
  }

  inWorkers() {
    const { q, k, byDistance, reasons, queries, keys } = /** @type {ComputedHead} */ (this.head);
    if (!this.workers.length) this.start();
    for (const worker of this.workers) {
      worker.postMessage({ name: this.name, operands: { q, k, byDistance, reasons, queries, keys } });
      this.ask(worker);
    }
  }

  start() {
    const source = `${RowScores}\n(${answerWithRows})(RowScores);`;
    const address = URL.createObjectURL(new Blob([source], { type: "text/javascript" }));
    const count = Math.max(1, Math.min(MOST_WORKERS, navigator.hardwareConcurrency || 1));
    for (let at = 0; at < count; at++) {
      const worker = new Worker(address);
      worker.addEventListener("message", ({ data }) => this.take(worker, data));
      worker.addEventListener("error", () => this.without());
      this.workers.push(worker);
    }
  }

  // The next rows from a worker; it has those after them to do already while they are copied here.
  /** @param {Worker} worker */
  ask(worker) {
    const { queries } = /** @type {ComputedHead} */ (this.head);
    if (this.next >= queries) return;
    worker.postMessage({ name: this.name, first: this.next, end: Math.min(queries, this.next + ROWS_AT_ONCE) });
    this.next += ROWS_AT_ONCE;
  }

  /** @param {Worker} worker @param {Rows} rows */
  take(worker, { name, first, scores, norms }) {
    if (name !== this.name || !this.head) return;
    this.ask(worker);
    this.head.put(first, scores, norms);
    if (this.head.complete) this.end();
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

// What runs in a worker: it is told a head once, and then which rows of it to compute.
/** @param {typeof RowScores} Scores */
function answerWithRows(Scores) {
  /** @type {RowScores} */ let head;
  addEventListener("message", (event) => {
    const { name, operands, first, end } = event.data;
    if (operands) {
      head = new Scores(operands);
      return;
    }
    const [scores, norms] = [new Float32Array((end - first) * head.keys), new Float64Array(end - first)];
    head.fill(first, end, scores, norms);
    const answer = { name, first, scores, norms };
    /** @type {{ postMessage(message: unknown, moved: ArrayBuffer[]): void }} */ (/** @type {unknown} */ (self)).postMessage(answer, [scores.buffer, norms.buffer]);
  });
}
