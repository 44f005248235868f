// @ts-check
// The line view: queries on the left, keys on the right, a line for each weight, in the colours of the heads.
// The lines of all tokens lie on one canvas; what follows the pointer is drawn on a second one over it.

import { readTheme } from "./js/colours.js";
import { SIDES, TokenColumns } from "./js/columns.js";
import { Conversation } from "./js/conversation.js";
import { describePair, describeToken } from "./js/describe.js";
import { context2d, element, focusedIn, signButton } from "./js/dom.js";
import { layerName, offsetOf, readHeads } from "./js/heads.js";
import { drawLines, findLines } from "./js/line_layer.js";
import { layoutLines } from "./js/line_layout.js";
import { LinePanel } from "./js/line_panel.js";
import { within } from "./js/numbers.js";
import { present } from "./js/present.js";
import { fill, visible } from "./js/text.js";
import { drawTokenLines, pairOf } from "./js/token_lines.js";

/** @import { Component, Description, FoundLines, HeadModel, LineChoice, LineLayout } from "./js/types.d.ts" */
/** @import { LineScene, SentHeads, Side, Spot, Theme, Words } from "./js/types.d.ts" */
/** @typedef {SentHeads<LineChoice>} LineData */
/** @typedef {LineChoice & { heads: number[] }} Selected */

class LineView {
  /** @type {LineData} */ data;
  /** @type {Words} */ words;
  /** @type {Theme} */ theme;
  /** @type {HeadModel} */ model;
  /** @type {Selected} */ selected;
  /** @type {Spot | null} */ pointed = null;
  /** @type {Record<Side, string[]>} */ tokens;
  /** @type {LineLayout | undefined} */ layout;
  /** @type {LineScene} */ scene;
  /** @type {FoundLines | null} */ drawn = null;
  /** @type {MediaQueryList} */ screen;
  /** @type {() => void} */ onScreen;
  width = 0;
  density = 1;

  /** @param {HTMLElement} parent */
  constructor(parent) {
    /** @type {Conversation<LineChoice>} */ this.conversation = new Conversation();
    this.root = element("section", "vf-lines vf-parts");

    this.panel = new LinePanel({
      toggle: (head, alone) => this.toggle(head, alone),
      change: (part) => this.change(part),
    });
    this.title = element("div", "vf-title");
    this.unpin = element("button", "vf-link");
    this.unpin.type = "button";
    this.unpin.onclick = () => this.change({ pinned: null });
    this.steps = element("div", "vf-group vf-signs");
    const bar = element("div", "vf-bar");
    bar.append(this.steps, this.title, this.unpin);
    this.axes = element("div", "vf-caption");
    this.readout = element("p", "vf-readout");
    this.readout.setAttribute("role", "status");
    this.readout.setAttribute("aria-live", "polite");
    this.columns = new TokenColumns({ point: (spot) => this.point(spot), choose: (spot) => this.pin(spot) });
    this.names = { query: element("span"), key: element("span") };
    const names = element("div", "vf-names");
    names.append(this.names.query, element("span"), this.names.key);
    this.base = element("canvas", "vf-base");
    this.over = element("canvas", "vf-over");
    this.between = element("div", "vf-between");
    this.between.append(this.base, this.over);
    const body = element("div", "vf-body");
    body.append(this.columns.hosts.query, this.between, this.columns.hosts.key);
    this.scroller = element("div", "vf-scroller");
    this.scroller.append(body);
    this.scroller.onscroll = () => this.draw();
    this.detail = element("div", "vf-detail");
    this.detail.append(bar, this.axes, this.readout, names, this.scroller);
    this.root.append(this.panel.host, this.detail);
    parent.append(this.root);

    this.root.addEventListener("keydown", (event) => { if (event.key === "Escape") this.change({ pinned: null }); });
    this.scroller.addEventListener("keydown", (event) => {
      const step = { PageUp: -1, PageDown: 1 }[event.key];
      if (!step) return;
      event.preventDefault();
      this.change({ layer: this.selected.layer + step });
    });
    this.watcher = new ResizeObserver(() => this.fit());
    this.watcher.observe(this.root);
    this.watchDensity();
  }

