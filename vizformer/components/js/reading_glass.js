// @ts-check
// One head of the picture of the whole model at 240 px: its tokens, its sentence, its arithmetic, and the proof of a number.

import { element } from "./dom.js";
import { signed } from "./numbers.js";
import { readTensors } from "./tensor_file.js";
import { fill, visible } from "./text.js";

/** @import { Words } from "./types.d.ts" */
/** @import { PictureMaps } from "./picture_types.d.ts" */
/** @typedef {{ maps: PictureMaps, head: number, query: number, key: number }} Chosen */

const MOST = 18;  // labels beside an axis
const LETTERS = 9;
const SAME = 1e-4;  // weights come as 16 bits, scores and queries as 32

export class ReadingGlass {
  /** @type {Words} */ words = {};
  /** @type {Chosen | null} */ chosen = null;
  term = 0;

  /** @param {{ pick(query: number, key: number): void, heads(): void, close(): void }} on */
  constructor(on) {
    this.on = on;
    this.root = element("section", "vf-whole-glass");
    this.title = element("h3");
    this.shut = element("button", "vf-whole-close", "×");
    this.shut.type = "button";
    this.shut.onclick = () => on.close();
    this.stage = element("div", "vf-whole-stage");
    this.canvas = element("canvas");
    this.canvas.tabIndex = 0;
    this.canvas.setAttribute("role", "img");
    this.canvas.onclick = (event) => this.point(event);
    this.canvas.onkeydown = (event) => this.press(event);
    this.row = element("div", "vf-whole-row");
    this.cell = element("div", "vf-whole-cell");
    this.proof = element("div", "vf-whole-proof");
    this.proof.hidden = true;
    this.said = element("p");
    this.said.setAttribute("aria-live", "polite");
    this.rest = element("p", "vf-whole-rest");
    this.sum = element("p", "vf-whole-sum");
    this.ways = element("div", "vf-whole-ways");
    this.prove = element("button", "vf-whole-prove");
    this.prove.type = "button";
    this.prove.onclick = () => this.toggle();
    this.all = element("button", "vf-whole-link");
    this.all.type = "button";
    this.all.onclick = () => on.heads();
    this.ways.append(this.sum, this.prove);
    this.root.append(this.title, this.all, this.shut, this.stage, this.proof, this.said, this.rest, this.ways);
  }

  /** @param {Chosen} chosen @param {HTMLCanvasElement} picture @param {Words} words */
  show(chosen, picture, words) {
    const { maps, head, query, key } = chosen;
    const again = this.chosen?.maps === maps && this.chosen.head === head && this.chosen.query === query && this.chosen.key === key;
    Object.assign(this, { chosen, words });
    const weight = maps.weightAt(head, query, key);
    const [row, column] = [withGloss(maps.queries, maps.queryGlosses, query), withGloss(maps.keys, maps.keyGlosses, key)];
    const rest = maps.rests[head];  // on a key, or (-1) each token on itself
    this.rest.textContent = rest && fill(words[rest[0] < 0 ? "rests_on_itself" : "rests"], {
      key: rest[0] < 0 ? "" : withGloss(maps.keys, maps.keyGlosses, rest[0]), share: `${(100 * rest[1]).toFixed(0)} %`,
    });
    this.rest.title = this.rest.textContent ?? "";
    this.title.textContent = fill(words[`title_${maps.kind}`], { layer: maps.layer, head: maps.heads[head] });
    this.shut.setAttribute("aria-label", words.close);
    this.root.setAttribute("aria-label", this.title.textContent);
    this.all.textContent = fill(maps.heads.length < maps.n_heads ? words.all_here : words.all, { count: maps.n_heads });
    this.said.textContent = maps.reasonAt(query, key)
      ? fill(words.masked, { query: row, key: column })
      : fill(words.weight, { query: row, key: column, weight: weight.toFixed(3) });
    const named = maps.plain ? `q·k${divisor(maps.scale)}` : words.score;
    const score = signed(maps.scoreAt(head, query, key), 3);
    this.sum.textContent = maps.reasonAt(query, key)
      ? fill(words.sum_masked, { score: named })
      : `${named} = ${score} → softmax → ${weight.toFixed(3)}`;
    this.canvas.setAttribute("aria-label", `${this.said.textContent} ${words.keys}`);
    [this.canvas.width, this.canvas.height] = [maps.keys.length, maps.queries.length];
    this.canvas.getContext("2d")?.drawImage(picture, 0, 0);
    const [high, wide] = [100 / maps.queries.length, 100 / maps.keys.length];
    Object.assign(this.row.style, { top: `${query * high}%`, height: `${high}%` });
    Object.assign(this.cell.style, { top: `${query * high}%`, height: `${high}%`, left: `${key * wide}%`, width: `${wide}%` });
    this.stage.replaceChildren(
      this.canvas, this.row, this.cell,
      ...labels(maps.queries, query, "vf-whole-left", "top"), ...labels(maps.keys, key, "vf-whole-top", "left"),
    );
    this.prove.hidden = !maps.address || maps.reasonAt(query, key) > 0;
    this.prove.textContent = this.proof.hidden ? words.prove : words.back;
    if (!again) this.fold();
  }

