// @ts-check
// Why this answer: tokens, parts of the model and the answer as boxes, lines between, and the lines as a list with two bars.

import { buttonOf, element, isShortcut } from "./js/dom.js";
import { signed } from "./js/numbers.js";
import { present } from "./js/present.js";
import { svgElement } from "./js/svg.js";
import { visible } from "./js/text.js";

/** @import { Component, Sent } from "./js/types.d.ts" */
/** @typedef {"token" | "part" | "answer"} Kind */
/** @typedef {{ kind: Kind, text: string, note: string, name: string }} Node */
/**
 * @typedef {{
 *   first: number, second: number, looks: boolean, depth: number, name: string, direct: number, shown: string,
 *   total: number | null, said: string,
 * }} Edge
 */
/** @typedef {Sent<null> & { nodes: Node[], edges: Edge[], others: number }} EvidenceData */

const [ROW, BOX, SIDE] = [46, 38, 720];  // px; from SIDE on the list stands beside the drawing
/** @type {Record<Kind, [number, number, number]>} */
const WIDTHS = { token: [0.23, 76, 120], part: [0.32, 104, 150], answer: [0.21, 72, 110] };  // share, least and most px

class Evidence {
  /** @type {EvidenceData} */ data;
  /** @type {SVGPathElement[]} */ lines = [];
  /** @type {HTMLButtonElement[]} */ rows = [];
  chosen = 0;
  width = 0;  // px, as it was drawn

  /** @param {HTMLElement} parent */
  constructor(parent) {
    this.root = element("section", "vf-evidence");
    this.board = element("div", "vf-board");
    this.list = element("div", "vf-evidence-list");
    this.legend = element("div", "vf-evidence-legend");
    this.note = element("div", "vf-readout");
    this.note.setAttribute("role", "status");
    const both = element("div", "vf-evidence-both");
    both.append(this.board, this.list);
    this.root.append(both, this.note, this.legend);
    parent.append(this.root);
    this.list.setAttribute("role", "group");
    const edgeOf = (/** @type {Event} */ event) => {
      const at = event.target instanceof Element ? event.target.closest("[data-edge]")?.getAttribute("data-edge") : null;
      return at === null || at === undefined ? null : Number(at);
    };
    for (const part of [this.board, this.list]) {
      part.addEventListener("pointerover", (event) => this.near(edgeOf(event) ?? this.chosen));
      part.addEventListener("pointerleave", () => this.near(this.chosen));
      part.addEventListener("click", (event) => this.choose(edgeOf(event)));
    }
    this.list.addEventListener("keydown", (event) => this.walk(event));
    this.watcher = new ResizeObserver(() => this.draw());
    this.watcher.observe(this.root);
  }

  /** @param {Component<EvidenceData>} component */
  update({ data }) {
    if (this.data && JSON.stringify(this.data) === JSON.stringify(data)) return;
    this.data = data;
    this.chosen = 0;
    this.width = 0;
    this.fillList();
    this.fillLegend();
    this.draw();
    this.choose(this.data.edges.length ? 0 : null);
  }

  // The boxes and the lines, as wide as there is room.
  draw() {
    const all = this.root.clientWidth;
    if (!all || !this.data || all === this.width) return;
    this.width = all;
    this.root.classList.toggle("vf-wide", all >= SIDE);
    const wide = this.board.clientWidth, { nodes, edges } = this.data;
    /** @type {Record<Kind, number>} */
    const count = { token: 0, part: 0, answer: 0 };
    for (const { kind } of nodes) count[kind] += 1;
    const high = Math.max(...Object.values(count), 2) * ROW;
    const width = (/** @type {Kind} */ kind) => {
      const [share, least, most] = WIDTHS[kind];
      return Math.round(Math.max(least, Math.min(most, share * wide)));
    };
    const left = { token: 0, part: Math.round((wide - width("part") + width("token") - width("answer")) / 2), answer: wide - width("answer") };
    /** @type {Record<Kind, number>} */
    const done = { token: 0, part: 0, answer: 0 };
    const places = nodes.map(({ kind }) => {
      const y = ((done[kind] + 0.5) * high) / count[kind];
      done[kind] += 1;
      return { x: left[kind], y, end: left[kind] + width(kind) };
    });
    const boxes = nodes.map((node, index) => {
      const box = element("div", `vf-evidence-box vf-${node.kind}`);
      box.style.left = `${places[index].x}px`;
      box.style.top = `${places[index].y - BOX / 2}px`;
      box.style.width = `${width(node.kind)}px`;
      box.title = node.name;
      box.append(element("bdi", "vf-piece", visible(node.text)), element("span", "vf-small", node.note));
      const own = edges.findIndex((edge) => edge.first === index);
      if (own >= 0) box.dataset.edge = String(own);
      return box;
    });
    const picture = svgElement("svg", { class: "vf-edges", width: "100%", height: "100%", "aria-hidden": "true" });
    const most = Math.max(...edges.map((edge) => (edge.looks ? 0 : Math.abs(edge.direct))), 1e-9);
    const touch = edges.map((edge, index) => {
      const [from, to] = [places[edge.first], places[edge.second]];
      const same = from.x === to.x;  // two parts: on the left of both
      const [x0, x1] = same ? [from.x, to.x] : [from.end, to.x];
      const bent = same ? [x0 - 26 - Math.abs(to.y - from.y) / 12, x1 - 26 - Math.abs(to.y - from.y) / 12] : [(x0 + x1) / 2, (x0 + x1) / 2];
      const d = `M${x0} ${from.y}C${bent[0]} ${from.y} ${bent[1]} ${to.y} ${x1} ${to.y}`;
      const kind = edge.looks ? "vf-looks" : edge.direct < 0 ? "vf-lowers" : "vf-raises";
      const size = edge.looks ? 2 : 1.5 + (8 * Math.abs(edge.direct)) / most;
      this.lines[index] = svgElement("path", { d, class: `vf-edge ${kind}`, "stroke-width": size.toFixed(1) });
      return svgElement("path", { d, class: "vf-touch", "stroke-width": 16, "data-edge": index });
    });
    this.lines.length = edges.length;
    picture.append(...this.lines, ...touch);
    this.board.style.height = `${high}px`;
    this.board.replaceChildren(picture, ...boxes);
    this.near(this.chosen);
  }

