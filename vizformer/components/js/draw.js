// @ts-check
// What the two canvases of the large map show.

import { drawPlate, shorten } from "./canvas_text.js";
import { inkOn } from "./colours.js";
import { context2d } from "./dom.js";
import { cellAt } from "./heads.js";
import { ENLARGED, letterSize } from "./map_layout.js";
import { drawPageMarks } from "./map_marks.js";
import { signed } from "./numbers.js";
import { scoreStep, weightStep } from "./paint.js";

/** @import { HeatMap } from "./map.js" */
/** @import { Theme } from "./types.d.ts" */

/** @param {HeatMap} map */
export function drawMap(map) {
  const { layout, scene, density } = map;
  const { theme, model } = scene;
  const context = context2d(map.base);
  context.setTransform(density, 0, 0, density, 0, 0);
  context.clearRect(0, 0, layout.width, layout.height);
  context.save();
  context.beginPath();
  context.rect(layout.left, layout.top, layout.plotWidth, layout.plotHeight);
  context.clip();
  context.fillStyle = hatching(context, theme, density);
  context.fillRect(layout.left, layout.top, layout.plotWidth, layout.plotHeight);
  const [firstKey, endKey] = inSight(map.x, model.keys, map.zoom);
  const [firstQuery, endQuery] = inSight(map.y, model.queries, map.zoom);
  const sight = { x: firstKey, y: firstQuery, columns: endKey - firstKey, rows: endQuery - firstQuery };
  const { picture, x, y } = scene.image ? scene.image(map.pool, sight) : { picture: scene.blurred, x: 0, y: 0 };
  const [scaleX, scaleY] = scene.image
    ? [1 / map.pool, 1 / map.pool]
    : picture ? [picture.width / model.keys, picture.height / model.queries] : [1, 1];
  context.imageSmoothingEnabled = !scene.image || Math.min(map.pitchX, map.pitchY) * density * map.pool < 1;
  context.globalAlpha = scene.image ? 1 : 0.45;
  if (picture) context.drawImage(
    picture,
    (map.x - x) * scaleX, (map.y - y) * scaleY, (model.keys / map.zoom) * scaleX, (model.queries / map.zoom) * scaleY,
    layout.left, layout.top, layout.plotWidth, layout.plotHeight,
  );
  context.globalAlpha = 1;
  if (Math.min(map.pitchX, map.pitchY) >= 12) drawGaps(map, context);
  if (scene.image && map.pitchX >= 30 && map.pitchY >= 18) drawValues(map, context);
  drawPageMarks(map, context);
  context.restore();
  drawLabels(map, context);
}

// [first, past the last] cell in sight along an axis.
/** @param {number} start @param {number} count @param {number} zoom */
function inSight(start, count, zoom) {
  return [Math.floor(start), Math.min(count, Math.ceil(start + count / zoom))];
}

/** @param {HeatMap} map @param {CanvasRenderingContext2D} context */
function drawGaps(map, context) {
  const { layout, scene } = map;
  const [x0, x1] = inSight(map.x, scene.model.keys, map.zoom);
  const [y0, y1] = inSight(map.y, scene.model.queries, map.zoom);
  context.strokeStyle = scene.theme.background;
  context.lineWidth = Math.min(map.pitchX, map.pitchY) >= 36 ? 2 : 1;
  context.beginPath();
  for (let key = x0; key <= x1; key++) {
    const px = layout.left + (key - map.x) * map.pitchX;
    context.moveTo(px, layout.top);
    context.lineTo(px, layout.top + layout.plotHeight);
  }
  for (let query = y0; query <= y1; query++) {
    const py = layout.top + (query - map.y) * map.pitchY;
    context.moveTo(layout.left, py);
    context.lineTo(layout.left + layout.plotWidth, py);
  }
  context.stroke();
}

