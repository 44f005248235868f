// @ts-check
// The pointer of a class's teacher, on the screens of those who follow: a ring at the same place of the same part of the page.

/** @typedef {{ box: string, x: number, y: number }} Place */

const GONE = 400;  // milliseconds until it is taken away for good: between two pages nothing draws it

/** @type {{ url: string, source: EventSource | null, ring: HTMLElement | null, place: Place | null, users: Set<object> }} */
const shown = { url: "", source: null, ring: null, place: null, users: new Set() };

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
  place(null);
  openStream();
}

// A stream ends after a while and asks for the next one; where the server is away the browser asks again by itself.
function openStream() {
  shown.source?.close();
  shown.source = shown.url ? new EventSource(shown.url) : null;
  if (!shown.source) return;
  shown.source.onmessage = ({ data }) => { place(JSON.parse(data)); };
  shown.source.addEventListener("again", openStream);
}

/** @param {Place | null} where */
function place(where) {
  if (where && !shown.place) addEventListener("scroll", draw, true);
  if (!where && shown.place) removeEventListener("scroll", draw, true);
  shown.place = where;
  draw();
}

function draw() {
  const where = shown.place;
  const box = where && (where.box ? document.getElementsByClassName(where.box)[0] : document.querySelector("[data-testid=stMain]"));
  if (!where || !box) {
    shown.ring?.remove();
    shown.ring = null;
    return;
  }
  shown.ring ??= document.body.appendChild(ring());
  const { left, top, width, height } = box.getBoundingClientRect();
  shown.ring.style.transform = `translate(${left + where.x * width}px, ${top + where.y * height}px)`;
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
