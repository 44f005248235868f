// @ts-check
// A component outside of Streamlit: in a file of its own, or in a notebook.

import { element, isShortcut } from "./dom.js";

/** @import { Component, NotebookModel } from "./types.d.ts" */
/** @typedef {(component: Component<any>) => () => void} Show */

// As dark as what is around the picture: a notebook has a theme of its own. A file follows the system.
/** @param {Element | null} around @param {MediaQueryList} system */
function isDark(around, system) {
  for (let at = around; at; at = at.parentElement ?? /** @type {ShadowRoot} */ (at.getRootNode()).host) {
    const colour = getComputedStyle(at).backgroundColor;
    const [r, g, b, a = 1] = colour.startsWith("rgb") ? (colour.match(/[\d.]+/g) ?? []).map(Number) : [0, 0, 0, 0];
    if (a > 0.5) return 0.2126 * r + 0.7152 * g + 0.0722 * b < 128;
  }
  return system.matches;
}

// Draws, and again whenever it grows dark or light; returns what ends that.
/** @param {Element | null} around @param {Element} host @param {() => void} draw */
function followTheme(around, host, draw) {
  const system = matchMedia("(prefers-color-scheme: dark)");
  const show = () => {
    host.classList.toggle("dark", isDark(around, system));
    draw();
  };
  const follow = () => { if (isDark(around, system) !== host.classList.contains("dark")) show(); };
  const watcher = new MutationObserver(follow);
  if (around) {
    const { body, documentElement } = around.ownerDocument;
    for (const one of [body, documentElement]) watcher.observe(one, { attributes: true });
  }
  system.addEventListener("change", follow);
  show();
  return () => {
    watcher.disconnect();
    system.removeEventListener("change", follow);
  };
}

/** @param {Show} show @param {any} data */
export function inFile(show, data) {
  const parentElement = /** @type {HTMLElement} */ (document.getElementById("here"));
  followTheme(frameElement?.parentElement ?? null, document.documentElement, () => show({ data, parentElement }));
}

// What anywidget asks of a module. Styles of the notebook do not reach the picture, nor its keys the notebook.
/** @param {Show} show @param {string} css */
export function inNotebook(show, css) {
  return {
    /** @param {{ model: NotebookModel, el: HTMLElement }} place */
    render({ model, el }) {
      const host = element("div");
      host.addEventListener("keydown", (event) => { if (!isShortcut(event)) event.stopPropagation(); });
      const parentElement = element("div");
      const notes = element("div");
      host.attachShadow({ mode: "open" }).append(element("style", "", css), notes, parentElement);
      el.append(host);
      /** @type {(() => void) | undefined} */ let close;
      /** @type {any[]} */ let drawn = [];
      const draw = () => {
        const [numbers, chosen] = drawn = [model.get("_numbers"), model.get("_chosen")];
        notes.replaceChildren(...numbers.notes.map((/** @type {string} */ note) => element("p", "vf-caption", note)));
        close = show({
          data: { ...numbers, ...chosen },
          parentElement,
          setStateValue: (_name, report) => {
            model.set("_report", report);
            model.save_changes();
          },
        });
      };
      // New numbers, or a choice that Python made: its version is a new one.
      const hear = () => {
        if (drawn[0] !== model.get("_numbers") || drawn[1].version !== model.get("_chosen").version) draw();
      };
      const leave = followTheme(el, host, draw);
      const names = ["change:_numbers", "change:_chosen"];
      for (const name of names) model.on(name, hear);
      return () => {
        for (const name of names) model.off(name, hear);
        leave();
        close?.();
      };
    },
  };
}
