// What travels between Python and the browser, and between the files here. Read by the type checker only.

/** The texts of a component, in the reader's language. */
export type Words = Record<string, string>;

export type NumberColumn = Uint8Array | Uint16Array | Uint32Array | Float32Array;

/** A column of numbers as it arrives: an Arrow table from Streamlit, or base64 text in a file. */
export type SentColumn = string | { getChildAt(index: number): { toArray(): NumberColumn } } | null | undefined;

/** What Python sends to every component, see _mount.py. */
export interface Sent<Choice> {
  key?: string;
  version: number;
  selected: Choice | null;
  words: Words;
  /** Names of the columns' types, and whether this is a file without a server. */
  types?: Record<string, string>;
  static?: boolean;
}

/** What Streamlit, or the page of a file, calls a component with. */
export interface Component<Data> {
  data: Data;
  parentElement: HTMLElement;
  setStateValue?: (name: string, value: object) => void;
}

/** What anywidget hands over: the traits of the Python side, see notebook.py. */
export interface NotebookModel {
  get(name: string): any;
  set(name: string, value: unknown): void;
  save_changes(): void;
  on(event: string, listener: () => void): void;
  off(event: string, listener: () => void): void;
}

export interface View<Data> {
  update(component: Component<Data>): void;
  close(): void;
}

export type Held = "all" | "layer" | "head";

/** A head that has a habit more than any other, see `strip` in _mount.py. */
export interface StripHead {
  layer: number;
  head: number;
  target: string;
  mean: number;
  low: number;
  high: number;
}

export interface Strip {
  texts: number;
  resting: number;
  heads: StripHead[];
  waits?: boolean; // whether more is measured, for which room is kept
}

/** The heads of one kind of attention, see payload.py. */
export interface SentHeads<Choice> extends Sent<Choice> {
  shape: [number, number, number, number];
  thumb_shape: [number, number];
  held: Held;
  chosen: [number, number] | null;
  layer_labels: (number | string)[];
  /** Query and key of the text that the first row and column are, where this is a part of it. */
  first?: [number, number];
  query_tokens: string[];
  key_tokens: string[];
  height: number | null;
  /** Of each token the index of its word, where the map is to be one of words. */
  query_words?: (number | null)[] | null;
  key_words?: (number | null)[] | null;
  weights?: SentColumn;
  scores?: SentColumn;
  reasons?: SentColumn;
  /** Where the browser asks for heads and small maps, and the measures that come with these. */
  address?: string | null;
  measures?: Measure[];
  /** In their place: what the chosen head is computed from. */
  d_head?: number | null;
  q?: SentColumn;
  k?: SentColumn;
  by_distance?: SentColumn;
  run_starts?: SentColumn;
  run_reasons?: SentColumn;
  thumbs?: SentColumn;
  thumb_reasons?: SentColumn;
  measure_entropy?: SentColumn;
  measure_distance?: SentColumn;
  measure_first?: SentColumn;
  measure_last?: SentColumn;
  measure_previous?: SentColumn;
  measure_own?: SentColumn;
  measure_next?: SentColumn;
  strip?: Strip | null;
}

/** What the small maps can be sorted by. */
export type Order = "layer" | "habit" | "entropy" | "distance" | "first";
export type Habit = "previous" | "own" | "next" | "other" | "rest";
export type Measure = "entropy" | "distance" | "first" | "last" | "previous" | "own" | "next";

/** The same, unpacked. `one` stands for a weight of 1. */
export interface HeadModel {
  layers: number;
  heads: number;
  queries: number;
  keys: number;
  thumbRows: number;
  thumbColumns: number;
  /** The numbers in the text of the first query and key. */
  first: { query: number, key: number };
  held: Held;
  chosen: [number, number];
  weights: Float32Array | Uint16Array;
  scores: Float32Array | null;
  reasons: Uint8Array | null;
  thumbs: Uint8Array | null;
  thumbReasons: Uint8Array | null;
  /** What each head can be sorted by [layers, heads]; null where it was not sent. */
  measures: Partial<Record<Measure, Float32Array | null>>;
  one: number;
  /** The head that is computed here from its queries and keys. */
  computed: ReturnType<typeof import("./computed_head.js").readOperands>;
  /** Whether heads are asked for, and of which layers the small maps have come (1); null where all came at once. */
  addressed: boolean;
  layersHere: Uint8Array | null;
}

