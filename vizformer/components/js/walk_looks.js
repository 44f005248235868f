// @ts-check
// The later scenes of the walk: who looks at whom, what becomes of one row, and what comes out.

import { ABOVE } from "./colours.js";
import { during, largest, number, percent } from "./walk_stage.js";

/** @import { WalkLines, WalkStrips } from "./walk_types.d.ts" */
/** @import { WalkStage } from "./walk_stage.js" */

/** @param {WalkStage} stage @param {number} share */
export function drawAttention(stage, share) {
  const { walk } = stage;
  const special = walk.tokens.map((token) => token.special);
  looks(stage, share, walk.attention, walk.attention_weights, walk.attention_blocked, [special, special]);
}

/** @param {WalkStage} stage @param {number} share */
export function drawCross(stage, share) {
  const { walk } = stage;
  if (!walk.cross) return;
  const special = walk.tokens.map((token) => token.special);
  looks(stage, share, walk.cross, walk.cross_weights, walk.cross_blocked, [[], special]);
}

// Queries on the left, keys on the right: the row that is followed in full, the others as a trace.
/**
 * @param {WalkStage} stage
 * @param {number} share
 * @param {WalkLines} lines
 * @param {ArrayLike<number>} weights
 * @param {ArrayLike<number>} blocked
 * @param {boolean[][]} special
 */
function looks(stage, share, lines, weights, blocked, special) {
  const { theme, width } = stage;
  const { queries, keys, query, key } = lines;
  const [n, m] = [queries.length, keys.length];
  const rows = Math.max(n, m);
  const pitch = Math.min(30, (stage.height - stage.rowTop) / rows);
  const at = (/** @type {number} */ i) => stage.rowTop + (i + 0.5) * pitch;
  const [side, valueRoom] = [Math.min(170, width * 0.31), 58];
  const right = width - Math.min(side, stage.labelWidth) - valueRoom;
  const queryWidth = queries.length === keys.length ? Math.min(side, stage.labelWidth) : side;
  const shown = during(share, 0.1, 0.7);
  for (let i = 0; i < n; i++) {
    if (i === query) continue;
    for (let j = 0; j < m; j++) {
      const weight = weights[i * m + j];
      const how = { colour: theme.muted, thickness: 1.5, alpha: 0.3 * weight * during(share, 0.5, 1) };
      if (weight > 0.05) stage.line(queryWidth + 2, at(i), right - 2, at(j), how);
    }
  }
  for (let j = 0; j < m; j++) {
    const weight = weights[query * m + j];
    stage.line(queryWidth + 2, at(query), right - 2, at(j), {
      colour: theme.accent, thickness: 1 + 9 * weight, alpha: 0.25 + 0.75 * weight, shown: weight > 0.005 ? shown : 0,
    });
  }
  const height = stage.rowHeight;
  stage.rowHeight = pitch;  // boxes as high as this picture's rows
  queries.forEach((text, i) =>
    stage.token(text, 0, at(i), { followed: i === query, special: special[0][i], width: queryWidth }));
  keys.forEach((text, j) => {
    const off = blocked[query * m + j] > 0;
    const [value, y] = [weights[query * m + j], at(j)];
    stage.token(text, right, y, {
      followed: j === key, special: special[1][j], alpha: off ? 0.35 : 1, width: Math.min(side, stage.labelWidth),
    });
    const said = off ? "×" : value.toFixed(3);
    const x = right + Math.min(side, stage.labelWidth) + 6;
    stage.write(said, x, y, { size: 13, alpha: during(share, 0.6, 0.9), strong: j === key });
    const names = { query: queries[query], key: text, value: value.toFixed(4) };
    const hover = stage.fill(off ? "blocked" : "weight", names);
    stage.hits.push({ x: right, y: y - pitch / 2, width: width - right, height: pitch, text: hover });
  });
  stage.rowHeight = height;
  if (lines.elsewhere[query] > 0.0005) {
    const words = stage.fill("elsewhere", { value: lines.elsewhere[query].toFixed(3) });
    stage.write(words, width, 12, { size: 12, align: "right", colour: theme.muted });
  }
}

/** @param {WalkStage} stage @param {number} share */
export function drawResidual(stage, share) {
  bands(stage, share, stage.walk.sublayers, stage.walk.sublayer_cells);
}

