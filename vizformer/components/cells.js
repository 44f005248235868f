// @ts-check
// A grid of cells, one of which can be chosen. Each cell is a button, so that the keyboard and screen readers know it.

import { cssColour, inkOn, readTheme } from "./js/colours.js";
import { Conversation } from "./js/conversation.js";
import { buttonOf, element, focusedIn, isShortcut } from "./js/dom.js";
import { present } from "./js/present.js";
import { fill, visible } from "./js/text.js";

/** @import { Component, Sent } from "./js/types.d.ts" */
/** @typedef {{ row: number, column: number }} Cell */
/**
 * @typedef {Sent<Cell> & {
 *   rows: string[], columns: string[], values: (number | null)[][] | null, texts: string[][] | null, signed: boolean,
 *   right: Cell | null,
 * }} CellsData
 */

/** @param {Cell | null} a @param {Cell | null} b */
function same(a, b) {
  return a !== null && b !== null && a.row === b.row && a.column === b.column;
}

/** @param {number} value */
function rounded(value) {
  return (Math.abs(value) < 0.005 ? 0 : value).toFixed(2).replace("-", "−");
}

class Cells {
  /** @type {CellsData} */ data;
  /** @type {Cell | null} */ selected = null;

  /** @param {HTMLElement} parent */
  constructor(parent) {
    /** @type {Conversation<Cell>} */ this.conversation = new Conversation();
    this.root = element("section", "vf-cells");
    this.scroll = element("div", "vf-cells-scroll");
    this.grid = element("div", "vf-cells-grid");
    this.grid.setAttribute("role", "grid");
    this.note = element("div", "vf-note");
    this.note.setAttribute("role", "status");
    this.scroll.append(this.grid);
    this.root.append(this.scroll, this.note);
    parent.append(this.root);
    this.grid.addEventListener("click", (event) => {
      const cell = this.cellOf(buttonOf(event));
      if (cell && !this.data.right) this.choose(cell);
    });
    for (const kind of ["pointerover", "focusin"]) {
      this.grid.addEventListener(kind, (event) => this.describe(this.cellOf(buttonOf(event))));
    }
    for (const kind of ["pointerleave", "focusout"]) this.grid.addEventListener(kind, () => this.describe(null));
    this.grid.addEventListener("keydown", (event) => this.walk(event));
  }

  /** @param {Component<CellsData>} component */
  update(component) {
    const { data } = component;
    const focused = this.cellOf(focusedIn(this.grid));
    this.data = data;
    this.conversation.listen(component);
    const wish = this.conversation.value ?? null;
    this.selected = wish && wish.row < data.rows.length && wish.column < data.columns.length ? wish : null;
    this.grid.setAttribute("aria-label", data.words.grid_label);
    const longest = Math.max(0, ...(data.texts ?? []).flat().map((text) => [...text].reduce((n, sign) => n + (sign > "\u2e80" ? 2 : 1), 0)));
    const least = data.texts ? Math.min(4, 0.6 + 0.45 * longest) : 1.9; // rem: numbers of twelve heads fit beside another picture
    this.grid.style.gridTemplateColumns = `minmax(min-content, max-content) repeat(${data.columns.length}, minmax(${least}rem, ${data.texts ? 7 : 5}rem))`;
    const head = this.line([element("span", "vf-cells-corner"), ...data.columns.map((text) => this.label(text, "columnheader"))]);
    this.grid.replaceChildren(head, ...data.rows.map((text, row) => this.line([
      this.label(text, "rowheader"), ...data.columns.map((_, column) => this.cell({ row, column })),
    ])));
    this.showSelected();
    if (focused) this.focus(focused);
    this.describe(null);
  }

  /** @param {HTMLElement[]} parts */
  line(parts) {
    const line = element("div", "vf-cells-line");
    line.setAttribute("role", "row");
    line.append(...parts);
    return line;
  }

