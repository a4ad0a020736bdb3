// What a status and a history say, in the words of `topdog status` (internal/console).

import { ago, count, duration, fromNs, list, patternOfRole, percent } from '/topdog.js';

export function boardOf(s, id) {
  if (!id) return undefined;
  return id === s.board.id ? s.board : s.boards.find((b) => b.id === id);
}

export function nameOf(s, id, name = '') {
  const known = boardOf(s, id)?.name || name;
  if (known) return known;
  if (id && id === s.leader && s.leader_name) return s.leader_name;
  if (id && id === s.heir && s.heir_name) return s.heir_name;
  return id || 'an unknown board';
}

// fullName is a board as "pi2 (192.168.1.12)", or what of it is known.
export function fullName(s, id, name = '') {
  const short = nameOf(s, id, name), address = boardOf(s, id)?.address || id;
  return short === address || !address ? short : `${short} (${address})`;
}

export function addressesOf(s) {
  const bare = s.addresses.map((a) => a.split('/')[0]);
  if (bare.length === 0) return 'the address';
  return bare.length <= 3 ? list(bare) : `${bare[0]} and ${bare.length - 1} more`;
}

export const live = (b) => !b.stale && !b.gone;

// present says the same. Without a link, the other boards are shown as they were.
export const present = (s, b) => live(b) && (b.self || s.role !== 'isolated');

// leads: a board that called itself the leader before the present one took over, and was not heard
// since, is no rival.
export function leads(s, b) {
  const outdated = b.id !== s.leader && b.heard_ms !== null && s.leader_since_ms !== null && b.heard_ms >= s.leader_since_ms;
  return b.role === 'leader' && live(b) && !outdated;
}

// verdict answers who has the address: 'held', 'suspected' (it is late), 'silent' (it
// counts as dead), 'contested', 'nobody', or 'unknown' (this board cannot know).
export function verdict(s) {
  if (s.boards.filter((b) => leads(s, b)).length > 1) return 'contested';
  if (s.role === 'isolated' || s.port_silent) return 'unknown';
  if (!s.held_by) {
    return s.role === 'listener' || s.role === 'barred' || s.majority_unheard ? 'unknown' : 'nobody';
  }
  if (s.held_by === s.board.id) return s.holding && !s.majority_unheard ? 'held' : 'nobody';
  const holder = boardOf(s, s.held_by);
  if (!holder || !live(holder)) return 'silent';
  return s.role === 'candidate' ? 'suspected' : 'held';
}

// headline is the answer in large letters: words before, who, words after, and the tone in which
// it is said. more is the age of the status.
export function headline(s, more = 0) {
  const address = addressesOf(s), one = s.addresses.length < 2;
  const is = one ? 'is' : 'are', was = one ? 'was' : 'were';
  const name = nameOf(s, s.held_by), own = boardOf(s, s.held_by)?.address ?? '';
  const said = { address, verb: `${is} held by`, pattern: 'off', tone: 'bad' };
  switch (verdict(s)) {
    case 'contested': {
      const who = s.boards.filter((b) => leads(s, b));
      return { ...said, verb: `${is} claimed by ${count(who.length, 'board')}`, who: list(who.map((b) => nameOf(s, b.id))),
        after: 'A divided network has just been joined again, or packets get lost in one direction.', pattern: 'fault' };
    }
    case 'silent': {
      const heard = boardOf(s, s.held_by)?.heard_ms ?? null;
      const after = heard === null ? 'nothing more is known of it' : `last heard ${ago(heard)}`;
      return { ...said, verb: `${was} last held by`, who: name, after: s.majority_unheard ? `${after}; ${majorityUnheard(s)}` : after };
    }
    case 'nobody':
      if (told(s)) said.verb = `${is} held together by`;
      return { ...said, who: 'nobody', after: whyNotHeld(s) };
    case 'unknown':
      return { ...said, who: 'unknown', after: whyNotHeld(s), tone: 'warn' };
    case 'suspected':
      return { ...said, who: name, after: 'it has fallen silent: this board asks whether it lives', tone: 'warn', pattern: 'leader' };
  }
  if (s.holding && s.problems.some((p) => p.kind === 'address_not_held')) said.address = `some of ${address}`;
  const facts = own && own !== name ? [own] : [];
  const unguarded = s.spares === 0; // undefined from a daemon that does not tell
  if (unguarded) facts.unshift('no fit board could take over');
  if (s.leader_since_ms !== null && s.leader === s.held_by) facts.push(`leader for ${duration(s.leader_since_ms + more)}`);
  return { ...said, who: name, after: facts.join(' · '), tone: unguarded ? 'warn' : 'good', pattern: 'leader' };
}

