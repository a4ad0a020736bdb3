// What all pages of topdog share. Nothing here keeps a state.

// ---- elements ----

export const at = (id) => document.getElementById(id);

// h makes an element: h('p', { class: 'soft' }, 'term ', h('b', null, '7')). Attributes that
// are null or false are left out, and those that begin with "on" are listeners. Texts become
// text nodes, never markup.
export function h(tag, attributes, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (name.startsWith('on')) element.addEventListener(name.slice(2), value);
    else setAttribute(element, name, value);
  }
  element.append(...children.filter((child) => child !== null && child !== undefined));
  return element;
}

// setAttribute changes an attribute if it differs. null and false remove it, true makes it empty.
export function setAttribute(element, name, value) {
  if (value === null || value === undefined || value === false) element.removeAttribute(name);
  else if (element.getAttribute(name) !== (value === true ? '' : String(value))) {
    element.setAttribute(name, value === true ? '' : value);
  }
}

// setText changes the text of an element if it differs, so that selected text stays selected. A
// line may end behind each colon of an IPv6 address.
export function setText(element, text) {
  if (element.textContent === text) return;
  const [first, ...parts] = String(text).split(/(?<=[\da-f:]:)(?=[\da-f])/);
  element.replaceChildren(first, ...parts.flatMap((part) => [h('wbr'), part]));
}

// keyed has a child of parent for each item. It stays the same as long as key(item) does: it is made
// by create(item), and update(element, item) is called each time. A move restarts animations.
export function keyed(parent, items, key, create, update) {
  const known = new Map([...parent.children].map((element) => [element.dataset.key, element]));
  const wanted = new Set(items.map((item) => String(key(item))));
  for (const [name, element] of known) if (!wanted.has(name)) element.remove();
  let at = parent.firstElementChild;
  for (const item of items) {
    const name = String(key(item));
    let element = known.get(name);
    if (!element) {
      element = create(item);
      element.dataset.key = name;
    }
    known.delete(name); // A key that comes twice gets a second element.
    update(element, item);
    if (element === at) at = at.nextElementSibling;
    else parent.insertBefore(element, at);
  }
  while (at) {
    const next = at.nextElementSibling;
    at.remove();
    at = next;
  }
}

// ---- words and numbers; as internal/console/text_units.go has them ----

const SECOND = 1000, MINUTE = 60 * SECOND, HOUR = 60 * MINUTE, DAY = 24 * HOUR;
const SPACE = '\u00a0'; // keeps a number and its unit on one line

export function duration(ms) {
  if (!(ms >= 0 && ms <= 1000 * 365 * DAY)) return 'unknown';
  const two = (unit, part, unitName, partName) => {
    const n = Math.floor(ms / unit), rest = Math.floor((ms - n * unit) / part);
    return `${n}${SPACE}${unitName}` + (rest > 0 ? `${SPACE}${rest}${SPACE}${partName}` : '');
  };
  if (ms < 10) return decimal(ms) + SPACE + 'ms';
  if (ms < 999.5) return Math.round(ms) + SPACE + 'ms';
  if (ms < 10 * SECOND) return decimal(ms / SECOND) + SPACE + 's';
  if (ms < MINUTE) return Math.floor(ms / SECOND) + SPACE + 's';
  if (ms < HOUR) return two(MINUTE, SECOND, 'min', 's');
  if (ms < DAY) return two(HOUR, MINUTE, 'h', 'min');
  return two(DAY, HOUR, 'd', 'h');
}

export function ago(ms) {
  const text = duration(ms);
  return text === 'unknown' ? text : text + SPACE + 'ago';
}

// fromNs makes milliseconds of a _ns value of the JSON; null stays null.
export function fromNs(ns) { return typeof ns === 'number' ? ns / 1e6 : null; }

export function decimal(x) { return String(Math.round(x * 10) / 10); }

// percent never says 0 % of what has happened.
export function percent(p) {
  if (!(p >= 0 && p <= 100)) return 'unknown';
  if (p > 0 && p < 0.05) return `less than 0.1${SPACE}%`;
  return decimal(p) + SPACE + '%';
}

export function list(words) {
  return words.length < 2 ? words.join('') : words.slice(0, -1).join(', ') + ' and ' + words.at(-1);
}

export function count(n, one, many = one + 's') { return `${n}${SPACE}${n === 1 ? one : many}`; }

// ---- the light of a board; topdog.css has its patterns ----

const PATTERNS = {
  off: 'dark',
  follower: 'a short blink every 2 s',
  election: 'a quick flicker',
  leader: 'lit, with a short gap every second',
  fault: 'three blinks and a pause',
};

const PATTERN_OF_ROLE = {
  leader: 'leader', follower: 'follower', heir: 'follower',
  candidate: 'election', listener: 'election', isolated: 'fault', barred: 'fault',
};

// patternOfRole is what the light of a board with this role shows; 'off' if the role is not known.
export function patternOfRole(role) { return PATTERN_OF_ROLE[role] ?? 'off'; }

// light makes the light of a board, dark at first. Class 'large' is for one that is seen from afar.
export function light(className = '') {
  return showLight(h('span', { class: `light ${className}`.trim(), role: 'img' }), 'off');
}

// showLight has a light show a pattern: 'off', 'follower', 'election', 'leader' or 'fault'.
export function showLight(element, pattern) {
  const known = PATTERNS[pattern] ? pattern : 'fault';
  setAttribute(element, 'data-pattern', known);
  setAttribute(element, 'aria-label', `light: ${PATTERNS[known]}`);
  return element;
}

// ---- asking again and again ----

// poll asks url for JSON every so many milliseconds, one request at a time, and gives each up
// after giveUp milliseconds. A hidden page asks nothing, and one that is shown again asks at once.
// answered({ code, json, headers }) returns false if it cannot use the answer; json is null for 304
// (as before), and if the body is not JSON. The next request waits for answered and failed(error).
export function poll(url, { every = 500, giveUp = 700, answered, failed }) {
  let timer = 0, busy = false, etag = '';
  const ask = async () => {
    if (busy || document.hidden) return;
    busy = true;
    clearTimeout(timer);
    const began = performance.now();
    try {
      const [answer, error] = await get(url, { giveUp, etag }).then((it) => [it], (why) => [null, why]);
      if (answer) {
        const tag = answer.code === 304 ? etag : answer.headers.get('ETag') ?? '';
        etag = ''; // an answer that was not used must come again in full, and not as "not modified"
        if (await answered(answer) !== false) etag = tag;
      } else {
        await failed(error);
      }
    } finally {
      busy = false;
      timer = setTimeout(ask, Math.max(0, began + every - performance.now()));
    }
  };
  document.addEventListener('visibilitychange', ask);
  ask();
}

// get asks url for JSON once, and rejects if the whole answer has not come within giveUp milliseconds.
export async function get(url, { giveUp = 700, etag = '' } = {}) {
  const abort = new AbortController();
  const timer = setTimeout(() => abort.abort(), giveUp);
  try {
    const answer = await fetch(url, {
      cache: 'no-store', signal: abort.signal, headers: etag ? { 'If-None-Match': etag } : {},
    });
    const text = await answer.text();
    return { code: answer.status, json: parse(text), headers: answer.headers };
  } finally {
    clearTimeout(timer);
  }
}

function parse(text) {
  try {
    const value = JSON.parse(text);
    return value !== null && typeof value === 'object' ? value : null;
  } catch {
    return null;
  }
}
