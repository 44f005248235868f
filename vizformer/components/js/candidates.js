// @ts-check
// The candidates of a step as rows with two bars: what the model says, and what is left to draw from. A row is a button
// that takes its token instead of the chosen one.

import { element } from "./dom.js";
import { fill, visible } from "./text.js";

const ROOMS = [0.02, 0.05, 0.1, 0.2, 0.5, 1];  // ends of the bars' scale

// A share with few digits; what would round to nothing is said to be small, not to be zero.
function percent(share) {
  return share > 0 && share < 0.0005 ? "<0.1%" : `${(100 * share).toFixed(1)}%`;
}

export class Candidates {
  constructor(host, take) {
    this.host = host;
    this.take = take;  // (id)
    this.axis = element("div", "vf-candidate-axis");
    this.list = element("div", "vf-candidates");
    this.list.setAttribute("role", "group");
    this.rest = element("div", "vf-caption");
    this.note = element("p", "vf-readout");
    this.note.setAttribute("role", "status");
    this.note.setAttribute("aria-live", "polite");
    host.append(this.axis, this.list, this.rest, this.note);
    const row = (event) => event.target.closest?.("button");
    this.list.addEventListener("click", (event) => { if (row(event)) this.choose(row(event)); });
    this.list.addEventListener("pointerover", (event) => this.tell(row(event)));
    this.list.addEventListener("pointerleave", () => this.tell(null));
    this.list.addEventListener("focusin", (event) => this.tell(row(event)));
    this.list.addEventListener("focusout", () => this.tell(null));
    this.list.addEventListener("keydown", (event) => this.walk(event));
  }

  // step: {candidates: [{id, text, before, after, cut}], chosen, byHand, restCount, restBefore, restAfter}
  show(step, words, locked) {
    const focused = [...this.list.children].findIndex((row) => row.matches(":focus"));
    Object.assign(this, { step, words, locked });
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
    if (focused >= 0) this.list.children[Math.min(focused, this.list.children.length - 1)].focus();
    this.tell(null);
  }

  row(one, index, room) {
    const chosen = one.id === this.step.chosen;
    const row = element("button", "vf-candidate");
    row.type = "button";
    row.dataset.index = index;
    row.dataset.id = one.id;
    row.tabIndex = index === 0 ? 0 : -1;
    row.classList.toggle("vf-chosen", chosen);
    row.classList.toggle("vf-cut", one.cut > 0);
    row.setAttribute("aria-pressed", String(chosen));
    row.setAttribute("aria-label", this.sentence(one));
    const bars = element("span", "vf-bars");
    for (const name of ["before", "after"]) {
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

  sentence(one) {
    const { words, step } = this;
    const values = { token: visible(one.text), before: percent(one.before), after: percent(one.after), by: words[`cut_${one.cut}`] };
    const parts = [fill(one.cut > 0 ? words.candidate_cut : words.candidate, values)];
    if (one.id === step.chosen) parts.push(step.byHand ? words.chosen_by_hand : words.chosen);
    else parts.push(words.take);
    return parts.join(words.joiner);
  }

  // About the row pointed at, else about the chosen one.
  tell(row) {
    const { candidates, chosen } = this.step;
    const one = row ? candidates[Number(row.dataset.index)] : candidates.find(({ id }) => id === chosen);
    this.note.textContent = one ? this.sentence(one) : "";
  }

  choose(row) {
    const id = Number(row.dataset.id);
    if (!this.locked && id !== this.step.chosen) this.take(id);
  }

  walk(event) {
    const row = event.target.closest("button");
    const steps = { ArrowUp: -1, ArrowDown: 1, Home: -1e6, End: 1e6 };
    if (!row || !(event.key in steps) || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    const last = this.list.children.length - 1;
    this.list.children[Math.max(0, Math.min(last, Number(row.dataset.index) + steps[event.key]))].focus();
  }
}
