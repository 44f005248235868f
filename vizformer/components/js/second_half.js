// @ts-check
// What follows the pictures of a station: a part of a lesson, and a look inside the box that is lit.

import { element } from "./dom.js";
import { plainButton } from "./station_questions.js";
import { fill } from "./text.js";

/** @import { Words } from "./types.d.ts" */
/** @import { BoxData, Kept, StationData } from "./station_types.d.ts" */

/**
 * @param {HTMLElement} place
 * @param {StationData["deeper"]} part the part of a lesson; none in a file, which has no lessons
 * @param {BoxData | null} box
 * @param {Kept} kept
 * @param {string} here the name of the station
 * @param {Words} words
 * @param {{ deeper: () => void, open: (box: BoxData) => void }} press
 */
export function drawSecondHalf(place, part, box, kept, here, words, { deeper, open }) {
  const button = (/** @type {string} */ text, /** @type {boolean} */ done, /** @type {() => void} */ go) =>
    plainButton(done ? "vf-link vf-done" : "vf-link", go, text);
  const ways = [
    ...(part ? [button(`${part.title} →`, kept.deeper.includes(here), deeper)] : []),
    ...(box ? [button(fill(words.inside, { title: box.title }), kept.inside.includes(here), () => open(box))] : []),
  ];
  const minutes = Math.round((part?.minutes ?? 0) + (box?.minutes ?? 0));
  place.hidden = !ways.length;
  place.replaceChildren(element("span", "vf-caption", fill(words.second, { minutes })), ...ways);
}
