// @ts-check
// What the map says of a cell or of a row, in a sentence.

import { cellAt, offsetOf, reasonName, strongestKey } from "./heads.js";
import { signed } from "./numbers.js";
import { fill } from "./text.js";

/** @import { Description, HeadModel, WeightsOrScores, Words } from "./types.d.ts" */

/**
 * A head that is here, and what its rows and columns are called: number and text of each.
 * @typedef {{ model: HeadModel, layer: number, head: number, view: WeightsOrScores, words: Words,
 *   query(row: number): [number, string], key(column: number): [number, string] }} Told
 */

const MOST_READ = 1 << 16;  // cells in which the largest is looked for while a head is drawn: 256 tokens, some 3 ms

// What stands out in a map, for those who do not see it: its cell of the largest weight, or score. A row that sees one
// key gives it 1 whatever the model, so it is passed over. Nothing where the numbers are not here, or too many.
/** @param {Told} told @param {string} sentence with a {cell} @returns {string} */
export function standsOut(told, sentence) {
  const { model, layer, head, view } = told;
  if (offsetOf(model, layer, head) < 0 || model.queries * model.keys > MOST_READ) return "";
  /** @type {{ query: number, key: number, value: number, alone: boolean } | null} */
  let most = null;
  for (let query = 0; query < model.queries; query++) {
    /** @type {{ query: number, key: number, value: number, alone: boolean } | null} */
    let best = null;
    for (let key = 0; key < model.keys; key++) {
      const { reason, weight, score } = cellAt(model, layer, head, query, key);
      const value = view === "weights" ? weight : score;
      if (reason || !Number.isFinite(value)) continue;
      if (best === null) best = { query, key, value, alone: true };
      else best = { ...(value > best.value ? { query, key, value } : best), alone: false };
    }
    if (best && (!most || (most.alone && !best.alone) || (most.alone === best.alone && best.value > most.value))) most = best;
  }
  return most ? fill(sentence, { cell: headSentence(told, most.query, most.key).text }) : "";
}

/** @param {Told} told @param {number} query @param {number | null} key @returns {Description} */
export function headSentence({ model, layer, head, view, words, query: queryName, key: keyName }, query, key) {
  const [number, text] = queryName(query);
  const row = { query: number, query_token: text };
  if (key === null) {
    const best = strongestKey(model, layer, head, query);
    if (best < 0) {
      const unknown = Array.from({ length: model.keys }, (_, at) => cellAt(model, layer, head, query, at)).some(({ reason, weight }) => !reason && Number.isNaN(weight));
      return { text: fill(unknown ? words.row_nan : words.row_masked, row) };
    }
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
