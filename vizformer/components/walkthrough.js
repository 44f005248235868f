// @ts-check
// The walk: one forward as a film, drawn from its own numbers.  It is played here; Python hears of a link that someone
// follows, and of nothing else.

import { readTheme } from "./js/colours.js";
import { present } from "./js/conversation.js";
import { context2d, element, isShortcut, signButton } from "./js/dom.js";
import { readColumn } from "./js/numbers.js";
import { fill } from "./js/text.js";
import { WalkClock } from "./js/walk_clock.js";
import { drawAttention, drawCross, drawLayers, drawNext, drawResidual, drawWritten } from "./js/walk_looks.js";
import {
  drawAdded, drawBiased, drawCharacters, drawTokens, drawTurned, drawUnplaced, drawVectors,
} from "./js/walk_rows.js";
import { STAGE_HEIGHT, WalkStage } from "./js/walk_stage.js";

/** @import { Component } from "./js/types.d.ts" */
/** @import { SentWalk, WalkData } from "./js/walk_types.d.ts" */

/** @type {Record<string, (stage: WalkStage, share: number) => void>} */
const SCENES = {
  characters: drawCharacters,
  tokens: drawTokens,
  vectors: drawVectors,
  added: drawAdded,
  turned: drawTurned,
  biased: drawBiased,
  unplaced: drawUnplaced,
  attention: drawAttention,
  residual: drawResidual,
  layers: drawLayers,
  cross: drawCross,
  next: drawNext,
  written: drawWritten,
};

// Where each walk of this tab was left: it begins by itself once, and not again when a reader comes back to the page.
/** @type {Map<string, { time: number, whole: boolean }>} */
const LEFT_AT = new Map();

class Walkthrough {
  /** @type {WalkData} */ walk;
  /** @type {Component<SentWalk>["setStateValue"]} */ send;
  /** @type {WalkStage | null} */ stage = null;
  /** @type {string} */ drawn = "";

  /** @param {HTMLElement} parent */
  constructor(parent) {
    this.clock = new WalkClock(() => this.show());
    this.root = element("section", "vf-walkthrough");
    this.root.setAttribute("role", "group");
    this.head = element("div", "vf-title");
    this.caption = element("p", "vf-walk-caption");
    this.caption.setAttribute("aria-live", "polite");
    this.words = element("span");
    this.link = element("button", "vf-walk-link");
    this.link.type = "button";
    this.link.onclick = () => {
      if (this.send) this.send("selected", { scene: this.walk.scenes[this.clock.scene].kind, seq: Date.now() });
    };
    this.caption.append(this.words, " ", this.link);
    this.canvas = element("canvas", "vf-walk-stage");
    this.canvas.tabIndex = 0;
    this.canvas.setAttribute("role", "img");
    this.canvas.onclick = () => this.toggle();
    this.canvas.onpointermove = (event) => this.point(event);
    this.canvas.onpointerleave = () => this.say("");
    this.hover = element("div", "vf-caption vf-walk-hover");
    this.bar = element("div", "vf-bar vf-walk-bar");
    this.chapters = element("div", "vf-chapters");
    this.note = element("div", "vf-caption");
    this.slider = element("input");
    this.slider.type = "range";
    this.slider.min = "0";
    this.slider.step = "0.05";
    this.slider.oninput = () => this.clock.drag(Number(this.slider.value));
    this.place = element("span", "vf-place");
    this.playButton = element("button", "vf-play");
    this.playButton.type = "button";
    this.playButton.onclick = () => this.toggle();
    this.root.append(this.head, this.caption, this.canvas, this.hover, this.bar, this.chapters, this.note);
    this.root.addEventListener("keydown", (event) => this.press(event));
    parent.append(this.root);
    this.watcher = new ResizeObserver(() => this.resize());
    this.watcher.observe(this.root);
  }

  /** @param {Component<SentWalk>} component */
  update(component) {
    const { data, setStateValue } = component;
    const before = this.walk?.made;
    this.send = setStateValue;
    this.walk = unpack(data);
    this.clock.scenes = data.scenes;
    this.build(Boolean(data.static));
    this.stage = null;
    this.drawn = "";
    if (before === undefined) this.begin(data);
    else if (before !== data.made && this.clock.ended && !this.clock.calm.matches) this.clock.play();
    this.clock.time = Math.min(this.clock.time, this.clock.total);
    this.resize();
  }

  // The first time in this tab it plays, if it may move; later it stays where it was.
  /** @param {SentWalk} data */
  begin({ key, static: alone }) {
    const left = LEFT_AT.get(key ?? "");
    if (left) Object.assign(this.clock, left);
    else if (!alone && !this.clock.calm.matches) this.clock.begin();
  }

  /** @param {boolean} alone */
  build(alone) {
    const { scenes, words, note, tokens } = this.walk;
    this.root.setAttribute("aria-label", words.walk);
    const group = element("div", "vf-group vf-signs");
    const { clock } = this;
    this.buttons = {
      first: signButton("«", words.first, () => clock.step(0)),
      previous: signButton("‹", words.previous, () => clock.step(clock.scene - 1)),
      next: signButton("›", words.next, () => clock.step(clock.scene + 1)),
      last: signButton("»", words.last, () => clock.step(scenes.length)),
    };
    const { first, previous, next, last } = this.buttons;
    group.append(first, previous, this.playButton, next, last);
    this.slider.max = String(clock.total);
    this.slider.setAttribute("aria-label", words.timeline);
    this.bar.replaceChildren(group, this.slider, this.place);
    this.chapters.replaceChildren(...scenes.map(({ title }, index) => {
      const chapter = element("button", "vf-chapter", title);
      chapter.type = "button";
      chapter.onclick = () => clock.step(index);
      return chapter;
    }));
    this.note.textContent = note;
    this.note.hidden = !note;
    this.root.dataset.tokens = String(tokens.length);
    this.root.classList.toggle("vf-alone", alone);
  }

