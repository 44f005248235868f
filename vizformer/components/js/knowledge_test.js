// @ts-check
// The two tests of the path: the same concepts before it and after it, in two forms, one of which is drawn by lot to come
// first.  Nothing is sent: answers stay in this browser, and the reader may keep them as a file.

import { element } from "./dom.js";
import { plainButton } from "./station_questions.js";
import { fill } from "./text.js";

/** @import { Words } from "./types.d.ts" */
/** @import { KeptTests, TestQuestion, When } from "./station_types.d.ts" */

const OTHER = /** @type {const} */ ({ a: "b", b: "a" });

export class KnowledgeTest {
  /** @param {HTMLElement} box @param {() => void} changed */
  constructor(box, changed) {
    this.box = box;
    this.changed = changed;
  }

  /**
   * @param {When} when
   * @param {KeptTests} kept
   * @param {Record<"a" | "b", TestQuestion[]>} forms
   * @param {Words} words
   */
  draw(when, kept, forms, words) {
    kept.first ??= Math.random() < 0.5 ? "a" : "b";
    const form = when === "before" ? kept.first : OTHER[kept.first];
    const questions = forms[form];
    const answers = kept[when];
    if (!answers) {
      const begin = plainButton("vf-stations-next", () => {
        kept[when] = [];
        this.changed();
      }, words.test_begin);
      const bar = element("div", "vf-bar vf-stations-bar");
      bar.append(begin);
      this.box.replaceChildren(element("p", "vf-stations-words", words[`test_${when}_about`]), bar);
    } else if (answers.length < questions.length) this.ask(questions, answers, words);
    else this.result(when, kept, forms, words);
  }

  /** @param {TestQuestion[]} questions @param {number[]} answers @param {Words} words */
  ask(questions, answers, words) {
    const { question, options } = questions[answers.length];
    const row = element("div", "vf-stations-options vf-stations-column");
    row.append(...[...options, words.test_unknown].map((option, index) => plainButton("vf-stations-option", () => {
      answers.push(index < options.length ? index : -1);
      this.changed();
    }, option)));
    const place = fill(words.test_place, { number: answers.length + 1, count: questions.length });
    this.box.replaceChildren(element("span", "vf-caption", place), element("p", "vf-stations-words", question), row);
    row.querySelector("button")?.focus({ preventScroll: true });
  }

  /**
   * @param {When} when
   * @param {KeptTests} kept
   * @param {Record<"a" | "b", TestQuestion[]>} forms
   * @param {Words} words
   */
  result(when, kept, forms, words) {
    const first = kept.first ?? "a";
    const marks = {
      before: marked(kept.before, forms[first]),
      after: marked(kept.after, forms[OTHER[first]]),
    };
    const [before, after] = [marks.before.filter(Boolean).length, marks.after.filter(Boolean).length];
    const count = forms.a.length;
    const said = when === "before"
      ? fill(words.test_before_result, { right: before, count })
      : fill(words.test_after_result, { right: after, count, before: marks.before.length === count ? before : "–" });
    const parts = [element("p", "vf-stations-words", said)];
    if (when === "after") parts.push(table(marks, forms[OTHER[first]], kept.after ?? [], words));
    const bar = element("div", "vf-bar vf-stations-bar");
    const file = { first, before: kept.before, after: kept.after, right: { before, after }, count };
    bar.append(plainButton("", () => save(JSON.stringify(file, null, 1)), words.test_keep));
    this.box.replaceChildren(...parts, bar);
  }
}

/** @param {number[] | undefined} answers @param {TestQuestion[]} questions */
function marked(answers, questions) {
  return (answers ?? []).map((answer, index) => answer === questions[index]?.right);
}

// Concept by concept: right or not before and after, and why, where it was wrong at last.
/** @param {Record<When, boolean[]>} marks @param {TestQuestion[]} questions @param {number[]} answers @param {Words} words */
function table(marks, questions, answers, words) {
  const made = element("table", "vf-stations-table");
  const head = element("tr");
  head.append(...[words.test_concept, words.test_was, words.test_is, words.test_why].map((name) => element("th", "", name)));
  const sign = (/** @type {boolean | undefined} */ right) => (right === undefined ? "–" : right ? "✓" : "✗");
  made.append(head, ...questions.map(({ concept, question, options, right, why }, index) => {
    const row = element("tr");
    const cells = [concept, sign(marks.before[index]), sign(marks.after[index])];
    const said = element("td");
    if (answers[index] !== right) said.append(element("div", "", question), element("b", "", options[right]), element("div", "", why));
    row.append(...cells.map((text) => element("td", "", text)), said);
    return row;
  }));
  return made;
}

/** @param {string} text */
function save(text) {
  const link = element("a");
  link.href = URL.createObjectURL(new Blob([text], { type: "application/json" }));
  link.download = "vizformer-tests.json";
  link.click();
  URL.revokeObjectURL(link.href);
}
