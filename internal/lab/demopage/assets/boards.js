// The boards: what they are, their lights, plugs and cables, and what can be done to them.

import { h, keyed, light, list, patternOfRole, setAttribute, setText, showLight } from '/topdog.js';
import { still, svg } from '/lab.js';

// What is drawn of a plug and of a cable; what moves when it is pulled is in a group.
const drawing = (...parts) => () => svg('svg', { viewBox: '0 0 48 48', 'aria-hidden': 'true' }, ...parts.map((part) => (
  Array.isArray(part) ? svg('g', { class: 'moves' }, ...part.map((d, i) => svg('path', { class: i === 0 ? 'solid' : '', d }))) : svg('path', { d: part }))));
const plug = drawing('M12 2 H36 Q40 2 40 6 V12 Q40 16 36 16 H12 Q8 16 8 12 V6 Q8 2 12 2 Z',
  ['M13 19 H35 V26 Q35 34 24 34 Q13 34 13 26 Z', 'M18 8 V19 M30 8 V19', 'M24 34 V50']);
const cable = drawing('M11 2 V12 H37 V2 Z', ['M17 7 H31 V24 H28 V28 H20 V24 H17 Z', 'M21 7 V12 M24 7 V12 M27 7 V12 M24 28 V50']);

const RUNS = ['running', 'frozen'];

// What can be done to a board and undone: what is asked for, whether it was done, when it makes sense, and what the button says
// then. The first two are drawn. One that says the same is pressed.
const DEEDS = [
  { on: 'power_off', off: 'power_on', done: (b) => !b.power, text: 'power', back: 'unplugged', drawing: plug, labels: ['pull the power plug', 'plug the power in'] },
  { on: 'cable_out', off: 'cable_in', done: (b) => !b.cable, text: 'cable', back: 'pulled', drawing: cable, labels: ['pull the network cable', 'put the network cable back'] },
  { on: 'kill', off: 'start', done: (b) => b.daemon === 'killed', usable: (b) => RUNS.includes(b.daemon) || b.daemon === 'killed',
    text: 'Kill', back: 'Start', title: 'end the daemon as SIGKILL does' },
  { on: 'stop', off: 'start', done: (b) => b.daemon === 'stopped' || b.daemon === 'ended', usable: (b) => ['running', 'stopped', 'ended'].includes(b.daemon),
    text: 'Stop', back: 'Start', title: 'end the daemon in good order, as SIGTERM does' },
  { on: 'freeze', off: 'thaw', done: (b) => b.daemon === 'frozen', usable: (b) => RUNS.includes(b.daemon),
    text: 'Freeze', back: 'Thaw', title: 'have the daemon stand still, as SIGSTOP does' },
  { on: 'mute_on', off: 'mute_off', done: (b) => b.mute, text: 'Mute', back: 'Mute', title: 'nobody hears it, and it hears all' },
  { on: 'deaf_on', off: 'deaf_off', done: (b) => b.deaf, text: 'Deaf', back: 'Deaf', title: 'it hears nobody, and all hear it' },
  { on: 'resign', off: 'resign', done: () => false, usable: (b) => b.daemon === 'running' && b.role === 'leader',
    text: 'Resign', back: 'Resign', title: 'ask the leader to hand over' },
];

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
  b.light = light();
  b.role = h('p', { class: 'role' });
  b.detail = h('p', { class: 'detail small numbers' });
  b.sees = h('p', { class: 'sees', role: 'img' });
  const [plug, cable, ...others] = b.buttons = DEEDS.map((it) => h('button', {
    class: it.drawing ? `draw ${it.text}` : 'button compact', title: it.title, onclick: () => ask(it.done(b.state) ? it.off : it.on),
  }, it.drawing?.(), h('span', null, it.text)));
  b.more = h('details', { class: 'more', open: matchMedia('(min-width: 40rem)').matches },
    h('summary', null, 'more', h('span', { class: 'for-reader' }, ` to do to ${name}`)),
    h('div', { class: 'acts', role: 'group', 'aria-label': `${name}: its daemon and its ears` }, ...others));
  b.element = h('li', { class: 'board' },
    plug,
    h('div', { class: 'card' },
      h('div', { class: 'name' }, b.light, h('h3', null, name), h('span', { class: 'soft small number-of' }, address)),
      b.role, b.detail, b.sees, b.more),
    h('div', null, cable, h('div', { class: 'lan' })));
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
  DEEDS.forEach((it, i) => showDeed(board.buttons[i], it, b, name, can));
}

function showDeed(button, it, b, name, can) {
  const on = Boolean(it.done(b)), word = on ? it.back : it.text, may = can(on ? it.off : it.on);
  const label = it.drawing ? `${name}: ${it.labels[Number(on)]}` : `${word} ${name}`;
  setText(button.lastChild, word);
  setAttribute(button, 'aria-label', label);
  if (it.drawing) {
    setAttribute(button, 'data-in', String(!on));
    setAttribute(button, 'title', may ? label : 'you may look');
  } else if (it.text === it.back && it.on !== it.off) {
    setAttribute(button, 'aria-pressed', String(on));
  }
  const disabled = !may || it.usable?.(b) === false;
  if (button.disabled !== disabled) button.disabled = disabled;
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
