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
      ...one, lane, queries, keys, queryCount: own.count, address: data.addresses?.[one.kind] ?? "",
      weightAt: (h, q, k) => weights[place(h, q, k)] / 65535,
      scoreAt: (h, q, k) => scores[place(h, q, k)] ?? data.score,
      totalAt: (h, q) => totals[row + h * n + q],
      reasonAt: (q, k) => reasons[mask + q * m + k],
    };
  }));
  return { maps, strips: /** @type {Uint8Array} */ (read("strips")) };
}
