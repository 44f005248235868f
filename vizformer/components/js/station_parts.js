// @ts-check
// The parts of a picture of a station: tokens, grids of numbers, bars, a curve, a line with a sum.

import { ABOVE, cssColour, inkOn } from "./colours.js";
import { element } from "./dom.js";
import { signed } from "./numbers.js";
import { svgElement } from "./svg.js";
import { fill, visible } from "./text.js";

/** @import { Theme, Words } from "./types.d.ts" */
/** @import { BarsPart, ChipsPart, CurvePart, GridPart, Part } from "./station_types.d.ts" */

const CURVE = { most: 560, least: 300, height: 250, left: 52, right: 16, top: 12, bottom: 44 };

// `room` is the width in px that the picture has.
/** @param {Part[]} frame @param {Theme} theme @param {Words} words @param {number} room */
export function drawFrame(frame, theme, words, room) {
  return frame.map((part) => {
    const box = element("div", "small" in part && part.small ? "vf-station-part vf-small" : "vf-station-part");
    if ("title" in part && part.title) box.append(element("div", "vf-station-title", part.title));
    box.append(drawPart(part, theme, words, room));
    return box;
  });
}

/** @param {Part} part @param {Theme} theme @param {Words} words @param {number} room */
function drawPart(part, theme, words, room) {
  switch (part.kind) {
    case "chips": return drawChips(part);
    case "grid": return drawGrid(part, theme, words);
    case "bars": return part.upright ? drawUpright(part, words) : drawBars(part, words);
    default: return drawCurve(part, room);
  }
}

/** @param {ChipsPart} part */
function drawChips({ names, notes, lit }) {
  const box = element("div", "vf-station-chips");
  names.forEach((name, index) => {
    const chip = element("span", lit.includes(index) ? "vf-station-chip vf-lit" : "vf-station-chip");
    chip.append(element("b", "", visible(name)));
    if (notes.length) chip.append(element("small", "", notes[index]));
    box.append(chip);
  });
  return box;
}

/** @param {GridPart} part @param {Theme} theme @param {Words} words */
function drawGrid(part, theme, words) {
  const { rows, columns, cells, signed: both, written, texts, lit, notes, small } = part;
  const count = cells[0]?.length ?? 0;
  const grid = element("div", columns.length ? "vf-station-grid" : "vf-station-grid vf-station-rows");
  grid.style.setProperty("--vf-columns", String(count));
  grid.style.setProperty("--vf-behind", notes.length ? "max-content" : "0px");
  grid.setAttribute("role", "table");
  grid.setAttribute("aria-label", part.title);
  const most = Math.max(...cells.flat().map((value) => Math.abs(value ?? 0))) || 1;
  if (columns.some(Boolean) && !small) {
    const head = line(grid, "");
    head.append(...columns.map((name) => element("span", "vf-station-column", visible(name))), element("span"));
  }
  rows.forEach((name, at) => {
    const row = line(grid, name && visible(name));
    row.firstElementChild?.classList.toggle("vf-lit", at === lit);
    for (let index = 0; index < count; index++) {
      const value = cells[at][index];
      const cell = element("span", "vf-station-cell");
      cell.setAttribute("role", "cell");
      if (value === null) cell.classList.add("vf-blocked");
      else {
        const packed = both
          ? theme.scores[Math.round((value / most / 2 + 0.5) * (theme.scores.length - 1))]
          : theme.weights[Math.round(Math.max(0, Math.min(1, value)) * (theme.weights.length - 1))];
        cell.style.background = cssColour(packed);
        cell.style.color = inkOn(packed);
        if (texts.length) cell.textContent = texts[at][index];
        else if (written) cell.textContent = signed(value, 2).replace(/^(−?)0\./, "$1.");
      }
      const shown = value === null ? words.blocked : texts.length ? texts[at][index] : signed(value, 3);
      cell.title = columns.length
        ? fill(words.cell, { row: visible(name), column: visible(columns[index]), value: shown })
        : fill(words.number, { row: visible(name), index, value: shown });
      row.append(cell);
    }
    row.append(element("span", "vf-station-note", notes[at] ?? ""));
    row.classList.toggle("vf-lit", at === lit);
  });
  const scroll = element("div", "vf-station-scroll");
  scroll.append(grid);
  return scroll;
}

