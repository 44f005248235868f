// @ts-check
// The heads as they came: where each number lies.

import { readOperands } from "./computed_head.js";
import { readColumn } from "./numbers.js";
import { fill } from "./text.js";

/** @import { Colours, HeadModel, Measure, SentHeads, Words } from "./types.d.ts" */

/** @type {Measure[]} */
const SENT_MEASURES = ["entropy", "distance", "first", "last", "previous", "own", "next"];

/** @param {SentHeads<any>} data @returns {HeadModel} */
export function readHeads(data) {
  const [layers, heads, queries, keys] = data.shape;
  const [thumbRows, thumbColumns] = data.thumb_shape;
  const types = data.types ?? {};
  const operands = /** @type {const} */ (["q", "k", "by_distance", "run_starts", "run_reasons"]);
  const computed = readOperands(Object.fromEntries(operands.map((name) => [name, readColumn(data[name], types[name])])), data.shape);
  /** @type {Float32Array | Uint16Array} */ const weights = readColumn(data.weights, types.weights) ?? new Float32Array(0);
  return {
    layers, heads, queries, keys, thumbRows, thumbColumns, weights, computed,
    held: data.held,
    first: { query: data.first?.[0] ?? 0, key: data.first?.[1] ?? 0 },
    chosen: data.address ? [-1, -1] : data.chosen ?? [0, 0],  // of an address nothing is here yet
    addressed: Boolean(data.address),
    layersHere: null,
    scores: computed ? computed.scores : readColumn(data.scores, types.scores),
    reasons: computed ? computed.reasons : readColumn(data.reasons, types.reasons),
    thumbs: readColumn(data.thumbs, types.thumbs),
    thumbReasons: readColumn(data.thumb_reasons, types.thumb_reasons),
    measures: Object.fromEntries(SENT_MEASURES.map((name) => [name, readColumn(data[`measure_${name}`], types[`measure_${name}`])])),
    one: weightOfOne(weights),
  };
}

// What stands for a weight of 1.
/** @param {Float32Array | Uint16Array} weights */
export function weightOfOne(weights) {
  return weights instanceof Float32Array ? 1 : 65535;
}

// Where a head's numbers begin, or -1 while they are not in the browser.
/** @param {HeadModel} model @param {number} layer @param {number} head */
export function offsetOf(model, layer, head) {
  const size = model.queries * model.keys;
  if (model.held === "all") return (layer * model.heads + head) * size;
  if (layer !== model.chosen[0]) return -1;
  if (model.held === "layer") return head * size;
  return head === model.chosen[1] && (!model.computed || model.computed.complete) ? 0 : -1;
}

// A weight of a head that is here (see offsetOf).
/** @param {HeadModel} model @param {number} start @param {number} query @param {number} key */
export function weightAt(model, start, query, key) {
  return model.computed ? model.computed.weight(query, key) : model.weights[start + query * model.keys + key] / model.one;
}

// A layer is called by its number or by the name that the page gave it.
/** @param {SentHeads<any>} data @param {string} pattern @param {number} layer */
export function layerName(data, pattern, layer) {
  const label = data.layer_labels[layer];
  return typeof label === "number" ? fill(pattern, { layer: label }) : label;
}

/** @param {Words} words @param {number} reason */
export function reasonName(words, reason) {
  return words[`reason_${reason}`] || words.masked;
}

// Why cells of a layer are masked; null where all are visible. One map serves all layers where they do not differ.
/** @param {HeadModel} model @param {number} layer */
export function reasonsOf(model, layer) {
  return ofLayer(model.reasons, layer, model.queries * model.keys);
}

/** @type {WeakMap<Uint8Array, number[]>} */
const REASONS_IN = new WeakMap();

