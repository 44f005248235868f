// @ts-check
// The token strip: a row of tokens, one of which can be chosen, and a line that says more about one of them.

import { Conversation, present } from "./js/conversation.js";
import { element } from "./js/dom.js";
import { fill, visible } from "./js/text.js";

class TokenStrip {
  constructor(parent) {
    this.conversation = new Conversation();
    this.root = element("section", "vf-tokens");
    this.caption = element("div", "vf-caption");
    this.list = element("div", "vf-chips");
    this.list.setAttribute("role", "listbox");
    this.list.setAttribute("aria-orientation", "horizontal");
    this.note = element("div", "vf-note");
    this.note.setAttribute("role", "status");
    this.note.setAttribute("aria-live", "polite");
    this.root.append(this.caption, this.list, this.note);
    parent.append(this.root);
    const over = (event) => event.target.closest?.("button");
    this.list.addEventListener("click", (event) => { if (over(event)) this.choose(Number(over(event).dataset.index)); });
    this.list.addEventListener("pointerover", (event) => this.describe(over(event)));
    this.list.addEventListener("pointerleave", () => this.describe(null));
    this.list.addEventListener("focusin", (event) => this.describe(over(event)));
    this.list.addEventListener("focusout", () => this.describe(null));
    this.list.addEventListener("keydown", (event) => this.walk(event));
  }

  update(component) {
    const { data } = component;
    const focused = this.list.querySelector("button:focus");
    this.data = data;
    this.conversation.listen(component);
    const wish = this.conversation.value ? this.conversation.value.index : null;
    this.selected = Number.isInteger(wish) && wish >= 0 && wish < data.tokens.length ? wish : null;
    this.caption.textContent = data.label;
    this.caption.hidden = !data.label;
    this.list.setAttribute("aria-label", data.label || data.words.strip_label);
    const numbers = data.tokens.map((token) => token.value).filter((value) => typeof value === "number");
    const most = Math.max(...numbers.map(Math.abs), 0);
    this.list.replaceChildren(...data.tokens.map((token, index) => this.chip(token, index, most)));
    this.showSelected();
    if (focused) this.list.children[Math.min(Number(focused.dataset.index), data.tokens.length - 1)]?.focus();
    this.describe(null);
  }

  chip(token, index, most) {
    const chip = element("button", token.special ? "vf-chip vf-special" : "vf-chip");
    chip.type = "button";
    chip.dataset.index = index;
    chip.setAttribute("role", "option");
    const text = element("bdi", "vf-piece", visible(token.text));
    chip.append(text, element("span", "vf-index", String(index)));
    if (typeof token.value === "number") {
      const bar = element("span", "vf-value");
      const level = element("span");
      // shares of one are shown as such, anything larger against the largest of the row
      level.style.width = `${(100 * Math.abs(token.value)) / Math.max(most, 1)}%`;
      bar.append(level);
      chip.append(bar);
    }
    const extra = token.special ? `, ${this.data.words.special}` : "";
    chip.setAttribute("aria-label", `${index}: ${token.text}${extra}`);
    return chip;
  }

  showSelected() {
    [...this.list.children].forEach((chip, index) => {
      chip.setAttribute("aria-selected", String(index === this.selected));
      chip.tabIndex = index === (this.selected ?? 0) ? 0 : -1;
    });
    this.root.dataset.selected = this.selected ?? "";
  }

  choose(index) {
    this.selected = index;
    this.showSelected();
    this.conversation.tell({ index });
  }

  // The line below: about the token pointed at or focused, else about the chosen one.
  describe(chip) {
    const index = chip ? Number(chip.dataset.index) : this.selected;
    const token = index === null ? null : this.data.tokens[index];
    this.note.textContent = token ? fill(this.data.words.note, { index, text: token.text, hover: token.hover }) : "";
  }

  walk(event) {
    const chip = event.target.closest("button");
    const steps = { ArrowLeft: -1, ArrowRight: 1, Home: -1e6, End: 1e6, ArrowUp: -1, ArrowDown: 1 };
    if (!chip || !(event.key in steps) || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    const last = this.list.children.length - 1;
    this.list.children[Math.max(0, Math.min(last, Number(chip.dataset.index) + steps[event.key]))].focus();
  }

  close() {
    this.root.remove();
  }
}

export default function tokens(component) {
  return present(TokenStrip, component);
}
