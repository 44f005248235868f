// @ts-check
// The drawing of a model: boxes in columns, the data flowing downwards; lines between them are drawn once the boxes have
// found their places, and again whenever these change.

import { Conversation } from "./js/conversation.js";
import { buttonOf, element, focusedIn, isShortcut } from "./js/dom.js";
import { present } from "./js/present.js";
import { svgElement } from "./js/svg.js";

/** @import { Component, Sent } from "./js/types.d.ts" */
/**
 * @typedef {{
 *   key: string, kind: string, title: string, shape: string, count: string, note: string, framed: boolean,
 *   inside: string, skip: string, source: string, fed_by?: string,
 * }} Box
 */
/** @typedef {{ title: string, frame: string, boxes: Box[] }} Column */
/** @typedef {Sent<{ box: string }> & { drawn: Column[] }} ArchitectureData */

const [ASIDE, HEAD] = [11, 4];  // px: how far a line passes beside the boxes, and half of an arrow's head

class Architecture {
  /** @type {ArchitectureData} */ data;
  /** @type {string} */ text;
  /** @type {string | null} */ selected;
  /** @type {Map<string, HTMLButtonElement>} */ buttons = new Map();
  /** @type {Map<string, HTMLElement>} */ elements = new Map();  // what lines lead to: the box, or it and its insides

  /** @param {HTMLElement} parent */
  constructor(parent) {
    /** @type {Conversation<{ box: string }>} */ this.conversation = new Conversation();
    this.root = element("section", "vf-architecture");
    this.board = element("div", "vf-drawing");
    this.board.setAttribute("role", "group");
    this.lines = svgElement("svg", { "aria-hidden": "true" });
    this.note = element("div", "vf-box-note");  // on a phone the page says more far below
    this.note.setAttribute("role", "status");
    this.root.append(this.board, this.note);
    parent.append(this.root);
    this.board.addEventListener("click", (event) => {
      const key = buttonOf(event)?.dataset.key;
      if (key) this.choose(key);
    });
    this.board.addEventListener("keydown", (event) => this.walk(event));
    this.watcher = new ResizeObserver(() => this.connect());
    this.watcher.observe(this.board);
  }

  /** @param {Component<ArchitectureData>} component */
  update(component) {
    const { data } = component;
    this.conversation.listen(component);
    const text = JSON.stringify(data.drawn);
    if (this.text !== text) {
      const focused = focusedIn(this.board)?.dataset.key;
      this.text = text;
      this.data = data;
      this.build();
      if (focused) this.buttons.get(focused)?.focus();
    }
    this.board.setAttribute("aria-label", data.words.drawing_label);
    this.showSelected();
  }

  build() {
    this.buttons.clear();
    this.elements.clear();
    this.board.replaceChildren(this.lines, ...this.data.drawn.map((column) => this.column(column)));
    this.board.dataset.columns = String(this.data.drawn.length);
    this.connect();
  }

  /** @param {Column} column */
  column({ title, frame, boxes }) {
    const stack = element("div", "vf-stack");
    const rest = (/** @type {Box} */ box) => boxes.filter((other) => other.inside === box.key);
    /** @type {HTMLElement | null} */ let framed = null;
    for (const box of boxes) {
      if (box.inside) continue;
      const drawn = this.draw(box, rest(box));
      if (box.framed && !framed) {
        framed = element("div", "vf-frame");
        stack.append(framed);
      }
      (box.framed && framed ? framed : stack).append(drawn);
    }
    if (framed) framed.prepend(element("span", "vf-times", frame));
    if (title) stack.prepend(element("div", "vf-stack-title", title));
    return stack;
  }

  /** @param {Box} box @param {Box[]} insides */
  draw(box, insides) {
    const button = this.button(box);
    if (insides.length === 0) {
      this.elements.set(box.key, button);
      return button;
    }
    const group = element("div", "vf-around");
    const row = element("div", "vf-insides");
    row.append(...insides.map((inside) => this.button(inside)));
    group.append(button, row);
    this.elements.set(box.key, group);
    return group;
  }

  /** @param {Box} box */
  button(box) {
    const button = element("button", `vf-box vf-${box.kind}${box.inside ? " vf-inside" : ""}`);
    button.type = "button";
    button.dataset.key = box.key;
    button.append(element("span", "vf-name", box.title));
    const numbers = element("span", "vf-numbers");
    numbers.append(element("span", "vf-shape", box.shape));
    if (box.count) numbers.append(element("span", "vf-count", box.count));
    button.append(numbers);
    this.buttons.set(box.key, button);
    return button;
  }

  showSelected() {
    const wish = this.conversation.value ? this.conversation.value.box : null;
    this.selected = wish !== null && this.buttons.has(wish) ? wish : null;
    const first = this.selected ?? this.buttons.keys().next().value;
    for (const [key, button] of this.buttons) {
      button.setAttribute("aria-pressed", String(key === this.selected));
      button.tabIndex = key === first ? 0 : -1;
    }
    this.root.dataset.selected = this.selected ?? "";
    const boxes = this.data.drawn.flatMap((column) => column.boxes);
    this.note.textContent = boxes.find((box) => box.key === this.selected)?.note ?? "";
  }

