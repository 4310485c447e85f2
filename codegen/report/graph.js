'use strict';
// graph.js - a graph on a canvas: groups that open and close, zoom, pan, keys. What is small on the screen is drawn with
// less: boxes without text, then blocks of colour. The same as a list, for who wants no picture.

const GraphView = (() => {
  const TITLE = 24, PAD = 14, ROOM = 140;   // ROOM: boxes that are open at first
  let m, box, canvas, constants = false, mode = 'file', shape = 'graph', graph = null, root = null, view = {x: 0, y: 0, k: 1}, lit = new Set(), selected = null, first = true, laid = 0, drawn = [];
  const cache = new Map();

  // ---- groups -----------------------------------------------------------------------------------
  function tree(g) {
    const top = {key: '', name: '', children: [], parent: null, open: true, n: 0};
    const groups = new Map([['', top]]);
    g.leaves.forEach((leaf, i) => {
      let at = top;
      for (const s of leaf.scope) {
        if (!groups.has(s.key)) {
          const next = {key: s.key, name: s.name, under: s.under, folded: s.folded, children: [], parent: at, open: false, n: 0};
          groups.set(s.key, next);
          at.children.push(next);
        }
        at = groups.get(s.key);
      }
      leaf.index = i;
      leaf.parent = at;
      at.children.push(leaf);
    });
    const tidy = group => {   // a group of one is what is in it
      group.children = group.children.map(c => {
        if (!c.children) return c;
        tidy(c);
        if (c.children.length !== 1) return c;
        const only = c.children[0];
        only.parent = group;
        if (only.children) only.name = c.name + ' / ' + only.name;
        return only;
      });
      group.n = group.children.reduce((a, c) => a + (c.children ? c.n : 1), 0);
      group.colour = group.children.map(c => c.colour).find(c => c === 'contract') || (group.children[0] && group.children[0].colour);
    };
    tidy(top);
    let shown = top.children.length, queue = [top];
    while (queue.length) {
      const next = queue.shift().children.filter(c => c.children);
      for (const c of next) if (!c.folded && shown + c.children.length <= ROOM) { c.open = true; shown += c.children.length; queue.push(c); }
    }
    return top;
  }

  const path = x => { const out = []; for (; x; x = x.parent) out.unshift(x); return out; };

  function measure(x) {
    const chars = Math.max((x.title || x.name).length * 7.4 + (x.badge ? x.badge.length * 6.4 + 16 : 0), Math.min(34, (x.under || '').length) * 6.2, x.children ? 70 : 0, x.more && x.kind === 'step' ? 90 : 0);
    x.w = Math.max(84, Math.min(240, chars + 26));
    x.h = 40;
  }

  function layout() {
    const levels = new Map();   // group -> from -> to -> number of edges
    const aspect = canvas.clientHeight > 100 ? Math.max(0.5, canvas.clientWidth / canvas.clientHeight) : 1.6;
    const port = (pin, children) => (children.size ? {pin, port: true, w: 2, h: 0} : null);
    // Edges come into an open group and leave it by a row of their own, so that they pass its boxes as others do.
    const size = group => {
      for (const c of group.children) if (c.children && c.open) size(c); else measure(c);
      group.entry = port('first', group.entries); group.exit = port('last', group.exits);
      const boxes = [group.entry, ...group.children, group.exit].filter(Boolean);
      const at = new Map(boxes.map((c, i) => [c, i])), edges = [], map = levels.get(group) || new Map();
      for (const [from, tos] of map) for (const [to, e] of tos) edges.push([at.get(from), at.get(to), e]);
      for (const [c, e] of group.entries) edges.push([0, at.get(c), e]);
      for (const [c, e] of group.exits) edges.push([at.get(c), boxes.length - 1, e]);
      const l = Layout.layers(boxes, edges, aspect);
      group.paths = edges.map(([a, b, e], i) => ({from: boxes[a], to: boxes[b], n: e.n, types: e.types, bends: l.paths[i]}));
      group.ports = [group.entry, group.exit].filter(Boolean);
      group.w = Math.max(l.width + 2 * PAD, group.name.length * 7 + 40);
      group.h = l.height + PAD + (group.parent ? TITLE : PAD);
      const shift = (group.w - l.width) / 2;
      for (const c of boxes) { c.x += shift; c.y += group.parent ? TITLE : PAD; }
      for (const p of group.paths) for (const b of p.bends) { b[0] += shift; b[1] += group.parent ? TITLE : PAD; }
    };
    const settle = (group, x, y) => {
      group.ax = x; group.ay = y;
      for (const p of group.paths) for (const b of p.bends) { b[0] += x; b[1] += y; }
      for (const c of group.ports) { c.ax = x + c.x; c.ay = y + c.y; }
      for (const c of group.children) if (c.children && c.open) settle(c, x + c.x, y + c.y); else { c.ax = x + c.x; c.ay = y + c.y; }
    };
    const clear = group => { group.entries = new Map(); group.exits = new Map(); for (const c of group.children) if (c.children) clear(c); };
    const began = performance.now();
    clear(root);
    const count = (map, key, type) => { if (!map.has(key)) map.set(key, {n: 0, types: new Set()}); const e = map.get(key); e.n++; if (type) e.types.add(type); };
    for (const [a, b, type] of graph.edges) {
      const p = path(graph.leaves[a]), q = path(graph.leaves[b]);
      let d = 0;
      while (p[d] && p[d] === q[d] && p[d].children && p[d].open) d++;
      const from = p[d], to = q[d], group = p[d - 1];
      if (!from || !to || from === to) continue;
      if (!levels.has(group)) levels.set(group, new Map());
      const map = levels.get(group);
      if (!map.has(from)) map.set(from, new Map());
      count(map.get(from), to, type);
      for (let i = d; p[i] && p[i].children && p[i].open; i++) if (p[i + 1]) count(p[i].exits, p[i + 1], type);
      for (let i = d; q[i] && q[i].children && q[i].open; i++) if (q[i + 1]) count(q[i].entries, q[i + 1], type);
    }
    size(root);
    settle(root, 0, 0);
    laid = performance.now() - began;
  }

  // The box that stands for a leaf: itself, or the outermost group around it that is closed.
  function shown(leaf) { for (const x of path(leaf)) if (!x.children || !x.open) return x; return leaf; }

  function* boxes(group) { for (const c of group.children) if (c.children && c.open) { yield c; yield* boxes(c); } else yield c; }

  // ---- drawing -----------------------------------------------------------------------------------
  function curve(g, points) {
    g.moveTo(points[0][0], points[0][1]);
    for (let i = 1; i < points.length; i++) {
      const [x0, y0] = points[i - 1], [x1, y1] = points[i], h = (y1 - y0) / 2;
      if (x0 === x1) g.lineTo(x1, y1); else g.bezierCurveTo(x0, y0 + h, x1, y1 - h, x1, y1);
    }
  }
  const middle = b => b.ax + b.w / 2;
  const bottom = b => [b.open && b.exit ? middle(b.exit) : middle(b), b.ay + b.h], top = b => [b.open && b.entry ? middle(b.entry) : middle(b), b.ay];
  const dims = type => { const t = /^(\w+)\[(.*)\]$/.exec(type); return t ? (t[1] === 'f32' ? '' : t[1] + ' ') + (t[2] ? t[2].replace(/,/g, '\u00d7') : 'scalar') : type; };

  // The points of an edge that is drawn, in the picture; at an entry or exit, from or to the frame of its group.
  function points(group, p) {
    const a = p.from.port ? [[middle(p.from), group.ay], bottom(p.from)] : [bottom(p.from)], b = p.to.port ? [top(p.to), [middle(p.to), group.ay + group.h]] : [top(p.to)];
    return [...a, ...p.bends, ...b];
  }

  // What goes along an edge, beside its beginning; of several kinds of values the first.
  function shapes(g, group, said) {
    g.font = '10px system-ui, "DejaVu Sans", sans-serif'; g.textBaseline = 'middle';
    for (const p of group.paths) {
      const text = p.types && p.types.size ? dims([...p.types][0]) + (p.types.size > 1 ? ' \u2026' : '') : '';
      if (!text || p.from.port || said.has(p.from.ax + text + p.from.ay)) continue;
      said.add(p.from.ax + text + p.from.ay);
      const [x, y] = bottom(p.from), w = g.measureText(text).width;
      g.globalAlpha = 0.85; g.fillStyle = Colour.value(group.parent ? 'surface' : 'bg'); g.fillRect(x + 4, y + 3, w + 4, 13);
      g.globalAlpha = 1; g.fillStyle = Colour.value('dim'); g.fillText(text, x + 6, y + 10);
    }
  }

  function rounded(g, x, y, w, h, r) { g.beginPath(); if (g.roundRect) g.roundRect(x, y, w, h, r); else g.rect(x, y, w, h); }

  function drawLeaf(g, b, far, near) {
    const colour = Colour.of(b.colour || 'map'), on = lit.has(b) || (b.children && [...lit].some(x => path(x).includes(b)));
    g.globalAlpha = b.faint && !on ? 0.62 : 1;
    rounded(g, b.ax, b.ay, b.w, b.h, 5);
    g.fillStyle = far ? colour : Colour.value('raised');
    g.fill();
    if (!far) {
      g.lineWidth = on ? 2.5 / Math.min(1, view.k) : 1;
      g.strokeStyle = on ? Colour.value('accent') : Colour.value('strong');
      if (b.children) g.setLineDash([]);
      g.stroke();
      g.fillStyle = colour;
      g.fillRect(b.ax + 1, b.ay + 6, 3, b.h - 12);
      if (b.children) { g.strokeStyle = Colour.value('line'); g.lineWidth = 1; rounded(g, b.ax + 3, b.ay + 3, b.w, b.h, 5); g.globalCompositeOperation = 'destination-over'; g.stroke(); g.globalCompositeOperation = 'source-over'; }
    } else if (on) {
      g.lineWidth = 3 / view.k; g.strokeStyle = Colour.value('accent'); g.stroke();
    }
    g.globalAlpha = 1;
    if (far) return;
    g.textBaseline = 'middle';
    const inner = b.w - 20;
    g.fillStyle = Colour.value('text');
    g.font = '600 12px system-ui, "DejaVu Sans", sans-serif';
    const badge = b.children ? '+' : b.badge, badgeWidth = badge ? badge.length * 6.2 + 8 : 0;
    g.fillText(Dom.clip(g, b.title || b.name, inner - badgeWidth), b.ax + 11, b.ay + (near ? 14 : b.h / 2));
    if (near) {
      g.font = '11px system-ui, "DejaVu Sans", sans-serif';
      g.fillStyle = Colour.value('dim');
      g.fillText(Dom.clip(g, b.children ? b.under || `${b.n} nodes` : b.under || '', inner), b.ax + 11, b.ay + 28);
      if (badge) { g.textAlign = 'right'; g.fillText(badge, b.ax + b.w - 8, b.ay + 14); g.textAlign = 'left'; }
    }
  }

  function draw(g, w, h) {
    if (!root) return;
    if (first) { first = false; fit(w, h); reveal(true); }
    g.save();
    g.translate(view.x, view.y);
    g.scale(view.k, view.k);
    const x0 = -view.x / view.k, y0 = -view.y / view.k, x1 = x0 + w / view.k, y1 = y0 + h / view.k;
    const seen = b => b.ax < x1 && b.ax + b.w > x0 && b.ay < y1 && b.ay + b.h > y0;
    const far = view.k < 0.34, near = view.k >= 0.55;
    const open = [root, ...[...boxes(root)].filter(b => b.children && b.open)].filter(seen);
    open.slice(1).forEach(b => {
      rounded(g, b.ax, b.ay, b.w, b.h, 8);
      g.fillStyle = Colour.value('surface'); g.fill();
      g.strokeStyle = Colour.value('line'); g.lineWidth = 1 / Math.min(1, view.k); g.stroke();
      if (view.k > 0.2) {
        g.fillStyle = Colour.value('dim'); g.textBaseline = 'middle';
        g.font = `600 ${Math.min(30, 12 / Math.min(1, view.k * 1.4))}px system-ui, "DejaVu Sans", sans-serif`;
        g.fillText(Dom.clip(g, `\u2212 ${b.name}`, b.w - 16), b.ax + 10, b.ay + 13);
      }
    });
    g.lineWidth = 1.2 / Math.min(1, Math.max(0.4, view.k));
    g.strokeStyle = Colour.value('strong');
    g.beginPath();
    drawn = [];
    for (const group of open)
      for (const p of group.paths) {
        const line = points(group, p), ys = line.map(q => q[1]);
        if (Math.max(...ys) < y0 || Math.min(...ys) > y1) continue;
        curve(g, line);
        drawn.push({from: name(p.from), to: name(p.to), group: name(group), n: p.n});
      }
    g.stroke();
    if (lit.size && lit.size < 60) {   // the edges of what is selected, from box to box
      g.strokeStyle = Colour.value('accent'); g.lineWidth = 2 / Math.min(1, view.k);
      g.beginPath();
      for (const [a, b] of graph.edges) {
        const u = graph.leaves[a], v = graph.leaves[b];
        if ((lit.has(u) || lit.has(v)) && shown(u) !== shown(v)) curve(g, [bottom(shown(u)), top(shown(v))]);
      }
      g.stroke();
    }
    const said = new Set();
    if (near) for (const group of open) shapes(g, group, said);
    for (const b of boxes(root)) if (!(b.children && b.open) && seen(b)) drawLeaf(g, b, far, near);
    g.restore();
    minimap(g, w, h);
  }
  const name = b => (b.port ? b.pin : b.children ? 'group ' + b.key : `${b.kind} ${b.id}`);

  // ---- the whole in a corner, and what of it is shown ------------------------------------------------
  const MAP_W = 170, MAP_H = 120;
  function mapPlace(w, h) {
    const k = Math.min(MAP_W / root.w, MAP_H / root.h), whole = view.x >= 0 && view.y >= 0 && view.x + root.w * view.k <= w && view.y + root.h * view.k <= h;
    return whole || w < 500 ? null : {k, x: w - root.w * k - 14, y: h - root.h * k - 14};
  }
  function minimap(g, w, h) {
    const at = mapPlace(w, h);
    if (!at) return;
    g.fillStyle = Colour.value('raised'); g.strokeStyle = Colour.value('strong'); g.lineWidth = 1;
    rounded(g, at.x - 5, at.y - 5, root.w * at.k + 10, root.h * at.k + 10, 4); g.fill(); g.stroke();
    for (const b of boxes(root)) {
      if (b.children && b.open) continue;
      g.fillStyle = Colour.of(b.colour || 'map');
      g.fillRect(at.x + b.ax * at.k, at.y + b.ay * at.k, Math.max(1, b.w * at.k), Math.max(1, b.h * at.k));
    }
    const x0 = Math.max(0, -view.x / view.k), y0 = Math.max(0, -view.y / view.k), x1 = Math.min(root.w, (w - view.x) / view.k), y1 = Math.min(root.h, (h - view.y) / view.k);
    g.strokeStyle = Colour.value('accent'); g.lineWidth = 2;
    g.strokeRect(at.x + x0 * at.k, at.y + y0 * at.k, Math.max(4, (x1 - x0) * at.k), Math.max(4, (y1 - y0) * at.k));
  }
  // A place in the small picture, in the middle of the large one; false: it is beside it.
  function mapMove(px, py) {
    const w = canvas.clientWidth, h = canvas.clientHeight, at = mapPlace(w, h);
    if (!at || px < at.x - 5 || py < at.y - 5 || px > at.x + root.w * at.k + 5 || py > at.y + root.h * at.k + 5) return false;
    view.x = w / 2 - (px - at.x) / at.k * view.k; view.y = h / 2 - (py - at.y) / at.k * view.k;
    canvas.redraw();
    return true;
  }

  // ---- moving ------------------------------------------------------------------------------------
  function fit(w, h) {
    w = w || canvas.clientWidth; h = h || canvas.clientHeight;
    const READABLE = 0.42, all = Math.min(1.1, (w - 30) / root.w, (h - 30) / root.h);
    view.k = Math.max(0.02, all);
    view.x = (w - root.w * view.k) / 2; view.y = (h - root.h * view.k) / 2;
    // what would be too small to read is begun at its first box, with as much around it as can be read
    const leaves = [...boxes(root)].filter(b => !(b.children && b.open));
    const start = graph.leaves.length ? shown(graph.leaves[0]) : root;
    for (const k of [0.8, 0.6, 0.45, 0.3]) {
      if (all >= Math.min(k, READABLE)) break;
      const x = root.w * k < w ? (w - root.w * k) / 2 : start.ax * k < w / 2 ? 15 : w / 3 - start.ax * k, y = start.ay * k < h / 2 ? 12 : h / 3 - start.ay * k;
      const seen = leaves.filter(b => { const bx = b.ax * k + x, by = b.ay * k + y; return bx < w && bx + b.w * k > 0 && by < h && by + b.h * k > 0; }).length;
      if (seen < Math.min(5, leaves.length)) continue;
      view.k = k; view.x = x; view.y = y;
      break;
    }
    canvas.redraw();
  }
  function whole() {
    const w = canvas.clientWidth, h = canvas.clientHeight;
    view.k = Math.min(1.1, (w - 30) / root.w, (h - 30) / root.h);
    view.x = (w - root.w * view.k) / 2; view.y = (h - root.h * view.k) / 2;
    canvas.redraw();
  }
  function zoom(by_, x, y) {
    const k = Math.min(3, Math.max(0.01, view.k * by_));
    if (x === undefined) { x = canvas.clientWidth / 2; y = canvas.clientHeight / 2; }
    view.x = x - (x - view.x) * k / view.k; view.y = y - (y - view.y) * k / view.k; view.k = k;
    canvas.redraw();
  }
  function centre(b) {
    const w = canvas.clientWidth, h = canvas.clientHeight;
    view.k = Math.max(0.7, Math.min(1.2, view.k));
    view.x = w / 2 - (b.ax + b.w / 2) * view.k; view.y = h / 2 - (b.ay + b.h / 2) * view.k;
    canvas.redraw();
  }
  function hit(px, py) {
    const x = (px - view.x) / view.k, y = (py - view.y) / view.k;
    let found = null;
    for (const b of boxes(root)) if (x >= b.ax && x <= b.ax + b.w && y >= b.ay && y <= b.ay + b.h) if (!(b.children && b.open) || y < b.ay + TITLE) found = b;
    return found;
  }
  function toggle(group) {   // what was clicked stays where it is
    const before = [group.ax * view.k + view.x, group.ay * view.k + view.y];
    group.open = !group.open;
    layout();
    view.x = before[0] - group.ax * view.k; view.y = before[1] - group.ay * view.k;
    State.say(`${group.name} is ${group.open ? 'open' : 'closed'}: ${group.n} nodes`);
    canvas.redraw();
  }
  function all(open) {
    for (const b of (function* walk(x) { for (const c of x.children) if (c.children) { yield c; yield* walk(c); } })(root)) b.open = open;
    layout();
    whole();
  }

  // ---- selection ----------------------------------------------------------------------------------
  function leavesOf({kind, id}) {
    const wanted = new Set();
    const add = (k, i) => wanted.add(k + ' ' + i);
    if (kind) add(kind, id);
    const ofStep = s => { add('step', s.step); for (const o of s.source) for (const i of m.byName.get(o.node + '\0' + o.op) || []) add('source', i); for (const n of s.nodes) add('node', n); };
    if (kind === 'step' && m.step.has(+id)) ofStep(m.step.get(+id));
    if (kind === 'kernel' && m.kernel.has(id)) m.kernel.get(id).steps.forEach(s => ofStep(m.step.get(s)));
    if (kind === 'source') { for (const s of m.stepsOf.get(+id) || []) add('step', s.step); for (const n of m.nodesOf.get(+id) || []) add('node', n); }
    if (kind === 'tensor' && m.tensor.has(+id)) for (const s of m.writers.get(+id) || []) ofStep(s);
    return new Set(graph.leaves.filter(l => wanted.has(l.kind + ' ' + l.id)));
  }
  function reveal(move) {
    lit = leavesOf(State.get());
    selected = [...lit][0] || null;
    if (selected && move) {
      let changed = false;
      for (const x of path(selected)) if (x.children && !x.open) { x.open = true; changed = true; }
      if (changed) layout();
      centre(selected);
    }
    canvas.redraw();
    if (shape === 'list') list();
  }
  function walk(key) {   // arrows: along the edges; sideways: the next box of the list
    if (!selected) { selected = graph.leaves[0]; if (selected) State.select(selected.kind, selected.id); return; }
    const i = selected.index;
    const next = key === 'ArrowDown' ? graph.edges.find(e => e[0] === i) : key === 'ArrowUp' ? graph.edges.find(e => e[1] === i) : null;
    const to = next ? next[key === 'ArrowDown' ? 1 : 0] : key === 'ArrowRight' ? i + 1 : key === 'ArrowLeft' ? i - 1 : -1;
    if (graph.leaves[to]) State.select(graph.leaves[to].kind, graph.leaves[to].id);
  }

  // ---- the view -----------------------------------------------------------------------------------
  function use(next) {
    mode = next;
    const key = mode + constants;
    if (!cache.has(key)) {
      let g = Graphs.kinds[mode].make(m);
      if (!constants) g = Graphs.withoutConstants(g);
      const hidden = g.hidden;
      g = Graphs.convex(Graphs.adopt(g));
      g.hidden = hidden;
      cache.set(key, {g, root: tree(g)});
    }
    graph = cache.get(key).g;
    root = cache.get(key).root;
    layout();
    first = true;
    by('graphconstants').setAttribute('aria-pressed', String(constants));
    const text = `${graph.leaves.length} nodes, ${graph.edges.length} edges${graph.hidden ? `, ${graph.hidden} constants hidden` : ''}`;
    by('graphcount').textContent = text;
    canvas.setAttribute('aria-label', `${Graphs.kinds[mode].title}: a graph of ${text}. Arrows follow the edges, plus and minus zoom, 0 fits, Enter opens a group`);
    lit = leavesOf(State.get());
    selected = [...lit][0] || null;
    canvas.redraw();
    if (shape === 'list') list();
  }

  function list() {
    const text = by('graphfilter').value.toLowerCase(), rows = graph.leaves.filter(l => !text || `${l.title} ${l.under} ${l.more}`.toLowerCase().includes(text));
    fill(by('graphlist'), el('table', {}, el('thead', {}, el('tr', {}, ['Operation', 'Name', 'Type', 'Kernel'].map(t => el('th', {scope: 'col'}, t)))),
      el('tbody', {}, rows.slice(0, 1500).map(l => el('tr', {class: 'pick', 'aria-selected': String(lit.has(l)), onclick: () => State.select(l.kind, l.id)},
        el('td', {}, el('span', {class: 'dot', style: {background: Colour.css(l.colour)}}), l.title), el('td', {class: 'name'}, el('button', {type: 'button', class: 'link'}, l.under)), el('td', {class: 'mono'}, l.more), el('td', {}, l.badge || ''))))),
      rows.length > 1500 ? el('p', {class: 'dim'}, `and ${rows.length - 1500} more: filter to see them`) : null);
  }

  function look(next) {
    shape = next;
    by('graphstage').hidden = shape !== 'graph';
    by('graphlistbox').hidden = shape !== 'list';
    if (shape === 'list') list(); else canvas.redraw();
  }

  function events() {
    const pointers = new Map();
    let moved = 0, spread = 0;
    let onMap = false;
    canvas.addEventListener('pointerdown', e => { canvas.setPointerCapture(e.pointerId); onMap = mapMove(e.offsetX, e.offsetY); pointers.set(e.pointerId, [e.offsetX, e.offsetY]); moved = 0; spread = 0; });
    canvas.addEventListener('pointermove', e => {
      const last = pointers.get(e.pointerId);
      if (!last) {
        const b = hit(e.offsetX, e.offsetY);
        Dom.tip(b ? (b.children ? `${b.name}\n${b.n} nodes: click to ${b.open ? 'close' : 'open'}` : [`${b.title} ${b.under}`, b.more, b.badge].filter(Boolean).join('\n')) : '', e.clientX, e.clientY);
        canvas.style.cursor = b ? 'pointer' : 'grab';
        return;
      }
      Dom.tip('');
      pointers.set(e.pointerId, [e.offsetX, e.offsetY]);
      if (onMap) { mapMove(e.offsetX, e.offsetY); return; }
      if (pointers.size === 2) {
        const [p, q] = [...pointers.values()], now = Math.hypot(p[0] - q[0], p[1] - q[1]);
        if (spread) zoom(now / spread, (p[0] + q[0]) / 2, (p[1] + q[1]) / 2);
        spread = now;
        return;
      }
      view.x += e.offsetX - last[0]; view.y += e.offsetY - last[1];
      moved += Math.abs(e.offsetX - last[0]) + Math.abs(e.offsetY - last[1]);
      canvas.redraw();
    });
    const up = e => {
      if (pointers.delete(e.pointerId) && !onMap && e.type === 'pointerup' && moved < 5 && !spread) {
        const b = hit(e.offsetX, e.offsetY);
        if (b && b.children) toggle(b); else if (b) State.select(b.kind, b.id); else State.select(null);
      }
    };
    canvas.addEventListener('pointerup', up);
    canvas.addEventListener('pointercancel', up);
    canvas.addEventListener('pointerleave', () => Dom.tip(''));
    canvas.addEventListener('wheel', e => {
      e.preventDefault();
      if (e.shiftKey) { view.x -= e.deltaY || e.deltaX; canvas.redraw(); } else zoom(Math.exp(-e.deltaY * (e.deltaMode ? 0.05 : 0.0016)), e.offsetX, e.offsetY);
    }, {passive: false});
    canvas.addEventListener('keydown', e => {
      if (e.key.startsWith('Arrow')) walk(e.key);
      else if (e.key === '+' || e.key === '=') zoom(1.25);
      else if (e.key === '-') zoom(0.8);
      else if (e.key === '0') whole();
      else if (e.key === 'Enter' && selected && shown(selected).children) toggle(shown(selected));
      else if (e.key === 'Backspace' && selected && selected.parent && selected.parent.parent) toggle(selected.parent);
      else return;
      e.preventDefault();
    });
    document.addEventListener('theme', canvas.redraw);
  }

  function make(element) {
    box = element;
    canvas = Dom.canvas('Graph', draw);
    canvas.id = 'graphcanvas';
    const kinds = Object.entries(Graphs.kinds).filter(([k]) => k !== 'file' || m.source.length).map(([k, v]) => [k, v.title]);
    if (!m.source.length) mode = 'plan';
    const button = (text, label, f) => el('button', {type: 'button', 'aria-label': label, title: label, onclick: f}, text);
    const modes = Dom.choice('Which graph', kinds, mode, use);
    modes.id = 'graphmode';
    fill(box, el('div', {class: 'fill'}, el('div', {class: 'tools'}, modes, Dom.choice('Picture or list', [['graph', 'Graph'], ['list', 'List']], shape, look),
      el('span', {class: 'group'}, button('+', 'Zoom in', () => zoom(1.3)), button('\u2212', 'Zoom out', () => zoom(1 / 1.3)), button('Fit', 'Show all', whole)),
      el('button', {type: 'button', id: 'graphconstants', title: 'Nodes that depend on no input', onclick: () => { constants = !constants; use(mode); }}, 'Constants'),
    button('Open all', 'Open all groups', () => all(true)), button('Close all', 'Close all groups', () => all(false)), el('span', {class: 'dim push', id: 'graphcount'})),
    el('div', {class: 'stage', id: 'graphstage'}, canvas),
    el('div', {id: 'graphlistbox', class: 'scroll', hidden: true, style: {padding: '0 20px', flex: '1'}}, el('input', {id: 'graphfilter', type: 'search', placeholder: 'Filter', 'aria-label': 'Filter the list', oninput: list}), el('div', {id: 'graphlist'}))));
    events();
    use(mode);
  }

  function show(sel) {
    if (!sel.kind) { lit = new Set(); selected = null; canvas.redraw(); return; }
    const inside = g => g && m.data.graphs.find(x => x.pass === g).nodes.includes(+sel.id);
    const want = sel.kind === 'source' ? (mode === 'file' ? null : 'file') : sel.kind === 'node' && !(mode === 'imported' || mode === 'rewritten') ? (inside('rewritten') ? 'rewritten' : 'imported') : null;
    if (want && (want !== 'file' || m.source.length)) {
      for (const b of by('graphmode').children) b.setAttribute('aria-pressed', String(b.dataset.value === want));
      use(want);
    }
    if (!constants && (sel.kind === 'source' || sel.kind === 'node') && !leavesOf(sel).size) { constants = true; use(mode); }
    reveal(true);
  }

  Views.add({name: 'graph', title: 'Graph', make, show, start: model => { m = model; }});
  return {open: all, drawn: () => drawn, look: () => ({k: view.k, x: view.x, y: view.y, boxes: [...boxes(root)].length, leaves: graph.leaves.length, edges: graph.edges.length, lit: [...lit].map(l => l.kind + ' ' + l.id), laid}),
          at: (kind, id) => { const l = graph.leaves.find(x => x.kind === kind && String(x.id) === String(id)), b = l && shown(l); return b ? [(b.ax + b.w / 2) * view.k + view.x, (b.ay + b.h / 2) * view.k + view.y] : null; }, draw};
})();
