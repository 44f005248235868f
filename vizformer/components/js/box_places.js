// @ts-check
// What a box of the picture is called, what it does, and where its numbers are.

import { fill } from "./text.js";

/** @import { BoxOf, BoxPlace, SentPicture } from "./picture_types.d.ts" */

/** @param {SentPicture} data @param {string} name */
export function boxName({ words, lanes }, name) {
  return words[name === "output" && lanes.length === 1 && lanes[0].stack === "encoder" ? "output_here" : name];
}

/** @param {SentPicture} data @param {string} name @param {BoxOf} of @param {number} row @returns {BoxPlace} */
export function placeOf(data, name, { lane, kind, layer, last }, row) {
  const { stack, tokens } = data.lanes[lane];
  const said = boxName(data, name);
  return {
    box: last ? `last_${name}` : name, layer: layer ?? 0, row, token: tokens[row],
    address: data.addresses?.[kind ?? stack] ?? "", about: about(data, name),
    title: layer === undefined ? said : fill(data.words[`in_${stack}`], { layer, box: said }),
  };
}

/** @param {SentPicture} data @param {string} name */
function about({ words, positions, norm, norm_order: order }, name) {
  if (name === "positions") return fill(words.positions_are, { positions });
  if (name !== "norm") return words[`${name}_is`];
  return `${words[`norm_${order === "post" ? "post" : "pre"}`]} ${words[norm === "layer_norm" ? "layer_norm" : "rms_norm"]}`;
}
