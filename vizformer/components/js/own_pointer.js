// @ts-check
// Tells a class where its teacher's pointer is: the part of the page below it, and the place within. Nothing is drawn.

import { FRAME, aroundOf, partsOf } from "./page_parts.js";

const EVERY_PLACE = 120;  // milliseconds between two places
const STILL = 8000;  // milliseconds after which a pointer that rests is taken away
const NAMED = /^st-key-[\w-]{1,80}$/;  // as the server takes them (classroom/requests.py)
const DEEPEST = 60;  // parts within each other; likewise

/**
 * Tells the places of the pointer to `url`, until what is returned is called.
 * @param {string} url @param {string} secret @returns {() => void}
 */
export function tellPointer(url, secret) {
  const stop = new AbortController();
  let waits = 0;
  let rests = 0;
  let last = JSON.stringify({ secret, at: null });
  /** @type {PointerEvent | null} */
  let newest = null;
  const tell = () => {
    waits = 0;
    const body = JSON.stringify({ secret, at: newest && placeAt(newest.clientX, newest.clientY) });
    if (body === last) return;
    last = body;
    fetch(url, { method: "POST", body, keepalive: true }).catch(() => {});  // the next place is told again
  };
  const takeAway = () => {
    newest = null;
    tell();
  };
  const moved = () => {
    if (!newest) return;
    waits ||= setTimeout(tell, EVERY_PLACE);
    clearTimeout(rests);
    rests = setTimeout(takeAway, STILL);
  };
  const options = { signal: stop.signal, passive: true, capture: true };
  addEventListener("pointermove", (event) => {
    newest = event;
    moved();
  }, options);
  addEventListener("scroll", moved, options);  // the page goes by below a pointer that stands still
  document.addEventListener("pointerleave", takeAway, { signal: stop.signal });
  return () => {
    stop.abort();
    clearTimeout(waits);
    clearTimeout(rests);
    takeAway();
  };
}

// The smallest part of the page around a point, as the way to it from the nearest part with a name, and the shares of its width
// and height: so that it is found on a screen of another size.  Read off the page as it is when this is told: what an event
// named may have moved away since, or be gone.
/** @param {number} x @param {number} y @returns {import("./page_parts.js").Place | null} */
function placeAt(x, y) {
  const part = partAt(x, y, document);
  /** @type {number[]} */
  const path = [];
  let named = part;
  while (named && !nameOf(named)) {
    const around = aroundOf(named);
    if (around) path.unshift(partsOf(around).indexOf(named));
    named = around;
  }
  if (!part || !named || path.length > DEEPEST) return null;
  return { box: nameOf(named), ...shares(named, x, y), within: { tag: part.localName, path, ...shares(part, x, y) } };
}

/** @param {number} x @param {number} y @param {Document | ShadowRoot} root @returns {Element | null} */
function partAt(x, y, root) {
  const part = root.elementFromPoint(x, y);
  return part?.shadowRoot && part.getRootNode() === root ? partAt(x, y, part.shadowRoot) ?? part : part;
}

/** @param {Element} part */
function nameOf(part) {
  const test = part.getAttribute("data-testid") ?? "";
  return [...part.classList].find((name) => NAMED.test(name)) ?? (test === FRAME ? test : "");
}

/** @param {Element} part @param {number} x @param {number} y */
function shares(part, x, y) {
  const { left, top, width, height } = part.getBoundingClientRect();
  return { x: share(x - left, width), y: share(y - top, height) };
}

/** @param {number} length @param {number} whole */
function share(length, whole) {
  return whole > 0 ? Math.min(Math.max(length / whole, -1), 2) : 0;
}
