// What of a run is shown: which steps, in which words, and where they are on the axis of time.
// Nothing here touches the page.

import { list } from '/topdog.js';

// CLASS says what a kind of message is for, which is its colour.
const CLASS = {
  ELECTION: 'ask', QUERY: 'ask', QUERY_HANDOVER: 'ask', COLLECT: 'ask', VOTE: 'ask', HALT: 'ask', START: 'ask',
  COORDINATOR: 'claim', LEADER: 'claim', RESIGN: 'claim', RIVAL: 'claim',
};

export function classOf(step) {
  if (step.routine) return 'routine';
  return CLASS[step.message] ?? 'answer';
}

const LEAD_NS = 145_000_000; // one heartbeat, or two

// view chooses the steps of a run that are shown. Heartbeats are many, so of those there are the last
// before the failure and the first of each new leader, unless everything is wanted.
export function view(run, everything) {
  const shown = [];
  const greeted = new Set();
  let hidden = 0;
  run.steps.forEach((step, index) => {
    if (step.kind === 'role' && step.state.role === 'leader') greeted.delete(step.board);
    const before = step.at_ns < run.failed_ns;
    const greets = step.message === 'HEARTBEAT' && (before ? step.at_ns > run.failed_ns - LEAD_NS : !greeted.has(step.board));
    if (step.message === 'HEARTBEAT' && !before) greeted.add(step.board);
    if (!everything && (step.kind === 'look' || ((step.routine || before) && !greets))) {
      hidden++;
      return;
    }
    const last = shown.at(-1);
    if (hidden === 0 && last && follows(last, step)) {
      last.boards.push(step.board);
      last.index = index;
      last.text = together(last);
      return;
    }
    shown.push({ ...step, index, boards: [step.board], hidden });
    hidden = 0;
  });
  return { run, steps: shown, axis: axis(run, shown) };
}

// follows says that two boards do the same at the same time: they follow the same leader from now on.
function follows(a, b) {
  return a.kind === 'role' && b.kind === 'role' && a.at_ns === b.at_ns && a.state.role === 'follower'
    && b.state.role === 'follower' && a.state.leader === b.state.leader && why(a) === why(b);
}

const why = (step) => step.text.slice(step.text.indexOf(': ') + 2);

function together(step) {
  const what = step.state.leader ? `follow board ${step.state.leader}` : 'wait for a leader';
  return `Boards ${ranges(step.boards)} ${what}: ${why(step)}`;
}

// ranges writes boards in their order: "1, 3 to 6".
function ranges(boards) {
  const all = boards.map(Number).sort((a, b) => a - b);
  const words = [];
  for (let i = 0, j; i < all.length; i = j) {
    for (j = i + 1; all[j] === all[j - 1] + 1;) j++;
    words.push(...(j - i > 2 ? [`${all[i]} to ${all[j - 1]}`] : all.slice(i, j)));
  }
  return list(words);
}

// axis places times. All that matters is told apart, whether it takes 0.2 ms or 2 s: a length of time
// is drawn as long as its logarithm. Positions are in units of the diagram.
function axis(run, steps) {
  const times = new Set([run.failed_ns]);
  for (const step of steps) {
    times.add(step.at_ns);
    for (const copy of step.copies ?? []) times.add(copy.at_ns);
  }
  const sorted = [...times].sort((a, b) => a - b);
  const at = [36]; // room for half of the first time, however the axis is stretched
  for (let i = 1; i < sorted.length; i++) {
    at.push(at[i - 1] + 50 + 57 * Math.log10(1 + (sorted[i] - sorted[i - 1]) / 20_000));
  }
  const x = (ns) => {
    let low = 0, high = sorted.length - 1;
    if (ns <= sorted[0]) return at[0];
    if (ns >= sorted[high]) return at[high];
    while (high - low > 1) {
      const middle = (low + high) >> 1;
      if (sorted[middle] <= ns) low = middle; else high = middle;
    }
    return at[low] + (at[high] - at[low]) * (ns - sorted[low]) / (sorted[high] - sorted[low]);
  };
  return { times: sorted, x, end: at.at(-1) };
}

// statesAt are the states of all boards just after a step of the run.
export function statesAt(run, index) {
  const states = new Map(run.lanes.map((lane) => [lane.board, lane.state]));
  for (let i = 0; i <= index; i++) if (run.steps[i].state) states.set(run.steps[i].board, run.steps[i].state);
  return states;
}

// roleOf is the role of a state in a word that people see.
export function roleOf(state) {
  if (!state.running) return 'off';
  if (!state.plugged) return 'no cable';
  if (state.frozen) return 'stands still';
  return { listener: 'listens', candidate: 'election', isolated: 'alone' }[state.role] ?? state.role;
}

// counted are the messages so far by kind, since the counting began and without routine.
export function counted(run, index) {
  const counts = new Map();
  for (let i = 0; i <= index; i++) {
    const step = run.steps[i];
    if (step.kind !== 'message' || step.at_ns < run.from_ns) continue;
    counts.set(step.message, (counts.get(step.message) ?? 0) + (step.to?.length ?? 0));
  }
  return counts;
}

// since is a time of the run in milliseconds after the failure.
export function since(run, ns) {
  return ns === run.failed_ns ? '0' : ((ns - run.failed_ns) / 1e6).toFixed(1).replace('-', '−');
}

// when says the same in words.
export function when(run, ns) {
  const ms = Math.abs(ns - run.failed_ns) / 1e6;
  return ms === 0 ? 'at the failure' : `${ms.toFixed(1)} ms ${ns < run.failed_ns ? 'before' : 'after'} the failure`;
}
