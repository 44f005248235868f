// @ts-check
// The tree of a beam search: a button for every continuation that was looked at, in columns by step, and lines between.

import { buttonOf, element, isShortcut } from "./js/dom.js";
import { signed } from "./js/numbers.js";
import { present } from "./js/present.js";
import { svgElement } from "./js/svg.js";
import { fill, visible } from "./js/text.js";

/** @import { Component, Sent } from "./js/types.d.ts" */
/** @typedef {"kept" | "dropped" | "finished"} Fate */
/**
 * @typedef {{
 *   step: number, parent: number | null, text: string, total: number, score: number, fate: Fate, best: boolean,
 * }} TreeNode
 */
/** @typedef {Sent<null> & { nodes: TreeNode[] }} TreeData */

const [COLUMN, ROW, WIDTH, HEIGHT] = [118, 36, 92, 28];  // px

/** @type {Record<Fate | "best", string>} */
const SIGNS = { best: "", kept: "", dropped: "×", finished: "■" };

class BeamTree {
  /** @type {TreeData} */ data;
  /** @type {{ x: number, y: number }[]} */ places;
  /** @type {HTMLButtonElement[]} */ buttons;
  /** @type {(SVGPathElement | null)[]} */ edges;
  /** @type {number} */ kept;

  /** @param {HTMLElement} parent */
  constructor(parent) {
    this.root = element("section", "vf-tree");
    this.legend = element("div", "vf-tree-legend");
    this.scroll = element("div", "vf-tree-scroll");
    this.scroll.setAttribute("role", "tree");
    this.note = element("p", "vf-readout");
    this.note.setAttribute("role", "status");
    this.note.setAttribute("aria-live", "polite");
    this.root.append(this.legend, this.scroll, this.note);
    parent.append(this.root);
    const look = (/** @type {Event} */ event) => {
      const button = buttonOf(event);
      if (button) this.look(Number(button.dataset.index));
    };
    this.scroll.addEventListener("pointerover", look);
    this.scroll.addEventListener("pointerleave", () => this.look(this.kept));
    this.scroll.addEventListener("focusin", look);
    this.scroll.addEventListener("click", (event) => {
      const button = buttonOf(event);
      if (button) this.keep(Number(button.dataset.index));
    });
    this.scroll.addEventListener("keydown", (event) => this.walk(event));
  }

  /** @param {Component<TreeData>} component */
  update({ data }) {
    const same = this.data && JSON.stringify(this.data) === JSON.stringify(data);
    this.data = data;
    if (same) return;
    /** @type {number[]} */ const columns = [];
    this.places = data.nodes.map(({ step }) => {
      columns[step] = (columns[step] || 0) + 1;
      return { x: step * COLUMN, y: (columns[step] - 1) * ROW };
    });
    const board = element("div", "vf-board");
    board.style.width = `${columns.length * COLUMN - (COLUMN - WIDTH)}px`;
    board.style.height = `${Math.max(...columns, 1) * ROW}px`;
    this.buttons = data.nodes.map((node, index) => this.button(node, index));
    board.append(this.lines(), ...this.buttons);
    this.scroll.setAttribute("aria-label", data.words.tree_label);
    this.scroll.replaceChildren(board);
    this.showLegend();
    const way = data.nodes.map((node, index) => (node.best ? index : -1)).filter((index) => index >= 0);
    this.kept = way.at(-1) ?? 0;
    this.buttons.forEach((button, index) => { button.tabIndex = index === this.kept ? 0 : -1; });
    this.look(this.kept);
  }