  fold() {
    const focused = this.proof.matches(":focus-within");
    this.proof.hidden = true;
    this.stage.hidden = false;
    this.prove.textContent = this.words.prove;
    if (focused) this.prove.focus();
  }

  toggle() {
    if (!this.proof.hidden) return void this.fold();
    this.stage.hidden = true;
    this.proof.hidden = false;
    this.prove.textContent = this.words.back;
    this.proof.replaceChildren(element("p", "", this.words.fetching));
    return void this.fetch();
  }

  // The head's queries and keys, as the server has them; the proof is made here.
  async fetch() {
    const { chosen, words } = this;
    if (!chosen) return;
    const { maps, head, query, key } = chosen;
    const columns = await fetch(`${maps.address}/${maps.layer}/${maps.heads[head]}`)
      .then(async (answer) => (answer.ok ? readTensors(await answer.arrayBuffer()) : null)).catch(() => null);
    if (this.chosen !== chosen || this.proof.hidden) return;
    if (!columns || !columns.q) {
      this.proof.replaceChildren(element("p", "", columns ? words.no_operands : words.not_come));
      return;
    }
    const d = columns.q.length / maps.queryCount;
    const q = Array.from(columns.q.subarray(query * d, (query + 1) * d), (value) => value / maps.scale);
    const k = Array.from(columns.k.subarray(key * d, (key + 1) * d));
    this.draw(q, k, chosen);
  }

