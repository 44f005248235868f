// @ts-check
// The overview: one small map per head, rows are layers, columns are heads, or all in the order of a measure, or in groups
// of those that do the same. Real buttons, so that the keyboard, a screen reader and a finger find them; the pictures are
// canvases of one pixel per cell that CSS enlarges.  Those in sight are painted first, the others in turns of some
// milliseconds.

import { buttonOf, element, focusedIn, isShortcut } from "./dom.js";
import { groups, nameIn, valueOf } from "./head_order.js";
import { paintThumb } from "./head_image.js";
import { isHere } from "./heads.js";
import { within } from "./numbers.js";
import { fill } from "./text.js";

/** @import { HeadModel, Order, Theme, Words } from "./types.d.ts" */
/** @typedef {{ layer(layer: number): string, head(head: number): string }} AxisNames */
/** @typedef {AxisNames & { both(layer: number, head: number): string }} HeadNames */

const TURN = 12;  // ms of painting between two looks at what people do
const REST = 60;  // ms for which a pointer stays on a small map that may be chosen next

export class HeadGrid {
  /** @type {HTMLButtonElement[]} */ tiles = [];
  /** @type {HTMLButtonElement[][]} */ rows = [];
  /** @type {HTMLButtonElement[]} */ unpainted = [];
  /** @type {HeadModel} */ model;
  /** @type {Theme} */ theme;
  /** @type {number | undefined} */ timer;
  /** @type {number | undefined} */ resting;
  /** @type {string | undefined} */ labels;  // every text in it, in their order

  /**
   * @param {HTMLElement} host
   * @param {(layer: number, head: number) => void} choose
   * @param {(layer: number, head: number) => void} [expect] a pointer rests on a head, or a finger or button goes down
   */
  constructor(host, choose, expect = () => {}) {
    this.host = host;
    this.choose = choose;
    const expected = (/** @type {Event} */ event, wait = 0) => {
      clearTimeout(this.resting);
      const tile = buttonOf(event);
      if (tile) this.resting = setTimeout(() => expect(Number(tile.dataset.layer), Number(tile.dataset.head)), wait);
    };
    host.addEventListener("pointerover", (event) => expected(event, REST));
    host.addEventListener("pointerdown", (event) => expected(event));
    host.addEventListener("pointerleave", () => clearTimeout(this.resting));
    host.addEventListener("keydown", (event) => this.walk(event));
    host.addEventListener("click", (event) => {
      const tile = buttonOf(event);
      if (tile) this.choose(Number(tile.dataset.layer), Number(tile.dataset.head));
    });
  }

  // Builds the tiles, and leaves them where they show the same already: another head was chosen, and the small maps came
  // again.  `names` turns indices into labels.  Nothing is painted before `resize`.
  /**
   * @param {HeadModel} model
   * @param {Theme} theme
   * @param {HeadNames} names
   * @param {Words} words
   * @param {Order} order
   */
  show(model, theme, names, words, order) {
    const found = groups(model, order);
    const heads = found.flatMap((group) => group.heads);
    const titles = heads.map(([layer, head]) => nameIn(model, order, words, names.both(layer, head), layer, head));
    const labels = [order, theme.background, words.grid_label, names.layer(0), names.head(0), ...titles].join("\n");
    const same = labels === this.labels && samePictures(model, this.model);
    [this.model, this.theme, this.labels] = [model, theme, labels];
    if (same) return;
    const focused = focusedIn(this.host);
    const corner = element("div", "vf-row");
    corner.setAttribute("aria-hidden", "true");
    corner.append(element("span"), ...Array.from({ length: model.heads }, (_, head) => element("span", "vf-col-name", names.head(head))));
    const rows = order === "layer" ? [corner] : [];
    this.tiles = heads.map(([layer, head], at) => {
      const tile = element("button", "vf-tile");
      tile.type = "button";
      tile.tabIndex = -1;
      tile.setAttribute("role", "gridcell");
      tile.dataset.layer = String(layer);
      tile.dataset.head = String(head);
      tile.title = titles[at];
      tile.setAttribute("aria-label", tile.title);
      return tile;
    });
    this.rows = [];
    let start = 0;
    for (const group of found) {
      const end = start + group.heads.length;
      if (group.habit) {
        const title = element("div", "vf-habit", fill(words[`group_${group.habit}`], { n: group.heads.length }));
        title.setAttribute("aria-hidden", "true");  // each head says it
        rows.push(title);
      }
      for (; start < end; start += this.rows[this.rows.length - 1].length) {
        const row = element("div", "vf-row");
        row.setAttribute("role", "row");
        const [layer, head] = heads[start];
        const name = element("span", "vf-row-name", order === "layer" ? names.layer(layer) : valueOf(model, order, layer, head));
        name.setAttribute("aria-hidden", "true");
        const alike = order === "layer" ? heads.filter(([one]) => one === layer).length : model.heads;
        const tiles = this.tiles.slice(start, Math.min(start + alike, end));
        row.append(name, ...tiles);
        rows.push(row);
        this.rows.push(tiles);
      }
    }
    this.unpainted = [...this.tiles];
    this.host.setAttribute("aria-label", words.grid_label);
    this.host.replaceChildren(...rows);
    if (focused) this.tile(Number(focused.dataset.layer), Number(focused.dataset.head))?.focus();
  }

