// The page of topdog sim --page. What is chosen stands behind the # of the address: the page asks the
// simulator for that run, and shows it step by step.

import { at, setAttribute, setText } from '/topdog.js';
import { beginCompare, highlight } from '/compare.js';
import { Diagram } from '/diagram.js';
import { ask, options, showText } from '/lab.js';
import { view as viewOf, when } from '/model.js';
import { Player } from '/player.js';
import { showAbout, showResult, showSoFar, showStep, showSteps } from '/tables.js';

const NAMES = ['algorithm', 'boards', 'failure', 'notice', 'loss_percent', 'seed'];
const LOSSES = [0, 1, 2, 5, 10, 20, 30, 40];

let choices = null; // what may be chosen
let choice = null;  // what is
let view = null;    // what is shown
let abort = null;   // ends the request in progress

const diagram = new Diagram(at('names'), at('scroll'));
const player = new Player(show, showPlaying);

const trouble = (text = '') => showText(at('trouble'), text);

// ---- what is chosen ----

// readAddress is the choice behind the # of an address, with the step and whether everything is shown.
function readAddress(url) {
  const given = new URLSearchParams(new URL(url).hash.slice(1));
  const all = { ...choices.standard };
  if (given.has('algorithm')) all.notice = 0;
  for (const name of NAMES) {
    if (given.has(name)) all[name] = typeof all[name] === 'number' ? Number(given.get(name)) : given.get(name);
  }
  const step = /^\d+$/.test(given.get('step') ?? '') ? Number(given.get('step')) : null;
  return { choice: all, step, everything: given.has('everything') };
}

const queryOf = (c) => new URLSearchParams(NAMES.map((name) => [name, c[name]])).toString();

function writeAddress() {
  let hash = queryOf(choice);
  if (at('everything').checked) hash += '&everything';
  if (view) hash += `&step=${player.k}`;
  history.replaceState(null, '', `#${hash}`);
}

const range = (from, to) => Array.from({ length: Math.max(0, to - from + 1) }, (_, i) => from + i);

function fillForm() {
  options(at('algorithm'), choices.algorithms.map((a) => [a.name, a.name]));
  options(at('boards'), range(choices.boards.least, choices.boards.most).map((n) => [n, String(n)]));
  options(at('failure'), choices.failures.map((f) => [f.name, f.text]));
  const losses = LOSSES.filter((p) => p >= choices.loss_percent.least && p <= choices.loss_percent.most);
  options(at('loss_percent'), losses.map((p) => [p, p === 0 ? 'none' : `${p} %`]));
  options(at('example'), [['', 'choose …'], ...choices.examples.map((e, i) => [i, e.text])]);
  at('seed').min = choices.seed.least;
  at('seed').max = choices.seed.most;
}

// showForm has the form show the choice. Only a board that is there can notice, and only some failures.
function showForm() {
  const { notice } = choices.failures.find((f) => f.name === choice.failure) ?? {};
  const boards = Math.min(choice.boards, choices.boards.most); // an address may name any number
  options(at('notice'), [[0, 'all boards'], ...(notice ? range(1, boards).map((n) => [n, `only board ${n}`]) : [])]);
  at('notice').disabled = !notice;
  if (!LOSSES.includes(choice.loss_percent)) options(at('loss_percent'), [...LOSSES, choice.loss_percent].sort((a, b) => a - b).map((p) => [p, `${p} %`]));
  for (const name of NAMES) at(name).value = choice[name];
  const same = choices.examples.findIndex((e) => queryOf(e.choice) === queryOf(choice));
  at('example').value = same < 0 ? '' : String(same);
}

// readForm makes a choice of the form that can be: another failure may need more boards.
function readForm() {
  const c = {};
  for (const name of NAMES) {
    const value = at(name).value || choices.standard[name]; // an address may name what there is not
    c[name] = typeof choices.standard[name] === 'number' ? Number(value) : value;
  }
  const failure = choices.failures.find((f) => f.name === c.failure);
  c.boards = Math.max(c.boards, failure.least_boards);
  if (!failure.notice || c.notice > c.boards) c.notice = 0;
  return c;
}

// ---- a run ----

// load shows a run, and reports whether it could.
async function load(wanted, step = null) {
  choice = wanted;
  showForm();
  const algorithm = choices.algorithms.find((a) => a.name === choice.algorithm);
  if (algorithm) showAbout(algorithm);
  highlight(choice.algorithm);
  abort?.abort();
  const { signal } = abort = new AbortController();
  try {
    const run = await ask(`/v1/sim/run?${queryOf(choice)}`, { signal });
    if (signal.aborted) return false; // after the answer had come
    trouble();
    showRun(run, step);
    return true;
  } catch (error) {
    if (signal.aborted) return false;
    if (error.code === 400 && wanted.notice > 0) {
      // Another failure may hit the very board that should notice it. Then all the others do.
      const shown = await load({ ...wanted, notice: 0 }, step);
      if (shown) trouble(`Board ${wanted.notice} cannot be the one that notices here, so all boards do.`);
      return shown;
    }
    player.pause();
    showPlaying();
    setAttribute(at('main'), 'hidden', true);
    trouble(error.message);
    return false;
  }
}

