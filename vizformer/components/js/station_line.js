// @ts-check
// The line of the stations: their numbers, and which of them were gone through.

import { element } from "./dom.js";
import { plainButton } from "./station_questions.js";
import { fill } from "./text.js";

/** @import { Kept, PathData } from "./station_types.d.ts" */

/**
 * @param {HTMLElement} line
 * @param {PathData} data
 * @param {Kept} kept
 * @param {number} here
 * @param {(index: number) => void} enter
 */
export function drawLine(line, { stations, words }, kept, here, enter) {
  const stops = stations.map(({ name, title }, index) => {
    const done = kept.done.includes(name);
    const made = plainButton(done ? "vf-done" : "", () => enter(index), String(index + 1));
    const said = fill(words.station, { number: index + 1, count: stations.length, title });
    made.title = title;
    made.setAttribute("aria-label", done ? `${said}, ${words.done}` : said);
    if (index === here) made.setAttribute("aria-current", "step");
    return made;
  });
  line.replaceChildren(...stops.map((button) => {
    const item = element("li");
    item.append(button);
    return item;
  }));
  const current = line.querySelector("[aria-current]");
  if (current instanceof HTMLElement) line.scrollLeft = current.offsetLeft - line.clientWidth / 2;
}
