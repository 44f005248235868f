// @ts-check
// The generation player: the text as it grows, what each token was chosen from, and the attention row it came with.
// Everything is here from the start and played in the browser; Python hears where someone stops, and what is changed.

import { Candidates } from "./js/candidates.js";
import { readTheme } from "./js/colours.js";
import { Conversation } from "./js/conversation.js";
import { element } from "./js/dom.js";
import { GeneratedText } from "./js/generated_text.js";
import { readNamed, readKind, stepAt } from "./js/generation_data.js";
import { GrowingMap } from "./js/growing_map.js";
import { offsetOf } from "./js/heads.js";
import { within } from "./js/numbers.js";
import { PlayControls } from "./js/play_controls.js";
import { present } from "./js/present.js";
import { fill, visible } from "./js/text.js";

/** @import { Component, Generation, HeadModel, PlayerChoice, DecoderKind, Words } from "./js/types.d.ts" */

class Player {
  /** @type {Generation} */ data;
  /** @type {Words} */ words;
  /** @type {{ before: Float32Array, after: Float32Array, cut: Uint8Array }} */ columns;
  /** @type {Record<DecoderKind, HeadModel>} */ models;
  /** @type {string[]} */ tokens;
  /** @type {PlayerChoice} */ selected;
  width = 0;

  /** @param {HTMLElement} parent */
  constructor(parent) {
    /** @type {Conversation<PlayerChoice>} */ this.conversation = new Conversation();
    this.root = element("section", "vf-player");
    this.controls = new PlayControls({
      go: (step, playing) => this.change({ step }, !playing),
      stopped: () => this.conversation.tell(this.selected),
    });
    this.text = new GeneratedText((step) => this.controls.go(step));
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
    this.map = new GrowingMap({ change: (part) => this.change(part), go: (step) => this.controls.go(step) });
    this.parts.append(this.left, this.map.host);
    this.root.append(this.controls.host, this.text.host, this.branches, this.parts);
    parent.append(this.root);
    this.candidates = new Candidates(list, (id) => this.takeInstead(id));
    this.watcher = new ResizeObserver(() => this.fit());
    this.watcher.observe(this.root);
  }

  /** @param {Component<Generation>} component */
  update(component) {
    const { data } = component;
    const before = this.data;
    this.data = data;
    this.words = data.words;
    const theme = readTheme(this.root);
    this.root.style.setProperty("--vf-on-accent", theme.onAccent);
    this.columns = {
      before: readNamed(data, "before") ?? new Float32Array(),
      after: readNamed(data, "after") ?? new Float32Array(),
      cut: readNamed(data, "cut") ?? new Uint8Array(),
    };
    const kinds = /** @type {DecoderKind[]} */ (Object.keys(data.kinds));
    const models = Object.fromEntries(kinds.map((kind) => [kind, readKind(data, kind)]));
    this.models = /** @type {Record<DecoderKind, HeadModel>} */ (models);
    const told = this.conversation.listen(component);
    const other = before && before.made !== data.made;
    if (told || other) this.controls.pause();
    this.selected = this.inRange(told || !this.selected ? this.conversation.value || {} : this.selected);
    this.tokens = data.tokens.map(({ text }) => visible(text));
    this.controls.build(this.words, this.last);
    this.text.build(data, this.tokens);
    this.text.host.append(this.ending);
    this.map.build(data, this.models, this.tokens, theme, this.selected);
    this.leftTitle.textContent = this.words.choice_title;
    this.showKey();
    this.width = 0;
    this.fit();
  }

  get last() {
    return this.data.steps.ids.length - 1;
  }

  /** @param {Partial<PlayerChoice>} wish @returns {PlayerChoice} */
  inRange(wish) {
    const kinds = /** @type {DecoderKind[]} */ (Object.keys(this.data.kinds));
    const kind = wish.kind && kinds.includes(wish.kind) ? wish.kind : kinds[kinds.length - 1];
    const { layers, heads } = this.models[kind];
    return {
      step: within(wish.step, this.last + 1), kind, layer: within(wish.layer, layers), head: within(wish.head, heads),
      branch: wish.branch ?? this.data.branch,
    };
  }

  /** @param {Partial<PlayerChoice>} part @param {boolean} [report] */
  change(part, report = true) {
    this.selected = this.inRange({ ...this.selected, ...part });
    const missing = offsetOf(this.models[this.selected.kind], this.selected.layer, this.selected.head) < 0;
    if (report || missing) this.conversation.tell(this.selected, missing ? 0 : 150);
    this.show();
  }

  // --- other branches ---------------------------------------------------------------------------------------------

  /** @param {number} id */
  takeInstead(id) {
    this.controls.stop();
    const { step } = this.selected;
    this.change({ branch: branchOf([...this.data.taken.filter((one) => one.step < step), { step, id }]) });
  }

  /** @param {boolean} all */
  undo(all) {
    this.controls.stop();
    const { taken } = this.data;
    const kept = all ? [] : taken.slice(0, -1);
    this.change({ step: taken[kept.length].step, branch: branchOf(kept) });
  }

  // Whether the text of another branch is being written.
  get waiting() {
    return this.selected.branch !== this.data.branch && !this.data.static;
  }

  // --- showing ----------------------------------------------------------------------------------------------------

  showKey() {
    const entries = { before: this.words.key_before, after: this.words.key_after, "cut-sample": this.words.key_cut };
    this.legend.replaceChildren(...Object.entries(entries).map(([name, text]) => {
      const entry = element("span");
      entry.append(element("i", `vf-${name}`), element("span", "", text));
      return entry;
    }));
  }

  show() {
    const { step, kind, layer, head } = this.selected;
    this.controls.show(step, this.tokens[this.data.start + step]);
    this.text.show(step);
    this.ending.textContent = step === this.last ? this.words[`end_${this.data.end}`] : "";
    this.showChoice();
    this.showBranches();
    this.map.show(this.selected);
    Object.assign(this.root.dataset, { step, kind, layer, head, branch: this.data.branch });
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
    const button = (/** @type {string} */ text, /** @type {boolean} */ all) => {
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

  fit() {
    const width = Math.floor(this.root.clientWidth);
    if (!this.data || width === 0 || width === this.width) return;
    this.width = width;
    const wide = width >= 820;
    const left = Math.round(width * 0.45);
    this.parts.classList.toggle("vf-wide", wide);
    this.left.style.width = wide ? `${left}px` : "100%";
    this.map.fit(wide ? width - left - 28 : width);
    this.show();
  }

  close() {
    this.controls.pause();
    this.watcher.disconnect();
    this.root.remove();
  }
}

// What Python reads as the tokens taken by hand: "3:17,8:254".
/** @param {{ step: number, id: number }[]} taken */
function branchOf(taken) {
  return taken.map(({ step, id }) => `${step}:${id}`).join(",");
}

/** @param {Component<Generation>} component */
export default function player(component) {
  return present(Player, component);
}
