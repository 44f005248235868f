// @ts-check
// The text of the player: what it began with, then a button for each new token up to the step that is shown.

import { buttonOf, element } from "./dom.js";
import { fill } from "./text.js";

/** @import { Generation } from "./types.d.ts" */

export class GeneratedText {
  /** @type {HTMLElement[]} */ chips = [];
  start = 0;

  /** @param {(step: number) => void} choose */
  constructor(choose) {
    this.host = element("div", "vf-written");
    this.host.setAttribute("role", "group");
    this.host.addEventListener("click", (event) => {
      const token = buttonOf(event);
      if (token) choose(Number(token.dataset.step));
    });
  }

  /** @param {Generation} data @param {string[]} tokens */
  build(data, tokens) {
    this.start = data.start;
    this.chips = data.tokens.map(({ special }, index) => {
      const step = index - data.start;
      const kind = `vf-written-token${special ? " vf-special" : ""}`;
      if (step < 0) {
        const given = element("span", `${kind} vf-given`);
        given.append(element("bdi", "", tokens[index]));
        return given;
      }
      const chip = element("button", kind);
      chip.append(element("bdi", "", tokens[index]));
      chip.type = "button";
      chip.dataset.step = String(step);
      chip.classList.toggle("vf-by-hand", data.steps.by_hand[step]);
      chip.title = fill(data.words.go_to, { number: step, token: tokens[index] });
      return chip;
    });
    this.host.setAttribute("aria-label", data.words.text);
    this.host.replaceChildren(...this.chips);
  }

  /** @param {number} step */
  show(step) {
    this.chips.forEach((chip, index) => {
      const own = index - this.start;
      chip.classList.toggle("vf-ahead", own > step);
      chip.classList.toggle("vf-new", own === step);
      if (own === step) chip.setAttribute("aria-current", "step");
      else chip.removeAttribute("aria-current");
    });
    const { offsetTop, offsetHeight } = this.chips[this.start + step];
    const { scrollTop, clientHeight } = this.host;
    const outside = offsetTop + offsetHeight > scrollTop + clientHeight || offsetTop < scrollTop;
    if (outside) this.host.scrollTop = offsetTop - 40;
  }
}
