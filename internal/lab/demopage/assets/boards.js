// The boards: what they are, their lights, plugs and cables, and what can be done to them.

import { h, keyed, light, list, patternOfRole, setAttribute, setText, showLight } from '/topdog.js';

const SVG = 'http://www.w3.org/2000/svg';

// svg makes an element of a drawing.
export function svg(tag, attributes, ...children) {
  const element = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes ?? {})) element.setAttribute(name, value);
  element.append(...children);
  return element;
}

// What is drawn of a plug and of a cable; what moves when it is pulled is in a group.
const plugDrawing = () => svg('svg', { viewBox: '0 0 48 48', 'aria-hidden': 'true' },
  svg('rect', { x: 8, y: 2, width: 32, height: 14, rx: 4 }),
  svg('g', { class: 'moves' },
    svg('path', { d: 'M18 8 V20 M30 8 V20' }),
    svg('path', { class: 'solid', d: 'M13 19 H35 V26 Q35 34 24 34 Q13 34 13 26 Z' }),
    svg('path', { d: 'M24 34 V50' })));
const cableDrawing = () => svg('svg', { viewBox: '0 0 48 48', 'aria-hidden': 'true' },
  svg('path', { d: 'M11 2 V12 H37 V2 Z' }),
  svg('g', { class: 'moves' },
    svg('path', { class: 'solid', d: 'M17 7 H31 V24 H28 V28 H20 V24 H17 Z' }),
    svg('path', { d: 'M21 7 V12 M24 7 V12 M27 7 V12 M24 28 V50' })));

// The buttons of a board beside plug and cable: what they ask for, whether that was done, and what they say
// then. One that says the same is pressed.
const BUTTONS = [
  { key: 'kill', on: 'kill', off: 'start', text: 'Kill', back: 'Start', done: (b) => b.daemon === 'killed', title: 'end the daemon as SIGKILL does' },
  { key: 'stop', on: 'stop', off: 'start', text: 'Stop', back: 'Start', done: (b) => b.daemon === 'stopped' || b.daemon === 'ended', title: 'end the daemon in good order, as SIGTERM does' },
  { key: 'freeze', on: 'freeze', off: 'thaw', text: 'Freeze', back: 'Thaw', done: (b) => b.daemon === 'frozen', title: 'have the daemon stand still, as SIGSTOP does' },
  { key: 'mute', on: 'mute_on', off: 'mute_off', text: 'Mute', back: 'Mute', done: (b) => b.mute, title: 'nobody hears it, and it hears all' },
  { key: 'deaf', on: 'deaf_on', off: 'deaf_off', text: 'Deaf', back: 'Deaf', done: (b) => b.deaf, title: 'it hears nobody, and all hear it' },
  { key: 'resign', on: 'resign', off: 'resign', text: 'Resign', back: 'Resign', done: () => false, title: 'ask the leader to hand over' },
];

const RUNS = ['running', 'frozen'];

// usable reports whether a button makes sense for the board as it is.
function usable(button, b) {
  switch (button.key) {
    case 'kill': return RUNS.includes(b.daemon) || b.daemon === 'killed';
    case 'stop': return ['running', 'stopped', 'ended'].includes(b.daemon);
    case 'freeze': return RUNS.includes(b.daemon);
    case 'resign': return b.daemon === 'running' && b.role === 'leader';
    default: return true;
  }
}

// makeBoards makes the boards and returns what shows their state. act asks for an action; mayAct says whether it may.
export function makeBoards(about, parent, act, mayAct) {
  const names = new Map(about.boards.map((b) => [b.number, b.name]));
  const impossible = new Set(about.actions.filter((a) => a.impossible_text !== '').map((a) => a.action));
  const boards = about.boards.map((b) => makeBoard(b, act));
  parent.replaceChildren(...boards.map((b) => b.element));
  return (state) => state.boards.forEach((b, i) => {
    showBoard(boards[i], b, about, names, (verb) => mayAct() && !impossible.has(verb));
    const before = state.boards[i - 1], after = state.boards[i + 1];
    const end = !before || before.apart !== b.apart ? 'start' : !after || after.apart !== b.apart ? 'end' : '';
    setAttribute(boards[i].element, 'data-end', end);
  });
}

function makeBoard({ number, name, address }, act) {
  const b = { number, name, state: null, address };
  const ask = (verb) => act({ action: verb, board: number });
  b.plugText = h('span', null, 'power');
  b.cableText = h('span', null, 'cable');
  b.plug = h('button', { class: 'draw plug', onclick: () => ask(b.state.power ? 'power_off' : 'power_on') }, plugDrawing(), b.plugText);
  b.cable = h('button', { class: 'draw cable', onclick: () => ask(b.state.cable ? 'cable_out' : 'cable_in') }, cableDrawing(), b.cableText);
  b.light = light();
  b.role = h('p', { class: 'role' });
  b.detail = h('p', { class: 'detail small numbers' });
  b.sees = h('p', { class: 'sees', role: 'img' });
  b.acts = BUTTONS.map((it) => h('button', {
    class: 'button compact', title: it.title, onclick: () => ask(it.done(b.state) ? it.off : it.on),
  }, it.text));
  b.more = h('details', { class: 'more', open: matchMedia('(min-width: 40rem)').matches },
    h('summary', null, 'more', h('span', { class: 'for-reader' }, ` to do to ${name}`)),
    h('div', { class: 'acts', role: 'group', 'aria-label': `${name}: its daemon and its ears` }, ...b.acts));
  b.element = h('li', { class: 'board' },
    b.plug,
    h('div', { class: 'card' },
      h('div', { class: 'name' }, b.light, h('h3', null, name), h('span', { class: 'soft small number-of' }, address)),
      b.role, b.detail, b.sees, b.more),
    h('div', null, b.cable, h('div', { class: 'lan' })));
  return b;
}

