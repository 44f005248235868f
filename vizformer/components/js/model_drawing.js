// @ts-check
// The small drawing of the model beside the stations: its parts from the bottom to the top, the one at hand lit.

import { element } from "./dom.js";
import { plainButton } from "./station_questions.js";
import { fill } from "./text.js";

/** @import { Words } from "./types.d.ts" */
/** @import { BoxData } from "./station_types.d.ts" */

// Whether a press looks into the box: it is lit, and there is something inside.
/** @param {BoxData} part @param {string} here the name of the station */
export function isOpened(part, here) {
  return part.lit_at.includes(here) && part.opens;
}

/**
 * @param {HTMLElement} drawing
 * @param {BoxData[]} model
 * @param {string} here the name of the station
 * @param {Words} words
 * @param {(part: BoxData) => void} press
 */
export function drawModel(drawing, model, here, words, press) {
  drawing.setAttribute("aria-label", words.model);
  const had = drawing.contains(document.activeElement);
  const columns = [0, 1].map((column) => {
    const box = element("div", "vf-stations-stack");
    for (const part of model) {
      if (part.column !== column) continue;
      if (part.starts) box.prepend(element("div", "vf-stations-times", part.starts));
      const opens = isOpened(part, here);
      const made = plainButton(opens ? "vf-stations-box vf-opens" : "vf-stations-box", () => press(part), part.title);
      if (part.lit_at.includes(here)) made.setAttribute("aria-current", "true");
      if (opens) made.setAttribute("aria-label", fill(words.open, { title: part.title }));
      box.prepend(made);
    }
    return box;
  });
  drawing.replaceChildren(...columns.filter((box) => box.childElementCount));
  drawing.hidden = !model.length;
  if (had) drawing.querySelector("button")?.focus({ preventScroll: true });
}
