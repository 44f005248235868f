// @ts-check
// What is said about a token, or about a pair of tokens, below the title.

import { cellAt, reasonName, reasonsOf } from "./heads.js";
import { fill } from "./text.js";
import { pairOf } from "./token_lines.js";

/** @import { Description, HeadModel, LineScene, Side, Spot } from "./types.d.ts" */

// The largest weight of a token over the given heads: {head, query, key, weight}; null where all its pairs are masked.
/** @param {HeadModel} model @param {number} layer @param {number[]} heads @param {Spot} spot */
function strongestOf(model, layer, heads, spot) {
  const count = spot.side === "query" ? model.keys : model.queries;
  /** @type {{ head: number, query: number, key: number, weight: number } | null} */
  let best = null;
  for (const head of heads) {
    for (let other = 0; other < count; other++) {
      const { query, key } = pairOf(model, spot, other);
      const { reason, weight } = cellAt(model, layer, head, query, key);
      if (!reason && (best === null || weight > best.weight)) best = { head, query, key, weight };
    }
  }
  return best;
}

// The masked partners of a token, gathered by reason: {reason, ranges: "2–5, 7"}
/** @param {HeadModel} model @param {number} layer @param {Spot} spot */
function maskedOf(model, layer, spot) {
  /** @type {Map<number, [number, number][]>} */
  const ranges = new Map();
  const reasons = reasonsOf(model, layer);
  if (!reasons) return [];
  const count = spot.side === "query" ? model.keys : model.queries;
  for (let other = 0; other < count; other++) {
    const reason = reasons[pairOf(model, spot, other).pair];
    if (!reason) continue;
    const list = ranges.get(reason) ?? [];
    const last = list.at(-1);
    if (last && last[1] === other - 1) last[1] = other;
    else list.push([other, other]);
    ranges.set(reason, list);
  }
  const before = model.first[spot.side === "query" ? "key" : "query"];
  const text = (/** @type {[number, number]} */ [first, last]) => (first === last ? String(before + first) : `${before + first}–${before + last}`);
  return [...ranges].map(([reason, list]) => ({ reason, ranges: list.map(text).join(", ") }));
}

// The sentence about a token, and the number in it.
/** @param {LineScene} scene @param {Spot} spot @returns {Description} */
export function describeToken(scene, spot) {
  const { model, layer, heads, words, tokens } = scene;
  const best = strongestOf(model, layer, heads, spot);
  const name = (/** @type {Side} */ side, /** @type {number} */ index) => ({ [side]: model.first[side] + index, [`${side}_token`]: tokens[side][index] });
  const masked = maskedOf(model, layer, spot).map(({ reason, ranges }) =>
    fill(spot.side === "query" ? words.masked_keys : words.masked_queries, { ranges, reason: reasonName(words, reason) }));
  if (best === null) {
    const text = fill(spot.side === "query" ? words.row_masked : words.column_masked, name(spot.side, spot.index));
    return { text: [text, ...masked].join(words.joiner) };
  }
  const sentence = words[`${spot.side === "query" ? "row" : "column"}_strongest${heads.length > 1 ? "_in" : ""}`];
  const values = { ...name("query", best.query), ...name("key", best.key), value: best.weight.toFixed(4), head: best.head };
  return { text: [fill(sentence, values), ...masked].join(words.joiner), query: best.query, key: best.key, value: best.weight };
}

/** @param {LineScene} scene @param {number} query @param {number} key @returns {Description} */
export function describePair(scene, query, key) {
  const { model, layer, heads, words, tokens } = scene;
  const names = { query: model.first.query + query, key: model.first.key + key, query_token: tokens.query[query], key_token: tokens.key[key] };
  const cells = heads.map((head) => cellAt(model, layer, head, query, key));
  if (cells[0].reason) {
    return { text: fill(words.cell_masked, { ...names, reason: reasonName(words, cells[0].reason) }), query, key, value: 0 };
  }
  const value = heads.length > 1
    ? cells.map(({ weight }, slot) => fill(words.value_in_head, { value: weight.toFixed(4), head: heads[slot] })).join(words.joiner)
    : cells[0].weight.toFixed(4);
  const largest = Math.max(...cells.map(({ weight }) => weight));
  return { text: fill(heads.length > 1 ? words.cell_weights : words.cell_weight, { ...names, value }), query, key, value: largest };
}
