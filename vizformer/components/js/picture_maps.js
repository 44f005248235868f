// @ts-check
// The maps of the picture of the whole model, as they are read from what Python sent.

import { readColumn } from "./numbers.js";

/** @import { PictureMaps, SentPicture } from "./picture_types.d.ts" */

// The heads of all layers that are drawn, and the strips of the rows that enter.
/** @param {SentPicture} data @returns {{ maps: PictureMaps[], strips: Uint8Array }} */
export function readPicture(data) {
  const read = (/** @type {"strips" | "weights" | "scores" | "reasons" | "totals"} */ name) =>
    readColumn(data[name], data.types?.[name]) ?? new Float32Array();
  const [weights, scores, reasons, totals] = [read("weights"), read("scores"), read("reasons"), read("totals")];
  let [cells, masks, rows] = [0, 0, 0];
  /** @type {PictureMaps[]} */
  const maps = data.lanes.flatMap((own, lane) => own.maps.map((one) => {
    const other = one.kind === "cross" ? data.lanes[0] : own;
    const [queries, keys] = [own.tokens, other.tokens];
    const [n, m, cell, mask, row] = [queries.length, keys.length, cells, masks, rows];
    [cells, masks, rows] = [cells + one.heads.length * n * m, masks + n * m, rows + one.heads.length * n];
    const place = (/** @type {number} */ h, /** @type {number} */ q, /** @type {number} */ k) => cell + (h * n + q) * m + k;
    return {
      ...one, lane, queries, keys, queryGlosses: own.glosses, keyGlosses: other.glosses, queryCount: own.kept ?? own.count, address: data.addresses?.[one.kind] ?? "",
      weightAt: (h, q, k) => weights[place(h, q, k)] / 65535,
      scoreAt: (h, q, k) => scores[place(h, q, k)] ?? data.score,
      totalAt: (h, q) => totals[row + h * n + q],
      reasonAt: (q, k) => reasons[mask + q * m + k],
    };
  }));
  return { maps, strips: /** @type {Uint8Array} */ (read("strips")) };
}

// Where other layers or heads are drawn than before: the same head, or the first of the layer that was asked for.
/** @param {PictureMaps[]} maps @param {PictureMaps} was @param {number} number of its head @param {number} [wanted] the layer */
export function sameHead(maps, was, number, wanted) {
  const layer = wanted ?? was.layer;
  const at = Math.max(0, maps.findIndex((one) => one.kind === was.kind && one.layer === layer));
  const head = maps[at].heads.indexOf(number);
  return { at, head: Math.max(0, head), same: head >= 0 && maps[at].layer === was.layer };
}
