// @ts-check
// The whole model in sight beside a part of a lesson: its place is lit; a lit box opens, the others lead to their parts.

import { readTheme } from "./js/colours.js";
import { present } from "./js/conversation.js";
import { element } from "./js/dom.js";
import { drawModel, isOpened } from "./js/model_drawing.js";
import { drawInside } from "./js/opened_box.js";

/** @import { Component } from "./js/types.d.ts" */
/** @import { PathData, SentStations } from "./js/station_types.d.ts" */

class WholeModel {
  /** @type {PathData} */ data;
  content = "";
  here = "";
  /** @type {{ box: number, step: number } | null} */ opened = null;

  /** @param {HTMLElement} parent */
  constructor(parent) {
    this.root = element("section", "vf-stations vf-whole");
    this.drawing = element("nav", "vf-stations-model");
    this.inside = element("div", "vf-stations-aside");
    this.root.append(this.drawing, this.inside);
    parent.append(this.root);
  }

  /** @param {Component<SentStations>} component */
  update({ data, setStateValue }) {
    this.send = setStateValue;
    if (data.content !== this.content) this.data = JSON.parse(data.content);
    if (data.content !== this.content || data.at !== this.here) this.opened = null;
    this.content = data.content;
    this.here = data.at;
    this.show();
  }

  show() {
    const { model, words } = this.data;
    drawModel(this.drawing, model, this.here, words, (part) => {
      if (isOpened(part, this.here)) this.look(model.indexOf(part), 0);
      else if (this.send) this.send("selected", { station: part.station, seq: Date.now() });
    });
    this.drawing.hidden = this.opened !== null;
    this.inside.hidden = this.opened === null;
    if (!this.opened) return;
    const { box, step } = this.opened;
    this.inside.replaceChildren(...drawInside(model[box], step, {
      theme: readTheme(this.root),
      words,
      room: this.inside.clientWidth,
      go: (to) => this.look(box, to),
      close: () => {
        this.opened = null;
        this.show();
      },
    }));
  }

  /** @param {number} box @param {number} step */
  look(box, step) {
    this.opened = { box, step };
    this.show();
  }

  close() {
    this.root.remove();
  }
}

/** @param {Component<SentStations>} component */
export default function whole_model(component) {
  return present(WholeModel, component);
}
