// @ts-check
// What a teacher sees of the class that runs: its code and how many follow. Tells the class where the pointer is.

import { tellPointer } from "./js/own_pointer.js";

const EVERY = 3000;  // milliseconds between two counts

/** @type {WeakMap<object, () => void>} */
const leading = new WeakMap();
let count = "…";  // as it was known last: another page begins with it

/**
 * @param {{ data: { url: string, text: string, secret: string, points: boolean }, parentElement: HTMLElement,
 *           setStateValue(name: string, value: object): void }} component
 */
export default function lead({ data, parentElement, setStateValue }) {
  leading.get(parentElement)?.();
  const stop = new AbortController();
  const line = parentElement.querySelector("span") ?? parentElement.appendChild(document.createElement("span"));
  Object.assign(line.style, { fontSize: "0.875rem", opacity: "0.75", whiteSpace: "nowrap" });
  const show = () => { line.textContent = data.text.replace("{n}", count); };
  show();
  ask();
  const asking = setInterval(ask, EVERY);
  const away = data.points ? tellPointer(`${data.url}/pointer`, data.secret) : () => {};
  const end = () => {
    stop.abort();
    clearInterval(asking);
    away();
  };
  leading.set(parentElement, end);
  return end;

  async function ask() {
    try {
      const answer = await fetch(`${data.url}/followers`, { signal: stop.signal, cache: "no-store" });
      if (!answer.ok) return;
      const found = (await answer.json()).count;
      if (found === null) setStateValue("over", { url: data.url });
      count = String(found ?? "…");
      show();
    } catch {
      // A server that cannot be reached is asked again.
    }
  }
}
