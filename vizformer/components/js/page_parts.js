// @ts-check
// How a place on the page is told to browsers whose screens have other sizes.

/**
 * A place: shares of the width and height of a box with a name; and, where the box looks the same there, of the part `within`.
 * @typedef {{ box: string, x: number, y: number, within?: { tag: string, path: number[], x: number, y: number } }} Place
 */

export const FRAME = "stMainBlockContainer";  // what has a name without a key

// The parts that a part of the page consists of, those of a component too.
/** @param {Element} part */
export function partsOf(part) {
  return [...part.shadowRoot?.children ?? [], ...part.children];
}

// What a part of the page lies in; of a component's outermost part, the component.
/** @param {Element} part @returns {Element | null} */
export function aroundOf(part) {
  const root = part.getRootNode();
  return part.parentElement ?? (root instanceof ShadowRoot ? root.host : null);
}

// The part that a place is in, and where in it; null where it is not on this page.
/** @param {Place} place */
export function partOf({ box, x, y, within }) {
  const query = box === FRAME ? `[data-testid=${box}]` : `.${CSS.escape(box)}`;
  const named = document.querySelector(query);
  if (!named) return null;
  const part = (within?.path ?? []).reduce((/** @type {Element | undefined} */ at, index) => at && partsOf(at)[index], named);
  return within && part?.localName === within.tag ? { part, x: within.x, y: within.y } : { part: named, x, y };
}
