// The player goes from step to step. Steps of the same moment come one after the other; between two
// moments the time of the simulation passes, slowly.

import { still } from '/lab.js';

const DWELL_MS = 1500;  // on the first step of a moment
const MORE_MS = 900;    // on each further one, but no more than
const MOMENT_MS = 6000; // for all of them
const PER_UNIT_MS = 6;  // of the axis, and no more between two moments than
const TRAVEL_MS = 2000;

export class Player {
  // changed(k, x, moving) is called for each picture: the number of the step, and how far the diagram has come.
  // stopped() is called when the end is reached.
  constructor(changed, stopped) {
    this.changed = changed;
    this.stopped = stopped;
    this.speed = 1;
    this.frame = 0;
  }

  get playing() { return this.frame !== 0; }

  // load takes the steps of a view.
  load(view) {
    this.pause();
    this.steps = view.steps;
    this.k = 0;
    this.begins = view.steps.map((step) => view.axis.x(step.at_ns));
    this.end = view.axis.end;
  }

  // go shows a step, and nothing moves. With the last one all arrives that is still on its way.
  go(k) {
    this.pause();
    this.k = Math.max(0, Math.min(this.steps.length - 1, k));
    this.changed(this.k, this.k === this.steps.length - 1 ? this.end : this.begins[this.k], false);
  }

  play() {
    if (this.playing) return;
    if (this.k >= this.steps.length - 1) this.k = 0;
    this.began = performance.now();
    this.changed(this.k, this.begins[this.k], false);
    this.frame = requestAnimationFrame((now) => this.tick(now));
  }

  pause() {
    cancelAnimationFrame(this.frame);
    this.frame = 0;
  }

  // dwell is for how long a step is shown.
  dwell() {
    const { at_ns } = this.steps[this.k];
    const same = this.steps.filter((step) => step.at_ns === at_ns).length;
    const first = this.k === 0 || this.steps[this.k - 1].at_ns !== at_ns;
    return first ? DWELL_MS : Math.min(MORE_MS, MOMENT_MS / same);
  }

  tick(now) {
    const from = this.begins[this.k], until = this.begins[this.k + 1] ?? this.end;
    const travel = still.matches ? 0 : Math.min(TRAVEL_MS, PER_UNIT_MS * (until - from));
    const passed = (now - this.began) * this.speed - this.dwell();
    this.frame = requestAnimationFrame((later) => this.tick(later));
    if (passed < 0) return;
    if (passed < travel) {
      this.changed(this.k, from + (until - from) * passed / travel, true);
    } else if (this.k + 1 === this.steps.length) {
      this.pause();
      this.changed(this.k, this.end, false);
      this.stopped();
    } else {
      this.k++;
      this.began = now;
      this.changed(this.k, this.begins[this.k], false);
    }
  }
}
