// @ts-check
// The first scenes of the walk: from characters to rows of numbers that know their place.

import { ABOVE, BELOW } from "./colours.js";
import { during, largest, number } from "./walk_stage.js";

/** @import { WalkStage } from "./walk_stage.js" */

// Where each character stands while the text is still a text: [x, y] of its middle, and the size of its letters.
/** @param {WalkStage} stage */
function flow({ width, height, walk }) {
  const { length } = walk.characters;
  let size = 56;
  const perLine = () => Math.max(1, Math.floor(width / size));
  while (size > 12 && Math.ceil(length / perLine()) * size * 1.25 > height) size -= 1;
  const lines = Math.ceil(length / perLine());
  const top = (height - lines * size * 1.25) / 2;
  const places = walk.characters.map((_, i) => [
    ((i % perLine()) + 0.5) * size,
    top + (Math.floor(i / perLine()) + 0.5) * size * 1.25,
  ]);
  return { places, size };
}

/** @param {WalkStage} stage @param {number} share */
export function drawCharacters(stage, share) {
  const { places, size } = flow(stage);
  const { context, theme, walk } = stage;
  walk.characters.forEach((character, i) => {
    const alpha = during(share, (0.8 * i) / places.length, (0.8 * i) / places.length + 0.2);
    const [x, y] = places[i];
    context.globalAlpha = alpha;
    context.strokeStyle = theme.muted;
    context.lineWidth = 1;
    context.strokeRect(x - size * 0.44, y - size * 0.55, size * 0.88, size * 1.1);
    context.globalAlpha = 1;
    stage.write(character, x, y, { size: size * 0.62, align: "center", alpha });
  });
}

// The characters of a token come together in its row.
/** @param {WalkStage} stage @param {number} share */
export function drawTokens(stage, share) {
  const { walk, letters } = stage;
  const { places, size } = flow(stage);
  const [moved, boxed, named] = [during(share, 0, 0.55), during(share, 0.5, 0.7), during(share, 0.65, 1)];
  if (boxed < 1) {
    walk.characters.forEach((character, i) => {
      const row = walk.tokens.findIndex((token) => token.start <= i && i < token.end);
      const [x, y] = places[i];
      const to = row < 0 ? [x, y] : [8 + (i - walk.tokens[row].start + 0.5) * letters * 0.6, stage.rowAt(row)];
      stage.write(character, x + (to[0] - x) * moved, y + (to[1] - y) * moved, {
        size: size * 0.62 + (letters - size * 0.62) * moved,
        align: "center",
        alpha: row < 0 ? 1 - moved : 1 - boxed,
      });
    });
  }
  stage.labels(boxed);
  walk.tokens.forEach(({ id }, i) => {
    const words = stage.fill("id", { id });
    stage.write(words, stage.left, stage.rowAt(i), { size: letters, alpha: named, colour: stage.theme.muted });
  });
}

/** @param {WalkStage} stage @param {ArrayLike<number>} rows @param {number} row */
function cellsOf({ walk }, rows, row) {
  return Array.prototype.slice.call(rows, row * walk.cells, (row + 1) * walk.cells);
}

/** @param {WalkStage} stage @param {number} share */
export function drawVectors(stage, share) {
  const { walk, letters } = stage;
  stage.labels();
  const idWidth = stage.narrow ? 48 : 78;
  const [x, range] = [stage.left + idWidth, largest(walk.embedded)];
  const height = Math.min(22, stage.rowHeight - 4);
  walk.tokens.forEach(({ id, text }, i) => {
    stage.write(`${id} →`, x - 8, stage.rowAt(i), {
      size: letters * 0.9, align: "right", colour: stage.theme.muted, room: idWidth,
    });
    const shown = during(share, 0.06 * i * (10 / walk.tokens.length), 0.4 + 0.06 * i * (10 / walk.tokens.length));
    stage.strip(cellsOf(stage, walk.embedded, i), {
      x, y: stage.rowAt(i), width: stage.width - x, height, range, name: `“${text}”`, shown,
    });
  });
  legend(stage, range);
}

