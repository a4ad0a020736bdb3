// Shows what a status and a history say. Elements are made once and updated in place, so that
// nothing moves from one answer to the next. status.js has the words, index.html the places.

import { ago, at, duration, fromNs, h, keyed, light, list, setAttribute, setText, showLight } from '/topdog.js';
import {
  algorithm, changeTo, checkName, defenceName, failingChecks, fullName, gradeOf, groupLine, headline, heardOf, heartbeats,
  historyText, lanes, leaderBefore, leads, live, majority, nameOf, patience, patternOf, present, replacedAfter, roleOf, voterState,
} from '/status.js';

const CHANGES_MAX = 8; // how many changes of a status are shown

// showStatus shows a status that came more milliseconds ago. These are added to the ages in it.
export function showStatus(s, more) {
  setAttribute(at('page'), 'data-known', true);
  setText(at('group'), s.group);
  showHero(s, more);
  showFigures(s, more);
  showNotices(s, more);
  setText(at('boards-note'), s.role === 'isolated' ? 'as they were when this board last heard them' : String(s.boards.length));
  keyed(at('boards'), s.boards, (b) => b.id, createBoard, (card, b) => updateBoard(card, b, s, more));
  inStep(at('hero-light'), at('boards').querySelector('[data-leads] .light'));
  showChanges(s, more);
  showSelf(s, more);
  setText(at('about'), `group ${s.group || 'unknown'} · algorithm ${algorithm(s)} · topdog ${s.version || 'of an unknown version'}`);
}

export function showNothing(why) {
  setText(at('hero-name'), 'unknown');
  setText(at('hero-after'), why);
}

export function showGroups(names, statuses, chosen) {
  setAttribute(at('groups').parentElement, 'hidden', false);
  keyed(at('groups'), names, (name) => name,
    (name) => h('li', null, h('a', { class: 'card bar group', href: `?group=${encodeURIComponent(name)}`, 'aria-current': name === chosen && 'page' },
      h('b', null, name), h('span'), h('span', { class: 'bar' }, h('span', { class: 'mono' }), h('span', null, light(), h('span'))))),
    (li, name) => {
      const [, verdict, holder] = li.firstElementChild.children, [address, who] = holder.children;
      const line = groupLine(statuses.get(name));
      setText(verdict, line.verdict);
      setAttribute(verdict, 'class', `badge ${line.tone}`);
      setText(address, line.address);
      showLight(who.firstElementChild, line.pattern);
      setText(who.lastElementChild, line.who);
    });
}

// ---- boards ----

function createBoard() {
  const cell = {
    light: light(), name: h('h3'), role: h('span', { class: 'badge' }), grade: h('dd'), address: h('dd', { class: 'mono' }),
    heard: h('dd'), up: h('dd'), rank: h('dd'), rankName: h('dt'), why: h('ul', { class: 'board-why' }),
  };
  const card = h('li', { class: 'card board' },
    h('div', { class: 'board-top' }, cell.light, cell.name, cell.role),
    h('dl', null,
      h('div', null, h('dt', null, 'grade'), cell.grade),
      h('div', null, h('dt', null, 'address'), cell.address),
      h('div', null, h('dt', null, 'heard'), cell.heard),
      h('div', null, h('dt', null, 'up'), cell.up),
      h('div', null, cell.rankName, cell.rank)),
    cell.why);
  card.cells = cell;
  return card;
}

function updateBoard(card, b, s, more) {
  const cell = card.cells, role = roleOf(s, b), leading = leads(s, b) && present(s, b), grade = gradeOf(s, b), scored = s.score_from !== '';
  setAttribute(card, 'data-leads', leading);
  setAttribute(card, 'data-lost', !present(s, b));
  showLight(cell.light, patternOf(s, b));
  setText(cell.name, b.name || b.address || b.id);
  setText(cell.role, role);
  setAttribute(cell.role, 'class', leading ? 'badge accent' : role === 'heir' ? 'badge next' : 'badge');
  setText(cell.grade, live(b) ? `${grade.mark} ${grade.text}` : 'unknown');
  setAttribute(cell.grade, 'class', live(b) && grade.tone ? `unwell ${grade.tone}` : null);
  setText(cell.address, b.address || b.id);
  setText(cell.heard, heardOf(b));
  setText(cell.up, b.up_seconds === null || !live(b) ? 'unknown' : duration(b.up_seconds * 1000 + more));
  setText(cell.rankName, scored ? 'score' : 'priority');
  setText(cell.rank, scored ? String(b.score ?? 'unknown') : b.priority === 0 ? '0, never leads' : String(b.priority));
  keyed(cell.why, b.self ? failingChecks(s) : [], (c) => c.kind + c.target,
    () => h('li', { class: 'unwell bad' }), (li, c) => setText(li, `${checkName(c)}: ${c.text || 'fails'}`));
}

