// @ts-check
// The path: stations that are stepped through.  A picture, a sentence; a prediction before the answer is drawn; a dial.
// Python hears to which station the reader goes, and then what she answered first: what it counts for a class. All else is
// kept in this browser.

import { readTheme } from "./js/colours.js";
import { element, isShortcut } from "./js/dom.js";
import { drawExercise } from "./js/exercise.js";
import { within } from "./js/numbers.js";
import { drawSecondHalf } from "./js/second_half.js";
import { drawLine } from "./js/station_line.js";
import { clock } from "./js/path_clock.js";
import { present } from "./js/present.js";
import { counted, dueStation, passOver, questionOf, readKept, writeKept } from "./js/station_memory.js";
import { drawFrame } from "./js/station_parts.js";
import { drawQuestion, plainButton } from "./js/station_questions.js";
import { fill, writeWithTerms } from "./js/text.js";

/** @import { Component } from "./js/types.d.ts" */
/** @import { ExerciseData, Kept, PathData, SentStations, StationData, StationStep } from "./js/station_types.d.ts" */

class Stations {
  /** @type {PathData} */ data;
  content = "";
  /** @type {Component<SentStations>["setStateValue"]} */ send;
  /** @type {Kept} */ kept = readKept();
  /** @type {Map<string, number>} The step at which each station was left. */ left = new Map();
  /** @type {Map<StationStep, number>} Where each dial stands. */ turned = new Map();
  /** @type {{ station: StationData, chosen: number } | null} An earlier question, asked again before this station. */
  recalled = null;
  /** @type {ExerciseData | null} The exercise that is read. */ built = null;
  /** @type {Record<string, number>} What was chosen first at each station since the page was opened. */ chosen = {};
  told = "";  // the station of which Python spoke last
  station = 0;
  step = 0;

  /** @param {HTMLElement} parent */
  constructor(parent) {
    this.root = element("section", "vf-stations");
    this.root.setAttribute("role", "group");
    this.line = element("ol", "vf-stations-line");
    this.head = element("h3", "vf-title");
    this.second = element("span", "vf-stations-second");
    this.about = element("span", "vf-caption");
    this.words = element("p", "vf-stations-words");
    this.words.setAttribute("aria-live", "polite");
    this.asked = element("div", "vf-stations-asked");
    this.dial = element("label", "vf-stations-dial");
    this.picture = element("div", "vf-stations-picture");
    this.aside = element("div", "vf-stations-aside");
    this.back = plainButton("vf-stations-back", () => this.go(-1));
    this.next = plainButton("vf-stations-next", () => this.go(1));
    this.place = element("span", "vf-caption");
    this.time = element("span", "vf-caption vf-stations-clock");
    const top = element("div", "vf-bar");
    top.append(this.head, this.about, this.second);
    const bar = element("div", "vf-bar vf-stations-bar");
    bar.append(this.back, this.next, this.place, this.time);
    this.main = element("div", "vf-stations-main");
    this.main.append(top, this.words, bar, this.asked, this.dial, this.picture);
    this.root.append(this.line, this.main, this.aside);
    this.root.addEventListener("keydown", (event) => this.press(event));
    parent.append(this.root);
  }

  /** @param {Component<SentStations>} component */
  update({ data, setStateValue }) {
    const first = this.data === undefined;
    const before = first ? "" : this.data.stations[this.station]?.name;
    const other = data.content !== this.content;
    if (other) {
      this.content = data.content;
      this.data = JSON.parse(data.content);
      this.turned.clear();
    }
    this.send = setStateValue;
    this.root.setAttribute("aria-label", this.data.words.path);
    this.line.setAttribute("aria-label", this.data.words.stations);
    const names = this.data.stations.map(({ name }) => name);
    const wished = data.at && data.at !== this.told ? data.at : before || (first ? this.kept.at : "");
    this.told = data.at;
    const at = Math.max(0, names.indexOf(wished));
    if (!other && names[at] === before) this.show();  // what was asked again stays
    else this.enter(at, names[at] === before ? this.step : this.left.get(names[at]) ?? 0, first && at > 0 && !data.at);
  }

  /** @param {number} station @param {number} step @param {boolean} tell */
  enter(station, step, tell) {
    const comes = tell && station > this.station;
    this.built = null;
    this.station = within(station, this.data.stations.length);
    this.step = within(step, this.here.steps.length);
    const first = this.here.steps.findIndex(({ kind }) => kind === "ask");
    if (first >= 0 && this.step > first && !this.answer) this.step = first;
    this.kept.at = this.here.name;
    const asked = comes && this.step === 0 && dueStation(this.data.stations.slice(0, this.station), this.kept, this.data.next_day);
    this.recalled = asked ? { station: asked, chosen: -1 } : null;
    if (tell) this.tell(false);
    this.show();
  }

  get here() {
    return this.data.stations[this.station];
  }

  // What was predicted here for this sentence, if anything was.
  get answer() {
    const kept = this.kept.answers[this.here.name];
    return kept?.text === this.data.text ? kept : undefined;
  }

  /** @param {number} by */
  go(by) {
    const { steps } = this.here;
    if (this.recalled) {
      if (this.recalled.chosen < 0) passOver(this.kept, this.recalled.station);
      this.recalled = null;
      if (by > 0) {
        this.show();
        return;
      }
    }
    if (by > 0 && steps[this.step].kind === "ask" && !this.answer) return;
    const step = this.step + by;
    if (step >= 0 && step < steps.length) this.enter(this.station, step, false);
    else if (step < 0 && this.station > 0) this.enter(this.station - 1, Infinity, true);
    else if (by > 0 && this.station + 1 < this.data.stations.length) this.enter(this.station + 1, 0, true);
  }

