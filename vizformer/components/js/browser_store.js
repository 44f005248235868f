// @ts-check
// What this browser keeps, each under its name as JSON, in localStorage.

/** @param {string} name @returns {Record<string, any>} empty where nothing is kept, or something else stands there */
export function readStore(name) {
  try {
    const kept = JSON.parse(localStorage.getItem(name) ?? "{}");
    return typeof kept === "object" && kept ? kept : {};
  } catch {
    return {};
  }
}

/** @param {string} name @param {object} kept */
export function writeStore(name, kept) {
  try {
    localStorage.setItem(name, JSON.stringify(kept));
  } catch {
    // it keeps nothing (a private window): the page still remembers
  }
}
