// @ts-check
// The clock of the path: the minutes of its pictures, those still to go, and those with every second half.

/** @import { Kept, PathData } from "./station_types.d.ts" */

/** @param {PathData} data @param {Kept} kept
 *  @param {boolean} leads whether a button leads to the second halves */
export function clock({ stations }, kept, leads) {
  const sum = (/** @type {number[]} */ some) => Math.round(some.reduce((total, minutes) => total + minutes, 0));
  const pictures = stations.map(({ minutes }) => minutes);
  const left = stations.filter(({ name }) => !kept.done.includes(name)).map(({ minutes }) => minutes);
  const halves = stations.map(({ deeper }) => (leads && deeper?.minutes) || 0);
  return { all: sum(pictures), left: sum(left), whole: sum([...pictures, ...halves]) };
}
