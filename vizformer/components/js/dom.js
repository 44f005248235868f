// @ts-check
// Elements of the page.

// A new element; text always as text, never as markup.
/**
 * @template {keyof HTMLElementTagNameMap} Tag
 * @param {Tag} tag
 * @param {string} [className]
 * @param {string} [text]
 * @returns {HTMLElementTagNameMap[Tag]}
 */
export function element(tag, className, text) {
  const node = document.createElement(tag);
  if (className) node.className = className;
  if (text !== undefined) node.textContent = text;
  return node;
}

// A button that shows a sign; what it does is said on hover and to screen readers.
/** @param {string} sign @param {string} label @param {() => void} action */
export function signButton(sign, label, action) {
  const button = element("button", "", sign);
  button.type = "button";
  button.title = label;
  button.setAttribute("aria-label", label);
  button.onclick = action;
  return button;
}

// The button in which something happened, if it did in one.
/** @param {Event} event @returns {HTMLButtonElement | null} */
export function buttonOf(event) {
  return event.target instanceof Element ? event.target.closest("button") : null;
}

// Keys that belong to the browser, not to a component.
/** @param {KeyboardEvent} event */
export function isShortcut(event) {
  return event.ctrlKey || event.metaKey || event.altKey;
}

/** @param {HTMLCanvasElement} canvas @param {CanvasRenderingContext2DSettings} [settings] */
export function context2d(canvas, settings) {
  return /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d", settings));
}

// The button that has the keyboard, if one in the box does.
/** @param {HTMLElement} box @returns {HTMLButtonElement | null} */
export function focusedIn(box) {
  return box.querySelector("button:focus");
}

// A choice of a <select>.
/** @param {string | number} value @param {string} text @param {boolean} selected */
export function option(value, text, selected) {
  const made = element("option", "", text);
  made.value = String(value);
  made.selected = selected;
  return made;
}