// ---- the parts of the page ----

function showHero(s, more) {
  const said = headline(s, more);
  setAttribute(at('hero'), 'data-tone', said.tone);
  setText(at('hero-address'), said.address);
  setText(at('hero-verb'), said.verb);
  if (at('hero-name').textContent !== said.who) at('hero-who').style.setProperty('--letters', said.who.length);
  setText(at('hero-name'), said.who);
  setText(at('hero-after'), said.after);
  showLight(at('hero-light'), said.pattern);
  const title = `${said.who} · ${said.address} · topdog`;
  if (document.title !== title) document.title = title;
  say(said.who, `${said.address} ${said.verb} ${said.who}`);
}

// say tells a screen reader who leads now, if that has changed.
let saidLeader = null;
function say(leader, text) {
  if (saidLeader !== null && saidLeader !== leader) setText(at('said'), text);
  saidLeader = leader;
}

// inStep has two lights of one board pulse together.
function inStep(light, other) {
  const [a, b] = [light, other].map((element) => element?.getAnimations({ subtree: true })[0]);
  if (a && b && b.startTime !== null && a.startTime !== b.startTime) a.startTime = b.startTime;
}

function showFigures(s, more) {
  const after = replacedAfter(s), last = s.changes[0], figures = [];
  figures.push(['next (heir)', s.heir ? nameOf(s, s.heir, s.heir_name) : 'nobody']);
  if (after !== null) figures.push(['takeover in about', duration(after)]);
  if (last) figures.push(['last change', ago(last.ago_ms + more)]);
  if (last && last.outage_ms !== null) figures.push(['nobody led for', duration(last.outage_ms)]);
  figures.push(['term', String(s.term)]);
  keyed(at('figures'), figures, ([name]) => name,
    ([name]) => h('div', null, h('dt', null, name), h('dd')),
    (div, [, value]) => setText(div.lastElementChild, value));
}

// notices are what a person should know: the group's problems, and that somebody has drained or paused.
function notices(s, more) {
  const left = (ns) => duration(Math.max(0, fromNs(ns) - more)), all = [];
  if (s.paused) {
    all.push({ key: 'paused', text: `The group is paused for another ${left(s.pause_left_ns)}: the address stays with ${fullName(s, s.pause_leader)}.` });
  }
  if (s.drained) {
    const until = s.drain_left_ns > 0 ? `for another ${left(s.drain_left_ns)}` : 'until somebody ends that';
    all.push({ key: 'drained', text: `This board is drained ${until}: it leaves the lead to others.` });
  }
  for (const p of s.problems) {
    if (p.kind !== 'paused' || !s.paused) all.push({ key: `${p.kind} ${p.board ?? ''}`, text: p.text });
  }
  return all;
}

function showNotices(s, more) {
  const all = notices(s, more);
  setAttribute(at('notices'), 'hidden', all.length === 0);
  keyed(at('notice-list'), all, (n) => n.key, () => h('li', { class: 'notice warn' }), (li, n) => setText(li, n.text));
}

function showChanges(s, more) {
  setAttribute(at('changes-none'), 'hidden', s.changes.length > 0);
  const newest = s.changes.slice(0, CHANGES_MAX);
  keyed(at('changes'), newest, (c) => `${c.term} ${c.leader} ${c.reason}`,
    () => h('li', null, h('span', { class: 'when soft' }), h('b'),
      h('span', { class: 'outage' }, h('span', { class: 'for-reader' }), h('span')), h('span', { class: 'why soft' })),
    (li, c) => {
      const [when, who, outage, why] = li.children;
      setText(when, ago(c.ago_ms + more));
      setText(who, changeTo(s, c));
      setText(outage.firstElementChild, c.outage_ms === null ? '' : 'nobody led for ');
      setText(outage.lastElementChild, c.outage_ms === null ? '' : duration(c.outage_ms));
      setText(why, `term ${c.term}: ${c.reason_text || 'unknown why'}`);
    });
}

// marked is a line with a mark in front: a check, a line of defence, a voter.
const marked = (mark, name, text, tone) => ({ mark, name, text, tone });

