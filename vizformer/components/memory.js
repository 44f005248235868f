// @ts-check
// What this browser remembers of the course: the names of what has been done, kept in localStorage.
// Nothing is drawn.  The page sends what its session knows; the two are joined, and the page is told what it lacked.

const STORE = "vizformer.progress";

function read() {
  try {
    const kept = JSON.parse(localStorage.getItem(STORE) ?? "{}");
    const done = Array.isArray(kept?.done) ? kept.done.filter((/** @type {unknown} */ name) => typeof name === "string") : [];
    return { done, forgotten: Number(kept?.forgotten) || 0 };
  } catch {
    return { done: [], forgotten: 0 }; // no storage (a private window), or not what we wrote
  }
}

/**
 * @param {{ data: { done: string[], forgotten: number }, setStateValue(name: string, value: object): void }} component
 */
export default function memory({ data, setStateValue }) {
  const kept = read();
  const forgotten = Math.max(kept.forgotten, data.forgotten);
  const old = data.forgotten > kept.forgotten ? [] : kept.done;
  const done = [...new Set([...old, ...data.done])].sort().slice(0, 500);
  try {
    localStorage.setItem(STORE, JSON.stringify({ done, forgotten }));
  } catch {
    // the session still remembers
  }
  if (done.some((name) => !data.done.includes(name))) setStateValue("kept", { done, forgotten: data.forgotten });
}
