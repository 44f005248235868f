// @ts-check
// The panel beside the lines: which heads are drawn, from which weight on, how many lines that makes, and samples.

import { HeadChips, lineSample } from "./chips.js";
import { element } from "./dom.js";
import { fill } from "./text.js";

/** @import { FoundLines, HeadModel, LineChoice, Theme, Words } from "./types.d.ts" */

export class LinePanel {
  /** @type {Words} */ words;
  /** @type {HeadModel} */ model;

  /** @param {{ toggle(head: number, alone: boolean): void, change(part: Partial<LineChoice>): void }} on */
  constructor(on) {
    this.host = element("div", "vf-panel");
    this.title = element("div", "vf-caption");
    this.chips = new HeadChips(element("div", "vf-heads"), on.toggle);
    this.allHeads = element("button", "vf-link");
    this.allHeads.type = "button";
    this.allHeads.onclick = () => on.change({ heads: null });
    this.slider = element("input");
    Object.assign(this.slider, { type: "range", min: 0, max: 100, step: 1 });
    this.slider.oninput = () => on.change({ threshold: Math.round(Number(this.slider.value) ** 2) / 10000 });
    this.sliderName = element("span");
    this.sliderValue = element("span", "vf-number");
    const label = element("label", "vf-threshold");
    label.append(this.sliderName, this.sliderValue, this.slider);
    this.count = element("p", "vf-count");
    this.count.setAttribute("aria-live", "polite");
    this.samples = element("div", "vf-samples");
    this.host.append(this.title, this.chips.host, this.allHeads, label, this.count, this.samples);
  }

  /** @param {HeadModel} model @param {Theme} theme @param {Words} words */
  build(model, theme, words) {
    [this.model, this.words] = [model, words];
    this.chips.show(model.heads, theme, words);
    this.title.textContent = words.heads;
    this.allHeads.textContent = words.all_heads;
    for (const part of [this.title, this.chips.host, this.allHeads]) part.hidden = model.heads === 1;  // nothing to choose
    this.sliderName.textContent = words.threshold;
  }

  /** @param {Theme} theme @param {number} row */
  showSamples(theme, row) {
    const samples = [0.05, 0.25, 1].map((weight) => {
      const sample = element("span", "vf-sample");
      sample.append(lineSample(theme, null, weight, row), element("span", "", String(weight)));
      return sample;
    });
    this.samples.replaceChildren(element("span", "vf-caption", this.words.weight), ...samples);
  }

  /** @param {number[]} heads @param {number} threshold @param {FoundLines | null} drawn */
  show(heads, threshold, drawn) {
    this.chips.mark(heads);
    this.allHeads.disabled = heads.length === this.model.heads;
    this.slider.value = String(Math.round(100 * Math.sqrt(threshold)));
    this.sliderValue.textContent = String(threshold);
    this.slider.setAttribute("aria-valuetext", String(threshold));
    this.count.textContent = drawn ? this.countSentence(drawn) : "";
  }

  /** @param {FoundLines} drawn */
  countSentence({ shown, total, from, cut, largest }) {
    const sentence = cut ? this.words.count_cut : largest ? this.words.count_none : this.words.count;
    return fill(sentence, { shown, total, threshold: from.toFixed(4), largest: largest.toFixed(4) });
  }
}
