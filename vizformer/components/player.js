// @ts-check
// The generation player: the text as it grows, what each token was chosen from, and the attention row it came with.
// Everything is here from the start and played in the browser; Python hears where someone stops, and what is changed.

import { Candidates } from "./js/candidates.js";
import { readTheme } from "./js/colours.js";
import { Conversation, present } from "./js/conversation.js";
import { element, signButton } from "./js/dom.js";
import { FUTURE, headsUntil, paintHeadUntil, readSite, stepAt } from "./js/generation_data.js";
import { cellAt, offsetOf, reasonName, strongestKey } from "./js/heads.js";
import { HeatMap } from "./js/map.js";
import { readColumn, within } from "./js/numbers.js";
import { fill, visible } from "./js/text.js";

const PACES = [1400, 700, 250];  // ms a token: slow, usual, fast

class Player {
  constructor(parent) {
    this.conversation = new Conversation();
    this.timer = null;
    this.pace = 1;
    this.root = element("section", "vf-player");
    this.controls = element("div", "vf-bar vf-controls");
    this.slider = element("input");
    this.slider.type = "range";
    this.slider.min = 0;
    this.slider.oninput = () => { this.stop(); this.go(Number(this.slider.value)); };
    this.place = element("span", "vf-place");
    this.text = element("div", "vf-written");
    this.text.setAttribute("role", "group");
    this.text.addEventListener("click", (event) => {
      const token = event.target.closest("button");
      if (token) { this.stop(); this.go(Number(token.dataset.step)); }
    });
    this.ending = element("p", "vf-ending");
    this.ending.setAttribute("role", "status");
    this.branches = element("div", "vf-bar vf-branches");
    this.parts = element("div", "vf-parts");
    this.left = element("div", "vf-choice");
    this.leftTitle = element("div", "vf-title");
    this.leftCaption = element("div", "vf-caption");
    this.legend = element("div", "vf-key");
    const list = element("div");
    this.left.append(this.leftTitle, this.leftCaption, this.legend, list);
    this.detail = element("div", "vf-detail");
    this.detailTitle = element("div", "vf-title");
    this.choosers = element("div", "vf-bar vf-choosers");
    this.axes = element("div", "vf-caption");
    this.stage = element("div", "vf-stage");
    this.readout = element("p", "vf-readout");
    this.detail.append(this.detailTitle, this.choosers, this.axes, this.stage, this.readout);
    this.parts.append(this.left, this.detail);
    this.root.append(this.controls, this.text, this.ending, this.branches, this.parts);
    parent.append(this.root);
    this.candidates = new Candidates(list, (id) => this.takeInstead(id));
    this.map = new HeatMap(this.stage, {
      point: () => this.read(),
      choose: (query) => { this.stop(); this.go(query + 1 - this.data.start); },
      zoomed: () => {},
    });
    this.watcher = new ResizeObserver(() => this.fit());
    this.watcher.observe(this.root);
  }

  update(component) {
    const { data } = component;
    const before = this.data;
    this.data = data;
    this.words = data.words;
    this.theme = readTheme(this.root);
    this.root.style.setProperty("--vf-on-accent", this.theme.onAccent);
    this.columns = Object.fromEntries(["before", "after", "cut"].map((name) => [name, readColumn(data[name], data.types?.[name])]));
    this.models = Object.fromEntries(Object.keys(data.sites).map((site) => [site, readSite(data, site)]));
    const told = this.conversation.listen(component);
    const other = before && (before.made !== data.made);
    if (told || other) this.pause();
    this.selected = this.inRange(told || !this.selected ? this.conversation.value || {} : this.selected);
    this.tokens = data.tokens.map(({ text }) => visible(text));
    this.buildControls();
    this.buildText();
    this.buildChoosers();
    this.leftTitle.textContent = this.words.choice_title;
    this.showKey();
    this.detailTitle.textContent = this.words.map_title;
    this.width = 0;
    this.fit();
  }

  get last() {
    return this.data.steps.ids.length - 1;
  }

