// @ts-check
// Hears of the moves of a class's teacher, and has the page run when there is one. Nothing is drawn.

const RETRY = 2000;  // milliseconds after an answer that was none
const OVER = -1;

/** @type {WeakMap<object, { url: string, seen: number, stop: AbortController }>} */
const listening = new WeakMap();

/**
 * @param {{ data: { url: string, seen: number }, parentElement: object,
 *           setStateValue(name: string, value: object): void }} component
 */
export default function follow({ data, parentElement, setStateValue }) {
  const before = listening.get(parentElement);
  if (before && before.url === data.url && !before.stop.signal.aborted) {
    before.seen = Math.max(before.seen, data.seen);
  } else {
    before?.stop.abort();
    const fresh = { url: data.url, seen: data.seen, stop: new AbortController() };
    listening.set(parentElement, fresh);
    listen(fresh, (version) => setStateValue("moved", { version }));
  }
  const ear = listening.get(parentElement);
  return () => ear?.stop.abort();
}

/** @param {{ url: string, seen: number, stop: AbortController }} ear @param {(version: number) => void} tell */
async function listen(ear, tell) {
  const version = await asked(ear);
  if (ear.stop.signal.aborted) return;
  if (version === OVER) {
    tell(OVER);
    return;
  }
  if (version > ear.seen) {
    ear.seen = version;
    tell(version);
  }
  listen(ear, tell);
}

// The version of the class's place, when it is another one or after a while; OVER where there is no such class.
/** @param {{ url: string, seen: number, stop: AbortController }} ear @returns {Promise<number>} */
async function asked({ url, seen, stop }) {
  try {
    const answer = await fetch(`${url}?after=${seen}`, { signal: stop.signal, cache: "no-store" });
    if (answer.status === 404) return OVER;
    if (answer.ok) return (await answer.json()).version;
  } catch {
    // A server that cannot be reached is asked again, like one that has no room for another question.
  }
  await new Promise((later) => { setTimeout(later, RETRY); });
  return seen;
}
