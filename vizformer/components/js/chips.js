// @ts-check
// The heads of a layer as buttons in the colour and pattern of their lines.

import { headColour, headDashes } from "./colours.js";
import { buttonOf, element, focusedIn } from "./dom.js";
import { lineOpacity, lineWidth } from "./line_layer.js";
import { svgElement } from "./svg.js";
import { fill } from "./text.js";

/** @import { Theme, Words } from "./types.d.ts" */

export class HeadChips {
  /** @param {HTMLElement} host @param {(head: number, alone: boolean) => void} toggle */
  constructor(host, toggle) {
    this.host = host;
    this.toggle = toggle;
    host.setAttribute("role", "group");
    const head = (/** @type {Event} */ event) => {
      const chip = buttonOf(event);
      return chip ? Number(chip.dataset.head) : null;
    };
    host.addEventListener("click", (event) => {
      // the two clicks of a double click cancel each other out before it is heard
      const chosen = head(event);
      if (chosen !== null) this.toggle(chosen, event.shiftKey);
    });
    host.addEventListener("dblclick", (event) => {
      const chosen = head(event);
      if (chosen !== null && !event.shiftKey) this.toggle(chosen, true);
    });
    host.addEventListener("keydown", (event) => {
      const step = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -1, ArrowDown: 1 }[event.key];
      const from = head(event);
      if (!step || from === null) return;
      event.preventDefault();
      const chips = host.querySelectorAll("button");
      chips[(from + step + chips.length) % chips.length].focus();
    });
  }

  /** @param {number} heads @param {Theme} theme @param {Words} words */
  show(heads, theme, words) {
    const focused = focusedIn(this.host);
    this.host.setAttribute("aria-label", words.heads);
    this.host.replaceChildren(...Array.from({ length: heads }, (_, head) => {
      const chip = element("button", "vf-head");
      chip.type = "button";
      chip.dataset.head = String(head);
      chip.title = words.head_hint;
      chip.setAttribute("aria-label", fill(words.head_label, { head }));
      chip.append(lineSample(theme, head), element("span", "", fill(words.head_short, { head })));
      return chip;
    }));
    if (focused) this.host.querySelectorAll("button")[Math.min(heads - 1, Number(focused.dataset.head))].focus();
  }

  /** @param {number[]} shown */
  mark(shown) {
    [...this.host.children].forEach((chip, head) => chip.setAttribute("aria-pressed", String(shown.includes(head))));
  }
}

// A sample of a line: of a head, or of a weight (head: null).
/** @param {Theme} theme @param {number | null} head @param {number} [weight] @param {number} [row] */
export function lineSample(theme, head, weight = 0.75, row = 28) {
  const picture = svgElement("svg", { class: "vf-stroke", width: 24, height: 8, "aria-hidden": "true" });
  picture.append(svgElement("line", {
    x1: 1, x2: 23, y1: 4, y2: 4, stroke: head === null ? "currentColor" : headColour(theme, head),
    "stroke-width": lineWidth(weight, row), "stroke-opacity": head === null ? lineOpacity(weight) : 1,
    "stroke-dasharray": head === null ? "" : headDashes(head).join(" "),
  }));
  return picture;
}