  inRange(wish) {
    const sites = Object.keys(this.data.sites);
    const site = sites.includes(wish.site) ? wish.site : sites.at(-1);
    const { layers, heads } = this.models[site];
    return {
      step: within(wish.step, this.last + 1), site, layer: within(wish.layer, layers), head: within(wish.head, heads),
      branch: wish.branch ?? this.data.branch,
    };
  }

  // --- moving -----------------------------------------------------------------------------------------------------

  go(step, report = true) {
    this.change({ step }, report);
  }

  change(part, report = true) {
    this.selected = this.inRange({ ...this.selected, ...part });
    const missing = offsetOf(this.models[this.selected.site], this.selected.layer, this.selected.head) < 0;
    if (report || missing) this.conversation.tell(this.selected, missing ? 0 : 150);
    this.show();
  }

  play() {
    if (this.selected.step === this.last) this.go(0, false);
    this.playing = true;
    this.showControls();
    const tick = () => {
      this.timer = setTimeout(() => {
        if (this.selected.step < this.last) this.go(this.selected.step + 1, false);
        if (this.selected.step < this.last) tick();
        else this.stop();
      }, PACES[this.pace]);
    };
    tick();
  }

  pause() {
    clearTimeout(this.timer);
    this.playing = false;
  }

  // Ends the play where it is, and lets the page know.
  stop() {
    if (!this.playing) return;
    this.pause();
    this.showControls();
    this.conversation.tell(this.selected);
  }

  takeInstead(id) {
    this.stop();
    const { step } = this.selected;
    const earlier = this.data.taken.filter((one) => one.step < step).map((one) => `${one.step}:${one.id}`);
    this.change({ branch: [...earlier, `${step}:${id}`].join(",") });
  }

  undo(all) {
    this.stop();
    const kept = all ? [] : this.data.taken.slice(0, -1);
    const { step } = this.data.taken.at(all ? 0 : -1);
    this.change({ step, branch: kept.map((one) => `${one.step}:${one.id}`).join(",") });
  }

  // --- building ---------------------------------------------------------------------------------------------------

  buildControls() {
    const { words } = this;
    const name = this.root.getRootNode().activeElement?.dataset?.name;
    const button = (sign, label, action, id) => {
      const made = signButton(sign, label, () => { this.stop(); action(); });
      made.dataset.name = id;
      return made;
    };
    this.playButton = element("button", "vf-play");
    this.playButton.type = "button";
    this.playButton.dataset.name = "play";
    this.playButton.onclick = () => (this.playing ? this.stop() : this.play());
    const group = element("div", "vf-group vf-signs");
    group.append(
      button("«", words.first, () => this.go(0), "first"),
      button("‹", words.previous, () => this.go(this.selected.step - 1), "previous"),
      this.playButton,
      button("›", words.next, () => this.go(this.selected.step + 1), "next"),
      button("»", words.last, () => this.go(this.last), "last"),
    );
    const pace = element("select", "vf-select");
    pace.dataset.name = "pace";
    pace.setAttribute("aria-label", words.pace);
    pace.append(...["slow", "usual", "fast"].map((one, index) => this.option(index, words[`pace_${one}`], index === this.pace)));
    pace.onchange = () => { this.pace = Number(pace.value); };
    this.slider.max = this.last;
    this.slider.dataset.name = "slider";
    this.slider.setAttribute("aria-label", words.slider);
    this.controls.replaceChildren(group, this.slider, this.place, pace);
    if (name) this.controls.querySelector(`[data-name="${name}"]`)?.focus();
  }

  option(value, text, selected) {
    const made = element("option", "", text);
    made.value = value;
    made.selected = selected;
    return made;
  }

  buildText() {
    this.chips = this.data.tokens.map((token, index) => {
      const step = index - this.data.start;
      const chip = element(step < 0 ? "span" : "button", `vf-written-token${token.special ? " vf-special" : ""}${step < 0 ? " vf-given" : ""}`);
      chip.append(element("bdi", "", this.tokens[index]));
      if (step >= 0) {
        chip.type = "button";
        chip.dataset.step = step;
        chip.classList.toggle("vf-by-hand", this.data.steps.by_hand[step]);
        chip.title = fill(this.words.go_to, { number: step, token: this.tokens[index] });
      }
      return chip;
    });
    this.text.setAttribute("aria-label", this.words.text);
    this.text.replaceChildren(...this.chips);
  }

