// What happens on a page while it is open. It runs before the page's own scripts.
//
//   watch.begin()        forgets what has been
//   watch.shifts         what has jumped without anybody having touched it: [{ value, what }]
//   watch.said           what screen readers were told unasked: texts of live regions that changed
//   watch.follow(state)  notes when what state() returns changes: watch.states is [{ at, state }], at as
//                        of Date.now(), with fractions of milliseconds

globalThis.watch = (() => {
  const it = { shifts: [], said: [], states: [], begin, follow };

  function begin() { it.shifts.length = it.said.length = 0; }

  const words = (node) => `${node?.nodeType === Node.TEXT_NODE ? node.parentElement?.localName : node?.localName ?? 'nothing'}` +
    ` "${(node?.textContent ?? '').trim().replace(/\s+/g, ' ').slice(0, 40)}"`;

  new PerformanceObserver((list) => {
    for (const e of list.getEntries()) {
      if (e.hadRecentInput) continue;
      const what = e.sources.map((s) => `${words(s.node)} from ${place(s.previousRect)} to ${place(s.currentRect)}`).join('; ');
      it.shifts.push({ value: e.value, what });
    }
  }).observe({ type: 'layout-shift', buffered: true });

  const place = (r) => `${r.x},${r.y} ${r.width}×${r.height}`;

  const live = '[aria-live]:not([aria-live=off]), [role=status], [role=alert], [role=log], output';
  new MutationObserver((changes) => {
    const regions = new Set(changes.map((c) => (c.target instanceof Element ? c.target : c.target.parentElement)?.closest(live)));
    for (const region of regions) if (region) it.said.push(region.textContent.trim().replace(/\s+/g, ' '));
  }).observe(document, { subtree: true, childList: true, characterData: true });

  function follow(state) {
    let last;
    it.states.length = 0;
    const look = () => {
      const now = state();
      if (now !== last) it.states.push({ at: performance.timeOrigin + performance.now(), state: now });
      last = now;
    };
    new MutationObserver(look).observe(document, { subtree: true, childList: true, characterData: true, attributes: true });
    look();
  }

  return it;
})();
