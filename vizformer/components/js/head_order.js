// @ts-check
// The order of the small maps: as they stand in the model, or by a number that was measured on the whole text.

import { element, option } from "./dom.js";
import { isHere } from "./heads.js";
import { fill } from "./text.js";

/** @import { HeadModel, Measure, Order, Words } from "./types.d.ts" */

/** @type {Measure[]} */
const MEASURES = ["entropy", "distance", "first"];

// The measures that came with the heads.
/** @param {HeadModel} model @returns {Order[]} */
export function ordersOf(model) {
  return ["layer", ...MEASURES.filter((name) => model.measures[name])];
}

// All heads as [layer, head], the largest first; heads that are alike keep the order of the model.
/** @param {HeadModel} model @param {Order} order @returns {[number, number][]} */
export function sorted(model, order) {
  const { layers, heads } = model;
  /** @type {[number, number][]} */
  const all = Array.from({ length: layers * heads }, (_, at) => [Math.floor(at / heads), at % heads]);
  const values = order === "layer" || model.layersHere?.includes(0) ? null : model.measures[order];  // all have to be here
  if (values) all.sort(([a, b], [c, d]) => values[c * heads + d] - values[a * heads + b]);
  return all;
}

// What is said of a head in this order: its name, and the number that it stands there for.
/** @param {HeadModel} model @param {Order} order @param {Words} words @param {string} name @param {number} layer @param {number} head */
export function nameIn(model, order, words, name, layer, head) {
  return order === "layer" ? name : fill(words[`measure_${order}`], { name, value: valueOf(model, order, layer, head) });
}

// The number of a head in this order, short enough for the edge of the grid; "" where they stand by layer.
/** @param {HeadModel} model @param {Order} order @param {number} layer @param {number} head */
export function valueOf(model, order, layer, head) {
  const values = order === "layer" ? null : model.measures[order];
  if (!values || !isHere(model, layer)) return "";
  const value = values[layer * model.heads + head];
  return value.toFixed(value < 10 ? 2 : value < 100 ? 1 : 0);
}

// The box in which the order is chosen; empty where nothing was measured.
export class OrderBox {
  /** @param {(order: Order) => void} choose */
  constructor(choose) {
    this.host = element("label", "vf-order");
    this.name = element("span");
    this.box = element("select");
    this.box.onchange = () => choose(/** @type {Order} */ (this.box.value));
    this.host.append(this.name, this.box);
  }

  /** @param {HeadModel} model @param {Words} words @param {Order} order */
  show(model, words, order) {
    const orders = ordersOf(model);
    this.host.hidden = orders.length < 2;
    this.name.textContent = words.order;
    this.box.replaceChildren(...orders.map((name) => option(name, words[`order_${name}`], name === order)));
  }
}