  /** @param {string} text @param {string} role */
  label(text, role) {
    const label = element("bdi", `vf-cells-${role}`, visible(text));
    label.setAttribute("role", role);
    return label;
  }

  /** @param {Cell} cell */
  cell(cell) {
    const { values, texts, signed, right } = this.data;
    const button = element("button", "vf-cell");
    button.type = "button";
    button.dataset.row = String(cell.row);
    button.dataset.column = String(cell.column);
    button.setAttribute("role", "gridcell");
    button.setAttribute("aria-label", this.said(cell));
    const value = values && values[cell.row][cell.column];
    if (value !== null) {
      const { weights, scores } = readTheme(this.root);
      const colour = signed
        ? scores[Math.round((Math.max(-1, Math.min(1, value)) + 1) * 127)]
        : weights[Math.round(Math.sqrt(Math.max(0, Math.min(1, value))) * 255)];
      button.style.background = cssColour(colour);
      button.style.color = inkOn(colour);
      button.textContent = texts ? visible(texts[cell.row][cell.column]) : rounded(value);
      if (texts) button.classList.add("vf-says");
    }
    if (same(cell, right)) button.classList.add("vf-right");
    return button;
  }

  /** @param {Cell} cell */
  said(cell) {
    const { words, rows, columns, values, texts, right } = this.data;
    const { row, column } = cell;
    const place = fill(words.cell, { row, row_token: rows[row], column, column_token: columns[column] });
    const named = same(cell, right) ? fill(words.right, { cell: place }) : place;
    const value = values && values[row][column];
    if (value === null) return named;
    if (texts) return fill(words.text, { cell: named, text: visible(texts[row][column]), value: value.toFixed(4) });
    return fill(words.value, { cell: named, value: value.toFixed(4) });
  }

  /** @param {Element | null} button @returns {Cell | null} */
  cellOf(button) {
    if (!(button instanceof HTMLElement) || button.dataset.row === undefined) return null;
    return { row: Number(button.dataset.row), column: Number(button.dataset.column) };
  }

  showSelected() {
    const start = this.selected ?? { row: 0, column: 0 };
    for (const button of this.grid.querySelectorAll("button")) {
      const cell = this.cellOf(button);
      button.setAttribute("aria-selected", String(same(cell, this.selected)));
      button.tabIndex = same(cell, start) ? 0 : -1;
    }
    this.root.dataset.selected = this.selected ? `${this.selected.row},${this.selected.column}` : "";
  }

  /** @param {Cell} cell */
  choose(cell) {
    this.selected = cell;
    this.showSelected();
    this.conversation.tell(cell, 0);
    this.describe(cell);
  }

  // The line below: about the cell pointed at or focused, else about the chosen one.
  /** @param {Cell | null} cell */
  describe(cell) {
    const about = cell ?? this.selected;
    this.note.textContent = about ? this.said(about) : this.data.words.none;
  }

  /** @param {KeyboardEvent} event */
  walk(event) {
    const cell = this.cellOf(buttonOf(event));
    /** @type {Record<string, [number, number]>} */
    const steps = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0], Home: [0, -1e6], End: [0, 1e6] };
    if (!cell || !(event.key in steps) || isShortcut(event)) return;
    event.preventDefault();
    const [down, right] = steps[event.key];
    this.focus({ row: cell.row + down, column: cell.column + right });
  }

  /** @param {Cell} cell */
  focus(cell) {
    const row = Math.max(0, Math.min(this.data.rows.length - 1, cell.row));
    const column = Math.max(0, Math.min(this.data.columns.length - 1, cell.column));
    const button = this.grid.querySelector(`[data-row="${row}"][data-column="${column}"]`);
    if (button instanceof HTMLElement) button.focus();
  }

  close() {
    this.root.remove();
  }
}

/** @param {Component<CellsData>} component */
export default function cells(component) {
  return present(Cells, component);
}
