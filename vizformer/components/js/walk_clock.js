// @ts-check
// The time of the walk: which scene it is in and how far, while it plays, is stepped through or dragged.

/** @import { WalkScene } from "./walk_types.d.ts" */

const FRAME = 30;  // ms between two pictures: enough for what moves here
const LONGEST = 250;  // ms that a picture may take before the time waits for it
const BUILT = 0.72;  // of a scene's time: then its picture is complete, and stays to be read

export class WalkClock {
  /** @type {WalkScene[]} */ scenes = [];
  /** @type {number | undefined} */ frame;
  playing = false;
  whole = true;  // the scene is shown as it is at its end, though its time has not come
  time = 0;  // seconds
  last = 0;

  /** @param {() => void} changed */
  constructor(changed) {
    this.changed = changed;
    this.calm = matchMedia("(prefers-reduced-motion: reduce)");
  }

  get total() {
    return this.scenes.reduce((sum, { seconds }) => sum + seconds, 0);
  }

  get ended() {
    return this.time >= this.total;
  }

  // When a scene begins, in seconds.
  /** @param {number} scene */
  start(scene) {
    return this.scenes.slice(0, scene).reduce((sum, { seconds }) => sum + seconds, 0);
  }

  get scene() {
    let at = 0;
    while (at + 1 < this.scenes.length && this.start(at + 1) <= this.time) at += 1;
    return at;
  }

  // How much of the scene's picture is there, from 0 to 1.  Without motion, always all of it.
  get share() {
    if (this.calm.matches || (this.whole && !this.playing) || this.ended) return 1;
    const { scene } = this;
    return Math.min(1, (this.time - this.start(scene)) / (BUILT * this.scenes[scene].seconds));
  }

  // From where the picture of the first scene is complete: the film begins with something to see.
  begin() {
    this.time = BUILT * this.scenes[0].seconds;
    this.play();
  }

  play() {
    if (this.ended) this.time = 0;
    this.playing = true;
    this.last = performance.now();
    const tick = (/** @type {number} */ now) => {
      if (!this.playing) return;
      this.frame = requestAnimationFrame(tick);
      if (now - this.last < FRAME) return;
      this.time = Math.min(this.total, this.time + Math.min(LONGEST, now - this.last) / 1000);
      this.last = now;
      if (this.ended) this.pause();
      this.changed();
    };
    this.frame = requestAnimationFrame(tick);
    this.changed();
  }

  pause() {
    if (this.frame !== undefined) cancelAnimationFrame(this.frame);
    if (this.playing) this.whole = false;
    this.playing = false;
    this.changed();
  }

  // To a scene, which is shown whole; past the last one is the end.
  /** @param {number} scene */
  step(scene) {
    this.playing = false;
    this.whole = true;
    this.time = scene >= this.scenes.length ? this.total : this.start(Math.max(0, scene));
    this.changed();
  }

  // To a moment, as the timeline is dragged.  It goes on playing if it did.
  /** @param {number} time */
  drag(time) {
    this.whole = false;
    this.time = Math.max(0, Math.min(this.total, time));
    this.changed();
  }
}