  /** @param {string} key */
  choose(key) {
    this.conversation.tell({ box: key }, 0);
    this.showSelected();
    this.buttons.get(key)?.focus();
  }

  // Up and down along the data, left and right to the box of the other column that is nearest in height.
  /** @param {KeyboardEvent} event */
  walk(event) {
    const button = buttonOf(event);
    if (!button || isShortcut(event)) return;
    const stacks = this.data.drawn.map((column) => column.boxes.flatMap((box) => this.buttons.get(box.key) ?? []));
    const at = stacks.findIndex((stack) => stack.includes(button));
    const index = stacks[at].indexOf(button);
    /** @type {HTMLButtonElement | undefined} */ let next;
    if (event.key === "ArrowDown") next = stacks[at][index + 1];
    else if (event.key === "ArrowUp") next = stacks[at][index - 1];
    else if (event.key === "Home") next = stacks[at][0];
    else if (event.key === "End") next = stacks[at].at(-1);
    else if (event.key === "ArrowLeft" || event.key === "ArrowRight") {
      const other = stacks[at + (event.key === "ArrowLeft" ? -1 : 1)] || [];
      const far = (/** @type {HTMLElement} */ box) => Math.abs(box.getBoundingClientRect().top - button.getBoundingClientRect().top);
      next = [...other].sort((a, b) => far(a) - far(b))[0];
    } else return;
    event.preventDefault();
    if (!next) return;
    for (const box of this.buttons.values()) box.tabIndex = box === next ? 0 : -1;
    next.focus();
    next.scrollIntoView({ block: "nearest", inline: "nearest" });
  }

  connect() {
    if (!this.data) return;
    const around = this.board.getBoundingClientRect();
    if (!around.width) return;
    const scale = around.width / this.board.offsetWidth; // of a page that draws it smaller (a slide)
    const at = (/** @type {string} */ key) => {
      const found = /** @type {HTMLElement} */ (this.elements.get(key));
      const { left, right, top, bottom } = found.getBoundingClientRect();
      const [x0, x1] = [(left - around.left) / scale, (right - around.left) / scale];
      const [y0, y1] = [(top - around.top) / scale, (bottom - around.top) / scale];
      return { left: x0, right: x1, top: y0, bottom: y1, x: (x0 + x1) / 2, y: (y0 + y1) / 2 };
    };
    /** @type {SVGPathElement[]} */ const made = [];
    this.data.drawn.forEach(({ boxes }, column) => {
      const chain = boxes.filter((box) => !box.inside);
      chain.slice(1).forEach((box, index) => {
        const to = at(box.key);
        if (box.fed_by) {  // not what is right before it: a line comes along the side that no skip uses
          const [from, left] = [at(box.fed_by), column > 0];
          const edge = left ? to.left : to.right;
          const aside = left ? to.left - ASIDE : to.right + ASIDE;
          made.push(arrow(`M${from.x} ${from.bottom + 5}H${aside}V${to.y}H${edge}`, [edge, to.y], left ? "right" : "left",
            "vf-flow"));
          return;
        }
        const from = at(chain[index].key);
        made.push(arrow(`M${to.x} ${from.bottom}V${to.top}`, [to.x, to.top], "down", "vf-flow"));
      });
      for (const box of chain) {
        if (box.skip) {
          // past the outer side: between the columns there is the line from the encoder
          const [from, to, right] = [at(box.skip), at(box.key), column > 0];
          const edge = right ? to.right : to.left;
          const aside = right ? to.right + ASIDE : to.left - ASIDE;
          const alone = chain[chain.findIndex((other) => other.key === box.skip) + 1]?.fed_by;  // no arrow to begin on
          const start = alone ? `M${from.x} ${from.bottom}V${from.bottom + 5}` : `M${from.x} ${from.bottom + 5}`;
          const way = `${start}H${aside}V${to.y}H${edge}`;
          made.push(arrow(way, [edge, to.y], right ? "left" : "right", "vf-skip"));
        }
        if (box.source) {
          const [from, to] = [at(box.source), at(box.key)];
          const between = (from.right + to.left) / 2;
          made.push(arrow(`M${from.x} ${from.bottom}V${from.bottom + 14}H${between}V${to.y}H${to.left}`, [to.left, to.y],
            "right", "vf-flow"));
        }
      }
    });
    this.lines.replaceChildren(...made);
  }

  close() {
    this.watcher.disconnect();
    this.root.remove();
  }
}

// A line with a head where it arrives.
/**
 * @param {string} way
 * @param {[number, number]} end
 * @param {"down" | "right" | "left"} direction
 * @param {string} className
 */
function arrow(way, end, direction, className) {
  const [x, y] = end;
  const heads = {
    down: `M${x - HEAD} ${y - 2 * HEAD}L${x} ${y}L${x + HEAD} ${y - 2 * HEAD}`,
    right: `M${x - 2 * HEAD} ${y - HEAD}L${x} ${y}L${x - 2 * HEAD} ${y + HEAD}`,
    left: `M${x + 2 * HEAD} ${y - HEAD}L${x} ${y}L${x + 2 * HEAD} ${y + HEAD}`,
  };
  return svgElement("path", { d: way + heads[direction], class: className });
}

/** @param {Component<ArchitectureData>} component */
export default function architecture(component) {
  return present(Architecture, component);
}
