// What the picture of the whole model is drawn from. Read by the type checker only.

import type { Sent, SentColumn, Words } from "./types.d.ts";

interface SentMaps {
  kind: "encoder" | "decoder" | "cross";
  layer: number;
  heads: number[];
  n_heads: number;
  scale: number;
  plain: boolean;
  /** Of each head: the key on which it rests (-1: each token on itself), and that key's share; null where it does not. */
  rests: ([number, number] | null)[];
}

/** The heads of one layer, with what they are read from. */
export interface PictureMaps extends SentMaps {
  /** Of the stack of the queries, in `lanes`. */
  lane: number;
  queries: string[];
  keys: string[];
  queryGlosses: string[];
  keyGlosses: string[];
  /** Queries that the whole text has. */
  queryCount: number;
  address: string;
  weightAt(head: number, query: number, key: number): number;
  scoreAt(head: number, query: number, key: number): number;
  totalAt(head: number, query: number): number;
  reasonAt(query: number, key: number): number;
}

/** Which box is meant: its lane and, in a layer, the attention that it follows, or whether it is the last one. */
export interface BoxOf {
  lane: number;
  kind?: SentMaps["kind"];
  layer?: number;
  last?: boolean;
}

/** A box, and the row whose numbers it shows: that of `token`. */
export interface BoxPlace {
  box: string;
  layer: number;
  row: number;
  token: string;
  address: string;
  title: string;
  about: string;
}

/** See `analysis.attribution.box_numbers`. */
export interface BoxVector {
  name: string;
  count: number;
  cells: number[];
  /** Which of its numbers the first of the cells is. */
  first: number;
  written: string[];
  terms: number;
  names: string[];
}

export interface SentLane {
  stack: "encoder" | "decoder";
  tokens: string[];
  /** What each token means; empty where nothing is said. */
  glosses: string[];
  count: number;
  /** In a saved page: of how many queries the answers hold the numbers, where that is not all. */
  kept?: number;
  layers: number;
  cells: number;
  added: boolean;
  maps: SentMaps[];
}

/** A run in a page without a server, see saved_runs.py. */
export interface SavedRun {
  name: string;
  text: string;
  /** The run itself is "", and "row/token" what it becomes when that token is written after that row. */
  pictures: Record<string, SentPicture>;
  /** By address what a server would answer, as base64, or as it is where it is JSON. */
  answers: Record<string, string | object>;
}

/** What a saved page says in one language: of each run the positions and what tokens mean. */
export interface SavedWords {
  name: string;
  page: Words;
  picture: Words;
  runs: { positions: string; glosses: Record<string, string> }[];
}

/** See whole_model_picture.py. A candidate: its text, id, probability, and whether it is a special token. */
export interface SentPicture extends Sent<null> {
  lanes: SentLane[];
  candidates: [string, number, number, boolean][][];
  written: string[];
  /** Whether the model chose what is written. */
  own: boolean;
  reports: boolean;
  look: [number, number, number, number];
  /** That of `look`, where the others are not sent. */
  score: number;
  positions: string;
  norm: string;
  norm_order: string;
  addresses?: Record<string, string>;
  made: string;
  strips: SentColumn;
  weights: SentColumn;
  scores: SentColumn;
  reasons: SentColumn;
  totals: SentColumn;
}
