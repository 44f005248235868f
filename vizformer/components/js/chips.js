// @ts-check
// The heads of a layer as buttons in the colour and pattern of their lines.

import { headColour, headDashes } from "./colours.js";
import { element } from "./dom.js";
import { lineOpacity, lineWidth } from "./line_layer.js";
import { fill } from "./text.js";

export class HeadChips {
  constructor(host, toggle) {
    this.host = host;
    this.toggle = toggle;  // (head, alone)
    host.setAttribute("role", "group");
    const head = (event) => {
      const chip = event.target.closest("button[data-head]");
      return chip ? Number(chip.dataset.head) : null;
    };
    host.addEventListener("click", (event) => {
      // the two clicks of a double click cancel each other out before it is heard
      if (head(event) !== null) this.toggle(head(event), event.shiftKey);
    });
    host.addEventListener("dblclick", (event) => { if (head(event) !== null && !event.shiftKey) this.toggle(head(event), true); });
    host.addEventListener("keydown", (event) => {
      const step = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -1, ArrowDown: 1 }[event.key];
      if (!step || head(event) === null) return;
      event.preventDefault();
      const chips = [...host.children];
      chips[(head(event) + step + chips.length) % chips.length].focus();
    });
  }

  show(heads, theme, words) {
    const focused = this.host.querySelector("button:focus");
    this.host.setAttribute("aria-label", words.heads);
    this.host.replaceChildren(...Array.from({ length: heads }, (_, head) => {
      const chip = element("button", "vf-head");
      chip.type = "button";
      chip.dataset.head = head;
      chip.title = words.head_hint;
      chip.setAttribute("aria-label", fill(words.head_label, { head }));
      chip.append(lineSample(theme, head), element("span", "", fill(words.head_short, { head })));
      return chip;
    }));
    if (focused) this.host.children[Math.min(heads - 1, Number(focused.dataset.head))].focus();
  }

  mark(shown) {
    [...this.host.children].forEach((chip, head) => chip.setAttribute("aria-pressed", String(shown.includes(head))));
  }
}

// A sample of a line: of a head, or of a weight (head: null).
export function lineSample(theme, head, weight = 0.75, row = 28) {
  const make = (tag, attributes) => {
    const node = document.createElementNS("http://www.w3.org/2000/svg", tag);
    for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
    return node;
  };
  const picture = make("svg", { class: "vf-stroke", width: 24, height: 8, "aria-hidden": "true" });
  picture.append(make("line", {
    x1: 1, x2: 23, y1: 4, y2: 4, stroke: head === null ? "currentColor" : headColour(theme, head),
    "stroke-width": lineWidth(weight, row), "stroke-opacity": head === null ? lineOpacity(weight) : 1,
    "stroke-dasharray": head === null ? "" : headDashes(head).join(" "),
  }));
  return picture;
}
