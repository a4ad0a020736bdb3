// The page of a board: asks for its status twice a second, and says when no answer comes. show.js
// shows what it is told.

import { at, duration, get, poll, setAttribute, setText } from '/topdog.js';
import { showGroups, showHistory, showNothing, showStatus } from '/show.js';
import { nameOf } from '/status.js';

const EVERY_MS = 500;          // between the beginnings of two requests
const GIVE_UP_MS = 700;        // a board that has died leaves a connection that stays silent
const HISTORY_EVERY_MS = 30_000;
const HISTORY_AGAIN_MS = 2000; // after a change of leader, when it is known how long nobody led
const RESTED_MS = 1500;        // what a page shows is out of date if it was hidden for longer
const OTHERS_EVERY_MS = 1000;  // the other groups of a board that has several
const SILENT_MS = 3000;        // a takeover is over by then, so a person should know

const page = at('page');

// groups are the names of the groups of this board; none if it has only one.
const groups = await askGroups() ?? [];
const asked = new URLSearchParams(location.search).get('group');
const chosen = groups.includes(asked) ? asked : groups[0];
const statuses = new Map(); // of all groups
const of = (path, group = chosen) => path + (group === undefined ? '' : `?group=${encodeURIComponent(group)}`);

const known = {
  status: null, statusAt: 0,
  historyDue: 0, historyFor: '', othersDue: 0,
  answeredAt: performance.now(), // when the last answer of any kind came, or when the page began to ask
  silent: false,                 // the last request was not answered
  assets: '',                    // the version of this page's files, as the first answer had it
};

function toast(title = '', text = '', reload = false) {
  setAttribute(at('toast'), 'hidden', title === '');
  setAttribute(at('reload'), 'hidden', !reload);
  setText(at('toast-title'), title);
  setText(at('toast-text'), text);
}

function contact(state, text) {
  setAttribute(page, 'data-state', state);
  setText(at('contact'), text);
}

async function askGroups() {
  const names = await get('/v1/groups', { giveUp: GIVE_UP_MS }).then(({ json }) => json?.groups, () => undefined);
  return names?.length < 2 ? [] : names;
}

// regroup loads this page anew if the daemon has other groups now.
async function regroup() {
  const now = await askGroups();
  if (now && now.join() !== groups.join()) location.reload();
}

// showStrip shows all groups. The next request for the status waits for it.
async function showStrip(own) {
  statuses.set(chosen, own);
  if (performance.now() >= known.othersDue) {
    known.othersDue = performance.now() + OTHERS_EVERY_MS;
    for (const name of groups) {
      if (name === chosen) continue;
      const { code, json } = await get(of('/v1/status', name), { giveUp: GIVE_UP_MS }).catch(() => ({}));
      statuses.set(name, json?.board && json);
      if (code === 404) regroup();
    }
  }
  showGroups(groups, statuses, chosen);
}

async function answered(answer) {
  const used = await show(answer);
  if (groups.length) await showStrip(used !== false && known.status);
  return used;
}

async function show({ code, json, headers }) {
  known.answeredAt = performance.now();
  const assets = headers.get('Topdog-Page') ?? '';
  known.assets ||= assets;
  known.silent = false;
  if (code === 200 && json?.board) {
    known.status = json;
    known.statusAt = known.answeredAt;
  } else if (code !== 304 || !known.status) {
    if (code === 400 || code === 404) regroup();
    refused(json?.error ?? `the answer has the HTTP status ${code}`, json?.hint ?? '');
    return false;
  }
  try {
    showStatus(known.status, performance.now() - known.statusAt);
  } catch (error) {
    console.error(error);
    refused('this page cannot show what the board says', 'The board may be of another version: reload the page.');
    return false;
  }
  contact('fresh', `${nameOf(known.status, known.status.board.id)} answers`);
  if (assets !== '' && assets !== known.assets) toast('This page is outdated', 'The board that answers has another version of it.', true);
  else toast();
  await askHistory();
}

// refused shows what the page's process answered instead of a status.
function refused(error, hint) {
  contact('old', 'no status');
  if (known.status) toast(error, hint);
  else showNothing(hint ? `${error}: ${hint}` : error);
}

function failed() {
  known.silent = true;
  showSilence();
}

// showSilence says for how long there was no answer. It is called between two requests as well.
function showSilence() {
  const silent = performance.now() - known.answeredAt;
  contact('old', `no answer for ${duration(Math.max(100, Math.round(silent / 100) * 100))}`);
  if (silent < SILENT_MS) return;
  document.title = 'no answer · topdog';
  if (known.status) toast('No answer', 'What you see is what the board said last. The page goes on asking.');
  else showNothing('the board of this page does not answer: is it on, and on this network?');
}

// askHistory asks for the history now and then, and after a change of leader. The next request
// for the status waits for it, so there is one at a time.
async function askHistory() {
  const now = performance.now(), about = `${known.status.board.id} ${known.status.leader} ${known.status.term}`;
  const changed = about !== known.historyFor;
  if (!changed && now < known.historyDue) return;
  [known.historyDue, known.historyFor] = [now + (changed ? HISTORY_AGAIN_MS : HISTORY_EVERY_MS), about];
  try {
    const { code, json } = await get(of('/v1/history'), { giveUp: GIVE_UP_MS });
    if (code === 200 && json?.slots) showHistory(json, known.status);
  } catch {
    known.historyFor = ''; // the next answer asks again
  }
}

at('reload').addEventListener('click', () => location.reload());
document.addEventListener('visibilitychange', () => {
  const now = performance.now();
  if (document.hidden || now - known.answeredAt < RESTED_MS) return;
  known.answeredAt = now; // nobody was asked, so nobody was silent
  contact('old', 'asking');
});
setInterval(() => { if (known.silent && !document.hidden) showSilence(); }, 100);
poll(of('/v1/status'), { every: EVERY_MS, giveUp: GIVE_UP_MS, answered, failed });
