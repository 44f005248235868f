// @ts-check
// The tokens on both sides of the lines: two lists of buttons, queries on the left and keys on the right.

import { buttonOf, element, focusedIn, isShortcut } from "./dom.js";

/** @import { Side, Spot } from "./types.d.ts" */

/** @type {Side[]} */
export const SIDES = ["query", "key"];

export class TokenColumns {
  /** @type {HTMLButtonElement[]} */ marked = [];

  /** @param {{ point(spot: Spot | null): void, choose(spot: Spot): void }} on */
  constructor(on) {
    this.on = on;
    /** @type {Record<Side, HTMLElement>} */
    this.hosts = { query: element("div", "vf-column vf-queries"), key: element("div", "vf-column vf-keys") };
    for (const side of SIDES) {
      const host = this.hosts[side];
      const spot = (/** @type {Event} */ event) => {
        const token = buttonOf(event);
        return token ? { side, index: Number(token.dataset.index) } : null;
      };
      host.setAttribute("role", "listbox");
      host.addEventListener("pointerover", (event) => this.on.point(spot(event)));
      host.addEventListener("pointerleave", () => this.on.point(null));
      host.addEventListener("focusin", (event) => this.enter(spot(event)));
      host.addEventListener("focusout", () => this.on.point(null));
      host.addEventListener("click", (event) => {
        const chosen = spot(event);
        if (chosen) this.on.choose(chosen);
      });
      host.addEventListener("keydown", (event) => this.walk(event, spot(event)));
    }
  }

  // The button of a token; the nearest one where there is no such place.
  /** @param {Side} side @param {number} index */
  button(side, index) {
    const { children } = this.hosts[side];
    return /** @type {HTMLButtonElement} */ (children[Math.max(0, Math.min(children.length - 1, index))]);
  }

  // first: the numbers of the first tokens in their texts.
  /** @param {Record<Side, string[]>} tokens @param {Record<Side, string>} labels @param {Record<Side, number>} first */
  show(tokens, labels, first) {
    for (const side of SIDES) {
      const host = this.hosts[side];
      const focused = focusedIn(host);
      host.setAttribute("aria-label", labels[side]);
      host.replaceChildren(...tokens[side].map((text, index) => {
        const token = element("button", "vf-token");
        token.type = "button";
        token.tabIndex = index === 0 ? 0 : -1;
        token.dataset.index = String(index);
        if (text.length > 8) token.title = text;  // it may be cut short
        token.setAttribute("role", "option");
        const place = String(first[side] + index);
        token.setAttribute("aria-label", `${place}: ${text}`);
        token.append(element("span", "vf-place", place), element("bdi", "vf-piece", text));
        return token;
      }));
      if (focused) this.focus({ side, index: Number(focused.dataset.index) });
    }
  }

  // Marks the token that is kept and the one pointed at.
  /** @param {Spot | null} pinned @param {Spot | null} pointed */
  mark(pinned, pointed) {
    for (const old of this.marked) {
      old.classList.remove("vf-pointed");
      old.setAttribute("aria-selected", "false");
    }
    this.marked = [];
    for (const spot of [pinned, pointed]) if (spot) this.marked.push(this.button(spot.side, spot.index));
    for (const token of this.marked) token.setAttribute("aria-selected", "false");
    if (pointed) this.button(pointed.side, pointed.index).classList.add("vf-pointed");
    if (pinned) this.button(pinned.side, pinned.index).setAttribute("aria-selected", "true");
  }

  // One token of a side takes part in the order of the Tab key: the one that was last reached.
  /** @param {Spot | null} spot */
  enter(spot) {
    if (!spot) return;
    for (const token of this.hosts[spot.side].querySelectorAll("button")) if (token.tabIndex === 0) token.tabIndex = -1;
    this.button(spot.side, spot.index).tabIndex = 0;
    this.on.point(spot);
  }

  /** @param {Spot} spot */
  focus({ side, index }) {
    this.button(side, index).focus();
  }

  /** @param {KeyboardEvent} event @param {Spot | null} spot */
  walk(event, spot) {
    if (!spot || isShortcut(event)) return;
    /** @type {Record<string, number>} */
    const steps = { ArrowUp: -1, ArrowDown: 1, Home: -1e6, End: 1e6 };
    if (event.key in steps) this.focus({ ...spot, index: spot.index + steps[event.key] });
    else if (event.key === "ArrowLeft" && spot.side === "key") this.focus({ side: "query", index: spot.index });
    else if (event.key === "ArrowRight" && spot.side === "query") this.focus({ side: "key", index: spot.index });
    else return;
    event.preventDefault();
  }
}
