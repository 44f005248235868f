// @ts-check
// Heads that read one another: a button for every head, in columns by layer, and lines from whom is read to who reads.

import { Conversation, present } from "./js/conversation.js";
import { buttonOf, element, isShortcut } from "./js/dom.js";
import { svgElement } from "./js/svg.js";
import { fill } from "./js/text.js";

/** @import { Component, Sent } from "./js/types.d.ts" */
/** @typedef {{ layer: number, head: number }} Head */
/** @typedef {{ way: "Q" | "K" | "V", first: [number, number], second: [number, number], excess: number }} Edge */
/** @typedef {Sent<Head> & { layers: number, heads: number, edges: Edge[] }} CompositionData */

const [COLUMN, ROW, WIDTH, HEIGHT, TOP] = [116, 30, 48, 24, 24];  // px
const NAMED = 4;  // edges of a head that are said in words

class Composition {
  /** @type {CompositionData} */ data;
  /** @type {Head | null} */ selected = null;
  /** @type {SVGPathElement[]} */ edges = [];

  /** @param {HTMLElement} parent */
  constructor(parent) {
    /** @type {Conversation<Head>} */ this.conversation = new Conversation();
    this.root = element("section", "vf-composition");
    this.legend = element("div", "vf-composition-legend");
    this.scroll = element("div", "vf-composition-scroll");
    this.scroll.setAttribute("role", "group");
    this.note = element("div", "vf-note");
    this.note.setAttribute("role", "status");
    this.root.append(this.legend, this.scroll, this.note);
    parent.append(this.root);
    this.scroll.addEventListener("click", (event) => {
      const head = this.headOf(buttonOf(event));
      if (head) this.choose(head);
    });
    for (const kind of ["pointerover", "focusin"]) {
      this.scroll.addEventListener(kind, (event) => this.look(this.headOf(buttonOf(event)) ?? this.selected));
    }
    for (const kind of ["pointerleave", "focusout"]) this.scroll.addEventListener(kind, () => this.look(this.selected));
    this.scroll.addEventListener("keydown", (event) => this.walk(event));
  }

  /** @param {Component<CompositionData>} component */
  update(component) {
    const { data } = component;
    const same = this.data && JSON.stringify([this.data.edges, this.data.words, this.data.layers]) ===
      JSON.stringify([data.edges, data.words, data.layers]);
    this.data = data;
    this.conversation.listen(component);
    const wish = this.conversation.value ?? null;
    this.selected = wish && wish.layer < data.layers && wish.head < data.heads ? wish : null;
    if (!same) this.build();
    this.showSelected();
  }

  build() {
    const { layers, heads, edges, words } = this.data;
    const board = element("div", "vf-board");
    board.style.width = `${layers * COLUMN - (COLUMN - WIDTH)}px`;
    board.style.height = `${TOP + heads * ROW}px`;
    const picture = svgElement("svg", { class: "vf-edges", width: "100%", height: "100%", "aria-hidden": "true" });
    const most = Math.max(...edges.map((edge) => edge.excess), 1);
    this.edges = edges.map((edge) => {
      const [from, to] = [this.place(edge.first), this.place(edge.second)];
      const [x0, y0, x1, y1] = [from.x + WIDTH, from.y + HEIGHT / 2, to.x, to.y + HEIGHT / 2];
      const middle = (x1 - x0) / 2;
      const line = svgElement("path", {
        d: `M${x0} ${y0}C${x0 + middle} ${y0} ${x1 - middle} ${y1} ${x1} ${y1}`,
        class: `vf-edge vf-way-${edge.way}`, "stroke-width": (1 + (3 * edge.excess) / most).toFixed(2),
      });
      picture.append(line);
      return line;
    });
    const names = Array.from({ length: layers }, (_, layer) => {
      const name = element("span", "vf-composition-layer", fill(words.layer, { layer }));
      name.style.left = `${layer * COLUMN}px`;
      return name;
    });
    const nodes = Array.from({ length: layers * heads }, (_, index) => this.node(Math.floor(index / heads), index % heads));
    board.append(picture, ...names, ...nodes);
    this.scroll.setAttribute("aria-label", words.graph_label);
    this.scroll.replaceChildren(board);
    this.legend.replaceChildren(.../** @type {const} */ (["Q", "K", "V"]).map((way) => {
      const entry = element("span");
      entry.append(element("i", `vf-way-${way}`), element("span", "", words[`way_${way}`]));
      return entry;
    }));
  }