/** @param {HeatMap} map @param {CanvasRenderingContext2D} context */
function drawValues(map, context) {
  const { layout, scene } = map;
  const { model, theme, layer, head, view, range } = scene;
  const [x0, x1] = inSight(map.x, model.keys, map.zoom);
  const [y0, y1] = inSight(map.y, model.queries, map.zoom);
  const size = Math.min(map.pitchX * 0.31, map.pitchY * 0.46, 21);
  const digits = view === "weights" ? (map.pitchX >= 74 ? 3 : 2) : (map.pitchX >= 62 ? 2 : 1);
  context.font = `${size}px ${theme.font}`;
  context.textAlign = "center";
  context.textBaseline = "middle";
  for (let query = y0; query < y1; query++) {
    for (let key = x0; key < x1; key++) {
      const cell = cellAt(model, layer, head, query, key);
      if (cell.reason) continue;
      const value = view === "weights" ? cell.weight : cell.score;
      const colour = view === "weights" ? theme.weights[weightStep(value, range)] : theme.scores[scoreStep(value, range)];
      context.fillStyle = Number.isNaN(value) ? theme.text : inkOn(colour);
      context.fillText(
        signed(value, digits),
        layout.left + (key + 0.5 - map.x) * map.pitchX,
        layout.top + (query + 0.5 - map.y) * map.pitchY + size * 0.06,
      );
    }
  }
}

// Letters grow with the cells, also when those are enlarged, up to what the margins were planned for.
/** @param {HeatMap} map */
function labelSize(map) {
  return Math.min(letterSize(Math.min(map.pitchX, map.pitchY)), Math.max(map.layout.font, ENLARGED));
}

/** @param {HeatMap} map @param {CanvasRenderingContext2D} context */
function drawLabels(map, context) {
  const { scene } = map;
  const size = labelSize(map);
  context.fillStyle = scene.theme.text;
  context.font = `${size}px ${scene.theme.font}`;
  const rowStep = Math.ceil((size * 0.98) / map.pitchY);
  const keyStep = Math.ceil((map.layout.angle === 45 ? size * 1.05 : map.layout.angle === 90 ? size * 0.98 : 1) / map.pitchX);
  const [y0, y1] = inSight(map.y, scene.model.queries, map.zoom);
  for (let query = y0; query < y1; query++) if (query % rowStep === 0) rowLabel(map, context, query, size);
  context.font = `${size * map.layout.keyScale}px ${scene.theme.font}`;
  const [x0, x1] = inSight(map.x, scene.model.keys, map.zoom);
  for (let key = x0; key < x1; key++) if (key % keyStep === 0) keyLabel(map, context, key, size);
}

/**
 * @param {HeatMap} map
 * @param {CanvasRenderingContext2D} context
 * @param {number} query
 * @param {number} size
 * @param {[string, string]} [plate]
 */
function rowLabel(map, context, query, size, plate) {
  const { layout, scene } = map;
  const py = layout.top + (query + 0.5 - map.y) * map.pitchY;
  if (py < layout.top || py > layout.top + layout.plotHeight) return;
  const text = shorten(context, scene.queryTokens[query], layout.left - 12);
  context.textAlign = "right";
  context.textBaseline = "middle";
  if (plate) drawPlate(context, layout.left - 8 - context.measureText(text).width, py, text, size, plate);
  context.fillText(text, layout.left - 8, py);
}

/**
 * @param {HeatMap} map
 * @param {CanvasRenderingContext2D} context
 * @param {number} key
 * @param {number} size
 * @param {[string, string]} [plate]
 */
function keyLabel(map, context, key, size, plate) {
  const { layout, scene } = map;
  const px = layout.left + (key + 0.5 - map.x) * map.pitchX;
  if (px < layout.left || px > layout.left + layout.plotWidth) return;
  context.save();
  context.translate(px, layout.top - 6);
  context.textBaseline = "middle";
  let text = scene.keyTokens[key];
  if (layout.angle === 0) {
    text = shorten(context, text, Math.max(map.pitchX - 4, layout.cellWidth));
    context.textAlign = "center";
    context.translate(0, -size * 0.5);
    if (plate) drawPlate(context, -context.measureText(text).width / 2, 0, text, size, plate);
  } else {
    text = shorten(context, text, layout.keyRoom);
    context.rotate((-layout.angle * Math.PI) / 180);
    context.textAlign = "left";
    if (plate) drawPlate(context, 0, 0, text, size, plate);
  }
  context.fillText(text, 0, 0);
  context.restore();
}