  buildChoosers() {
    const { words, data } = this;
    const chooser = (name, options, value) => {
      const box = element("label", "vf-caption", words[name]);
      const select = element("select", "vf-select");
      select.dataset.name = name;
      select.setAttribute("aria-label", words[name]);
      select.append(...options.map(([one, text]) => this.option(one, text, one === value)));
      select.onchange = () => this.change({ [name]: name === "site" ? select.value : Number(select.value) });
      box.append(select);
      return box;
    };
    const { layers, heads } = this.models[this.selected.site];
    const numbers = (count) => Array.from({ length: count }, (_, i) => [i, String(i)]);
    const sites = Object.keys(data.sites).map((site) => [site, words[`site_${site}`]]);
    this.choosers.replaceChildren(
      ...(sites.length > 1 ? [chooser("site", sites, this.selected.site)] : []),
      chooser("layer", numbers(layers), this.selected.layer),
      chooser("head", numbers(heads), this.selected.head),
    );
  }

  showKey() {
    const entries = [["before", this.words.key_before], ["after", this.words.key_after], ["cut-sample", this.words.key_cut]];
    this.legend.replaceChildren(...entries.map(([name, text]) => {
      const entry = element("span");
      entry.append(element("i", `vf-${name}`), element("span", "", text));
      return entry;
    }));
  }

  // --- showing ----------------------------------------------------------------------------------------------------

  show() {
    this.showControls();
    this.showText();
    this.showChoice();
    this.showBranches();
    this.showMap();
    Object.assign(this.root.dataset, { step: this.selected.step, site: this.selected.site, layer: this.selected.layer, head: this.selected.head, branch: this.data.branch });
  }

  // Whether the text of another branch is being written.
  get waiting() {
    return this.selected.branch !== this.data.branch && !this.data.static;
  }

  showControls() {
    const { words, selected: { step } } = this;
    this.playButton.textContent = this.playing ? words.pause : words.play;
    const token = this.tokens[this.data.start + step];
    this.slider.value = step;
    this.place.textContent = fill(words.place, { number: step, last: this.last });
    this.slider.setAttribute("aria-valuetext", fill(words.go_to, { number: step, token }));
    for (const [name, off] of [["first", step === 0], ["previous", step === 0], ["next", step === this.last], ["last", step === this.last]]) {
      this.controls.querySelector(`[data-name="${name}"]`).disabled = off;
    }
  }

  showText() {
    const { step } = this.selected;
    this.chips.forEach((chip, index) => {
      const own = index - this.data.start;
      chip.classList.toggle("vf-ahead", own > step);
      chip.classList.toggle("vf-new", own === step);
      if (own === step) chip.setAttribute("aria-current", "step");
      else chip.removeAttribute("aria-current");
    });
    const chip = this.chips[this.data.start + step];
    const room = this.text;
    if (chip.offsetTop + chip.offsetHeight > room.scrollTop + room.clientHeight || chip.offsetTop < room.scrollTop) room.scrollTop = chip.offsetTop - 40;
    this.ending.textContent = step === this.last ? this.words[`end_${this.data.end}`] : "";
  }

  showChoice() {
    const { words, selected: { step }, data } = this;
    const one = stepAt(data, this.columns, step);
    const sentence = one.kept === 1 ? words.choice_caption_one : words.choice_caption;
    const values = { number: step, length: data.start + step, kept: one.kept.toLocaleString(), all: data.vocab_size.toLocaleString() };
    this.leftCaption.textContent = fill(sentence, values);
    this.candidates.show(one, words, this.waiting);
  }

