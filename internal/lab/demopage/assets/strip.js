// The strip: who answered the client when, as a picture that runs. A gap is as long as the outage was.

import { duration, h } from '/topdog.js';

const WINDOW_MS = 5000;
const SHORT_MS = 20;    // a board that answers again within that has not been missed
const GAP_PX = 3;       // no gap is drawn narrower

// makeStrip makes the picture, and returns what takes in a state and what draws it as it is at a moment. A gap that goes on is
// as long as it is now, which is a little later: the large number beside it says the same.
export function makeStrip(parent, names) {
  const canvas = h('canvas', { 'aria-hidden': 'true' });
  parent.append(canvas);
  let pieces = { runs: [], gaps: [], marks: [] };
  return {
    windowMs: WINDOW_MS,
    take(state) { pieces = piecesOf(state, names); },
    draw(atMs, nowMs) { draw(canvas, pieces, atMs, nowMs); },
  };
}

// piecesOf are times in which one board answered, the gaps between them, and what was done. An end that is null has not come.
function piecesOf(state, names) {
  const ms = (ns) => ns === null ? null : ns / 1e6;
  const runs = state.answers.map((r) => ({ board: r.board, name: names.get(r.board), from: ms(r.from_ns), to: ms(r.to_ns) }));
  const gaps = runs.filter((r) => r.to !== null).map((r) => ({ from: r.to, to: runs[runs.indexOf(r) + 1]?.from ?? null }));
  return { runs, gaps, marks: state.actions.map((a) => ({ at: ms(a.at_ns), text: a.text })) };
}

function draw(canvas, { runs, gaps, marks }, atMs, nowMs) {
  const style = getComputedStyle(canvas), rem = parseFloat(getComputedStyle(document.documentElement).fontSize);
  const width = canvas.clientWidth, height = canvas.clientHeight, ratio = devicePixelRatio || 1;
  if (canvas.width !== Math.round(width * ratio) || canvas.height !== Math.round(height * ratio)) {
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(height * ratio);
  }
  const c = canvas.getContext('2d');
  const colour = (name) => style.getPropertyValue(name);
  const font = (size, weight) => { c.font = `${weight} ${size * rem}px ${style.fontFamily}`; };
  const x = (at) => at === null ? width : Math.min(width, width * (1 - (atMs - at) / WINDOW_MS));
  const top = 2.5 * rem, thick = 2.25 * rem;
  c.setTransform(ratio, 0, 0, ratio, 0, 0);
  c.clearRect(0, 0, width, height);
  c.textBaseline = 'middle';

  for (const r of runs) {
    const from = Math.max(0, x(r.from)), to = x(r.to);
    if (to <= 0 || from >= width) continue;
    const hue = (r.board * 137.5) % 360;
    c.fillStyle = `oklch(${colour('--tint')} 0.08 ${hue})`;
    c.fillRect(from, top, to - from, thick);
    c.fillStyle = `oklch(${colour('--tint-edge')} 0.13 ${hue})`;
    c.fillRect(from, top, to - from, 2);
    c.fillRect(from, top + thick - 2, to - from, 2);
    font(1, 650);
    if (to - from > c.measureText(r.name).width + rem) {
      c.fillStyle = colour('--ink');
      c.textAlign = 'start';
      c.fillText(r.name, from + rem / 2, top + thick / 2);
    }
  }
  c.fillStyle = colour('--soft');
  for (const at of marks.map((m) => x(m.at)).filter((at) => at < width)) {
    for (let y = 0; y < height; y += 8) c.fillRect(at - 1, y, 2, 4);
  }
  let free = width; // labels are placed from the right, and one that has no room is left out
  for (const m of marks) {
    const at = x(m.at);
    if (at <= 0 || at >= width) continue;
    font(0.8125, 400);
    const room = c.measureText(m.text).width + 10;
    const right = Math.min(free, at + room);
    if (right - room < 0 || right < at) continue;
    const left = Math.max(0, Math.min(at, right - room));
    c.textAlign = 'start';
    c.fillStyle = colour('--card');
    c.fillRect(left + 1, height - 1.25 * rem, room - 1, 1.25 * rem);
    c.fillStyle = colour('--ink');
    c.fillText(m.text, left + 6, height - 0.6 * rem);
    free = left;
  }
  free = width;
  for (const g of gaps.toReversed()) {
    const long = (g.to ?? nowMs) - g.from;
    if (g.to === null && long < SHORT_MS) continue;
    const from = x(g.from), to = x(g.to);
    if (to <= 0 || from >= width) continue;
    c.fillStyle = colour('--bad');
    c.fillRect(from, top, Math.max(GAP_PX, to - from), thick);
    font(1.125, 700);
    const text = duration(long), room = c.measureText(text).width;
    const left = Math.min((from + to - room) / 2, width - room);
    if (left < 0 || left + room > free) continue;
    c.textAlign = 'start';
    c.fillStyle = colour('--card'); // over the line of what was done
    c.fillRect(left - 2, top - 1.5 * rem, room + 4, 1.375 * rem);
    c.fillStyle = colour('--bad');
    c.fillText(text, left, top - 0.75 * rem);
    free = left - rem / 2;
  }
}
