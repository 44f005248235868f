// @ts-check
// What is inside a box of the drawing: one step after the other, and the sum behind a number that is pressed.

import { element } from "./dom.js";
import { drawFrame } from "./station_parts.js";
import { plainButton } from "./station_questions.js";

/** @import { Theme, Words } from "./types.d.ts" */
/** @import { InsideData } from "./station_types.d.ts" */

/**
 * @param {{ title: string, inside: InsideData[] }} box
 * @param {number} at the step that is shown
 * @param {{ theme: Theme, words: Words, room: number, go: (step: number) => void, close: () => void }} how
 */
export function drawInside({ title, inside }, at, { theme, words, room, go, close }) {
  const { text, grid, proof } = inside[at];
  const bar = element("div", "vf-bar vf-stations-bar");
  bar.append(element("b", "vf-title", title), plainButton("", close, words.close));
  const steps = element("div", "vf-stations-options");
  steps.append(...inside.map((one, index) => {
    const made = plainButton("vf-stations-option", () => go(index), `${index + 1} · ${one.title}`);
    if (index === at) made.setAttribute("aria-current", "step");
    return made;
  }));
  const [picture] = drawFrame(grid, theme, words, room);
  const sum = element("p", "vf-station-said", picture.querySelector("[data-tip]") ? words.press : "");
  sum.setAttribute("role", "status");
  const tell = (/** @type {Event} */ event) => {
    const cell = event.target instanceof HTMLElement ? event.target.closest("[data-tip]") : null;
    if (cell instanceof HTMLElement) sum.textContent = cell.dataset.tip ?? "";
  };
  picture.addEventListener("click", tell);
  picture.addEventListener("focusin", tell);
  return [bar, steps, element("p", "", text), picture, sum, element("p", "vf-caption", proof)];
}
