// @ts-check
// The whole model as one picture of one forward.  What is pressed is looked at here; Python hears of a token that is to be
// written and of ways to other pages.

import { readTheme } from "./colours.js";
import { element, isShortcut } from "./dom.js";
import { BoxInside } from "./box_inside.js";
import { boxName, placeOf } from "./box_places.js";
import { watchWidth } from "./fit_width.js";
import { hiddenLayers } from "./hidden_layers.js";
import { laneButton, rove, stepInLane } from "./lane_keys.js";
import { drawCandidates, drawWritten } from "./next_token.js";
import { PictureBar } from "./picture_bar.js";
import { CROWDED, drawStrip, headButtons, tokenButton } from "./picture_buttons.js";
import { readPicture, sameHead } from "./picture_maps.js";
import { ReadingGlass } from "./reading_glass.js";
import { fill } from "./text.js";

/** @import { Component, Theme } from "./types.d.ts" */
/** @import { BoxOf, BoxPlace, PictureMaps, SentPicture } from "./picture_types.d.ts" */

const DOWN = 4;  // maps, one below the other in a model of one stack, before they stand in more columns

export class WholeModelView {
  /** @type {SentPicture} */ data;
  /** @type {Theme} */ theme;
  /** @type {Component<SentPicture>["setStateValue"]} */ send;
  /** @type {PictureMaps[]} */ maps = [];
  /** @type {HTMLButtonElement[][]} */ buttons = [];
  /** @type {HTMLButtonElement[][]} */ tokens = [];
  /** @type {HTMLElement[]} */ stages = [];
  /** @type {HTMLButtonElement | null} */ pressed = null;
  /** @type {Uint8Array} */ strips = new Uint8Array();
  // The map, head, query and key that are enlarged.
  at = 0;
  head = 0;
  query = 0;
  looked = 0;
  bars = element("div", "vf-whole-bars");
  wrote = false;  // what comes next is the answer to a token that was written
  row = 0;
  drawing = "";
  /** @type {number | undefined} */ wanted;  // the layer that the server was asked for
  /** @type {(() => BoxPlace) | null} */ place = null;  // of the box that is open

  /** @param {HTMLElement} parent */
  constructor(parent) {
    this.root = element("section", "vf-whole");
    this.root.setAttribute("role", "group");
    this.written = element("p", "vf-whole-written");
    this.lanes = element("div", "vf-whole-lanes");
    this.next = element("section", "vf-whole-next");
    this.glass = new ReadingGlass({
      pick: (query, key) => this.look(this.at, this.head, query, key),
      heads: () => this.tell(this.maps[this.at].heads.length < this.maps[this.at].n_heads ? "all" : "heads"),
      close: () => this.close_sheet(),
    });
    this.inside = new BoxInside({ close: () => this.close_box(), lesson: (name) => this.tell(name) });
    this.bar = new PictureBar();
    this.root.append(this.written, this.lanes, this.glass.root, this.next, this.bar.root);
    this.root.addEventListener("pointerdown", () => this.bar.stop());
    this.root.addEventListener("keydown", (event) => this.key(event));
    parent.append(this.root);
    this.fit = watchWidth(this.root);
  }

  /** @param {Component<SentPicture>} component */
  update({ data, setStateValue }) {
    const before = this.data?.made;
    const other = this.data && String(this.data.look) !== String(data.look);  // a page wants another kind of attention
    const [was, head] = [this.maps[this.at], this.maps[this.at]?.heads[this.head]];
    Object.assign(this, { data, send: setStateValue, theme: readTheme(this.root) });
    const drawing = JSON.stringify([data.made, data.lanes, data.words, data.look, this.theme.scores[0], this.theme.text]);
    if (drawing === this.drawing) return;  // what is open stays open
    Object.assign(this, readPicture(data), { drawing });
    if (before === data.made && !(other && this.maps[data.look[0]].kind !== was.kind)) {
      const found = sameHead(this.maps, was, head, this.wanted);
      Object.assign(this, found, { wanted: undefined });
      if (!found.same) [, this.looked] = this.strongest(this.maps[found.at], found.head, this.query);
    } else {
      if (!this.wrote) this.place = null;  // another model may not have the box that is open
      [this.at, this.head, this.query, this.looked] = data.look;
      this.row = this.maps[this.at].lane === data.lanes.length - 1 ? this.query : data.lanes[data.lanes.length - 1].tokens.length - 1;
    }
    this.build();
    const { stack, tokens } = data.lanes[data.lanes.length - 1];
    if (this.wrote && before !== data.made && stack === "decoder") {
      this.row = tokens.length - 1;
      this.look(this.at, this.head, ...this.strongest(this.maps[this.at], this.head, this.row));
    } else this.look(this.at, this.head, this.query, this.looked);
    this.wrote = false;
    this.root.dataset.made = data.made;
    if (!data.static) this.bar.begin();
  }