// showRun begins where something fails, unless a step is wanted.
function showRun(run, step) {
  setAttribute(at('main'), 'hidden', false);
  view = viewOf(run, at('everything').checked);
  diagram.show(view);
  player.load(view);
  showResult(run);
  showSteps(view, (k) => player.go(k));
  at('scrub').max = view.steps.length - 1;
  player.go(step ?? Math.max(0, view.steps.findIndex((s) => s.kind === 'fault' && s.at_ns >= run.failed_ns)));
}

// show is called by the player.
let shown = { view: null, k: -1 };
function show(k, x, moving) {
  diagram.draw(k, x);
  diagram.follow(x, !moving && shown.view === view);
  if (shown.view === view && shown.k === k) {
    if (!moving) showPlaying();
    return;
  }
  shown = { view, k };
  const step = view.steps[k];
  setText(at('now-step'), `Step ${k + 1} of ${view.steps.length}`);
  setText(at('now-time'), when(view.run, step.at_ns));
  setText(at('now-text'), step.text);
  setText(at('now-why'), step.why_text ?? '');
  at('scrub').value = k;
  setAttribute(at('scrub'), 'aria-valuetext', `step ${k + 1}: ${step.text}`);
  showSoFar(view.run, k + 1 === view.steps.length ? view.run.steps.length - 1 : step.index);
  showStep(k);
  showPlaying();
}

// showPlaying also has the address follow, but not while the player runs: browsers allow few changes a second.
function showPlaying() {
  setText(at('play'), player.playing ? 'Pause' : 'Play');
  if (view && !player.playing) writeAddress();
}

// ---- what a person does ----

function toggle() {
  if (player.playing) player.pause(); else player.play();
  showPlaying();
}

const KEYS = {
  ' ': toggle,
  ArrowLeft: () => player.go(player.k - 1),
  ArrowRight: () => player.go(player.k + 1),
  Home: () => player.go(0),
  End: () => player.go(view.steps.length - 1),
};

function pressed(event) {
  if (event.ctrlKey || event.altKey || event.metaKey || !view || !KEYS[event.key]) return;
  // Whatever has the focus may need the key itself.
  if (event.target.matches('input, select, textarea') || (event.key === ' ' && event.target.matches('button'))) return;
  event.preventDefault();
  KEYS[event.key]();
}

async function copy() {
  try {
    await navigator.clipboard.writeText(at('command').textContent);
    setText(at('copy'), 'Copied');
  } catch {
    getSelection().selectAllChildren(at('command')); // without a secure origin a person copies it
    setText(at('copy'), 'Selected');
  }
  setTimeout(() => setText(at('copy'), 'Copy'), 2000);
}

// resized draws anew for another width. A phone changes the height whenever somebody scrolls.
let width = innerWidth;
function resized() {
  if (innerWidth === width || !view) return;
  width = innerWidth;
  diagram.show(view);
  if (!player.playing) player.go(player.k);
}

function listen() {
  at('choices').addEventListener('submit', (event) => event.preventDefault());
  for (const name of NAMES) at(name).addEventListener('change', () => { if (at('choices').reportValidity()) load(readForm()); });
  at('example').addEventListener('change', () => {
    const example = choices.examples[Number(at('example').value)];
    if (at('example').value !== '' && example) load({ ...example.choice });
  });
  at('play').addEventListener('click', toggle);
  at('first').addEventListener('click', KEYS.Home);
  at('back').addEventListener('click', KEYS.ArrowLeft);
  at('next').addEventListener('click', KEYS.ArrowRight);
  at('last').addEventListener('click', KEYS.End);
  at('scrub').addEventListener('input', () => player.go(Number(at('scrub').value)));
  at('speed').addEventListener('change', () => { player.speed = Number(at('speed').value); });
  at('everything').addEventListener('change', () => { if (view) showRun(view.run, null); });
  at('copy').addEventListener('click', copy);
  document.addEventListener('keydown', pressed);
  // Since the address was changed, the page may have written another one there: that of a run which had just come.
  addEventListener('hashchange', ({ newURL }) => { const a = readAddress(newURL); at('everything').checked = a.everything; load(a.choice, a.step); });
  addEventListener('resize', resized);
}

try {
  choices = await ask('/v1/sim/choices');
  fillForm();
  beginCompare(choices.compare);
  listen();
  const address = readAddress(location.href);
  at('everything').checked = address.everything;
  await load(address.choice, address.step);
} catch (error) {
  trouble(error.message);
}
