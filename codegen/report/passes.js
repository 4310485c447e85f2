'use strict';
// passes.js - a graph or a kernel before and after a pass, line by line.

const Passes = (() => {
  let m, what = 'graph', left = 'imported', right = 'rewritten', whole = false;
  const forms = [['expression', 'Expression'], ['ir', 'IR'], ['nest', 'Loops'], ['linear', 'Statements'], ['code', 'Code']];

  // One node a line. A node is called by its operation, how many there were of its type before, and the node of the file
  // that it is of: so that what stayed has the same line in both graphs, whatever came before it.
  function graphText(pass) {
    if (pass === 'scheduled') return m.steps.map(s => `${s.kind === 'generated' ? 'run' : s.kind} ${s.name}  ${s.writes.map(t => 't' + t).join(' ')} = ${s.reads.map(t => 't' + t).join(' ')}  # ${s.source.map(o => o.op + ' ' + o.node).slice(0, 4).join(', ')}`).join('\n');
    const g = m.data.graphs.find(x => x.pass === pass);
    const name = new Map(), seen = new Map();
    for (const n of g.nodes.map(id => m.node.get(id))) {
      const key = `${n.op} ${n.type} ${n.origin}`, k = seen.get(key) || 0;
      seen.set(key, k + 1);
      name.set(n.id, `%${n.op}${k ? '.' + k : ''}${n.origin !== undefined ? '@' + Graphs.short(m.data.origins[n.origin].node) : ''}`);
    }
    return g.nodes.map(id => m.node.get(id)).map(n => `${name.get(n.id)} = ${n.op} ${n.type}${n.arg ? ' ' + n.arg : ''}${n.src.map(x => ' ' + (name.get(x) || '%?')).join('')}`).join('\n') + '\nreturn' + g.results.map(x => ' ' + name.get(x)).join('');
  }
  const stages = () => what === 'graph' ? [['imported', 'Imported'], ['rewritten', 'Rewritten'], ['scheduled', 'Scheduled']] : forms;
  const textOf = stage => what === 'graph' ? graphText(stage) : m.kernel.get(what)[stage];

  function render() {
    const options = (value, choose) => el('select', {onchange: e => { choose(e.target.value); render(); }, 'aria-label': 'Pass'}, stages().map(([k, t]) => el('option', {value: k, selected: k === value}, t)));
    const diff = DiffText.show(textOf(left), textOf(right), whole);
    const count = text => text.split('\n').length;
    fill(by('passtools'), el('label', {}, 'Compare', el('select', {id: 'passof', onchange: e => { choose(e.target.value); render(); }}, el('option', {value: 'graph', selected: what === 'graph'}, 'the graph'), m.data.kernel_list.map(k => el('option', {value: k.name, selected: what === k.name}, k.name)))),
      el('label', {}, 'from', options(left, v => { left = v; })), el('label', {}, 'to', options(right, v => { right = v; })), el('label', {}, el('input', {type: 'checkbox', checked: whole, style: {height: 'auto'}, onchange: e => { whole = e.target.checked; render(); }}), 'show equal lines'));
    fill(by('passtext'), el('p', {class: 'dim', style: {margin: '0 0 8px'}}, diff.changes ? `${diff.changes} lines differ; ${count(textOf(left))} lines before, ${count(textOf(right))} after.` : `The two are equal: ${count(textOf(left))} lines.`), diff.changes || whole ? diff : el('pre', {class: 'diff scroll', style: {padding: '10px'}}, textOf(right)));
  }
  function choose(next) {
    what = next;
    [left, right] = what === 'graph' ? ['imported', 'rewritten'] : ['nest', 'linear'];
  }
  function make(element) {
    fill(element, el('div', {class: 'view', style: {maxWidth: 'none'}}, el('h2', {}, 'Passes'), el('p', {}, 'What each stage of the compiler makes of the graph (imported, rewritten, divided into steps), or of a kernel (an expression, nodes, loops with their opts, linear statements, the emitted code).'), el('div', {class: 'tools', id: 'passtools', style: {padding: '0 0 12px'}}), el('div', {id: 'passtext'})));
  }
  function show({kind, id}) {
    if (kind === 'kernel' && m.kernel.has(id) && id !== what) choose(id);
    render();
  }
  Views.add({name: 'passes', title: 'Passes', make, show, start: model => { m = model; }});
})();
