// @ts-check
// The switch between weights and scores.

import { element, focusedIn } from "./dom.js";

/** @import { WeightsOrScores, Words } from "./types.d.ts" */

export class ViewSwitch {
  /** @param {(view: WeightsOrScores) => void} choose */
  constructor(choose) {
    this.choose = choose;
    this.host = element("div", "vf-switch vf-group");
    this.host.setAttribute("role", "radiogroup");
  }

  /** @param {WeightsOrScores[]} names @param {Words} words @param {WeightsOrScores} view */
  build(names, words, view) {
    this.host.setAttribute("aria-label", words.view);
    const focused = focusedIn(this.host) !== null;
    this.host.replaceChildren(...names.map((name) => {
      const button = element("button", "", words[name]);
      button.type = "button";
      button.dataset.view = name;
      button.title = words[`${name}_hint`];
      button.setAttribute("role", "radio");
      button.onclick = () => this.choose(name);
      button.onkeydown = (event) => {
        if (!event.key.startsWith("Arrow")) return;
        event.preventDefault();
        this.choose(name === "weights" ? "scores" : "weights");
        this.focus();
      };
      return button;
    }));
    this.show(view);
    if (focused) this.focus();
  }

  focus() {
    /** @type {HTMLElement | null} */ (this.host.querySelector("[aria-checked=true]"))?.focus();
  }

  /** @param {WeightsOrScores} view */
  show(view) {
    for (const button of this.host.querySelectorAll("button")) {
      const on = button.dataset.view === view;
      button.setAttribute("aria-checked", String(on));
      button.tabIndex = on ? 0 : -1;
    }
  }
}
