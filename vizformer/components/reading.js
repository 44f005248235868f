// @ts-check
// The text as the picture: the chosen token's text is coloured by what it attends to, and underlined by what attends to it.

import { readTheme } from "./js/colours.js";
import { Conversation, patience } from "./js/conversation.js";
import { element, option } from "./js/dom.js";
import { TokenFinder } from "./js/finder.js";
import { HeadLoader } from "./js/head_loader.js";
import { cellAt, layerName, offsetOf, readHeads, reasonName, strongestKey, strongestQuery } from "./js/heads.js";
import { within } from "./js/numbers.js";
import { present } from "./js/present.js";
import { RunningText } from "./js/running_text.js";
import { fill } from "./js/text.js";

/** @import { Component, HeadModel, SentHeads, Side, Spot, Theme, Words } from "./js/types.d.ts" */
/** @typedef {{ layer: number, head: number, pinned: Spot }} Choice */

class ReadingView {
  /** @type {SentHeads<Choice>} */ data;
  /** @type {Words} */ words;
  /** @type {Theme} */ theme;
  /** @type {HeadModel} */ model;
  /** @type {Choice} */ selected;
  /** @type {Record<Side, string[]>} */ tokens;
  /** @type {Spot | null} */ pointed = null;
  oneText = true;

  /** @param {HTMLElement} parent */
  constructor(parent) {
    /** @type {Conversation<Choice>} */ this.conversation = new Conversation();
    this.root = element("section", "vf-reading");
    const bar = element("div", "vf-bar");
    this.layer = element("select");
    this.layer.onchange = () => this.change({ layer: Number(this.layer.value) });
    this.head = element("select");
    this.head.onchange = () => this.change({ head: Number(this.head.value) });
    this.finder = new TokenFinder((index) => this.jump(index));
    bar.append(this.layer, this.head, this.finder.host);
    this.legend = element("div", "vf-legend");
    this.readout = element("p", "vf-readout");
    this.readout.setAttribute("role", "status");
    this.readout.setAttribute("aria-live", "polite");
    this.captions = { query: element("div", "vf-caption"), key: element("div", "vf-caption") };
    const on = (/** @type {Side} */ side) => ({
      point: (/** @type {number | null} */ index) => this.point(index === null ? null : { side, index }),
      choose: (/** @type {number} */ index) => this.change({ pinned: { side, index } }),
    });
    this.texts = { query: new RunningText(on("query")), key: new RunningText(on("key")) };
    this.root.append(
      bar, this.legend, this.readout, this.captions.query, this.texts.query.host, this.captions.key, this.texts.key.host,
    );
    parent.append(this.root);
    this.loader = new HeadLoader({
      head: () => {
        this.show();
        this.conversation.hasten();
      },
      layer: () => {},
      lost: () => this.conversation.tell(this.selected, 0),
    });
  }

  /** @param {Component<SentHeads<Choice>>} component */
  update(component) {
    const { data } = component;
    [this.data, this.words] = [data, data.words];
    this.theme = readTheme(this.root);
    this.model = readHeads(data);
    this.loader.take(this.model, data.address ?? null, []);
    this.conversation.listen(component);
    this.selected = this.inRange(this.conversation.value || {});
    this.pointed = null;
    this.oneText = String(data.query_tokens) === String(data.key_tokens);
    this.tokens = { query: data.query_tokens.map((token) => token.trim()), key: data.key_tokens.map((token) => token.trim()) };
    this.texts.query.show(data.query_tokens, this.words.text_label);
    this.texts.key.show(this.oneText ? [] : data.key_tokens, this.words.text_label);
    for (const side of /** @type {Side[]} */ (["query", "key"])) {
      this.captions[side].textContent = side === "query" ? this.words.queries : this.words.keys;
      this.captions[side].hidden = this.oneText;
    }
    this.texts.key.host.hidden = this.oneText;
    this.finder.show(this.tokens.query, this.words);
    this.showBoxes();
    this.show();
    this.loader.want(this.selected.layer, this.selected.head);
  }

  showBoxes() {
    const { model, words, data, selected: { layer, head } } = this;
    this.layer.setAttribute("aria-label", words.layer_label);
    this.head.setAttribute("aria-label", words.head_label);
    this.layer.replaceChildren(...Array.from({ length: model.layers }, (_, at) => option(at, layerName(data, words.layer, at), at === layer)));
    this.head.replaceChildren(...Array.from({ length: model.heads }, (_, at) => option(at, fill(words.head, { head: at }), at === head)));
    this.head.hidden = model.heads < 2;
    const sign = (/** @type {string} */ kind, /** @type {string} */ text) => {
      const part = element("span", "vf-sign");
      part.append(element("span", kind, "a"), element("span", "", text));
      return part;
    };
    this.legend.replaceChildren(sign("vf-looks", words.looks_at), sign("vf-looked", words.looked_at));
  }

