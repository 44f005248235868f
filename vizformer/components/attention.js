// @ts-check
// The attention view: the overview of all heads, the map of the chosen one, and the sentence that reads a cell out.
// Everything is drawn here; Python hears about choices, and sends new numbers when the text or the model changes.

import { readTheme } from "./js/colours.js";
import { Conversation, patience } from "./js/conversation.js";
import { element, signButton } from "./js/dom.js";
import { TokenFinder } from "./js/finder.js";
import { HeadGrid } from "./js/grid.js";
import { HeadLoader } from "./js/head_loader.js";
import { OrderBox, ordersOf } from "./js/head_order.js";
import { HeadImage, paintThumb } from "./js/head_image.js";
import { HeadStrip } from "./js/head_strip.js";
import { headSentence, standsOut } from "./js/head_sentence.js";
import { colours, layerName, offsetOf, readHeads, reasonName, reasonsIn, scoreRange, weightRange } from "./js/heads.js";
import { rangeButton, showLegend } from "./js/legend.js";
import { HeatMap } from "./js/map.js";
import { within } from "./js/numbers.js";
import { present } from "./js/present.js";
import { fill, visible } from "./js/text.js";
import { ViewSwitch } from "./js/view_switch.js";
import { WordMap } from "./js/words.js";

/** @import { Cell, Colours, Component, HeadModel, Order, SentHeads, Theme, WeightsOrScores, Words } from "./js/types.d.ts" */
/** @typedef {{ layer: number, head: number, query: number, key: number | null, view: WeightsOrScores, order: Order, colours: Colours }} Choice */
/** @typedef {SentHeads<Choice>} AttentionData */

const LONG = 24;  // rows; in more of them a token is looked for

class AttentionView {
  /** @type {AttentionData} */ data;
  /** @type {Words} */ words;
  /** @type {Theme} */ theme;
  /** @type {HeadModel} */ model;
  /** @type {Choice} */ selected;
  /** @type {{ layer(layer: number): string, head(head: number): string, both(layer: number, head: number): string }} */
  names;
  /** @type {number} */ width;
  /** @type {HeadModel} */ large;
  wordMap = new WordMap();

  /** @param {HTMLElement} parent */
  constructor(parent) {
    /** @type {Conversation<Choice>} */ this.conversation = new Conversation();
    this.root = element("section", "vf-attention vf-parts");
    this.grid = new HeadGrid(
      element("div", "vf-grid"),
      (layer, head) => this.change({ layer, head, key: null }),
      (layer, head) => this.loader.expect(layer, head),
    );
    this.grid.host.setAttribute("role", "grid");
    this.strip = new HeadStrip(
      (layer, head) => this.change({ layer, head, key: null }),
      (layer, head) => this.loader.expect(layer, head),
    );
    this.gridCaption = element("div", "vf-caption");
    this.overview = element("div", "vf-overview");
    this.order = new OrderBox((order) => this.sort(order));
    const scroll = element("div", "vf-scroll");
    scroll.append(this.grid.host);
    scroll.onscroll = () => this.grid.paint();
    this.overview.append(this.gridCaption, this.order.host, this.strip.host, scroll);

    this.title = element("div", "vf-title");
    this.switch = new ViewSwitch((view) => this.change({ view }));
    this.zoomButtons = element("div", "vf-zoom vf-group vf-signs");
    this.closeWords = element("button", "vf-link");
    this.closeWords.type = "button";
    this.closeWords.onclick = () => {
      this.wordMap.close();
      this.layAgain();
    };
    const bar = element("div", "vf-bar");
    this.finder = new TokenFinder((query) => {
      this.change({ query, key: null });
      this.map.reveal(this.wordMap.placed({ query, key: null }).query);
    });
    bar.append(this.title, this.closeWords, this.finder.host, this.zoomButtons, this.switch.host);
    this.axes = element("div", "vf-caption");
    this.stage = element("div", "vf-stage");
    this.readout = element("p", "vf-readout");
    this.readout.setAttribute("role", "status");
    this.readout.setAttribute("aria-live", "polite");
    this.legend = element("div", "vf-legend");
    this.range = rangeButton(() => this.change({ colours: this.selected.colours === "own" ? "absolute" : "own" }));
    this.detail = element("div", "vf-detail");
    this.pooled = element("div", "vf-caption vf-pooled");  // at the end, so that nothing moves when it goes
    this.detail.append(bar, this.axes, this.stage, this.readout, this.legend, this.pooled);
    this.root.append(this.overview, this.detail);
    parent.append(this.root);

    this.map = new HeatMap(this.stage, {
      point: () => this.read(),
      choose: (query, key) => this.choose({ query, key }),
      zoomed: () => this.showZoom(),
    });
    this.loader = new HeadLoader({
      head: () => {
        this.showHead();
        this.conversation.hasten();
      },
      layer: () => this.showLayer(),
      lost: () => this.conversation.tell(this.selected, 0),
    });
    this.watcher = new ResizeObserver(() => this.fit());
    this.watcher.observe(this.root);
  }