// roleOf says in a word or two what a board is.
export function roleOf(b) {
  switch (b.daemon) {
    case 'off': return 'no power';
    case 'stopped': return 'stopped';
    case 'killed': return 'killed';
    case 'ended': return 'ended by itself';
    case 'frozen': return `frozen (${b.role})`;
  }
  if (b.role === 'leader') return 'LEADER';
  return b.heir ? 'heir' : b.role;
}

function showBoard(board, b, about, names, can) {
  const { element, name } = board;
  board.state = b;
  const leads = b.role === 'leader' && b.daemon === 'running';
  setAttribute(element, 'data-daemon', b.daemon);
  setAttribute(element, 'data-apart', String(b.apart));
  setAttribute(element, 'data-trouble', String(b.daemon === 'frozen' || b.daemon === 'ended' || b.role === 'isolated' || b.role === 'barred'));
  setAttribute(element, 'data-leads', String(leads));
  setText(board.role, roleOf(b) + (b.mute ? ', mute' : '') + (b.deaf ? ', deaf' : ''));
  showDetail(board.detail, b, about, names);
  showSees(board.sees, b, name, names);
  showPattern(board.light, b);
  show(board.plug, board.plugText, b.power, can(b.power ? 'power_off' : 'power_on'), b.power ? 'power' : 'unplugged',
    b.power ? `${name}: pull the power plug` : `${name}: plug the power in`);
  show(board.cable, board.cableText, b.cable, can(b.cable ? 'cable_out' : 'cable_in'), b.cable ? 'cable' : 'pulled',
    b.cable ? `${name}: pull the network cable` : `${name}: put the network cable back`);
  BUTTONS.forEach((it, i) => {
    const on = it.done(b), button = board.acts[i];
    setText(button, on ? it.back : it.text);
    setAttribute(button, 'aria-pressed', it.key === 'mute' || it.key === 'deaf' ? String(on) : null);
    setAttribute(button, 'aria-label', `${on ? it.back : it.text} ${name}`);
    const disabled = !can(on ? it.off : it.on) || !usable(it, b);
    if (button.disabled !== disabled) button.disabled = disabled;
  });
}

function show(button, text, isIn, can, word, label) {
  setAttribute(button, 'data-in', String(isIn));
  setAttribute(button, 'aria-label', label);
  setAttribute(button, 'title', can ? label : 'you may look');
  setText(text, word);
  if (button.disabled === can) button.disabled = !can;
}

function showDetail(element, b, about, names) {
  const parts = [];
  if (b.holds) parts.push(['held', about.address]);
  else if (b.follows > 0 && b.follows !== b.number) parts.push(['', `follows ${names.get(b.follows)}`]);
  if (b.term > 0 && b.role !== '') parts.push(['soft', `term ${b.term}`]);
  if (b.ended_text !== '') parts.push(['bad', b.ended_text]);
  if (b.grade !== '' && b.grade !== 'passing') parts.push(['badge warn', b.grade]);
  keyed(element, parts, ([kind]) => kind, ([kind]) => h('span', { class: kind }), (span, [, text]) => setText(span, text));
}

// showSees shows what a board takes the others for.
function showSees(element, b, name, names) {
  const sees = [...b.sees].sort((x, y) => x.board - y.board);
  setAttribute(element, 'aria-label', sees.length === 0 ? `${name} sees nobody`
    : `${name} sees ${list(sees.map((s) => `${names.get(s.board)} as ${s.as}`))}`);
  keyed(element, [{ board: 0 }, ...sees], (s) => s.board,
    (s) => s.board === 0 ? h('span', { class: 'small soft' }, 'sees') : h('span', { class: 'seen' }, String(s.board)),
    (chip, s) => {
      setAttribute(chip, 'data-as', s.as ?? null);
      setAttribute(chip, 'title', s.board === 0 ? null : `${name} takes ${names.get(s.board)} for: ${s.as}`);
    });
}

const still = matchMedia('(prefers-reduced-motion: reduce)');
const labels = {};

// showPattern says what the light of a board shows. Its flashes are those of the recording, see showLights; whoever
// wants no motion gets a steady mark.
function showPattern(element, b) {
  const pattern = RUNS.includes(b.daemon) ? patternOfRole(b.role) : 'off';
  labels[pattern] ??= showLight(light(), pattern).getAttribute('aria-label');
  setAttribute(element, 'aria-label', labels[pattern]);
  setAttribute(element, 'data-fault', String(pattern === 'fault'));
  setAttribute(element, 'data-pattern', still.matches ? pattern : 'recorded');
  if (still.matches) setAttribute(element, 'data-lit', null);
}

// showLights has the lights be as they were at a moment of the recording, in nanoseconds.
export function showLights(state, elements, atNs) {
  state.boards.forEach((b, i) => {
    const later = b.light.edges_ns.filter((ns) => ns > atNs).length;
    setAttribute(elements[i], 'data-lit', String(later % 2 === 0 ? b.light.lit : !b.light.lit));
  });
}
