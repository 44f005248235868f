// @ts-check
// The clock of the path: how many minutes a station takes, and of the whole path how many are behind the reader.

/** @import { Kept, PathData } from "./station_types.d.ts" */

/** @param {PathData} data @param {Kept} kept @param {string} here the name of the station
 *  @param {boolean} leads whether a button leads to the second halves */
export function clock({ stations, model }, kept, here, leads) {
  const parts = [
    ...stations.map(({ name, minutes }) => ({ name, minutes, done: kept.done.includes(name) })),
    ...(leads ? stations : []).map(({ name, deeper }) => ({ name, minutes: deeper?.minutes ?? 0, done: kept.deeper.includes(name) })),
    ...model.map(({ station, minutes }) => ({ name: station, minutes, done: kept.inside.includes(station) })),
  ];
  const sum = (/** @type {typeof parts} */ some) => Math.round(some.reduce((total, { minutes }) => total + minutes, 0));
  const [all, done] = [sum(parts), sum(parts.filter((part) => part.done))];
  return { all, done, left: all - done, here: sum(parts.filter(({ name }) => name === here)) };
}
