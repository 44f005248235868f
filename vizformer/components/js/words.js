// @ts-check
// The map of a head by words: the sum over the pieces of a key word, the mean over the pieces of a query word.

import { offsetOf, reasonsOf, weightAt } from "./heads.js";

/** @import { Cell, HeadModel, SentHeads } from "./types.d.ts" */
/** @typedef {{ model: HeadModel, large: HeadModel, layer: number, head: number, complete: boolean }} Kept */

// The words of one axis: which tokens belong together, and which word was opened.
class WordAxis {
  /** @type {number[]} */ starts = [];
  /** @type {number[]} */ ends = [];
  wordOf = new Uint32Array(0);

  /** @param {(number | null)[] | null} words of each token, null: every token stands for itself */
  constructor(words) {
    this.words = words;
  }

  // Lays the words out anew, `opened` as their pieces.
  /** @param {number} count @param {Set<number>} opened */
  lay(count, opened) {
    this.starts = [];
    this.wordOf = new Uint32Array(count);
    for (let token = 0; token < count; token++) {
      const here = this.words ? this.words[token] : null;
      const apart = token === 0 || here === null || here !== this.words?.[token - 1] || opened.has(here);
      if (apart) this.starts.push(token);
      this.wordOf[token] = this.starts.length - 1;
    }
    this.ends = [...this.starts.slice(1), count];
  }

  get count() {
    return this.starts.length;
  }

  // The word that a click on a place opens: one of several pieces; null where there is nothing to open.
  /** @param {number} place */
  opens(place) {
    return this.ends[place] - this.starts[place] > 1 ? this.words?.[this.starts[place]] ?? null : null;
  }

  /** @param {string[]} tokens */
  labels(tokens) {
    return this.starts.map((start, place) => tokens.slice(start, this.ends[place]).join(""));
  }
}

// The large map of a head: tokens by tokens, or words by words of which some are opened.
export class WordMap {
  rows = new WordAxis(null);
  columns = new WordAxis(null);
  opened = { query: new Set(), key: new Set() };
  /** @type {{ queries: string[], keys: string[] }} */ tokens = { queries: [], keys: [] };
  /** @type {{ queries: string[], keys: string[] }} */ labels = { queries: [], keys: [] };
  /** @type {Kept | null} */ kept = null;
  oneText = false;
  byWord = false;

  /** @param {SentHeads<any>} data @param {{ queries: string[], keys: string[] }} tokens */
  take(data, tokens) {
    const [queries, keys] = [data.query_words ?? null, data.key_words ?? null];
    [this.tokens, this.rows, this.columns] = [tokens, new WordAxis(queries), new WordAxis(keys)];
    this.byWord = queries !== null;
    this.oneText = String(queries) === String(keys);
    this.lay();
  }

  lay() {
    const { rows, columns, opened, tokens } = this;
    rows.lay(tokens.queries.length, opened.query);
    columns.lay(tokens.keys.length, opened.key);
    this.labels = { queries: rows.labels(tokens.queries), keys: columns.labels(tokens.keys) };
    this.kept = null;
  }

  get anyOpened() {
    return this.byWord && this.opened.query.size + this.opened.key.size > 0;
  }

  // The head with words in the place of tokens, where words are wanted.
  /** @param {HeadModel} model @param {number} layer @param {number} head */
  enlarge(model, layer, head) {
    const { rows, columns, kept } = this;
    if (!this.byWord) return model;
    const complete = offsetOf(model, layer, head) >= 0;
    if (kept && kept.model === model && kept.layer === layer && kept.head === head && kept.complete === complete) return kept.large;
    const large = wordModel(model, layer, head, rows, columns) ?? { ...model, queries: rows.count, keys: columns.count };
    this.kept = { model, large, layer, head, complete };
    return large;
  }

  // Where tokens stand in the large map.
  /** @param {Cell} cell @returns {Cell} */
  placed({ query, key }) {
    return { query: this.rows.wordOf[query], key: key === null ? null : this.columns.wordOf[key] };
  }

  // The first tokens of a cell of the large map.
  /** @param {Cell} cell @returns {Cell} */
  tokensOf({ query, key }) {
    return { query: this.rows.starts[query], key: key === null ? null : this.columns.starts[key] };
  }

  // Opens the words of a cell, on both axes where they are of one text; true where there was something to open.
  /** @param {Cell} cell */
  open({ query, key }) {
    const [row, column] = [this.rows.opens(query), key === null ? null : this.columns.opens(key)];
    const found = [row, column].filter((word) => word !== null);
    if (row !== null) this.opened.query.add(row);
    if (column !== null) this.opened.key.add(column);
    if (this.oneText) for (const word of found) for (const side of [this.opened.query, this.opened.key]) side.add(word);
    if (found.length) this.lay();
    return found.length > 0;
  }

  close() {
    this.opened = { query: new Set(), key: new Set() };
    this.lay();
  }
}

// The head as a model of one map whose rows and columns are words; null while its numbers are not here.
/** @param {HeadModel} model @param {number} layer @param {number} head @param {WordAxis} rows @param {WordAxis} columns @returns {HeadModel | null} */
function wordModel(model, layer, head, rows, columns) {
  const start = offsetOf(model, layer, head);
  if (start < 0) return null;
  const why = reasonsOf(model, layer);
  const [queries, keys] = [rows.count, columns.count];
  const weights = new Float32Array(queries * keys);
  const reasons = why ? new Uint8Array(queries * keys).fill(255) : null;
  for (let query = 0; query < model.queries; query++) {
    const row = rows.wordOf[query];
    const pieces = rows.ends[row] - rows.starts[row];
    for (let key = 0; key < model.keys; key++) {
      const at = row * keys + columns.wordOf[key];
      const reason = why ? why[query * model.keys + key] : 0;
      if (reasons && reason < reasons[at]) reasons[at] = reason;
      if (!reason) weights[at] += weightAt(model, start, query, key) / pieces;
    }
  }
  return {
    ...model, queries, keys, weights, reasons, one: 1, held: "head", chosen: [layer, head], computed: null, scores: null,
  };
}
