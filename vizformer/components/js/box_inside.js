// @ts-check
// What a box of the picture does with the row of one token: the vectors before and after it, and how each number came about.

import { element } from "./dom.js";
import { paint } from "./paint.js";
import { fill, visible } from "./text.js";

/** @import { Theme, Words } from "./types.d.ts" */
/** @import { BoxPlace, BoxVector } from "./picture_types.d.ts" */

const ZOOM = 180;  // ms
/** @type {Record<string, string>} */
const SYMBOLS = {
  scaled: "e", position: "PE", together: "x", normed_sum: "z", sum: "y", normed: "z", next_normed: "z",
  hidden: "h", active: "a", up: "u", gated: "g", narrow: "f", logits: "ℓ", probabilities: "p",
};

export class BoxInside {
  /** @type {BoxPlace | null} */ place = null;
  number = 0;
  root = element("div", "vf-whole-inside");
  title = element("h3");
  about = element("p");
  body = element("div", "vf-whole-vectors");
  proved = element("p", "vf-whole-proved");
  ways = element("div", "vf-whole-ways");
  back = element("button", "vf-whole-prove");
  way = element("button", "vf-whole-link");

  /** @param {{ close(): void, lesson: (name: string) => void }} on */
  constructor(on) {
    this.back.type = this.way.type = "button";
    this.back.onclick = () => on.close();
    this.way.onclick = () => on.lesson(this.place?.box.replace("last_", "") ?? "");
    this.body.setAttribute("aria-live", "polite");
    this.ways.append(this.proved, this.back);
    this.root.append(this.title, this.way, this.about, this.body, this.ways);
  }

  /** @param {BoxPlace} place @param {Words} words @param {Theme} theme @param {boolean} leads */
  async open(place, words, theme, leads) {
    this.place = place;
    this.title.textContent = place.title;
    this.about.textContent = place.about;
    this.back.textContent = words.back;
    this.way.textContent = words.way;
    this.way.hidden = !leads;
    this.proved.textContent = "";
    if (!place.address) return void this.body.replaceChildren();
    const found = await fetch(`${place.address}/${place.box}/${place.layer}/${place.row}`)
      .then((answer) => (answer.ok ? answer.json() : null)).catch(() => null);
    if (this.place !== place) return;
    if (!found) return void this.body.replaceChildren(element("p", "", words.not_come));
    this.number = found.look;
    this.draw(found.vectors, words, theme, place.token);
    this.proved.textContent = found.proof && fill(found.proof.holds ? words.same_row : words.other_row, { apart: power(found.proof.difference) });
  }

  /** @param {BoxVector[]} vectors @param {Words} words @param {Theme} theme @param {string} token */
  draw(vectors, words, theme, token) {
    const rows = vectors.filter((one) => !one.names.length);
    const most = Math.max(1e-9, ...rows.flatMap((one) => one.cells.map(Math.abs)));
    const shown = Math.min(...vectors.map((one) => one.cells.length));
    /** @type {HTMLElement[]} */ const marks = [];
    const slider = element("input");
    Object.assign(slider, { type: "range", min: "0", max: String(shown - 1), value: String(this.number) });
    slider.setAttribute("aria-label", words.which_number);
    const sums = element("div", "vf-whole-sums");
    sums.setAttribute("aria-live", "polite");
    const tell = () => {
      this.number = Number(slider.value);
      marks.forEach((mark, i) => {
        mark.style.left = `${(100 * this.number) / vectors[i].cells.length}%`;
        mark.style.width = `${100 / vectors[i].cells.length}%`;
      });
      sums.replaceChildren(...vectors.filter((one) => one.written.length).map((one) => {
        const line = element("p", "vf-whole-sum");
        const of = one.names.length ? `“${visible(one.names[this.number])}”` : one.first + this.number;
        line.append(element("b", "", `${SYMBOLS[one.name]}[${of}]`), ` = ${one.written[this.number]}`);
        if (one.terms) line.append(` (${fill(words.terms, { count: one.terms })})`);
        return line;
      }));
    };
    slider.oninput = tell;
    this.body.replaceChildren(element("p", "", fill(words.row_of, { token: visible(token), count: vectors[0].count, shown: vectors[0].cells.length })));
    for (const one of vectors) {
      const own = one.names.length ? Math.max(...one.cells.map(Math.abs)) : most;
      const strip = element("div", "vf-whole-vector");
      const picture = paint(1, one.cells.length, (i) => theme.scores[Math.round(127 + (127 * one.cells[i]) / own)]);
      picture.onclick = (event) => {
        const { left, width } = picture.getBoundingClientRect();
        slider.value = String(Math.floor(((event.clientX - left) / width) * one.cells.length));
        tell();
      };
      marks.push(element("i"));
      strip.append(picture, marks[marks.length - 1]);
      this.body.append(element("span", "", words[`vector_${one.name}`]), strip);
    }
    this.body.append(slider, sums);
    tell();
  }

  // It grows out of the box that was pressed.
  /** @param {HTMLElement} from */
  zoom(from) {
    if (matchMedia("(prefers-reduced-motion: reduce)").matches) return;
    const [a, b] = [from.getBoundingClientRect(), this.root.getBoundingClientRect()];
    const scale = Math.max(0.05, a.width / b.width);
    const start = `translate(${a.left - b.left}px, ${a.top - b.top}px) scale(${scale})`;
    this.root.animate([{ transform: start, opacity: 0.3 }, { transform: "none", opacity: 1 }], { duration: ZOOM, easing: "ease-out" });
  }

  close() {
    this.place = null;
    this.root.remove();
  }
}

// 2 × 10⁻⁷, or 0.
/** @param {number} value */
function power(value) {
  if (!value) return "0";
  const [digits, exponent] = value.toExponential(0).split("e");
  return `${digits} × 10${[...exponent.replace("+", "")].map((sign) => (sign === "-" ? "⁻" : "⁰¹²³⁴⁵⁶⁷⁸⁹"[Number(sign)])).join("")}`;
}
