// What a document is made of, as screen readers tell it.
{
  const { add, hidden, controls, texts } = rules;
  const queryAll = (selector) => [...document.querySelectorAll(selector)];

  add('language', function* () {
    if (!/^[a-z]{2,3}(-|$)/.test(document.documentElement.lang)) yield [document.documentElement, 'has no lang'];
  });

  add('title', function* () {
    if (!document.title.trim()) yield [document.documentElement, 'has no title'];
  });

  add('zoom', function* () {
    const viewport = document.querySelector('meta[name=viewport]');
    if (!viewport) yield [document.documentElement, 'has no meta viewport, so that a phone shows it small'];
    else if (/user-scalable\s*=\s*(no|0)|maximum-scale\s*=\s*1(\.0*)?\s*(,|$)/.test(viewport.content)) yield [viewport, 'forbids to zoom'];
  });

  add('headings', function* () {
    const headings = queryAll('h1, h2, h3, h4, h5, h6').filter((e) => !hidden(e));
    const first = headings.filter((e) => e.localName === 'h1');
    if (first.length !== 1) yield [document.body, `has ${first.length} h1, and not 1`];
    let level = 0;
    for (const e of headings) {
      const own = Number(e.localName[1]);
      if (own > level + 1) yield [e, `follows a heading of level ${level}`];
      if (!e.textContent.trim()) yield [e, 'is an empty heading'];
      level = own;
    }
  });

  add('landmarks', function* () {
    const main = queryAll('main, [role=main]').filter((e) => !hidden(e));
    if (main.length !== 1) yield [document.body, `has ${main.length} main, and not 1`];
    const landmark = 'main, header, footer, nav, aside, dialog, section, form, [role=banner], [role=main], [role=navigation], ' +
      '[role=contentinfo], [role=complementary], [role=region], [role=search], [role=dialog]';
    for (const { element } of texts()) {
      if (!element.closest(landmark)) yield [element, 'is in no landmark'];
    }
    for (const tag of ['nav', 'aside']) {
      const same = queryAll(tag).filter((e) => !hidden(e));
      for (const e of same) if (same.length > 1 && !e.computedName) yield [e, `is one of several ${tag} and has no name`];
    }
  });

  add('ids', function* () {
    const known = new Set();
    for (const e of queryAll('[id]')) {
      if (known.has(e.id)) yield [e, `has the id ${e.id} a second time`];
      known.add(e.id);
    }
    for (const name of ['aria-labelledby', 'aria-describedby', 'aria-controls', 'aria-details', 'aria-activedescendant', 'for', 'list']) {
      for (const e of queryAll(`[${name}]`)) {
        for (const id of e.getAttribute(name).split(/\s+/)) if (id && !known.has(id)) yield [e, `${name} names ${id}, which does not exist`];
      }
    }
  });

  // computedName and computedRole are what chromium tells screen readers.
  add('names', function* () {
    for (const e of controls()) {
      if (!hidden(e) && !e.computedName.trim()) yield [e, `is a ${e.computedRole || e.localName} without a name`];
    }
    for (const e of queryAll('input:not([type=hidden], [type=button], [type=submit]), select, textarea')) {
      // A placeholder is gone as soon as something is entered.
      if (!hidden(e) && !e.labels.length && !e.hasAttribute('aria-label') && !e.hasAttribute('aria-labelledby')) yield [e, 'is a field without a label'];
    }
    for (const e of queryAll('[role=group], [role=region], [role=dialog], dialog, table, fieldset')) {
      if (!hidden(e) && !e.computedName.trim()) yield [e, `is a ${e.computedRole || e.localName} without a name`];
    }
  });

  // A picture of many parts is one, or its parts are.
  add('pictures', function* () {
    for (const e of queryAll('img, svg, canvas, video, object, [role=img], [role=meter], [role=progressbar], progress, meter')) {
      if (hidden(e) || e.parentElement.closest('svg, [role=img]')) continue;
      if (e.matches('img[alt=""]')) continue; // says that it is an ornament
      if (!e.computedName.trim()) yield [e, 'is a picture without words, and not marked as an ornament'];
      else if (e.localName === 'svg' && !['img', 'image', 'group', 'graphics-document'].includes(e.computedRole)) yield [e, `has a name, and the role "${e.computedRole}" that nobody reads`];
    }
  });

  // A name on an element that has no role is not read.
  add('nameless roles', function* () {
    for (const e of queryAll('span[aria-label], div[aria-label], p[aria-label], i[aria-label], b[aria-label], dd[aria-label], dt[aria-label]')) {
      if (!e.hasAttribute('role') && !hidden(e)) yield [e, 'has an aria-label and no role, so that it is not read'];
    }
  });

  add('lists', function* () {
    for (const e of queryAll('li')) if (!e.parentElement.matches('ul, ol, menu, [role=list]')) yield [e, 'is in no list'];
    for (const e of queryAll('ul > *, ol > *')) if (!e.matches('li, script, template')) yield [e, 'is in a list and no item'];
    for (const e of queryAll('dt, dd')) if (!e.closest('dl')) yield [e, 'is in no dl'];
    for (const e of queryAll('th')) if (!e.scope && !hidden(e)) yield [e, 'has no scope'];
  });

  // What the keyboard reaches must not be kept from screen readers.
  add('hidden controls', function* () {
    for (const e of controls()) {
      if (e.closest('[aria-hidden="true"]') && e.checkVisibility({ visibilityProperty: true }) && !e.disabled) yield [e, 'can be focused and is aria-hidden'];
    }
  });

  add('order', function* () {
    for (const e of queryAll('[tabindex]')) if (e.tabIndex > 0) yield [e, `has the tabindex ${e.tabIndex}`];
  });
}
