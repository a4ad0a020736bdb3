// The space-time diagram: a lane for each board, time to the right, and a slanted line for each copy
// of a message, from when it was sent to when it arrived.

import { duration, h, light, patternOfRole, setAttribute, setText, showLight } from '/topdog.js';
import { Room, cross, still, svg as s } from '/lab.js';
import { classOf, roleOf, since, statesAt } from '/model.js';

const TOP = 40;           // of the axis, above the first lane
const SHARE = 0.6;        // of the height of the window, for all lanes
const RIGHT = 105;        // behind the last time, for words
const LEAST_LABEL = 52;   // between two times of the axis
const USUAL_FLIGHT = 200_000; // ns; how long a lost message would have taken

const FATES = { lost: 'lost', cut_off: 'cut off', nobody_there: 'nobody there', waits: 'waits' };

// Diagram draws a view into the elements of the page, and then again and again how far it has come.
export class Diagram {
  constructor(names, scroll) {
    this.names = names;
    this.scroll = scroll;
  }

  // show draws a view, of which nothing has happened yet.
  show(view) {
    this.view = view;
    const { run, axis } = view;
    const n = run.lanes.length;
    const scale = parseFloat(getComputedStyle(document.documentElement).fontSize) / 16;
    this.row = Math.max(20, Math.min(66, (innerHeight * SHARE / scale - TOP) / n));
    this.y = new Map(run.lanes.map((lane, i) => [lane.board, TOP + this.row * (i + 0.5)]));
    this.height = TOP + this.row * n + 8;
    this.scale = scale;
    // The axis may be a little shorter or longer than it is, so that all of it is seen.
    this.stretch = Math.max(0.75, Math.min(1.6, (this.scroll.clientWidth / scale - RIGHT) / axis.end));
    this.x = (ns) => axis.x(ns) * this.stretch;
    const width = axis.end * this.stretch + RIGHT;
    this.clip = s('rect', { x: 0, y: 0, width: 0, height: this.height });
    this.playhead = s('line', { class: 'playhead', y1: TOP - 8, y2: this.height });
    this.room = new Room(17); // for labels
    this.parts = view.steps.map((step) => this.part(step));
    const svg = s('svg', {
      viewBox: `0 0 ${width} ${this.height}`, width: width * scale, height: this.height * scale,
      role: 'img', 'aria-label': `Messages of ${n} boards; the steps below say the same in words`,
      class: this.row < 40 ? 'crowded' : '',
    },
    s('defs', {}, s('clipPath', { id: 'past' }, this.clip)),
    this.drawAxis(),
    s('g', { class: 'quiet' }, ...run.lanes.map((lane) => s('line', { x1: 0, x2: width, y1: this.y.get(lane.board), y2: this.y.get(lane.board) }))),
    s('g', { class: 'bands', 'clip-path': 'url(#past)' }, ...this.bands()),
    this.playhead,
    ...this.parts.map((part) => part.group));
    this.scroll.replaceChildren(svg);
    this.scroll.scrollLeft = 0;
    this.drawNames();
    this.drawn = -1;
  }

  drawNames() {
    this.names.style.setProperty('--row', `${this.row * this.scale}px`);
    this.names.style.setProperty('--top', `${TOP * this.scale}px`);
    this.rows = this.view.run.lanes.map((lane) => {
      const row = { board: lane.board, light: light(), role: h('span', { class: 'role soft' }) };
      setAttribute(row.light, 'aria-hidden', 'true');
      row.element = h('li', null, row.light, h('b', null, h('span', { class: 'for-reader' }, 'Board '), lane.board), row.role);
      return row;
    });
    this.names.replaceChildren(...this.rows.map((row) => row.element));
  }

