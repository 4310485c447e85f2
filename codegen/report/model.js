'use strict';
// model.js - the data of docs/report.md, and who is whose: a node of the file, the graph's nodes, the steps that compute
// them, the tensors in between, the kernels.

class Model {
  constructor(data) {
    this.data = data;
    this.title = data.model !== 'model' || !data.file ? data.model : data.file;
    this.measured = data.steps.some(s => s.ms !== undefined);
    this.steps = data.steps;
    this.step = new Map(data.steps.map(s => [s.step, s]));
    this.tensor = new Map(data.tensors.map(t => [t.id, t]));
    this.kernel = new Map(data.kernel_list.map(k => [k.name, k]));
    this.node = new Map(data.nodes.map(n => [n.id, n]));
    this.source = data.source;
    for (const s of this.steps) s.time = s.ms !== undefined ? s.ms : s.roof_ms;
    this.total = this.steps.reduce((sum, s) => sum + s.time, 0);
    this.flops = this.steps.reduce((sum, s) => sum + s.flops, 0);
    this.bytes = this.steps.reduce((sum, s) => sum + s.bytes, 0);
    this.link();
    this.given = this.modelFlops();
  }

  // A time, where it was measured; else its share of the run, for a nominal machine's milliseconds are nobody's.
  time(t) { return this.measured ? Format.ms(t) : Format.percent(this.total ? t / this.total : 0); }

  // Operations of the graph as imported, constants apart; null where loops and branches hide how often they are done.
  modelFlops() {
    const g = this.data.graphs.find(x => x.pass === 'imported'), constant = new Set();
    let sum = 0;
    for (const id of g ? g.nodes : []) {
      const n = this.node.get(id);
      if (n.inside !== undefined) return null;
      if (n.op === 'data' || n.op === 'const' || (n.src.length && n.src.every(s => constant.has(s)))) constant.add(id); else sum += n.flops || 0;
    }
    return sum;
  }

  link() {
    const add = (map, key, value) => { if (!map.has(key)) map.set(key, []); map.get(key).push(value); };
    this.byName = new Map();        // "node\0op" -> places in source
    this.source.forEach((s, i) => add(this.byName, s.node + '\0' + s.op, i));
    this.stepsOf = new Map();       // place in source -> steps
    this.stepsOfNode = new Map();   // number of a node -> steps
    this.readers = new Map();       // tensor -> steps
    this.writers = new Map();
    for (const s of this.steps) {
      for (const o of s.source)
        for (const i of this.byName.get(o.node + '\0' + o.op) || []) add(this.stepsOf, i, s);
      for (const n of s.nodes) add(this.stepsOfNode, n, s);
      for (const t of s.reads) add(this.readers, t, s);
      for (const t of s.writes) add(this.writers, t, s);
    }
    this.nodesOf = new Map();       // place in source -> nodes of the graph
    for (const n of this.data.nodes) {
      const o = n.origin !== undefined ? this.data.origins[n.origin] : null;
      for (const i of (o && this.byName.get(o.node + '\0' + o.op)) || []) add(this.nodesOf, i, n.id);
    }
    this.notesOf = new Map();       // number of a node -> notes
    for (const n of this.data.notes) if (n.node !== undefined) add(this.notesOf, n.node, n);
    this.tensorsOf = new Map();     // number of a node -> tensors
    for (const t of this.data.tensors) if (t.node !== undefined) add(this.tensorsOf, t.node, t);
    this.producer = new Map();      // name of a value -> place in source
    this.source.forEach((s, i) => s.outputs.forEach(v => { if (v.name) this.producer.set(v.name, i); }));
    this.users = new Map();         // name of a value -> places in source
    this.source.forEach((s, i) => s.inputs.forEach(v => { if (v.name) add(this.users, v.name, i); }));
  }

