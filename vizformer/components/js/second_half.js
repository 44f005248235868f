// @ts-check
// What follows the pictures of a station: a part of a lesson, and what can be built.

import { element } from "./dom.js";
import { plainButton } from "./station_questions.js";
import { fill } from "./text.js";

/** @import { Words } from "./types.d.ts" */
/** @import { ExerciseData, StationData } from "./station_types.d.ts" */

/**
 * @param {HTMLElement} place
 * @param {StationData["deeper"]} part the part of a lesson; none in a file, which has no lessons
 * @param {ExerciseData[]} exercises
 * @param {boolean} done whether the reader was there
 * @param {Words} words
 * @param {{ deeper: () => void, build: (exercise: ExerciseData) => void }} press
 */
export function drawSecondHalf(place, part, exercises, done, words, { deeper, build }) {
  const said = part ? [
    element("span", "vf-caption", fill(words.second, { minutes: Math.round(part.minutes) })),
    plainButton(done ? "vf-link vf-done" : "vf-link", deeper, `${part.title} →`),
  ] : [];
  const built = exercises.map((one) => {
    const made = plainButton("vf-link", () => build(one), one.title);
    made.setAttribute("aria-label", fill(words.build, { title: one.title }));
    return made;
  });
  const named = built.length ? [element("span", "vf-caption", fill(words.build, { title: "" }).trim())] : [];
  place.hidden = !said.length && !built.length;
  place.replaceChildren(...said, ...named, ...built);
}
