// @ts-check
// Sentences with values in them, and tokens as people can see them.

// Puts values into the {places} of a sentence. One pass: a token that reads "{key}" stays as it is.
/** @param {string} sentence @param {Record<string, unknown>} values */
export function fill(sentence, values) {
  return sentence.replace(/\{(\w+)\}/g, (place, name) => (name in values ? String(values[name]) : place));
}

// A token on one line, with a sign for what would not be seen.
/** @param {string} token */
export function visible(token) {
  const line = token.replace(/\r?\n|\r/g, "↵").replace(/\t/g, "⇥");
  return line.trim() === "" ? "␣".repeat(Math.max(1, Math.min(line.length, 3))) : line;
}
