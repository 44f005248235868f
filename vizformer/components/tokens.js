// @ts-check
// The token strip: a row of tokens, one of which can be chosen, and a line that says more about one of them.

import { Conversation } from "./js/conversation.js";
import { buttonOf, element, focusedIn, isShortcut } from "./js/dom.js";
import { present } from "./js/present.js";
import { fill, visible } from "./js/text.js";

const FIRST = 256;  // tokens whose chips are made at once; the others when the strip comes into sight
const TURN = 12;  // ms of making chips between two looks at what people do
const NEAR = "300px";  // of the window, from where on the strip counts as in sight

/** @import { Component, Sent } from "./js/types.d.ts" */
/** @typedef {{ text: string, hover: string, special: boolean, value: number | null }} Token */
/** @typedef {Sent<{ index: number }> & { tokens: Token[], label: string }} TokensData */

class TokenStrip {
  /** @type {TokensData} */ data;
  /** @type {number | null} */ selected;
  /** @type {number | undefined} */ timer;
  most = 0;  // the largest value

  /** @param {HTMLElement} parent */
  constructor(parent) {
    /** @type {Conversation<{ index: number }>} */ this.conversation = new Conversation();
    this.root = element("section", "vf-tokens");
    this.caption = element("div", "vf-caption");
    this.list = element("div", "vf-chips");
    this.list.setAttribute("role", "listbox");
    this.list.setAttribute("aria-orientation", "horizontal");
    this.note = element("div", "vf-note");
    this.root.append(this.caption, this.list, this.note);
    parent.append(this.root);
    this.list.addEventListener("click", (event) => {
      const chip = buttonOf(event);
      if (chip) this.choose(Number(chip.dataset.index));
    });
    this.list.addEventListener("pointerover", (event) => this.describe(buttonOf(event)));
    this.list.addEventListener("pointerleave", () => this.describe(null));
    this.list.addEventListener("focusin", (event) => this.describe(buttonOf(event)));
    this.list.addEventListener("focusout", () => this.describe(null));
    this.list.addEventListener("keydown", (event) => this.walk(event));
    this.watcher = new IntersectionObserver((seen) => {
      if (seen.some((one) => one.isIntersecting)) this.makeInTurns();
    }, { rootMargin: NEAR });
  }

  /** @param {Component<TokensData>} component */
  update(component) {
    const { data } = component;
    const focused = focusedIn(this.list);
    const made = data.tokens.length === this.data?.tokens.length ? this.list.childElementCount : 0;  // which may be scrolled
    this.data = data;
    this.conversation.listen(component);
    const wish = this.conversation.value ? this.conversation.value.index : null;
    this.selected = wish !== null && wish in data.tokens ? wish : null;
    this.caption.textContent = data.label;
    this.caption.hidden = !data.label;
    this.list.setAttribute("aria-label", data.label || data.words.strip_label);
    this.most = data.tokens.reduce((most, { value }) => Math.max(most, Math.abs(value ?? 0)), 0);
    clearTimeout(this.timer);
    this.watcher.disconnect();
    this.list.replaceChildren();
    this.make(Math.max(FIRST, made));
    this.watcher.observe(this.list);
    this.showSelected();
    if (focused && data.tokens.length) this.focus(Number(focused.dataset.index));
    this.describe(null);
  }

  // Makes chips until there are `count`, or until a moment in ms.
  /** @param {number} count @param {number} [end] */
  make(count, end = Infinity) {
    const all = this.data.tokens;
    const made = [];
    for (let index = this.list.childElementCount; index < Math.min(count, all.length); index++) {
      made.push(this.chip(all[index], index));
      if (performance.now() > end) break;
    }
    this.list.append(...made);
  }

  // Makes the chips of a long text that are still missing.
  makeInTurns() {
    clearTimeout(this.timer);
    this.watcher.disconnect();
    this.make(Infinity, performance.now() + TURN);
    if (this.list.childElementCount < this.data.tokens.length) this.timer = setTimeout(() => this.makeInTurns(), 0);
    else this.showSelected();
  }

  /** @param {Token} token @param {number} index */
  chip(token, index) {
    const chip = element("button", token.special ? "vf-chip vf-special" : "vf-chip");
    chip.type = "button";
    chip.dataset.index = String(index);
    chip.setAttribute("role", "option");
    const text = element("bdi", "vf-piece", visible(token.text));
    chip.append(text, element("span", "vf-index", String(index)));
    if (typeof token.value === "number") {
      const bar = element("span", "vf-value");
      const level = element("span");
      // shares of one are shown as such, anything larger against the largest of the row
      level.style.width = `${(100 * Math.abs(token.value)) / Math.max(this.most, 1)}%`;
      bar.append(level);
      chip.append(bar);
    }
    const extra = token.special ? `, ${this.data.words.special}` : "";
    // All that is on the screen of it: the line below is for those who point.
    chip.setAttribute("aria-label", [`${index}: ${token.text}${extra}`, token.hover].filter(Boolean).join(" · "));
    chip.setAttribute("aria-selected", "false");
    chip.tabIndex = -1;
    return chip;
  }

  // The Tab key reaches the chosen chip; the first one where none is chosen, or its chip is not made yet.
  showSelected() {
    const chips = this.list.querySelectorAll("button");
    const entry = this.selected !== null && this.selected < chips.length ? this.selected : 0;
    chips.forEach((chip, index) => {
      chip.setAttribute("aria-selected", String(index === this.selected));
      chip.tabIndex = index === entry ? 0 : -1;
    });
    this.root.dataset.selected = String(this.selected ?? "");
  }

  /** @param {number} index */
  choose(index) {
    this.selected = index;
    this.showSelected();
    this.conversation.tell({ index });
  }

  // The line below: about the token pointed at or focused, else about the chosen one.
  /** @param {HTMLButtonElement | null} chip */
  describe(chip) {
    const index = chip ? Number(chip.dataset.index) : this.selected;
    const token = index === null ? null : this.data.tokens[index];
    this.note.textContent = token ? fill(this.data.words.note, { index, text: token.text, hover: token.hover }) : "";
  }

  /** @param {KeyboardEvent} event */
  walk(event) {
    const chip = buttonOf(event);
    /** @type {Record<string, number>} */
    const steps = { ArrowLeft: -1, ArrowRight: 1, Home: -1e6, End: 1e6, ArrowUp: -1, ArrowDown: 1 };
    if (!chip || !(event.key in steps) || isShortcut(event)) return;
    event.preventDefault();
    this.focus(Number(chip.dataset.index) + steps[event.key]);
  }

  /** @param {number} index */
  focus(index) {
    this.make(Infinity);
    const chips = this.list.querySelectorAll("button");
    chips[Math.max(0, Math.min(chips.length - 1, index))].focus();
  }

  close() {
    clearTimeout(this.timer);
    this.watcher.disconnect();
    this.root.remove();
  }
}

/** @param {Component<TokensData>} component */
export default function tokens(component) {
  return present(TokenStrip, component);
}
