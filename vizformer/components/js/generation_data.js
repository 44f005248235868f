// @ts-check
// The generation as it came: its steps, and its attention as it stood after each of them.

import { element } from "./dom.js";
import { offsetOf, paint, reasonsOf, weightStep } from "./heads.js";
import { readColumn } from "./numbers.js";

export const FUTURE = 2;
const NOT_YET = 255;  // beside the reasons of payload.py: rows and keys that are not written yet

// The numbers of one step.
export function stepAt(data, columns, step) {
  const { count, ids, names } = data.candidates;
  const at = step * count;
  const candidates = [];
  for (let i = at; i < at + count; i++) {
    const id = ids[i];
    candidates.push({ id, text: names[id], before: columns.before[i], after: columns.after[i], cut: columns.cut[i] });
  }
  const sum = (name) => candidates.reduce((total, one) => total + one[name], 0);
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

// The heads of a site, in the form that heads.js reads.
export function readSite(data, site) {
  const { shape: [layers, heads, queries, keys], held, chosen } = data.sites[site];
  const get = (name) => readColumn(data[`${site}_${name}`], data.types?.[`${site}_${name}`]);
  const model = { layers, heads, queries, keys, held, chosen, weights: get("weights"), base: get("reasons"), scores: null, thumbs: null };
  model.one = model.weights instanceof Float32Array ? 1 : 65535;
  return model;
}

// The same heads as they stood when `rows` rows were there; the keys of self-attention are the rows' own tokens.
export function headsUntil(model, rows) {
  const size = model.queries * model.keys;
  const reasons = model.base ? model.base.slice() : new Uint8Array(size);
  for (let end = size; end <= reasons.length; end += size) reasons.fill(NOT_YET, end - size + rows * model.keys, end);
  return { ...model, reasons };
}

// A head up to a row: what is not written yet looks like the page itself, not like something masked.
export function paintHeadUntil(model, layer, head, theme) {
  const start = offsetOf(model, layer, head);
  const reasons = reasonsOf(model, layer);
  const probe = element("canvas").getContext("2d", { willReadFrequently: true });
  probe.fillStyle = theme.background;
  probe.fillRect(0, 0, 1, 1);
  const [blank] = new Uint32Array(probe.getImageData(0, 0, 1, 1).data.buffer);
  return paint(model.queries, model.keys, (i) => {
    if (start < 0 || reasons[i] === NOT_YET) return blank;
    return reasons[i] ? 0 : theme.weights[weightStep(model.weights[start + i] / model.one)];
  });
}
