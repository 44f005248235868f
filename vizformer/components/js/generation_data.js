// @ts-check
// The generation as it came: its steps, and its attention as it stood after each of them.

import { context2d, element } from "./dom.js";
import { offsetOf, reasonsOf, weightOfOne } from "./heads.js";
import { readColumn } from "./numbers.js";
import { paint, weightStep } from "./paint.js";

/** @import { Candidate, Generation, HeadModel, SentColumn, DecoderKind, Step, Theme } from "./types.d.ts" */

export const FUTURE = 2;
const NOT_YET = 255;  // beside the reasons of payload.py: rows and keys that are not written yet

// The numbers of one step.
/**
 * @param {Generation} data
 * @param {{ before: Float32Array, after: Float32Array, cut: Uint8Array }} columns
 * @param {number} step
 * @returns {Step}
 */
export function stepAt(data, columns, step) {
  const { count, ids, names } = data.candidates;
  const at = step * count;
  /** @type {Candidate[]} */ const candidates = [];
  for (let i = at; i < at + count; i++) {
    const id = ids[i];
    candidates.push({ id, text: names[id], before: columns.before[i], after: columns.after[i], cut: columns.cut[i] });
  }
  const sum = (/** @type {"before" | "after"} */ name) => candidates.reduce((total, one) => total + one[name], 0);
  return {
    candidates,
    chosen: data.steps.ids[step],
    byHand: data.steps.by_hand[step],
    kept: data.steps.kept[step],
    restCount: data.vocab_size - count,
    restBefore: Math.max(0, 1 - sum("before")),
    restAfter: Math.max(0, 1 - sum("after")),
  };
}

// The heads of one kind of attention, in the form that heads.js reads.
/** @param {Generation} data @param {DecoderKind} kind @returns {HeadModel} */
export function readKind(data, kind) {
  const { shape: [layers, heads, queries, keys], held, chosen } = data.kinds[kind];
  const weights = /** @type {Float32Array | Uint16Array} */ (readNamed(data, `${kind}_weights`));
  return {
    layers, heads, queries, keys, first: { query: 0, key: 0 }, held, weights, chosen: chosen ?? [0, 0], one: weightOfOne(weights), computed: null, addressed: false, layersHere: null,
    reasons: readNamed(data, `${kind}_reasons`),
    scores: null, thumbs: null, thumbReasons: null, thumbRows: queries, thumbColumns: keys, measures: {},
  };
}

/**
 * @template {import("./types.d.ts").NumberColumn} T
 * @param {Generation} data
 * @param {string} name
 * @returns {T | null}
 */
export function readNamed(data, name) {
  return readColumn(/** @type {SentColumn} */ (data[name]), data.types?.[name]);
}

// The same heads as they stood when `rows` rows were there; the keys of self-attention are the rows' own tokens.
/** @param {HeadModel} model @param {number} rows @returns {HeadModel} */
export function headsUntil(model, rows) {
  const size = model.queries * model.keys;
  const reasons = model.reasons ? model.reasons.slice() : new Uint8Array(size);
  for (let end = size; end <= reasons.length; end += size) reasons.fill(NOT_YET, end - size + rows * model.keys, end);
  return { ...model, reasons };
}

// A head up to a row: what is not written yet looks like the page itself, not like something masked.
/** @param {HeadModel} model @param {number} layer @param {number} head @param {Theme} theme */
export function paintHeadUntil(model, layer, head, theme) {
  const start = offsetOf(model, layer, head);
  const reasons = reasonsOf(model, layer) ?? new Uint8Array(model.queries * model.keys);
  const probe = context2d(element("canvas"), { willReadFrequently: true });
  probe.fillStyle = theme.background;
  probe.fillRect(0, 0, 1, 1);
  const [blank] = new Uint32Array(probe.getImageData(0, 0, 1, 1).data.buffer);
  return paint(model.queries, model.keys, (i) => {
    if (start < 0 || reasons[i] === NOT_YET) return blank;
    return reasons[i] ? 0 : theme.weights[weightStep(model.weights[start + i] / model.one)];
  });
}
