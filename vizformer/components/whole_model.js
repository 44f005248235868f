// @ts-check
// The model in one line, its place at hand lit; a lit box opens on the page, the others lead to their parts.

import { element } from "./js/dom.js";
import { present } from "./js/present.js";
import { plainButton } from "./js/station_questions.js";
import { fill } from "./js/text.js";

/** @import { Component } from "./js/types.d.ts" */
/** @import { BoxData, ModelData, SentModel } from "./js/station_types.d.ts" */

class WholeModel {
  content = "";
  here = "";
  /** @type {{ part: BoxData, button: HTMLButtonElement }[]} */ boxes = [];

  /** @param {HTMLElement} parent */
  constructor(parent) {
    this.root = element("nav", "vf-whole");
    parent.append(this.root);
  }

  /** @param {Component<SentModel>} component */
  update({ data, setStateValue }) {
    this.send = setStateValue;
    /** @type {ModelData} */ const { model, words } = JSON.parse(data.content);
    const moved = data.content !== this.content || data.at !== this.here;
    if (data.content !== this.content) {
      this.boxes = model.map((part) => ({ part, button: plainButton("", () => this.press(part), part.title) }));
      this.root.replaceChildren(...this.boxes.flatMap(({ part, button }) => (
        part.starts ? [element("span", "", part.starts), button] : [button])));
      this.root.setAttribute("aria-label", words.model);
    }
    [this.content, this.here] = [data.content, data.at];
    for (const { part, button } of this.boxes) {
      const lit = this.isLit(part);
      for (const [name, value] of [["aria-current", lit], ["aria-expanded", lit && data.open]]) {
        if (lit) button.setAttribute(String(name), String(value));
        else button.removeAttribute(String(name));
      }
      button.setAttribute("aria-label", lit ? fill(words.open, { title: part.title }) : part.title);
    }
    const first = this.boxes.find(({ part }) => this.isLit(part))?.button;
    if (first && moved) this.root.scrollLeft = first.offsetLeft - (this.root.clientWidth - first.offsetWidth) / 2;
  }

  /** @param {BoxData} part */
  isLit(part) {
    return part.lit_at.includes(this.here);
  }

  /** @param {BoxData} part */
  press(part) {
    if (this.send) this.send("selected", { station: this.isLit(part) ? "" : part.station, seq: Date.now() });
  }

  close() {
    this.root.remove();
  }
}

/** @param {Component<SentModel>} component */
export default function whole_model(component) {
  return present(WholeModel, component);
}
