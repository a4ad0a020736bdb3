// What moves by itself.
{
  const { add, describe } = rules;
  const flashArea = 341 * 256 / 4; // pixels that may flash fast (2.3.1), at the same time and in all
  const watched = 3000; // milliseconds

  // The values of a property in the order of time, as numbers that grow with what is seen.
  const brightness = (name, value) => {
    if (name === 'visibility') return value === 'visible' ? 1 : 0;
    if (name === 'opacity') return Number(value);
    const [r, g, b, a] = rules.colour(value);
    return (0.2126 * r + 0.7152 * g + 0.0722 * b) * a;
  };

  // flashes are the times at which an animation gets darker by a tenth or more, in milliseconds.
  function flashes(animation) {
    const timing = animation.effect.getComputedTiming(), frames = animation.effect.getKeyframes(), times = [];
    if (!(timing.duration > 0)) return times;
    for (const name of ['opacity', 'visibility', 'backgroundColor', 'color', 'fill', 'stroke']) {
      const values = frames.filter((f) => f[name] !== undefined).map((f) => [f.computedOffset, brightness(name, f[name])]);
      const drops = values.filter(([, v], i) => values.at(i - 1)[1] - v >= 0.1).map(([at]) => at);
      for (let n = 0; n < timing.iterations && n * timing.duration < watched; n++) {
        for (const at of drops) times.push((n + at) * timing.duration);
      }
    }
    return times.sort((a, b) => a - b);
  }

  // fast reports whether something flashes more than three times in any second.
  const fast = (times) => times.some((at, i) => times[i + 3] !== undefined && times[i + 3] - at < 1000);

  add('flashes', function* () {
    let area = 0, last;
    for (const animation of document.getAnimations()) {
      const target = animation.effect.target;
      if (!target.checkVisibility() || !fast(flashes(animation))) continue;
      const box = target.getBoundingClientRect();
      area += box.width * box.height;
      last = target;
    }
    if (area > flashArea) yield [last, `and others flash more than three times a second on ${Math.round(area)} square pixels, and ${flashArea} may`];
  });

  add('motion', function* () {
    if (!matchMedia('(prefers-reduced-motion: reduce)').matches) return;
    for (const animation of document.getAnimations()) {
      if (animation.playState === 'running') yield [animation.effect.target, `moves (${animation.animationName ?? animation.transitionProperty}) although nobody wants it`];
    }
  });
}
