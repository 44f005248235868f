// @ts-check
// A text of tokens that stand as they were written: each can be chosen, and has a colour under it and one in its line.

import { element, isShortcut } from "./dom.js";
import { visible } from "./text.js";

export class RunningText {
  /** @type {HTMLElement[]} */ spans = [];

  /** @param {{ point(index: number | null): void, choose(index: number): void }} on */
  constructor(on) {
    this.host = element("div", "vf-text");
    this.host.setAttribute("role", "listbox");
    const at = (/** @type {Event} */ event) => {
      const span = event.target instanceof Element ? event.target.closest("[data-index]") : null;
      return span instanceof HTMLElement ? Number(span.dataset.index) : null;
    };
    this.host.addEventListener("pointerover", (event) => on.point(at(event)));
    this.host.addEventListener("pointerleave", () => on.point(null));
    this.host.addEventListener("focusin", (event) => on.point(at(event)));
    this.host.addEventListener("focusout", () => on.point(null));
    this.host.addEventListener("click", (event) => {
      const index = at(event);
      if (index !== null) on.choose(index);
    });
    this.host.addEventListener("keydown", (event) => {
      const index = at(event);
      /** @type {Record<string, number>} */
      const steps = { ArrowLeft: -1, ArrowUp: -1, ArrowRight: 1, ArrowDown: 1, Home: -1e6, End: 1e6 };
      if (index === null || isShortcut(event)) return;
      if (event.key === "Enter" || event.key === " ") on.choose(index);
      else if (event.key in steps) this.spans[Math.max(0, Math.min(this.spans.length - 1, index + steps[event.key]))].focus();
      else return;
      event.preventDefault();
    });
  }

  // A token may begin with the space or the line break before it, which is no part of what is coloured.
  /** @param {string[]} tokens @param {string} label */
  show(tokens, label) {
    this.host.setAttribute("aria-label", label);
    const parts = document.createDocumentFragment();
    this.spans = tokens.map((token, index) => {
      const text = token.trimStart();
      const before = text ? token.slice(0, token.length - text.length) : "";
      if (before) parts.append(before);
      const span = element("bdi", "vf-word", visible(text || token));
      span.dataset.index = String(index);
      span.tabIndex = -1;
      span.setAttribute("role", "option");
      parts.append(span);
      return span;
    });
    this.host.replaceChildren(parts);
  }

  // `under` and `line` say how strong each token's colours are, in 0..1; `chosen` is framed.
  /** @param {(index: number) => number} under @param {(index: number) => number} line @param {number | null} chosen */
  colour(under, line, chosen) {
    this.spans.forEach((span, index) => {
      const [a, b] = [Math.sqrt(under(index)), Math.sqrt(line(index))];
      span.style.setProperty("--vf-under", `${Math.round(100 * a)}%`);
      span.style.setProperty("--vf-line", `${Math.round(100 * b)}%`);
      span.setAttribute("aria-selected", String(index === chosen));
      span.tabIndex = index === (chosen ?? 0) ? 0 : -1;
    });
  }

  // Scrolls the box of the text (not the page) to a token.
  /** @param {number} index */
  reveal(index) {
    const [outer, inner] = [this.host.getBoundingClientRect(), this.spans[index].getBoundingClientRect()];
    this.host.scrollTop += (inner.top + inner.bottom - outer.top - outer.bottom) / 2;
  }
}