  /** @param {number[]} q @param {number[]} k @param {Chosen} chosen */
  draw(q, k, { maps, head, query, key }) {
    const { words } = this;
    const products = q.map((value, i) => value * k[i]);
    const dot = products.reduce((sum, value) => sum + value, 0);
    const [score, total] = [maps.scoreAt(head, query, key), maps.totalAt(head, query)];
    const found = Math.exp(dot * maps.scale + (maps.plain ? 0 : score - dot * maps.scale) - total);
    const most = Math.max(...products.map(Math.abs)) || 1;
    this.term = products.findIndex((value) => Math.abs(value) === most);
    const bars = element("div", "vf-whole-products");
    bars.append(...products.map((value) => {
      const bar = element("span", value < 0 ? "vf-whole-below" : "");
      bar.style.height = `${Math.max(1, (Math.abs(value) / most) * 34)}px`;
      return bar;
    }));
    const slider = element("input");
    Object.assign(slider, { type: "range", min: "0", max: String(q.length - 1), value: String(this.term) });
    slider.setAttribute("aria-label", words.which);
    const one = element("p", "vf-whole-product");
    one.setAttribute("aria-live", "polite");
    const tell = () => {
      const i = Number(slider.value);
      one.textContent = `q[${i}] × k[${i}] = ${bracket(q[i])} × ${bracket(k[i])} = ${signed(products[i], 4)}`;
      for (const [at, bar] of [...bars.children].entries()) bar.classList.toggle("vf-whole-this", at === i);
    };
    slider.oninput = tell;
    const values = { count: q.length, query: visible(maps.queries[query]), key: visible(maps.keys[key]) };
    const lines = [
      `q·k = ${signed(dot, 4)}`,
      ...(maps.plain ? [`q·k${divisor(maps.scale)} = ${signed(dot * maps.scale, 4)}`]
        : [fill(words.and_bias, { dot: signed(dot * maps.scale, 4), score: signed(score, 4) })]),
      `e^${bracket(score)} / Σ e^s = e^(${signed(score, 4)} − ${signed(total, 4).replace("−", "(−") + (total < 0 ? ")" : "")}) = ${found.toFixed(4)}`,
      fill(Math.abs(found - maps.weightAt(head, query, key)) < SAME ? words.holds : words.differs, { weight: maps.weightAt(head, query, key).toFixed(4) }),
    ].map((line) => element("p", "vf-whole-sum", line));
    this.proof.replaceChildren(element("p", "", fill(words.products, values)), bars, slider, one, ...lines);
    tell();
    slider.focus({ preventScroll: true });
  }

  /** @param {MouseEvent} event */
  point(event) {
    if (!this.chosen) return;
    const { left, top, width, height } = this.canvas.getBoundingClientRect();
    const { queries, keys } = this.chosen.maps;
    const place = (/** @type {number} */ share, /** @type {number} */ n) => Math.max(0, Math.min(n - 1, Math.floor(share * n)));
    this.on.pick(place((event.clientY - top) / height, queries.length), place((event.clientX - left) / width, keys.length));
  }

  /** @param {KeyboardEvent} event */
  press(event) {
    /** @type {Record<string, [number, number]>} */
    const steps = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };
    if (!(event.key in steps) || !this.chosen) return;
    event.preventDefault();
    const { query, key, maps } = this.chosen;
    const [down, right] = steps[event.key];
    const within = (/** @type {number} */ at, /** @type {number} */ n) => Math.max(0, Math.min(n - 1, at));
    this.on.pick(within(query + down, maps.queries.length), within(key + right, maps.keys.length));
  }
}

// A token, and what it means in brackets.
/** @param {string[]} tokens @param {string[]} glosses @param {number} at */
function withGloss(tokens, glosses, at) {
  return glosses[at] ? `${visible(tokens[at])} (${glosses[at]})` : visible(tokens[at]);
}

// "/√64" of a scale of 1/8; "·0.3" of one that is no such root.
/** @param {number} scale */
function divisor(scale) {
  const d = Math.round(1 / scale ** 2);
  if (scale === 1) return "";
  return Math.abs(1 / Math.sqrt(d) - scale) < 1e-6 ? `/√${d}` : `·${scale.toPrecision(3)}`;
}

/** @param {number} value */
function bracket(value) {
  return value < 0 ? `(${signed(value, 4)})` : signed(value, 4);
}

// Labels beside an axis: as many as there is room for, the chosen one among them.
/** @param {string[]} tokens @param {number} chosen @param {string} name @param {"top" | "left"} side */
function labels(tokens, chosen, name, side) {
  const step = Math.ceil(tokens.length / MOST);
  return tokens.flatMap((token, i) => {
    if (i !== chosen && (i % step || Math.abs(i - chosen) < step)) return [];
    const text = visible(token);
    const label = element("span", i === chosen ? `${name} vf-whole-this` : name, text.length > LETTERS ? `${text.slice(0, LETTERS - 1)}…` : text);
    label.setAttribute("aria-hidden", "true");
    label.style[side] = `${(100 * (i + 0.5)) / tokens.length}%`;
    return [label];
  });
}