  /** @param {TreeNode} node @param {number} index */
  button(node, index) {
    const { words } = this.data;
    const button = element("button", `vf-node vf-${node.fate}${node.best ? " vf-best" : ""}`);
    button.type = "button";
    button.dataset.index = String(index);
    button.setAttribute("role", "treeitem");
    button.setAttribute("aria-level", String(node.step + 1));
    button.style.left = `${this.places[index].x}px`;
    button.style.top = `${this.places[index].y}px`;
    button.append(element("bdi", "vf-piece", visible(node.text)));
    button.append(element("span", "vf-fate", SIGNS[node.fate]));
    button.setAttribute("aria-label", `${visible(node.text)}, ${words[node.fate]}`);
    return button;
  }

  lines() {
    const picture = svgElement("svg", { class: "vf-edges", width: "100%", height: "100%", "aria-hidden": "true" });
    this.edges = this.data.nodes.map((node, index) => {
      if (node.parent === null) return null;
      const [from, to] = [this.places[node.parent], this.places[index]];
      const [x0, y0, x1, y1] = [from.x + WIDTH, from.y + HEIGHT / 2, to.x, to.y + HEIGHT / 2];
      const middle = (x0 + x1) / 2;
      const edge = svgElement("path", {
        d: `M${x0} ${y0}C${middle} ${y0} ${middle} ${y1} ${x1} ${y1}`, class: `vf-edge vf-${node.fate}${node.best ? " vf-best" : ""}`,
      });
      picture.append(edge);
      return edge;
    });
    return picture;
  }

  showLegend() {
    const { words } = this.data;
    this.legend.replaceChildren(.../** @type {const} */ (["best", "kept", "dropped", "finished"]).map((name) => {
      const entry = element("span");
      const sample = element("i", `vf-node vf-${name === "best" ? "kept vf-best" : name}`);
      sample.append(element("span", "vf-fate", SIGNS[name]));
      entry.append(sample, element("span", "", words[`legend_${name}`]));
      return entry;
    }));
  }

  // The nodes from the first column to this one.
  /** @param {number} index */
  way(index) {
    const way = [];
    /** @type {number | null} */ let at = index;
    while (at !== null) {
      way.unshift(at);
      at = this.data.nodes[at]?.parent ?? null;
    }
    return way;
  }

  /** @param {number} index */
  look(index) {
    const { nodes, words } = this.data;
    const way = new Set(this.way(index));
    this.buttons.forEach((button, at) => button.classList.toggle("vf-way", way.has(at)));
    this.edges.forEach((edge, at) => edge?.classList.toggle("vf-way", way.has(at)));
    const node = nodes[index];
    const parts = [fill(words.node, {
      step: node.step, text: visible(node.text), total: signed(node.total, 3), score: signed(node.score, 3),
      fate: node.best ? [words[node.fate], words.best].join(words.joiner) : words[node.fate],
    })];
    parts.push(fill(words.so_far, { text: [...way].map((at) => nodes[at].text).join("·") }));
    this.note.textContent = parts.join(" ");
    this.root.dataset.node = String(index);
  }

  /** @param {number} index */
  keep(index) {
    this.buttons[this.kept].tabIndex = -1;
    this.kept = index;
    this.buttons[index].tabIndex = 0;
    this.look(index);
  }

  /** @param {KeyboardEvent} event */
  walk(event) {
    const button = buttonOf(event);
    if (!button || isShortcut(event)) return;
    const { nodes } = this.data;
    const index = Number(button.dataset.index);
    const { step, parent } = nodes[index];
    const child = nodes.findIndex((node) => node.parent === index);
    const beside = { ArrowUp: index - 1, ArrowDown: index + 1 }[event.key];
    let next = { ArrowLeft: parent ?? -1, ArrowRight: child }[event.key];
    if (beside !== undefined) next = nodes[beside]?.step === step ? beside : -1;
    if (next === undefined) return;
    event.preventDefault();
    if (next < 0) return;
    this.keep(next);
    this.buttons[next].focus();
    this.buttons[next].scrollIntoView({ block: "nearest", inline: "nearest" });
  }

  close() {
    this.root.remove();
  }
}

/** @param {Component<TreeData>} component */
export default function tree(component) {
  return present(BeamTree, component);
}
