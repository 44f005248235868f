// @ts-check
// Each lane of the picture is one stop of the Tab key; the arrow keys go on from there.

import { element } from "./dom.js";

/** @type {Record<string, number>} */
const STEPS = { ArrowLeft: -1, ArrowUp: -1, ArrowRight: 1, ArrowDown: 1 };

/** @param {string} className @param {string} text @param {() => void} action */
export function laneButton(className, text, action) {
  const button = element("button", className, text);
  button.type = "button";
  button.tabIndex = -1;
  button.onclick = action;
  return button;
}

/** @param {HTMLElement} lanes @param {HTMLElement} [chosen] */
export function rove(lanes, chosen) {
  for (const lane of lanes.querySelectorAll(".vf-whole-lane")) {
    const buttons = [...lane.querySelectorAll("button")];
    const one = buttons.find((button) => button === chosen) ?? buttons.find((button) => button.tabIndex === 0) ?? buttons[0];
    for (const button of buttons) button.tabIndex = button === one ? 0 : -1;
  }
}

/** @param {KeyboardEvent} event @param {HTMLElement} lanes */
export function stepInLane(event, lanes) {
  const lane = event.target instanceof HTMLButtonElement ? event.target.closest(".vf-whole-lane") : null;
  if (!lane || !(event.key in STEPS)) return;
  const buttons = [...lane.querySelectorAll("button")];
  const to = buttons[buttons.indexOf(/** @type {HTMLButtonElement} */ (event.target)) + STEPS[event.key]];
  if (to) {
    rove(lanes, to);
    to.focus();
  }
  event.preventDefault();
}