function selfFacts(s, more) {
  const b = s.board, grade = gradeOf(s, b), facts = [];
  const add = (name, ...lines) => facts.push({ name, lines: lines.map((l) => (typeof l === 'string' ? { text: l } : l)) });
  add('name', `${fullName(s, b.id)}${s.interface ? ` on ${s.interface}` : ''}`);
  const path = s.second_path;
  if (path) add('second path', path.text || `${path.interface} ${path.address}, ${path.state}`);
  const role = s.role === 'follower' && s.heir === b.id ? 'follower and heir' : s.role || 'unknown';
  add('role', role + (s.role_since_ms === null ? '' : ` for ${duration(s.role_since_ms + more)}`) + (s.reason_text ? ` (${s.reason_text})` : ''));
  const ends = s.grade_ends_in_ns > 0 ? `, for another ${duration(Math.max(0, fromNs(s.grade_ends_in_ns) - more))}` : '';
  add('grade', marked(grade.mark, s.starting ? 'starting' : s.grade, (s.grade_text ? `: ${s.grade_text}` : '') + ends, grade.tone));
  if (s.checks.length > 0) {
    add('checks', ...s.checks.map((c) => marked(
      { passing: '✓', failing: '✗', excused: '◔', starting: '…' }[c.state] ?? '–', checkName(c),
      `, ${c.state.replace('_', ' ') || 'unknown'} for ${duration(fromNs(c.since_ns) + more)}${c.text ? `: ${c.text}` : ''}`, c.state === 'failing' ? 'bad' : '')));
  }
  if (s.holding) add('holding', s.hold_text || 'unknown');
  if (s.defences.length > 0) {
    add('defences', ...s.defences.map((d) => marked(d.on ? '✓' : '✗', (d.on ? '' : 'no ') + defenceName(d), `: ${d.text}`, d.on ? '' : 'warn')));
  }
  add('heartbeats', heartbeats(s));
  if (patience(s)) add('patience', patience(s));
  if (s.voters?.length) {
    add('voters', majority(s), ...s.voters.map((v) => marked(
      v.twice || v.unheard || v.supports === false ? '✗' : '✓', fullName(s, v.id, v.name), `: ${voterState(s, v)}`, '')));
  }
  if (s.witnesses?.length) {
    add('witnesses', ...s.witnesses.map((w) => (w.answers ? marked('✓', w.address, ' answers', '') : marked('✗', w.address, ' does not answer', 'warn'))));
  }
  add('LED', s.led_text || 'unknown');
  return facts;
}

function updateLine(div, line) {
  const [mark, text] = div.children;
  setAttribute(div, 'class', line.mark === undefined ? null : 'marked');
  setText(mark, line.mark ?? '');
  setAttribute(mark, 'class', line.tone ? `unwell ${line.tone}` : null);
  const [name, rest] = text.children;
  setText(name, line.name ?? '');
  setText(rest, line.text);
}

function showSelf(s, more) {
  keyed(at('self'), selfFacts(s, more), (fact) => fact.name,
    (fact) => h('div', null, h('dt', null, fact.name), h('dd')),
    (div, fact) => keyed(div.lastElementChild, fact.lines.map((line, i) => ({ ...line, i })), (line) => line.i,
      () => h('div', null, h('span', { 'aria-hidden': 'true' }), h('span', null, h('b'), h('span'))), updateLine));
}

export function showHistory(history, s) {
  const { boards, outages, unknown } = lanes(history, leaderBefore(s, history)), watched = duration(fromNs(history.watched_ns));
  const rows = boards.map((b) => ({ id: b.id, name: b.name, kind: '', runs: b.runs }));
  if (outages.length) rows.push({ id: 'nobody', name: 'nobody', kind: 'outage', runs: outages });
  if (unknown.length) rows.push({ id: 'unknown', name: 'unknown', kind: 'unknown', runs: unknown });
  keyed(at('lanes'), rows, (row) => row.id,
    () => h('div', { class: 'lane' }, h('span', { class: 'lane-name' }), h('div', { class: 'lane-track' })),
    (lane, row) => {
      setText(lane.firstElementChild, row.name);
      keyed(lane.lastElementChild, row.runs.map((run, i) => ({ ...run, i })), (run) => run.i,
        () => h('span', { class: `run ${row.kind}` }),
        (bar, run) => {
          bar.style.left = `${run.from * 100}%`;
          bar.style.width = `${(run.to - run.from) * 100}%`;
        });
    });
  const text = historyText(history);
  setText(at('day-since'), `Watched since this process started, ${watched} ago.`);
  setText(at('day-from'), ago(fromNs(history.slots[0]?.ago_ns ?? history.watched_ns)));
  setText(at('day-text'), `${text[0].toUpperCase()}${text.slice(1)}.`);
  setAttribute(at('day'), 'aria-label', `${watched}: led by ${list(boards.map((b) => b.name)) || 'nobody'}; ${text}`);
}
