// @ts-check
// What a component hears from Python and tells it.

import { offsetOf } from "./heads.js";

/** @import { Component, HeadModel, Sent } from "./types.d.ts" */

const SOON = 150;  // ms in which several choices become one
const UNHURRIED = 1000;  // ms

// A view that Streamlit takes down and puts up again (a layout that moved) goes on where it was.
/** @type {Map<string, { version: number | undefined, value: any, reported: boolean }>} */
const MEMORY = new Map();

// One conversation with Python: obey a version once, report what people choose. _echo.py says why.
/** @template Choice */
export class Conversation {
  /** @type {number | undefined} */ version;
  /** @type {Choice | null | undefined} */ value;
  /** @type {number | undefined} */ timer;
  /** @type {string | undefined} */ name;
  waiting = false;  // a choice is to be reported
  /** @type {Component<Sent<Choice>>["setStateValue"]} */ send;

  constructor() {
    this.seq = Date.now();
  }

  // Takes what Python sent; true when the value came from there and has to be drawn.
  /** @param {Component<Sent<Choice>>} component */
  listen(component) {
    const { data } = component;
    this.name = data.key;
    this.send = component.setStateValue;
    const kept = this.name === undefined ? undefined : MEMORY.get(this.name);
    if (this.version === undefined && kept && kept.version === data.version) {
      this.version = kept.version;
      this.value = kept.value;
      if (!kept.reported) this.tell(kept.value);
      return true;
    }
    if (this.version === data.version) return false;
    clearTimeout(this.timer);
    this.waiting = false;
    this.version = data.version;
    this.value = data.selected;
    this.remember(true);
    return true;
  }

  // Reports a choice; several within `wait` milliseconds become one.
  /** @param {Choice} value @param {number} [wait] */
  tell(value, wait = SOON) {
    this.value = value;
    this.remember(false);
    clearTimeout(this.timer);
    this.waiting = true;
    this.timer = setTimeout(() => {
      this.waiting = false;
      this.seq = Math.max(this.seq + 1, Date.now());
      this.remember(true);
      if (this.send) this.send("selected", { ...this.value, version: this.version, seq: this.seq });
    }, wait);
  }

  // Reports soon what was to be reported later: what the page was to wait for has come.
  hasten() {
    if (this.waiting && this.value) this.tell(this.value);
  }

  /** @param {boolean} reported */
  remember(reported) {
    if (this.name !== undefined) MEMORY.set(this.name, { version: this.version, value: this.value, reported });
  }
}

// How long Python need not hear which head was chosen: not at all where it has to send that head, and a while where the
// browser fetches and computes it, from which a run of the page would take the cores.
/** @param {HeadModel} model @param {number} layer @param {number} head */
export function patience(model, layer, head) {
  if (offsetOf(model, layer, head) >= 0) return SOON;
  return model.addressed ? UNHURRIED : 0;
}
