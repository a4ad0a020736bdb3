// Where things are: nothing sticks out, nothing is cut off, nothing lies on something else.
{
  const { add, visible, hidden, forReader, texts, controls } = rules;
  const slack = 1; // pixel, for what is rounded

  add('sideways', function* () {
    const page = document.scrollingElement;
    if (page.scrollWidth <= innerWidth) return;
    for (const e of document.body.querySelectorAll('*')) {
      const box = e.getBoundingClientRect();
      if (box.right > innerWidth + slack && !forReader(e) && !clipped(e.parentElement) && ![...e.children].some((c) => c.getBoundingClientRect().right > innerWidth + slack)) {
        yield [e, `reaches ${Math.round(box.right)} px to the right, and the window ${innerWidth}`];
      }
    }
    yield [page, `is ${page.scrollWidth} px wide, and the window ${innerWidth}`];
  });

  // clipped is the box that scrolls or cuts what is in the element, if there is one.
  function clipped(element) {
    for (let e = element; e && e !== document.body; e = e.parentElement) {
      if (getComputedStyle(e).overflowX !== 'visible') return e;
    }
    return null;
  }

  // frame is the nearest box around an element that people see as one.
  function frame(element) {
    for (let e = element; e && e !== document.body; e = e.parentElement) {
      const s = getComputedStyle(e);
      if (s.display === 'inline' || e.ownerSVGElement) continue;
      if (parseFloat(s.borderLeftWidth) > 0 || rules.colour(s.backgroundColor)[3] > 0 || e.localName === 'svg') return e;
    }
    return document.body;
  }

  add('spilled text', function* () {
    for (const { element, rects } of texts()) {
      if (clipped(element)) continue;
      const box = frame(element).getBoundingClientRect();
      const out = rects.find((r) => r.right > box.right + slack || r.left < box.left - slack || r.bottom > box.bottom + 4 || r.top < box.top - 4);
      if (out) yield [element, `text at ${place(out)} sticks out of its box at ${place(box)}`];
    }
  });

  add('cut text', function* () {
    const done = new Set();
    for (const { element, rects } of texts()) {
      const box = clipped(element);
      if (!box || (element.closest('[role=img]') && !element.ownerSVGElement)) continue; // what moves through a picture is cut at its edges
      const s = getComputedStyle(box), limit = box.getBoundingClientRect();
      if (['auto', 'scroll'].includes(s.overflowX) || done.has(box)) continue;
      if (rects.some((r) => r.right > limit.right + slack || r.left < limit.left - slack || r.bottom > limit.bottom + 4)) {
        done.add(box);
        yield [element, 'is cut off'];
      }
    }
  });

  // A word that is not longer than a name of a board is not broken in its middle.
  add('broken words', function* () {
    const longest = 15;
    for (const { element, node, rects } of texts()) {
      if (rects.length < 2 || element.ownerSVGElement) continue;
      for (const { 0: word, index } of node.data.matchAll(/[^\s\u00ad\u200b\-/.:_]+/g)) {
        if (word.length > longest) continue;
        const range = document.createRange();
        range.setStart(node, index);
        range.setEnd(node, index + word.length);
        const lines = new Set([...range.getClientRects()].filter((r) => r.width > 0).map((r) => Math.round(r.top)));
        if (lines.size > 1) yield [element, `breaks the word "${word}"`];
      }
    }
  });

  const place = (r) => `${Math.round(r.left)},${Math.round(r.top)} to ${Math.round(r.right)},${Math.round(r.bottom)}`;

  // What lies on top of the page on purpose is compared with itself alone.
  const layer = (element) => {
    for (let e = element; e && e !== document.body; e = e.parentElement) {
      if (['fixed', 'sticky'].includes(getComputedStyle(e).position) || e.matches('dialog[open]')) return e;
    }
    return null;
  };

  add('overlapping text', function* () {
    const all = texts().flatMap(({ element, rects, text }) => rects.map((r) => ({ element, r: letters(r, text), on: layer(element), within: clipped(element) })))
      .map((t) => ({ ...t, r: t.within ? cut(t.r, t.within.getBoundingClientRect()) : t.r })).filter((t) => t.r)
      .sort((a, b) => a.r.top - b.r.top);
    for (let i = 0; i < all.length; i++) {
      for (let k = i + 1; k < all.length && all[k].r.top < all[i].r.bottom; k++) {
        const a = all[i], b = all[k];
        const wide = Math.min(a.r.right, b.r.right) - Math.max(a.r.left, b.r.left);
        const high = Math.min(a.r.bottom, b.r.bottom) - b.r.top;
        if (a.element !== b.element && a.on === b.on && wide > 2 && high > 2) yield [b.element, `lies on ${rules.describe(a.element)}`];
      }
    }
  });

  // letters is where the letters are: the box of a line has room for accents, and for what reaches below the line.
  function letters(r, text) {
    const top = r.top + 0.14 * r.height, bottom = r.bottom - (/[gjpqyQ,;()[\]@|/]/.test(text) ? 0 : 0.19 * r.height);
    return { left: r.left, right: r.right, top, bottom };
  }

  function cut(r, box) {
    const left = Math.max(r.left, box.left), right = Math.min(r.right, box.right);
    const top = Math.max(r.top, box.top), bottom = Math.min(r.bottom, box.bottom);
    return right > left && bottom > top ? { left, right, top, bottom } : null;
  }

  add('overlapping boxes', function* () {
    for (const parent of document.body.querySelectorAll('*')) {
      if (parent.ownerSVGElement || parent.localName === 'svg') continue;
      const boxes = [...parent.children].filter((e) => {
        const s = getComputedStyle(e);
        return ['static', 'relative'].includes(s.position) && !s.display.startsWith('inline') && s.float === 'none' && visible(e);
      }).map((e) => [e, e.getBoundingClientRect()]);
      for (let i = 0; i < boxes.length; i++) {
        for (let k = i + 1; k < boxes.length; k++) {
          const [, a] = boxes[i], [e, b] = boxes[k];
          const wide = Math.min(a.right, b.right) - Math.max(a.left, b.left), high = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
          if (wide > slack && high > slack) yield [e, `lies on the ${boxes[i][0].localName} before it`];
        }
      }
    }
  });

  // A finger needs 24 pixels (2.5.8). A link in a sentence is as high as its line.
  add('small targets', function* () {
    for (const e of controls()) {
      if (hidden(e) || forReader(e) || e.disabled) continue;
      if (e.localName === 'a' && getComputedStyle(e).display === 'inline') continue;
      const boxes = [e, ...(e.labels ?? [])].map((l) => l.getBoundingClientRect());
      const wide = Math.max(...boxes.map((b) => b.width)), high = Math.max(...boxes.map((b) => b.height));
      if (e.scrollWidth > e.clientWidth && !e.matches('button, a, input, select, textarea')) continue; // it is there to be scrolled
      if (wide < 24 || high < 24) yield [e, `is ${Math.round(wide)} × ${Math.round(high)} px, and needs 24`];
    }
  });
}
