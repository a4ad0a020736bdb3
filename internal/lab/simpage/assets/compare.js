// The comparison of all algorithms. The page asks for one row after the other, so that each is
// shown as it comes, and nothing is computed for a page that has been closed.

import { at, duration, h, setAttribute, setText } from '/topdog.js';
import { ask, options, svg as s } from '/lab.js';

const rows = new Map(); // what has been computed, by algorithm and boards
let abort = null;       // ends what is being computed
let offered = null;     // what can be compared
let chosen = '';        // the algorithm that the page shows

const keyOf = (algorithm, boards) => `${algorithm}/${boards}`;

const WHAT = {
  messages: { title: 'messages', text: (n) => n.toLocaleString('en') },
  packets: { title: 'packets', text: (n) => n.toLocaleString('en') },
  time_ns: { title: 'time to the next leader', text: (ns) => duration(ns / 1e6) },
};

export function beginCompare(compare) {
  offered = compare;
  const all = [...compare.boards, ...compare.on_demand];
  options(at('compare-boards'), all.slice(1).map((n) => [n, n > compare.boards.at(-1) ? `${n} (takes longer)` : String(n)]));
  at('compare-boards').value = compare.boards.at(-1);
  at('compare').addEventListener('click', () => (abort ? abort.abort() : run()));
  at('compare-what').addEventListener('change', show);
}

// highlight says which algorithm the rest of the page is about.
export function highlight(algorithm) {
  chosen = algorithm;
  if (rows.size > 0) show();
}

const sizes = () => [...offered.boards, ...offered.on_demand].filter((n) => n <= Number(at('compare-boards').value));

async function run() {
  abort = new AbortController();
  setText(at('compare'), 'Cancel');
  setAttribute(at('compare-boards'), 'disabled', true);
  const wanted = sizes().flatMap((n) => offered.algorithms.map((algorithm) => ({ algorithm, n })))
    .filter(({ algorithm, n }) => !rows.has(keyOf(algorithm, n)));
  const progress = at('compare-progress');
  setAttribute(progress, 'hidden', false);
  progress.max = Math.max(1, wanted.length);
  let said = '';
  try {
    for (const [i, { algorithm, n }] of wanted.entries()) {
      progress.value = i;
      setText(at('compare-said'), `${algorithm}, ${n} boards`);
      rows.set(keyOf(algorithm, n), (await ask(`/v1/sim/compare?algorithm=${algorithm}&boards=${n}`, { signal: abort.signal })).row);
      show();
    }
  } catch (error) {
    said = error.name === 'AbortError' ? 'Cancelled.' : error.message;
  }
  abort = null;
  setText(at('compare'), 'Compare');
  setText(at('compare-said'), said);
  setAttribute(at('compare-boards'), 'disabled', false);
  setAttribute(progress, 'hidden', true);
  show();
}

function show() {
  const known = sizes().filter((n) => offered.algorithms.some((a) => rows.has(keyOf(a, n))));
  setAttribute(at('compare-result'), 'hidden', known.length === 0);
  const what = at('compare-what').value;
  at('compare-head').replaceChildren(h('tr', null, h('th', { scope: 'col' }, WHAT[what].title),
    ...known.map((n) => h('th', { scope: 'col' }, `${n} boards`))));
  at('compare-rows').replaceChildren(...offered.algorithms.map((a) => h('tr', { class: a === chosen ? 'chosen' : null },
    h('th', { scope: 'row' }, a), ...known.map((n) => {
      const row = rows.get(keyOf(a, n));
      return h('td', null, row ? WHAT[what].text(row[what]) : '…');
    }))));
  setText(at('compare-command'), `topdog sim compare --boards ${known.join(',')}`);
  at('chart').replaceChildren(chart(known, what));
}

// chart draws a line for each algorithm. Both axes are logarithmic: each step is so many times as much.
function chart(known, what) {
  const WIDTH = 720, HEIGHT = 300, LEFT = 70, RIGHT = 110, TOP = 12, BOTTOM = 34;
  const values = [...rows.values()].filter((row) => known.includes(row.boards)).map((row) => Math.max(1, row[what]));
  const drawing = s('svg', { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: 'img', 'aria-label': `${WHAT[what].title} by the number of boards; the table has the figures` });
  if (known.length < 2) return drawing;
  const scale = (from, to, low, high) => (v) => from + (to - from) * Math.log(v / low) / Math.log(high / low);
  const low = Math.min(...values), high = Math.max(low * 2, ...values);
  const x = scale(LEFT, WIDTH - RIGHT, known[0], known.at(-1)), y = scale(HEIGHT - BOTTOM, TOP, low, high);
  for (const n of known) {
    drawing.append(s('line', { class: 'tick', x1: x(n), x2: x(n), y1: TOP, y2: HEIGHT - BOTTOM }), s('text', { class: 'time', x: x(n), y: HEIGHT - 12 }, String(n)));
  }
  for (let decade = 10 ** Math.ceil(Math.log10(low)); decade <= high; decade *= 10) {
    drawing.append(s('line', { class: 'tick', x1: LEFT, x2: WIDTH - RIGHT, y1: y(decade), y2: y(decade) }),
      s('text', { class: 'value', x: LEFT - 8, y: y(decade) + 4 }, WHAT[what].text(decade)));
  }
  const labels = [];
  for (const algorithm of offered.algorithms) {
    const points = known.filter((n) => rows.has(keyOf(algorithm, n))).map((n) => [x(n), y(Math.max(1, rows.get(keyOf(algorithm, n))[what]))]);
    if (points.length === 0) continue;
    const look = algorithm === chosen ? 'line chosen' : 'line';
    drawing.append(s('polyline', { class: look, points: points.map((p) => p.join(',')).join(' ') }));
    labels.push({ algorithm, look, x: points.at(-1)[0], y: points.at(-1)[1] });
  }
  drawing.append(...apart(labels).map((l) => s('text', { class: l.look.replace('line', 'name'), x: l.x + 8, y: l.y + 4 }, l.algorithm)));
  return drawing;
}

// apart moves labels down that would lie upon each other.
function apart(labels) {
  labels.sort((a, b) => a.y - b.y);
  for (let i = 1; i < labels.length; i++) labels[i].y = Math.max(labels[i].y, labels[i - 1].y + 17);
  return labels;
}
