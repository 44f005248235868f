// @ts-check
// What a page marks in a large map: a ring in a cell of each row, and squares around cells.

/** @import { HeatMap } from "./map.js" */

export const SQUARE = "#e69f00";  // --vf-amber of common.css

/** @param {HeatMap} map @param {CanvasRenderingContext2D} context */
export function drawPageMarks(map, context) {
  const { layout, scene: { marks } } = map;
  if (!marks) return;
  const side = Math.min(map.pitchX, map.pitchY);
  const corner = (/** @type {number} */ query, /** @type {number} */ key) => [
    layout.left + (key - map.x) * map.pitchX, layout.top + (query - map.y) * map.pitchY,
  ];
  const width = Math.max(1.5, Math.min(3.5, side * 0.1));
  for (const [query, key] of marks.squares) {
    const [x, y] = corner(query, key);
    const [w, h] = [map.pitchX - width, map.pitchY - width];
    stroke(context, SQUARE, width, () => context.rect(x + width / 2, y + width / 2, w, h));
  }
  marks.rings?.forEach((key, query) => {
    const [x, y] = corner(query, key);
    const radius = Math.max(2, Math.min(side * 0.36, 13));
    stroke(context, "#fff", width, () => context.arc(x + map.pitchX / 2, y + map.pitchY / 2, radius, 0, 2 * Math.PI));
  });
}

// In its colour, with a dark edge that keeps it apart from light cells.
/** @param {CanvasRenderingContext2D} context @param {string} colour @param {number} width @param {() => void} path */
function stroke(context, colour, width, path) {
  for (const [ink, extra] of /** @type {[string, number][]} */ ([["#000", 1.5], [colour, 0]])) {
    context.strokeStyle = ink;
    context.lineWidth = width + extra;
    context.beginPath();
    path();
    context.stroke();
  }
}
