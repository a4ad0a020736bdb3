// Rules that every page keeps, for people who see little or nothing, use no mouse, or have a small
// screen. Each looks at the document as it is, in the browser that shows it, and yields what
// breaks it: [element, words]. The numbers are those of WCAG 2.2, level AA.
//
//   rules.check()             all findings: [{ rule, where, what }]
//   rules.before(), .focus()  for the walk with the Tab key: see keyboard.js

globalThis.rules = (() => {
  const all = new Map();

  function add(name, find) { all.set(name, find); }

  function check() {
    const findings = [];
    forget();
    for (const [rule, find] of all) {
      for (const [element, what] of find()) findings.push({ rule, where: describe(element), what });
    }
    return findings;
  }

  // describe names an element for people: its place, and the beginning of its text.
  function describe(element) {
    const steps = [];
    for (let e = element; e && e !== document.documentElement && steps.length < 4; e = e.parentElement) {
      const classes = [...e.classList].map((c) => '.' + c).join('');
      steps.unshift(e.localName + (e.id ? '#' + e.id : classes));
    }
    const text = (element?.textContent ?? '').trim().replace(/\s+/g, ' ').slice(0, 50);
    return (steps.join(' > ') || 'html') + (text ? ` "${text}"` : '');
  }

  // forReader reports whether only screen readers are told what is in the element.
  function forReader(element) {
    for (let e = element; e; e = e.parentElement) {
      const s = getComputedStyle(e);
      if (s.clipPath === 'inset(50%)' || s.clip === 'rect(0px, 0px, 0px, 0px)') return true;
    }
    return false;
  }

  // visible reports whether people can see the element, if they scroll to it.
  function visible(element) {
    if (!element.checkVisibility({ opacityProperty: true, visibilityProperty: true })) return false;
    const box = element.getBoundingClientRect();
    return box.width > 0 && box.height > 0 && !forReader(element);
  }

  // hidden reports whether screen readers are told nothing of the element.
  function hidden(element) {
    return !element.checkVisibility({ visibilityProperty: true }) || element.closest('[aria-hidden="true"], [inert]') !== null;
  }

  let known;
  function forget() { known = undefined; }

  // texts are the texts that people see: [{ element, node, text, rects }], rects are where.
  function texts() { return (known ??= findTexts()); }

  function findTexts() {
    const found = [], walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    for (let node = walk.nextNode(); node; node = walk.nextNode()) {
      const element = node.parentElement;
      if (!node.data.trim() || element.closest('script, style, noscript, template, option, title, desc') || !visible(element)) continue;
      const range = document.createRange();
      range.selectNodeContents(node);
      const rects = [...range.getClientRects()].filter((r) => r.width > 0.5 && r.height > 0.5);
      if (rects.length > 0) found.push({ element, node, rects, text: node.data.trim() });
    }
    return found;
  }

  // controls are the elements that people act on.
  function controls() {
    const selector = 'a[href], button, input:not([type=hidden]), select, textarea, summary, [tabindex], [contenteditable], ' +
      '[role=button], [role=link], [role=checkbox], [role=radio], [role=switch], [role=tab], [role=slider], [role=menuitem], [role=option]';
    return [...document.querySelectorAll(selector)].filter((e) => e.tabIndex >= 0 || e.matches('[role]'));
  }

  return { add, names: () => [...all.keys()], check, describe, visible, hidden, forReader, texts, controls };
})();
