'use strict';
// timeline.js - the steps in order, as wide as the time that they take, and a table of them that can be sorted and filtered.

const Timeline = (() => {
  let m, box, zoom = 1, sort = 'step', down = false, text = '', kind = 'all';
  const all = [['step', 'Step', s => s.step, true], ['name', 'Name', s => s.name], ['form', 'Form', s => s.form], ['layer', 'Layer', s => s.layer || ''], ['time', 'Time', s => s.time, true], ['share', 'Share', s => s.time, true], ['flops', 'Flops', s => s.flops, true],
    ['bytes', 'Bytes', s => s.bytes, true], ['rate', 'GFLOP/s', s => s.flops / (s.time || 1), true], ['parts', 'Parts', s => s.parts, true]];

  // A row of steps side by side, as wide as their time; of(step) is what a stretch of equal ones is called, '' for none.
  function stretches(of) {
    const out = [];
    for (const s of m.steps) {
      const key = of(s), last = out[out.length - 1];
      if (last && last.key === key && key) { last.time += s.time; last.steps.push(s); } else out.push({key, time: s.time, steps: [s]});
    }
    return out;
  }

  // The groups of so many levels that a step's layer lies in; as many levels as leave a row that can be read.
  const group = levels => s => m.layers(s).slice(0, -1).slice(0, levels).join('/');
  function depth() {
    const ROOM = 24;
    let best = 0;
    for (let d = 1; d <= Math.max(0, ...m.steps.map(s => m.layers(s).length - 1)); d++) if (stretches(group(d)).length <= ROOM || !best) best = d;
    return best;
  }

  // How many pixels a share of the run has.
  const pixels = share => share * zoom * Math.max(200, (by('timestrip') ? by('timestrip').clientWidth : 0) - 70);

  function groupRow(title, of) {
    const total = m.total || 1;
    return [title, el('div', {class: 'rowbar'}, stretches(of).map(x => {
      const share = x.time / total, colour = x.steps.reduce((a, b) => (b.time > a.time ? b : a));
      return el('span', {class: x.key ? 'stretch' : 'hole', style: {width: 100 * share + '%', borderColor: x.key ? Colour.css(Colour.ofStep(colour)) : 'transparent'},
        onclick: x.key ? () => { by('stepfilter').value = text = x.key.toLowerCase(); fill(by('steptable'), table()); } : null,
        onpointermove: x.key ? e => Dom.tip(`${x.key}\n${m.measured ? Format.ms(x.time) + ', ' : ''}${Format.percent(share)}, ${x.steps.length} step${x.steps.length > 1 ? 's' : ''}`, e.clientX, e.clientY) : null, onpointerleave: () => Dom.tip('')}, pixels(share) > 34 ? x.key.slice(x.key.lastIndexOf('/') + 1) : '');
    }))];
  }

  function stepRow() {
    const total = m.total || 1, bar = el('div', {class: 'strip', role: 'group', 'aria-label': 'Steps by time'});
    for (const s of m.steps) {
      const share = s.time / total, on = State.is('step', s.step) || (s.kind === 'generated' && State.is('kernel', s.name));
      bar.append(el('button', {type: 'button', tabindex: on ? '0' : '-1', 'data-step': s.step, class: share * zoom < 0.006 ? 'thin' : '', 'aria-pressed': String(on), 'aria-label': `Step ${s.step}, ${s.name}, ${m.time(s.time)}`,
        style: {width: 100 * share + '%', background: Colour.css(Colour.ofStep(s))},
        onclick: () => State.select('step', s.step), onpointermove: e => Dom.tip(`${s.step} \u00b7 ${s.name}\n${[s.form, s.layer].filter(Boolean).join(', ')}\n${m.measured ? Format.ms(s.time) + ', ' : ''}${Format.percent(m.share(s))}${s.parts ? `\n${s.parts} parts for threads` : ''}`, e.clientX, e.clientY), onpointerleave: () => Dom.tip('')},
      pixels(share) > 70 ? `${s.step} ${s.form}` : pixels(share) > 9 + 7 * String(s.step).length ? `${s.step}` : ''));
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
    return bar;
  }

  // What the other threads do: nothing, while a step has no parts to share.
  const threadRow = t => [`Thread ${t + 1}`, el('div', {class: 'rowbar thread'}, m.steps.map(s => el('span', {class: s.parts > t ? 'busy' : 'hole', style: {width: 100 * s.time / (m.total || 1) + '%', background: s.parts > t ? Colour.css(Colour.ofStep(s)) : 'none'}})))];

  function strip() {
    const threads = Math.min(8, m.data.machine.threads), deep = depth(), layered = m.steps.some(s => s.layer);
    const rows = [deep ? groupRow('Group', group(deep)) : null, layered ? groupRow('Layer', s => s.layer || '') : null,
      [threads > 1 ? 'Thread 1' : 'Step', stepRow()], ...Array.from({length: threads - 1}, (x, i) => threadRow(i + 1))].filter(Boolean);
    const ticks = [0, 0.25, 0.5, 0.75, 1].map(x => el('span', {}, m.time(x * m.total)));
    const inner = el('div', {class: 'zoomed', id: 'strip'}, el('div', {style: {width: 100 * zoom + '%'}}, rows.map(r => r[1]), el('div', {class: 'axis'}, ticks)));
    inner.addEventListener('wheel', e => {   // about what is under the mouse
      if (e.shiftKey || e.deltaX) return;
      e.preventDefault();
      const box = by('strip').getBoundingClientRect(), at = (by('strip').scrollLeft + e.clientX - box.left) / (box.width * zoom);
      zoom = Math.min(64, Math.max(1, zoom * Math.exp(-e.deltaY * (e.deltaMode ? 0.05 : 0.002))));
      by('timezoom').value = Math.log2(zoom);
      fill(by('timestrip'), strip());
      by('strip').scrollLeft = at * box.width * zoom - (e.clientX - box.left);
    }, {passive: false});
    return [el('div', {class: 'rows'}, el('div', {class: 'rownames'}, rows.map(r => el('span', {}, r[0]))), inner), Colour.legend(new Set(m.steps.map(Colour.ofStep)))];
  }

  const shown = () => m.steps.filter(s => (kind === 'all' || s.kind === kind) && (!text || `${s.step} ${s.name} ${s.form} ${s.layer || ''} ${s.source.map(o => o.node + ' ' + o.op).join(' ')}`.toLowerCase().includes(text)));

  function table() {
    const parts = m.steps.some(s => s.parts);
    const columns = all.filter(c => (m.measured || !['time', 'rate'].includes(c[0])) && (parts || c[0] !== 'parts'));
    const by_ = columns.find(c => c[0] === sort)[2], most = Math.max(...m.steps.map(s => s.time), 1e-12);
    const rows = shown().sort((a, b) => { const x = by_(a), y = by_(b), d = typeof x === 'string' ? x.localeCompare(y, 'en', {numeric: true}) : x - y; return (down ? -d : d) || a.step - b.step; });
    const head = columns.map(([key, title, , number]) => el('th', {scope: 'col', class: (number ? 'number ' : '') + (['form', 'layer', 'flops', 'bytes', 'rate', 'parts'].includes(key) ? 'wide' : ''), 'aria-sort': sort === key ? (down ? 'descending' : 'ascending') : 'none'},
      el('button', {type: 'button', onclick: () => { down = sort === key ? !down : Boolean(number) && key !== 'step'; sort = key; fill(by('steptable'), table()); }}, title)));
    by('stepcount').textContent = rows.length === m.steps.length ? `${rows.length} steps` : `${rows.length} of ${m.steps.length} steps`;
    return el('table', {}, el('thead', {}, el('tr', {}, head)), el('tbody', {}, rows.map(s => el('tr', {class: 'pick', 'data-step': s.step, 'aria-selected': String(State.is('step', s.step) || (s.kind === 'generated' && State.is('kernel', s.name))), onclick: () => State.select('step', s.step)},
      el('td', {class: 'number'}, s.step), el('td', {class: 'name', style: s.inside !== undefined ? {paddingLeft: '18px'} : {}}, el('button', {type: 'button', class: 'link'}, s.name)),
      el('td', {class: 'wide'}, s.form), el('td', {class: 'wide dim'}, s.layer || ''), m.measured ? el('td', {class: 'number'}, Format.ms(s.time)) : null, el('td', {class: 'number'}, el('div', {class: 'share'}, el('span', {class: 'bar', style: {width: 48 * s.time / most + 'px', minWidth: '2px', background: Colour.css(Colour.ofStep(s))}}), el('span', {style: {width: '46px'}}, Format.percent(m.share(s))))),
      el('td', {class: 'number wide'}, Format.count(s.flops)), el('td', {class: 'number wide'}, Format.bytes(s.bytes)), m.measured ? el('td', {class: 'number wide'}, s.flops && s.time ? (s.flops / s.time * 1e-6).toFixed(1) : '') : null, parts ? el('td', {class: 'number wide'}, s.parts || '') : null))));
  }

  function render() { fill(by('timestrip'), strip()); fill(by('steptable'), table()); }

  function make(element) {
    box = element;
    const kinds = ['all', ...new Set(m.steps.map(s => s.kind))];
    fill(box, el('div', {class: 'view', style: {maxWidth: 'none'}}, el('h2', {}, m.measured ? `${Format.ms(m.total)} in ${m.steps.length} steps` : `${m.steps.length} steps`), el('p', {}, m.measured ? `Measured by ingot bench with ${m.data.machine.threads} thread${m.data.machine.threads > 1 ? 's' : ''}.` : 'Not measured: widths are estimated with the roofline of a nominal machine. A step inside a loop counts with all its iterations.'),
      el('div', {id: 'timestrip'}), el('div', {class: 'tools', style: {padding: '14px 0 8px'}}, el('input', {type: 'search', id: 'stepfilter', placeholder: 'Filter steps', 'aria-label': 'Filter steps', oninput: e => { text = e.target.value.toLowerCase(); fill(by('steptable'), table()); }}),
        el('select', {'aria-label': 'Kind of step', onchange: e => { kind = e.target.value; fill(by('steptable'), table()); }}, kinds.map(k => el('option', {value: k}, k === 'all' ? 'All kinds' : k))),
        el('label', {}, 'Zoom', el('input', {type: 'range', id: 'timezoom', min: 0, max: 6, step: 0.1, value: 0, oninput: e => { zoom = 2 ** e.target.value; fill(by('timestrip'), strip()); }})), el('span', {class: 'dim push', id: 'stepcount'})),
      el('div', {id: 'steptable', class: 'scroll'})));
  }
  function show() {
    render();
    const row = by('steptable').querySelector('tr[aria-selected="true"]');
    if (row) row.scrollIntoView({block: 'nearest'});
  }
  Views.add({name: 'timeline', title: 'Timeline', make, show, start: model => { m = model; }});
})();
