'use strict';
// arena.js - memory as a picture: from left to right the steps, from bottom to top the addresses; each tensor is a
// rectangle from the step that makes it to the last one that reads it. Weights by who reads them.

const Arena = (() => {
  const L = 64, B = 26, T = 14, R = 12;
  let m, canvas, memory = 0, hover = null, zoom = {x0: 0, x1: 1};

  const chosen = () => m.data.tensors.filter(t => (t.kind === 'arena' || t.kind === 'state') && t.base === undefined && t.memory === memory && t.first <= t.last && t.bytes > 0);
  const steps = () => Math.max(1, ...m.steps.map(s => s.step + 1));
  const height = () => Math.max(1, m.memories()[memory].bytes);
  const colourOf = t => { if (t.kind === 'state') return 'io'; const s = t.step !== undefined ? m.step.get(t.step) : null; return s ? Colour.ofStep(s) : 'data'; };

  function scale(w, h) {
    const n = steps(), span = (zoom.x1 - zoom.x0) * n, px = (w - L - R) / span, from = zoom.x0 * n;
    return {x: s => L + (s - from) * px, y: b => h - B - b / height() * (h - B - T), px};
  }
  function rectangle(t, s) {
    const first = t.kind === 'state' ? 0 : t.first, last = t.kind === 'state' ? steps() - 1 : t.last;
    const x = s.x(first), y = s.y(t.offset + t.bytes);
    return [x, y, s.x(last + 1) - x, s.y(t.offset) - y];
  }

  // Bytes that two tensors share, one in place of the other, count once.
  function alive() {
    const at = new Array(steps()).fill(0), top = new Array(at.length).fill(0);
    for (const t of chosen().sort((a, b) => a.offset - b.offset))
      for (let s = t.kind === 'state' ? 0 : t.first; s <= (t.kind === 'state' ? at.length - 1 : t.last); s++) {
        const end = t.offset + t.bytes;
        at[s] += Math.max(0, end - Math.max(top[s], t.offset));
        top[s] = Math.max(top[s], end);
      }
    return at;
  }

  // Addresses beside the picture: the end, and whole powers of two below it.
  function ticks(end) {
    const step = 2 ** Math.max(0, Math.ceil(Math.log2(end / 6))), out = [];
    for (let b = 0; b < end - step / 3; b += step) out.push(b);
    return [...out, end];
  }

  // The last words of a long name: layer1.0/relu.
  const label = t => { const parts = m.tensorName(t).split('/').filter(Boolean); return parts.length > 2 ? parts.slice(-3, -1).join('/') : parts.pop() || ''; };

  function draw(g, w, h) {
    const s = scale(w, h), list = chosen();
    g.save();
    g.beginPath(); g.rect(L, 0, w - L - R, h - B + 1); g.clip();
    for (const t of list) {
      const [x, y, rw, rh] = rectangle(t, s), on = State.is('tensor', t.id), over = hover === t;
      const step = State.get().kind === 'step' ? m.step.get(+State.get().id) : null, part = step && (step.reads.includes(t.id) || step.writes.includes(t.id));
      const strong = on || over || part, faint = !strong && (step || (State.get().kind === 'tensor' && m.tensor.has(+State.get().id)));
      g.fillStyle = Colour.of(colourOf(t));
      g.globalAlpha = strong ? 1 : faint ? 0.18 : 0.38;
      g.fillRect(x + 0.5, y + 0.5, Math.max(1, rw - 1), Math.max(1, rh - 1));
      g.globalAlpha = strong ? 1 : faint ? 0.4 : 0.9;
      g.strokeStyle = Colour.of(colourOf(t)); g.lineWidth = 1;
      if (rw > 3 && rh > 3) g.strokeRect(x + 1, y + 1, rw - 2, rh - 2);
      g.globalAlpha = 1;
      if (on || over) { g.strokeStyle = Colour.value('text'); g.lineWidth = 2; g.strokeRect(x + 1, y + 1, Math.max(1, rw - 2), Math.max(1, rh - 2)); }
      if (rw > 46 && rh > 15) {
        g.fillStyle = Colour.value(strong ? 'bg' : 'text'); g.font = '11px system-ui, "DejaVu Sans", sans-serif'; g.textBaseline = 'top';
        g.fillText(Dom.clip(g, label(t), rw - 9), x + 5, y + 4);
        if (rh > 30 && g.measureText(Format.bytes(t.bytes)).width < rw - 8) g.fillText(Format.bytes(t.bytes), x + 5, y + 17);
      }
    }
    const line = alive();
    g.beginPath();
    line.forEach((b, i) => { g.lineTo(s.x(i), s.y(b)); g.lineTo(s.x(i + 1), s.y(b)); });
    g.strokeStyle = Colour.value('text'); g.lineWidth = 1; g.setLineDash([3, 3]); g.stroke(); g.setLineDash([]);
    const peak = line.indexOf(Math.max(...line));
    g.strokeStyle = Colour.value('bad'); g.lineWidth = 1.5;
    g.beginPath(); g.moveTo(s.x(peak + 0.5), T - 6); g.lineTo(s.x(peak + 0.5), h - B); g.stroke();
    const sel = State.get().kind === 'step' ? +State.get().id : null;
    if (sel !== null) { g.strokeStyle = Colour.value('accent'); g.strokeRect(s.x(sel), T - 6, s.px, h - B - T + 6); }
    g.restore();
    g.fillStyle = Colour.value('dim'); g.font = '11px system-ui, "DejaVu Sans", sans-serif'; g.textBaseline = 'middle'; g.textAlign = 'right';
    for (const b of ticks(height())) {
      g.fillText(Format.bytes(b).replace(/\.0+(?= )/, ''), L - 8, s.y(b));
      g.fillRect(L - 4, s.y(b), 4, 1);
    }
    g.textAlign = 'center'; g.textBaseline = 'top';
    const span = (zoom.x1 - zoom.x0) * steps(), every = Math.max(1, Math.ceil(span / Math.max(2, (w - L - R) / 46)));
    for (let i = Math.ceil(zoom.x0 * steps()); i < zoom.x1 * steps(); i++) if (i % every === 0) g.fillText(String(i), s.x(i + 0.5), h - B + 6);
    g.textAlign = 'left';
  }

  function hit(x, y) {
    const s = scale(canvas.clientWidth, canvas.clientHeight);
    return chosen().filter(t => { const [a, b, w, h] = rectangle(t, s); return x >= a && x < a + w && y >= b && y < b + h; }).sort((a, b) => a.bytes - b.bytes)[0] || null;
  }
  const describe = t => { const from = m.takenFrom(t), w = (m.writers.get(t.id) || [])[0];
    return [m.tensorName(t), `${Format.type(t)}, ${Format.bytes(t.bytes)} at ${Format.whole(t.offset)}`, `alive from step ${t.first} to ${t.last}`, w ? `made by ${w.name}` : null, from ? `takes over the bytes of ${m.tensorName(from)}` : null].filter(Boolean).join('\n'); };

  function facts() {
    const line = alive(), most = Math.max(...line, 0), at = line.indexOf(most), bytes = m.memories()[memory].bytes, sum = chosen().reduce((a, t) => a + t.bytes, 0);
    const blame = chosen().filter(t => t.kind === 'state' || (t.first <= at && at <= t.last)).sort((a, b) => b.bytes - a.bytes).slice(0, 6), step = m.step.get(at);
    const rest = [el('b', {}, Format.bytes(bytes)), ` holds ${Format.bytes(sum)} of tensors, which share the memory in turn. `, most ? ['The peak is at ', step ? el('button', {type: 'button', class: 'link', onclick: () => State.select('step', at)}, `step ${at}, ${step.name}`) : `step ${at}`, ': ', el('span', {'data-figure': 'peak'}, Format.bytes(most)),
      bytes > most ? `; ${Format.percent((bytes - most) / bytes)} of the ${m.memories()[memory].name} is unused then, in gaps between tensors.` : ', the whole of it.', ' The largest tensors then: ', blame.map((t, i) => [i ? ', ' : '', el('button', {type: 'button', class: 'link', onclick: () => State.select('tensor', t.id)}, m.tensorName(t)), ` ${Format.bytes(t.bytes)}`]), '.'] : 'Nothing is stored.'];
    return el('p', {style: {padding: '0 20px 10px', maxWidth: '100ch'}}, rest);
  }

  function weights() {
    const groups = new Map();
    for (const t of m.data.tensors.filter(x => x.kind === 'weight')) {
      const s = (m.readers.get(t.id) || [])[0], o = s && s.source[0] ? s.source.map(x => (m.byName.get(x.node + '\0' + x.op) || [])[0]).find(i => i !== undefined) : undefined;
      const parts = o !== undefined && m.source[o].scope ? m.source[o].scope.split('/') : [];   // the block with a number: layer1.0, h.11
      const scope = parts.length ? [...parts].reverse().find(p => /\d$/.test(p) && /[._]/.test(p)) || parts[0] : s ? (s.source[0] ? Graphs.short(s.source[0].node) : s.name) : 'unused';
      if (!groups.has(scope)) groups.set(scope, {bytes: 0, n: 0, first: t, at: new Set()});
      const g = groups.get(scope);
      if (!g.at.has(t.offset)) { g.bytes += t.bytes; g.at.add(t.offset); }
      g.n++;
    }
    const rows = [...groups].sort((a, b) => b[1].bytes - a[1].bytes), most = rows.length ? rows[0][1].bytes : 1;
    return el('section', {style: {padding: '18px 20px 40px'}}, el('h2', {}, `Weights: ${Format.bytes(m.data.weights_bytes)}`), rows.length ? el('div', {class: 'scroll', style: {maxHeight: '420px', marginTop: '8px'}}, el('table', {}, el('thead', {}, el('tr', {}, el('th', {scope: 'col'}, 'Layer'), el('th', {scope: 'col', class: 'barcell'}), el('th', {scope: 'col', class: 'number'}, 'Bytes'), el('th', {scope: 'col', class: 'number'}, 'Tensors'))),
      el('tbody', {}, rows.map(([name, g]) => el('tr', {class: 'pick', onclick: () => State.select('tensor', g.first.id)}, el('td', {class: 'name'}, el('button', {type: 'button', class: 'link'}, name)), el('td', {class: 'barcell'}, el('span', {class: 'bar', style: {width: 100 * g.bytes / most + '%', background: 'var(--c-contract)'}})), el('td', {class: 'number'}, Format.bytes(g.bytes)), el('td', {class: 'number'}, g.n)))))) : el('p', {class: 'dim'}, 'There are none.'));
  }

  function make(element) {
    canvas = Dom.canvas('Memory by steps: arrows walk from tensor to tensor', draw);
    canvas.id = 'arenacanvas';
    canvas.style.cursor = 'default';
    const choose = m.memories().length > 1 ? Dom.choice('Which memory', m.memories().map((x, i) => [String(i), x.name]), '0', i => { memory = +i; fill(by('arenafacts'), facts()); canvas.redraw(); }) : null;
    const part = (a, b) => { zoom = {x0: Math.max(0, a), x1: Math.min(1, b)}; canvas.redraw(); };
    const by_ = k => { const c = (zoom.x0 + zoom.x1) / 2, w = Math.min(1, Math.max(4 / steps(), (zoom.x1 - zoom.x0) * k)), a = Math.max(0, Math.min(1 - w, c - w / 2)); part(a, a + w); };
    const used = new Set(chosen().map(colourOf));
    fill(element, el('div', {}, el('div', {class: 'tools'}, el('h2', {}, 'Memory'), choose, el('span', {class: 'group'}, el('button', {type: 'button', 'aria-label': 'Zoom in', onclick: () => by_(0.6)}, '+'), el('button', {type: 'button', 'aria-label': 'Zoom out', onclick: () => by_(1 / 0.6)}, '\u2212'), el('button', {type: 'button', onclick: () => part(0, 1)}, 'Fit')),
      el('span', {class: 'push'}, Colour.legend(used))), el('div', {id: 'arenafacts'}, facts()), el('div', {class: 'stage', style: {height: '52vh', minHeight: '300px'}}, canvas), el('p', {class: 'dim', style: {padding: '6px 20px 0', fontSize: '12px'}}, 'Steps from left to right, addresses from bottom to top. Dashed line: bytes in use. Red line: the peak.'), weights()));
    canvas.addEventListener('pointermove', e => {
      const t = hit(e.offsetX, e.offsetY);
      if (t !== hover) { hover = t; canvas.redraw(); }
      canvas.style.cursor = t ? 'pointer' : 'default';
      Dom.tip(t ? describe(t) : '', e.clientX, e.clientY);
    });
    canvas.addEventListener('pointerleave', () => { hover = null; Dom.tip(''); canvas.redraw(); });
    canvas.addEventListener('click', e => { const t = hit(e.offsetX, e.offsetY); if (t) State.select('tensor', t.id); });
    canvas.addEventListener('keydown', e => {
      const list = chosen().sort((a, b) => a.first - b.first || a.offset - b.offset), i = list.findIndex(t => State.is('tensor', t.id));
      const to = e.key === 'ArrowRight' || e.key === 'ArrowDown' ? i + 1 : e.key === 'ArrowLeft' || e.key === 'ArrowUp' ? (i < 0 ? 0 : i - 1) : -1;
      if (to >= 0 && list[to]) { e.preventDefault(); State.select('tensor', list[to].id); }
    });
    document.addEventListener('theme', canvas.redraw);
  }
  function show({kind, id}) {
    const t = kind === 'tensor' ? m.tensor.get(+id) : null;
    if (t && t.memory !== undefined && t.memory !== memory) { memory = t.memory; fill(by('arenafacts'), facts()); }
    canvas.redraw();
  }
  Views.add({name: 'memory', title: 'Memory', make, show, start: model => { m = model; }});
  return {where: id => { const [x, y, w, h] = rectangle(m.tensor.get(id), scale(canvas.clientWidth, canvas.clientHeight)); return [x + w / 2, y + h / 2]; }, shown: () => chosen().length};
})();
