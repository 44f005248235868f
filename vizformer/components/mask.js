// @ts-check
// The mask view: panels of one grid. Rows are queries, columns are keys; the same cell is lit in every panel, and the
// line below says what it is. Cells can be blocked and opened by hand where the page asks for that.

import { cssColour, inkOn, readTheme } from "./js/colours.js";
import { Conversation } from "./js/conversation.js";
import { element, isShortcut } from "./js/dom.js";
import { readColumn, signed, within } from "./js/numbers.js";
import { present } from "./js/present.js";
import { fill, visible } from "./js/text.js";

/** @import { Component, Sent, SentColumn, Theme } from "./js/types.d.ts" */
/** @typedef {"mask" | "scores" | "weights"} Panel */
/** @typedef {{ query: number, key: number }} Cell */
/** @typedef {{ flips: [number, number][] }} Painted */
/**
 * @typedef {Sent<Painted> & {
 *   queries: string[], keys: string[], unused: number[], panels: Panel[], paintable: boolean, reasons: SentColumn,
 *   own?: SentColumn, kept?: SentColumn, scores?: SentColumn, weights?: SentColumn,
 * }} MaskData
 */

const NUMBERS_UP_TO = { mask: 12, scores: 10, weights: 10 };
const ROOM = 28;  // letters of the longest key, times keys, that stand side by side over a panel (a Chinese one counts as two)
const PAINTED = 4;
/** @type {Map<number, [string, string]>} */
const STYLES = new Map();

class MaskPanels {
  /** @type {MaskData} */ data;
  /** @type {Theme} */ theme;
  /** @type {number} */ rows;
  /** @type {number} */ columns;
  /** @type {{ scores: Float32Array | null, weights: Float32Array | null }} */ numbers;
  /** @type {number} */ reach;  // the largest score, positive or negative
  /** @type {Uint8Array | null} */ kept;
  /** @type {Uint8Array} */ sentReasons;
  /** @type {Uint8Array} */ own;
  /** @type {string} */ shape;
  /** @type {{ kind: Panel, panel: HTMLElement, caption: HTMLElement, cells: HTMLElement[] }[]} */ grids;
  /** @type {Cell | null} */ cursor = null;
  /** @type {Set<number>} */ flips = new Set();

  /** @param {HTMLElement} parent */
  constructor(parent) {
    /** @type {Conversation<Painted>} */ this.conversation = new Conversation();
    this.root = element("section", "vf-mask");
    this.panels = element("div", "vf-panels");
    this.panels.tabIndex = 0;
    this.panels.setAttribute("role", "application");
    this.legend = element("div", "vf-mask-legend");
    this.readout = element("div", "vf-readout");
    this.readout.setAttribute("role", "status");
    this.readout.setAttribute("aria-live", "polite");
    this.root.append(this.panels, this.readout, this.legend);
    parent.append(this.root);
    this.listen();
  }

  /** @param {Component<MaskData>} component */
  update(component) {
    const { data } = component;
    const types = data.types ?? {};
    this.data = data;
    [this.rows, this.columns] = [data.queries.length, data.keys.length];
    this.numbers = {
      scores: readColumn(data.scores, types.scores),
      weights: readColumn(data.weights, types.weights),
    };
    this.kept = readColumn(data.kept, types.kept);
    this.sentReasons = readColumn(data.reasons, types.reasons) ?? new Uint8Array(this.rows * this.columns);
    this.own = readColumn(data.own, types.own) ?? this.sentReasons;
    const obeyed = this.conversation.listen(component);
    if (obeyed) this.flips = this.readFlips();
    if (this.cursor && (this.cursor.query >= this.rows || this.cursor.key >= this.columns)) this.cursor = null;
    this.theme = readTheme(this.root);
    this.panels.setAttribute("aria-label", data.paintable ? data.words.paint_label : data.words.view_label);
    this.root.classList.toggle("vf-paintable", data.paintable);
    const shape = JSON.stringify([data.queries, data.keys, data.unused, data.panels]);
    if (shape !== this.shape) this.build();
    this.shape = shape;
    this.reach = Math.max(1e-9, ...Array.from(this.numbers.scores ?? [], Math.abs));
    this.grids.forEach((grid) => {
      grid.caption.textContent = data.words[grid.kind];
      grid.cells.forEach((cell, at) => this.paintCell(grid.kind, cell, at));
    });
    this.showLegend();
    this.describe(this.cursor);
    this.root.dataset.drawn = String(Number(this.root.dataset.drawn ?? 0) + 1);
  }

  readFlips() {
    const pairs = this.conversation.value?.flips ?? [];
    return new Set(pairs.filter(([q, k]) => q < this.rows && k < this.columns).map(([q, k]) => this.at(q, k)));
  }

