// @ts-check
// The bar below the picture of the whole model: a token runs through the model, part after part; what a box is; the legend.

import { element, signButton } from "./dom.js";
import { fill } from "./text.js";

/** @import { SentPicture } from "./picture_types.d.ts" */

const SECONDS = 7;  // in which a token runs through the model
const BEGIN = 1000;  // ms
let hasRun = false;  // by itself it runs once in a tab

export class PictureBar {
  /** @type {SentPicture} */ data;
  /** @type {HTMLElement[]} */ stages = [];
  /** @type {number | undefined} */ timer;
  /** @type {((name: string) => void) | null} */ tell = null;
  stage = -1;
  root = element("div", "vf-whole-bar");
  playing = element("button", "vf-whole-play");
  caption = element("span", "vf-whole-caption");
  way = element("button", "vf-whole-link");

  /** @param {SentPicture} data @param {HTMLElement[]} stages @param {((name: string) => void) | null} tell */
  build(data, stages, tell) {
    Object.assign(this, { data, stages, tell, stage: -1 });
    const { words } = data;
    this.playing.textContent = words.play;
    this.playing.type = "button";
    this.playing.onclick = () => this.play();
    this.caption.setAttribute("aria-live", "polite");
    this.way.textContent = words.way;
    this.way.type = "button";
    this.way.hidden = true;
    const legend = element("span", "vf-whole-legend");
    legend.append(words.legend, element("i"), "1");
    this.root.replaceChildren(
      this.playing, signButton("‹", words.previous, () => this.step(this.stage - 1)),
      signButton("›", words.next, () => this.step(this.stage + 1)), this.caption, this.way, legend,
    );
  }

  /** @param {string} name */
  say(name) {
    const { words, positions, norm, norm_order: order } = this.data;
    const said = name === "norm" ? `${words[`norm_${order === "post" ? "post" : "pre"}`]} ${words[norm === "layer_norm" ? "layer_norm" : "rms_norm"]}`
      : name === "positions" ? fill(words.positions_are, { positions }) : words[`${name}_is`];
    this.caption.textContent = said;
    this.way.hidden = !this.tell;
    this.way.onclick = () => this.tell?.(name);
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