  fillList() {
    const { edges, others, words } = this.data;
    const values = edges.flatMap((edge) => [edge.looks ? 0 : edge.direct, edge.total ?? 0]);
    const [low, high] = [Math.min(0, others, ...values), Math.max(1e-9, others, ...values)];
    const bar = (/** @type {number | null} */ value, /** @type {string} */ text, /** @type {string} */ kind) => {
      const cell = element("span", "vf-evidence-cell", text);
      if (value === null) return cell;
      const [from, to] = [Math.min(value, 0), Math.max(value, 0)];
      const drawn = element("i", `vf-${kind} ${value < 0 ? "vf-lowers" : "vf-raises"}`);
      drawn.style.left = `${(100 * (from - low)) / (high - low)}%`;
      drawn.style.width = `${(100 * (to - from)) / (high - low)}%`;
      const zero = element("b");
      zero.style.left = `${(-100 * low) / (high - low)}%`;
      cell.append(drawn, zero);
      return cell;
    };
    this.rows = edges.map((edge, index) => {
      const row = element("button", `vf-evidence-row vf-depth-${Math.min(edge.depth, 3)}`);
      row.type = "button";
      row.dataset.edge = String(index);
      row.tabIndex = index ? -1 : 0;
      row.title = edge.name;
      row.append(
        element("span", "vf-evidence-name", edge.name),
        bar(edge.looks ? null : edge.direct, edge.shown, "direct"),
        bar(edge.total, edge.total === null ? "–" : withSign(edge.total), "total"),
      );
      return row;
    });
    const head = element("div", "vf-evidence-head");
    head.append(...["edge", "direct", "total"].map((name) => element("span", "", words[name])));
    const rest = element("div", "vf-evidence-row vf-others");
    rest.append(element("span", "vf-evidence-name", words.others), bar(others, withSign(others), "direct"), element("span"));
    this.list.setAttribute("aria-label", words.list_label);
    this.list.replaceChildren(head, ...this.rows, rest);
  }

  fillLegend() {
    const { edges, words } = this.data;
    const kinds = ["raises", "lowers", ...(edges.some((edge) => edge.looks) ? ["looks"] : [])];
    this.legend.replaceChildren(...kinds.map((kind) => {
      const entry = element("span");
      entry.append(element("i", `vf-${kind}`), element("span", "", words[kind]));
      return entry;
    }), element("span", "", words.both));
  }

  /** @param {number | null} edge */
  choose(edge) {
    if (edge === null) return;
    this.chosen = edge;
    this.rows.forEach((row, index) => {
      row.setAttribute("aria-pressed", String(index === edge));
      row.tabIndex = index === edge ? 0 : -1;
    });
    this.note.textContent = this.data.edges[edge].said;
    this.root.dataset.edge = String(edge);
    this.near(edge);
  }

  /** @param {number} edge */
  near(edge) {
    this.lines.forEach((line, index) => line.classList.toggle("vf-near", index === edge));
    this.rows.forEach((row, index) => row.classList.toggle("vf-near", index === edge));
  }

  /** @param {KeyboardEvent} event */
  walk(event) {
    const button = buttonOf(event);
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (!button || !step || isShortcut(event)) return;
    event.preventDefault();
    this.rows[Number(button.dataset.edge) + step]?.focus();
  }

  close() {
    this.watcher.disconnect();
    this.root.remove();
  }
}

/** @param {number} value */
function withSign(value) {
  const text = signed(value, 2);
  return value > 0 && Number(text) ? `+${text}` : text;
}

/** @param {Component<EvidenceData>} component */
export default function evidence(component) {
  return present(Evidence, component);
}
