// @ts-check
// The pointer of a class's teacher, on the screens of those who follow: a ring at the same place of the same part of the page.

import { aroundOf, partOf } from "./page_parts.js";

/** @typedef {import("./page_parts.js").Place} Place */

const GONE = 400;  // milliseconds until it is taken away for good: between two pages nothing draws it
const REDRAWN = 300;  // milliseconds: the part of the page may come later than the pointer, or move
const CLOSED_FOR = 5000;  // milliseconds until a server that refused the stream is asked again
const LEFT_ALONE = 10_000;  // milliseconds after a student's own scrolling, touching or typing in which nothing scrolls

/** @type {{ url: string, source: EventSource | null, ring: HTMLElement | null, place: Place | null, users: Set<object>,
 *           isNew: boolean, redraws: number, stop: AbortController, own: number }} */
const shown = {
  url: "", source: null, ring: null, place: null, users: new Set(), isNew: false, redraws: 0, stop: new AbortController(), own: -LEFT_ALONE,
};

/**
 * Shows the pointer of the class at `url` ("" for none), for as long as `user` is on the page.
 * @param {string} url @param {object} user @returns {() => void} to be called when it leaves
 */
export function showPointer(url, user) {
  shown.users.add(user);
  if (url !== shown.url) connect(url);
  return () => {
    shown.users.delete(user);
    setTimeout(() => { if (!shown.users.size) connect(""); }, GONE);
  };
}

/** @param {string} url */
function connect(url) {
  shown.url = url;
  shown.stop.abort();
  shown.stop = new AbortController();
  place(null);
  openStream();
  if (!url) return;
  const options = { signal: shown.stop.signal, passive: true, capture: true };
  for (const name of ["wheel", "touchmove", "pointerdown", "keydown"]) {
    addEventListener(name, () => { shown.own = performance.now(); }, options);
  }
  addEventListener("scroll", draw, options);
}

// A stream ends after a while and asks for the next one; where the server is away the browser asks again by itself.
function openStream() {
  shown.source?.close();
  const source = shown.source = shown.url ? new EventSource(shown.url) : null;
  if (!source) return;
  source.onmessage = ({ data }) => { place(JSON.parse(data)); };
  source.onerror = () => {
    if (source.readyState === EventSource.CLOSED) setTimeout(() => { if (source === shown.source) openStream(); }, CLOSED_FOR);
  };
  source.addEventListener("again", openStream);
}

/** @param {Place | null} where */
function place(where) {
  shown.place = where;
  shown.isNew = true;
  clearInterval(shown.redraws);
  if (where) shown.redraws = setInterval(draw, REDRAWN);
  draw();
}

function draw() {
  const found = shown.place && partOf(shown.place);
  const { left, top, width, height } = found?.part.getBoundingClientRect() ?? new DOMRect();
  if (!found || !width || !height) {
    shown.ring?.remove();
    shown.ring = null;
    return;
  }
  const [x, y] = [left + found.x * width, top + found.y * height];
  if (shown.isNew && performance.now() - shown.own > LEFT_ALONE) bringIntoSight(found.part, x, y);
  shown.isNew = false;
  shown.ring ??= document.body.appendChild(ring());
  shown.ring.style.transform = `translate(${x}px, ${y}px)`;
}

// Scrolls what holds a part of the page so far that a point of it is in the middle, where it is out of sight.
/** @param {Element} part @param {number} x @param {number} y */
function bringIntoSight(part, x, y) {
  const behavior = matchMedia("(prefers-reduced-motion: reduce)").matches ? "instant" : "smooth";
  for (let around = aroundOf(part); around; around = aroundOf(around)) {
    const { overflowX, overflowY } = getComputedStyle(around);
    const { left, top, right, bottom } = around.getBoundingClientRect();
    const aside = /auto|scroll/.test(overflowX) ? beyond(x, left, right) : 0;
    const down = /auto|scroll/.test(overflowY) ? beyond(y, top, bottom) : 0;
    if (aside || down) around.scrollBy({ left: aside, top: down, behavior });
    [x, y] = [x - aside, y - down];
  }
}

// How far a place is from the middle between two others; 0 where it lies between them.
/** @param {number} at @param {number} from @param {number} to */
function beyond(at, from, to) {
  return at < from || at > to ? at - (from + to) / 2 : 0;
}

function ring() {
  const made = document.createElement("div");
  made.className = "vf-class-pointer";
  made.setAttribute("aria-hidden", "true");
  Object.assign(made.style, {
    position: "fixed", left: "-14px", top: "-14px", width: "28px", height: "28px", borderRadius: "50%", boxSizing: "border-box",
    border: "4px solid #d55e00", boxShadow: "0 0 0 2px #ffffff, inset 0 0 0 2px #ffffff", pointerEvents: "none", zIndex: "1000000",
    transition: matchMedia("(prefers-reduced-motion: reduce)").matches ? "none" : "transform 120ms linear",
  });
  return made;
}
