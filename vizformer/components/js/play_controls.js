// @ts-check
// The bar of the player: it plays the text at a pace, steps through it, and says where it stands.

import { element, option, signButton } from "./dom.js";
import { fill } from "./text.js";

/** @import { Words } from "./types.d.ts" */

const PACES = [1400, 700, 250];  // ms a token: slow, usual, fast

export class PlayControls {
  /** @type {Words} */ words;
  /** @type {number | undefined} */ timer;
  playing = false;
  pace = 1;
  step = 0;
  last = 0;

  // go: shows a step; `playing` where it is one of many that nobody has to be told about. stopped: the play has ended.
  /** @param {{ go(step: number, playing: boolean): void, stopped(): void }} on */
  constructor(on) {
    this.on = on;
    this.host = element("div", "vf-bar vf-controls");
    this.slider = element("input");
    this.slider.type = "range";
    this.slider.min = "0";
    this.slider.oninput = () => this.go(Number(this.slider.value));
    this.place = element("span", "vf-place");
    this.playButton = element("button", "vf-play");
  }

  // Stops the play and goes to a step.
  /** @param {number} step */
  go(step) {
    this.stop();
    this.on.go(step, false);
  }

  play() {
    if (this.step === this.last) this.on.go(0, true);
    this.playing = true;
    this.showPlaying();
    const tick = () => {
      this.timer = setTimeout(() => {
        if (this.step < this.last) this.on.go(this.step + 1, true);
        if (this.step < this.last) tick();
        else this.stop();
      }, PACES[this.pace]);
    };
    tick();
  }

  pause() {
    clearTimeout(this.timer);
    this.playing = false;
  }

  // Ends the play where it is, and lets the player know.
  stop() {
    if (!this.playing) return;
    this.pause();
    this.showPlaying();
    this.on.stopped();
  }

  /** @param {Words} words @param {number} last */
  build(words, last) {
    const root = /** @type {Document | ShadowRoot} */ (this.host.getRootNode());
    const focused = root.activeElement instanceof HTMLElement ? root.activeElement.dataset.name : undefined;
    [this.words, this.last] = [words, last];
    this.playButton = element("button", "vf-play");
    this.playButton.type = "button";
    this.playButton.dataset.name = "play";
    this.playButton.onclick = () => (this.playing ? this.stop() : this.play());
    const group = element("div", "vf-group vf-signs");
    group.append(
      this.button("«", words.first, "first", () => 0),
      this.button("‹", words.previous, "previous", () => this.step - 1),
      this.playButton,
      this.button("›", words.next, "next", () => this.step + 1),
      this.button("»", words.last, "last", () => this.last),
    );
    const pace = element("select", "vf-select");
    pace.dataset.name = "pace";
    pace.setAttribute("aria-label", words.pace);
    const paces = [words.pace_slow, words.pace_usual, words.pace_fast];
    pace.append(...paces.map((text, index) => option(index, text, index === this.pace)));
    pace.onchange = () => { this.pace = Number(pace.value); };
    this.slider.max = String(last);
    this.slider.dataset.name = "slider";
    this.slider.setAttribute("aria-label", words.slider);
    this.host.replaceChildren(group, this.slider, this.place, pace);
    if (focused) this.named(focused)?.focus();
  }

  /** @param {string} sign @param {string} label @param {string} name @param {() => number} step */
  button(sign, label, name, step) {
    const made = signButton(sign, label, () => {
      this.stop();
      this.on.go(step(), false);
    });
    made.dataset.name = name;
    return made;
  }

  /** @param {string} name @returns {HTMLButtonElement | null} */
  named(name) {
    return this.host.querySelector(`[data-name="${name}"]`);
  }

  /** @param {number} step @param {string} token */
  show(step, token) {
    this.step = step;
    this.slider.value = String(step);
    this.place.textContent = fill(this.words.place, { number: step, last: this.last });
    this.slider.setAttribute("aria-valuetext", fill(this.words.go_to, { number: step, token }));
    const ends = { first: step === 0, previous: step === 0, next: step === this.last, last: step === this.last };
    for (const [name, off] of Object.entries(ends)) {
      const button = this.named(name);
      if (button) button.disabled = off;
    }
    this.showPlaying();
  }

  showPlaying() {
    this.playButton.textContent = this.playing ? this.words.pause : this.words.play;
  }
}