  /** @param {number} query @param {number} key */
  at(query, key) {
    return query * this.columns + key;
  }

  // Why a cell is blocked now, 0 where it is open: as sent, or as painted since.
  /** @param {number} at */
  reason(at) {
    if (!this.data.paintable) return this.sentReasons[at];
    const blocked = (this.own[at] > 0) !== this.flips.has(at);
    return blocked ? this.own[at] || PAINTED : 0;
  }

  // The cells; their numbers and colours come after.
  build() {
    this.grids = this.data.panels.map((kind) => {
      const panel = element("div", this.columns > 16 ? "vf-panel vf-many" : "vf-panel");
      const grid = element("div", "vf-cells");
      grid.style.setProperty("--n", String(this.columns));
      grid.style.gridTemplateColumns = `max-content repeat(${this.columns}, minmax(0, 1fr))`;
      const widest = Math.max(...this.data.keys.map((token) => [...token].reduce((sum, one) => sum + (one > "\u2e80" ? 2 : 1), 0)));
      const tall = this.columns > 12 || widest * this.columns > ROOM;
      grid.append(element("span", "vf-corner"));
      this.data.keys.forEach((token) => {
        const name = element("span", tall ? "vf-key vf-tall" : "vf-key");
        name.append(element("bdi", "", visible(token)));
        grid.append(name);
      });
      /** @type {HTMLElement[]} */ const cells = [];
      for (let query = 0; query < this.rows; query++) {
        const name = element("span", this.data.unused.includes(query) ? "vf-query vf-unused" : "vf-query");
        name.append(element("bdi", "", visible(this.data.queries[query])));
        grid.append(name);
        for (let key = 0; key < this.columns; key++) {
          const cell = element("span", "vf-cell");
          cell.dataset.query = String(query);
          cell.dataset.key = String(key);
          cells.push(cell);
          grid.append(cell);
        }
      }
      const caption = element("div", "vf-caption");
      panel.append(caption, grid);
      return { kind, panel, caption, cells };
    });
    this.panels.replaceChildren(...this.grids.map(({ panel }) => panel));
  }

  /** @param {Panel} kind @param {HTMLElement} cell @param {number} at */
  paintCell(kind, cell, at) {
    const blocked = this.reason(at) > 0;
    const numbered = Math.max(this.rows, this.columns) <= NUMBERS_UP_TO[kind];
    cell.className = "vf-cell";
    if (kind === "mask") {
      cell.classList.toggle("vf-blocked", blocked);
      if (!blocked && this.kept?.[at]) cell.classList.add(`vf-kept-${this.kept[at]}`);
      cell.textContent = numbered ? (blocked ? "−∞" : "0") : "";
      return;
    }
    const value = this.numbers[kind]?.[at] ?? NaN;
    if (kind === "weights" && blocked) {
      cell.classList.add("vf-blocked");
      cell.textContent = numbered ? "0" : "";
      cell.style.background = "";
      cell.style.color = "";
      return;
    }
    const { weights, scores } = this.theme;
    const colour = kind === "weights"
      ? weights[Math.round(255 * Math.sqrt(Math.min(1, Math.max(0, value))))]
      : scores[Math.round(127 + (127 * value) / this.reach)];
    const [background, ink] = this.styleOf(colour);
    cell.style.background = background;
    cell.style.color = ink;
    cell.textContent = numbered ? (kind === "weights" ? value.toFixed(2) : signed(value, 1)) : "";
  }

  // The same few hundred colours come up thousands of times.
  /** @param {number} colour */
  styleOf(colour) {
    const style = STYLES.get(colour) ?? [cssColour(colour), inkOn(colour)];
    STYLES.set(colour, style);
    return style;
  }

  showLegend() {
    const { words } = this.data;
    const reasons = new Set(Array.from(this.sentReasons, (_, at) => this.reason(at)).filter((reason) => reason > 0));
    const kept = new Set(Array.from(this.kept ?? []).filter((why) => why > 0));
    const entry = (/** @type {string} */ className, /** @type {string} */ text) => {
      const item = element("span", "vf-entry");
      item.append(element("span", `vf-cell ${className}`), element("span", "", text));
      return item;
    };
    const open = kept.size
      ? [...kept].sort().map((why) => entry(`vf-kept-${why}`, words[`kept_${why}`]))
      : [entry("", words.legend_open)];
    const blocked = [...reasons].sort().map((reason) =>
      entry("vf-blocked", fill(words.legend_blocked, { reason: words[`reason_${reason}`] })));
    this.legend.replaceChildren(...open, ...blocked);
  }