  // A selection that exists.
  /** @param {Partial<Choice>} wish @returns {Choice} */
  inRange(wish) {
    const { layers, heads, queries, keys } = this.model;
    const side = wish.pinned?.side === "key" ? "key" : "query";
    const index = within(wish.pinned ? wish.pinned.index : queries - 1, side === "query" ? queries : keys);
    return { layer: within(wish.layer, layers), head: within(wish.head, heads), pinned: { side, index } };
  }

  /** @param {Partial<Choice>} part */
  change(part) {
    this.selected = this.inRange({ ...this.selected, ...part });
    const { layer, head } = this.selected;
    this.loader.want(layer, head);
    this.conversation.tell(this.selected, patience(this.model, layer, head));
    this.show();
  }

  /** @param {number} index */
  jump(index) {
    this.change({ pinned: { side: "query", index } });
    this.texts.query.reveal(index);
  }

  /** @param {Spot | null} spot */
  point(spot) {
    this.pointed = spot;
    this.read();
  }

  // Colours the text: weights from the chosen token lie under the words, weights to it under the line.
  show() {
    const { model, oneText, texts, selected: { layer, head, pinned: { side, index } } } = this;
    const here = offsetOf(model, layer, head) >= 0;
    const row = (/** @type {number} */ key) => (here ? cellAt(model, layer, head, index, key).weight : 0);
    const column = (/** @type {number} */ query) => (here ? cellAt(model, layer, head, query, index).weight : 0);
    const none = () => 0;
    if (oneText) texts.query.colour(row, column, index);
    else {
      texts.query.colour(none, side === "key" ? column : none, side === "query" ? index : null);
      texts.key.colour(side === "query" ? row : none, none, side === "key" ? index : null);
    }
    [this.layer.value, this.head.value] = [String(layer), String(head)];
    Object.assign(this.root.dataset, { layer, head, pinned: `${side} ${index}`, here });
    this.read();
  }

  read() {
    const { model, words, selected: { layer, head } } = this;
    if (offsetOf(model, layer, head) < 0) {
      const coming = model.computed && model.chosen[0] === layer && model.chosen[1] === head;
      this.readout.textContent = coming ? words.computing : this.data.static ? words.not_in_file : this.loader.failed ? words.not_come : words.loading;
      return;
    }
    this.readout.textContent = this.sentences().join(words.joiner);
  }

  sentences() {
    const { model, words, pointed, oneText, selected: { layer, head, pinned } } = this;
    if (pointed && !(oneText && pointed.index === pinned.index) && (oneText || pointed.side !== pinned.side)) {
      const [a, b] = [pinned.index, pointed.index];
      if (oneText) return [this.pair(a, b), this.pair(b, a)];
      return [pinned.side === "query" ? this.pair(a, b) : this.pair(b, a)];
    }
    const sentences = [];
    if (pinned.side === "query") {
      const key = strongestKey(model, layer, head, pinned.index);
      sentences.push(key < 0 ? this.fill(words.row_masked, pinned.index, 0) : this.fill(words.row_strongest, pinned.index, key));
    }
    if (oneText || pinned.side === "key") {
      const query = strongestQuery(model, layer, head, pinned.index);
      sentences.push(query < 0 ? this.fill(words.column_masked, 0, pinned.index) : this.fill(words.column_strongest, query, pinned.index));
    }
    return sentences;
  }

  /** @param {number} query @param {number} key */
  pair(query, key) {
    const { model, words, selected: { layer, head } } = this;
    return this.fill(cellAt(model, layer, head, query, key).reason ? words.cell_masked : words.cell_weight, query, key);
  }

  /** @param {string} sentence @param {number} query @param {number} key */
  fill(sentence, query, key) {
    const { model, words, tokens, selected: { layer, head } } = this;
    const { weight, reason } = cellAt(model, layer, head, query, key);
    return fill(sentence, {
      query, key, query_token: tokens.query[query], key_token: tokens.key[key], value: weight.toFixed(4), reason: reasonName(words, reason),
    });
  }

  close() {
    this.loader.close();
    this.root.remove();
  }
}

/** @param {Component<SentHeads<Choice>>} component */
export default function reading(component) {
  return present(ReadingView, component);
}
