// @ts-check
// Numbers as they are read from what Python sent, kept within their axes, and written.

/** @import { NumberColumn, SentColumn } from "./types.d.ts" */

// The place on an axis of `count` that a wish means: what comes from a link or from an older text may not exist.
/** @param {unknown} wish @param {number} count */
export function within(wish, count) {
  return Math.max(0, Math.min(count - 1, Math.trunc(Number(wish)) || 0));
}

// A number with a true minus sign, and no minus before a zero.
/** @param {number} value @param {number} digits */
export function signed(value, digits) {
  const text = value.toFixed(digits);
  return Number(text) === 0 ? text.replace("-", "") : text.replace("-", "−");
}

/** @type {Record<string, new (buffer: ArrayBuffer) => NumberColumn>} */
const TYPES = { uint8: Uint8Array, uint16: Uint16Array, uint32: Uint32Array, float32: Float32Array };

// A column of numbers: an Arrow table from Streamlit, or base64 text and the name of its type from a file.
/** @template {NumberColumn} T @param {SentColumn} value @param {string} [type] @returns {T | null} */
export function readColumn(value, type) {
  if (value === undefined || value === null) return null;
  if (typeof value !== "string") return /** @type {T} */ (value.getChildAt(0).toArray());
  return /** @type {T} */ (new TYPES[type ?? ""](bytesOf(value).buffer));
}

// What base64 stands for.
/** @param {string} text */
export function bytesOf(text) {
  return Uint8Array.from(atob(text), (one) => one.charCodeAt(0));
}