// The different reasons in a layer, smallest first; looked for once in a map.
/** @param {HeadModel} model @param {number} layer @returns {number[]} */
export function reasonsIn(model, layer) {
  const reasons = reasonsOf(model, layer);
  const known = reasons ? REASONS_IN.get(reasons) : [];
  if (!reasons || known) return known ?? [];
  const seen = new Uint8Array(256);
  for (let at = 0; at < reasons.length; at++) seen[reasons[at]] = 1;
  const found = [...seen.keys()].filter((reason) => reason && seen[reason]);
  REASONS_IN.set(reasons, found);
  return found;
}

// The map of one layer, where layers differ.
/** @param {Uint8Array | null} maps @param {number} layer @param {number} size */
export function ofLayer(maps, layer, size) {
  return maps && maps.length > size ? maps.subarray(layer * size, (layer + 1) * size) : maps;
}

/** @param {HeadModel} model @param {number} layer @param {number} query @param {number} key */
export function reasonAt(model, layer, query, key) {
  const reasons = reasonsOf(model, layer);
  return reasons ? reasons[query * model.keys + key] : 0;
}

// One cell; weight and score are NaN where they are not known.
/** @param {HeadModel} model @param {number} layer @param {number} head @param {number} query @param {number} key */
export function cellAt(model, layer, head, query, key) {
  const start = offsetOf(model, layer, head);
  const at = start + query * model.keys + key;
  return {
    reason: reasonAt(model, layer, query, key),
    weight: start < 0 ? NaN : weightAt(model, start, query, key),
    score: start < 0 || !model.scores ? NaN : model.computed?.scoreOf(query, key) ?? model.scores[at],
  };
}

// The key with the largest weight among those that a query sees; -1 where it sees none.
/** @param {HeadModel} model @param {number} layer @param {number} head @param {number} query */
export function strongestKey(model, layer, head, query) {
  const start = offsetOf(model, layer, head);
  let [best, most] = [-1, -1];
  if (start < 0) return best;
  for (let key = 0; key < model.keys; key++) {
    if (reasonAt(model, layer, query, key)) continue;
    const weight = weightAt(model, start, query, key);
    if (weight > most) [best, most] = [key, weight];
  }
  return best;
}

// The query that gives a key the largest weight among those that see it; -1 where none does.
/** @param {HeadModel} model @param {number} layer @param {number} head @param {number} key */
export function strongestQuery(model, layer, head, key) {
  const start = offsetOf(model, layer, head);
  let [best, most] = [-1, -1];
  if (start < 0) return best;
  for (let query = 0; query < model.queries; query++) {
    if (reasonAt(model, layer, query, key)) continue;
    const weight = weightAt(model, start, query, key);
    if (weight > most) [best, most] = [query, weight];
  }
  return best;
}

// Largest |score| among visible cells of a head: the end of its colour scale.
/** @param {HeadModel} model @param {number} layer @param {number} head */
export function scoreRange(model, layer, head) {
  const start = offsetOf(model, layer, head);
  const reasons = reasonsOf(model, layer);
  const { scores } = model;
  let range = 0;
  if (start < 0 || !scores) return range;
  for (let i = 0; i < model.queries * model.keys; i++) {
    const size = Math.abs(scores[start + i]);
    if (size > range && size < Infinity && !(reasons && reasons[i])) range = size;
  }
  return range;
}

// Largest weight among visible cells of a head: the end of its own colour scale.
/** @param {HeadModel} model @param {number} layer @param {number} head */
export function weightRange(model, layer, head) {
  let range = 0;
  for (let query = 0; query < model.queries; query++) {
    const key = strongestKey(model, layer, head, query);
    if (key >= 0) range = Math.max(range, weightAt(model, offsetOf(model, layer, head), query, key));
  }
  return range || 1;
}

// Whether the colours of the large map end at 1, or at the largest weight of the map itself.
/** @param {unknown} value @returns {Colours} */
export function colours(value) {
  return value === "own" ? "own" : "absolute";
}

// Whether the small maps of a layer have come.
/** @param {HeadModel} model @param {number} layer */
export function isHere(model, layer) {
  return !model.layersHere || model.layersHere[layer] === 1;
}
