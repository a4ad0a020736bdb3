// Colours: text against what is behind it, and the edges of fields.
{
  const { add, visible, texts } = rules;
  const canvas = new OffscreenCanvas(1, 1).getContext('2d', { willReadFrequently: true });
  const parsed = new Map();

  // colour is a colour of CSS as [red, green, blue, alpha], each from 0 to 1.
  function colour(css) {
    if (!parsed.has(css)) {
      canvas.clearRect(0, 0, 1, 1);
      canvas.fillStyle = css;
      canvas.fillRect(0, 0, 1, 1);
      parsed.set(css, [...canvas.getImageData(0, 0, 1, 1).data].map((v) => v / 255));
    }
    return parsed.get(css);
  }

  // over is what one sees of a colour in front of an opaque one.
  const over = (under, [r, g, b, a], opacity = 1) => [r, g, b].map((v, i) => under[i] + (v - under[i]) * a * opacity).concat(1);

  const luminance = (c) => {
    const [r, g, b] = c.map((v) => (v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };

  const contrast = (one, other) => {
    const [dark, light] = [luminance(one), luminance(other)].sort((x, y) => x - y);
    return (light + 0.05) / (dark + 0.05);
  };

  const canvasColour = () => (matchMedia('(prefers-color-scheme: dark)').matches &&
    getComputedStyle(document.documentElement).colorScheme.includes('dark') ? [0.07, 0.07, 0.07, 1] : [1, 1, 1, 1]);

  // seen is the colour that an element's own colour, or none, has in the end: the backgrounds and
  // opacities of all that it is in count.
  function seen(element, own = null, extra = []) {
    const chain = [];
    for (let e = element; e; e = e.parentElement) chain.unshift(e);
    const paint = (i, under) => {
      const style = getComputedStyle(chain[i]);
      let c = over(under, colour(style.backgroundColor));
      if (i < chain.length - 1) c = paint(i + 1, c);
      else {
        for (const shape of extra) c = over(c, ...shape);
        if (own) c = over(c, own);
      }
      return over(under, c, Number(style.opacity));
    };
    return paint(0, canvasColour());
  }

  const pictured = (element) => {
    for (let e = element; e; e = e.parentElement) {
      if (getComputedStyle(e).backgroundImage !== 'none') return e;
      if (colour(getComputedStyle(e).backgroundColor)[3] === 1) return null;
    }
    return null;
  };

  // shapesBehind are the filled shapes of a drawing that are below a point.
  function shapesBehind(text, rect) {
    const svg = text.ownerSVGElement, found = [];
    const middle = new DOMPoint(rect.x + rect.width / 2, rect.y + rect.height / 2);
    for (const shape of svg.querySelectorAll('rect, circle, ellipse, path, polygon')) {
      if (!(shape.compareDocumentPosition(text) & Node.DOCUMENT_POSITION_FOLLOWING) || !visible(shape)) continue;
      const style = getComputedStyle(shape);
      if (style.fill === 'none' || !shape.isPointInFill(middle.matrixTransform(shape.getScreenCTM().inverse()))) continue;
      found.push([colour(style.fill), Number(style.fillOpacity) * Number(style.opacity)]);
    }
    const style = getComputedStyle(text); // a halo around the letters
    if (style.paintOrder.startsWith('stroke') && style.stroke !== 'none') found.push([colour(style.stroke), 1]);
    return found;
  }

  function needed(style) {
    const size = parseFloat(style.fontSize), bold = Number(style.fontWeight) >= 700;
    return size >= 24 || (bold && size >= 18.66) ? 3 : 4.5;
  }

  function* readable(element, own, style, extra, what) {
    if (!(element instanceof SVGElement) && pictured(element)) {
      yield [element, `${what} stands on a picture, so that nobody can tell its contrast`];
      return;
    }
    const got = contrast(seen(element, own, extra), seen(element, null, extra));
    if (got < needed(style)) yield [element, `${what} has a contrast of ${got.toFixed(2)}, and needs ${needed(style)}`];
  }

  add('contrast of text', function* () {
    const done = new Set();
    for (const { element, rects } of texts()) {
      const style = getComputedStyle(element), drawn = element instanceof SVGElement;
      if (done.has(element) && !drawn) continue;
      done.add(element);
      yield* readable(element, colour(drawn ? style.fill : style.color), style, drawn ? shapesBehind(element, rects[0]) : [], 'text');
    }
    for (const e of document.querySelectorAll('input, select, textarea')) {
      if (!visible(e) || ['checkbox', 'radio', 'range', 'color', 'hidden'].includes(e.type)) continue;
      const style = getComputedStyle(e), hint = getComputedStyle(e, '::placeholder');
      yield* readable(e, colour(style.color), style, [], 'what is entered');
      if (e.placeholder) yield* readable(e, colour(hint.color), hint, [], 'the placeholder');
    }
  });

  // One must see where a field is: by its edge, or by its ground.
  add('contrast of fields', function* () {
    for (const e of document.querySelectorAll('input:not([type=range], [type=radio], [type=checkbox]), select, textarea')) {
      if (!visible(e) || e.disabled) continue;
      const style = getComputedStyle(e), around = seen(e.parentElement);
      const edge = parseFloat(style.borderBottomWidth) > 0 ? contrast(over(around, colour(style.borderBottomColor)), around) : 1;
      const got = Math.max(edge, contrast(seen(e), around));
      if (got < 3) yield [e, `has an edge with a contrast of ${got.toFixed(2)}, and needs 3`];
    }
  });

  Object.assign(rules, { colour, over, seen, contrast });
}