  // A window that moves to another screen keeps its size, but not its pixels.
  watchDensity() {
    this.screen = matchMedia(`(resolution: ${window.devicePixelRatio}dppx)`);
    this.onScreen = () => {
      this.watchDensity();
      this.width = 0;
      this.fit();
    };
    this.screen.addEventListener("change", this.onScreen, { once: true });
  }

  // New data, or a new theme.
  /** @param {Component<LineData>} component */
  update(component) {
    const { data } = component;
    this.data = data;
    this.words = data.words;
    this.theme = readTheme(this.root);
    this.root.style.setProperty("--vf-on-accent", this.theme.onAccent);
    this.model = readHeads(data);
    this.conversation.listen(component);
    this.selected = this.inRange(this.conversation.value || {});
    this.pointed = null;
    this.tokens = { query: data.query_tokens.map(visible), key: data.key_tokens.map(visible) };
    this.columns.show(this.tokens, { query: this.words.queries_label, key: this.words.keys_label }, this.model.first);
    this.panel.build(this.model, this.theme, this.words);
    this.showWords();
    this.width = 0;
    this.fit();
  }

  showWords() {
    const { words } = this;
    this.unpin.textContent = words.unpin;
    this.axes.textContent = words.axes;
    this.names.query.textContent = words.queries;
    this.names.key.textContent = words.keys;
    /** @type {(sign: string, label: string, by: number) => HTMLButtonElement} */
    const step = (sign, label, by) => signButton(sign, label, () => this.change({ layer: this.selected.layer + by }));
    const focused = focusedIn(this.steps)?.textContent;
    this.steps.replaceChildren(step("‹", words.previous, -1), step("›", words.next, 1));
    this.steps.hidden = this.model.layers < 2;
    for (const button of this.steps.querySelectorAll("button")) if (button.textContent === focused) button.focus();
  }

  // A selection that exists.
  /** @param {Partial<LineChoice>} wish @returns {Selected} */
  inRange(wish) {
    const { layers, heads, queries, keys } = this.model;
    const all = Array.from({ length: heads }, (_, head) => head);
    const known = all.filter((head) => (wish.heads || all).includes(head));
    const { pinned } = wish;
    const threshold = Number(wish.threshold);
    return {
      layer: within(wish.layer, layers),
      heads: known.length ? known : all,
      pinned: pinned ? { side: pinned.side, index: within(pinned.index, pinned.side === "query" ? queries : keys) } : null,
      threshold: threshold >= 0 && threshold <= 1 ? threshold : 0,
    };
  }

  /** @param {Partial<LineChoice>} part */
  change(part) {
    const before = JSON.stringify(this.selected);
    this.selected = this.inRange({ ...this.selected, ...part });
    if (JSON.stringify(this.selected) === before) return;
    const { layer, heads } = this.selected;
    this.conversation.tell(this.selected, offsetOf(this.model, layer, heads[0]) < 0 ? 0 : 150);
    this.show();
  }

  // Shows or hides a head; the last one stays. Alone: hides all others, or shows all again where it is alone already.
  /** @param {number} head @param {boolean} alone */
  toggle(head, alone) {
    const { heads } = this.selected;
    const others = heads.filter((one) => one !== head);
    if (alone) this.change({ heads: others.length || !heads.includes(head) ? [head] : null });
    else if (!heads.includes(head)) this.change({ heads: [...heads, head] });
    else if (others.length) this.change({ heads: others });
  }

  /** @param {Spot} spot */
  pin(spot) {
    const { pinned } = this.selected;
    this.change({ pinned: pinned && pinned.side === spot.side && pinned.index === spot.index ? null : spot });
  }

  /** @param {Spot | null} spot */
  point(spot) {
    const same = spot && this.pointed && spot.side === this.pointed.side && spot.index === this.pointed.index;
    if (same || (!spot && !this.pointed)) return;
    this.pointed = spot;
    this.drawOver();
    this.read();
  }

  // Everything that depends on the selection.
  show() {
    const { model, words, selected, data } = this;
    const { layer, heads, pinned, threshold } = selected;
    this.drawn = findLines(model, layer, heads, threshold);
    this.scene = { model, layer, heads, threshold, theme: this.theme, words, tokens: this.tokens };
    this.title.textContent = layerName(data, words.layer, layer);
    const [previous, next] = this.steps.querySelectorAll("button");
    previous.disabled = layer === 0;
    next.disabled = layer === model.layers - 1;
    this.panel.show(heads, threshold, this.drawn);
    this.unpin.hidden = pinned === null;
    Object.assign(this.root.dataset, { layer, heads: heads.join(" "), pinned: pinned ? `${pinned.side} ${pinned.index}` : "" });
    this.draw();
    this.read();
  }

