// The walk with the Tab key, which the test presses: everything that one can act on is reached, and
// one sees where one is.
//
//   rules.before()   notes how all looks without the focus
//   rules.focus()    after each Tab: { over, findings }, over when all has been visited
{
  const { controls, hidden, visible, describe } = rules;
  const looks = ['outlineStyle', 'outlineWidth', 'outlineColor', 'boxShadow', 'borderTopColor', 'backgroundColor'];
  let plain, left, visited;

  const look = (e) => {
    const style = getComputedStyle(e);
    return Object.fromEntries(looks.map((name) => [name, style[name]]));
  };

  // Of several radio buttons with one name, Tab reaches one.
  const group = (e) => (e.type === 'radio' && e.name ? document.querySelector(`input[type=radio][name="${CSS.escape(e.name)}"]`) : e);

  rules.before = () => {
    const start = document.createElement('span'); // Tab goes on from where the focus, or a click, was last
    start.tabIndex = -1;
    document.body.prepend(start);
    start.focus();
    start.remove();
    getSelection().removeAllRanges();
    scrollTo(0, 0);
    plain = new Map();
    for (const e of document.body.querySelectorAll('*')) plain.set(e, look(e));
    left = new Set(controls().filter((e) => e.tabIndex >= 0 && !e.disabled && !hidden(e)).map(group));
    visited = new Set();
    return left.size;
  };

  rules.focus = () => {
    const e = document.activeElement, findings = [];
    const finding = (rule, element, what) => findings.push({ rule, where: describe(element), what });
    if (!e || e === document.body || visited.has(e)) {
      for (const missed of left) finding('keyboard', missed, 'is not reached with the Tab key');
      return { over: true, findings };
    }
    visited.add(e);
    left.delete(group(e));
    if (!visible(e)) finding('keyboard', e, 'has the focus and is not to be seen');
    else if (!seenFocus(e)) finding('focus', e, 'does not show that it has the focus');
    return { over: false, findings };
  };

  // An outline of 2 px with a contrast of 3 will do (2.4.7, 2.4.13), or another shadow.
  function seenFocus(e) {
    const before = plain.get(e), now = look(e);
    if (!before) return false; // it was made since
    const outlined = now.outlineStyle !== 'none' && parseFloat(now.outlineWidth) >= 2 && now.outlineWidth + now.outlineStyle !== before.outlineWidth + before.outlineStyle;
    const around = rules.seen(e.parentElement);
    if (outlined) return rules.contrast(rules.over(around, rules.colour(now.outlineColor)), around) >= 3;
    return now.boxShadow !== before.boxShadow && now.boxShadow !== 'none';
  }
}
