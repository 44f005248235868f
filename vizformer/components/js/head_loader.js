// @ts-check
// Brings heads into the model: computes one that came as its queries and keys, and asks the address of a long text for
// those that did not come at all, the chosen one first, and once it is painted the small maps, layer by layer.

import { readOperands } from "./computed_head.js";
import { weightOfOne } from "./heads.js";
import { RowWorkers } from "./row_workers.js";
import { readTensors } from "./tensor_file.js";

/** @import { HeadModel, HeadNumbers, Measure, NumberColumn } from "./types.d.ts" */

const KEPT_BYTES = 96e6;  // of heads that were looked at before
const CELL_BYTES = 5;  // a score and a reason
const AT_ONCE = 2;  // layers that are asked for
const AGAIN = 1500;  // ms until an address that is gone is asked again: the page has run by then
const TRIES = 4;

export class HeadLoader {
  /** @type {HeadModel} */ model;
  /** @type {string | null} */ address = null;
  /** @type {Map<string, HeadNumbers>} */ kept = new Map();
  /** @type {string | null} */ wanted = null;
  /** @type {number[]} */ layers = [];  // that still have to be asked for
  rows = new RowWorkers();
  stop = new AbortController();
  asking = 0;
  failed = false;  // the head that is wanted did not come

  /** @param {{ head(): void, layer(): void, lost(): void }} on something new can be drawn; the page has to run again */
  constructor(on) {
    this.on = on;
  }

  // New numbers from Python. What was fetched of the same heads stays. Without measures no small maps are asked for.
  /** @param {HeadModel} model @param {string | null} address @param {Measure[]} measures */
  take(model, address, measures) {
    const before = this.model;
    this.model = model;
    if (address === null || address !== this.address) {
      this.close();
      [this.stop, this.address, this.wanted, this.asking] = [new AbortController(), address, null, 0];
      this.kept.clear();
      this.layers = measures.length === 0 ? [] : Array.from({ length: model.layers }, (_, layer) => layer);
      if (address === null) return;
      const { layers, heads, thumbRows, thumbColumns } = model;
      model.thumbs = new Uint8Array(layers * heads * thumbRows * thumbColumns);
      model.layersHere = new Uint8Array(layers);
      model.measures = Object.fromEntries(measures.map((name) => [name, new Float32Array(layers * heads)]));
    } else {
      const { thumbs, layersHere, measures: measured, computed, weights, scores, reasons, chosen, one } = before;
      Object.assign(model, { thumbs, layersHere, measures: measured, computed, weights, scores, reasons, chosen, one });
    }
  }

  // Sees to it that a head comes; at once where it was here before.
  /** @param {number} layer @param {number} head */
  want(layer, head) {
    const name = `${layer}/${head}`;
    this.failed = false;
    if (this.address === null) this.work();
    else if (name !== this.wanted) {
      this.wanted = name;
      const kept = this.kept.get(name);
      if (kept) this.put(layer, head, kept);
      else this.ask(layer, head);
    } else this.work();
  }

  // Has the file of a head brought that may be wanted next: the browser keeps it, as it came.
  /** @param {number} layer @param {number} head */
  expect(layer, head) {
    const name = `${layer}/${head}`;
    if (this.address === null || name === this.wanted || this.kept.has(name)) return;
    fetch(`${this.address}/${name}`, { signal: this.stop.signal }).then((answer) => answer.arrayBuffer()).catch(() => {});
  }

  // Whether a head has to be fetched before it can be shown.
  /** @param {number} layer @param {number} head */
  isAway(layer, head) {
    const name = `${layer}/${head}`;
    return this.address !== null && name !== this.wanted && !this.kept.has(name);
  }

  /** @param {number} layer @param {number} head */
  async ask(layer, head) {
    const name = `${layer}/${head}`;
    const { stop } = this;
    this.rows.prepare(this.model.queries * this.model.keys);
    const columns = await this.fetch(name);
    if (stop.signal.aborted || this.wanted !== name) return;
    if (columns) {
      this.put(layer, head, this.keep(name, columns));
    } else {
      [this.wanted, this.failed] = [null, true];
      this.shown(layer);
    }
  }

