// @ts-check
// What this browser keeps of the path: answers, stations that were gone through, the two tests.

import { readStore, writeStore } from "./browser_store.js";

/** @import { Kept } from "./station_types.d.ts" */

const STORE = "vizformer.path";

/** @returns {Kept} */
export function readKept() {
  const { answers, done, deeper, inside, at, tests } = readStore(STORE);
  return {
    answers: typeof answers === "object" && answers ? answers : {},
    done: Array.isArray(done) ? done : [],
    deeper: Array.isArray(deeper) ? deeper : [],
    inside: Array.isArray(inside) ? inside : [],
    at: typeof at === "string" ? at : "",
    tests: typeof tests === "object" && tests ? tests : {},
  };
}

/** @param {Kept} kept */
export function writeKept(kept) {
  writeStore(STORE, kept);
}
