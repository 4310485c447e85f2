'use strict';
// main.js - the frame: views as tabs, keys, the dialog that lists them.

(() => {
  const made = new Map();
  let shown = null;

  function tabs(model) {
    const bar = by('views');
    Views.list.forEach((v, i) => {
      v.start(model);
      bar.append(el('button', {type: 'button', role: 'tab', id: 'tab-' + v.name, 'aria-controls': 'view-' + v.name, 'aria-selected': 'false', tabindex: '-1', title: `${v.title} (${i + 1})`, onclick: () => State.go({view: v.name})}, v.title));
    });
    bar.addEventListener('keydown', e => {
      const names = Views.list.map(v => v.name), i = names.indexOf(shown);
      const to = e.key === 'ArrowRight' ? (i + 1) % names.length : e.key === 'ArrowLeft' ? (i + names.length - 1) % names.length : e.key === 'Home' ? 0 : e.key === 'End' ? names.length - 1 : -1;
      if (to < 0) return;
      e.preventDefault();
      State.go({view: names[to]});
      by('tab-' + names[to]).focus();
    });
  }

  function show(state) {
    const v = Views.get(state.view), changed = shown !== v.name;
    if (!made.has(v.name)) {
      const box = el('section', {id: 'view-' + v.name, role: 'tabpanel', 'aria-labelledby': 'tab-' + v.name, class: ['kernels', 'graph'].includes(v.name) ? 'fill' : ''});
      by('main').append(box);
      made.set(v.name, box);
      v.make(box);
    }
    for (const [name, box] of made) box.hidden = name !== v.name;
    for (const b of by('views').children) {
      const on = b.id === 'tab-' + v.name;
      b.setAttribute('aria-selected', String(on));
      b.tabIndex = on ? 0 : -1;
      if (on && changed) b.scrollIntoView({block: 'nearest', inline: 'nearest'});
    }
    if (changed) { by('main').scrollTop = 0; document.title = `${v.title} \u00b7 ${by('title').textContent}`; }
    shown = v.name;
    if (v.show) v.show(state);
  }

  function keys() {
    const rows = [['/', 'search'], ['1 \u2026 7', 'the views'], ['t', 'light or dark'], ['Tab, Enter', 'walk and choose'], ['arrows', 'in the graph along the edges; in lists, strips and the memory from one to the next'], ['+ \u2212 0', 'in the graph: zoom, show all'], ['Enter, Backspace', 'in the graph: open a group, close the one around'], ['Alt \u2190', 'back to what was selected before'], ['?', 'this list']];
    fill(by('keys'), el('h2', {}, 'Keys'), el('dl', {}, rows.map(([k, t]) => [el('dt', {}, k), el('dd', {}, t)])), el('form', {method: 'dialog'}, el('button', {}, 'Close')));
    by('help').addEventListener('click', () => by('keys').showModal());
    document.addEventListener('keydown', e => {
      if (e.ctrlKey || e.metaKey || e.altKey || by('keys').open || /^(INPUT|SELECT|TEXTAREA)$/.test(document.activeElement.tagName)) return;
      if (e.key === '/') { e.preventDefault(); by('search').focus(); }
      else if (e.key === '?') by('keys').showModal();
      else if (e.key === 't') Theme.toggle();
      else if (e.key >= '1' && e.key <= String(Views.list.length)) { State.go({view: Views.list[e.key - 1].name}); by('main').focus({preventScroll: true}); }
    });
  }

  // A page of a model with several functions has the data of each; ?decode shows that one.
  function functions(data) {
    const names = (data.functions || []).map(f => f.name);
    if (names.length < 2) return;
    const box = by('function');
    box.hidden = false;
    fill(box, names.map(n => el('option', {value: n, selected: n === data.function}, n)));
    box.addEventListener('change', () => Load.show(box.value));
  }

  const data = Load.chosen();
  if (!data) { by('main').textContent = 'This page has no data: ingot inspect MODEL -o report.html writes one that has.'; return; }
  const model = new Model(data);
  fill(by('title'), model.title, el('span', {class: 'dim'}, data.target));
  functions(data);
  by('theme').addEventListener('click', Theme.toggle);
  Theme.apply();
  tabs(model);
  keys();
  Search.start(model);
  Details.start(model);
  State.listen(show);
  State.read();
  window.report = {model};
})();
