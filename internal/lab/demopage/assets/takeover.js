// The last takeover as a diagram of messages, and the figures of keepalived beside it.

import { duration, h, keyed, setAttribute, setText } from '/topdog.js';
import { Room, cross, svg } from '/lab.js';

const GUTTER = 78, LANE = 120, EDGE = 12, HEAD = 46, ROW = 15, LETTER = 8; // in units of the drawing
const READABLE = 0.8;  // no drawing is made smaller than this: it scrolls then
const LONG_MS = 0.6;   // a wait that is longer is drawn as a break
const REPEATS = 4;     // so many rounds of the same messages are drawn as the first and the last

// us is a point in time to the microsecond.
const us = (ms) => ms.toFixed(3);

// WORDS say what a step is, for the list and for the diagram.
const WORDS = {
  heard: 'heard {message} of {peer}', sent: 'sent {message} to {peer}', heartbeat_due: 'the next heartbeat is due', timer: 'its timer fires',
  address_missed: 'asks for the address in vain',
  link_up: 'its link is up', link_lost: 'its link is lost', asked: 'is asked to hand over', role: 'becomes {role}: {reason_text}',
  probe: 'asks whether somebody has the address', acquire_begun: 'acquires the address', acquire_ended: 'has the address',
  release_begun: 'releases the address', release_ended: 'has released the address', announced: 'has announced the address',
};

function words(step, names) {
  const said = { ...step, peer: step.peer ? names.get(step.peer) : 'all' };
  return (WORDS[step.step] ?? step.step).replace(/{(\w+)}/g, (_, key) => said[key]);
}

// relevant are the steps until the client is answered, and all know; what is routine again is left out.
function relevant(t) {
  const last = Math.max(t.silent_ns[1] ?? 0, ...t.steps.filter((s) => s.step === 'role' || s.step === 'announced' || s.step === 'acquire_ended').map((s) => s.at_ns));
  return t.steps.filter((s) => s.at_ns <= last + 1e5);
}

// fold finds rounds of the same steps, and returns the steps without those in the middle, and what was left out by the moment
// that follows.
function fold(steps) {
  const rounds = [];
  for (const s of steps) {
    const last = rounds.at(-1);
    if (last && s.at_ns - last.at(-1).at_ns <= LONG_MS * 1e6) last.push(s);
    else rounds.push([s]);
  }
  const kind = (round) => [...new Set(round.map((s) => `${s.board} ${s.step} ${s.message} ${s.peer}`))].sort().join();
  const kept = [], folded = new Map();
  for (let i = 0; i < rounds.length;) {
    let j = i + 1;
    while (j < rounds.length && kind(rounds[j]) === kind(rounds[i])) j++;
    const some = j - i >= REPEATS ? [rounds[i], rounds[j - 1]] : rounds.slice(i, j);
    if (j - i >= REPEATS) folded.set(rounds[j - 1][0].at_ns, j - i - 2);
    kept.push(...some.flat());
    i = j;
  }
  return { kept, folded };
}

// showTakeover shows the document of a takeover.
export function showTakeover(t, at, names) {
  if (t.number === 0) return;
  const steps = relevant(t), name = (n) => names.get(n) ?? 'nobody';
  const silent = t.silent_ns.length === 2 ? ` The client had no answer for ${duration((t.silent_ns[1] - t.silent_ns[0]) / 1e6)}.` : '';
  const beat = t.steps.some((s) => s.board === t.leader && s.at_ns === t.from_ns && s.step === 'heard' && s.message === 'HEARTBEAT');
  setText(at.text, `${name(t.old_leader)} → ${name(t.leader)}, term ${t.term}: ${t.reason_text}.${silent} All times count from ${beat ? `the last heartbeat that ${name(t.leader)} heard` : `the first step of ${name(t.leader)}`}, and are exact; distances are not to scale.`
    + (t.omitted > 0 ? ` ${t.omitted} steps were too many, and are left out in the middle.` : ''));
  at.diagram.replaceChildren(draw(t, steps, names));
  keyed(at.steps, steps, (s) => `${s.at_ns}.${s.board}.${s.step}.${s.message}`, () => h('tr', null, h('td'), h('td'), h('td')), (row, s) => {
    [us((s.at_ns - t.from_ns) / 1e6), names.get(s.board), words(s, names) + (s.failed ? ', which failed' : '')].forEach((text, i) => setText(row.children[i], text));
  });
}

// scale gives each moment its place: close ones as far apart as a line of text needs, and a long wait as a break.
function scale(moments, folded) {
  const y = new Map(), breaks = [];
  let at = HEAD + 14, before = null;
  for (const ns of [...new Set(moments)].sort((a, b) => a - b)) {
    if (before !== null) {
      const ms = (ns - before) / 1e6;
      if (ms > LONG_MS) {
        breaks.push({ y: at + 13, ms, times: folded.get(ns) ?? 0 });
        at += 28;
      } else {
        at += Math.min(26, 3 + 4 * Math.log2(1 + ms * 20));
      }
    }
    y.set(ns, at);
    before = ns;
  }
  return { y: (ns) => y.get(ns) ?? HEAD, breaks, end: at + 24 };
}

