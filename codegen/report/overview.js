'use strict';
// overview.js - the model in figures, where its time goes, and what was decided.

const Overview = (() => {
  let m;

  function figures() {
    const d = m.data, figure = (name, value, more) => el('div', {}, el('dt', {}, name), el('dd', {'data-figure': name}, value, more ? el('small', {}, more) : null));
    const stored = d.tensors.filter(t => t.kind === 'arena').length;
    const takes = d.firmware, by = takes && (takes.compiler ? `by ${takes.compiler} -O2` : 'an estimate');
    const time = m.measured ? figure('Time', Format.ms(m.total), `${d.machine.threads} thread${d.machine.threads > 1 ? 's' : ''}`) : null;
    const firmware = takes ? [figure('Flash', Format.bytes(takes.flash_bytes), by), figure('RAM', Format.bytes(takes.ram_bytes), 'arena, context, inputs, outputs'),
      takes.stack_bytes === undefined ? null : figure('Stack, at most', Format.bytes(takes.stack_bytes))] : [];
    return el('dl', {class: 'figures'}, time, ...firmware,
      figure('Steps', d.steps.length), figure('Kernels', d.kernels, d.kernels < d.steps.length ? 'equal steps share one' : null),
      d.source.length ? figure('Nodes in the file', d.source.length) : null, figure('Operations', Format.count(m.flops), m.given ? `${Format.count(m.given)} in the model` : null),
      figure('Arena', Format.bytes(d.arena_bytes), `${stored} tensors`), figure('Weights', Format.bytes(d.weights_bytes)));
  }

  function interface_() {
    const row = kind => t => el('tr', {class: 'pick', onclick: () => State.go({view: 'memory', kind: 'tensor', id: t.tensor})}, el('td', {class: 'dim'}, kind),
      el('td', {class: 'name'}, el('button', {type: 'button', class: 'link'}, t.name)), el('td', {}, Format.type(t)), el('td', {class: 'number'}, Format.bytes(t.max_bytes)));
    const d = m.data;
    return el('section', {class: 'card'}, el('h2', {}, 'Inputs and outputs'), el('div', {class: 'scroll', style: {maxHeight: '300px'}}, el('table', {}, el('tbody', {}, d.inputs.map(row('in')), d.outputs.map(row('out')), d.states.map(row('state'))))));
  }

  // Of a model with several functions: what each takes; weights are read once a call, so a token of decode() costs their bytes.
  function functions() {
    const list = m.data.functions || [];
    if (list.length < 2) return null;
    const head = ['Function', 'Steps', 'Kernels', 'Operations', 'Bytes moved', 'Weights read'];
    return el('section', {class: 'card broad'}, el('h2', {}, 'Functions'), el('p', {class: 'dim'}, `They share the weights and ${Format.bytes(m.data.state_bytes)} of states. Sizes that a run decides are at their upper bounds.`),
      el('div', {class: 'scroll'}, el('table', {}, el('thead', {}, el('tr', {}, head.map((h, i) => el('th', {class: i ? 'number' : ''}, h)))), el('tbody', {}, list.map(f => el('tr', {class: 'pick', 'aria-selected': String(f.name === m.data.function), 'data-function': f.name, onclick: () => f.name === m.data.function || Load.show(f.name)},
        el('td', {class: 'name'}, el('button', {type: 'button', class: 'link'}, f.name)), [f.steps, f.kernels, Format.count(f.flops), Format.bytes(f.bytes), Format.bytes(f.weights_bytes)].map(v => el('td', {class: 'number'}, v))))))));
  }

  // A language model: what a token reads decides how fast an answer is, and the cache how long it may be.
  function tokens() {
    const d = m.data, decode = (d.functions || []).find(f => f.name === 'decode'), cache = d.states.filter(s => /^(keys|values)_\d+$/.test(s.name));
    if (!decode || !cache.length) return null;
    const positions = cache[0].dims[2], bytes = cache.reduce((sum, s) => sum + s.max_bytes, 0), rate = 1e10 / decode.weights_bytes;
    const rows = [['Cache', Format.bytes(bytes), `keys and values of ${positions} positions (${cache[0].dtype}), ${Format.bytes(bytes / positions)} each`],
      ['Weights read by a token', Format.bytes(decode.weights_bytes), `memory that delivers 10 GB/s allows ${rate >= 10 ? Math.round(rate) : rate.toPrecision(2)} tokens of an answer a second at most`],
      ['Operations of a token', Format.count(decode.flops), 'of an answer, with a full cache; the tokens of a prompt are computed together, and read the weights once']];
    return el('section', {class: 'card broad'}, el('h2', {}, 'Tokens'), el('table', {}, el('tbody', {}, rows.map(([what, n, text]) => el('tr', {}, el('td', {}, what), el('td', {class: 'number', 'data-figure': what}, n), el('td', {class: 'dim'}, text))))),
      el('p', {class: 'dim'}, el('code', {}, `ingot bench ${d.file || 'model.gguf'} --target ${d.target}`), ' measures the tokens per second of a prompt and of an answer.'));
  }

  function phases() {
    const sum = m.phases();
    if (!sum) return null;
    const rows = Object.entries(sum), most = Math.max(...rows.map(r => r[1].time)) || 1;
    return el('section', {class: 'card broad'}, el('h2', {}, 'A training step'), el('table', {}, el('thead', {}, el('tr', {}, ['Part', '', 'Steps', 'Operations', 'Bytes moved', 'Share'].map((h, i) => el('th', {class: i > 1 ? 'number' : ''}, h)))), el('tbody', {}, rows.map(([name, s]) => el('tr', {'data-phase': name}, el('td', {}, name),
      el('td', {class: 'barcell wide'}, el('span', {class: 'bar', style: {width: 100 * s.time / most + '%'}})), el('td', {class: 'number'}, s.steps), el('td', {class: 'number'}, Format.count(s.flops)), el('td', {class: 'number'}, Format.bytes(s.bytes)), el('td', {class: 'number'}, Format.percent(m.total ? s.time / m.total : 0)))))));
  }

  function byKind() {
    const sum = new Map();
    for (const s of m.steps) sum.set(Colour.ofStep(s), (sum.get(Colour.ofStep(s)) || 0) + s.time);
    const rows = [...sum].sort((a, b) => b[1] - a[1]), most = rows.length ? rows[0][1] || 1 : 1;
    return el('section', {class: 'card'}, el('h2', {}, 'Time by kind of work'), el('table', {}, el('tbody', {}, rows.map(([k, t]) => el('tr', {}, el('td', {}, el('span', {class: 'dot', style: {background: Colour.css(k)}}), Colour.name(k)),
      el('td', {class: 'barcell'}, el('span', {class: 'bar', style: {width: 100 * t / most + '%', background: Colour.css(k)}})), m.measured ? el('td', {class: 'number'}, Format.ms(t)) : null, el('td', {class: 'number'}, Format.percent(m.total ? t / m.total : 0)))))));
  }

  // Steps that run one kernel are a row: a network of equal layers has few kernels.
  function slowest() {
    const groups = new Map();
    for (const s of m.steps) {
      const key = s.kind === 'generated' ? s.name : s.step;
      if (!groups.has(key)) groups.set(key, {time: 0, steps: []});
      groups.get(key).time += s.time;
      groups.get(key).steps.push(s);
    }
    const rows = [...groups.values()].sort((a, b) => b.time - a.time).slice(0, 8), most = rows.length ? rows[0].time || 1 : 1;
    return el('section', {class: 'card broad'}, el('h2', {}, 'Where the time goes'), el('table', {}, el('tbody', {}, rows.map(({time, steps: [s, ...more]}) => el('tr', {class: 'pick', onclick: () => State.go(more.length ? {view: 'kernels', kind: 'kernel', id: s.name} : {view: 'timeline', kind: 'step', id: s.step})},
      el('td', {class: 'name'}, el('button', {type: 'button', class: 'link'}, s.name), more.length ? el('small', {class: 'dim'}, ` ${more.length + 1} times`) : null), el('td', {class: 'barcell wide'}, el('span', {class: 'bar', style: {width: 100 * time / most + '%', background: Colour.css(Colour.ofStep(s))}})),
      el('td', {class: 'dim wide'}, [s.form, s.layer && s.layer + (more.length ? ` and ${more.length} more` : '')].filter(Boolean).join(', ')), m.measured ? el('td', {class: 'number'}, Format.ms(time)) : null, el('td', {class: 'number'}, Format.percent(m.total ? time / m.total : 0)))))));
  }

  function decided() {
    const d = m.data, notes = what => d.notes.filter(n => n.what === what).length;
    const fates = {computed: 0, folded: 0, moved: 0, nothing: 0};
    m.source.forEach((s, i) => { fates[m.fate(i)]++; });
    const rows = [['stored', notes('stored'), 'values that are stored in memory; all others are computed where they are read'],
      ['folded', d.tensors.filter(t => t.folded).length, 'weights that were computed at compile time'],
      ['merged', notes('merged'), 'results that one kernel computes together, because they read the same operand'],
      ['in place', notes('in place'), 'results that are written over an operand, or directly into the result of a concat'],
      ['shared', d.steps.filter(s => s.kind === 'generated').length - d.kernels, 'steps that reuse the kernel of another step'],
      ['no work', fates.moved + fates.folded + fates.nothing, 'nodes of the file that cost nothing: they only change indices, or are constants']];
    return el('section', {class: 'card broad'}, el('h2', {}, 'What was decided'), el('table', {}, el('tbody', {}, rows.map(([what, n, text]) => el('tr', {}, el('td', {}, what), el('td', {class: 'number', 'data-figure': what}, n), el('td', {class: 'dim'}, text))))));
  }

  function measuring() {
    const train = (m.data.functions || []).some(f => f.name === 'train_step');
    const words = `${m.data.file || 'model.onnx'} --target ${m.data.target}${train ? ' --train --loss ...' : ''}`;
    return m.data.firmware ? 'Cycles have to be counted on the board.' : ['To measure: ', el('code', {}, `ingot bench ${words} --per-kernel --json >times.json`), ', then ', el('code', {}, `ingot inspect ${words} --times times.json -o report.html`), '.'];
  }

  function make(box) {
    fill(box, el('div', {class: 'view'}, el('h2', {}, 'Overview'), el('p', {}, `${m.title}, compiled for ${m.data.target}${m.data.opt_level ? '' : ', without opts'}. `, m.measured ? 'Times were measured.' : 'Not measured: each share of the run is estimated with the roofline of a nominal machine. ', m.measured ? null : measuring()),
      figures(), el('div', {class: 'columns'}, functions(), tokens(), phases(), slowest(), byKind(), interface_(), decided())));
  }
  Views.add({name: 'overview', title: 'Overview', make, start: model => { m = model; }});
})();
