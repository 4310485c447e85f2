'use strict';
// dom.js - elements from plain values. Text is always text: nothing of a model is ever read as HTML.

const Dom = (() => {
  function put(node, children) {
    for (const child of children.flat(Infinity))
      if (child !== null && child !== undefined && child !== false)
        node.append(child instanceof Node ? child : document.createTextNode(String(child)));
    return node;
  }

  function set(node, attributes) {
    for (const [name, value] of Object.entries(attributes || {})) {
      if (value === null || value === undefined || value === false) continue;
      if (name.startsWith('on')) node.addEventListener(name.slice(2), value);
      else if (name === 'style' && typeof value === 'object') Object.assign(node.style, value);
      else node.setAttribute(name, value === true ? '' : value);
    }
    return node;
  }

  // el('button', {class: 'link', onclick: f}, 'text', element, [more])
  const el = (tag, attributes, ...children) => put(set(document.createElement(tag), attributes), children);
  const svg = (tag, attributes, ...children) =>
    put(set(document.createElementNS('http://www.w3.org/2000/svg', tag), attributes), children);
  const by = id => document.getElementById(id);
  const fill = (node, ...children) => { node.replaceChildren(); return put(node, children); };

  // A description list of [term, value]; what has no value is left out.
  const facts = rows => el('dl', {class: 'facts'}, rows.filter(r => r && r[1] !== null && r[1] !== undefined && r[1] !== '')
    .map(([name, value]) => [el('dt', {}, name), el('dd', {}, value)]));

  // Buttons of which one is pressed; choose(value) is called.
  function choice(label, options, value, choose) {
    const group = el('div', {class: 'group', role: 'group', 'aria-label': label});
    for (const [key, text] of options)
      group.append(el('button', {type: 'button', 'data-value': key, 'aria-pressed': String(key === value), onclick: () => {
        for (const b of group.children) b.setAttribute('aria-pressed', String(b.dataset.value === key));
        choose(key);
      }}, text));
    return group;
  }

  let tipFor = null;
  function tip(text, x, y) {
    const t = by('tip');
    t.hidden = !text;
    if (!text) return;
    if (tipFor !== text) { t.textContent = text; tipFor = text; }
    const box = t.getBoundingClientRect();
    t.style.left = Math.max(4, Math.min(x + 14, innerWidth - box.width - 6)) + 'px';
    t.style.top = Math.max(4, y + 18 + box.height > innerHeight ? y - box.height - 10 : y + 18) + 'px';
  }

  // A canvas as sharp as the screen; draw(context, width, height) is called once a frame at most.
  function canvas(label, draw) {
    const node = el('canvas', {tabindex: '0', role: 'application', 'aria-label': label});
    let asked = false;
    const now = () => {
      asked = false;
      const w = node.clientWidth, h = node.clientHeight, dpr = devicePixelRatio || 1;
      if (!w || !h) return;
      if (node.width !== Math.round(w * dpr) || node.height !== Math.round(h * dpr)) {
        node.width = Math.round(w * dpr);
        node.height = Math.round(h * dpr);
      }
      const g = node.getContext('2d');
      g.setTransform(dpr, 0, 0, dpr, 0, 0);
      g.clearRect(0, 0, w, h);
      draw(g, w, h);
    };
    node.redraw = () => { if (!asked) { asked = true; requestAnimationFrame(now); } };
    new ResizeObserver(node.redraw).observe(node);
    return node;
  }

  // As much of a text as fits into a width of the canvas.
  function clip(g, text, width) {
    if (g.measureText(text).width <= width) return text;
    return text.slice(0, Math.max(1, Math.floor(text.length * width / g.measureText(text).width) - 1)) + '\u2026';
  }

  return {el, svg, by, fill, facts, choice, tip, canvas, clip};
})();
const {el, svg, by, fill} = Dom;
