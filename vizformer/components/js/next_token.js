// @ts-check
// The most probable next tokens as bars that can be pressed: that token is written.

import { element } from "./dom.js";
import { fill, visible } from "./text.js";

/** @import { Words } from "./types.d.ts" */
/** @import { SentPicture } from "./picture_types.d.ts" */

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
