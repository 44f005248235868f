// @ts-check
// The place of a component on the page.

/** @import { Component, View } from "./types.d.ts" */

// Puts a view into its place on the page, or brings the one that is there up to date; returns what takes it down.
// Streamlit calls again with the same place whenever its data or the theme changes.
/** @type {WeakMap<HTMLElement, { view: View<any>, calls: number }>} */
const VIEWS = new WeakMap();

/**
 * @template Data
 * @param {new (parent: HTMLElement) => View<Data>} ViewClass
 * @param {Component<Data>} component
 */
export function present(ViewClass, component) {
  const { parentElement } = component;
  const place = VIEWS.get(parentElement) ?? { view: new ViewClass(parentElement), calls: 0 };
  VIEWS.set(parentElement, place);
  place.view.update(component);
  place.calls += 1;
  const call = place.calls;
  return () => {
    if (place.calls !== call) return;  // Streamlit may clean up after a call that a newer one has replaced
    place.view.close();
    VIEWS.delete(parentElement);
  };
}
