// @ts-check
// The attention of the player: a map that gets a row with each step, and what chooses its kind, layer and head.

import { element, option } from "./dom.js";
import { FUTURE, headsUntil, paintHeadUntil } from "./generation_data.js";
import { cellAt, offsetOf, reasonName, strongestKey } from "./heads.js";
import { HeatMap } from "./map.js";
import { fill, visible } from "./text.js";

/** @import { Generation, HeadModel, PlayerChoice, DecoderKind, Theme } from "./types.d.ts" */

export class GrowingMap {
  /** @type {Generation} */ data;
  /** @type {Record<DecoderKind, HeadModel>} */ models;
  /** @type {string[]} */ tokens;
  /** @type {Theme} */ theme;
  /** @type {PlayerChoice} */ selected;
  /** @type {{ model: HeadModel, labels: [string[], string[]], held: boolean } | undefined} */ shown;
  /** @type {string | null} */ layoutKey = null;  // what the room was planned for
  width = 0;

  /** @param {{ change(part: Partial<PlayerChoice>): void, go(step: number): void }} on */
  constructor(on) {
    this.on = on;
    this.host = element("div", "vf-detail");
    this.title = element("div", "vf-title");
    this.choosers = element("div", "vf-bar vf-choosers");
    this.axes = element("div", "vf-caption");
    this.stage = element("div", "vf-stage");
    this.readout = element("p", "vf-readout");
    const head = element("div", "vf-bar vf-map-head");
    head.append(this.title, this.choosers);
    this.host.append(head, this.stage, this.axes, this.readout);
    this.map = new HeatMap(this.stage, {
      point: () => this.read(),
      choose: (query) => this.on.go(query + 1 - this.data.start),
      zoomed: () => {},
    });
  }

  /**
   * @param {Generation} data
   * @param {Record<DecoderKind, HeadModel>} models
   * @param {string[]} tokens
   * @param {Theme} theme
   * @param {PlayerChoice} selected
   */
  build(data, models, tokens, theme, selected) {
    [this.data, this.models, this.tokens, this.theme, this.selected] = [data, models, tokens, theme, selected];
    this.title.textContent = data.words.map_title;
    const { layers, heads } = models[selected.kind];
    /** @type {(count: number) => { value: number, text: string }[]} */
    const numbers = (count) => Array.from({ length: count }, (_, i) => ({ value: i, text: String(i) }));
    const kinds = Object.keys(data.kinds).map((kind) => ({ value: kind, text: data.words[`kind_${kind}`] }));
    this.choosers.replaceChildren(
      ...(kinds.length > 1 ? [this.chooser("kind", kinds)] : []),
      this.chooser("layer", numbers(layers)),
      this.chooser("head", numbers(heads)),
    );
  }

  /** @param {"kind" | "layer" | "head"} name @param {{ value: string | number, text: string }[]} options */
  chooser(name, options) {
    const box = element("label", "vf-caption", this.data.words[name]);
    const select = element("select", "vf-select");
    select.dataset.name = name;
    select.setAttribute("aria-label", this.data.words[name]);
    select.append(...options.map(({ value, text }) => option(value, text, value === this.selected[name])));
    select.onchange = () => this.on.change({ [name]: name === "kind" ? select.value : Number(select.value) });
    box.append(select);
    return box;
  }

  // The room for the map in px; the next `show` uses it.
  /** @param {number} width */
  fit(width) {
    this.width = width;
    this.layoutKey = null;
  }

  // The labels of all rows and columns, and of those that are there.
  /** @param {number} rows @returns {{ all: [string[], string[]], now: [string[], string[]] }} */
  labels(rows) {
    const { data, selected: { kind } } = this;
    const cut = (/** @type {string[]} */ tokens) => tokens.map((token, index) => (index < rows ? token : ""));
    const read = this.tokens.slice(0, this.tokens.length - 1);
    const queries = read.map((token, row) => `${token} → ${this.tokens[row + 1]}`);  // what the row chooses
    const keys = kind === "cross" ? data.source.map(visible) : read;
    return { all: [queries, keys], now: [cut(queries), kind === "cross" ? keys : cut(keys)] };
  }

  /** @param {PlayerChoice} selected */
  show(selected) {
    this.selected = selected;
    if (!this.width) return;
    const { words, start, made } = this.data;
    const { kind, layer, head, step } = selected;
    const rows = start + step;
    const labels = this.labels(rows);
    const model = headsUntil(this.models[kind], rows);
    const layoutKey = [kind, made, this.width].join(" ");
    if (layoutKey !== this.layoutKey) {  // the room is planned for the whole map, so that the cells stay where they are
      this.layoutKey = layoutKey;
      this.showScene(model, labels.all, rows - 1);
      this.map.resize(this.width, Math.max(220, Math.min(560, window.innerHeight * 0.62)));
    }
    this.showScene(model, labels.now, rows - 1);
    this.map.draw();
    this.axes.textContent = kind === "cross" ? words.axes_cross : words.axes_decoder;
    this.map.over.setAttribute("aria-label", fill(words.map_label, { layer, head }));
    for (const select of this.choosers.querySelectorAll("select")) {
      select.value = String(selected[/** @type {"kind" | "layer" | "head"} */ (select.dataset.name)]);
    }
    this.shown = { model, labels: labels.all, held: offsetOf(model, layer, head) >= 0 };
    this.read();
  }

  /** @param {HeadModel} model @param {[string[], string[]]} labels @param {number} query */
  showScene(model, labels, query) {
    const { theme, selected: { layer, head } } = this;
    const image = paintHeadUntil(model, layer, head, theme);
    this.map.show({
      model, theme, image: () => ({ picture: image, x: 0, y: 0 }), mostPooled: 1, blurred: null, view: "weights", range: 1, layer, head,
      selected: { query, key: null }, queryTokens: labels[0], keyTokens: labels[1],
    });
  }

  // About the cell pointed at, else about the newest row.
  read() {
    if (!this.shown) return;
    const { data: { words, start }, shown: { model, labels: [queries, keys], held } } = this;
    const { layer, head, step } = this.selected;
    const rows = start + step;
    const spot = this.map.cursor || { query: rows - 1, key: null };
    let text = words.loading;
    if (held && spot.query >= rows) text = words.not_yet;
    else if (held) {
      const key = spot.key ?? strongestKey(model, layer, head, spot.query);
      const { reason, weight } = cellAt(model, layer, head, spot.query, key);
      const values = {
        query: spot.query, query_token: queries[spot.query], key, key_token: keys[key], value: weight.toFixed(4),
        token: this.tokens[spot.query + 1], reason: reasonName(words, reason),
      };
      if (reason) text = fill(reason === FUTURE ? words.cell_masked : words.cell_blocked, values);
      else text = fill(spot.key === null ? words.newest_row : words.cell_weight, values);
    }
    this.readout.textContent = text;
  }
}