  // What is wanted can be drawn; now the small maps may have the server and the processor.
  /** @param {number} layer */
  shown(layer) {
    this.on.head();
    this.askLayers(layer);
  }

  // One layer after the other, the one that is looked at first; none while a head is on its way.
  /** @param {number} first */
  askLayers(first) {
    if (!this.failed && (this.wanted === null || !this.isHere)) return;
    while (this.asking < AT_ONCE && this.layers.length) {
      const layer = this.layers.includes(first) ? first : this.layers[0];
      this.layers = this.layers.filter((other) => other !== layer);
      this.asking++;
      this.askLayer(layer);
    }
  }

  /** @param {number} layer */
  async askLayer(layer) {
    const { stop } = this;
    const columns = await this.fetch(String(layer));
    if (stop.signal.aborted) return;
    this.asking--;
    if (columns) {
      const { model } = this;
      model.thumbs?.set(/** @type {Uint8Array} */ (columns.thumbs), layer * columns.thumbs.length);
      for (const [name, values] of Object.entries(model.measures)) values?.set(columns[`measure_${name}`], layer * model.heads);
      if (model.layersHere) model.layersHere[layer] = 1;
      this.on.layer();
    }
    this.askLayers(layer + 1);
  }

  // The file at a place below the address; null where it does not come.
  /** @param {string} place @param {number} [tries] @returns {Promise<Record<string, NumberColumn> | null>} */
  async fetch(place, tries = TRIES) {
    const { address, stop } = this;
    try {
      const answer = await fetch(`${address}/${place}`, { signal: stop.signal });
      if (answer.ok) return readTensors(await answer.arrayBuffer());
    } catch {
      // Neither a server that cannot be reached nor a request that was given up is more than a file that does not come.
    }
    if (stop.signal.aborted || tries < 2) return null;
    this.on.lost();
    await new Promise((done) => { setTimeout(done, AGAIN); });
    return stop.signal.aborted ? null : this.fetch(place, tries - 1);
  }

  // Whether the head that is wanted is in the model, whole.
  get isHere() {
    const { chosen: [layer, head], computed } = this.model;
    return this.wanted === `${layer}/${head}` && (!computed || computed.complete);
  }

  /** @param {Record<string, NumberColumn>} columns @param {Float32Array | null} room @returns {HeadNumbers} */
  numbers(columns, room) {
    const { layers, heads, queries, keys, computed: like } = this.model;
    const computed = readOperands(columns, [layers, heads, queries, keys], like, room);
    const weights = /** @type {Float32Array | Uint16Array} */ (columns.weights ?? new Float32Array(0));
    const scores = computed ? computed.scores : /** @type {Float32Array | null} */ (columns.scores ?? null);
    const reasons = computed ? computed.reasons : /** @type {Uint8Array | null} */ (columns.reasons ?? null);
    return { computed, weights, scores, reasons, one: weightOfOne(weights) };
  }

  // Keeps a head that is wanted; those that were looked at longest ago go, and leave it their room.
  /** @param {string} name @param {Record<string, NumberColumn>} columns @returns {HeadNumbers} */
  keep(name, columns) {
    const most = Math.max(1, Math.floor(KEPT_BYTES / (this.model.queries * this.model.keys * CELL_BYTES)));
    let room = null;
    for (const [old, { computed }] of this.kept) {
      if (this.kept.size < most) break;
      this.kept.delete(old);
      room = computed?.scores ?? null;
    }
    const numbers = this.numbers(columns, room);
    this.kept.set(name, numbers);
    return numbers;
  }

  /** @param {number} layer @param {number} head @param {HeadNumbers} kept */
  put(layer, head, kept) {
    this.kept.delete(`${layer}/${head}`);  // and to the end, as the one looked at last
    this.kept.set(`${layer}/${head}`, kept);
    Object.assign(this.model, kept, { chosen: [layer, head] });
    this.work();
    if (!kept.computed || kept.computed.complete) this.shown(layer);
  }

  work() {
    const { computed } = this.model;
    if (computed && !computed.complete) this.rows.compute(computed, () => this.shown(this.model.chosen[0]));
    else this.rows.stop();
  }

  close() {
    this.rows.close();
    this.stop.abort();
  }
}