  // New data, or a new theme.
  /** @param {Component<AttentionData>} component */
  update(component) {
    const { data } = component;
    this.data = data;
    this.words = data.words;
    this.theme = readTheme(this.root);
    this.model = readHeads(data);
    this.loader.take(this.model, data.address ?? null, data.measures ?? []);
    this.wordMap.take(data, { queries: data.query_tokens.map(visible), keys: data.key_tokens.map(visible) });
    this.conversation.listen(component);
    this.selected = this.inRange(this.conversation.value || {});
    const wanted = this.selected;
    if (this.loader.isAway(wanted.layer, wanted.head)) this.loader.want(wanted.layer, wanted.head);  // it comes meanwhile
    this.names = {
      layer: (layer) => layerName(data, this.words.layer_short, layer),
      head: (head) => fill(this.words.head_short, { head }),
      both: (layer, head) => fill(this.words.head_name, { layer: data.layer_labels[layer], head }),
    };
    this.closeWords.textContent = this.words.close_words;
    this.finder.show(this.wordMap.tokens.queries, this.words);
    this.finder.host.hidden = this.model.queries <= LONG;
    this.showGrid();
    this.gridCaption.textContent = this.words.grid_title;
    this.axes.textContent = this.words.axes;
    this.switch.build(this.scores ? ["weights", "scores"] : [], this.words, this.selected.view);
    this.buildZoom();
    this.width = 0;
    this.fit();
    this.loader.want(wanted.layer, wanted.head);
  }

  // Whether there are scores to show: words have none, they do not add up.
  get scores() {
    return (this.model.scores !== null || this.model.addressed) && !this.wordMap.byWord;
  }

  /** @param {Cell} cell of the large map */
  choose(cell) {
    this.change(this.wordMap.tokensOf(cell));
    if (this.wordMap.open(cell)) this.layAgain();
  }

  layAgain() {
    this.width = 0;
    this.fit();
  }

  showGrid() {
    const { model, words, selected: { order } } = this;
    this.order.show(model, words, order);
    this.strip.show(model, this.theme, this.names, words, this.data.strip ?? null, order);
    this.grid.show(model, this.theme, this.names, words, order);
    this.root.dataset.order = order;
  }

  /** @param {Order} order */
  sort(order) {
    this.change({ order });
    this.showGrid();
    this.grid.resize(this.overview.clientWidth);
    this.select();
  }

  select() {
    for (const tiles of [this.grid, this.strip]) tiles.select(this.selected.layer, this.selected.head);
  }

  // The small maps of a layer have come; where they are sorted, they take their places when all are here.
  showLayer() {
    const { order, layer, head } = this.selected;
    const all = !this.model.layersHere?.includes(0);
    this.strip.paint();
    if (order === "layer" || !all) this.grid.paint();
    else this.sort(order);
    if (offsetOf(this.model, layer, head) < 0) this.showHead();  // in its place stands its small map
  }

  // A selection that exists: what comes from a link or from an older text may not.
  /** @param {Partial<Choice>} wish @returns {Choice} */
  inRange(wish) {
    const { layers, heads, queries, keys } = this.model;
    return {
      layer: within(wish.layer, layers),
      head: within(wish.head, heads),
      query: within(wish.query, queries),
      key: wish.key === null || wish.key === undefined ? null : within(wish.key, keys),
      view: wish.view === "scores" && this.scores ? "scores" : "weights",
      order: ordersOf(this.model).find((order) => order === wish.order) ?? "layer",
      colours: colours(wish.colours),
    };
  }

  /** @param {Partial<Choice>} part */
  change(part) {
    const next = this.inRange({ ...this.selected, ...part });
    this.selected = next;
    this.loader.want(next.layer, next.head);
    this.conversation.tell(next, patience(this.model, next.layer, next.head));
    this.showHead();
  }

  buildZoom() {
    const { words, map } = this;
    this.zoomButtons.replaceChildren(
      signButton("−", words.zoom_out, () => map.zoomBy(1 / 1.6)),
      signButton("+", words.zoom_in, () => map.zoomBy(1.6)),
      signButton("⤢", words.zoom_reset, () => map.reset()),
    );
  }