  // drawAxis draws the times, and how long it takes where nothing is drawn.
  drawAxis() {
    const { run, axis } = this.view;
    const group = s('g', { class: 'axis' });
    let free = -Infinity;
    axis.times.forEach((ns, i) => {
      const x = this.x(ns);
      group.append(s('line', { class: ns === run.failed_ns ? 'failed' : 'tick', x1: x, x2: x, y1: TOP - 8, y2: this.height }));
      if (x >= free || ns === run.failed_ns) {
        group.append(s('text', { x, y: TOP - 13, class: 'time' }, since(run, ns)));
        free = x + LEAST_LABEL;
      }
      const gap = i > 0 ? ns - axis.times[i - 1] : 0;
      if (gap > 2e6) {
        const left = this.x(axis.times[i - 1]);
        group.append(s('text', { x: (left + x) / 2, y: 11, class: 'gap' }, `${duration(gap / 1e6)} pass`));
        group.append(s('path', { class: 'brace', d: `M${left + 3} 20v-4H${x - 3}v4` }));
      }
    });
    return group;
  }

  // bands are the lanes, whose look changes with the role of the board.
  bands() {
    const { run, axis } = this.view;
    const open = new Map(run.lanes.map((lane) => [lane.board, { from: run.begin_ns, look: lookOf(lane.state) }]));
    const all = [];
    const close = (board, until) => {
      const band = open.get(board);
      const y = this.y.get(board);
      if (until > band.from) all.push(s('line', { class: `band ${band.look}`, x1: this.x(band.from), x2: this.x(until), y1: y, y2: y }));
    };
    for (const step of run.steps) {
      if (!step.state || lookOf(step.state) === open.get(step.board).look) continue;
      close(step.board, step.at_ns);
      open.set(step.board, { from: step.at_ns, look: lookOf(step.state) });
    }
    for (const lane of run.lanes) close(lane.board, run.end_ns + 1);
    return all;
  }

  // part draws one step: its arrows, or a mark on its lane.
  part(step) {
    const part = { step, group: s('g', { class: 'step', hidden: '' }), flights: [], until: 0, arrived: false };
    if (step.kind === 'message') {
      this.message(part);
    } else if (step.board) {
      for (const board of step.boards) this.mark(part, board);
    } else {
      const x = this.x(step.at_ns);
      part.group.append(s('line', { class: 'lan', x1: x, x2: x, y1: TOP, y2: this.height }), s('text', { class: 'label fault', x: x + 6, y: TOP + 8 }, step.text.replace(/\.$/, '')));
    }
    return part;
  }

  mark(part, board) {
    const { step } = part;
    const x = this.x(step.at_ns), y = this.y.get(board);
    const { running, plugged, frozen } = step.state;
    const fails = step.kind === 'fault' && (!running || !plugged || frozen);
    part.group.append(fails ? s('path', { class: 'cross large', d: cross(x, y, 9) }) : s('circle', { class: `mark ${step.kind}`, cx: x, cy: y, r: 6 }));
    if (step.kind !== 'fault') return;
    const words = step.text.replace(/^Board \d+:? /, '').replace(/\.$/, '');
    part.group.append(this.label(step, fails ? 'fault' : '', words, x + 6, y, true));
  }

  message(part) {
    const { step } = part;
    const { axis } = this.view;
    const look = classOf(step);
    const x1 = this.x(step.at_ns), y1 = this.y.get(step.board);
    let up = 0;
    for (const copies of step.copies ?? []) {
      for (const to of copies.to) {
        const early = copies.fate === 'lost' || (copies.fate === 'cut_off' && copies.at_ns === step.at_ns);
        const whole = this.x(early ? step.at_ns + USUAL_FLIGHT : copies.at_ns) - x1;
        const share = early ? 0.5 : 1;
        const x2 = x1 + Math.max(whole, 30) * share, y2 = y1 + (this.y.get(to) - y1) * share;
        up += Math.sign(y1 - y2);
        const flight = { x1, y1, x2, y2, way: s('line', { class: `${look} way`, x1, y1, x2, y2 }), done: s('line', { class: look, x1, y1, x2: x1, y2: y1 }) };
        flight.end = this.ending(copies.fate, look, x2, y2, Math.atan2(y2 - y1, x2 - x1));
        part.group.append(flight.way, flight.done, flight.end);
        part.flights.push(flight);
        part.until = Math.max(part.until, x2);
      }
    }
    part.group.append(s('circle', { class: `${look} start`, cx: x1, cy: y1, r: 4 }));
    if (look !== 'routine') part.group.append(this.label(step, look, step.message.replace(/_.*/, ''), x1, y1, up > 0));
  }