const VERDICTS = { held: 'held', suspected: 'late', silent: 'silent', contested: 'contested', nobody: 'not held', unknown: 'unknown' };

export function groupLine(s) {
  if (!s) return { verdict: 'no status', tone: 'bad', address: '', who: 'unknown', pattern: 'off' };
  const { address, who, tone, pattern } = headline(s), line = { address, who, pattern, tone, verdict: VERDICTS[verdict(s)] };
  if (tone === 'warn' && line.verdict === 'held') line.verdict = 'no spare';
  if (tone !== 'good') return line;
  return s.problems.length ? { ...line, verdict: 'needs attention', tone: 'warn' } : { ...line, tone: 'accent' };
}

// told are the addresses that the leader of this follower has told, if any.
const told = (s) => s.role === 'follower' && boardOf(s, s.leader)?.floating;

function whyNotHeld(s) {
  const missing = s.majority_unheard ? majorityUnheard(s) : '';
  switch (s.role) {
    case 'isolated': return 'this board has no link';
    case 'listener': return 'this board is listening for a leader';
    case 'barred': return `this board stays out: ${s.reason_text || 'unknown why'}`;
    case 'candidate':
      if (s.port_silent) return 'this board asks, and nothing arrives on its port: look at its cable and its switch';
      return missing || (s.voters?.length ? 'this board is asking the voters whether it may lead' : 'this board is asking whether anybody leads');
    case 'leader':
      return missing ? 'this board leads, but does not hear the majority of the voters, so it does not answer'
        : `this board leads, but does not have it on ${s.interface || 'its interface'}`;
    case 'follower':
      if (missing) return missing;
      if (s.leader) return `${nameOf(s, s.leader)} leads, ${told(s) ? `and its configuration has ${list(told(s))}` : 'but is not known to have it'}`;
      return s.heir ? `there is no leader, and ${nameOf(s, s.heir)} is next` : 'there is no leader, and no board that could become one';
  }
  return s.reason_text || 'unknown why';
}

// majorityUnheard says how many voters this board hears, which it misses, and what follows.
function majorityUnheard(s) {
  const voters = s.voters ?? [], missing = voters.filter((v) => v.unheard).map((v) => nameOf(s, v.id, v.name));
  return `this board hears ${voters.length - missing.length} of the ${voters.length} voters (${list(missing)} missing), ` +
    `and nobody takes the address without ${Math.floor(voters.length / 2) + 1} of them`;
}

// roleOf says what a board is now. What a silent one was is no longer known.
export function roleOf(s, b) {
  if (b.gone) return 'gone';
  if (b.stale) return 'silent';
  if (!b.self && b.role !== 'leader' && b.following && b.following !== b.id && b.following !== s.leader) {
    return `follows ${nameOf(s, b.following)}`;
  }
  if (!b.role) return 'unknown';
  return b.role === 'leader' && !leads(s, b) ? 'was leader' : b.role;
}

// patternOf is what the light of a board shows, or would if it had one; as internal/daemon/effects.go.
export function patternOf(s, b) {
  if (!present(s, b) || roleOf(s, b) === 'was leader') return 'off';
  if (!b.self) return patternOfRole(b.role);
  if (s.led_pattern) return s.led_pattern;
  return s.port_silent || (s.role === 'leader' && !s.holding) ? 'fault' : patternOfRole(s.role);
}

