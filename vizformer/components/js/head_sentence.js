// @ts-check
// What the map says of a cell or of a row, in a sentence.

import { cellAt, reasonName, strongestKey } from "./heads.js";
import { signed } from "./numbers.js";
import { fill } from "./text.js";

/** @import { Description, HeadModel, WeightsOrScores, Words } from "./types.d.ts" */

/**
 * A head that is here, and what its rows and columns are called: number and text of each.
 * @typedef {{ model: HeadModel, layer: number, head: number, view: WeightsOrScores, words: Words,
 *   query(row: number): [number, string], key(column: number): [number, string] }} Told
 */

/** @param {Told} told @param {number} query @param {number | null} key @returns {Description} */
export function headSentence({ model, layer, head, view, words, query: queryName, key: keyName }, query, key) {
  const [number, text] = queryName(query);
  const row = { query: number, query_token: text };
  if (key === null) {
    const best = strongestKey(model, layer, head, query);
    if (best < 0) return { text: fill(words.row_masked, row) };
    const { weight } = cellAt(model, layer, head, query, best);
    const [at, token] = keyName(best);
    return { text: fill(words.row_strongest, { ...row, key: at, key_token: token, value: weight.toFixed(4) }), value: weight };
  }
  const { reason, weight, score } = cellAt(model, layer, head, query, key);
  const value = view === "weights" ? weight : score;
  const [at, token] = keyName(key);
  const places = { ...row, key: at, key_token: token, value: signed(value, 4), reason: reasonName(words, reason) };
  if (!reason) return { text: fill(view === "weights" ? words.cell_weight : words.cell_score, places), value };
  const known = view === "scores" && Number.isFinite(score);
  return { text: fill(known ? words.cell_masked_score : words.cell_masked, places), value: known ? score : 0 };
}
