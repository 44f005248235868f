// @ts-check
// What this browser remembers of the course: the names of what has been done, kept in localStorage.
// Nothing is drawn.  The page sends what its session knows; the two are joined, and the page is told what it lacked.

import { readStore, writeStore } from "./js/browser_store.js";

const STORE = "vizformer.progress";

/** @typedef {Record<string, [number, number]>} Missed name -> when it was judged last (ms), and how */

function read() {
  const kept = readStore(STORE);
  const done = Array.isArray(kept.done) ? kept.done.filter((/** @type {unknown} */ name) => typeof name === "string") : [];
  /** @type {Missed} */
  const missed = typeof kept.missed === "object" && kept.missed ? kept.missed : {};
  return { done, missed, forgotten: Number(kept.forgotten) || 0 };
}

/**
 * @param {{ data: { done: string[], missed: Missed, forgotten: number }, setStateValue(name: string, value: object): void }} component
 */
export default function memory({ data, setStateValue }) {
  const kept = read();
  const forgotten = Math.max(kept.forgotten, data.forgotten);
  const old = data.forgotten > kept.forgotten ? { done: [], missed: {} } : kept;
  const done = [...new Set([...old.done, ...data.done])].sort().slice(0, 500);
  const missed = { ...data.missed };
  for (const [name, one] of Object.entries(old.missed).slice(0, 500)) {
    if (Array.isArray(one) && !(missed[name]?.[0] >= one[0])) missed[name] = one; // the later judgement counts
  }
  writeStore(STORE, { done, missed, forgotten });
  const news = done.some((name) => !data.done.includes(name))
    || Object.entries(missed).some(([name, [when]]) => data.missed[name]?.[0] !== when);
  if (news) setStateValue("kept", { done, missed, forgotten: data.forgotten });
}
