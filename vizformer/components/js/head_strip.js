// @ts-check
// The heads that are worth a look first: of every habit the one that has it most, above the small maps of all heads.  Until
// they were measured over several texts, those that the text of the picture singles out.

import { buttonOf, element } from "./dom.js";
import { groups, nameIn } from "./head_order.js";
import { paintThumb } from "./head_image.js";
import { isHere } from "./heads.js";
import { fill } from "./text.js";

/** @import { HeadModel, Order, Strip, Theme, Words } from "./types.d.ts" */
/** @import { HeadNames } from "./grid.js" */
/** @typedef {{ layer: number, head: number, what: string, said: string }} Shown */

export class HeadStrip {
  /** @type {HTMLButtonElement[]} */ tiles = [];
  /** @type {HeadModel} */ model;
  /** @type {Theme} */ theme;

  /**
   * @param {(layer: number, head: number) => void} choose
   * @param {(layer: number, head: number) => void} expect a finger or a button goes down
   */
  constructor(choose, expect) {
    this.host = element("div", "vf-strongest");
    this.host.setAttribute("role", "group");
    for (const [name, act] of /** @type {const} */ ([["click", choose], ["pointerdown", expect]])) {
      this.host.addEventListener(name, (event) => {
        const tile = buttonOf(event);
        if (tile) act(Number(tile.dataset.layer), Number(tile.dataset.head));
      });
    }
  }

  /**
   * @param {HeadModel} model
   * @param {Theme} theme
   * @param {HeadNames} names
   * @param {Words} words
   * @param {Strip | null} strip nothing is shown without one
   * @param {Order} order
   */
  show(model, theme, names, words, strip, order) {
    [this.model, this.theme] = [model, theme];
    this.host.hidden = !strip || order !== "habit";
    if (!strip || this.host.hidden) return;
    const focused = /** @type {ShadowRoot | Document} */ (this.host.getRootNode()).activeElement;
    const at = this.tiles.findIndex((tile) => tile === focused);
    const title = strip.texts ? fill(words.strip, { n: strip.texts }) : words.strip_here;
    const resting = strip.texts ? fill(words.strip_resting, { n: strip.resting }) : "";
    this.host.setAttribute("aria-label", title);
    const shown = strip.texts ? measured(strip, names, words) : here(model, names, words);
    this.tiles = shown.map(({ layer, head, what, said }) => {
      const tile = element("button", "vf-pick");
      tile.type = "button";
      Object.assign(tile.dataset, { layer, head });
      tile.title = said;
      tile.setAttribute("aria-label", said);
      tile.append(element("span", "vf-pick-map"), element("span", "vf-pick-name", what));
      return tile;
    });
    const row = element("div", "vf-picks");
    row.append(...this.tiles);
    this.host.hidden = !shown.length && !strip.waits;
    this.host.style.visibility = shown.length ? "" : "hidden";  // its room is kept for what is measured
    this.host.replaceChildren(element("div", "vf-habit", title), row, element("div", "vf-caption", resting));
    if (at >= 0) this.tiles[Math.min(at, this.tiles.length - 1)]?.focus();
    this.paint();
  }

  // Paints the small maps that have come.
  paint() {
    for (const tile of this.tiles) {
      const [layer, head] = [Number(tile.dataset.layer), Number(tile.dataset.head)];
      if (isHere(this.model, layer)) tile.firstElementChild?.replaceChildren(paintThumb(this.model, layer, head, this.theme) ?? "");
    }
  }

  /** @param {number} layer @param {number} head */
  select(layer, head) {
    for (const tile of this.tiles) {
      tile.setAttribute("aria-pressed", String(Number(tile.dataset.layer) === layer && Number(tile.dataset.head) === head));
    }
  }
}

// What was measured over several texts.
/** @param {Strip} strip @param {HeadNames} names @param {Words} words @returns {Shown[]} */
function measured(strip, names, words) {
  return strip.heads.map(({ layer, head, target, mean, low, high }) => {
    const what = words[`strip_${target}`];
    const [value, least, most] = [mean, low, high].map((one) => one.toFixed(2));
    return { layer, head, what, said: fill(words.strip_said, { name: names.both(layer, head), what, value, low: least, high: most, n: strip.texts }) };
  });
}

// The first head of each group of the text itself.
/** @param {HeadModel} model @param {HeadNames} names @param {Words} words @returns {Shown[]} */
function here(model, names, words) {
  return groups(model, "habit").filter(({ habit }) => habit && habit !== "other" && habit !== "rest").map(({ habit, heads: [[layer, head]] }) => {
    return { layer, head, what: words[`strip_${habit === "own" ? "diagonal" : habit}`], said: nameIn(model, "habit", words, names.both(layer, head), layer, head) };
  });
}