  showBranches() {
    const { words, data } = this;
    this.branches.hidden = !data.taken.length && !this.waiting;
    if (this.waiting) {
      this.branches.replaceChildren(element("span", "", words.writing));
      return;
    }
    const button = (text, all) => {
      const made = element("button", "vf-small", text);
      made.type = "button";
      made.onclick = () => this.undo(all);
      return made;
    };
    const list = data.taken.map(({ step }) => fill(words.taken, { number: step, token: this.tokens[data.start + step] }));
    this.branches.replaceChildren(
      element("span", "", fill(words.branch, { list: list.join(words.joiner) })),
      button(words.undo, false), ...(data.taken.length > 1 ? [button(words.undo_all, true)] : []),
    );
  }

  // The labels of rows and columns that are there.
  labels(rows) {
    const { data, selected: { site } } = this;
    const cut = (tokens) => tokens.map((token, index) => (index < rows ? token : ""));
    const queries = this.tokens.slice(0, data.start + this.last);
    const keys = site === "cross" ? data.source.map(visible) : queries;
    return { all: [queries, keys], now: [cut(queries), site === "cross" ? keys : cut(keys)] };
  }

  scene(model, tokens, layer, head, query) {
    const image = paintHeadUntil(model, layer, head, this.theme);
    return {
      model, theme: this.theme, image, blurred: null, view: "weights", range: 1, layer, head,
      selected: { query, key: null }, queryTokens: tokens[0], keyTokens: tokens[1],
    };
  }

  showMap() {
    const { site, layer, head, step } = this.selected;
    const rows = this.data.start + step;
    const labels = this.labels(rows);
    const model = headsUntil(this.models[site], rows);
    if (!this.mapWidth) return;
    const layoutKey = [site, this.data.made, this.mapWidth].join(" ");
    if (layoutKey !== this.layoutKey) {  // the room is planned for the whole map, so that the cells stay where they are
      this.layoutKey = layoutKey;
      this.map.show(this.scene(model, labels.all, layer, head, rows - 1));
      this.map.resize(this.mapWidth, Math.max(220, Math.min(560, window.innerHeight * 0.62)));
    }
    this.map.show(this.scene(model, labels.now, layer, head, rows - 1));
    const held = offsetOf(model, layer, head) >= 0;
    this.map.draw();
    this.axes.textContent = site === "cross" ? this.words.axes_cross : this.words.axes_decoder;
    this.map.over.setAttribute("aria-label", fill(this.words.map_label, { layer, head }));
    for (const select of this.choosers.querySelectorAll("select")) select.value = this.selected[select.dataset.name];
    this.shown = { model, labels: labels.all, held };
    this.read();
  }

  // About the cell pointed at, else about the newest row.
  read() {
    if (!this.shown) return;
    const { words, shown: { model, labels: [queries, keys], held } } = this;
    const { layer, head, step } = this.selected;
    const rows = this.data.start + step;
    const spot = this.map.cursor || { query: rows - 1, key: null };
    let text = words.loading;
    if (held && spot.query >= rows) text = words.not_yet;
    else if (held) {
      const key = spot.key ?? strongestKey(model, layer, head, spot.query);
      const { reason, weight } = cellAt(model, layer, head, spot.query, key);
      const values = { query: spot.query, query_token: queries[spot.query], key, key_token: keys[key], value: weight.toFixed(4), token: this.tokens[spot.query + 1], reason: reasonName(words, reason) };
      if (reason) text = fill(reason === FUTURE ? words.cell_masked : words.cell_blocked, values);
      else text = fill(spot.key === null ? words.newest_row : words.cell_weight, values);
    }
    this.readout.textContent = text;
  }

  fit() {
    const width = Math.floor(this.root.clientWidth);
    if (!this.data || width === 0 || width === this.width) return;
    this.width = width;
    const wide = width >= 820;
    this.parts.classList.toggle("vf-wide", wide);
    this.left.style.width = wide ? `${Math.round(width * 0.45)}px` : "100%";
    this.mapWidth = wide ? width - Math.round(width * 0.45) - 28 : width;
    this.layoutKey = null;
    this.show();
  }

  close() {
    this.pause();
    this.watcher.disconnect();
    this.root.remove();
  }
}

export default function player(component) {
  return present(Player, component);
}
