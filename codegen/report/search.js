'use strict';
// search.js - one field for nodes of the file, kernels, steps and tensors: a combobox with a list of what was found.

const Search = (() => {
  const MOST = 40;
  let index = [], hits = [], at = -1;

  function build(m) {
    index = [];
    m.source.forEach((s, i) => index.push({what: 'node', name: s.node, more: s.op, go: {view: 'graph', kind: 'source', id: i}}));
    for (const k of m.data.kernel_list) index.push({what: 'kernel', name: k.name, more: Format.count(k.flops) + ' flops', go: {view: 'kernels', kind: 'kernel', id: k.name}});
    for (const s of m.steps) index.push({what: 'step', name: `${s.step} ${s.name}`, more: m.time(s.time), go: {view: 'timeline', kind: 'step', id: s.step}});
    for (const t of m.data.tensors) index.push({what: 'tensor', name: m.tensorName(t), more: Format.bytes(t.bytes), go: {view: 'memory', kind: 'tensor', id: t.id}});
    for (const x of index) x.key = (x.name + ' ' + x.more).toLowerCase();
  }

  function find(text) {
    const words = text.toLowerCase().split(/\s+/).filter(Boolean);
    if (!words.length) return [];
    const rank = x => (x.name.toLowerCase() === text.toLowerCase() ? 0 : x.name.toLowerCase().startsWith(words[0]) ? 1 : 2);
    return index.filter(x => words.every(w => x.key.includes(w))).sort((a, b) => rank(a) - rank(b)).slice(0, MOST);
  }

  function show() {
    const input = by('search'), list = by('found');
    const open = input.value.trim() !== '' && document.activeElement === input;
    list.hidden = !open;
    input.setAttribute('aria-expanded', String(open));
    fill(list, hits.length ? hits.map((x, i) => el('li', {role: 'option', id: 'found' + i, 'aria-selected': String(i === at), onmousedown: e => { e.preventDefault(); take(i); }},
      el('span', {class: 'what'}, x.what), el('span', {class: 'name'}, x.name), el('span', {class: 'more'}, x.more)))
      : el('li', {class: 'none', role: 'option', 'aria-disabled': 'true'}, 'Nothing has that name.'));
    if (at >= 0) input.setAttribute('aria-activedescendant', 'found' + at); else input.removeAttribute('aria-activedescendant');
    const picked = list.querySelector('[aria-selected="true"]');
    if (picked) picked.scrollIntoView({block: 'nearest'});
  }

  function take(i) {
    const x = hits[i];
    if (!x) return;
    by('search').value = '';
    by('search').blur();
    hits = [];
    show();
    State.go(x.go);
  }

  function start(m) {
    const input = by('search');
    build(m);
    input.addEventListener('input', () => { hits = find(input.value.trim()); at = hits.length ? 0 : -1; show(); });
    input.addEventListener('focus', show);
    input.addEventListener('blur', show);
    input.addEventListener('keydown', e => {
      if (e.key === 'ArrowDown' || e.key === 'ArrowUp') {
        e.preventDefault();
        at = hits.length ? (at + (e.key === 'ArrowDown' ? 1 : hits.length - 1)) % hits.length : -1;
        show();
      } else if (e.key === 'Enter') {
        take(Math.max(0, at));
      } else if (e.key === 'Escape') {
        input.value = '';
        hits = [];
        input.blur();
      }
    });
  }
  return {start, find};
})();
