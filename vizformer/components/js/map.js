// @ts-check
// The large map of one head: two canvases, one for what changes with the head, one for what follows the pointer.

import { context2d, element } from "./dom.js";
import { drawMap, drawMarks } from "./draw.js";
import { listenToMap } from "./gestures.js";
import { layoutMap } from "./map_layout.js";

/** @import { Cell, MapLayout, MapScene } from "./types.d.ts" */

export class HeatMap {
  /** @type {MapScene} */ scene;
  /** @type {MapLayout} */ layout;
  /** @type {{ queries: number[], keys: number[] }} */ widths;
  /** @type {Cell | null} */ cursor;
  /** @type {number} */ density;
  /** @type {number} */ zoom;
  /** @type {number} */ x;
  /** @type {number} */ y;

  /**
   * @param {HTMLElement} host
   * @param {{ point(cell: Cell | null): void, choose(query: number, key: number | null): void, zoomed(): void }} on
   */
  constructor(host, on) {
    this.host = host;
    this.on = on;
    this.base = element("canvas", "vf-base");
    this.over = element("canvas", "vf-over");
    this.over.tabIndex = 0;
    this.over.setAttribute("role", "application");
    host.append(this.base, this.over);
    this.resetWindow();
    this.cursor = null;
    listenToMap(this);
  }

  resetWindow() {
    this.zoom = 1;
    this.x = 0;  // first cell in sight
    this.y = 0;
  }

  /** @param {MapScene} scene */
  show(scene) {
    const before = this.scene;
    this.scene = scene;
    const { model } = scene;
    if (!before || before.model.queries !== model.queries || before.model.keys !== model.keys) {
      this.resetWindow();
      this.cursor = null;
    }
    if (!before || before.queryTokens !== scene.queryTokens || before.keyTokens !== scene.keyTokens || before.theme.font !== scene.theme.font) {
      const context = context2d(this.base);
      context.font = `600 100px ${scene.theme.font}`;  // the widest a label gets: chosen ones are bold
      /** @type {Map<string, number>} */ const known = new Map();  // a long text says most of its tokens again
      const widthOf = (/** @type {string} */ token) => {
        const width = known.get(token) ?? context.measureText(token).width / 100;
        known.set(token, width);
        return width;
      };
      const measure = (/** @type {string[]} */ tokens) => tokens.map(widthOf);
      this.widths = { queries: measure(scene.queryTokens), keys: measure(scene.keyTokens) };
    }
  }

  /** @param {number} width @param {number} height */
  resize(width, height) {
    this.layout = layoutMap(this.scene.model, this.widths, width, height);
    this.density = window.devicePixelRatio || 1;
    for (const canvas of [this.base, this.over]) {
      canvas.width = Math.round(this.layout.width * this.density);
      canvas.height = Math.round(this.layout.height * this.density);
      canvas.style.width = `${this.layout.width}px`;
      canvas.style.height = `${this.layout.height}px`;
    }
    this.host.style.height = `${this.layout.height}px`;
    const { left, top, cellWidth, cellHeight } = this.layout;
    this.host.dataset.plot = [left, top, cellWidth, cellHeight].join(" ");  // where a test finds a cell
    this.zoom = Math.min(this.zoom, this.layout.zoomMost);
    this.keepInside();
  }

  get zoomable() {
    return this.layout.zoomMost > 2.2;
  }

  get pitchX() {
    return this.layout.cellWidth * this.zoom;
  }

  get pitchY() {
    return this.layout.cellHeight * this.zoom;
  }

  // Cells per side that share a pixel of the screen, a power of two; 1 where each has one of its own.
  get pool() {
    const side = Math.min(this.pitchX, this.pitchY) * this.density;
    return Math.min(this.scene.mostPooled, side >= 1 ? 1 : 2 ** Math.ceil(Math.log2(1 / side)));
  }

  keepInside() {
    const { queries, keys } = this.scene.model;
    this.x = Math.max(0, Math.min(keys - keys / this.zoom, this.x));
    this.y = Math.max(0, Math.min(queries - queries / this.zoom, this.y));
    this.over.style.touchAction = this.zoom > 1 ? "none" : "pan-y";
  }

  // Enlarges around a point of the plot, given in px from its corner.
  /** @param {number} factor @param {number} [px] @param {number} [py] */
  zoomBy(factor, px = this.layout.plotWidth / 2, py = this.layout.plotHeight / 2) {
    const before = this.zoom;
    this.zoom = Math.max(1, Math.min(this.layout.zoomMost, this.zoom * factor));
    const { cellWidth, cellHeight } = this.layout;
    this.x += px / (cellWidth * before) - px / (cellWidth * this.zoom);
    this.y += py / (cellHeight * before) - py / (cellHeight * this.zoom);
    this.keepInside();
    this.draw();
    this.on.zoomed();
  }

  reset() {
    this.resetWindow();
    this.keepInside();
    this.draw();
    this.on.zoomed();
  }

  /** @param {number} px @param {number} py */
  pan(px, py) {
    this.x -= px / this.pitchX;
    this.y -= py / this.pitchY;
    this.keepInside();
    this.draw();
  }

  // The cell under a point of the canvas: key is null on a row's label; null elsewhere.
  /** @param {number} px @param {number} py @returns {Cell | null} */
  cellUnder(px, py) {
    const { left, top, plotWidth, plotHeight } = this.layout;
    const { queries, keys } = this.scene.model;
    if (py < top || py >= top + plotHeight || px >= left + plotWidth || px < 0) return null;
    const query = Math.min(queries - 1, Math.floor((py - top) / this.pitchY + this.y));
    return { query, key: px < left ? null : Math.min(keys - 1, Math.floor((px - left) / this.pitchX + this.x)) };
  }

  // Puts the cursor on a cell (null: nowhere), and moves an enlarged window so that the cell is in sight.
  /** @param {Cell | null} cell @param {boolean} [follow] */
  point(cell, follow = false) {
    const same = cell === this.cursor || (cell && this.cursor && cell.query === this.cursor.query && cell.key === this.cursor.key);
    if (same) return;
    this.cursor = cell;
    if (follow && cell && cell.key !== null && this.zoom > 1) {
      const [x, y] = [this.x, this.y];
      const { queries, keys } = this.scene.model;
      this.x = Math.min(Math.max(this.x, cell.key + 1 - keys / this.zoom), cell.key);
      this.y = Math.min(Math.max(this.y, cell.query + 1 - queries / this.zoom), cell.query);
      this.keepInside();
      if (x !== this.x || y !== this.y) drawMap(this);
    }
    drawMarks(this);
    this.on.point(cell);
  }

  // Moves an enlarged window so that a row is in sight.
  /** @param {number} query */
  reveal(query) {
    if (this.zoom <= 1) return;
    this.y = query - this.scene.model.queries / this.zoom / 2;
    this.keepInside();
    this.draw();
  }

  draw() {
    drawMap(this);
    drawMarks(this);
  }
}
