// What the pages of demo and simulator share, besides what all pages of topdog do (topdog.js): drawings, selects, asking once.

import { h, keyed, setAttribute, setText } from '/topdog.js';

// still is whether the reader wants no motion.
export const still = matchMedia('(prefers-reduced-motion: reduce)');

// ask asks for JSON. The error says what is wrong and what to do; if it is a refusal, code is the HTTP status.
export async function ask(url, options) {
  let answer, json;
  try {
    answer = await fetch(url, { cache: 'no-store', ...options });
    json = await answer.json();
  } catch (error) {
    if (error.name === 'AbortError') throw error;
    throw new Error('Nobody answers. Is the program of this page still running?');
  }
  if (!answer.ok) throw Object.assign(new Error([json.error, json.hint].filter(Boolean).join(': ')), { code: answer.status });
  return json;
}

// showText shows a text in its element, which is hidden if there is none.
export function showText(element, text) {
  setText(element, text);
  setAttribute(element, 'hidden', text === '');
}

// options fills a select with [value, text] and keeps what is chosen, if that is still there.
export function options(select, all) {
  const { value } = select;
  keyed(select, all, (o) => o[0], (o) => h('option', { value: o[0] }), (element, o) => setText(element, o[1]));
  if (all.some((o) => String(o[0]) === value)) select.value = value;
}

// svg makes an element of a drawing.
export function svg(tag, attributes, ...children) {
  const element = document.createElementNS('http://www.w3.org/2000/svg', tag);
  for (const [name, value] of Object.entries(attributes ?? {})) element.setAttribute(name, value);
  element.append(...children);
  return element;
}

// cross is the path of a cross around a point.
export const cross = (x, y, r) => `M${x - r} ${y - r}l${2 * r} ${2 * r}m0 ${-2 * r}l${-2 * r} ${2 * r}`;

// Room is where words may stand in a drawing, of which the lines of text are so far apart.
export class Room {
  taken = [];

  constructor(row) { this.row = row; }

  // take takes a place, and reports whether there was room.
  take(left, y, width) {
    const there = (t) => Math.abs(t.y - y) < this.row && t.left < left + width && left < t.left + t.width;
    if (this.taken.some(there)) return false;
    this.taken.push({ left, y, width });
    return true;
  }
}
