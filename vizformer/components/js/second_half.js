// @ts-check
// What follows the pictures of a station: a part of a lesson, a look inside the box that is lit, and what can be built.

import { element } from "./dom.js";
import { plainButton } from "./station_questions.js";
import { fill } from "./text.js";

/** @import { Words } from "./types.d.ts" */
/** @import { BoxData, ExerciseData, Kept, StationData } from "./station_types.d.ts" */

/**
 * @param {HTMLElement} place
 * @param {StationData["deeper"]} part the part of a lesson; none in a file, which has no lessons
 * @param {BoxData | null} box
 * @param {ExerciseData[]} exercises
 * @param {Kept} kept
 * @param {string} here the name of the station
 * @param {Words} words
 * @param {{ deeper: () => void, open: (box: BoxData) => void, build: (exercise: ExerciseData) => void }} press
 */
export function drawSecondHalf(place, part, box, exercises, kept, here, words, { deeper, open, build }) {
  const button = (/** @type {string} */ text, /** @type {boolean} */ done, /** @type {() => void} */ go) =>
    plainButton(done ? "vf-link vf-done" : "vf-link", go, text);
  const ways = [
    ...(part ? [button(`${part.title} →`, kept.deeper.includes(here), deeper)] : []),
    ...(box ? [button(fill(words.inside, { title: box.title }), kept.inside.includes(here), () => open(box))] : []),
  ];
  const minutes = Math.round((part?.minutes ?? 0) + (box?.minutes ?? 0));
  const said = ways.length ? [element("span", "vf-caption", fill(words.second, { minutes }))] : [];
  const built = exercises.map((one) => {
    const made = button(one.title, false, () => build(one));
    made.setAttribute("aria-label", fill(words.build, { title: one.title }));
    return made;
  });
  const named = built.length ? [element("span", "vf-caption", fill(words.build, { title: "" }).trim())] : [];
  place.hidden = !ways.length && !built.length;
  place.replaceChildren(...said, ...ways, ...named, ...built);
}
