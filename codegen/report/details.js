'use strict';
// details.js - the panel beside the views: all that is known of what is selected, with ways to what it belongs to.

const Details = (() => {
  let m;
  const link = (text, view, kind, id) => el('button', {type: 'button', class: 'link', onclick: () => State.go({view, kind, id})}, text);
  const stepLink = s => link(`${s.step} \u00b7 ${s.name}`, 'timeline', 'step', s.step);
  const kernelLink = s => s.kind === 'generated' ? link(s.name, 'kernels', 'kernel', s.name) : stepLink(s);
  const sourceLink = i => link(`${m.source[i].node} (${m.source[i].op})`, 'graph', 'source', i);
  const tensorLink = t => link(m.tensorName(t), 'memory', 'tensor', t.id);
  const list = (title, items) => items.length ? [el('h3', {}, title), el('ul', {}, items.map(x => el('li', {}, x)))] : null;
  const head = (kind, name, ...actions) => [el('p', {class: 'kind'}, kind), el('h2', {}, name),
    actions.some(Boolean) ? el('div', {class: 'actions'}, actions) : null];
  const action = (text, view, kind, id) => el('button', {type: 'button', onclick: () => State.go({view, kind, id})}, text);

  const note = n => el('li', {class: 'why'}, el('b', {}, n.what), n.node !== undefined && m.node.has(n.node) ? [' ', el('span', {class: 'mono'}, `${m.node.get(n.node).op} ${m.node.get(n.node).type}`)] : null, ': ', n.why, '. ', el('span', {class: 'dim'},
    [n.operations !== undefined && `${n.operations} operation${n.operations === 1 ? '' : 's'} an element to compute it again`,
     n.again_cycles !== undefined && `estimated: ${Format.count(Math.round(n.stored_cycles))} cycles stored, ${Format.count(Math.round(n.again_cycles))} computed where it is read`,
     n.bytes !== undefined && Format.bytes(n.bytes) + (n.what === 'stored' || n.what === 'not stored' ? '' : n.what === 'folded' ? ' kept' : ' saved'), `pass ${n.pass}`].filter(Boolean).join(', ')));
  const notes = all => all.length ? [el('h3', {}, 'Decided'), el('ul', {}, all.map(note))] : null;

  function typed(t) {
    const match = /^(\w+)\[(.*)\]$/.exec(t || '');
    return match ? `${match[1]} [${match[2].replace(/,/g, ', ')}]` : t;
  }

  const fates = {computed: 'computed by kernels', folded: 'a constant, computed at compile time', moved: 'coordinates only: no work of its own, its readers address what it is made of', nothing: 'nothing: no result needs it, or its input is passed on'};

  function source(i) {
    const s = m.source[i], steps = m.stepsOf.get(+i) || [];
    const value = (v, links) => el('li', {}, el('span', {class: 'mono'}, v.name || '(left out)'), v.type ? el('span', {class: 'dim'}, ' ' + typed(v.type)) : null,
      v.constant ? el('span', {class: 'dim'}, ' constant') : null, links.map(k => [' ', sourceLink(k)]));
    const nodes = m.nodesOf.get(+i) || [];
    return [head('Node of the model', s.node, steps[0] && steps[0].kind === 'generated' ? action('Its kernel', 'kernels', 'kernel', steps[0].name) : null,
      steps[0] ? action('In the timeline', 'timeline', 'step', steps[0].step) : null),
      el('h3', {}, 'Facts'), Dom.facts([['operator', (s.domain ? s.domain + ':' : '') + s.op], ['in', s.scope], ['became', fates[m.fate(+i)]],
        ['time', steps.length ? m.time(steps.reduce((a, x) => a + x.time, 0)) + (steps.some(x => x.source.length > 1) ? ', shared with others' : '') : null]]),
      list('Kernels and steps that compute it', steps.map(kernelLink)),
      notes([...new Set(nodes.flatMap(n => m.notesOf.get(n) || []))]),
      [el('h3', {}, 'Inputs'), el('ul', {}, s.inputs.map(v => value(v, m.producer.has(v.name) ? [m.producer.get(v.name)] : [])))],
      [el('h3', {}, 'Outputs'), el('ul', {}, s.outputs.map(v => value(v, (m.users.get(v.name) || []).slice(0, 8))))],
      Object.keys(s.attributes).length ? [el('h3', {}, 'Attributes'), Dom.facts(Object.entries(s.attributes).map(([k, v]) => [k, el('span', {class: 'mono'}, v)]))] : null,
      list('Nodes of the compiler', nodes.slice(0, 40).map(n => link(`%${n} ${m.node.get(n).op}`, 'graph', 'node', n)))];
  }

  function node(id) {
    const n = m.node.get(+id), steps = m.stepsOfNode.get(+id) || [], origin = n.origin !== undefined ? m.data.origins[n.origin] : null;
    const sources = origin ? m.byName.get(origin.node + '\0' + origin.op) || [] : [];
    return [head('Node of the compiler', `%${n.id} ${n.op}`), el('h3', {}, 'Facts'),
      Dom.facts([['type', typed(n.type)], ['argument', n.arg], ['inside', n.inside !== undefined ? '%' + n.inside : null],
        ['graphs', m.data.graphs.filter(g => g.nodes.includes(+id)).map(g => g.pass).join(', ')]]),
      list('From', sources.map(sourceLink)),
      list('Computed by', steps.map(kernelLink)),
      list('Stored in', (m.tensorsOf.get(+id) || []).map(tensorLink)),
      notes(m.notesOf.get(+id) || []),
      list('Sources', n.src.map(x => link(`%${x} ${m.node.has(x) ? m.node.get(x).op : ''}`, 'graph', 'node', x)))];
  }

  function step(id) {
    const s = m.step.get(+id), k = m.kernelOf(s);
    const stored = s.nodes.flatMap(n => m.notesOf.get(n) || []).filter(n => n.what !== 'folded');
    const own = m.data.notes.filter(n => n.step === s.step);
    return [head(`Step ${s.step}, ${s.kind}`, s.name, k ? action('Its kernel', 'kernels', 'kernel', k.name) : null,
      s.source.length && m.byName.get(s.source[0].node + '\0' + s.source[0].op) ? action('In the graph', 'graph', 'source', m.byName.get(s.source[0].node + '\0' + s.source[0].op)[0]) : null),
      el('h3', {}, 'Cost'), Dom.facts([['form', s.form], ['layer', s.layer], s.ms !== undefined ? ['measured', `${Format.ms(s.time)}, ${Format.percent(m.share(s))} of the run`] : ['estimated', `${Format.percent(m.share(s))} of the run`],
        ['roof', s.ms !== undefined ? `${Format.ms(s.roof_ms)}: it is at ${Format.percent(m.ofRoof(s))}` : null],
        ['operations', Format.count(s.flops)], ['bytes', Format.bytes(s.bytes)], ['intensity', s.bytes ? (s.flops / s.bytes).toFixed(2) + ' flops per byte' : null],
        ['runs on', s.device ? `device ${s.device}` : null],
        ['threads', s.parts ? `${s.parts} parts to share` : 'one'], ['inside', s.inside !== undefined ? link(`step ${s.inside}`, 'timeline', 'step', +s.inside) : null]]),
      list('Nodes of the model', s.source.map(o => { const at = m.byName.get(o.node + '\0' + o.op); return at ? sourceLink(at[0]) : `${o.node} (${o.op})`; })),
      list('Reads', s.reads.map(t => [tensorLink(m.tensor.get(t)), el('span', {class: 'dim'}, ' ' + Format.type(m.tensor.get(t)))])),
      list('Writes', s.writes.map(t => [tensorLink(m.tensor.get(t)), el('span', {class: 'dim'}, ' ' + Format.type(m.tensor.get(t)))])),
      notes([...new Set([...own, ...stored])])];
  }

  function tensor(id) {
    const t = m.tensor.get(+id), from = m.takenFrom(t), base = t.base !== undefined ? m.tensor.get(t.base) : null;
    const memory = t.memory !== undefined ? m.memories()[t.memory] : null;
    return [head({input: 'Input', output: 'Output', weight: 'Weight', arena: 'Tensor', state: 'State'}[t.kind], m.tensorName(t),
      t.step !== undefined ? action('Its step', 'timeline', 'step', t.step) : null),
      el('h3', {}, 'Facts'), Dom.facts([['type', typed(Format.type(t))], ['bytes', Format.bytes(t.bytes)], ['layout', el('span', {class: 'mono'}, t.layout)],
        ['lies', t.offset === undefined ? 'with the caller' : `at ${Format.whole(t.offset)} of ${t.kind === 'weight' ? 'the weights' : 'the ' + (memory ? memory.name : 'arena')}`],
        ['device', t.device ? `device ${t.device}` : null],
        ['alive', t.first <= t.last ? (t.first === t.last ? `in step ${t.first}` : `from step ${t.first} to ${t.last}`) : null],
        ['part of', base ? [tensorLink(base), ` from element ${t.at} on`] : null], ['takes over', from ? tensorLink(from) : null],
        ['made of', t.folded ? t.from.join(', ') : null]]),
      t.source ? list('From', [m.byName.get(t.source.node + '\0' + t.source.op)].filter(Boolean).map(x => sourceLink(x[0]))) : null,
      list('Written by', (m.writers.get(t.id) || []).map(stepLink)), list('Read by', (m.readers.get(t.id) || []).map(stepLink)),
      notes([...(t.node !== undefined ? m.notesOf.get(t.node) || [] : []), ...m.data.notes.filter(n => n.tensor === t.id && n.node !== t.node)])];
  }

  function kernel(name) {
    const k = m.kernel.get(name), steps = k.steps.map(s => m.step.get(s));
    const nodes = [...new Map(steps.flatMap(s => s.source).map(o => [o.node + '\0' + o.op, o])).values()];
    return [head('Kernel', k.name, steps[0] ? action('In the timeline', 'timeline', 'step', steps[0].step) : null,
      nodes[0] && m.byName.get(nodes[0].node + '\0' + nodes[0].op) ? action('In the graph', 'graph', 'source', m.byName.get(nodes[0].node + '\0' + nodes[0].op)[0]) : null),
      el('h3', {}, 'Cost'), Dom.facts([['runs', steps.length === 1 ? 'once' : `${steps.length} times`], ['form', [...new Set(steps.map(s => s.form))].join(', ')], ['time', m.time(steps.reduce((a, s) => a + s.time, 0)) + (m.measured ? ' in all' : ' of the run, estimated')],
        ['operations', Format.count(k.flops)], ['bytes', Format.bytes(k.bytes)], ['hash', el('span', {class: 'mono'}, k.hash)], ['.sched', k.sched ? el('span', {class: 'mono'}, k.sched) : null]]),
      list('Steps', steps.map(stepLink)),
      list('Nodes of the model', nodes.map(o => { const at = m.byName.get(o.node + '\0' + o.op); return at ? sourceLink(at[0]) : `${o.node} (${o.op})`; }))];
  }

  const kinds = {source, node, step, tensor, kernel};
  const exists = (kind, id) => ({source: () => m.source[+id], node: () => m.node.has(+id), step: () => m.step.has(+id), tensor: () => m.tensor.has(+id), kernel: () => m.kernel.has(id)}[kind] || (() => false))();

  function show({kind, id}) {
    const box = by('details');
    if (!kind || !exists(kind, id)) {
      fill(box);
      box.hidden = true;   // the view has the room
      return;
    }
    box.hidden = false;
    fill(box, el('button', {type: 'button', class: 'close', 'aria-label': 'Close the details', onclick: () => State.select(null)}, '\u00d7'), kinds[kind](id));
    box.scrollTop = 0;
    State.say(`Selected: ${box.querySelector('.kind').textContent} ${box.querySelector('h2').textContent}`);
  }
  function start(model) { m = model; State.listen(show); }
  return {start, exists};
})();