// The token's row and the position's row, and what they become together.
/** @param {WalkStage} stage @param {number} share */
export function drawAdded(stage, share) {
  const { walk, words } = stage;
  stage.labels();
  const [gap, idWidth] = [stage.narrow ? 16 : 30, stage.narrow ? 48 : 78];
  const third = (stage.width - stage.left - 2 * gap) / 3;
  const added = walk.added ?? walk.embedded;
  const range = largest(walk.embedded, added);
  const whole = largest(walk.entering);
  const ranges = [range, range, whole > 4 * range || whole < range / 4 ? whole : range];
  const [shrunk, second, sum] = [during(share, 0, 0.3), during(share, 0.3, 0.6), during(share, 0.65, 1)];
  const height = Math.min(22, stage.rowHeight - 4);
  const columns = [walk.embedded, added, walk.entering].map((rows, k) => ({
    rows,
    x: stage.left + k * (third + gap) + (k ? 0 : idWidth * (1 - shrunk)),
    width: k ? third : (stage.width - stage.left - idWidth) * (1 - shrunk) + third * shrunk,
    name: [words.embedding, words.position, words.sum][k],
    alpha: [1, second, sum][k],
  }));
  columns.forEach(({ rows, x, width, name, alpha }, k) => {
    stage.write(name, x, 12, { size: 13, colour: stage.theme.muted, alpha: k ? alpha : shrunk, room: width });
    walk.tokens.forEach(({ text }, i) => {
      const y = stage.rowAt(i);
      if (alpha > 0) stage.strip(cellsOf(stage, rows, i), {
        x, y, width, height, range: ranges[k], name: k === 1 ? `${words.position} ${i}` : `“${text}”`, alpha,
      });
      if (k) stage.write(k === 1 ? "+" : "=", x - gap / 2, y, { size: 16, align: "center", alpha });
    });
  });
}

// Hands of clocks: by how much attention will turn some of the pairs of a query or key that stands here.
/** @param {WalkStage} stage @param {number} share */
export function drawTurned(stage, share) {
  const { context, theme, walk } = stage;
  stage.labels();
  const angles = walk.angles ?? new Float32Array();
  const radius = Math.min(13, stage.rowHeight / 2 - 2);
  const pitch = Math.min((stage.width - stage.left) / walk.dials, 150);
  const turned = during(share, 0.1, 1);
  walk.tokens.forEach((_, i) => {
    for (let dial = 0; dial < walk.dials; dial++) {
      const angle = angles[i * walk.dials + dial];
      const [x, y] = [stage.left + dial * pitch + radius + 2, stage.rowAt(i)];
      const full = ((angle % (2 * Math.PI)) + 2 * Math.PI) % (2 * Math.PI);
      context.strokeStyle = theme.muted;
      context.lineWidth = 1;
      context.beginPath();
      context.arc(x, y, radius, 0, 2 * Math.PI);
      context.stroke();
      context.strokeStyle = i === walk.followed ? theme.accent : theme.text;
      context.lineWidth = 2;
      context.beginPath();
      context.moveTo(x, y);
      context.lineTo(x + radius * Math.cos(full * turned), y - radius * Math.sin(full * turned));
      context.stroke();
      const degrees = number((angle * 180) / Math.PI);
      if (pitch > 74) {
        const colour = theme.muted;
        stage.write(`${degrees}°`, x + radius + 6, y, { size: Math.min(13, stage.letters), colour, alpha: turned });
      }
      const text = stage.fill("angle", { position: i, degrees });
      stage.hits.push({ x: x - radius, y: y - radius, width: pitch, height: 2 * radius, text });
    }
  });
}

// What is added to the scores of the token that is followed, key by key.
/** @param {WalkStage} stage @param {number} share */
export function drawBiased(stage, share) {
  const { theme, walk } = stage;
  stage.labels();
  const bias = walk.bias ?? new Float32Array();
  const [range, room] = [largest(bias), stage.width - stage.left - 70];
  const zero = stage.left + (bias.some((value) => value > 0) ? room / 2 : 0) + 4;
  const reach = bias.some((value) => value > 0) ? room / 2 : room;
  walk.tokens.forEach(({ text }, i) => {
    const [y, grown] = [stage.rowAt(i), during(share, 0.05 * i, 0.4 + 0.05 * i)];
    const length = (Math.abs(bias[i]) / range) * reach * grown;
    const left = bias[i] < 0 && zero > stage.left + 4 ? zero - length : zero;
    const colour = bias[i] < 0 ? BELOW : ABOVE;
    stage.bar(left, y, length, Math.min(16, stage.rowHeight * 0.6), colour);
    stage.write(number(bias[i]), Math.max(left + length, zero) + 6, y, { size: 13, colour: theme.muted, alpha: grown });
    const said = stage.fill("bias", { query: walk.tokens[walk.followed].text, key: text, value: number(bias[i]) });
    stage.hits.push({ x: stage.left, y: y - stage.rowHeight / 2, width: room + 70, height: stage.rowHeight, text: said });
  });
}

/** @param {WalkStage} stage @param {number} share */
export function drawUnplaced(stage, share) {
  drawVectors(stage, Math.max(share, 1));  // the rows stay as they are
}

// What the colours of the numbers mean, above them.
/** @param {WalkStage} stage @param {number} range */
function legend(stage, range) {
  const width = stage.narrow ? 80 : 130;
  const x = stage.width - width - 44;
  const ramp = Array.from({ length: 32 }, (_, i) => (range * (i - 15.5)) / 15.5);
  const before = stage.hits.length;
  stage.strip(ramp, { x, y: 12, width, height: 10, range, name: "" });
  stage.hits.length = before;
  const colour = stage.theme.muted;
  stage.write(number(-range), x - 6, 12, { size: 12, align: "right", colour });
  stage.write(number(range), x + width + 6, 12, { size: 12, colour });
}
