// @ts-check
// The candidates of a step as rows with two bars: what the model says, and what is left to draw from. A row is a button
// that takes its token instead of the chosen one.

import { buttonOf, element, focusedIn, isShortcut } from "./dom.js";
import { fill, visible } from "./text.js";

/** @import { Candidate, Step, Words } from "./types.d.ts" */

const ROOMS = [0.02, 0.05, 0.1, 0.2, 0.5, 1];  // ends of the bars' scale

// A share with few digits; what would round to nothing is said to be small, not to be zero.
/** @param {number} share */
function percent(share) {
  return share > 0 && share < 0.0005 ? "<0.1%" : `${(100 * share).toFixed(1)}%`;
}

export class Candidates {
  /** @type {Step} */ step;
  /** @type {Words} */ words;
  /** @type {boolean} */ locked;

  /** @param {HTMLElement} host @param {(id: number) => void} take */
  constructor(host, take) {
    this.host = host;
    this.take = take;
    this.axis = element("div", "vf-candidate-axis");
    this.list = element("div", "vf-candidates");
    this.list.setAttribute("role", "group");
    this.rest = element("div", "vf-caption");
    this.note = element("p", "vf-readout");
    this.note.setAttribute("role", "status");
    this.note.setAttribute("aria-live", "polite");
    host.append(this.axis, this.list, this.rest, this.note);
    this.list.addEventListener("click", (event) => {
      const row = buttonOf(event);
      if (row) this.choose(row);
    });
    this.list.addEventListener("pointerover", (event) => this.tell(buttonOf(event)));
    this.list.addEventListener("pointerleave", () => this.tell(null));
    this.list.addEventListener("focusin", (event) => this.tell(buttonOf(event)));
    this.list.addEventListener("focusout", () => this.tell(null));
    this.list.addEventListener("keydown", (event) => this.walk(event));
  }

  /** @param {Step} step @param {Words} words @param {boolean} locked */
  show(step, words, locked) {
    const focused = focusedIn(this.list);
    [this.step, this.words, this.locked] = [step, words, locked];
    const most = Math.max(...step.candidates.flatMap(({ before, after }) => [before, after]));
    const room = ROOMS.find((end) => most <= end) || 1;
    this.axis.replaceChildren(element("span"), element("span", "vf-ends"), element("span"));
    this.axis.children[1].append(element("span", "", "0"), element("span", "", percent(room)));
    this.list.replaceChildren(...step.candidates.map((one, index) => this.row(one, index, room)));
    this.list.setAttribute("aria-label", words.candidates);
    this.list.classList.toggle("vf-locked", locked);
    this.rest.textContent = step.restCount > 0
      ? fill(words.rest, { count: step.restCount.toLocaleString(), before: percent(step.restBefore), after: percent(step.restAfter) })
      : "";
    if (focused) this.focus(Number(focused.dataset.index));
    this.tell(null);
  }

  /** @param {Candidate} one @param {number} index @param {number} room */
  row(one, index, room) {
    const chosen = one.id === this.step.chosen;
    const row = element("button", "vf-candidate");
    row.type = "button";
    row.dataset.index = String(index);
    row.dataset.id = String(one.id);
    row.tabIndex = index === 0 ? 0 : -1;
    row.classList.toggle("vf-chosen", chosen);
    row.classList.toggle("vf-cut", one.cut > 0);
    row.setAttribute("aria-pressed", String(chosen));
    row.setAttribute("aria-label", this.sentence(one));
    const bars = element("span", "vf-bars");
    for (const name of /** @type {const} */ (["before", "after"])) {
      const bar = element("span", `vf-${name}`);
      bar.style.width = `${Math.min(100, (100 * one[name]) / room)}%`;
      bars.append(bar);
    }
    const numbers = element("span", "vf-numbers");
    numbers.append(element("span", "vf-number-before", percent(one.before)), element("span", "vf-number-after", one.cut > 0 ? "–" : percent(one.after)));
    const name = element("span", "vf-name");
    name.append(element("span", "vf-tick", chosen ? "✓" : ""), element("bdi", "vf-piece", visible(one.text)));
    row.append(name, bars, numbers);
    return row;
  }

  /** @param {Candidate} one */
  sentence(one) {
    const { words, step } = this;
    const values = { token: visible(one.text), before: percent(one.before), after: percent(one.after), by: words[`cut_${one.cut}`] };
    const parts = [fill(one.cut > 0 ? words.candidate_cut : words.candidate, values)];
    if (one.id === step.chosen) parts.push(step.byHand ? words.chosen_by_hand : words.chosen);
    else parts.push(words.take);
    return parts.join(words.joiner);
  }

  // About the row pointed at, else about the chosen one.
  /** @param {HTMLButtonElement | null} row */
  tell(row) {
    const { candidates, chosen } = this.step;
    const one = row ? candidates[Number(row.dataset.index)] : candidates.find(({ id }) => id === chosen);
    this.note.textContent = one ? this.sentence(one) : "";
  }

  /** @param {HTMLButtonElement} row */
  choose(row) {
    const id = Number(row.dataset.id);
    if (!this.locked && id !== this.step.chosen) this.take(id);
  }

  /** @param {KeyboardEvent} event */
  walk(event) {
    const row = buttonOf(event);
    /** @type {Record<string, number>} */
    const steps = { ArrowUp: -1, ArrowDown: 1, Home: -1e6, End: 1e6 };
    if (!row || !(event.key in steps) || isShortcut(event)) return;
    event.preventDefault();
    this.focus(Number(row.dataset.index) + steps[event.key]);
  }

  /** @param {number} index */
  focus(index) {
    const rows = this.list.querySelectorAll("button");
    rows[Math.max(0, Math.min(rows.length - 1, index))].focus();
  }
}
