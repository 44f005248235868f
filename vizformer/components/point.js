// @ts-check
// Tells the class where its teacher's pointer is: the part of the page below it, and the place within. Nothing is drawn.

const EVERY = 120;  // milliseconds between two places
const BOX = /^st-key-[\w-]{1,80}$/;  // as the server takes them (classroom/pointing.py)
const STILL = 8000;  // milliseconds after which a pointer that rests is taken away

/** @type {WeakMap<object, { stop: AbortController }>} */
const pointing = new WeakMap();

/** @param {{ data: { url: string, secret: string }, parentElement: object }} component */
export default function point({ data, parentElement }) {
  pointing.get(parentElement)?.stop.abort();
  const stop = new AbortController();
  pointing.set(parentElement, { stop });
  const send = sender(data.url, data.secret);
  let waits = 0;
  let rests = 0;
  /** @type {PointerEvent | null} */
  let newest = null;
  const tell = () => {
    waits = 0;
    if (newest) send(placeOf(newest));
  };
  addEventListener("pointermove", (event) => {
    newest = event;
    waits ||= setTimeout(tell, EVERY);
    clearTimeout(rests);
    rests = setTimeout(() => send(null), STILL);
  }, { signal: stop.signal, passive: true });
  document.addEventListener("pointerleave", () => send(null), { signal: stop.signal });
  return () => {
    stop.abort();
    clearTimeout(waits);
    clearTimeout(rests);
    send(null);
  };
}

/** @param {string} url @param {string} secret */
function sender(url, secret) {
  let last = "null";
  /** @param {{ box: string, x: number, y: number } | null} at */
  return (at) => {
    const body = JSON.stringify({ secret, at });
    if (body === last) return;
    last = body;
    fetch(url, { method: "POST", body, keepalive: true }).catch(() => {});  // the next place is told again
  };
}

// The smallest part of the page with a name of its own around the pointer, so that it is there at the same place on every
// screen.  Read off the page as it is when this is told: what the event named may have moved away, or be gone.
/** @param {PointerEvent} event */
function placeOf({ clientX, clientY }) {
  let around = document.elementFromPoint(clientX, clientY);
  while (around && !(nameOf(around) && isIn(around.getBoundingClientRect()))) around = around.parentElement;
  const box = around ? nameOf(around) : "";
  around ??= document.querySelector("[data-testid=stMain]");
  const area = around?.getBoundingClientRect();
  if (!area || !isIn(area)) return null;
  return { box, x: (clientX - area.left) / area.width, y: (clientY - area.top) / area.height };

  /** @param {DOMRect} area */
  function isIn({ left, top, right, bottom, width, height }) {
    return width > 0 && height > 0 && left <= clientX && clientX <= right && top <= clientY && clientY <= bottom;
  }
}

/** @param {Element} element */
function nameOf(element) {
  return [...element.classList].find((name) => BOX.test(name)) ?? "";
}