// gradeOf says how fit a board is to lead: a mark, words, and the tone in which they are said.
export function gradeOf(s, b) {
  const marks = { passing: '✓', probation: '◔', drained: '‖', failing: '✗' };
  if (b.self && s.starting) return { mark: '…', text: 'starting', tone: 'warn' };
  return { mark: marks[b.grade] ?? '?', text: b.grade_text || b.grade, tone: b.grade === 'passing' ? '' : b.grade === 'failing' ? 'bad' : 'warn' };
}

export const failingChecks = (s) => s.checks.filter((c) => c.state === 'failing');

export const checkName = (c) => c.name_text || `${c.kind} ${c.target}`.trim();

// heardOf says how long ago this board heard of a board. Milliseconds would only flicker.
export function heardOf(b) {
  if (b.self) return 'this board';
  if (b.heard_ms === null) return 'unknown';
  return b.heard_ms < 1000 ? 'less than 1\u00a0s ago' : ago(b.heard_ms);
}

// replacedAfter is the time from the last heartbeat of a leader that dies to the next leader, if known.
export function replacedAfter(s) {
  const d = s.detector, leader = boardOf(s, s.leader);
  if (!s.heartbeat_ms || s.role !== 'follower' || !leader || !live(leader) || (d.kind && d.kind !== 'ask')) return null;
  return s.heartbeat_ms + d.margin_ms + (d.questions - 1) * d.question_every_ms + (d.answer_within_ms || d.question_every_ms);
}

// heartbeats says what the failure detector sees: nothing where there is no leader to hear.
export function heartbeats(s) {
  if (!s.heartbeat_ms) return 'unknown';
  const every = `every ${duration(s.heartbeat_ms)}`, leader = boardOf(s, s.leader);
  if (s.role === 'leader') return `this board sends one ${every}`;
  if (leader && !live(leader) && leader.heard_ms !== null) return `${every}, none for ${duration(leader.heard_ms)}`;
  if (!leader || !live(leader) || (s.role !== 'follower' && s.role !== 'candidate')) return `${every}, none at the moment`;
  return `${every}, ${percent(s.detector.loss_percent)} lost, late by up to ${duration(s.detector.margin_ms)}`;
}

export function patience(s) {
  const p = s.patience;
  if (!p || p.grace_ns <= p.default_grace_ns) return '';
  const text = `a leader may be late by ${duration(fromNs(p.grace_ns))} instead of ${duration(fromNs(p.default_grace_ns))}`;
  return p.learned_text ? `${text}, because ${p.learned_text}` : text;
}

export function algorithm(s) {
  const parts = [];
  if (s.detector.kind) parts.push(`detector ${s.detector.kind}`);
  if (s.fanout && s.fanout !== 'multicast') parts.push(`fanout ${s.fanout}`);
  if (s.score_from) parts.push(`score from ${s.score_from}`);
  return (s.algorithm || 'unknown') + (parts.length ? ` (${parts.join(', ')})` : '');
}

export function voterState(s, v) {
  if (v.twice) return 'there twice, does not count';
  if (v.unheard && s.role !== 'leader') return 'not heard';
  if (v.supports === null) return 'heard';
  return v.supports ? 'acknowledges' : 'silent';
}

// majority says how many voters are needed, and on the leader how many acknowledge it.
export function majority(s) {
  const needed = Math.floor(s.voters.length / 2) + 1;
  if (s.role !== 'leader') return `${needed} of ${s.voters.length} are needed`;
  return `acknowledged by ${s.voters.filter((v) => v.supports && !v.twice).length}, of which ${needed} are needed`;
}

const DEFENCES = { fence: 'fence', dead_mans_switch: 'dead man’s switch', tun: 'TUN device', lifetime: 'lifetime', no_exec: 'seccomp' };

