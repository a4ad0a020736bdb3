// The page of `topdog demo --page`: asks ten times a second how the boards stand, shows it, and asks for what a
// person wants done.

import { ago, at, duration, h, keyed, list, poll, setAttribute, setText } from '/topdog.js';
import { ask, options, showText, still } from '/lab.js';
import { makeBoards, showLights } from '/boards.js';
import { makeStrip } from '/strip.js';
import { showElsewhere, showTakeover } from '/takeover.js';

const EVERY_MS = 100;
const GIVE_UP_MS = 2000;
const LATE_MS = 200;  // lights and strip are shown so late: what they show has arrived by then
const FRAME_MS = 30;  // between two pictures: the boards may have to share this machine with the browser
const LOSSES = [0, 5, 10, 20, 40, 60, 90];

// The token comes with the printed URL, and goes out of the address bar at once: a projector shows that. The tab keeps it
// until it is closed.
let token = takeToken();

function takeToken() {
  const found = /[#&]token=([^&]+)/.exec(location.hash);
  if (found) history.replaceState(null, '', location.pathname);
  try {
    if (found) sessionStorage.setItem('topdog-token', found[1]);
    return sessionStorage.getItem('topdog-token') ?? '';
  } catch {
    return found ? found[1] : ''; // a browser that keeps nothing
  }
}

// forgetToken forgets one that is wrong, also for when the page is loaded again.
function forgetToken() {
  try { sessionStorage.removeItem('topdog-token'); } catch { /* a browser that keeps nothing */ }
  showRight('');
}

const mayAct = () => token !== '';

// clock is that of the boards, in milliseconds since the demonstration began.
const clock = { offset: null, now() { return performance.now() + this.offset; } };

function setClock(headers) {
  const ns = Number(headers.get('Topdog-Now-Ns'));
  if (!(ns > 0)) return;
  const offset = ns / 1e6 - performance.now();
  // A delay on the way makes an answer look old, so small changes count little.
  if (clock.offset === null || Math.abs(offset - clock.offset) > 100) clock.offset = offset;
  else clock.offset += (offset - clock.offset) / 20;
}

let about = null, state = null, names = new Map();
let showBoards = null, strip = null, lights = [], shownTakeover = 0, held = false;

// ---- acting ----

async function act(action) {
  showText(at('refused'), '');
  try {
    await ask('/v1/demo/act', {
      method: 'POST', headers: { 'Content-Type': 'application/json', 'Topdog-Token': token }, body: JSON.stringify(action),
    });
  } catch (error) {
    if (error.code === 403) forgetToken();
    showText(at('refused'), `${error.message.charAt(0).toUpperCase()}${error.message.slice(1)}.`);
  }
}

// showRight shows whether this tab may act.
function showRight(with_ = token) {
  token = with_;
  setText(at('right'), mayAct() ? 'you may pull plugs' : 'you may look');
  setAttribute(at('right'), 'class', mayAct() ? 'badge accent' : 'badge');
  setAttribute(at('look'), 'hidden', mayAct());
}

// ---- what is there from the start ----

async function begin() {
  about = await ask('/v1/demo/about', { signal: AbortSignal.timeout(GIVE_UP_MS) });
  names = new Map(about.boards.map((b) => [b.number, b.name]));
  setText(at('about'), `${about.boards.length} boards, ${about.lan_text}, ${about.algorithm}, a heartbeat every ${duration(about.heartbeat_ns / 1e6)}`);
  setText(at('address'), `${about.address} is answered by`);
  showBoards = makeBoards(about, at('boards'), act, mayAct);
  lights = [...at('boards').querySelectorAll('.light')];
  strip = makeStrip(at('strip'), names);
  setText(at('scale-from'), `${duration(strip.windowMs)} ago`);
  showElsewhere(at('elsewhere'), about, null);
  makeTools();
}

function makeTools() {
  const numbers = about.boards.map((b) => b.number);
  options(at('split-at'), numbers.slice(1).map((n) => [n - 1, `${numbers.slice(0, n - 1).join(' ')} | ${numbers.slice(n - 1).join(' ')}`]));
  at('split-at').value = Math.ceil(numbers.length / 2) - 1;
  options(at('loss'), LOSSES.map((p) => [p, `${p} %`]));
  at('split').addEventListener('click', () => act({ action: 'split', apart: numbers.slice(0, Number(at('split-at').value)) }));
  at('loss').addEventListener('change', () => act({ action: 'loss', loss_percent: Number(at('loss').value) }));
  at('heal').addEventListener('click', () => act({ action: 'heal' }));
  at('all-on').addEventListener('click', () => act({ action: 'all_on' }));
  at('hold').addEventListener('click', () => {
    held = !held;
    setAttribute(at('hold'), 'aria-pressed', String(held));
  });
  const cannot = about.actions.filter((a) => a.impossible_text !== '');
  if (cannot.length > 0) {
    showText(at('impossible'), `Not possible here: ${list(cannot.map((a) => a.action.replaceAll('_', ' ')))}: ${cannot[0].impossible_text}.`);
  }
}

// ---- how the boards stand ----

async function answered({ code, json, headers }) {
  showText(at('lost'), '');
  // The state comes first: if the rest fails, the next answer may only say that it is still the same.
  if (code === 200) state = json;
  else if (code !== 304 || !state) throw new Error(json?.error ?? `HTTP status ${code}`);
  if (!about) await begin();
  setClock(headers);
  showBoards(state);
  for (const id of ['split', 'split-at', 'loss', 'heal', 'all-on']) at(id).disabled = !mayAct();
  if (document.activeElement !== at('loss')) at('loss').value = LOSSES.includes(state.loss_percent) ? state.loss_percent : LOSSES[0];
  showAnswer();
  showDone();
  strip.take(state);
  if (still.matches && !held) strip.draw(clock.now() - LATE_MS, clock.now());
  if (state.takeover !== shownTakeover) {
    const takeover = await ask('/v1/demo/takeover', { signal: AbortSignal.timeout(GIVE_UP_MS) });
    shownTakeover = takeover.number;
    showTakeover(takeover, { text: at('takeover-text'), diagram: at('diagram'), steps: at('steps') }, names);
  }
}

// silence is for how long nobody has answered, in milliseconds; 0 if somebody does.
function silence() {
  const last = state.answers.at(-1);
  return !last ? clock.now() : last.to_ns === null ? 0 : Math.max(0, clock.now() - last.to_ns / 1e6);
}

// lastOutage is what was done last that had an outage which is worth a word, and is over.
const lastOutage = () => state.actions.find((a) => !a.outage_goes_on && (a.moves > 0 || a.outage_ns > 20e6));

// tookOver is what was done, if one other board took over then, and nobody did anything else meanwhile: how long that took
// can be set against what others take.
function tookOver(a) {
  const next = state.actions[state.actions.indexOf(a) - 1];
  return a?.moves === 1 && !(next?.at_ns < a.at_ns + a.outage_ns) ? a : null;
}

let said = '';

function showAnswer() {
  const silent = silence(), last = state.answers.at(-1), outage = lastOutage();
  const holders = state.boards.filter((b) => b.holds);
  const who = silent > 0 ? 'nobody' : names.get(last.board);
  setText(at('who'), who + (holders.length > 1 ? ` (held by ${list(holders.map((b) => names.get(b.number)))})` : ''));
  setAttribute(at('answer'), 'data-tone', silent > 0 ? 'bad' : holders.length > 1 ? 'warn' : 'good');
  if (silent > 0) {
    setText(at('number'), duration(silent)); // where nothing moves, nobody else does
    setText(at('number-text'), 'without an answer, and counting');
  } else {
    setText(at('number'), outage ? duration(outage.outage_ns / 1e6) : '–');
    setText(at('number-text'), outage ? `without an answer: somebody ${outage.text}` : 'no outage yet');
  }
  const text = silent > 0 ? 'Nobody answers.' : `${who} answers.` + (outage ? ` The last outage was ${duration(outage.outage_ns / 1e6)}.` : '');
  if (text !== said) setText(at('said'), said = text);
}

// then says what has followed from something.
function then(a) {
  const parts = [];
  if (a.moves > 0 && a.after > 0) parts.push(`${names.get(a.before)} → ${names.get(a.after)}`);
  if (a.moves === 0 && a.outage_ns > 0 && a.after > 0) parts.push(`${names.get(a.after)} answers again`);
  if (a.moves > 1) parts.push(`${a.moves} moves`);
  if (a.two_holders_ns > 0) parts.push(`two boards held it for ${duration(a.two_holders_ns / 1e6)}`);
  if (a.client_paused_ns > 10e6) parts.push(`the client itself stood still for ${duration(a.client_paused_ns / 1e6)} of it`);
  return parts.join(', ') || (a.outage_goes_on ? 'nobody answers' : 'nothing moved');
}

function showDone() {
  keyed(at('done'), state.actions, (a) => a.number,
    () => h('li', null, h('span', null, h('b'), ' ', h('span', { class: 'soft small numbers' })), h('span', { class: 'ms numbers' }), h('span', { class: 'then' })),
    (row, a) => {
      const [what, ms, after] = row.children;
      setText(what.firstChild, a.text);
      const seconds = Math.floor((clock.now() - a.at_ns / 1e6) / 1000);
      setText(what.lastChild, seconds > 0 ? ago(seconds * 1000) : 'just now');
      setText(ms, a.outage_ns > 0 ? duration(a.outage_ns / 1e6) + (a.outage_goes_on ? ' …' : '') : '–');
      setAttribute(ms, 'class', a.outage_ns > 0 ? 'ms numbers bad' : 'ms numbers soft');
      setText(after, then(a));
    });
  showElsewhere(at('elsewhere'), about, tookOver(lastOutage()));
}

// ---- what moves between two answers ----

let framed = 0;

function frame(time) {
  if (state && clock.offset !== null && !still.matches && time - framed >= FRAME_MS) {
    framed = time;
    const shown = clock.now() - LATE_MS;
    showLights(state, lights, shown * 1e6);
    if (!held) strip.draw(shown, clock.now());
    if (silence() > 0) setText(at('number'), duration(silence()));
  }
  requestAnimationFrame(frame);
}

showRight();
window.addEventListener('hashchange', () => showRight(takeToken()));
requestAnimationFrame(frame);
poll('/v1/demo', {
  every: EVERY_MS, giveUp: GIVE_UP_MS,
  failed: () => showText(at('lost'), 'The demonstration does not answer. Was it ended?'),
  answered: (answer) => answered(answer).catch((error) => {
    console.warn(error);
    showText(at('lost'), `This page cannot show what it is told: ${error.message}.`);
    return false;
  }),
});
