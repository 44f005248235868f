// @ts-check
// What this browser keeps of the path: answers, and which stations were gone through.

import { readStore, writeStore } from "./browser_store.js";

/** @import { Kept, StationData } from "./station_types.d.ts" */

const STORE = "vizformer.path";

/** @returns {Kept} */
export function readKept() {
  const { answers, done, deeper, at } = readStore(STORE);
  return {
    answers: typeof answers === "object" && answers ? answers : {},
    done: Array.isArray(done) ? done : [],
    deeper: Array.isArray(deeper) ? deeper : [],
    at: typeof at === "string" ? at : "",
  };
}

/** @param {Kept} kept */
export function writeKept(kept) {
  writeStore(STORE, kept);
}

/** @param {StationData} station */
export function questionOf({ steps }) {
  return steps.find(({ kind }) => kind === "ask");
}

// The first of these stations whose question is due again: at once where the prediction was wrong, else the next day.
/** @param {StationData[]} before @param {Kept} kept @param {number} day ms */
export function dueStation(before, { answers }, day) {
  return before.find((station) => {
    const kept = answers[station.name];
    return kept && questionOf(station)?.again && ((!kept.right && !kept.again) || Date.now() - (kept.when ?? 0) > day);
  });
}

// A question that was asked again and not answered: it comes the next day, and not at each station until then.
/** @param {Kept} kept @param {StationData} station */
export function passOver({ answers }, { name }) {
  Object.assign(answers[name], { again: true, when: Date.now() });
}

// How many questions of these stations were answered, and how many rightly.
/** @param {StationData[]} stations @param {Kept} kept */
export function counted(stations, kept) {
  const answers = stations.map(({ name }) => kept.answers[name]).filter(Boolean);
  return { right: answers.filter(({ right }) => right).length, count: answers.length };
}
