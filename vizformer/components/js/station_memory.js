// @ts-check
// What this browser keeps of the path: answers, stations that were gone through, the two tests.

/** @import { Kept } from "./station_types.d.ts" */

const STORE = "vizformer.path";

/** @returns {Kept} */
export function readKept() {
  try {
    const kept = JSON.parse(localStorage.getItem(STORE) ?? "{}");
    return {
      answers: typeof kept.answers === "object" && kept.answers ? kept.answers : {},
      done: Array.isArray(kept.done) ? kept.done : [],
      at: typeof kept.at === "string" ? kept.at : "",
      tests: typeof kept.tests === "object" && kept.tests ? kept.tests : {},
    };
  } catch {
    return { answers: {}, done: [], at: "", tests: {} };  // it keeps nothing, or something else stands there
  }
}

/** @param {Kept} kept */
export function writeKept(kept) {
  try {
    localStorage.setItem(STORE, JSON.stringify(kept));
  } catch {
    // it keeps nothing
  }
}
