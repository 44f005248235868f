// @ts-check
// A question of the path: its options as buttons, and what is said once one was chosen.

import { element } from "./dom.js";
import { fill } from "./text.js";

/** @import { Words } from "./types.d.ts" */
/** @import { StationStep } from "./station_types.d.ts" */

/**
 * @param {{ asked: StationStep, heading: string, chosen: number, turned: boolean, words: Words }} about
 *   `turned`: the options stand the other way round.
 * @param {(choice: number) => void} answer
 */
export function drawQuestion({ asked, heading, chosen, turned, words }, answer) {
  const { options = [], right = 0 } = asked;
  const given = options[chosen];
  const buttons = options.map((option, index) => {
    const made = plainButton("vf-stations-option", () => answer(index), option.text);
    made.disabled = given !== undefined;
    if (given && index === right) made.classList.add("vf-right");
    if (given === option && index !== right) made.classList.add("vf-wrong");
    return made;
  });
  const row = element("div", "vf-stations-options");
  row.append(...(turned ? buttons.toReversed() : buttons));
  const said = element("p", "vf-stations-because");
  said.setAttribute("role", "status");
  if (given) {
    const wrong = `${words.wrong} ${fill(words.answer, { answer: options[right].text })}`;
    said.textContent = `${chosen === right ? words.right : wrong} ${given.because}`;
  }
  return [element("b", "", heading), row, said];
}

/** @param {string} className @param {() => void} action @param {string} [text] */
export function plainButton(className, action, text) {
  const made = element("button", className, text);
  made.type = "button";
  made.onclick = action;
  return made;
}