/** What of a model belongs to the head that is here. */
export type HeadNumbers = Pick<HeadModel, "computed" | "weights" | "scores" | "reasons" | "one">;

export type Theme = ReturnType<typeof import("./colours.js").readTheme>;

export type WeightsOrScores = "weights" | "scores";

/** Where the colours of weights end: at 1, or at the largest of the map. */
export type Colours = "absolute" | "own";

/** A cell of a map; key is null for the whole row. */
export interface Cell {
  query: number;
  key: number | null;
}

/** What the large map shows. */
export interface MapScene {
  model: HeadModel;
  theme: Theme;
  /** A pixel for each pool of cells, the strongest of them (for 1: each cell); null while the numbers are not here. */
  image: import("./head_image.js").HeadImage["of"] | null;
  /** Cells per side of the largest pool that can be painted. */
  mostPooled: number;
  blurred: HTMLCanvasElement | null;
  view: WeightsOrScores;
  range: number;
  layer: number;
  head: number;
  selected: Cell;
  queryTokens: string[];
  keyTokens: string[];
  /** A key for each query that gets a ring, and cells [query, key] with a square around them. */
  marks?: { rings: number[] | null, squares: [number, number][] };
}

/** Where things go in the large map, in px. */
export interface MapLayout {
  left: number;
  top: number;
  angle: number;
  keyRoom: number;
  font: number;
  keyScale: number;
  cellWidth: number;
  cellHeight: number;
  plotWidth: number;
  plotHeight: number;
  width: number;
  height: number;
  zoomMost: number;
}

export type Side = "query" | "key";

/** A token on one side of the lines. */
export interface Spot {
  side: Side;
  index: number;
}

export type LineLayout = ReturnType<typeof import("./line_layout.js").layoutLines>;

/** Lines of about the same strength of one head: [query * keys + key, ...]. */
export interface LineGroup {
  head: number;
  slot: number;
  weight: number;
  pairs: number[];
}

export interface FoundLines {
  shown: number;
  total: number;
  from: number;
  cut: boolean;
  largest: number;
  groups: LineGroup[];
}

/** What the line view shows. */
export interface LineScene {
  model: HeadModel;
  layer: number;
  heads: number[];
  threshold: number;
  theme: Theme;
  words: Words;
  tokens: Record<Side, string[]>;
}

/** What is selected in the line view; heads: null for all. */
export interface LineChoice {
  layer: number;
  heads: number[] | null;
  pinned: Spot | null;
  threshold: number;
}

/** A sentence, and the numbers in it. */
export interface Description {
  text: string;
  query?: number;
  key?: number;
  value?: number;
}

/** One candidate of a step of the generation. */
export interface Candidate {
  id: number;
  text: string;
  before: number;
  after: number;
  cut: number;
}

export interface Step {
  candidates: Candidate[];
  chosen: number;
  byHand: boolean;
  kept: number;
  restCount: number;
  restBefore: number;
  restAfter: number;
}

export type DecoderKind = "decoder" | "cross";

export interface PlayerChoice {
  step: number;
  kind: DecoderKind;
  layer: number;
  head: number;
  branch: string;
}

/** A generated text, see player.py. Its columns are called before, after, cut, decoder_weights, ... */
export interface Generation extends Sent<PlayerChoice> {
  tokens: { text: string; special: boolean }[];
  start: number;
  source: string[];
  vocab_size: number;
  candidates: { count: number; ids: number[]; names: Record<number, string> };
  steps: { ids: number[]; kept: number[]; by_hand: boolean[] };
  end: string;
  kinds: Record<DecoderKind, { shape: [number, number, number, number]; held: Held; chosen: [number, number] | null }>;
  taken: { step: number; id: number }[];
  branch: string;
  made: string;
  [column: string]: unknown;
}
