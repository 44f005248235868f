// @ts-check
// Hears of the moves of a class's teacher, and has the page run when there is one. Nothing is drawn.

const RETRY = 2000; // milliseconds after an answer that was none

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
  while (!ear.stop.signal.aborted) {
    try {
      const answer = await fetch(`${ear.url}?after=${ear.seen}`, { signal: ear.stop.signal, cache: "no-store" });
      if (answer.status === 404) {
        tell(-1);
        return;
      }
      const { version } = await answer.json();
      if (version > ear.seen) {
        ear.seen = version;
        tell(version);
      }
    } catch {
      await new Promise((later) => setTimeout(later, RETRY));
    }
  }
}