  /** @param {number} layer @param {number} head */
  tile(layer, head) {
    return this.tiles.find((tile) => Number(tile.dataset.layer) === layer && Number(tile.dataset.head) === head);
  }

  // Paints what is in sight before the rest; called again when something else comes into sight.
  paint() {
    const first = new Set(this.unpainted.filter((tile) => this.sees(tile)));
    this.unpainted = [...first, ...this.unpainted.filter((tile) => !first.has(tile))];
    this.work();
  }

  // Paints for some milliseconds, and goes on after a look at what people do.
  work() {
    clearTimeout(this.timer);
    const end = performance.now() + TURN;
    const ready = this.unpainted.filter((tile) => isHere(this.model, Number(tile.dataset.layer)));
    let at = 0;
    while (at < ready.length && (at === 0 || performance.now() < end)) {
      const tile = ready[at++];
      tile.replaceChildren(paintThumb(this.model, Number(tile.dataset.layer), Number(tile.dataset.head), this.theme) ?? "");
    }
    const painted = new Set(ready.slice(0, at));
    this.unpainted = this.unpainted.filter((tile) => !painted.has(tile));
    if (at < ready.length) this.timer = setTimeout(() => this.work(), 0);
  }

  // Whether a tile is in sight: of the window, and of the box that the grid scrolls in.
  /** @param {HTMLElement} tile */
  sees(tile) {
    const box = tile.getBoundingClientRect();
    const room = (this.host.parentElement ?? this.host).getBoundingClientRect();
    return box.bottom > Math.max(0, room.top) && box.top < Math.min(window.innerHeight, room.bottom);
  }

  /** @param {number} layer @param {number} head */
  select(layer, head) {
    for (const tile of this.tiles) {
      const chosen = Number(tile.dataset.layer) === layer && Number(tile.dataset.head) === head;
      tile.setAttribute("aria-selected", String(chosen));
      tile.tabIndex = chosen ? 0 : -1;
      if (chosen) this.reveal(tile);
    }
  }

  // Scrolls the box around the grid (not the page), where many layers do not fit into it.
  /** @param {HTMLElement} tile */
  reveal(tile) {
    const room = this.host.parentElement;
    if (!room) return;
    const [outer, inner] = [room.getBoundingClientRect(), tile.getBoundingClientRect()];
    if (inner.top >= outer.top && inner.bottom <= outer.bottom) return;
    room.scrollTop += (inner.top + inner.bottom - outer.top - outer.bottom) / 2;
  }

  /** @param {KeyboardEvent} event */
  walk(event) {
    const tile = buttonOf(event);
    if (!tile || isShortcut(event)) return;
    const row = this.rows.findIndex((tiles) => tiles.includes(tile));
    const column = this.rows[row].indexOf(tile);
    /** @type {Record<string, [number, number]>} */
    const steps = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1], Home: [0, -1e6], End: [0, 1e6] };
    const step = steps[event.key];
    if (!step) return;
    event.preventDefault();
    const tiles = this.rows[within(row + step[0], this.rows.length)];
    tiles[within(column + step[1], tiles.length)].focus();
  }

  // The width the grid would like, at most `most`.
  /** @param {number} most */
  width(most) {
    const names = 34;
    return Math.min(most, names + this.model.heads * 66);
  }

  /** @param {number} width */
  resize(width) {
    const { heads, thumbRows, thumbColumns } = this.model;
    const gap = heads > 10 ? 2 : 4;
    const side = Math.max(16, Math.min(64, Math.floor((width - 34) / heads) - gap));
    const height = Math.round(side * Math.max(0.5, Math.min(1.5, thumbRows / thumbColumns)));
    this.host.style.setProperty("--vf-tile-width", `${side}px`);
    this.host.style.setProperty("--vf-tile-height", `${height}px`);
    this.host.style.setProperty("--vf-tile-gap", `${gap}px`);
    this.host.classList.toggle("vf-enlarged", side >= thumbColumns && height >= thumbRows);
    const step = Math.ceil(24 / (side + gap));  // names that would touch are left out
    /** @type {NodeListOf<HTMLElement>} */ const names = this.host.querySelectorAll(".vf-col-name");
    names.forEach((name, head) => { name.style.visibility = head % step ? "hidden" : ""; });
    this.paint();
  }

  close() {
    clearTimeout(this.timer);
    clearTimeout(this.resting);
  }
}

// Whether the small maps of two models are the same; false where they came as whole heads.
/** @param {HeadModel} one @param {HeadModel} other */
function samePictures(one, other) {
  return one.thumbs !== null && one.layers === other.layers && one.heads === other.heads && one.thumbRows === other.thumbRows
    && sameBytes(one.thumbs, other.thumbs) && sameBytes(one.thumbReasons, other.thumbReasons);
}

/** @param {Uint8Array | null} one @param {Uint8Array | null} other */
function sameBytes(one, other) {
  if (one === null || other === null || one === other) return one === other;
  return one.length === other.length && one.every((byte, at) => byte === other[at]);
}
