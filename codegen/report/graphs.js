'use strict';
// graphs.js - what can be drawn as a graph: the file's nodes, those of the compiler, the steps of the plan. Each is a list
// of leaves {id, kind, title, under, colour, scope, open to State.select} in an order of evaluation, and edges between them.

const Graphs = (() => {
  const short = name => { const i = name.lastIndexOf('/'); return i >= 0 && i + 1 < name.length ? name.slice(i + 1) : name; };

  // "layer1/layer1.0/conv1/Conv" of a Conv is conv1.
  function called(name, op) {
    const parts = name.split('/').filter(Boolean), last = parts.pop() || name;
    return parts.length && last.replace(/_\d+$/, '') === op ? parts.pop() : last;
  }

  function scopePath(scope) {
    const parts = scope ? scope.split('/') : [], out = [];
    let last = '';
    for (const p of parts) {   // "m", "m.h", "m.h.0" are m, h, 0; "layer1", "layer1.0" are layer1, 0
      const name = last && p.startsWith(last + '.') ? p.slice(last.length + 1) : p;
      out.push({name, key: (out.length ? out[out.length - 1].key + '/' : '') + p});
      last = p;
    }
    return out;
  }

  function ofFile(m) {
    const leaves = [], edges = [], at = new Map();
    for (const v of m.data.inputs) {
      at.set('value:' + v.name, leaves.length);
      leaves.push({kind: 'tensor', id: v.tensor, title: 'Input', under: v.name, more: Format.type(v), colour: 'io', scope: []});
    }
    m.source.forEach((s, i) => {
      const steps = m.stepsOf.get(i) || [], path = scopePath(s.scope), parent = s.inside !== undefined ? leaves[at.get(s.inside)] : null;
      if (parent) { parent.holds = true; path.unshift(...parent.scope, {name: parent.under || parent.title, key: (parent.scope.length ? parent.scope[parent.scope.length - 1].key : '') + '/in ' + s.inside}); }
      at.set(i, leaves.length);
      s.outputs.forEach(v => { if (v.name) at.set('value:' + v.name, leaves.length); });
      leaves.push({kind: 'source', id: i, title: s.op, under: called(s.node, s.op), more: s.outputs[0] && s.outputs[0].type || '', colour: Colour.kindOf(s.op), scope: path,
        badge: steps.length ? steps[0].name.split('_')[0] + (steps.length > 1 ? '+' : '') : '', faint: m.fate(i) !== 'computed'});
    });
    m.source.forEach((s, i) => s.inputs.forEach(v => {
      const from = v.name ? at.get('value:' + v.name) : undefined;
      if (from !== undefined && from !== at.get(i)) edges.push([from, at.get(i), v.type || leaves[from].more]);
    }));
    for (const v of m.data.outputs) {
      const from = at.get('value:' + v.name);
      leaves.push({kind: 'tensor', id: v.tensor, title: 'Output', under: v.name, more: Format.type(v), colour: 'io', scope: []});
      if (from !== undefined) edges.push([from, leaves.length - 1, Format.type(v)]);
    }
    return sorted(leaves, edges);
  }

  function ofCompiler(m, pass) {
    const g = m.data.graphs.find(x => x.pass === pass), leaves = [], edges = [], at = new Map();
    const scopeOf = n => {
      const o = n.origin !== undefined ? m.data.origins[n.origin] : null, i = o ? (m.byName.get(o.node + '\0' + o.op) || [])[0] : undefined;
      if (!o) return [];
      const path = i !== undefined ? scopePath(m.source[i].scope) : [];
      return [...path, {name: `${o.op} ${short(o.node)}`, key: (path.length ? path[path.length - 1].key : '') + '/@' + n.origin}];
    };
    const list = g.nodes.map(id => m.node.get(id)).sort((a, b) => a.id - b.id);
    for (const n of list) {
      at.set(n.id, leaves.length);
      const steps = m.stepsOfNode.get(n.id) || [];
      leaves.push({kind: 'node', id: n.id, title: n.op, under: n.arg ? n.arg.slice(0, 28) : '%' + n.id, more: n.type, colour: Colour.kindOf(n.op), scope: scopeOf(n),
        badge: steps.length ? steps[0].name.split('_')[0] + (steps.length > 1 ? '+' : '') : '', faint: !steps.length});
    }
    for (const n of list) for (const s of n.src) if (at.has(s)) edges.push([at.get(s), at.get(n.id), m.node.get(s).type]);
    return {leaves, edges};
  }

  function ofPlan(m) {
    const leaves = [], edges = [], writer = new Map();
    const root = t => { while (t.base !== undefined) t = m.tensor.get(t.base); return t.id; };
    for (const v of [...m.data.inputs, ...m.data.states]) {
      writer.set(v.tensor, leaves.length);
      leaves.push({kind: 'tensor', id: v.tensor, title: m.tensor.get(v.tensor).kind === 'state' ? 'State' : 'Input', under: v.name, more: Format.type(v), colour: 'io', scope: []});
    }
    const at = new Map(), held = new Map();
    for (const s of m.steps) if (s.inside !== undefined) held.set(+s.inside, (held.get(+s.inside) || 0) + 1);
    for (const s of m.steps) {
      at.set(s.step, leaves.length);
      const inside = s.inside !== undefined ? leaves[at.get(+s.inside)] : null;
      let path = inside ? inside.scope : commonScope(m, s);
      if (held.has(s.step)) {   // a loop or a branch is a box with its steps inside: all its rounds are one
        const first = m.steps.find(x => x.inside !== undefined && +x.inside === s.step);
        path = [...path, {name: `${s.kind} ${s.layer || first.layer || ''}`, under: `${held.get(s.step)} steps${first.rounds > 1 ? `, ${Format.whole(first.rounds)} times` : ''}`, folded: true, key: (path.length ? path[path.length - 1].key : '') + '/in ' + s.step}];
      }
      leaves.push({kind: 'step', id: s.step, title: s.kind === 'generated' ? s.name.split('_')[0] + ' ' + s.form : s.form, under: m.layers(s).slice(-2).join('/') || s.kind, more: m.time(s.time), colour: Colour.ofStep(s), scope: path, badge: Format.percent(m.share(s))});
      for (const t of s.reads) { const x = m.tensor.get(t), from = writer.get(root(x)); if (from !== undefined) edges.push([from, leaves.length - 1, Format.type(x)]); }
      for (const t of s.writes) {   // what is written once more, in part, comes after who wrote it first
        const r = root(m.tensor.get(t)), before = writer.get(r);
        if (before !== undefined && before !== leaves.length - 1 && leaves[before].kind === 'step') edges.push([before, leaves.length - 1]);
        writer.set(r, leaves.length - 1);
      }
    }
    for (const v of m.data.outputs) {
      const from = writer.get(v.tensor);
      leaves.push({kind: 'tensor', id: v.tensor, title: 'Output', under: v.name, more: Format.type(v), colour: 'io', scope: []});
      if (from !== undefined) edges.push([from, leaves.length - 1, Format.type(v)]);
    }
    return {leaves, edges};
  }

  // The groups that all of a step's nodes stand in.
  function commonScope(m, s) {
    let common = null;
    for (const o of s.source) {
      const i = (m.byName.get(o.node + '\0' + o.op) || [])[0];
      const path = i !== undefined ? scopePath(m.source[i].scope) : [];
      common = common === null ? path : common.filter((x, k) => path[k] && path[k].key === x.key);
    }
    return common || [];
  }

  // The file may have its nodes in any order: sources first.
  function sorted(leaves, edges) {
    const into = leaves.map(() => 0), out = leaves.map(() => []), order = [], place = [];
    for (const [a, b] of edges) { into[b]++; out[a].push(b); }
    const ready = leaves.map((x, i) => i).filter(i => !into[i]).reverse();
    while (ready.length) {
      const i = ready.pop();
      order.push(i);
      const next = out[i].filter(j => --into[j] === 0).sort((a, b) => b - a);
      ready.push(...next);
    }
    leaves.forEach((x, i) => { if (into[i]) order.push(i); });
    order.forEach((i, k) => { place[i] = k; });
    return {leaves: order.map(i => leaves[i]), edges: edges.map(([a, b, type]) => [place[a], place[b], type])};
  }

  // Without what depends on no input: weights on their way to those who read them.
  function withoutConstants({leaves, edges}) {
    const live = leaves.map(l => l.title === 'Input' || l.title === 'State' || l.title === 'input' || l.title === 'state' || l.title === 'param' || l.kind === 'step');
    const at = new Array(leaves.length).fill(-1);
    for (let again = true; again;) { again = false; for (const [a, b] of edges) if (live[a] && !live[b]) live[b] = again = true; }
    const kept = leaves.filter((l, i) => live[i]);
    let n = 0;
    leaves.forEach((l, i) => { if (live[i]) at[i] = n++; });
    return {leaves: kept, edges: edges.filter(([a, b]) => live[a] && live[b]).map(([a, b, type]) => [at[a], at[b], type]), hidden: leaves.length - kept.length};
  }

  // Inputs and outputs stand in the group of the one who reads or makes them, if it is one.
  function adopt({leaves, edges}) {
    const near = leaves.map(() => new Set());
    for (const [a, b] of edges) { near[a].add(b); near[b].add(a); }
    leaves.forEach((l, i) => { if (l.colour === 'io' && !l.scope.length && near[i].size === 1) l.scope = leaves[[...near[i]][0]].scope; });
    return {leaves, edges};
  }

  // A group that something outside of it lies between would be before and after that: it is no group in a picture of layers.
  function convex({leaves, edges}) {
    const out = leaves.map(() => []), members = new Map(), bad = new Set();
    for (const [a, b] of edges) out[a].push(b);
    leaves.forEach((l, i) => { for (const s of l.scope) { if (!members.has(s.key)) members.set(s.key, []); members.get(s.key).push(i); } });
    for (const [key, list] of members) {
      const inside = new Uint8Array(leaves.length), seen = new Uint8Array(leaves.length), stack = [];
      for (const i of list) inside[i] = 1;
      for (const i of list) for (const j of out[i]) if (!inside[j] && !seen[j]) { seen[j] = 1; stack.push(j); }
      while (stack.length && !bad.has(key)) for (const j of out[stack.pop()]) { if (inside[j]) { bad.add(key); break; } if (!seen[j]) { seen[j] = 1; stack.push(j); } }
    }
    if (bad.size) for (const l of leaves) l.scope = l.scope.filter(s => !bad.has(s.key));
    return {leaves, edges};
  }

  const kinds = {file: {title: 'Model file', make: ofFile}, imported: {title: 'Imported', make: m => ofCompiler(m, 'imported')},
    rewritten: {title: 'Rewritten', make: m => ofCompiler(m, 'rewritten')}, plan: {title: 'Plan', make: ofPlan}};
  return {kinds, short, withoutConstants, adopt, convex};
})();