  /** @param {KeyboardEvent} event */
  press(event) {
    if (isShortcut(event) || event.target instanceof HTMLInputElement) return;
    const by = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (by === undefined) return;
    this.go(by);
    event.preventDefault();
  }

  /** @param {boolean} deeper */
  tell(deeper) {
    this.told = this.here.name;
    if (deeper) writeKept(Object.assign(this.kept, { deeper: [...new Set([...this.kept.deeper, this.told])] }));
    if (this.send) this.send("selected", { station: this.here.name, deeper, answers: this.chosen, seq: Date.now() });
  }

  show() {
    const { data: { words, stations: all }, here, step } = this;
    const now = here.steps[step];
    this.main.hidden = this.built !== null;
    this.aside.hidden = this.built === null;
    if (this.built) {
      this.aside.replaceChildren(...drawExercise(this.built, words, () => this.build(null)));
      return;
    }
    this.left.set(here.name, step);
    if (step === here.steps.length - 1 && !this.kept.done.includes(here.name)) this.kept.done.push(here.name);
    writeKept(this.kept);
    this.drawLine();
    this.head.textContent = `${this.station + 1} · ${here.title}`;
    this.about.textContent = here.about;
    drawSecondHalf(this.second, this.send ? here.deeper : null, here.exercises, this.kept.deeper.includes(here.name), words,
      { deeper: () => this.tell(true), build: (one) => this.build(one) });
    this.time.textContent = fill(words.clock, clock(this.data, this.kept, !!this.send));
    writeWithTerms(this.words, now.words);
    this.back.textContent = words.back;
    this.back.disabled = this.station === 0 && step === 0;
    const last = step === here.steps.length - 1;
    const following = all[this.station + 1];
    this.next.textContent = last && following ? fill(words.onwards, { title: following.title }) : words.next;
    this.next.disabled = (now.kind === "ask" && !this.answer) || (last && !following);
    const at = { number: step + 1, count: here.steps.length };
    this.place.textContent = last && !following ? fill(words.finished, counted(all, this.kept)) : fill(words.place, at);
    this.root.dataset.station = here.name;
    this.root.dataset.step = String(step);
    this.ask(now);
    this.turn(now);
    this.draw(now);
  }

  /** @param {ExerciseData | null} exercise */
  build(exercise) {
    this.built = exercise;
    this.show();
  }

  drawLine() {
    drawLine(this.line, this.data, this.kept, this.station, (index) => {
      this.enter(index, this.left.get(this.data.stations[index].name) ?? 0, true);
    });
  }

  // The question of this step, or that of an earlier station, which is asked once more with its options turned round.
  /** @param {StationStep} now */
  ask(now) {
    const { recalled, here, data: { words, text, stations: all } } = this;
    const station = recalled?.station ?? here;
    const asked = recalled ? questionOf(station) : now;
    this.asked.hidden = !asked?.options;
    if (!asked?.options) return;
    const { right } = asked;
    const number = all.indexOf(station) + 1;
    const heading = recalled ? fill(words.again, { number, title: station.title }) : words.predict;
    const chosen = recalled ? recalled.chosen : this.answer?.choice ?? -1;
    this.asked.replaceChildren(...drawQuestion({ asked, heading, chosen, turned: recalled !== null, words }, (choice) => {
      this.kept.answers[station.name] = { choice, text, right: choice === right, when: Date.now(), again: recalled !== null };
      if (recalled) recalled.chosen = choice;
      else this.chosen[station.name] ??= choice;
      if (!recalled && number === all.length) this.tell(false);  // nothing comes after it
      this.show();
      this.next.focus({ preventScroll: true });
    }));
    if (!recalled) return;
    this.words.textContent = asked.again ?? asked.words;
    this.next.textContent = words.next;
    this.next.disabled = false;  // nobody is held up by a repetition
  }

  /** @param {StationStep} now */
  turn(now) {
    this.dial.hidden = now.kind !== "turn" || this.recalled !== null;
    if (!now.ticks) return;
    const { ticks } = now;
    const at = this.turned.get(now) ?? now.at ?? 0;
    const slider = element("input");
    slider.type = "range";
    slider.min = "0";
    slider.max = String(ticks.length - 1);
    slider.step = "1";
    slider.value = String(at);
    slider.setAttribute("aria-valuetext", ticks[at]);
    const shown = element("output", "", ticks[at]);
    slider.oninput = () => {
      const place = within(slider.value, ticks.length);
      this.turned.set(now, place);
      shown.textContent = ticks[place];
      slider.setAttribute("aria-valuetext", ticks[place]);
      this.draw(now);
    };
    this.dial.replaceChildren(element("span", "", now.label), slider, shown);
  }

  /** @param {StationStep} now */
  draw(now) {
    const asked = this.recalled && questionOf(this.recalled.station);
    const frame = asked ? asked.frames[0] : now.frames[this.turned.get(now) ?? now.at ?? 0];
    this.picture.replaceChildren(...drawFrame(frame, readTheme(this.root), this.data.words, this.picture.clientWidth));
  }

  close() {
    this.root.remove();
  }
}

/** @param {Component<SentStations>} component */
export default function stations(component) {
  return present(Stations, component);
}
