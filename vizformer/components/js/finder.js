// @ts-check
// A box that finds a token of the text: Enter goes to the next one that holds what was typed.

import { element } from "./dom.js";
import { fill } from "./text.js";

/** @import { Words } from "./types.d.ts" */

export class TokenFinder {
  /** @type {string[]} */ tokens = [];
  /** @type {Words} */ words;
  at = -1;

  /** @param {(index: number) => void} jump */
  constructor(jump) {
    this.jump = jump;
    this.host = element("span", "vf-finder");
    this.box = element("input");
    this.box.type = "search";
    this.count = element("span", "vf-caption");
    this.count.setAttribute("aria-live", "polite");
    this.host.append(this.box, this.count);
    this.box.oninput = () => { this.at = -1; this.count.textContent = ""; };
    this.box.onkeydown = (event) => {
      if (event.key !== "Enter" || event.isComposing) return;
      event.preventDefault();
      this.next(event.shiftKey ? -1 : 1);
    };
  }

  /** @param {string[]} tokens @param {Words} words */
  show(tokens, words) {
    [this.tokens, this.words] = [tokens, words];
    this.box.placeholder = words.find;
    this.box.setAttribute("aria-label", words.find);
  }

  // Where what was typed stands: in a token, or from a token on over several.
  found() {
    const wanted = this.box.value.toLowerCase().replace(/\s+/g, "");
    if (!wanted) return [];
    let text = "";
    /** @type {number[]} */ const tokenOf = [];
    this.tokens.forEach((token, index) => {
      for (const letter of token.toLowerCase().replace(/\s+/g, "")) {
        text += letter;
        for (let unit = 0; unit < letter.length; unit++) tokenOf.push(index);
      }
    });
    const places = [];
    for (let at = text.indexOf(wanted); at >= 0; at = text.indexOf(wanted, at + 1)) places.push(tokenOf[at]);
    return [...new Set(places)];
  }

  /** @param {number} step */
  next(step) {
    const places = this.found();
    if (!places.length) {
      this.count.textContent = this.box.value ? this.words.found_none : "";
      return;
    }
    this.at = this.at < 0 && step < 0 ? places.length - 1 : (this.at + step + places.length) % places.length;
    this.count.textContent = fill(this.words.found, { at: this.at + 1, n: places.length });
    this.jump(places[this.at]);
  }
}
