// @ts-check
// The line view: queries on the left, keys on the right, a line for each weight, in the colours of the heads.
// The lines of all tokens lie on one canvas; what follows the pointer is drawn on a second one over it.

import { HeadChips, lineSample } from "./js/chips.js";
import { readTheme } from "./js/colours.js";
import { TokenColumns } from "./js/columns.js";
import { Conversation, present } from "./js/conversation.js";
import { describePair, describeToken } from "./js/describe.js";
import { element, signButton } from "./js/dom.js";
import { layerName, offsetOf, readHeads } from "./js/heads.js";
import { drawLines, findLines } from "./js/line_layer.js";
import { layoutLines } from "./js/line_layout.js";
import { within } from "./js/numbers.js";
import { fill, visible } from "./js/text.js";
import { drawTokenLines, pairOf } from "./js/token_lines.js";

class LineView {
  constructor(parent) {
    this.conversation = new Conversation();
    this.root = element("section", "vf-lines vf-parts");

    this.panel = element("div", "vf-panel");
    this.headsTitle = element("div", "vf-caption");
    this.chips = new HeadChips(element("div", "vf-heads"), (head, alone) => this.toggle(head, alone));
    this.allHeads = element("button", "vf-link");
    this.allHeads.type = "button";
    this.allHeads.onclick = () => this.change({ heads: null });
    this.slider = element("input");
    Object.assign(this.slider, { type: "range", min: 0, max: 100, step: 1 });
    this.slider.oninput = () => this.change({ threshold: Math.round(this.slider.value ** 2) / 10000 });
    this.sliderName = element("span");
    this.sliderValue = element("span", "vf-number");
    const label = element("label", "vf-threshold");
    label.append(this.sliderName, this.sliderValue, this.slider);
    this.count = element("p", "vf-count");
    this.count.setAttribute("aria-live", "polite");
    this.samples = element("div", "vf-samples");
    this.panel.append(this.headsTitle, this.chips.host, this.allHeads, label, this.count, this.samples);

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
    this.root.append(this.panel, this.detail);
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
    this.columns.show(this.tokens, { query: this.words.queries_label, key: this.words.keys_label });
    this.chips.show(this.model.heads, this.theme, this.words);
    this.showWords();
    this.width = 0;
    this.fit();
  }

  showWords() {
    const { words } = this;
    this.headsTitle.textContent = words.heads;
    this.allHeads.textContent = words.all_heads;
    this.sliderName.textContent = words.threshold;
    this.unpin.textContent = words.unpin;
    this.axes.textContent = words.axes;
    this.names.query.textContent = words.queries;
    this.names.key.textContent = words.keys;
    const step = (sign, label, by) => signButton(sign, label, () => this.change({ layer: this.selected.layer + by }));
    const focused = [...this.steps.children].findIndex((button) => button.matches(":focus"));
    this.steps.replaceChildren(step("‹", words.previous, -1), step("›", words.next, 1));
    this.steps.hidden = this.model.layers < 2;
    if (focused >= 0) this.steps.children[focused].focus();
  }

  showSamples() {
    const samples = [0.05, 0.25, 1].map((weight) => {
      const sample = element("span", "vf-sample");
      sample.append(lineSample(this.theme, null, weight, this.layout.row), element("span", "", String(weight)));
      return sample;
    });
    this.samples.replaceChildren(element("span", "vf-caption", this.words.weight), ...samples);
  }

  // A selection that exists.
  inRange(wish) {
    const { layers, heads, queries, keys } = this.model;
    const all = Array.from({ length: heads }, (_, head) => head);
    const known = all.filter((head) => (wish.heads || all).includes(head));
    const { side, index } = wish.pinned || {};
    const threshold = Number(wish.threshold);
    return {
      layer: within(wish.layer, layers),
      heads: known.length ? known : all,
      pinned: side === "query" || side === "key" ? { side, index: within(index, side === "query" ? queries : keys) } : null,
      threshold: threshold >= 0 && threshold <= 1 ? threshold : 0,
    };
  }

