// @ts-check
// The line of the stations: their numbers, between the test before them and the one after them.

import { element } from "./dom.js";
import { plainButton } from "./station_questions.js";
import { fill } from "./text.js";

/** @import { Kept, PathData, When } from "./station_types.d.ts" */

/**
 * @param {HTMLElement} line
 * @param {PathData} data
 * @param {Kept} kept
 * @param {{ station: number, test: When | null }} here
 * @param {{ enter: (index: number) => void, begin: (when: When) => void }} press
 */
export function drawLine(line, { stations, tests, words }, kept, here, { enter, begin }) {
  const stops = stations.map(({ name, title }, index) => {
    const done = kept.done.includes(name);
    const made = plainButton(done ? "vf-done" : "", () => enter(index), String(index + 1));
    const said = fill(words.station, { number: index + 1, count: stations.length, title });
    made.title = title;
    made.setAttribute("aria-label", done ? `${said}, ${words.done}` : said);
    if (index === here.station && !here.test) made.setAttribute("aria-current", "step");
    return made;
  });
  const ends = (/** @type {When[]} */ (tests ? ["before", "after"] : [])).map((when) => {
    const done = kept.tests[when]?.length === tests?.a.length;
    const made = plainButton(done ? "vf-stations-test vf-done" : "vf-stations-test", () => begin(when), words[`test_${when}`]);
    if (here.test === when) made.setAttribute("aria-current", "step");
    return made;
  });
  line.replaceChildren(...[...ends.slice(0, 1), ...stops, ...ends.slice(1)].map((button) => {
    const item = element("li");
    item.append(button);
    return item;
  }));
  const current = line.querySelector("[aria-current]");
  if (current instanceof HTMLElement) line.scrollLeft = current.offsetLeft - line.clientWidth / 2;
}
