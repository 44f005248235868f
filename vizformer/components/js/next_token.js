// @ts-check
// The most probable next tokens as bars that can be pressed: that token is written.

import { element, signButton } from "./dom.js";
import { fill, visible } from "./text.js";

/** @import { Words } from "./types.d.ts" */
/** @import { SentPicture } from "./picture_types.d.ts" */

const LONG = 18;  // Chinese characters, or pairs of Latin letters, of a line of what was written
const WHOLE = 0.5;  // a probability from which on the largest has the whole length

/**
 * @param {HTMLElement} host
 * @param {SentPicture["candidates"][number]} candidates
 * @param {Words} words
 * @param {((token: number) => void) | null} press
 */
export function drawCandidates(host, candidates, words, press) {
  const most = Math.max(WHOLE, ...candidates.map(([, , p]) => p));
  host.replaceChildren(...candidates.map(([text, id, p, special]) => {
    const button = element("button", "vf-whole-candidate");
    button.type = "button";
    button.disabled = special || !press;
    button.title = special ? words.ends : fill(words.write, { token: visible(text) });
    const bar = element("i");
    bar.style.width = `${Math.max(1, (p / most) * 100)}%`;
    const track = element("span", "vf-whole-track");
    track.append(bar);
    button.append(element("b", "", visible(text)), track, element("span", "", `${(100 * p).toFixed(1)} %`));
    button.onclick = () => press?.(id);
    return button;
  }));
}

// What was written, the current token framed; without a stack beside it, the token that comes after the row.
/**
 * @param {HTMLElement} host
 * @param {SentPicture} data
 * @param {number} row
 * @param {number} predicted the row of the candidates
 * @param {(() => void) | null} undo lets the model write again
 */
export function drawWritten(host, { lanes, written, candidates, own, words }, row, predicted, undo) {
  if (lanes.length > 1) {
    host.replaceChildren(...written.flatMap((text, i) => {
      const word = text.trimStart();  // the frame would lie over the word before
      return i === row ? [text.slice(0, text.length - word.length), element("mark", "", word)] : [text];
    }));
    if (lanes[1].count > lanes[1].tokens.length) host.append(" …");
    if (!own && undo) host.append(" ", signButton("↺", words.own, undo));
  } else {
    const next = candidates[predicted]?.[0];
    host.replaceChildren(...(next ? [`${visible(lanes[0].tokens[predicted])} → `, element("mark", "", visible(next[0]))] : []));
  }
  host.classList.toggle("vf-whole-long", written.join("").replace(/[ -\u024f]{2}/g, "m").length > LONG);
}
