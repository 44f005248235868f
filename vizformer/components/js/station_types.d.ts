/** What the path of stations is told. */

import type { Sent, Words } from "./types.d.ts";

export interface ChipsPart { kind: "chips"; names: string[]; notes: string[]; lit: number[]; title: string }
export interface GridPart {
  kind: "grid";
  title: string;
  rows: string[];
  columns: string[];
  /** null where nothing may be seen. */
  cells: (number | null)[][];
  signed: boolean;
  written: boolean;
  texts: string[][];
  lit: number | null;
  notes: string[];
  small: boolean;
}
export interface BarsPart {
  kind: "bars";
  title: string;
  names: string[];
  values: number[];
  texts: string[];
  most: number;
  upright: boolean;
  lit: number | null;
}
export interface CurvePart {
  kind: "curve";
  title: string;
  x_name: string;
  y_name: string;
  x: number[];
  y: number[];
  points: [number, number, string][];
  lit: number | null;
}
export type Part = ChipsPart | GridPart | BarsPart | CurvePart;

/** A step, see stations.py: `frames` has one picture, or one for each tick of a dial. */
export interface StationStep {
  kind: "show" | "ask" | "turn";
  words: string;
  frames: Part[][];
  options?: { text: string; because: string }[];
  right?: number;
  /** The question in other words, for a later station. */
  again?: string;
  label?: string;
  ticks?: string[];
  at?: number;
}

/** A function that the reader builds herself. */
export interface ExerciseData { title: string; text: string; symbols: string; code: string }
export interface StationData {
  name: string;
  title: string;
  about: string;
  deeper: { title: string; minutes: number } | null;
  minutes: number;
  exercises: ExerciseData[];
  steps: StationStep[];
}
/** The model in one line, a ModelData as JSON; the station at hand, and whether what its boxes open is there. */
export interface SentModel extends Sent<null> { content: string; at: string; open: boolean }
export interface BoxData { title: string; station: string; lit_at: string[]; starts: string }
export interface ModelData { model: BoxData[]; words: Words }

export interface SentStations extends Sent<null> {
  /** A PathData as JSON. */
  content: string;
  at: string;
}

export interface PathData {
  stations: StationData[];
  text: string;
  /** ms after which what was answered rightly is asked again. */
  next_day: number;
  words: Words;
}

/** What was predicted at a station, when (ms), and whether it was asked again since. */
export interface Answer { choice: number; text: string; right: boolean; when: number; again: boolean }

/** What is kept in the browser: the answer to each question about a text, which stations were gone through, their second halves too. */
export interface Kept {
  answers: Record<string, Answer>;
  done: string[];
  deeper: string[];
  at: string;
}
