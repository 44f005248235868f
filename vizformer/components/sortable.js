// @ts-check
// A table whose headings are buttons that sort it.

import { element } from "./js/dom.js";
import { present } from "./js/present.js";
import { fill, visible } from "./js/text.js";

/** @import { Component, Sent } from "./js/types.d.ts" */
/** @typedef {Sent<null> & { headings: string[], rows: (string | number)[][], caption: string }} SortableData */

const DIGITS = 6;

class Sortable {
  /** @type {SortableData} */ data;
  /** @type {{ column: number, down: boolean } | null} */ order = null;
  /** @type {HTMLTableCellElement[]} */ head = [];

  /** @param {HTMLElement} parent */
  constructor(parent) {
    this.root = element("section", "vf-sortable");
    this.note = element("div", "vf-caption");
    this.note.setAttribute("role", "status");
    this.scroll = element("div", "vf-sortable-scroll");
    this.scroll.tabIndex = 0;
    this.scroll.setAttribute("role", "region");
    this.table = element("table");
    this.body = element("tbody");
    this.scroll.append(this.table);
    this.root.append(this.note, this.scroll);
    parent.append(this.root);
  }

  /** @param {Component<SortableData>} component */
  update({ data }) {
    const same = JSON.stringify(this.data?.headings) === JSON.stringify(data.headings);
    this.data = data;
    if (!same) this.order = null;
    this.scroll.setAttribute("aria-label", data.caption);
    const caption = element("caption", "", data.caption);
    this.head = data.headings.map((text, column) => this.heading(text, column));
    const line = element("tr");
    line.append(...this.head);
    const top = element("thead");
    top.append(line);
    this.table.replaceChildren(caption, top, this.body);
    this.show();
    if (!same) this.takeKeyboard();
  }

  // A popover lies at the end of the page: who opened it by the keyboard would have to go through all of the page first.
  takeKeyboard() {
    if (document.activeElement?.closest("[data-testid=stPopover]")) this.scroll.focus({ preventScroll: true });
  }

  /** @param {string} text @param {number} column */
  heading(text, column) {
    const words = this.data.rows.every((row) => typeof row[column] !== "number");
    const cell = element("th", words ? "vf-text" : "");
    cell.scope = "col";
    const button = element("button", "", text);
    button.type = "button";
    button.onclick = () => this.sortBy(column);
    cell.append(button);
    return cell;
  }

  // Numbers begin with the largest, texts with the first letter; the same heading again turns the order round.
  /** @param {number} column */
  sortBy(column) {
    const numbers = this.data.rows.some((row) => typeof row[column] === "number");
    this.order = { column, down: this.order?.column === column ? !this.order.down : numbers };
    this.show();
  }

  show() {
    const { data: { rows, headings, words }, order } = this;
    const shown = [...rows];
    if (order) {
      const { column, down } = order;
      shown.sort((a, b) => (down ? -1 : 1) * compared(a[column], b[column]));
    }
    this.body.replaceChildren(...shown.map(rowOf));
    this.head.forEach((cell, column) => {
      if (order?.column === column) cell.setAttribute("aria-sort", order.down ? "descending" : "ascending");
      else cell.removeAttribute("aria-sort");
    });
    this.note.textContent = order ? fill(order.down ? words.downwards : words.upwards, { column: headings[order.column] }) : words.hint;
  }

  close() {
    this.root.remove();
  }
}

/** @param {(string | number)[]} row */
function rowOf(row) {
  const line = element("tr");
  line.append(...row.map((value) => {
    if (typeof value !== "number") return element("td", "vf-text", value && visible(value));
    return element("td", "", writtenNumber(value));
  }));
  return line;
}

/** @param {number} value */
function writtenNumber(value) {
  return String(Number(value.toPrecision(DIGITS))).replace("-", "−");
}

/** @param {string | number} a @param {string | number} b */
function compared(a, b) {
  if (typeof a === "number" && typeof b === "number") return a - b;
  return String(a).localeCompare(String(b), undefined, { numeric: true });
}

/** @param {Component<SortableData>} component */
export default function sortable(component) {
  return present(Sortable, component);
}