  // The token whose lines are shown, and the one on the other side that is pointed at.
  focusOf() {
    const { pointed, selected: { pinned } } = this;
    if (pinned && pointed && pointed.side !== pinned.side) return { spot: pinned, partner: pointed.index };
    return { spot: pointed || pinned, partner: null };
  }

  draw() {
    if (!this.layout) return;
    const { scroll, stays } = this.layout;
    for (const side of SIDES) scroll[side] = stays[side] ? 0 : this.scroller.scrollTop;
    const context = this.clear(this.base, this.layout);
    if (this.drawn) drawLines(context, this.layout, this.model, this.drawn, this.selected.heads, this.theme);
    this.drawOver();
  }

  drawOver() {
    if (!this.layout) return;
    const context = this.clear(this.over, this.layout);
    const { spot, partner } = this.focusOf();
    this.columns.mark(this.selected.pinned, this.pointed);
    this.base.classList.toggle("vf-receding", spot !== null);
    if (spot && this.drawn) drawTokenLines(context, this.layout, this.scene, spot, partner);
  }

  /** @param {HTMLCanvasElement} canvas @param {LineLayout} layout */
  clear(canvas, layout) {
    const context = context2d(canvas);
    context.setTransform(this.density, 0, 0, this.density, 0, 0);
    context.clearRect(0, 0, layout.width, layout.height);
    return context;
  }

  read() {
    const { text, query, key, value } = this.description();
    this.readout.textContent = text;
    Object.assign(this.readout.dataset, { query: query ?? "", key: key ?? "", value: value ?? "" });
  }

  /** @returns {Description} */
  description() {
    const { words, data } = this;
    if (!this.drawn) {
      return { text: data.static ? fill(words.not_in_file, { layer: layerName(data, words.layer, this.model.chosen[0]) }) : words.loading };
    }
    const { spot, partner } = this.focusOf();
    if (!spot) return { text: words.hint };
    if (partner === null) return describeToken(this.scene, spot);
    const { query, key } = pairOf(this.model, spot, partner);
    return describePair(this.scene, query, key);
  }

  // Lays everything out for the width there is.
  fit() {
    const width = Math.floor(this.root.clientWidth);
    if (!this.data || width === 0 || width === this.width) return;
    this.width = width;
    const wide = width >= 720;
    this.root.classList.toggle("vf-wide", wide);
    this.root.classList.toggle("vf-roomy", width >= 560);
    this.density = window.devicePixelRatio || 1;
    const room = Math.floor(this.detail.clientWidth);
    const layout = layoutLines(this.model, this.labelWidths(), room, this.stageHeight());
    this.layout = layout;
    const { row, font, left, right, height, stays } = layout;
    for (const [name, value] of Object.entries({ row, font, left, right, between: layout.width, height })) {
      this.root.style.setProperty(`--vf-${name}`, `${value}px`);
    }
    for (const side of SIDES) this.columns.hosts[side].classList.toggle("vf-stays", stays[side]);
    for (const canvas of [this.base, this.over]) {
      canvas.width = Math.round(layout.width * this.density);
      canvas.height = Math.round(height * this.density);
    }
    this.panel.showSamples(this.theme, row);
    this.show();
  }

  // Widths of the longest labels in px at a font size of 1px.
  labelWidths() {
    const context = context2d(this.base);
    context.font = `600 100px ${this.theme.font}`;
    const longest = (/** @type {string[]} */ tokens) => tokens.reduce((most, token) => Math.max(most, context.measureText(token).width / 100), 0);
    return { query: longest(this.tokens.query), key: longest(this.tokens.key) };
  }

  // Room for the picture in px: what the page says, else most of the window.
  stageHeight() {
    if (this.data.height) return Math.max(200, this.data.height - 170);  // title, sentence and names take the rest
    return Math.max(420, Math.min(760, window.innerHeight * 0.72));
  }

  close() {
    this.watcher.disconnect();
    this.screen.removeEventListener("change", this.onScreen);
    this.root.remove();
  }
}

/** @param {Component<LineData>} component */
export default function lines(component) {
  return present(LineView, component);
}