  // Marks the cell under the pointer or the keyboard in every panel.
  light() {
    this.panels.querySelectorAll(".vf-lit").forEach((cell) => cell.classList.remove("vf-lit"));
    if (!this.cursor) return;
    const at = this.at(this.cursor.query, this.cursor.key);
    this.grids.forEach(({ cells }) => cells[at].classList.add("vf-lit"));
    this.root.dataset.cell = `${this.cursor.query},${this.cursor.key}`;
  }

  /** @param {Cell | null} cell */
  describe(cell) {
    this.cursor = cell;
    this.light();
    if (!cell) {
      this.readout.textContent = this.data.paintable ? this.data.words.paint_label : this.data.words.view_label;
      return;
    }
    const { words, queries, keys } = this.data;
    const at = this.at(cell.query, cell.key);
    const reason = this.reason(at);
    const kept = this.kept?.[at];
    const sentence = reason ? words.blocked_cell : kept ? words.kept_cell : words.open_cell;
    const parts = [fill(sentence, {
      query: cell.query,
      query_token: queries[cell.query],
      key: cell.key,
      key_token: keys[cell.key],
      reason: words[reason ? `reason_${reason}` : `kept_${kept}`] ?? "",
    })];
    const { scores, weights } = this.numbers;
    if (scores) parts.push(fill(words.score_part, { score: signed(scores[at], 4), mask: reason ? "−∞" : "0" }));
    if (weights) {
      const blind = keys.every((_, key) => this.reason(this.at(cell.query, key)) > 0);
      parts.push(blind ? words.blind_part : fill(words.weight_part, { weight: reason ? "0" : weights[at].toFixed(4) }));
    }
    if (this.data.unused.includes(cell.query)) parts.push(words.unused_row);
    this.readout.textContent = parts.join(" · ");
  }

  /** @param {Cell} cell @param {boolean} [wanted] */
  toggle(cell, wanted) {
    const at = this.at(cell.query, cell.key);
    const blocked = this.reason(at) > 0;
    if (wanted !== undefined && blocked === wanted) return;
    if (this.flips.has(at)) this.flips.delete(at);
    else this.flips.add(at);
    this.grids.forEach((grid) => { if (grid.kind !== "scores") this.paintCell(grid.kind, grid.cells[at], at); });
    this.showLegend();
    this.describe(cell);
    /** @type {[number, number][]} */
    const flips = [...this.flips].map((i) => [Math.floor(i / this.columns), i % this.columns]);
    this.conversation.tell({ flips });
  }

  listen() {
    const under = (/** @type {PointerEvent} */ event) => {
      const root = /** @type {Document | ShadowRoot} */ (this.root.getRootNode());
      /** @type {HTMLElement | null | undefined} */
      const cell = root.elementFromPoint(event.clientX, event.clientY)?.closest(".vf-panels .vf-cell");
      return cell ? { query: Number(cell.dataset.query), key: Number(cell.dataset.key) } : null;
    };
    /** @type {boolean | null} */ let brush = null;  // what a stroke does: true blocks, false opens
    this.panels.addEventListener("pointerdown", (event) => {
      const cell = under(event);
      if (!cell || event.button !== 0) return;
      this.describe(cell);
      if (!this.data.paintable) return;
      brush = !(this.reason(this.at(cell.query, cell.key)) > 0);
      this.toggle(cell, brush);
    });
    this.panels.addEventListener("pointermove", (event) => {
      const cell = under(event);
      if (!cell) return;
      if (cell.query !== this.cursor?.query || cell.key !== this.cursor?.key) this.describe(cell);
      if (brush !== null && event.buttons & 1) this.toggle(cell, brush);
    });
    const lift = () => { brush = null; };
    this.panels.addEventListener("pointerup", lift);
    this.panels.addEventListener("pointercancel", lift);
    this.panels.addEventListener("pointerleave", lift);
    this.panels.addEventListener("focus", () => { if (!this.cursor) this.describe({ query: 0, key: 0 }); });
    this.panels.addEventListener("keydown", (event) => {
      if (isShortcut(event)) return;
      const cell = this.cursor ?? { query: 0, key: 0 };
      /** @type {Record<string, [number, number]>} */
      const moves = {
        ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1], Home: [0, -1e6], End: [0, 1e6],
      };
      if (event.key in moves) {
        event.preventDefault();
        event.stopPropagation();
        const [down, right] = moves[event.key];
        this.describe({ query: within(cell.query + down, this.rows), key: within(cell.key + right, this.columns) });
      } else if ((event.key === " " || event.key === "Enter") && this.data.paintable) {
        event.preventDefault();
        this.toggle(cell);
      }
    });
  }

  close() {
    this.root.remove();
  }
}

/** @param {Component<MaskData>} component */
export default function mask(component) {
  return present(MaskPanels, component);
}
