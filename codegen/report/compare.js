'use strict';
// compare.js - two reports side by side: before and after an edit of a .sched, two targets, two versions. Steps belong
// together that compute the same nodes of the file; of several such, in their order.

const Compare = (() => {
  let m, other = null, pair = null, fault = '', sort = 'step', changed = null;

  const key = s => s.kind + '\n' + s.source.map(o => o.node + '\0' + o.op).sort().join('\n');
  function match(a, b) {
    const rest = new Map();
    for (const s of b.steps) { if (!rest.has(key(s))) rest.set(key(s), []); rest.get(key(s)).push(s); }
    const rows = a.steps.map(s => ({a: s, b: (rest.get(key(s)) || []).shift() || null}));
    for (const list of rest.values()) for (const s of list) rows.push({a: null, b: s});
    for (const r of rows) {
      const x = r.a && a.kernelOf(r.a), y = r.b && b.kernelOf(r.b);
      r.time = (r.b ? r.b.time : 0) - (r.a ? r.a.time : 0);
      r.bytes = (r.b ? r.b.bytes : 0) - (r.a ? r.a.bytes : 0);
      r.what = !r.a ? 'new' : !r.b ? 'gone' : x && y ? [x.opts.join() !== y.opts.join() && 'opts', x.args.map(g => g.layout).join() !== y.args.map(g => g.layout).join() && 'layouts', x.expression !== y.expression && 'expression'].filter(Boolean).join(', ') || (x.code.replace(/k\d+_\w+/, '') !== y.code.replace(/k\d+_\w+/, '') ? 'code' : '') : '';
    }
    return rows;
  }

  // Steps whose code is the same differ by chance: no colour.
  const delta = (before, after, format, plain) => { const d = after - before; return el('span', {class: plain ? 'dim' : d < 0 ? 'good' : d > 0 ? 'bad' : 'dim'}, d ? `${d > 0 ? '+' : '\u2212'}${format(Math.abs(d))} (${Format.change(before ? d / before : 0)})` : 'equal'); };

  // Milliseconds where both were measured; else shares of this run, by the same nominal machine.
  const time = t => (m.measured && other.measured ? Format.ms(t) : Format.percent(m.total ? t / m.total : 0));

  function totals() {
    const rows = [['Time', m.total, other.total, time], ['Arena', m.data.arena_bytes, other.data.arena_bytes, Format.bytes], ['Weights', m.data.weights_bytes, other.data.weights_bytes, Format.bytes], ['Bytes moved', m.bytes, other.bytes, Format.bytes], ['Operations', m.flops, other.flops, Format.count], ['Steps', m.steps.length, other.steps.length, Format.whole], ['Kernels', m.data.kernels, other.data.kernels, Format.whole]];
    const title = x => `${x.title}, ${x.data.target}${x.measured ? ', measured' : ', estimated'}`;
    return el('table', {id: 'totals'}, el('thead', {}, el('tr', {}, el('th', {scope: 'col'}), el('th', {scope: 'col', class: 'number'}, 'This'), el('th', {scope: 'col', class: 'number'}, 'Other'), el('th', {scope: 'col', class: 'number'}, 'Other against this'))),
      el('tbody', {}, el('tr', {}, el('td', {class: 'dim'}, 'Report'), el('td', {class: 'number', style: {whiteSpace: 'normal'}}, title(m)), el('td', {class: 'number', style: {whiteSpace: 'normal'}}, title(other)), el('td', {})), rows.map(([name, a, b, f]) => el('tr', {'data-total': name}, el('td', {}, name), el('td', {class: 'number'}, f(a)), el('td', {class: 'number'}, f(b)), el('td', {class: 'number'}, delta(a, b, f))))));
  }

  function steps() {
    const all = match(m, other), few = all.filter(r => r.what);
    if (changed === null) changed = few.length > 0 && few.length < all.length;   // at first what changed, if that is a part
    const rows = changed ? few : all, worth = {step: r => (r.a || r.b).step, time: r => -Math.abs(r.time), bytes: r => -Math.abs(r.bytes)}[sort];
    rows.sort((x, y) => worth(x) - worth(y));
    const head = (k, t) => el('th', {scope: 'col', class: k !== 'step' ? 'number' : '', 'aria-sort': sort === k ? 'descending' : 'none'}, el('button', {type: 'button', onclick: () => { sort = k; render(); }}, t));
    return [el('div', {class: 'tools', style: {padding: '18px 0 6px'}}, el('h2', {}, 'Steps'), el('label', {}, el('input', {type: 'checkbox', id: 'onlychanged', checked: changed, style: {height: 'auto'}, onchange: e => { changed = e.target.checked; render(); }}), 'only what changed'), el('span', {class: 'dim push'}, `${few.length} of ${all.length} differ`)),
      el('div', {class: 'scroll'}, el('table', {id: 'pairs'}, el('thead', {}, el('tr', {}, head('step', 'This'), el('th', {scope: 'col', class: 'wide'}, 'Other'), el('th', {scope: 'col'}, 'Changed'), el('th', {scope: 'col', class: 'number wide'}, 'Time, this'), el('th', {scope: 'col', class: 'number wide'}, 'Other'), head('time', 'Time'), head('bytes', 'Bytes'))),
        el('tbody', {}, rows.map(r => el('tr', {class: 'pick', onclick: () => { pair = r; render(); by('pair').scrollIntoView({block: 'nearest'}); }}, el('td', {class: 'name'}, el('button', {type: 'button', class: 'link'}, r.a ? `${r.a.step} \u00b7 ${r.a.name}` : `(${r.b.name})`)), el('td', {class: 'name wide'}, r.b ? `${r.b.step} \u00b7 ${r.b.name}` : ''), el('td', {}, r.what),
          el('td', {class: 'number wide'}, r.a ? time(r.a.time) : ''), el('td', {class: 'number wide'}, r.b ? time(r.b.time) : ''), el('td', {class: 'number'}, r.a && r.b ? delta(r.a.time, r.b.time, time, !r.what) : ''), el('td', {class: 'number'}, r.a && r.b ? delta(r.a.bytes, r.b.bytes, Format.bytes) : ''))))))];
  }

  function both() {
    if (!pair || !pair.a || !pair.b) return pair ? el('p', {class: 'dim', style: {marginTop: '14px'}}, 'Only one of the two has this step.') : null;
    const x = m.kernelOf(pair.a), y = other.kernelOf(pair.b);
    if (!x || !y) return el('p', {class: 'dim', style: {marginTop: '14px'}}, 'This step runs no kernel of its own.');
    const part = (title, a, b) => { const d = DiffText.show(a, b, false); return [el('h3', {}, title), d.changes ? d : el('p', {class: 'dim'}, 'Equal.')]; };
    return [el('h2', {style: {marginTop: '22px'}}, `Step ${pair.a.step} and ${pair.b.step}`), part('Opts', x.opts.join('\n'), y.opts.join('\n')), part('Layouts', x.args.map((a, i) => `a${i} ${a.type} ${a.layout}`).join('\n'), y.args.map((a, i) => `a${i} ${a.type} ${a.layout}`).join('\n')),
      part('Expression', x.expression, y.expression), part('Code', x.code, y.code)];
  }

  function take(data) {
    fault = '';
    pair = null;
    try { other = new Model(data()); } catch (e) { other = null; fault = `It cannot be read: ${e.message}`; }
    render();
    State.say(other ? 'The other report is shown' : fault);
  }

  function howTo() {
    const code = text => el('pre', {class: 'expression'}, el('code', {}, text)), file = m.data.file || 'model.onnx', target = m.data.target;
    return el('div', {id: 'howto'}, el('p', {}, 'There is no other report yet. Three ways to make one:'), el('h3', {}, 'Another target'), code(`ingot inspect ${file} --target c:x86-64-v3 --json >other.json`),
      el('h3', {}, 'An edited plan'), code(`ingot compile ${file} --target ${target} --save-sched a.sched -o out\n(edit a.sched)\ningot inspect ${file} --target ${target} --sched a.sched --json >other.json`),
      el('h3', {}, 'Another version of the model'), code(`ingot inspect other.onnx --target ${target} --json >other.json`),
      el('p', {style: {marginTop: '20px'}}, 'Then choose other.json above, or make a page that has both:'), code(`ingot inspect ${file} --target ${target} --diff other.json -o report.html`));
  }

  function render() {
    const read = file => file.text().then(text => take(() => Load.text(text)));
    const input = el('input', {type: 'file', id: 'otherfile', class: 'hidden', accept: '.json,.html', 'aria-label': 'Another report', onchange: e => { if (e.target.files[0]) read(e.target.files[0]); }});
    const open = el('button', {type: 'button', onclick: () => input.click()}, other ? 'Another report\u2026' : 'Choose a report\u2026');
    const box = el('div', {class: 'view', style: {maxWidth: '1280px'}, ondragover: e => e.preventDefault(), ondrop: e => { e.preventDefault(); if (e.dataTransfer.files[0]) read(e.dataTransfer.files[0]); }},
      el('h2', {}, 'Compare'), el('p', {}, 'Compare this report with another one: before and after an edit, two targets, two versions. Choose a report (.html) or the output of ingot inspect --json. The file stays in this browser.'), el('div', {class: 'tools', style: {padding: '0 0 14px'}}, open, input, other ? el('button', {type: 'button', onclick: () => { [m, other] = [other, m]; pair = null; render(); }}, 'Swap') : null, el('span', {class: 'bad', role: 'alert'}, fault)),
      other ? [totals(), steps(), el('div', {id: 'pair'}, both())] : howTo());
    fill(by('comparebox'), box);
  }

  function make(element) {
    fill(element, el('div', {id: 'comparebox'}));
    const data = Load.embedded('other');
    if (data) take(() => data); else render();
  }
  Views.add({name: 'compare', title: 'Compare', make, start: model => { m = model; }});
  return {match};
})();