  /** @param {number} layer */
  ask_for(layer) {
    this.wanted = layer;
    this.tell("layer", { layer });
  }

  build() {
    const { data, data: { words, lanes } } = this;
    this.root.setAttribute("aria-label", words.picture);
    this.root.classList.toggle("vf-whole-one", lanes.length === 1);
    [this.buttons, this.tokens, this.stages] = [[], [], []];
    let strip = 0;
    this.lanes.replaceChildren(...lanes.flatMap((lane, at) => {
      const box = element("section", `vf-whole-lane vf-whole-${lane.stack}`);
      box.setAttribute("role", "group");
      const title = element("h3", "", words[`lane_${lanes.length > 1 ? lane.stack : "alone"}`]);
      box.setAttribute("aria-label", title.textContent ?? "");
      const tokens = element("div", "vf-whole-tokens");
      tokens.classList.toggle("vf-whole-crowded", lane.tokens.length > CROWDED);
      this.tokens.push(lane.tokens.map((token, i) => tokenButton(token, lane.glosses[i], () => this.choose(at, i))));
      tokens.append(...this.tokens[at]);
      if (lane.count > lane.tokens.length) tokens.append(element("span", "vf-whole-more", `+ ${lane.count - lane.tokens.length}`));
      const rows = element("div", "vf-whole-rows");
      for (const name of lane.added ? ["embedding", "positions"] : ["embedding"]) {
        if (name === "positions") rows.append(element("span", "vf-whole-plus", "+"));
        const column = element("div", "vf-whole-strip");
        const picture = drawStrip(lane, this.theme, this.strips, strip);
        strip += lane.tokens.length * lane.cells;
        column.append(this.box(name, { lane: at }), picture);
        rows.append(column);
        this.stages.push(column);
      }
      this.stages.splice(this.stages.length - (lane.added ? 2 : 1), 0, tokens);
      const layers = element("div", "vf-whole-layers");
      const own = this.maps.filter((one) => one.lane === at);
      const numbers = [...new Set(own.map((one) => one.layer))];
      numbers.forEach((layer, i) => {
        const gap = i ? layer - numbers[i - 1] - 1 : 0;
        if (gap) layers.append(hiddenLayers(words, layer - gap, layer, this.send && !data.static ? (one) => this.ask_for(one) : null));
        layers.append(this.layer(layer, own.filter((one) => one.layer === layer)));
      });
      box.append(title, tokens, rows, layers);
      if (!at && lanes.length > 1) {
        const memory = element("div", "vf-whole-memory", words.memory);
        this.stages.push(memory);
        return [box, memory];
      }
      return [box];
    }));
    this.build_next();
    this.bar.build(data, this.stages);
  }

  /** @param {number} layer @param {PictureMaps[]} kinds */
  layer(layer, kinds) {
    const { words, norm_order: order } = this.data;
    const [{ lane }] = kinds;
    const box = element("div", "vf-whole-layer");
    const heads = element("div", "vf-whole-kinds");
    for (const maps of kinds) {
      const at = this.maps.indexOf(maps);
      const group = element("div", `vf-whole-kind vf-whole-of-${maps.kind}`);
      const name = words[{ encoder: "self", decoder: "masked_self", cross: "cross" }[maps.kind]];
      const grid = element("div", "vf-whole-maps");
      this.buttons[at] = headButtons(maps, this.theme, words, (i, button) => {
        this.place = null;
        this.look(at, i, ...this.strongest(maps, i, this.query));
        this.open_sheet(button);
        if (this.data.reports) this.tell("opened");
      });
      const across = this.data.lanes.length > 1 ? Math.sqrt(maps.heads.length) : maps.heads.length / DOWN;
      grid.style.setProperty("--across", String(Math.max(2, Math.ceil(across))));
      grid.append(...this.buttons[at]);
      group.append(element("div", "vf-whole-name", name), grid);
      if (order !== "none") group.append(this.box("norm", { lane: maps.lane, kind: maps.kind, layer }));
      heads.append(group);
    }
    box.append(element("div", "vf-whole-number", fill(words.layer, { layer })), heads, this.box("feedforward", { lane, layer }));
    if (order !== "none") box.append(this.box("norm", { lane, layer, last: true }));
    box.append(...["attention", "network"].map((around) => element("i", `vf-whole-residual vf-whole-around-${around}`)));
    this.stages.push(box);
    return box;
  }

  // A box without heads: pressed, it opens in the glass, with the numbers of the row that is followed.
  /** @param {string} name @param {BoxOf} of */
  box(name, of) {
    const said = boxName(this.data, name);
    const button = laneButton(`vf-whole-box vf-whole-${name}`, said, () => {
      this.place = () => placeOf(this.data, name, of, this.row_of(of.lane));
      this.show_box();
      this.open_sheet(button);
      this.inside.zoom(button);
      if (this.data.reports) this.tell("opened", { box: name, kind: of.kind ?? this.data.lanes[of.lane].stack });
    });
    button.dataset.box = name;
    return button;
  }

