// @ts-check
// One map on a canvas, with what the page marks in it. What is chosen stays here: no page asks for it.

import { readTheme } from "./js/colours.js";
import { element, signButton } from "./js/dom.js";
import { headSentence, standsOut } from "./js/head_sentence.js";
import { HeadImage } from "./js/head_image.js";
import { offsetOf, readHeads, reasonName, reasonsOf, scoreRange } from "./js/heads.js";
import { showLegend } from "./js/legend.js";
import { HeatMap } from "./js/map.js";
import { SQUARE } from "./js/map_marks.js";
import { within } from "./js/numbers.js";
import { present } from "./js/present.js";
import { fill, visible } from "./js/text.js";

/** @import { Cell, Component, Description, HeadModel, SentHeads, Theme, WeightsOrScores } from "./js/types.d.ts" */
/**
 * @typedef {SentHeads<null> & { title: string, view: WeightsOrScores, rings: number[] | null, squares: [number, number][] }} HeatmapData
 */

const ROW = 34;  // px that a row would like to have
const [LEAST, MOST] = [240, 560];  // px of height

class HeatmapView {
  /** @type {HeatmapData} */ data;
  /** @type {Theme} */ theme;
  /** @type {HeadModel} */ model;
  /** @type {Record<"queries" | "keys", string[]>} */ tokens;
  /** @type {Cell} */ selected = { query: 0, key: null };
  width = 0;

  /** @param {HTMLElement} parent */
  constructor(parent) {
    this.root = element("section", "vf-heatmap");
    this.title = element("div", "vf-title");
    this.zoomButtons = element("div", "vf-zoom vf-group vf-signs");
    const bar = element("div", "vf-bar");
    bar.append(this.title, this.zoomButtons);
    this.axes = element("div", "vf-caption");
    this.stage = element("div", "vf-stage");
    this.readout = element("p", "vf-readout");
    this.readout.setAttribute("role", "status");
    this.readout.setAttribute("aria-live", "polite");
    this.legend = element("div", "vf-legend");
    this.pooled = element("div", "vf-caption");
    this.root.append(bar, this.axes, this.stage, this.readout, this.legend, this.pooled);
    parent.append(this.root);
    this.map = new HeatMap(this.stage, {
      point: () => this.read(),
      choose: (query, key) => this.choose({ query, key }),
      zoomed: () => this.showZoom(),
    });
    this.watcher = new ResizeObserver(() => this.fit());
    this.watcher.observe(this.root);
  }

  // New data, or a new theme.
  /** @param {Component<HeatmapData>} component */
  update({ data }) {
    this.data = data;
    this.theme = readTheme(this.root);
    this.model = readHeads(data);
    this.tokens = { queries: data.query_tokens.map(visible), keys: data.key_tokens.map(visible) };
    const { queries, keys } = this.model;
    const { query, key } = this.selected;
    this.selected = { query: within(query, queries), key: key === null ? null : within(key, keys) };
    this.title.textContent = data.title;
    this.title.hidden = !data.title;
    this.axes.textContent = data.words.axes;
    this.map.over.setAttribute("aria-label", fill(data.words.map_label, { name: data.title }));
    this.map.over.setAttribute("aria-description", standsOut(this.told(), data.words.stands_out));
    this.zoomButtons.replaceChildren(
      signButton("−", data.words.zoom_out, () => this.map.zoomBy(1 / 1.6)),
      signButton("+", data.words.zoom_in, () => this.map.zoomBy(1.6)),
      signButton("⤢", data.words.zoom_reset, () => this.map.reset()),
    );
    this.width = 0;
    this.fit();
  }

  /** @param {Cell} cell */
  choose(cell) {
    this.selected = cell;
    this.map.show({ ...this.map.scene, selected: cell });
    this.map.draw();
    this.read();
  }

  show() {
    const { data: { view, rings, squares, words }, model, theme, tokens, selected } = this;
    const range = view === "scores" ? scoreRange(model, 0, 0) : 1;
    const image = new HeadImage(model, 0, 0, view, theme, range);
    this.map.show({
      model, theme, image: offsetOf(model, 0, 0) < 0 ? null : (pool, sight) => image.of(pool, sight), mostPooled: 64, blurred: null, view, range,
      layer: 0, head: 0, selected, queryTokens: tokens.queries, keyTokens: tokens.keys, marks: { rings, squares },
    });
    const reasons = [...new Set(reasonsOf(model, 0) ?? [])].filter(Boolean).sort();
    showLegend(this.legend, { view, range, theme, words, reasons: reasons.map((reason) => reasonName(words, reason)) });
    this.root.style.setProperty("--vf-square", SQUARE);
    if (rings) this.legend.append(this.mark("vf-ring", words.ring));
    if (squares.length) this.legend.append(this.mark("vf-square", words.square));
    Object.assign(this.root.dataset, { view, rings: (rings ?? []).join(" "), squares: squares.join(" ") });
  }

  /** @param {string} kind @param {string} text */
  mark(kind, text) {
    const mark = element("span", "vf-mark");
    mark.append(element("i", kind), element("span", "", text));
    return mark;
  }

  told() {
    const { model, tokens, data: { view, words } } = this;
    /** @type {(row: number) => [number, string]} */ const query = (row) => [row, tokens.queries[row]];
    /** @type {(at: number) => [number, string]} */ const key = (at) => [at, tokens.keys[at]];
    return { model, layer: 0, head: 0, view, words, query, key };
  }

  // The sentence: about the cell pointed at, else about the chosen cell, else about the selected row.
  read() {
    const { tokens, data: { words, rings } } = this;
    const spot = this.map.cursor ?? this.selected;
    /** @type {Description} */ let found = headSentence(this.told(), spot.query, spot.key);
    if (rings && spot.key === null) {
      const names = { query: spot.query, query_token: tokens.queries[spot.query], key_token: tokens.keys[rings[spot.query]] };
      found = { text: fill(words.most, names) };
    }
    this.readout.textContent = found.text;
    Object.assign(this.readout.dataset, { query: spot.query, key: spot.key ?? "", value: found.value ?? "" });
  }

  showZoom() {
    this.zoomButtons.hidden = !this.map.zoomable;
    const [out, into, all] = this.zoomButtons.querySelectorAll("button");
    const { pool, zoom, layout } = this.map;
    this.pooled.textContent = pool > 1 ? fill(this.data.words.pooled, { n: pool }) : "";
    out.disabled = all.disabled = zoom <= 1;
    into.disabled = zoom >= layout.zoomMost;
  }

  // Lays everything out for the width there is.
  fit() {
    const width = Math.floor(this.root.clientWidth);
    if (!this.data || width === 0 || width === this.width) return;
    this.width = width;
    this.show();
    this.map.resize(width, Math.max(LEAST, Math.min(MOST, 70 + ROW * this.model.queries)));
    this.map.draw();
    this.showZoom();
    this.read();
  }

  close() {
    this.watcher.disconnect();
    this.root.remove();
  }
}

/** @param {Component<HeatmapData>} component */
export default function heatmap(component) {
  return present(HeatmapView, component);
}
