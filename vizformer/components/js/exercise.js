// @ts-check
// An exercise of a station: what is to be written, in words and symbols, and the code to begin with.

import { element } from "./dom.js";
import { plainButton } from "./station_questions.js";

/** @import { Words } from "./types.d.ts" */
/** @import { ExerciseData } from "./station_types.d.ts" */

/** @param {ExerciseData} exercise @param {Words} words @param {() => void} close */
export function drawExercise({ title, text, symbols, code }, words, close) {
  const bar = element("div", "vf-bar vf-stations-bar");
  bar.append(element("b", "vf-title", title), plainButton("", close, words.close));
  const written = [symbols, code].map((lines) => {
    const made = element("pre", "vf-stations-code", lines);
    made.tabIndex = 0;  // it scrolls sideways
    return made;
  });
  return [bar, element("p", "", text), ...written, element("p", "vf-caption", words.check)];
}
