// What stands beside the diagram: counts, the figures of the papers, what is said of the
// algorithm, and the list of steps.

import { at, h, setAttribute, setText } from '/topdog.js';
import { showText } from '/lab.js';
import { counted, since } from '/model.js';

const cells = (...texts) => texts.map((text) => h('td', null, text));

// showResult shows what does not change from step to step.
export function showResult(run) {
  setText(at('result'), run.end.text);
  setAttribute(at('result'), 'data-agreed', String(run.end.agreed));
  setText(at('command'), run.command);

  const rows = run.report.messages.filter((m) => !m.routine);
  at('counts').replaceChildren(...rows.map((m) => h('tr', { 'data-kind': m.kind },
    h('th', { scope: 'row' }, m.kind.replaceAll('_', ' ')), ...cells('0', String(m.live + m.dead), String(m.dead), String(m.packets)))));
  const sum = (of) => String(rows.reduce((all, m) => all + of(m), 0));
  at('sum').replaceChildren(h('tr', null, h('th', { scope: 'row' }, 'all'),
    ...cells('0', sum((m) => m.live + m.dead), sum((m) => m.dead), sum((m) => m.packets))));

  setAttribute(at('figures-table'), 'hidden', run.figures.length === 0);
  at('figures').replaceChildren(...run.figures.map((f) => h('tr', null, ...cells(f.source_text, f.counted_text),
    h('td', null, f.corrected ? `${f.published} (misprint of ${f.corrected})` : f.published),
    h('td', { class: f.equal ? 'equal' : 'differs' }, h('b', null, `${f.measured} ${f.equal ? '=' : '≠'}`)))));
  setText(at('no-figure'), run.no_figure_text ?? '');
  const conventions = [...new Set(run.figures.map((f) => f.convention_text))];
  setText(at('convention'), conventions.length ? `How they count: ${conventions.join('; ')}. “=” is the same figure, “≠” another one.` : '');
}

// showSoFar counts until a step of the run.
export function showSoFar(run, index) {
  const counts = counted(run, index);
  let all = 0;
  for (const row of at('counts').children) {
    const n = counts.get(row.dataset.kind) ?? 0;
    all += n;
    setText(row.children[1], String(n));
    row.classList.toggle('none', n === 0);
  }
  setText(at('sum').querySelector('td'), String(all));
}

export function showAbout(algorithm) {
  setText(at('about-title'), `The algorithm ${algorithm.name}`);
  setText(at('idea'), algorithm.idea_text);
  at('about-steps').replaceChildren(...algorithm.steps_text.map((text) => h('li', null, text)));
  for (const name of ['leads', 'cost', 'weakness', 'paper']) setText(at(name), algorithm[`${name}_text`]);
}

// showSteps lists all steps. go(k) is called when somebody chooses one.
export function showSteps(view, go) {
  at('steps').replaceChildren(...view.steps.map((step, k) => h('li', null,
    h('button', { type: 'button', onclick: () => go(k) },
      h('span', { class: 'when numbers soft' }, `${since(view.run, step.at_ns)} ms`), h('span', null, step.text)))));
  showText(at('missed'), view.run.missed === 0 ? '' : `There were ${view.run.missed} more, which are not shown.`);
}

// showStep marks a step in the list, and has the list show it without moving the page.
export function showStep(k) {
  const steps = at('steps');
  const old = steps.querySelector('[aria-current]');
  const now = steps.children[k]?.firstChild;
  if (old === now) return;
  old?.removeAttribute('aria-current');
  if (!now) return;
  now.setAttribute('aria-current', 'step');
  const { offsetTop, offsetHeight } = now.parentElement;
  if (offsetTop < steps.scrollTop || offsetTop + offsetHeight > steps.scrollTop + steps.clientHeight) {
    steps.scrollTop = offsetTop - steps.clientHeight / 3;
  }
}