// The selected row, the chosen cell, and the cell under the pointer or the keyboard's cursor.
/** @param {HeatMap} map */
export function drawMarks(map) {
  const { layout, scene, density, cursor } = map;
  const { theme, selected } = scene;
  const context = context2d(map.over);
  context.setTransform(density, 0, 0, density, 0, 0);
  context.clearRect(0, 0, layout.width, layout.height);
  context.save();
  context.beginPath();
  context.rect(layout.left - 3, layout.top - 3, layout.plotWidth + 6, layout.plotHeight + 6);
  context.clip();
  if (map.pitchY >= 14) frame(map, context, selected.query, 0, scene.model.keys, theme.background, 5);
  frame(map, context, selected.query, 0, scene.model.keys, theme.accent, 2.5);
  if (selected.key !== null) frame(map, context, selected.query, selected.key, 1, theme.accent, 2.5);
  if (cursor && cursor.key !== null) {
    frame(map, context, cursor.query, cursor.key, 1, "#000", 4);
    frame(map, context, cursor.query, cursor.key, 1, "#fff", 1.8);
  }
  context.restore();
  const size = Math.max(11, labelSize(map));
  context.font = `600 ${size}px ${theme.font}`;
  /** @type {[string, string]} */ const chosen = [theme.accent, theme.onAccent];
  /** @type {[string, string]} */ const pointed = [theme.text, theme.background];
  rowLabel(map, context, selected.query, size, chosen);
  if (cursor) {
    if (cursor.query !== selected.query) rowLabel(map, context, cursor.query, size, pointed);
    context.font = `600 ${size * layout.keyScale}px ${theme.font}`;
    if (cursor.key !== null) keyLabel(map, context, cursor.key, size, pointed);
  } else if (selected.key !== null) {
    context.font = `600 ${size * layout.keyScale}px ${theme.font}`;
    keyLabel(map, context, selected.key, size, chosen);
  }
}

// A frame around `count` cells of a row; around small cells it lies outside, so as not to hide them.
/**
 * @param {HeatMap} map
 * @param {CanvasRenderingContext2D} context
 * @param {number} query
 * @param {number} key
 * @param {number} count
 * @param {string} colour
 * @param {number} width
 */
function frame(map, context, query, key, count, colour, width) {
  const { layout } = map;
  const out = map.pitchY < 14 ? width / 2 : 0;
  const x0 = Math.max(layout.left, layout.left + (key - map.x) * map.pitchX) - out;
  const x1 = Math.min(layout.left + layout.plotWidth, layout.left + (key + count - map.x) * map.pitchX) + out;
  context.strokeStyle = colour;
  context.lineWidth = width;
  context.strokeRect(x0, layout.top + (query - map.y) * map.pitchY - out, x1 - x0, map.pitchY + 2 * out);
}

// The pattern of what is masked.
/** @param {CanvasRenderingContext2D} context @param {Theme} theme @param {number} density */
function hatching(context, theme, density) {
  const side = Math.round(7 * density);
  const tile = document.createElement("canvas");
  tile.width = tile.height = side;
  const brush = context2d(tile);
  brush.fillStyle = theme.hatch;
  brush.fillRect(0, 0, side, side);
  brush.strokeStyle = theme.hatchLine;
  brush.lineWidth = density;
  brush.beginPath();
  for (const shift of [-side, 0, side]) {  // a diagonal, and its neighbours, so that the tiles meet
    brush.moveTo(shift - 1, side + 1);
    brush.lineTo(shift + side + 1, -1);
  }
  brush.stroke();
  const pattern = /** @type {CanvasPattern} */ (context.createPattern(tile, "repeat"));
  pattern.setTransform(new DOMMatrix([1 / density, 0, 0, 1 / density, 0, 0]));
  return pattern;
}