  change(part) {
    const before = JSON.stringify(this.selected);
    this.selected = this.inRange({ ...this.selected, ...part });
    if (JSON.stringify(this.selected) === before) return;
    const { layer, heads } = this.selected;
    this.conversation.tell(this.selected, offsetOf(this.model, layer, heads[0]) < 0 ? 0 : 150);
    this.show();
  }

  // Shows or hides a head; the last one stays. Alone: hides all others, or shows all again where it is alone already.
  toggle(head, alone) {
    const { heads } = this.selected;
    const others = heads.filter((one) => one !== head);
    if (alone) this.change({ heads: others.length || !heads.includes(head) ? [head] : null });
    else if (!heads.includes(head)) this.change({ heads: [...heads, head] });
    else if (others.length) this.change({ heads: others });
  }

  pin(spot) {
    const { pinned } = this.selected;
    this.change({ pinned: pinned && pinned.side === spot.side && pinned.index === spot.index ? null : spot });
  }

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
    const [previous, next] = this.steps.children;
    previous.disabled = layer === 0;
    next.disabled = layer === model.layers - 1;
    this.chips.mark(heads);
    this.allHeads.disabled = heads.length === model.heads;
    this.unpin.hidden = pinned === null;
    this.slider.value = Math.round(100 * Math.sqrt(threshold));
    this.sliderValue.textContent = String(threshold);
    this.slider.setAttribute("aria-valuetext", String(threshold));
    this.count.textContent = this.drawn ? this.countSentence() : "";
    Object.assign(this.root.dataset, { layer, heads: heads.join(" "), pinned: pinned ? `${pinned.side} ${pinned.index}` : "" });
    this.draw();
    this.read();
  }

  countSentence() {
    const { shown, total, from, cut, largest } = this.drawn;
    const sentence = cut ? this.words.count_cut : largest ? this.words.count_none : this.words.count;
    return fill(sentence, { shown, total, threshold: from.toFixed(4), largest: largest.toFixed(4) });
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
    for (const side of ["query", "key"]) scroll[side] = stays[side] ? 0 : this.scroller.scrollTop;
    const context = this.clear(this.base);
    if (this.drawn) drawLines(context, this.layout, this.model, this.drawn, this.selected.heads, this.theme);
    this.drawOver();
  }

  drawOver() {
    if (!this.layout) return;
    const context = this.clear(this.over);
    const { spot, partner } = this.focusOf();
    this.columns.mark(this.selected.pinned, this.pointed);
    this.base.classList.toggle("vf-receding", spot !== null);
    if (spot && this.drawn) drawTokenLines(context, this.layout, this.scene, spot, partner);
  }

  clear(canvas) {
    const context = canvas.getContext("2d");
    context.setTransform(this.density, 0, 0, this.density, 0, 0);
    context.clearRect(0, 0, this.layout.width, this.layout.height);
    return context;
  }

  read() {
    const { text, query, key, value } = this.description();
    this.readout.textContent = text;
    Object.assign(this.readout.dataset, { query: query ?? "", key: key ?? "", value: value ?? "" });
  }

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
    this.layout = layoutLines(this.model, this.labelWidths(), room, this.stageHeight());
    const { row, font, left, right, height, stays } = this.layout;
    for (const [name, value] of Object.entries({ row, font, left, right, between: this.layout.width, height })) {
      this.root.style.setProperty(`--vf-${name}`, `${value}px`);
    }
    for (const side of ["query", "key"]) this.columns.hosts[side].classList.toggle("vf-stays", stays[side]);
    for (const canvas of [this.base, this.over]) {
      canvas.width = Math.round(this.layout.width * this.density);
      canvas.height = Math.round(height * this.density);
    }
    this.showSamples();
    this.show();
  }

  // Widths of the longest labels in px at a font size of 1px.
  labelWidths() {
    const context = this.base.getContext("2d");
    context.font = `600 100px ${this.theme.font}`;
    const longest = (tokens) => tokens.reduce((most, token) => Math.max(most, context.measureText(token).width / 100), 0);
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

export default function lines(component) {
  return present(LineView, component);
}
