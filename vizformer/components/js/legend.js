// @ts-check
// The colour bar with its numbers, and what the hatching means.

import { cssColour } from "./colours.js";
import { element } from "./dom.js";
import { signed } from "./numbers.js";
import { fill } from "./text.js";

/** @import { Theme, WeightsOrScores, Words } from "./types.d.ts" */

/**
 * @param {HTMLElement} host
 * @param {{ view: WeightsOrScores, range: number, own?: boolean, theme: Theme, words: Words, reasons: string[] }} shown
 *   own: the colours of weights end at `range`, the largest of this map
 */
export function showLegend(host, shown) {
  const { view, range, own, theme, words, reasons } = shown;
  const table = view === "weights" ? theme.weights : theme.scores;
  const stops = Array.from({ length: 17 }, (_, i) => cssColour(table[Math.round((i / 16) * (table.length - 1))]));
  const scale = element("div", "vf-scale");
  const strip = element("div", "vf-strip");
  strip.style.background = `linear-gradient(to right, ${stops.join(", ")})`;
  /** @type {[number, string][]} */ const ticks = view === "weights"
    ? [0, 0.01, 0.1, 0.25, 0.5, 1].map((value) => [Math.sqrt(value), String(Number((value * range).toPrecision(2)))])
    : [[0, signed(-range, 2)], [0.5, "0"], [1, signed(range, 2)]];
  const marks = element("div", "vf-ticks");
  for (const [share, text] of ticks) {
    const tick = element("span", "", text);
    tick.style.left = `${share * 100}%`;
    marks.append(tick);
  }
  scale.append(strip, marks);
  const caption = own ? fill(words.colour_own, { range: range.toFixed(4) }) : view === "weights" ? words.colour_weight : fill(words.colour_score, { range: signed(range, 2) });
  const parts = [element("span", "vf-caption", caption), scale];
  if (reasons.length) {
    const masked = element("span", "vf-masked");
    masked.append(element("span", "vf-swatch"), element("span", "", fill(words.masked_legend, { reasons: reasons.join(", ") })));
    parts.push(masked);
  }
  host.replaceChildren(...parts);
}

// The button that changes where the colours of weights end; it stands in the legend, which is made anew.
/** @param {() => void} change */
export function rangeButton(change) {
  const button = element("button", "vf-link");
  button.type = "button";
  button.onclick = () => {
    change();
    button.focus();
  };
  return button;
}
