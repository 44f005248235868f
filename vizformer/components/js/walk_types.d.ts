/** What the walk through a model on the start page is told. */

import type { Sent, SentColumn } from "./types.d.ts";

export interface WalkScene {
  kind: string;
  title: string;
  caption: string;
  link: string;
  seconds: number;
}

export interface WalkLines {
  queries: string[];
  keys: string[];
  query: number;
  key: number;
  elsewhere: number[];
}

export interface WalkStrips {
  names: string[];
  lengths: number[];
  cosines: number[];
}

export interface WalkCandidates {
  names: string[];
  probabilities: number[];
  chosen: number | null;
}

/** What Python sends to the walk, see walkthrough.py. */
export interface SentWalk extends Sent<null> {
  scenes: WalkScene[];
  characters: string[];
  tokens: { text: string; id: number; start: number; end: number; special: boolean }[];
  followed: number;
  cells: number;
  dials: number;
  note: string;
  sublayers: WalkStrips;
  layers: WalkStrips;
  attention: WalkLines;
  cross: WalkLines | null;
  next: WalkCandidates | null;
  written: WalkCandidates | null;
  made: string;
  embedded: SentColumn;
  added?: SentColumn;
  entering: SentColumn;
  angles?: SentColumn;
  bias?: SentColumn;
  sublayer_cells: SentColumn;
  layer_cells: SentColumn;
  attention_weights: SentColumn;
  attention_blocked: SentColumn;
  cross_weights?: SentColumn;
  cross_blocked?: SentColumn;
}

/** The same, unpacked: rows of numbers one after the other. */
export type WalkData = Omit<SentWalk, keyof WalkNumbers> & WalkNumbers;

export interface WalkNumbers {
  embedded: Float32Array;
  added: Float32Array | null;
  entering: Float32Array;
  angles: Float32Array | null;
  bias: Float32Array | null;
  sublayer_cells: Float32Array;
  layer_cells: Float32Array;
  attention_weights: Float32Array;
  attention_blocked: Uint8Array;
  cross_weights: Float32Array;
  cross_blocked: Uint8Array;
}
