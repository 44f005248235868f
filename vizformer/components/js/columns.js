// @ts-check
// The tokens on both sides of the lines: two lists of buttons, queries on the left and keys on the right.

import { element } from "./dom.js";

export class TokenColumns {
  constructor(on) {
    this.on = on;  // {point(spot | null), choose(spot)}
    this.hosts = { query: element("div", "vf-column vf-queries"), key: element("div", "vf-column vf-keys") };
    for (const [side, host] of Object.entries(this.hosts)) {
      const spot = (event) => {
        const token = event.target.closest?.("button");
        return token ? { side, index: Number(token.dataset.index) } : null;
      };
      host.setAttribute("role", "listbox");
      host.addEventListener("pointerover", (event) => this.on.point(spot(event)));
      host.addEventListener("pointerleave", () => this.on.point(null));
      host.addEventListener("focusin", (event) => this.enter(spot(event)));
      host.addEventListener("focusout", () => this.on.point(null));
      host.addEventListener("click", (event) => { if (spot(event)) this.on.choose(spot(event)); });
      host.addEventListener("keydown", (event) => this.walk(event, spot(event)));
    }
  }

  show(tokens, labels) {
    for (const [side, host] of Object.entries(this.hosts)) {
      const focused = host.querySelector(":focus");
      host.setAttribute("aria-label", labels[side]);
      host.replaceChildren(...tokens[side].map((text, index) => {
        const token = element("button", "vf-token");
        token.type = "button";
        token.tabIndex = index === 0 ? 0 : -1;
        token.dataset.index = index;
        if (text.length > 8) token.title = text;  // it may be cut short
        token.setAttribute("role", "option");
        token.setAttribute("aria-label", `${index}: ${text}`);
        token.append(element("span", "vf-place", String(index)), element("bdi", "vf-piece", text));
        return token;
      }));
      if (focused) this.focus({ side, index: Number(focused.dataset.index) });
    }
  }

  // Marks the token that is kept and the one pointed at.
  mark(pinned, pointed) {
    const is = (spot, side, index) => spot !== null && spot.side === side && spot.index === index;
    for (const old of this.marked || []) {
      old.classList.remove("vf-pointed");
      old.setAttribute("aria-selected", "false");
    }
    this.marked = [pinned, pointed].filter(Boolean).map(({ side, index }) => {
      const token = this.hosts[side].children[index];
      token.classList.toggle("vf-pointed", is(pointed, side, index));
      token.setAttribute("aria-selected", String(is(pinned, side, index)));
      return token;
    });
  }

  // One token of a side takes part in the order of the Tab key: the one that was last reached.
  enter(spot) {
    if (!spot) return;
    for (const token of this.hosts[spot.side].querySelectorAll("[tabindex='0']")) token.tabIndex = -1;
    this.hosts[spot.side].children[spot.index].tabIndex = 0;
    this.on.point(spot);
  }

  focus({ side, index }) {
    const { children } = this.hosts[side];
    children[Math.max(0, Math.min(children.length - 1, index))].focus();
  }

  walk(event, spot) {
    if (!spot || event.ctrlKey || event.metaKey || event.altKey) return;
    const steps = { ArrowUp: -1, ArrowDown: 1, Home: -1e6, End: 1e6 };
    if (event.key in steps) this.focus({ ...spot, index: spot.index + steps[event.key] });
    else if (event.key === "ArrowLeft" && spot.side === "key") this.focus({ side: "query", index: spot.index });
    else if (event.key === "ArrowRight" && spot.side === "query") this.focus({ side: "key", index: spot.index });
    else return;
    event.preventDefault();
  }
}
