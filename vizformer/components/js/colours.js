// @ts-check
// Colour scales. Weights: viridis, which keeps its order in grey and for the colour-blind. Scores: orange below
// 0 and blue above it, through the background's own shade, so that 0 recedes on a light page and on a dark one.

import { context2d } from "./dom.js";

/** @import { Theme } from "./types.d.ts" */

const SEQUENTIAL = ["#440154", "#482878", "#3e4989", "#31688e", "#26828e", "#1f9e89", "#35b779", "#6ece58", "#b5de2b", "#fde725"];
const DIVERGING = {
  light: ["#7a3803", "#cc6d1e", "#f2b36b", "#f4f4f4", "#7fb0da", "#2f6fb5", "#0b3c7d"],
  dark: ["#ffd9a3", "#d98a35", "#8f5417", "#262a31", "#2b5f96", "#5a9fe0", "#a9d4ff"],
};

// Bars of numbers, read on a light ground and on a dark one.
export const ABOVE = "#2f87c4";

// Colours of heads laid over each other: far enough apart for normal and for colour-blind eyes (a test simulates them),
// and against the page. From the ninth head on they begin anew, with dashes.
const HEADS = {
  light: ["#006ddc", "#d07800", "#00a862", "#620078", "#bf0000", "#808bc8", "#972e36", "#6d4078"],
  dark: ["#00a1ff", "#f28113", "#f3ff47", "#ffb1cb", "#346e42", "#195af6", "#bac179", "#a6328a"],
};
const DASHES = [[], [7, 4], [1.5, 4], [10, 3, 2, 3]];

/** @param {Theme} theme @param {number} head */
export function headColour(theme, head) {
  return theme.heads[head % theme.heads.length];
}

/** @param {number} head */
export function headDashes(head) {
  return DASHES[Math.floor(head / HEADS.light.length) % DASHES.length];
}

/** @param {string} hex */
function rgb(hex) {
  return [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16));
}

// `count` colours along the anchors, as 0xAABBGGRR for an ImageData seen as Uint32Array.
/** @param {string[]} anchors @param {number} count */
function ramp(anchors, count) {
  const stops = anchors.map(rgb);
  const table = new Uint32Array(count);
  for (let i = 0; i < count; i++) {
    const at = (i / (count - 1)) * (stops.length - 1);
    const low = Math.min(Math.floor(at), stops.length - 2);
    const [r, g, b] = stops[low].map((value, c) => Math.round(value + (stops[low + 1][c] - value) * (at - low)));
    table[i] = ((255 << 24) | (b << 16) | (g << 8) | r) >>> 0;
  }
  return table;
}

/** @param {number} packed */
export function cssColour(packed) {
  return `rgb(${packed & 255} ${(packed >> 8) & 255} ${(packed >> 16) & 255})`;
}

// Black or white, whichever is read better on a colour (relative luminance as in WCAG).
/** @param {number} packed */
export function inkOn(packed) {
  const [r, g, b] = [packed & 255, (packed >> 8) & 255, (packed >> 16) & 255].map((value) => {
    const share = value / 255;
    return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * r + 0.7152 * g + 0.0722 * b > 0.179 ? "#000" : "#fff";
}

// The page's colours as the browser resolved them; Streamlit calls again when the theme changes.
/** @param {Element} root */
export function readTheme(root) {
  const style = getComputedStyle(root);
  const pick = (/** @type {string} */ name) => style.getPropertyValue(name).trim();
  const probe = context2d(document.createElement("canvas"), { willReadFrequently: true });
  const packed = (/** @type {string} */ name) => {
    probe.fillStyle = pick(name);
    probe.fillRect(0, 0, 1, 1);
    const [r, g, b] = probe.getImageData(0, 0, 1, 1).data;
    return (b << 16) | (g << 8) | r;
  };
  const dark = inkOn(packed("--vf-background")) === "#fff";
  return {
    font: style.fontFamily,
    text: pick("--vf-text"),
    background: pick("--vf-background"),
    muted: pick("--vf-muted"),
    accent: pick("--vf-accent"),
    onAccent: inkOn(packed("--vf-accent")),
    hatch: pick("--vf-hatch"),
    hatchLine: pick("--vf-hatch-line"),
    weights: ramp(SEQUENTIAL, 256),
    scores: ramp(DIVERGING[dark ? "dark" : "light"], 255),
    heads: HEADS[dark ? "dark" : "light"],
  };
}
