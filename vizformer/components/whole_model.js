// @ts-check
// The whole model in sight beside a part of a lesson: its place is lit; a lit box opens, the others lead to their parts.

import { readTheme } from "./js/colours.js";
import { element } from "./js/dom.js";
import { drawModel, isOpened } from "./js/model_drawing.js";
import { drawInside } from "./js/opened_box.js";
import { present } from "./js/present.js";

/** @import { Component } from "./js/types.d.ts" */
/** @import { ModelData, OpenedData, SentModel } from "./js/station_types.d.ts" */

class WholeModel {
  /** @type {ModelData} */ data;
  content = "";
  here = "";
  of = "";  // what the drawing is about
  inside = "";
  /** @type {OpenedData | null} */ opened = null;  // what is in the lit box, which is sent when it is pressed
  closed = false;  // whether the reader has closed it, and the server has not heard of it yet
  step = 0;
  seen = "";  // the station whose box was brought into sight

  /** @param {HTMLElement} parent */
  constructor(parent) {
    this.root = element("section", "vf-stations vf-whole");
    this.drawing = element("nav", "vf-stations-model");
    this.look = element("div", "vf-stations-aside");
    this.root.append(this.drawing, this.look);
    parent.append(this.root);
  }

  /** @param {Component<SentModel>} component */
  update({ data, setStateValue }) {
    this.send = setStateValue;
    if (data.content !== this.content) this.data = JSON.parse(data.content);
    if (data.inside !== this.inside) this.step = 0;
    this.content = data.content;
    this.here = data.at;
    this.of = data.of;
    this.inside = data.inside;
    if (!data.inside) this.closed = false;
    this.opened = data.inside && !this.closed ? JSON.parse(data.inside) : null;
    this.show();
  }

  show() {
    const { opened } = this, { model, words } = this.data;
    drawModel(this.drawing, model, this.here, words, (part) => {
      this.closed = false;
      this.tell(isOpened(part, this.here) ? { opened: this.of } : { station: part.station });
    });
    const lit = [...this.drawing.querySelectorAll("[aria-current]")].pop();  // the first one, as they stand from the right
    if (lit instanceof HTMLElement && this.seen !== this.here) {
      this.drawing.scrollLeft = lit.offsetLeft - (this.drawing.clientWidth - lit.offsetWidth) / 2;
      this.seen = this.here;
    }
    const box = model.find((part) => isOpened(part, this.here));
    const isOpen = opened !== null && opened.steps.length > 0 && box !== undefined;
    this.drawing.hidden = isOpen;
    this.look.hidden = !isOpen;
    if (!isOpen) return;
    this.look.replaceChildren(...drawInside({ title: box.title, inside: opened.steps }, this.step, {
      theme: readTheme(this.root),
      words: { ...words, ...opened.words },
      room: this.look.clientWidth,
      go: (to) => {
        this.step = to;
        this.show();
      },
      close: () => {
        this.opened = null;
        this.closed = true;
        this.show();
        this.tell({ opened: "" });
      },
    }));
  }

  /** @param {{ opened: string } | { station: string }} said */
  tell(said) {
    if (this.send) this.send("selected", { ...said, seq: Date.now() });
  }

  close() {
    this.root.remove();
  }
}

/** @param {Component<SentModel>} component */
export default function whole_model(component) {
  return present(WholeModel, component);
}
