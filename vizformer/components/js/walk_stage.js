// @ts-check
// What the scenes of the walk are drawn with: letters, strips of numbers, bars, lines; and what a pointer finds there.

import { shorten } from "./canvas_text.js";
import { cssColour } from "./colours.js";
import { fill, visible } from "./text.js";

/** @import { Theme, Words } from "./types.d.ts" */
/** @import { WalkData } from "./walk_types.d.ts" */
/** @typedef {{ x: number, y: number, width: number, height: number, text: string }} Hit */

export const STAGE_HEIGHT = 340;

// How far something is that happens between two moments of a scene; slow at both ends.
/** @param {number} share @param {number} from @param {number} to */
export function during(share, from, to) {
  const part = Math.max(0, Math.min(1, (share - from) / (to - from)));
  return part * part * (3 - 2 * part);
}

/** @param {ArrayLike<number>[]} rows */
export function largest(...rows) {
  let most = 0;
  for (const row of rows) for (let i = 0; i < row.length; i++) most = Math.max(most, Math.abs(row[i]));
  return most || 1;
}

export class WalkStage {
  /** @type {Hit[]} */ hits = [];

  /**
   * @param {CanvasRenderingContext2D} context
   * @param {number} width
   * @param {Theme} theme
   * @param {WalkData} walk
   */
  constructor(context, width, theme, walk) {
    this.context = context;
    this.width = width;
    this.height = STAGE_HEIGHT;
    this.theme = theme;
    this.walk = walk;
    /** @type {Words} */ this.words = walk.words;
    this.rowTop = 26;
    this.rowHeight = Math.min(30, (this.height - this.rowTop) / walk.tokens.length);
    this.letters = Math.min(16, this.rowHeight * 0.72);
    this.setFont(this.letters);
    const texts = walk.tokens.map((token) => context.measureText(visible(token.text)).width);
    this.labelWidth = Math.min(Math.max(...texts) + 14, width * 0.3, 150);
    this.left = this.labelWidth + 12;
    this.narrow = width < 560;
  }

  /** @param {number} size @param {boolean} [strong] */
  setFont(size, strong) {
    this.context.font = `${strong ? "600 " : ""}${size}px ${this.theme.font}`;
  }

  // The middle of a token's row.
  /** @param {number} index */
  rowAt(index) {
    return this.rowTop + (index + 0.5) * this.rowHeight;
  }

  // Letters on one line, cut where there is no room.
  /**
   * @param {string} text
   * @param {number} x
   * @param {number} y
   * @param {{ size?: number, align?: CanvasTextAlign, colour?: string, alpha?: number, room?: number, strong?: boolean }} [how]
   */
  write(text, x, y, { size = 14, align = "left", colour = this.theme.text, alpha = 1, room = this.width, strong } = {}) {
    const { context } = this;
    if (alpha <= 0) return;
    this.setFont(size, strong);
    context.globalAlpha = alpha;
    context.fillStyle = colour;
    context.textAlign = align;
    context.textBaseline = "middle";
    context.fillText(shorten(context, visible(text), room), x, y);
    context.globalAlpha = 1;
  }

  // A token in its box; the one that is followed stands out by colour and frame.
  /**
   * @param {string} text
   * @param {number} x
   * @param {number} y
   * @param {{ followed?: boolean, special?: boolean, alpha?: number, width?: number }} [how]
   */
  token(text, x, y, { followed = false, special = false, alpha = 1, width = this.labelWidth } = {}) {
    const { context, theme } = this;
    if (alpha <= 0) return;
    const height = Math.min(26, this.rowHeight - 3);
    context.globalAlpha = alpha;
    context.beginPath();
    context.roundRect(x + 0.5, y - height / 2, width - 1, height, 5);
    context.fillStyle = followed ? theme.accent : theme.background;
    context.fill();
    context.setLineDash(special ? [3, 3] : []);
    context.strokeStyle = followed ? theme.accent : theme.muted;
    context.lineWidth = 1;
    context.stroke();
    context.setLineDash([]);
    context.globalAlpha = 1;
    const colour = followed ? theme.onAccent : theme.text;
    this.write(text, x + 7, y, { size: this.letters, colour, alpha, room: width - 12, strong: followed });
  }

  // The tokens of the text, one below the other.
  /** @param {number} [alpha] */
  labels(alpha = 1) {
    const { tokens, followed } = this.walk;
    tokens.forEach(({ text, special }, i) => this.token(text, 0, this.rowAt(i), { followed: i === followed, special, alpha }));
  }

  // Numbers as colours: blue above 0, orange below it. `shown` of them, counted from the left, are there already.
  /**
   * @param {ArrayLike<number>} cells
   * @param {{ x: number, y: number, width: number, height: number, range: number, name: string, shown?: number, alpha?: number }} how
   */
  strip(cells, { x, y, width, height, range, name, shown = 1, alpha = 1 }) {
    const { context, theme } = this;
    const [count, pitch, top] = [Math.round(cells.length * shown), width / cells.length, y - height / 2];
    context.globalAlpha = alpha;
    for (let i = 0; i < count; i++) {
      const level = Math.max(-1, Math.min(1, cells[i] / range));
      context.fillStyle = cssColour(theme.scores[127 + Math.round(127 * level)]);
      const from = Math.round(x + i * pitch);
      context.fillRect(from, top, Math.max(1, Math.round(x + (i + 1) * pitch) - from - (pitch > 5 ? 1 : 0)), height);
      if (alpha === 1) {
        const text = this.fill("cell", { row: name, index: i, value: number(cells[i]) });
        this.hits.push({ x: from, y: top, width: pitch, height, text });
      }
    }
    context.globalAlpha = 1;
  }

  // A bar from the left, and what it says at its end.
  /** @param {number} x @param {number} y @param {number} length @param {number} height @param {string} colour */
  bar(x, y, length, height, colour) {
    this.context.fillStyle = colour;
    this.context.beginPath();
    this.context.roundRect(x, y - height / 2, Math.max(1, length), height, [0, 3, 3, 0]);
    this.context.fill();
  }

  // A line that comes from the left and has come as far as `shown`.
  /**
   * @param {number} x0
   * @param {number} y0
   * @param {number} x1
   * @param {number} y1
   * @param {{ colour: string, thickness: number, alpha: number, shown?: number }} how
   */
  line(x0, y0, x1, y1, { colour, thickness, alpha, shown = 1 }) {
    const { context } = this;
    if (shown <= 0 || alpha <= 0) return;
    context.save();
    context.beginPath();
    context.rect(x0, 0, (x1 - x0) * shown, this.height);
    context.clip();
    context.globalAlpha = alpha;
    context.strokeStyle = colour;
    context.lineWidth = thickness;
    context.beginPath();
    context.moveTo(x0, y0);
    context.bezierCurveTo((x0 + x1) / 2, y0, (x0 + x1) / 2, y1, x1, y1);
    context.stroke();
    context.restore();
  }

  /** @param {string} name @param {Record<string, unknown>} values */
  fill(name, values) {
    return fill(this.words[name], values);
  }
}

// A number of any size in a few digits, with a true minus sign.
/** @param {number} value */
export function number(value) {
  const size = Math.abs(value);
  const digits = size >= 100 ? 0 : size >= 10 ? 1 : size >= 0.1 || size === 0 ? 2 : 4;
  return value.toFixed(digits).replace("-", "−");
}

/** @param {number} share */
export function percent(share) {
  return share > 0 && share < 0.0005 ? "<0.1%" : `${(100 * share).toFixed(1)}%`;
}
