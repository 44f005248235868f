// @ts-check
// A safetensors file, as the server answers with: eight bytes with the length of its table of contents, that table in
// JSON, and the numbers of one column after the other.

/** @import { NumberColumn } from "./types.d.ts" */

/** @type {Record<string, new (buffer: ArrayBuffer) => NumberColumn>} */
const KINDS = { U8: Uint8Array, U16: Uint16Array, U32: Uint32Array, F32: Float32Array };

// Its columns by name.
/** @param {ArrayBuffer} file @returns {Record<string, NumberColumn>} */
export function readTensors(file) {
  const start = 8 + Number(new DataView(file).getBigUint64(0, true));
  /** @type {Record<string, { dtype: string, data_offsets: [number, number] }>} */
  const contents = JSON.parse(new TextDecoder().decode(new Uint8Array(file, 8, start - 8)));
  const columns = Object.entries(contents).filter(([name]) => name !== "__metadata__");
  return Object.fromEntries(columns.map(([name, { dtype, data_offsets: [from, to] }]) => (
    [name, new KINDS[dtype](file.slice(start + from, start + to))]
  )));
}