  toggle() {
    if (this.clock.playing) this.clock.pause();
    else this.clock.play();
  }

  /** @param {KeyboardEvent} event */
  press(event) {
    if (isShortcut(event)) return;
    const { clock } = this;
    /** @type {Record<string, number>} */
    const steps = {
      ArrowLeft: clock.scene - 1, ArrowRight: clock.scene + 1, Home: 0, End: clock.scenes.length,
    };
    const button = event.target instanceof HTMLButtonElement;
    if (event.key === " " && !button) this.toggle();
    else if (event.key in steps) clock.step(steps[event.key]);
    else return;
    event.preventDefault();
  }

  resize() {
    if (!this.walk || this.canvas.clientWidth === 0) return;
    const density = Math.max(1, window.devicePixelRatio || 1);
    const width = this.canvas.clientWidth;
    this.canvas.width = Math.round(width * density);
    this.canvas.height = Math.round(STAGE_HEIGHT * density);
    const context = context2d(this.canvas);
    context.setTransform(density, 0, 0, density, 0, 0);
    this.stage = new WalkStage(context, width, readTheme(this.root), this.walk);
    this.drawn = "";
    this.show();
  }

  show() {
    const { clock, walk } = this;
    if (!walk) return;
    const { scenes, words } = walk;
    const [at, share] = [clock.scene, clock.share];
    const scene = scenes[at];
    if (walk.key !== undefined) LEFT_AT.set(walk.key, { time: clock.time, whole: clock.whole });
    this.playButton.textContent = clock.playing ? words.pause : clock.ended ? words.again : words.play;
    this.slider.value = String(clock.time);
    const place = fill(words.place, { number: at + 1, count: scenes.length });
    this.slider.setAttribute("aria-valuetext", `${place}: ${scene.title}`);
    this.place.textContent = `${clockTime(clock.time)} / ${clockTime(clock.total)}`;
    if (this.buttons) {
      this.buttons.previous.disabled = this.buttons.first.disabled = at === 0 && clock.time === 0 && clock.whole;
      this.buttons.next.disabled = this.buttons.last.disabled = clock.ended;
    }
    if (this.root.dataset.scene !== scene.kind || this.words.textContent !== scene.caption) {
      this.head.textContent = `${at + 1} · ${scene.title}`;
      this.words.textContent = scene.caption;
      this.link.textContent = `${scene.link} →`;
      this.link.hidden = !scene.link || !this.send;
      this.canvas.setAttribute("aria-label", scene.caption);
      this.root.dataset.scene = scene.kind;
      this.say("");
    }
    this.root.dataset.share = share.toFixed(2);
    this.root.dataset.playing = String(clock.playing);
    for (const [index, chapter] of [...this.chapters.children].entries()) {
      if (index === at) chapter.setAttribute("aria-current", "step");
      else chapter.removeAttribute("aria-current");
    }
    const drawn = `${at} ${share}`;
    if (!this.stage || drawn === this.drawn) return;
    this.drawn = drawn;
    this.stage.hits.length = 0;
    this.stage.context.clearRect(0, 0, this.stage.width, this.stage.height);
    SCENES[scene.kind](this.stage, share);
  }

  /** @param {PointerEvent} event */
  point(event) {
    const { left, top } = this.canvas.getBoundingClientRect();
    const [x, y] = [event.clientX - left, event.clientY - top];
    const found = this.stage?.hits.findLast((hit) =>
      x >= hit.x && x < hit.x + hit.width && y >= hit.y && y < hit.y + hit.height);
    this.say(found ? found.text : "");
  }

  /** @param {string} text */
  say(text) {
    if (this.hover.textContent !== text) this.hover.textContent = text;
  }

  close() {
    this.clock.playing = false;
    this.watcher.disconnect();
    this.root.remove();
  }
}

// Seconds as minutes and seconds.
/** @param {number} seconds */
function clockTime(seconds) {
  const whole = Math.floor(seconds);
  return `${Math.floor(whole / 60)}:${String(whole % 60).padStart(2, "0")}`;
}

/** @param {SentWalk} data @returns {WalkData} */
function unpack(data) {
  const read = (/** @type {keyof SentWalk} */ name) =>
    readColumn(/** @type {import("./js/types.d.ts").SentColumn} */ (data[name]), data.types?.[name]);
  const floats = (/** @type {keyof SentWalk} */ name) => /** @type {Float32Array | null} */ (read(name));
  const bytes = (/** @type {keyof SentWalk} */ name) => /** @type {Uint8Array | null} */ (read(name));
  const none = new Float32Array();
  return {
    ...data,
    embedded: floats("embedded") ?? none,
    added: floats("added"),
    entering: floats("entering") ?? none,
    angles: floats("angles"),
    bias: floats("bias"),
    sublayer_cells: floats("sublayer_cells") ?? none,
    layer_cells: floats("layer_cells") ?? none,
    attention_weights: floats("attention_weights") ?? none,
    attention_blocked: bytes("attention_blocked") ?? new Uint8Array(),
    cross_weights: floats("cross_weights") ?? none,
    cross_blocked: bytes("cross_blocked") ?? new Uint8Array(),
  };
}

/** @param {Component<SentWalk>} component */
export default function walkthrough(component) {
  return present(Walkthrough, component);
}