/** @param {WalkStage} stage @param {number} share */
export function drawLayers(stage, share) {
  bands(stage, share, stage.walk.layers, stage.walk.layer_cells);
}

// Rows of numbers one below the other, each in its own range of colours, with their lengths as bars.
/** @param {WalkStage} stage @param {number} share @param {WalkStrips} strips @param {ArrayLike<number>} all */
function bands(stage, share, strips, all) {
  const { theme, walk, width } = stage;
  const { names, lengths, cosines } = strips;
  const count = names.length;
  const pitch = Math.min(64, (stage.height - 6) / count);
  const above = pitch >= 44;  // room for the name above its strip
  const every = Math.ceil(13 / pitch);
  const side = above ? 0 : Math.min(110, width * 0.26);
  const room = stage.narrow ? 100 : 200;
  const most = largest(lengths);
  names.forEach((name, i) => {
    const from = (0.75 * i) / count;
    const [shown, cells] = [during(share, from, from + 0.25), Array.prototype.slice.call(all, i * walk.cells, (i + 1) * walk.cells)];
    const y = 3 + (i + 0.5) * pitch + (above ? 9 : 0);
    const height = above ? pitch - 30 : Math.max(2, Math.min(18, pitch - 3));
    const label = { size: above ? 14 : Math.min(13, Math.max(10, pitch)), colour: theme.text, alpha: shown };
    if (above) stage.write(name, 0, y - height / 2 - 10, { ...label, room: width });
    else if (i % every === 0) stage.write(name, 0, y, { ...label, room: side - 6 });
    stage.strip(cells, { x: side, y, width: width - side - room, height, range: largest(cells), name, shown });
    const x = width - room + 8;
    stage.bar(x, y, (room - (stage.narrow ? 58 : 130)) * (lengths[i] / most) * shown, Math.min(14, height), ABOVE);
    if (i % every !== 0 && !above) return;
    const length = stage.fill("length", { value: number(lengths[i]) });
    const cosine = cosines.length && !stage.narrow ? ` · ${stage.fill("cosine", { value: number(cosines[i]) })}` : "";
    const words = stage.narrow ? number(lengths[i]) : length + cosine;
    stage.write(words, width, y, { size: 12, align: "right", colour: theme.muted, alpha: shown });
  });
}

/** @param {WalkStage} stage @param {number} share */
export function drawNext(stage, share) {
  if (stage.walk.next) ranking(stage, share, stage.walk.next, 42, false);
}

/** @param {WalkStage} stage @param {number} share */
export function drawWritten(stage, share) {
  if (stage.walk.written) ranking(stage, share, stage.walk.written, 30, true);
}

// Bars of probability; one after the other where they were chosen one after the other.
/**
 * @param {WalkStage} stage
 * @param {number} share
 * @param {{ names: string[], probabilities: number[], chosen: number | null }} candidates
 * @param {number} highest
 * @param {boolean} inTurn
 */
function ranking(stage, share, { names, probabilities, chosen }, highest, inTurn) {
  const { theme, width } = stage;
  const pitch = Math.min(highest, (stage.height - 10) / names.length);
  const size = Math.min(17, pitch * 0.62);
  stage.setFont(size);
  const widest = Math.max(...names.map((name) => stage.context.measureText(name).width));
  const x = Math.min(widest + 16, width * 0.42);
  names.forEach((name, i) => {
    const from = inTurn ? (0.8 * i) / names.length : 0.05 * i;
    const [grown, y] = [during(share, from, from + (inTurn ? 0.2 : 0.6)), 8 + (i + 0.5) * pitch];
    const strong = i === chosen;
    stage.write(name, x - 8, y, { size, align: "right", room: x - 10, alpha: inTurn ? grown : 1, strong });
    const length = (width - x - 70) * probabilities[i] * grown;
    stage.bar(x, y, length, pitch * 0.55, strong || inTurn ? theme.accent : ABOVE);
    stage.write(percent(probabilities[i]), x + length + 8, y, { size: 14, alpha: grown, strong });
    const text = stage.fill("probability", { token: name, value: percent(probabilities[i]) });
    stage.hits.push({ x: 0, y: y - pitch / 2, width, height: pitch, text });
  });
}
