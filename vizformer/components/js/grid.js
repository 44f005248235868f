// @ts-check
// The overview: one small map per head, rows are layers, columns are heads. Real buttons, so that the keyboard, a
// screen reader and a finger find them; the pictures are canvases of one pixel per cell that CSS enlarges.

import { buttonOf, element, focusedIn, isShortcut } from "./dom.js";
import { paintThumb } from "./heads.js";

/** @import { HeadModel, Theme } from "./types.d.ts" */
/** @typedef {{ layer(layer: number): string, head(head: number): string }} AxisNames */
/** @typedef {AxisNames & { both(layer: number, head: number): string }} HeadNames */

export class HeadGrid {
  /** @type {HTMLButtonElement[][]} */ tiles = [];
  /** @type {HeadModel} */ model;

  /** @param {HTMLElement} host @param {(layer: number, head: number) => void} choose */
  constructor(host, choose) {
    this.host = host;
    this.choose = choose;
    host.addEventListener("keydown", (event) => this.walk(event));
    host.addEventListener("click", (event) => {
      const tile = buttonOf(event);
      if (tile) this.choose(Number(tile.dataset.layer), Number(tile.dataset.head));
    });
  }

  // Builds the tiles anew; `names` turns indices into labels.
  /**
   * @param {HeadModel} model
   * @param {Theme} theme
   * @param {HeadNames} names
   * @param {string} label
   */
  show(model, theme, names, label) {
    const focused = focusedIn(this.host);
    this.model = model;
    this.tiles = [];
    const corner = element("div", "vf-row");
    corner.setAttribute("aria-hidden", "true");
    corner.append(element("span"), ...Array.from({ length: model.heads }, (_, head) => element("span", "vf-col-name", names.head(head))));
    const rows = [corner];
    for (let layer = 0; layer < model.layers; layer++) {
      const row = element("div", "vf-row");
      row.setAttribute("role", "row");
      const name = element("span", "vf-row-name", names.layer(layer));
      name.setAttribute("aria-hidden", "true");
      row.append(name);
      this.tiles.push([]);
      for (let head = 0; head < model.heads; head++) {
        const tile = element("button", "vf-tile");
        tile.type = "button";
        tile.tabIndex = -1;
        tile.setAttribute("role", "gridcell");
        tile.dataset.layer = String(layer);
        tile.dataset.head = String(head);
        tile.title = names.both(layer, head);
        tile.setAttribute("aria-label", tile.title);
        tile.append(paintThumb(model, layer, head, theme) ?? "");
        this.tiles[layer].push(tile);
        row.append(tile);
      }
      rows.push(row);
    }
    this.host.setAttribute("aria-label", label);
    this.host.replaceChildren(...rows);
    if (focused) this.focus(Number(focused.dataset.layer), Number(focused.dataset.head));
  }

  /** @param {number} layer @param {number} head */
  select(layer, head) {
    for (const tile of this.tiles.flat()) {
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

  /** @param {number} layer @param {number} head */
  focus(layer, head) {
    const row = this.tiles[Math.max(0, Math.min(this.model.layers - 1, layer))];
    row[Math.max(0, Math.min(this.model.heads - 1, head))].focus();
  }

  /** @param {KeyboardEvent} event */
  walk(event) {
    const tile = buttonOf(event);
    /** @type {Record<string, [number, number]>} */
    const steps = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1], Home: [0, -1e6], End: [0, 1e6] };
    const step = steps[event.key];
    if (!tile || !step || isShortcut(event)) return;
    event.preventDefault();
    this.focus(Number(tile.dataset.layer) + step[0], Number(tile.dataset.head) + step[1]);
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
  }
}
