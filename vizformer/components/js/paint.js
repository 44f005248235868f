// @ts-check
// Numbers as pixels.

import { context2d } from "./dom.js";

// The step of a colour table that a number gets. Weights by their square root: in long texts most are small.
/** @param {number} weight @param {number} [range] the weight that has the last colour */
export function weightStep(weight, range = 1) {
  return Math.round(Math.sqrt(range > 0 ? weight / range : 0) * 255);
}

/** @param {number} score @param {number} range */
export function scoreStep(score, range) {
  return range > 0 ? Math.round((Math.max(-1, Math.min(1, score / range)) + 1) * 127) : 127;
}

/** @param {number} rows @param {number} columns @param {(index: number) => number} colour */
export function paint(rows, columns, colour) {
  const canvas = document.createElement("canvas");
  canvas.width = columns;
  canvas.height = rows;
  const context = context2d(canvas);
  const image = context.createImageData(columns, rows);
  const pixels = new Uint32Array(image.data.buffer);
  for (let i = 0; i < pixels.length; i++) pixels[i] = colour(i);
  context.putImageData(image, 0, 0);
  return canvas;
}