  /** @param {[number, number]} head */
  place([layer, head]) {
    return { x: layer * COLUMN, y: TOP + head * ROW };
  }

  /** @param {number} layer @param {number} head */
  node(layer, head) {
    const { words } = this.data;
    const button = element("button", "vf-composition-head", fill(words.head, { head }));
    const { x, y } = this.place([layer, head]);
    button.type = "button";
    button.dataset.layer = String(layer);
    button.dataset.head = String(head);
    button.style.left = `${x}px`;
    button.style.top = `${y}px`;
    button.setAttribute("aria-label", fill(words.both, { layer, head }));
    if (!this.data.edges.some((edge) => this.touches(edge, { layer, head }))) button.classList.add("vf-alone");
    return button;
  }

  /** @param {Edge} edge @param {Head} head */
  touches(edge, { layer, head }) {
    return [edge.first, edge.second].some((end) => end[0] === layer && end[1] === head);
  }

  /** @param {Element | null} button @returns {Head | null} */
  headOf(button) {
    if (!(button instanceof HTMLElement) || button.dataset.layer === undefined) return null;
    return { layer: Number(button.dataset.layer), head: Number(button.dataset.head) };
  }

  showSelected() {
    const start = this.selected ?? { layer: 0, head: 0 };
    for (const button of this.scroll.querySelectorAll("button")) {
      const head = this.headOf(button);
      const is = (/** @type {Head | null} */ one) => Boolean(one && head && one.layer === head.layer && one.head === head.head);
      button.setAttribute("aria-pressed", String(is(this.selected)));
      button.tabIndex = is(start) ? 0 : -1;
    }
    this.root.dataset.selected = this.selected ? `${this.selected.layer},${this.selected.head}` : "";
    this.look(this.selected);
  }

  /** @param {Head} head */
  choose(head) {
    this.selected = head;
    this.showSelected();
    this.conversation.tell(head, 0);
  }

  // The lines of one head stand out, and the clearest of them are said.
  /** @param {Head | null} head */
  look(head) {
    const { edges, words } = this.data;
    this.edges.forEach((line, index) => line.classList.toggle("vf-near", head !== null && this.touches(edges[index], head)));
    const near = head === null ? [] : edges.filter((edge) => this.touches(edge, head));
    const name = (/** @type {[number, number]} */ [layer, number]) => fill(words.both, { layer, head: number });
    const said = near.slice(0, NAMED).map((edge) => fill(words.reads, {
      first: name(edge.first), second: name(edge.second), way: words[`way_${edge.way}`], excess: edge.excess.toFixed(1),
    }));
    if (head && !said.length) said.push(fill(words.alone, { head: name([head.layer, head.head]) }));
    this.note.textContent = said.join(" ");
  }

  /** @param {KeyboardEvent} event */
  walk(event) {
    const head = this.headOf(buttonOf(event));
    /** @type {Record<string, [number, number]>} */
    const steps = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
    if (!head || !(event.key in steps) || isShortcut(event)) return;
    event.preventDefault();
    const [right, down] = steps[event.key];
    const next = this.scroll.querySelector(`[data-layer="${head.layer + right}"][data-head="${head.head + down}"]`);
    if (next instanceof HTMLElement) next.focus();
  }

  close() {
    this.root.remove();
  }
}

/** @param {Component<CompositionData>} component */
export default function composition(component) {
  return present(Composition, component);
}