  // ending is an arrowhead, or a cross with the reason beside it.
  ending(fate, look, x, y, angle) {
    if (fate === 'arrived') {
      const tip = (turn) => `${x - 11 * Math.cos(angle + turn)},${y - 11 * Math.sin(angle + turn)}`;
      return s('path', { class: `${look} head`, d: `M${tip(0.4)}L${x},${y}L${tip(-0.4)}` });
    }
    const mark = fate === 'waits' ? s('circle', { class: 'waits', cx: x, cy: y, r: 6 }) : s('path', { class: 'cross', d: cross(x, y, 7) });
    const group = s('g', { class: 'nowhere' }, mark);
    const width = 7 * FATES[fate].length;
    if (this.room.take(x + 10, y + 4, width)) group.append(s('text', { class: 'why', x: x + 10, y: y + 4 }, FATES[fate])); // else the same words are there
    return group;
  }

  // label names a message at its start, on the side to which it goes, or what happens to a board. What would
  // lie upon another label goes further away from the lane; if there is no room, it is seen with its step only.
  label(step, look, words, x, y, up) {
    const width = 12.5 * words.length; // as large as it is for the current step
    const nearest = up ? y - 10 : y + 20, line = up ? -18 : 18;
    const baseline = [0, 1, 2, 3, 4].map((n) => nearest + n * line).find((place) => this.room.take(x, place, width));
    return s('text', { class: `label ${baseline === undefined ? 'spare ' : ''}${look}`, x: x + 5, y: baseline ?? nearest }, words);
  }

  // draw shows all steps until the one with number k, and messages on their way as far as a place on the axis.
  draw(k, place) {
    const { run, steps } = this.view;
    const x = place * this.stretch;
    this.clip.setAttribute('width', x);
    for (const name of ['x1', 'x2']) this.playhead.setAttribute(name, x);
    this.parts.forEach((part, i) => {
      setAttribute(part.group, 'hidden', i > k);
      part.group.classList.toggle('current', i === k);
      if (i > k || (part.arrived && x >= part.until)) return;
      for (const flight of part.flights) fly(flight, x);
      part.arrived = x >= part.until;
    });
    if (this.drawn === k) return;
    this.drawn = k;
    const states = statesAt(run, steps[k].index);
    for (const row of this.rows) {
      const state = states.get(row.board), role = roleOf(state);
      setText(row.role, role);
      showLight(row.light, state.running && !state.frozen ? patternOfRole(state.role) : 'off');
      setAttribute(row.element, 'data-look', lookOf(state));
      row.element.classList.toggle('current', steps[k].boards.includes(row.board));
    }
  }

  // follow keeps a place in sight. A long way is jumped: a browser would need seconds for it.
  follow(place, smooth) {
    const { scrollLeft, clientWidth } = this.scroll;
    const at = place * this.stretch * this.scale;
    if (at > scrollLeft + clientWidth * 0.1 && at < scrollLeft + clientWidth * 0.72) return;
    const left = Math.max(0, at - clientWidth * 0.55);
    const near = Math.abs(left - scrollLeft) < 2 * clientWidth;
    this.scroll.scrollTo({ left, behavior: smooth && near && !still.matches ? 'smooth' : 'instant' });
  }
}

// fly draws how far a copy has come.
function fly(flight, x) {
  const { x1, y1, x2, y2, done, end, way } = flight;
  const share = Math.max(0, Math.min(1, (x - x1) / (x2 - x1)));
  done.setAttribute('x2', x1 + (x2 - x1) * share);
  done.setAttribute('y2', y1 + (y2 - y1) * share);
  setAttribute(end, 'hidden', share < 1);
  setAttribute(way, 'hidden', share === 1);
}

// lookOf is how the lane of a board looks.
function lookOf(state) {
  if (!state.running) return 'off';
  if (state.frozen) return 'frozen';
  if (!state.plugged) return 'isolated';
  return state.role;
}