  showZoom() {
    this.zoomButtons.hidden = !this.map.zoomable;
    const [out, into, all] = this.zoomButtons.querySelectorAll("button");
    const { pool } = this.map;
    this.pooled.textContent = pool > 1 ? fill(this.words.pooled, { n: pool }) : "";
    out.disabled = all.disabled = this.map.zoom <= 1;
    into.disabled = this.map.zoom >= this.map.layout.zoomMost;
  }

  // Draws the chosen head, without touching the layout.
  showHead() {
    const { model, theme, selected } = this;
    const { layer, head, view } = selected;
    const large = this.large = this.wordMap.enlarge(model, layer, head);
    const here = offsetOf(large, layer, head) >= 0;
    const own = view === "weights" && selected.colours === "own" && here;
    const range = view === "scores" ? scoreRange(large, layer, head) : own ? weightRange(large, layer, head) : 1;
    const image = new HeadImage(large, layer, head, view, theme, range);
    const blurred = here ? null : paintThumb(model, layer, head, theme);
    this.map.show({
      model: large, theme, image: here ? (pool, sight) => image.of(pool, sight) : null, mostPooled: 64, blurred, view, range,
      layer, head, selected: this.wordMap.placed(selected),
      queryTokens: this.wordMap.labels.queries, keyTokens: this.wordMap.labels.keys,
    });
    this.closeWords.hidden = !this.wordMap.anyOpened;
    this.select();
    this.switch.show(view);
    this.title.textContent = this.names.both(layer, head);
    this.map.over.setAttribute("aria-label", fill(this.words.map_label, { name: this.title.textContent }));
    this.map.over.setAttribute("aria-description", standsOut(this.told(), this.words.stands_out));
    showLegend(this.legend, { view, range, own, theme, words: this.words, reasons: this.reasonNames() });
    this.range.textContent = selected.colours === "own" ? this.words.to_absolute : this.words.to_own;
    if (view === "weights") this.legend.append(this.range);
    Object.assign(this.root.dataset, { layer, head, view, query: selected.query });
    if (this.map.layout) this.map.draw();
    this.read();
  }

  reasonNames() {
    return reasonsIn(this.model, this.selected.layer).map((reason) => reasonName(this.words, reason));
  }

  told() {
    const { words, large: model, selected: { layer, head, view }, wordMap: { rows, columns, labels } } = this;
    /** @type {(row: number) => [number, string]} */ const query = (row) => [rows.starts[row], labels.queries[row]];
    /** @type {(column: number) => [number, string]} */ const key = (column) => [columns.starts[column], labels.keys[column]];
    return { model, layer, head, view, words, query, key };
  }

  // The sentence: about the cell pointed at, else about the chosen cell, else about the selected row.
  read() {
    const { model, words, large, selected: { layer, head }, wordMap: { rows, columns } } = this;
    const spot = this.map.cursor || this.wordMap.placed(this.selected);
    const here = offsetOf(large, layer, head) >= 0;
    const computing = model.computed && model.chosen[0] === layer && model.chosen[1] === head;
    const { text, value } = here
      ? headSentence(this.told(), spot.query, spot.key)
      : { text: computing ? words.computing : this.data.static ? words.not_in_file : this.loader.failed ? words.not_come : words.loading, value: undefined };
    this.readout.textContent = text;
    const key = spot.key === null ? "" : columns.starts[spot.key];
    Object.assign(this.readout.dataset, { query: rows.starts[spot.query], key, value: value ?? "" });
  }

  // Lays everything out for the width there is.
  fit() {
    const width = Math.floor(this.root.clientWidth);
    if (!this.data || width === 0 || width === this.width) return;
    const first = this.width === 0;
    this.width = width;
    const wide = width >= 720;
    this.root.classList.toggle("vf-wide", wide);
    const overview = wide ? this.grid.width(Math.round(width * 0.38)) : width;
    this.overview.style.width = `${overview}px`;
    this.grid.resize(overview);
    if (first) this.showHead();
    this.map.resize(wide ? width - overview - 28 : width, Math.max(200, this.mapHeight()));
    this.map.draw();
    this.showZoom();
  }

  // Room for the map in px: what the page says, else what the window has left under a page's head (some 400 px), so that
  // the whole map is in sight, and more where there are many rows.
  mapHeight() {
    if (this.data.height) return this.data.height - 150;  // title, sentence and legend take the rest
    const { queries, keys } = this.large;
    const side = Math.max(queries, keys);
    return Math.max(side > 48 ? 690 : side > 16 ? 620 : 360, Math.min(760, window.innerHeight - 400));
  }

  close() {
    this.loader.close();
    this.grid.close();
    this.watcher.disconnect();
    this.root.remove();
  }
}

/** @param {Component<AttentionData>} component */
export default function attention(component) {
  return present(AttentionView, component);
}