export const defenceName = (d) => (DEFENCES[d.kind] ?? d.kind) + (d.method ? ` (${d.method})` : '');

export function changeTo(s, c) {
  if (c.leader) return nameOf(s, c.leader, c.leader_name);
  return c.reason === 'deaf' ? 'unknown' : 'nobody';
}

// leaderBefore is the newest change in a status that is older than all in a history, if there is
// one. The two may disagree by a second on when the same change was.
export function leaderBefore(s, history) {
  const oldest = history.changes.at(-1)?.ago_ns ?? 0;
  return s.changes.find((c) => c.ago_ms > fromNs(oldest) + 1000);
}

// lanes turns the history into runs from 0 (the oldest slot) to 1 (now): of each board that led, of
// outages and of what is unknown. After the oldest change the changes say who led, before it only
// the slots do. before is who led when the first slot began, if that is known.
export function lanes(history, before) {
  const { slots, slot_ns } = history, changes = [...history.changes].reverse();
  const whole = Math.max(slots[0]?.ago_ns ?? 0, 1), first = changes[0]?.ago_ns ?? 0;
  const place = (ago) => 1 - Math.max(0, Math.min(ago, whole)) / whole;
  const boards = new Map(), outages = [], unknown = [];
  const led = ({ leader, leader_name }, from, to) => {
    const lane = boards.get(leader) ?? { id: leader, name: leader_name || leader, runs: [] };
    boards.set(leader, lane);
    extend(lane.runs, place(from), place(to));
  };
  slots.forEach((slot, i) => {
    const end = Math.max(slot.ago_ns - slot_ns, 0);
    const who = end >= first ? slot : slots[i - 1] ?? before; // that led at the end of this part of the slot
    if (slot.ago_ns > first && who?.leader) led(who, slot.ago_ns, Math.max(end, first));
    if (end >= first && slot.outage_ns > 0) extend(outages, place(slot.ago_ns), place(slot.ago_ns - slot.outage_ns));
    if (slot.unknown_ns > 0) extend(unknown, place(slot.ago_ns), place(slot.ago_ns - slot.unknown_ns));
    else if (!slot.leader) extend(outages, place(slot.ago_ns), place(end));
  });
  changes.forEach((change, i) => {
    const next = changes[i + 1];
    led(change, change.ago_ns, next ? next.ago_ns + (next.outage_ns ?? 0) : 0);
    if (change.outage_ns) outages.push({ from: place(change.ago_ns + change.outage_ns), to: place(change.ago_ns) });
  });
  // Where a slot knows of no leader, no board is drawn as the leader.
  for (const slot of slots) {
    if (slot.leader) continue;
    for (const lane of boards.values()) lane.runs = without(lane.runs, place(slot.ago_ns), place(slot.ago_ns - slot_ns));
  }
  return { boards: [...boards.values()], outages, unknown };
}

function without(runs, from, to) {
  return runs.flatMap((run) => [{ from: run.from, to: Math.min(run.to, from) }, { from: Math.max(run.from, to), to: run.to }])
    .filter((run) => run.to > run.from);
}

function extend(runs, from, to) {
  const last = runs.at(-1);
  if (last && Math.abs(last.to - from) < 1e-6) last.to = to;
  else runs.push({ from, to });
}

export function historyText(history) {
  const sum = (key) => history.slots.reduce((all, slot) => all + slot[key], 0);
  const changes = sum('changes'), outage = fromNs(sum('outage_ns')), unknown = fromNs(sum('unknown_ns'));
  const parts = [changes === 0 ? 'no change of leader' : count(changes, 'change') + ' of leader'];
  if (changes > 0 || outage > 0) parts.push(`nobody led for ${duration(outage)} in all`);
  if (unknown > 0) parts.push(`for ${duration(unknown)} there was no daemon to ask`);
  return parts.join(', ');
}