function draw(t, all, names) {
  const { kept: steps, folded } = fold(all);
  const lanes = new Map([...names.keys()].map((n, i) => [n, GUTTER + LANE * (i + 1) + LANE / 2]));
  const client = GUTTER + LANE / 2, width = GUTTER + LANE * (names.size + 1) + EDGE;
  const moments = [t.from_ns, ...steps.map((s) => s.at_ns), ...t.silent_ns];
  if (t.acted_ns !== null) moments.push(t.acted_ns);
  const s = scale(moments, folded);
  const drawing = svg('svg', { viewBox: `0 0 ${width} ${s.end}`, role: 'img', 'aria-label': 'The messages of the last takeover as a diagram. The list below has the same.' });
  drawing.style.minWidth = `${READABLE * width}px`;
  const texts = svg('g'), text = writer(texts, width);

  text(client, 20, 'strong', 'client');
  for (const [n, x] of lanes) {
    drawing.append(svg('line', { class: 'lane', x1: x, x2: x, y1: HEAD, y2: s.end }));
    text(x, 20, n === t.leader ? 'good' : 'strong', names.get(n));
    if (n === t.old_leader) text(x, 36, 'soft', 'the leader');
    if (n === t.leader) text(x, 36, 'good', 'the next leader');
  }
  for (const b of s.breaks) {
    drawing.append(svg('line', { class: 'break', x1: GUTTER, x2: width, y1: b.y, y2: b.y }));
    text(GUTTER - 8, b.y + 4, 'soft', duration(b.ms), 'end');
    if (b.times > 0) text((GUTTER + LANE + width) / 2, b.y + 4, 'soft', `the same ${b.times} ${b.times === 1 ? 'time' : 'times'} more`);
  }
  drawSilence(t, s, client, drawing, text);
  drawLead(t, steps, s, lanes, drawing);
  drawCause(t, s, lanes, drawing, text); // before the messages: its word may not be left out
  drawMessages(steps, s, lanes, drawing, text);
  drawDeeds(t, steps, s, lanes, names, drawing, text);
  drawTimes(steps, s, t, text);
  drawing.append(texts); // no line crosses a word
  return drawing;
}

// writer returns what writes words, unless others stand there already. Those that would reach over
// the right edge end there.
function writer(texts, width) {
  const room = new Room(ROW);
  return (x, y, kind, words, anchor = 'middle') => {
    const wide = words.length * LETTER;
    if (anchor === 'start' && x + wide + LETTER > width) [x, anchor] = [width - 2, 'end'];
    if (!room.take(anchor === 'end' ? x - wide : anchor === 'start' ? x : x - wide / 2, y, wide)) return;
    texts.append(svg('text', { x, y, class: kind, 'text-anchor': anchor }, words));
  };
}

// drawSilence draws the time in which the client got no answer.
function drawSilence(t, s, x, drawing, text) {
  drawing.append(svg('line', { class: 'lane', x1: x, x2: x, y1: HEAD, y2: s.end }));
  if (t.silent_ns.length < 2) return;
  const [from, to] = t.silent_ns.map(s.y);
  drawing.append(svg('line', { class: 'none', x1: x, x2: x, y1: from, y2: Math.max(to, from + 2) }));
  text(x, to + 16, 'bad', `${duration((t.silent_ns[1] - t.silent_ns[0]) / 1e6)} no answer`);
}

// drawLead draws who led when.
function drawLead(t, steps, s, lanes, drawing) {
  const rises = steps.find((it) => it.board === t.leader && it.step === 'role' && it.role === 'leader');
  // A leader that was ended at once says nothing any more. One that is not heard, or does not hear, leads on until it says that
  // it does not. Any other one that cannot tell led when it was heard last.
  const own = steps.filter((it) => it.board === t.old_leader && it.step === 'role');
  const falls = ['power_off', 'kill', 'freeze'].includes(t.action) ? t.acted_ns
    : own[own.findLastIndex((it) => it.role === 'leader') + 1]?.at_ns
      ?? (['mute_on', 'deaf_on', 'split', 'loss'].includes(t.action) ? null : t.from_ns);
  const line = (n, from, to) => drawing.append(svg('line', { class: 'leads', x1: lanes.get(n), x2: lanes.get(n), y1: from, y2: to }));
  if (lanes.has(t.old_leader)) line(t.old_leader, HEAD, falls === null ? s.end : s.y(falls));
  if (rises) line(t.leader, s.y(rises.at_ns), s.end);
}