/** @param {HTMLElement} grid @param {string} name */
function line(grid, name) {
  const row = element("div", "vf-station-line");
  row.setAttribute("role", "row");
  row.append(element("span", "vf-station-name", name));
  grid.append(row);
  return row;
}

/** @param {BarsPart} part @param {Words} words */
function drawBars({ names, values, texts, most, lit }, words) {
  const box = element("div", "vf-station-bars");
  names.forEach((name, index) => {
    const row = element("div", index === lit ? "vf-station-bar vf-lit" : "vf-station-bar");
    row.title = fill(words.bar, { name: visible(name), value: texts[index] });
    const bar = element("i");
    bar.style.width = `${100 * Math.max(0, Math.min(1, values[index] / most))}%`;
    bar.style.background = ABOVE;
    const track = element("span", "vf-station-track");
    track.append(bar);
    row.append(element("span", "vf-station-name", visible(name)), track, element("span", "vf-station-note", texts[index]));
    box.append(row);
  });
  return box;
}

// The same side by side, the number above each bar and its name below.
/** @param {BarsPart} part @param {Words} words */
function drawUpright({ names, values, texts, most, lit }, words) {
  const box = element("div", "vf-station-upright");
  names.forEach((name, index) => {
    const column = element("div", index === lit ? "vf-station-post vf-lit" : "vf-station-post");
    column.title = fill(words.bar, { name: visible(name), value: texts[index] });
    const bar = element("i");
    bar.style.height = `${100 * Math.max(0, Math.min(1, values[index] / most))}%`;
    bar.style.background = ABOVE;
    const track = element("span", "vf-station-track");
    track.append(bar);
    column.append(element("span", "vf-station-value", texts[index]), track, element("span", "vf-station-column", visible(name)));
    box.append(column);
  });
  const scroll = element("div", "vf-station-scroll");
  scroll.append(box);
  return scroll;
}

/** @param {CurvePart} part @param {number} room */
function drawCurve({ title, x, y, x_name, y_name, points, lit }, room) {
  const width = Math.max(CURVE.least, Math.min(CURVE.most, room));
  const { height, left, right, top, bottom } = CURVE;
  const [x0, x1, y1] = [Math.min(...x), Math.max(...x), Math.max(...y)];
  const place = (/** @type {number} */ a, /** @type {number} */ b) => [
    left + ((a - x0) / (x1 - x0)) * (width - left - right),
    top + (1 - b / y1) * (height - top - bottom),
  ];
  const svg = svgElement("svg", { viewBox: `0 0 ${width} ${height}`, class: "vf-station-curve", role: "img", "aria-label": title });
  const text = (/** @type {string} */ said, /** @type {Record<string, string | number>} */ at) => {
    const made = svgElement("text", at);
    made.textContent = said;
    svg.append(made);
  };
  for (const share of [0, 0.25, 0.5, 0.75, 1]) {
    const [px, py] = place(x0 + share * (x1 - x0), share * y1);
    svg.append(svgElement("line", { x1: left, x2: width - right, y1: py, y2: py, class: "vf-rule" }));
    text(signed(x0 + share * (x1 - x0), 2), { x: px, y: height - bottom + 18, "text-anchor": "middle" });
    text(signed(share * y1, 1), { x: left - 8, y: py + 5, "text-anchor": "end" });
  }
  text(x_name, { x: (left + width - right) / 2, y: height - 6, "text-anchor": "middle" });
  text(y_name, { x: left + 6, y: top + 14 });
  const path = x.map((a, index) => place(a, y[index]).map((one) => one.toFixed(1)).join(" ")).join(" L ");
  svg.append(svgElement("path", { d: `M ${path}`, class: "vf-line" }));
  points.forEach(([a, b, name], index) => {
    const [px, py] = place(a, Math.min(b, y1));
    svg.append(svgElement("circle", { cx: px, cy: py, r: index === lit ? 8 : 5, class: index === lit ? "vf-point vf-lit" : "vf-point" }));
    if (index !== lit && points.length > 4) return;
    const near = px > width - 140;
    text(visible(name), { x: px + (near ? -12 : 12), y: py - 8, "text-anchor": near ? "end" : "start", class: "vf-said" });
  });
  return svg;
}
