// @ts-check
// A page without a server: runs of the whole model that were saved, one of them in sight. What the picture asks a server
// for elsewhere lies in the file.

import { element } from "./js/dom.js";
import { bytesOf } from "./js/numbers.js";
import { present } from "./js/present.js";
import { fill, visible } from "./js/text.js";
import { WholeModelView } from "./js/whole_model_view.js";

/** @import { Component } from "./js/types.d.ts" */
/** @import { SavedRun, SavedWords } from "./js/picture_types.d.ts" */
/** @typedef {{ packed: string, language: string }} Sent gzipped JSON as base64; the language of who saved it */
/** @typedef {{ runs: SavedRun[], languages: Record<string, SavedWords> }} Saved */

class SavedRuns {
  /** @type {Saved | null} */ saved = null;
  language = "";
  at = 0;
  written = "";  // "row/token", of what the reader wrote into the run; "" for the run itself

  /** @param {HTMLElement} parent */
  constructor(parent) {
    this.root = element("main", "vf-whole vf-saved");
    this.title = element("h1");
    this.tongues = element("div", "vf-saved-line");
    this.choices = element("div", "vf-saved-line");
    this.choices.setAttribute("role", "group");
    this.said = element("p", "vf-saved-said");
    this.said.setAttribute("role", "status");
    this.stage = element("div");
    this.about = element("footer");
    this.root.append(this.tongues, this.title, this.choices, this.stage, this.said, this.about);
    this.picture = new WholeModelView(this.stage);
    parent.append(this.root);
  }

  /** @param {Component<Sent>} component */
  update({ data }) {
    if (this.saved) return void this.show();
    void unpack(data.packed).then((saved) => {
      this.saved = saved;
      const wanted = Object.keys(saved.languages).find((code) => navigator.language.slice(0, 2) === code.slice(0, 2));
      this.language = wanted ?? data.language;
      globalThis.fetch = async (address) => {  // nothing in this page asks a server
        const kept = saved.runs[this.at].answers[String(address)];
        return kept === undefined ? Response.error() : new Response(typeof kept === "string" ? bytesOf(kept) : JSON.stringify(kept));
      };
      this.show();
    });
  }

  show() {
    if (!this.saved) return;
    const { runs, languages } = this.saved;
    const { page, picture, runs: said } = languages[this.language];
    const run = runs[this.at];
    document.documentElement.lang = this.language.replace("_", "-");
    this.title.textContent = fill(page.title, { text: run.text });
    document.title = `${this.title.textContent} · VizFormer`;
    this.tongues.replaceChildren(...Object.entries(languages).map(([code, { name }]) => (
      choice(name, code === this.language, () => this.speak(code)))));
    this.choices.hidden = runs.length < 2;
    this.choices.setAttribute("aria-label", page.runs);
    this.choices.replaceChildren(...runs.map(({ name, text }, i) => choice(`${name}: ${text}`, i === this.at, () => this.open(i, ""))));
    this.said.textContent = this.written ? page.written : "";
    this.about.replaceChildren(...[page.about, page.app].map((text) => element("p", "", text)));
    const { glosses, positions } = said[this.at];
    const shown = run.pictures[this.written];
    const lanes = shown.lanes.map((lane) => ({ ...lane, glosses: lane.tokens.map((token) => glosses[token] ?? "") }));
    const words = { ...picture, not_come: page.not_come, way: "", all: "", own: page.own };
    const data = { ...shown, lanes, words, positions };
    this.picture.update({ data, parentElement: this.stage, setStateValue: (_, asked) => this.press(asked) });
  }

  /** @param {string} code */
  speak(code) {
    this.language = code;
    this.show();
  }

  /** @param {number} at @param {string} written */
  open(at, written) {
    [this.at, this.written] = [at, written];
    this.show();
  }

  // What the picture would tell its page.  Up to the token that the reader wrote the tokens are those of the run.
  /** @param {Record<string, any>} asked */
  press({ does, row, token }) {
    if (!this.saved) return;
    const { page } = this.saved.languages[this.language];
    if (does === "own") return void this.open(this.at, "");
    const wanted = `${row}/${token}`;
    const own = !this.written || row <= parseInt(this.written, 10);
    if (does === "write" && own && wanted in this.saved.runs[this.at].pictures) return void this.open(this.at, wanted);
    this.said.textContent = page.beyond;
  }

  close() {
    this.picture.close();
    this.root.remove();
  }
}

/** @param {string} packed @returns {Promise<Saved>} */
async function unpack(packed) {
  const stream = new Blob([bytesOf(packed)]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Response(stream).json();
}

/** @param {string} text @param {boolean} chosen @param {() => void} press */
function choice(text, chosen, press) {
  const button = element("button", "", visible(text));
  button.type = "button";
  button.setAttribute("aria-pressed", String(chosen));
  button.onclick = press;
  return button;
}

/** @param {Component<Sent>} component */
export default function saved_runs(component) {
  return present(SavedRuns, component);
}