// drawMessages draws an arrow for each message that was heard. What was sent by a board that cannot tell any more begins where it
// was heard.
function drawMessages(steps, s, lanes, drawing, text) {
  const arrow = (from, to, y1, y2, beat) => {
    const left = to < from, x2 = to + (left ? 6 : -6);
    drawing.append(svg('line', { class: `message ${beat}`, x1: from, x2, y1, y2 }),
      svg('path', { class: `head ${beat}`, d: `M${to} ${y2} l${left ? 9 : -9} -4 v8 Z` }));
  };
  for (const heard of steps.filter((it) => it.step === 'heard' && lanes.has(it.peer))) {
    const sent = steps.filter((it) => it.step === 'sent' && it.board === heard.peer && it.message === heard.message
      && (!it.peer || it.peer === heard.board) && it.at_ns <= heard.at_ns + 2e5).at(-1);
    const y2 = s.y(heard.at_ns), y1 = sent && heard.at_ns - sent.at_ns < 5e6 ? Math.min(s.y(sent.at_ns), y2) : y2;
    const beat = heard.message === 'HEARTBEAT' || heard.message === 'COORDINATOR' ? 'beat' : '';
    const from = lanes.get(heard.peer), to = lanes.get(heard.board);
    arrow(from, to, y1, y2, beat);
    text(from + (to < from ? -8 : 8), y1 - 4, beat ? 'good' : '', heard.message, to < from ? 'end' : 'start');
  }
}

// drawDeeds draws what boards did besides sending.
function drawDeeds(t, steps, s, lanes, names, drawing, text) {
  for (const it of steps) {
    const x = lanes.get(it.board), y = s.y(it.at_ns);
    if (it.step === 'role' || it.step === 'acquire_ended' || it.step === 'release_ended' || it.step === 'link_lost' || it.step === 'timer' || it.step === 'asked') {
      drawing.append(svg('circle', { class: it.step === 'role' && it.role === 'leader' ? 'role' : '', cx: x, cy: y, r: it.step === 'timer' ? 3 : 5 },
        svg('title', null, `${names.get(it.board)} ${words(it, names)}`)));
    }
    if (it.board === t.leader && it.step === 'role' && it.role === 'leader') text(x + 12, y + 14, 'good', 'LEADER', 'start');
  }
}

// drawCause draws what was done to a board, or to all.
function drawCause(t, s, lanes, drawing, text) {
  if (t.acted_ns === null) return;
  const y = s.y(t.acted_ns), what = t.action.replaceAll('_', ' ');
  if (!lanes.has(t.board)) { // it was done to all
    const all = [...lanes.values()];
    drawing.append(svg('line', { class: 'cut', x1: all[0], x2: all.at(-1), y1: y, y2: y }));
    text(all[0] - 14, y + 4, 'bad', what, 'end');
    return;
  }
  const x = lanes.get(t.board), back = t.board === t.leader;
  drawing.append(svg('path', { class: back ? 'back' : 'cut', d: back ? `M${x - 9} ${y} h18 M${x} ${y - 9} v18` : cross(x, y, 8) }));
  text(x - 14, y + 4, back ? 'good' : 'bad', what, 'end');
}

// drawTimes writes the time beside steps that are far enough apart.
function drawTimes(steps, s, t, text) {
  for (const it of steps) text(GUTTER - 8, s.y(it.at_ns) + 4, 'soft', us((it.at_ns - t.from_ns) / 1e6), 'end');
}

// showElsewhere shows what was measured of keepalived. done is what was done here last, and was followed by a takeover: it stands
// first, at the same scale.
export function showElsewhere(parent, about, done) {
  const all = [...about.measured_elsewhere];
  const now = all.find((f) => done && f.actions.includes(done.action));
  if (now) all.splice(0, 0, ...all.splice(all.indexOf(now), 1));
  keyed(parent, all, (f) => f.event_text, (f) => h('div', { class: 'figures-of' }, h('h3', { class: 'small' }, f.event_text), h('div', { class: 'bars numbers' }), h('p', { class: 'small soft' })), (element, f) => {
    setAttribute(element, 'data-now', String(f === now));
    const rows = [['topdog there', f.topdog_median_ns, 'there'], ['keepalived there', f.median_ns, 'theirs']];
    if (f === now) rows.unshift(['topdog here', done.outage_ns, '']);
    const most = Math.max(...rows.map(([, ns]) => ns));
    keyed(element.children[1], rows.flatMap(([who, ns, kind]) => [
      { key: `${who}0`, tag: 'span', text: who }, { key: `${who}1`, tag: 'div', kind: `bar-of ${kind}`, share: ns / most }, { key: `${who}2`, tag: 'b', text: duration(ns / 1e6) },
    ]), (it) => it.key, (it) => h(it.tag, { class: it.kind ?? null }), (cell, it) => {
      if (it.text) setText(cell, it.text);
      else cell.style.width = `${100 * it.share}%`;
    });
    setText(element.children[2], `${f.runs} runs; the longest of keepalived took ${duration(f.most_ns / 1e6)}.` + (f.two_holders_text ? ` With keepalived, two boards have the address ${f.two_holders_text}.` : ''));
  });
}
