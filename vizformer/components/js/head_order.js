// @ts-check
// The order of the small maps: as they stand in the model, by what the heads do, or by a number that was measured on the
// whole text.

import { element, option } from "./dom.js";
import { isHere } from "./heads.js";
import { fill } from "./text.js";

/** @import { Habit, HeadModel, Order, Words } from "./types.d.ts" */
/** @typedef {{ habit: Habit | null, heads: [number, number][] }} Group */

/** @type {("entropy" | "distance" | "first")[]} */
const MEASURES = ["entropy", "distance", "first"];
/** @type {Habit[]} */
const HABITS = ["previous", "own", "next", "other", "rest"];  // where most of them have nothing to do, stands last
const CLEAR = 0.5;  // of its attention has a habit to get

// The orders for which measures came with the heads.
/** @param {HeadModel} model @returns {Order[]} */
export function ordersOf(model) {
  return ["layer", ...(model.measures.own ? [/** @type {const} */ ("habit")] : []), ...MEASURES.filter((name) => model.measures[name])];
}

// All heads as [layer, head], those with the largest number first; heads that are alike keep the order of the model.  By
// habit in groups, else in one.
/** @param {HeadModel} model @param {Order} order @returns {Group[]} */
export function groups(model, order) {
  const { layers, heads } = model;
  /** @type {[number, number][]} */
  const all = Array.from({ length: layers * heads }, (_, at) => [Math.floor(at / heads), at % heads]);
  const there = all.filter(([layer, head]) => !Number.isNaN(model.measures.own?.[layer * heads + head] ?? 0));  // layers may have fewer
  if (order === "layer" || model.layersHere?.includes(0)) return [{ habit: null, heads: there }];  // all have to be here
  const number = numberIn(model, order);
  there.sort(([a, b], [c, d]) => number(c, d) - number(a, b));
  if (order !== "habit") return [{ habit: null, heads: there }];
  return HABITS.map((habit) => ({ habit, heads: there.filter(([layer, head]) => habitOf(model, layer, head).habit === habit) }))
    .filter((group) => group.heads.length > 0);
}

// What a head does with at least half of its attention, and how much that is.
/** @param {HeadModel} model @param {number} layer @param {number} head @returns {{ habit: Habit, share: number }} */
function habitOf(model, layer, head) {
  const at = layer * model.heads + head;
  const { previous, own, next, first, last } = model.measures;
  /** @type {[Habit, number][]} */
  const shares = [["previous", previous?.[at] ?? 0], ["own", own?.[at] ?? 0], ["next", next?.[at] ?? 0], ["rest", (first?.[at] ?? 0) + (last?.[at] ?? 0)]];
  const [habit, share] = shares.reduce((most, one) => (one[1] > most[1] ? one : most));
  return { habit: share < CLEAR ? "other" : habit, share };
}

// The number by which an order sorts.
/** @param {HeadModel} model @param {Order} order @returns {(layer: number, head: number) => number} */
function numberIn(model, order) {
  if (order === "habit") return (layer, head) => habitOf(model, layer, head).share;
  const values = order === "layer" ? null : model.measures[order];
  return (layer, head) => values?.[layer * model.heads + head] ?? NaN;
}

// What is said of a head in this order: its name, and the number that it stands there for.
/** @param {HeadModel} model @param {Order} order @param {Words} words @param {string} name @param {number} layer @param {number} head */
export function nameIn(model, order, words, name, layer, head) {
  if (order === "layer") return name;
  const measure = order === "habit" ? habitOf(model, layer, head).habit : order;
  return fill(words[`measure_${measure}`], { name, value: valueOf(model, order, layer, head) });
}

// The number of a head in this order, short enough for the edge of the grid; "" where they stand by layer.
/** @param {HeadModel} model @param {Order} order @param {number} layer @param {number} head */
export function valueOf(model, order, layer, head) {
  const value = numberIn(model, order)(layer, head);
  if (!Number.isFinite(value) || !isHere(model, layer)) return "";
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
