// @ts-check
// How many layers are not drawn in a place of the picture; one of them can be chosen.

import { element, option } from "./dom.js";
import { fill } from "./text.js";

/** @import { Words } from "./types.d.ts" */

/** @param {Words} words @param {number} from @param {number} to the first that is drawn again @param {((layer: number) => void) | null} pick */
export function hiddenLayers(words, from, to, pick) {
  const list = element("select", "vf-whole-more");
  list.setAttribute("aria-label", words.which_layer);
  list.disabled = !pick;
  list.append(option("", fill(words.more, { count: to - from }), true));
  for (let layer = from; layer < to; layer++) list.append(option(layer, fill(words.layer, { layer }), false));
  list.onchange = () => pick?.(Number(list.value));
  return list;
}
