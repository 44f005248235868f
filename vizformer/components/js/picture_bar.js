// @ts-check
// The bar below the picture of the whole model: a token runs through the model, part after part; the legend.

import { element, signButton } from "./dom.js";

/** @import { SentPicture } from "./picture_types.d.ts" */

const SECONDS = 7;  // in which a token runs through the model
const BEGIN = 1000;  // ms
let hasRun = false;  // by itself it runs once in a tab

export class PictureBar {
  /** @type {SentPicture} */ data;
  /** @type {HTMLElement[]} */ stages = [];
  /** @type {number | undefined} */ timer;
  stage = -1;
  root = element("div", "vf-whole-bar");
  playing = element("button", "vf-whole-play");

  /** @param {SentPicture} data @param {HTMLElement[]} stages */
  build(data, stages) {
    Object.assign(this, { data, stages, stage: -1 });
    const { words } = data;
    this.playing.textContent = words.play;
    this.playing.type = "button";
    this.playing.onclick = () => this.play();
    const legend = element("span", "vf-whole-legend");
    legend.append(words.legend, element("i"), "1");
    this.root.replaceChildren(
      this.playing, signButton("‹", words.previous, () => this.step(this.stage - 1)),
      signButton("›", words.next, () => this.step(this.stage + 1)), legend,
    );
  }

  // The first time in this tab it plays, if it may move.
  begin() {
    if (!hasRun && !matchMedia("(prefers-reduced-motion: reduce)").matches) this.timer = setTimeout(() => this.play(), BEGIN);
    hasRun = true;
  }

  play() {
    if (this.playing.textContent === this.data.words.pause) return void this.stop();
    if (this.stage >= this.stages.length - 1) this.stage = -1;
    const on = () => {
      this.light(this.stage + 1);
      if (this.stage < this.stages.length) this.timer = setTimeout(on, (1000 * SECONDS) / this.stages.length);
      else this.stop();
    };
    this.playing.textContent = this.data.words.pause;
    on();
  }

  stop() {
    clearTimeout(this.timer);
    this.playing.textContent = this.data.words.play;
    if (this.stage >= this.stages.length) this.light(-1);
  }

  /** @param {number} stage */
  step(stage) {
    this.stop();
    this.light(Math.max(-1, Math.min(this.stages.length - 1, stage)));
  }

  /** @param {number} stage */
  light(stage) {
    this.stages[this.stage]?.classList.remove("vf-whole-now");
    this.stage = stage;
    this.stages[stage]?.classList.add("vf-whole-now");
  }
}