  show_box() {
    const { data, place } = this;
    this.glass.root.classList.toggle("vf-whole-boxed", place !== null);
    if (!place) return void this.inside.close();
    this.glass.root.append(this.inside.root);
    void this.inside.open(place(), data.words, this.theme, Boolean(this.send) && !data.static);
  }

  close_box() {
    this.place = null;
    this.show_box();
    this.close_sheet();
  }

  // The row of a stack that is followed: the one that looks, or is looked at.
  /** @param {number} lane */
  row_of(lane) {
    const here = this.maps[this.at];
    if (here.lane === lane) return this.query;
    return lane === this.data.lanes.length - 1 ? this.row : here.kind === "cross" ? this.looked : 0;
  }

  build_next() {
    const { words, candidates } = this.data;
    this.next.hidden = candidates.length === 0;
    this.next.replaceChildren(this.box("output", { lane: this.data.lanes.length - 1 }), this.bars);
    for (const button of this.next.querySelectorAll("button")) button.tabIndex = 0;
    this.next.setAttribute("aria-label", words.output);
    if (candidates.length) this.stages.push(this.next);
  }

  // The strongest key of a row, if the row is one of this head's.
  /** @param {PictureMaps} maps @param {number} head @param {number} wanted @returns {[number, number]} */
  strongest(maps, head, wanted) {
    const query = maps.lane === this.maps[this.at].lane ? Math.min(wanted, maps.queries.length - 1) : Math.min(this.row, maps.queries.length - 1);
    const weights = maps.keys.map((_, key) => maps.weightAt(head, query, key));
    return [query, weights.indexOf(Math.max(...weights))];
  }

  // A token: the row that looks, where the head is of its stack; else the key that is looked at, or a head of that stack.
  /** @param {number} lane @param {number} token */
  choose(lane, token) {
    const here = this.maps[this.at];
    if (here.lane === lane) {
      this.look(this.at, this.head, ...this.strongest(here, this.head, token));
    } else if (here.kind === "cross") this.look(this.at, this.head, this.query, token);
    else {
      const at = this.maps.findIndex((one) => one.lane === lane);
      this.row = lane === this.data.lanes.length - 1 ? token : this.row;
      this.at = at;
      this.look(at, 0, ...this.strongest(this.maps[at], 0, token));
    }
  }

  /** @param {number} at @param {number} head @param {number} query @param {number} key */
  look(at, head, query, key) {
    const { data, maps } = this;
    [this.at, this.head, this.query, this.looked] = [at, head, query, key];
    const last = data.lanes.length - 1;
    if (maps[at].lane === last) this.row = query;
    for (const [i, buttons] of this.buttons.entries()) {
      for (const [j, button] of buttons.entries()) button.setAttribute("aria-pressed", String(i === at && j === head));
    }
    const keyLane = maps[at].kind === "cross" ? 0 : maps[at].lane;
    for (const [lane, tokens] of this.tokens.entries()) {
      for (const [i, token] of tokens.entries()) {
        token.classList.toggle("vf-whole-query", lane === maps[at].lane && i === query);
        token.classList.toggle("vf-whole-key", lane === keyLane && i === key);
      }
    }
    const picture = this.buttons[at][head].querySelector("canvas");
    if (picture) this.glass.show({ maps: maps[at], head, query, key }, picture, data.words);
    if (!this.place) rove(this.lanes, this.buttons[at][head]);
    this.show_box();
    this.draw_next();
  }

  draw_next() {
    const { words, candidates } = this.data;
    const row = Math.min(this.row, candidates.length - 1);
    drawCandidates(this.bars, candidates[row] ?? [], words, this.send ? (token) => this.tell("write", { row, token }) : null);
    drawWritten(this.written, this.data, this.row, row, this.send ? () => this.tell("own") : null);
  }

  /** @param {string} does @param {Record<string, number | string>} [more] */
  tell(does, more = {}) {
    const { kind, layer, heads } = this.maps[this.at];
    this.wrote = does === "write";
    if (this.send) this.send("selected", { does, kind, layer, head: heads[this.head], query: this.query, ...more, seq: Date.now() });
  }

  /** @param {HTMLButtonElement} from */
  open_sheet(from) {
    this.pressed = from;
    this.glass.root.classList.add("vf-whole-open");
  }

  close_sheet() {
    this.glass.root.classList.remove("vf-whole-open");
    this.pressed?.focus();
  }

  /** @param {KeyboardEvent} event */
  key(event) {
    if (isShortcut(event)) return;
    this.bar.stop();
    if (event.key === "Escape") {
      if (this.place) this.close_box();
      else if (!this.glass.proof.hidden) this.glass.fold();
      else this.close_sheet();
      return;
    }
    stepInLane(event, this.lanes);
  }

  close() {
    clearTimeout(this.bar.timer);
    this.fit.disconnect();
    this.root.remove();
  }
}
