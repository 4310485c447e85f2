'use strict';
// timeline.js - the steps in order, as wide as the time that they take, and a table of them that can be sorted and filtered.

const Timeline = (() => {
  let m, box, zoom = 1, sort = 'step', down = false, text = '', kind = 'all';
  const columns = [['step', 'Step', s => s.step, true], ['name', 'Name', s => s.name], ['time', 'Time', s => s.time, true], ['share', 'Share', s => s.time, true], ['flops', 'Flops', s => s.flops, true],
    ['bytes', 'Bytes', s => s.bytes, true], ['rate', 'GFLOP/s', s => s.flops / (s.time || 1), true], ['parts', 'Parts', s => s.parts, true]];

  function strip() {
    const width = 100 * zoom, total = m.total || 1;
    const bar = el('div', {class: 'strip', role: 'group', 'aria-label': 'Steps by time', style: {width: width + '%'}});
    for (const s of m.steps) {
      const share = s.time / total, on = State.is('step', s.step) || (s.kind === 'generated' && State.is('kernel', s.name));
      bar.append(el('button', {type: 'button', tabindex: on ? '0' : '-1', 'data-step': s.step, class: share * zoom < 0.006 ? 'thin' : '', 'aria-pressed': String(on), 'aria-label': `Step ${s.step}, ${s.name}, ${Format.ms(s.time)}`,
        style: {width: 100 * share + '%', background: Colour.css(Colour.ofStep(s))},
        onclick: () => State.select('step', s.step), onpointermove: e => Dom.tip(`${s.step} \u00b7 ${s.name}\n${Format.ms(s.time)}, ${Format.percent(m.share(s))}${s.parts ? `\n${s.parts} parts for threads` : ''}`, e.clientX, e.clientY), onpointerleave: () => Dom.tip('')},
      share * zoom > 0.03 ? `${s.step}` : ''));
    }
    if (!bar.querySelector('[tabindex="0"]') && bar.firstChild) bar.firstChild.tabIndex = 0;
    bar.addEventListener('keydown', e => {
      const step = e.key === 'ArrowRight' ? 'nextSibling' : e.key === 'ArrowLeft' ? 'previousSibling' : null, next = step && document.activeElement[step];
      if (!next) return;
      e.preventDefault();
      next.click();
      const again = by('strip').querySelector(`[data-step="${next.dataset.step}"]`);
      if (again) again.focus();
    });
    const ticks = [0, 0.25, 0.5, 0.75, 1].map(x => el('span', {}, Format.ms(x * total)));
    return [el('div', {class: 'zoomed', id: 'strip'}, bar, el('div', {class: 'axis', style: {width: width + '%'}}, ticks)), Colour.legend(new Set(m.steps.map(Colour.ofStep)))];
  }

  const shown = () => m.steps.filter(s => (kind === 'all' || s.kind === kind) && (!text || `${s.step} ${s.name} ${s.source.map(o => o.node + ' ' + o.op).join(' ')}`.toLowerCase().includes(text)));

  function table() {
    const by_ = columns.find(c => c[0] === sort)[2], most = Math.max(...m.steps.map(s => s.time), 1e-12);
    const rows = shown().sort((a, b) => { const x = by_(a), y = by_(b), d = typeof x === 'string' ? x.localeCompare(y, 'en', {numeric: true}) : x - y; return (down ? -d : d) || a.step - b.step; });
    const head = columns.map(([key, title, , number]) => el('th', {scope: 'col', class: (number ? 'number ' : '') + (['flops', 'bytes', 'rate', 'parts'].includes(key) ? 'wide' : ''), 'aria-sort': sort === key ? (down ? 'descending' : 'ascending') : 'none'},
      el('button', {type: 'button', onclick: () => { down = sort === key ? !down : Boolean(number) && key !== 'step'; sort = key; fill(by('steptable'), table()); }}, title)));
    by('stepcount').textContent = rows.length === m.steps.length ? `${rows.length} steps` : `${rows.length} of ${m.steps.length} steps`;
    return el('table', {}, el('thead', {}, el('tr', {}, head)), el('tbody', {}, rows.map(s => el('tr', {class: 'pick', 'data-step': s.step, 'aria-selected': String(State.is('step', s.step) || (s.kind === 'generated' && State.is('kernel', s.name))), onclick: () => State.select('step', s.step)},
      el('td', {class: 'number'}, s.step), el('td', {class: 'name', style: s.inside !== undefined ? {paddingLeft: '18px'} : {}}, el('button', {type: 'button', class: 'link'}, s.name)),
      el('td', {class: 'number'}, Format.ms(s.time)), el('td', {class: 'number'}, el('div', {class: 'share'}, el('span', {class: 'bar', style: {width: 48 * s.time / most + 'px', minWidth: '2px', background: Colour.css(Colour.ofStep(s))}}), el('span', {style: {width: '46px'}}, Format.percent(m.share(s))))),
      el('td', {class: 'number wide'}, Format.count(s.flops)), el('td', {class: 'number wide'}, Format.bytes(s.bytes)), el('td', {class: 'number wide'}, s.flops && s.time ? (s.flops / s.time * 1e-6).toFixed(1) : ''), el('td', {class: 'number wide'}, s.parts || '')))));
  }

  function render() { fill(by('timestrip'), strip()); fill(by('steptable'), table()); }

  function make(element) {
    box = element;
    const kinds = ['all', ...new Set(m.steps.map(s => s.kind))];
    fill(box, el('div', {class: 'view', style: {maxWidth: 'none'}}, el('h2', {}, `${Format.ms(m.total)} in ${m.steps.length} steps`), el('p', {}, m.measured ? `Measured by ingot bench with ${m.data.machine.threads} thread${m.data.machine.threads > 1 ? 's' : ''}.` : 'Estimated: what the roof of a nominal machine allows. Steps inside loops count with all their rounds.'),
      el('div', {id: 'timestrip'}), el('div', {class: 'tools', style: {padding: '14px 0 8px'}}, el('input', {type: 'search', id: 'stepfilter', placeholder: 'Filter steps', 'aria-label': 'Filter steps', oninput: e => { text = e.target.value.toLowerCase(); fill(by('steptable'), table()); }}),
        el('select', {'aria-label': 'Kind of step', onchange: e => { kind = e.target.value; fill(by('steptable'), table()); }}, kinds.map(k => el('option', {value: k}, k === 'all' ? 'All kinds' : k))),
        el('label', {}, 'Zoom', el('input', {type: 'range', id: 'timezoom', min: 0, max: 6, step: 0.5, value: 0, oninput: e => { zoom = 2 ** e.target.value; fill(by('timestrip'), strip()); }})), el('span', {class: 'dim push', id: 'stepcount'})),
      el('div', {id: 'steptable', class: 'scroll'})));
  }
  function show() {
    render();
    const row = by('steptable').querySelector('tr[aria-selected="true"]');
    if (row) row.scrollIntoView({block: 'nearest'});
  }
  Views.add({name: 'timeline', title: 'Timeline', make, show, start: model => { m = model; }});
})();