  // What a node of the file became: 'computed', 'folded', 'moved' (coordinates only) or 'nothing'.
  fate(i) {
    if ((this.stepsOf.get(i) || []).length) return 'computed';
    const nodes = this.nodesOf.get(i) || [];
    if (nodes.some(n => (this.tensorsOf.get(n) || []).some(t => t.folded))) return 'folded';
    return nodes.length ? 'moved' : 'nothing';
  }

  kernelOf(step) { return step.kind === 'generated' ? this.kernel.get(step.name) : undefined; }
  share(step) { return this.total ? step.time / this.total : 0; }

  // Of a training step: 'forward' is what the loss needs, 'update' only writes weights and moments, 'backward' is the rest.
  phases() {
    const loss = this.data.outputs.find(o => o.name === 'loss'), g = this.data.graphs.find(x => x.pass === 'rewritten');
    const result = loss && this.tensor.get(loss.tensor), needed = new Set(), todo = result && result.node !== undefined ? [result.node] : [];
    if (this.data.function !== 'train_step' || !todo.length || !g) return null;
    while (todo.length) {
      const id = todo.pop();
      if (needed.has(id)) continue;
      needed.add(id);
      todo.push(...this.node.get(id).src);
    }
    const sum = {forward: {steps: 0, time: 0, flops: 0, bytes: 0}, backward: {steps: 0, time: 0, flops: 0, bytes: 0}, update: {steps: 0, time: 0, flops: 0, bytes: 0}};
    for (const s of this.steps) {
      const update = /^(elementwise|copy)$/.test(s.form) && s.writes.some(t => this.tensor.get(t).offset < this.data.state_bytes);
      const row = sum[update ? 'update' : s.nodes.length && s.nodes.every(n => needed.has(n)) ? 'forward' : 'backward'];
      row.steps++; row.time += s.time; row.flops += s.flops; row.bytes += s.bytes;
    }
    return sum;
  }

  // "layer4.0/conv2" as its groups, outermost first.
  layers(s) { return s.layer ? s.layer.split('/') : []; }

  // Operations a second over what the machine can do; bytes likewise: the larger is how near the roof it is.
  ofRoof(step) { return step.time > 0 ? Math.min(1, step.roof_ms / step.time) : 0; }

  memories() {
    return this.data.memories || [{name: 'arena', size: null, bytes: this.data.arena_bytes}];
  }

  // The tensor whose bytes this one takes over, as memplan tells, or undefined.
  takenFrom(t) {
    const n = this.data.notes.find(x => x.pass === 'memplan' && x.tensor === t.id);
    return n && this.tensor.get(n.of);
  }

  tensorName(t) {
    if (t.name) return t.name;
    if (t.from && t.from.length) return (t.folded ? 'folded: ' : '') + t.from.join(', ');
    if (t.source) return t.source.node;
    const s = (this.writers.get(t.id) || [])[0] || (this.readers.get(t.id) || [])[0] || this.data.steps.find(x => x.scratch === t.id);
    return s ? `scratch of ${s.name.split('_')[0]}` : `tensor ${t.id}`;
  }

  stepLabel(s) { return s.name.replace(/^(k\d+)_/, '$1 '); }
}

const Load = {
  // The data in a <script> of this page, or null.
  embedded(id) {
    const node = document.getElementById(id);
    return node ? JSON.parse(node.textContent) : null;
  },
  // That of the function in the address, or the first.
  chosen() {
    const wanted = decodeURIComponent(location.search.slice(1)), first = this.embedded('data');
    if (!wanted || !first || first.function === wanted) return first;
    for (let i = 1, d; (d = this.embedded('data-' + i)); i++) if (d.function === wanted) return d;
    return first;
  },
  show(name) { location.search = '?' + encodeURIComponent(name); },
  // Of a file that somebody chose: JSON, or another report.
  text(text) {
    const at = text.indexOf('<script type="application/json" id="data"' + '>');
    const json = at < 0 ? text : text.slice(text.indexOf('>', at) + 1, text.indexOf('<' + '/script>', at));
    const data = JSON.parse(json);
    if (data.format !== 'ingot inspect') throw new Error('this is no report of ingot');
    return data;
  },
};
