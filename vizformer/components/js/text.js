// @ts-check
// Sentences with values in them, and tokens as people can see them.

// Puts values into the {places} of a sentence. One pass: a token that reads "{key}" stays as it is.
/** @param {string} sentence @param {Record<string, unknown>} values */
export function fill(sentence, values) {
  return sentence.replace(/\{(\w+)\}/g, (place, name) => (name in values ? String(values[name]) : place));
}

// Writes a sentence of ours; "[term](#term-key)" in it is a link, of which a page that has terms says what it means.
/** @param {HTMLElement} place @param {string} sentence */
export function writeWithTerms(place, sentence) {
  const parts = sentence.split(/\[([^[\]]+)\]\((#term-[\w-]+)\)/);
  place.replaceChildren(parts[0]);
  for (let at = 1; at < parts.length; at += 3) {
    const link = document.createElement("a");
    link.href = parts[at + 1];
    link.textContent = parts[at];
    place.append(link, parts[at + 2]);
  }
}

// Control characters, and those that turn the direction of all that follows them.
const UNSEEN = /[\p{Cc}\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/gu;

// The bytes of a character, as vocabularies show what is none: ⟨E2 80 AE⟩.
/** @param {string} character */
function hexadecimal(character) {
  const bytes = Array.from(new TextEncoder().encode(character), (byte) => byte.toString(16).toUpperCase().padStart(2, "0"));
  return `⟨${bytes.join(" ")}⟩`;
}

// A token on one line, with a sign for what would not be seen, or would turn the sentence around it.
/** @param {string} token */
export function visible(token) {
  const line = token.replace(/\r?\n|\r/g, "↵").replace(/\t/g, "⇥").replace(UNSEEN, hexadecimal);
  return line.trim() === "" ? "␣".repeat(Math.max(1, Math.min(line.length, 3))) : line;
}
