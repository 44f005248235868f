// @ts-check
// Hears of the moves of a class's teacher, and has the page run when there is one. Nothing is drawn.

import { showPointer } from "./js/class_pointer.js";

/** @typedef {{ url: string, seen: number, stop: AbortController, caughtUp: () => void }} Ear */

const RETRY = 2000;  // milliseconds after an answer that was none
const OVER = -1;
const SOON = 5000;  // milliseconds in which a page draws what is asked on it
const PATIENCE = 60_000;  // milliseconds in which a page shows what it was told of

/** @type {WeakMap<object, Ear>} */
const listening = new WeakMap();
let brought = "";  // the box that was brought into sight last

/**
 * @param {{ data: { url: string, seen: number, box: string, points: boolean }, parentElement: object,
 *           setStateValue(name: string, value: object): void }} component
 */
export default function follow({ data, parentElement, setStateValue }) {
  const before = listening.get(parentElement);
  if (before && before.url === data.url && !before.stop.signal.aborted) {
    before.seen = Math.max(before.seen, data.seen);
    if (data.seen >= before.seen) before.caughtUp();
  } else {
    before?.stop.abort();
    const fresh = { url: data.url, seen: data.seen, stop: new AbortController(), caughtUp() {} };
    listening.set(parentElement, fresh);
    listen(fresh, (version) => setStateValue("moved", { version }));
  }
  if (data.box !== brought) bring(data.box);
  const ear = listening.get(parentElement);
  const away = showPointer(data.points ? `${data.url}/pointer` : "", parentElement);
  return () => {
    ear?.stop.abort();
    away();
  };
}

/** @param {Ear} ear @param {(version: number) => void} tell */
async function listen(ear, tell) {
  const version = await asked(ear);
  if (ear.stop.signal.aborted) return;
  if (version === OVER) {
    tell(OVER);  // the page takes this away, unless the class is there again
    await later(RETRY);
  } else if (version > ear.seen) {
    // Not asked again before the page shows it: a run for the next move, sent from the page that is being left, would
    // come after the one that goes to the new page, and bring the old one back.
    ear.seen = version;
    const shown = new Promise((resolve) => { ear.caughtUp = () => resolve(undefined); });
    tell(version);
    await Promise.race([shown, later(PATIENCE)]);
  }
  if (!ear.stop.signal.aborted) listen(ear, tell);
}

// The version of the class's place, when it is another one or after a while; OVER where there is no such class, also when
// asked a second time: what keeps the classes may have been started again, and gets them back in a moment.
/** @param {Ear} ear @returns {Promise<number>} */
async function asked(ear, missed = false) {
  const { url, seen, stop } = ear;
  let missing = false;
  try {
    const answer = await fetch(`${url}?after=${seen}`, { signal: stop.signal, cache: "no-store" });
    if (answer.ok) return (await answer.json()).version;
    missing = answer.status === 404;
  } catch {
    // A server that cannot be reached is asked again, like one that has no room for another question.
  }
  if (missing && missed) return OVER;
  await later(RETRY);
  return missing && !stop.signal.aborted ? asked(ear, true) : seen;
}

/** @param {number} milliseconds */
function later(milliseconds) {
  return new Promise((resolve) => { setTimeout(resolve, milliseconds); });
}

// Scrolls to what the teacher asks, as soon as it is drawn.
/** @param {string} box */
function bring(box) {
  brought = box;
  if (!box) return;
  const until = performance.now() + SOON;
  const look = () => {
    const found = document.getElementsByClassName(box)[0];
    if (found) found.scrollIntoView({ block: "center" });
    else if (brought === box && performance.now() < until) setTimeout(look, 100);
  };
  look();
}
