// @ts-check
// The tokens and the small maps of the picture of the whole model, each a button; the strips between them.

import { element } from "./dom.js";
import { laneButton } from "./lane_keys.js";
import { paint, weightStep } from "./paint.js";
import { fill, visible } from "./text.js";

/** @import { Theme, Words } from "./types.d.ts" */
/** @import { PictureMaps, SentLane } from "./picture_types.d.ts" */

export const CROWDED = 12;  // tokens of a lane from which on they stand in several columns
const ROW = 30;  // px, of a lane that is not crowded

// The rows of a lane, one of them below the other.
/** @param {SentLane} lane @param {Theme} theme @param {Uint8Array} strips @param {number} start its first shade */
export function drawStrip({ tokens, cells }, theme, strips, start) {
  const picture = paint(tokens.length, cells, (i) => theme.scores[strips[start + i]]);
  picture.setAttribute("aria-hidden", "true");
  if (tokens.length <= CROWDED) picture.style.maxHeight = `${tokens.length * ROW}px`;
  return picture;
}

/** @param {string} token @param {string | undefined} gloss what it means @param {() => void} press */
export function tokenButton(token, gloss, press) {
  const button = laneButton("vf-whole-token", visible(token), press);
  if (gloss) button.append(" ", element("small", "vf-whole-gloss", gloss));
  button.title = visible(token);
  return button;
}

// The heads of one attention.
/** @param {PictureMaps} maps @param {Theme} theme @param {Words} words @param {(head: number, button: HTMLButtonElement) => void} press */
export function headButtons(maps, theme, words, press) {
  const [rows, columns] = [maps.queries.length, maps.keys.length];
  return maps.heads.map((head, i) => {
    const button = laneButton("vf-whole-map", "", () => press(i, button));
    button.title = fill(words[`title_${maps.kind}`], { layer: maps.layer, head });
    button.setAttribute("aria-label", button.title);
    button.append(paint(rows, columns, (cell) => {
      const [query, key] = [Math.floor(cell / columns), cell % columns];
      return maps.reasonAt(query, key) ? 0 : theme.weights[weightStep(maps.weightAt(i, query, key))];
    }));
    return button;
  });
}
