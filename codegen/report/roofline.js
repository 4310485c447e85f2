'use strict';
// roofline.js - operations a second over operations a byte, both in powers of ten, below the roof of the machine
// (Williams, Waterman, Patterson: Roofline, CACM 2009). A dot is a step; those of one kernel can stand out.

const Roofline = (() => {
  function draw(m, chosen) {
    const W = 460, H = 258, L = 46, B = 38, T = 10, R = 12, mach = m.data.machine, peak = mach.peak_gflops * mach.threads;
    const points = m.steps.filter(s => s.flops > 0 && s.bytes > 0 && s.time > 0).map(s => ({s, x: s.flops / s.bytes, y: s.flops / s.time * 1e-6}));
    if (!points.length) return el('p', {class: 'empty'}, 'No step has floating-point operations.');
    const xs = points.map(p => p.x), ys = points.map(p => p.y);
    const x0 = Math.floor(Math.log10(Math.min(...xs, 0.1))), x1 = Math.ceil(Math.log10(Math.max(...xs, 100)));
    const y0 = Math.floor(Math.log10(Math.min(...ys, peak / 100))), y1 = Math.ceil(Math.log10(peak * 1.2));
    const px = v => L + (Math.log10(v) - x0) / (x1 - x0) * (W - L - R), py = v => H - B - (Math.log10(v) - y0) / (y1 - y0) * (H - B - T);
    const parts = [];
    for (let e = x0; e <= x1; e++) parts.push(svg('line', {x1: px(10 ** e), x2: px(10 ** e), y1: T, y2: H - B, stroke: 'var(--line)'}),
      svg('text', {x: px(10 ** e), y: H - B + 14, 'text-anchor': 'middle'}, 10 ** e < 1 ? String(+(10 ** e).toPrecision(1)) : Format.count(10 ** e).replace('.00', '')));
    for (let e = y0; e <= y1; e++) parts.push(svg('line', {x1: L, x2: W - R, y1: py(10 ** e), y2: py(10 ** e), stroke: 'var(--line)'}),
      svg('text', {x: L - 6, y: py(10 ** e) + 4, 'text-anchor': 'end'}, 10 ** e < 1 ? String(+(10 ** e).toPrecision(1)) : Format.count(10 ** e).replace('.00', '')));
    const roof = (gbps, dash) => {
      const knee = peak / gbps, left = Math.max(10 ** x0, 10 ** y0 / gbps);
      return svg('polyline', {points: `${px(left)},${py(gbps * left)} ${px(knee)},${py(peak)} ${px(10 ** x1)},${py(peak)}`, fill: 'none', stroke: 'var(--text)', 'stroke-width': 1.5, 'stroke-dasharray': dash});
    };
    parts.push(svg('clipPath', {id: 'roofclip'}, svg('rect', {x: L, y: T, width: W - L - R, height: H - B - T})));
    parts.push(svg('g', {'clip-path': 'url(#roofclip)'}, roof(mach.memory_gbps, null), roof(mach.cache_gbps * mach.threads, '4 3'),
      points.sort((a, b) => chosen(a.s) - chosen(b.s)).map(p => {
        const on = chosen(p.s);
        return svg('circle', {cx: px(p.x), cy: py(p.y), r: on ? 6 : 3.5, fill: Colour.css(Colour.ofStep(p.s)), opacity: on ? 1 : 0.45,
          stroke: on ? 'var(--text)' : 'none', 'stroke-width': 1.5}, svg('title', {}, `${p.s.step} ${p.s.name}: ${Format.count(p.y * 1e9)} flops/s at ${p.x.toFixed(2)} flops per byte`));
      })));
    const lines = [mach.memory_gbps, mach.cache_gbps * mach.threads].map(gbps => x => py(Math.min(peak, gbps * 10 ** (x0 + (x - L) / (W - L - R) * (x1 - x0)))));
    parts.push(labels(points, p => [px(p.x), py(p.y)], chosen, [L, T, W - R, H - B], [[W - R - 84, py(peak) - 18, W - R, py(peak) - 1], [L, T, L + 60, T + 16]], lines));
    parts.push(svg('text', {x: W - R - 2, y: py(peak) - 5, 'text-anchor': 'end', class: 'strong'}, `${peak.toFixed(0)} GFLOP/s`),
      svg('text', {x: (L + W - R) / 2, y: H - 6, 'text-anchor': 'middle'}, 'flops per byte'), svg('text', {x: L + 6, y: T + 12}, 'GFLOP/s'));
    return el('figure', {}, svg('svg', {viewBox: `0 0 ${W} ${H}`, width: '100%', role: 'img', style: 'max-width: 560px', 'aria-label': 'Roofline: the steps below what the machine can do'}, parts),
      el('figcaption', {class: 'dim'}, mach.measured ? `Operations a second over operations a byte, of each step. Measured on ${mach.threads} core${mach.threads > 1 ? 's' : ''}: ${mach.memory_gbps.toFixed(1)} GB/s from memory (line), ${mach.cache_gbps.toFixed(0)} from cache (dashes).`
        : 'Not measured: this is the roof of a nominal machine, and every dot lies on it.'));
  }
  // Names of the dots that stand out, and of those that take longest, where they cover neither text nor dots nor lines.
  // Steps of one kernel lie in one place: they have one name.
  function labels(points, place, chosen, [left, top, right, bottom], texts, lines) {
    const taken = [...texts, ...points.map(place).map(([x, y]) => [x - 3, y - 3, x + 3, y + 3])], out = [], names = new Set(), kernels = new Map();
    for (const p of points) if (!kernels.has(p.s.name)) kernels.set(p.s.name, [p]); else kernels.get(p.s.name).push(p);
    const sum = list => list.reduce((t, p) => t + p.s.time, 0);
    for (const list of [...kernels.values()].sort((a, b) => chosen(b[0].s) - chosen(a[0].s) || sum(b) - sum(a)).slice(0, 8)) {
      const p = list[0], layers = new Set(list.map(q => q.s.layer || q.s.name.split('_')[0])), [x, y] = place(p);
      const name = Format.tail([...layers][0], 26) + (layers.size > 1 ? ` +${layers.size - 1}` : ''), w = 5.6 * name.length;
      if (names.has(name)) continue;
      for (const [dx, dy] of [[7, 4], [-7 - w, 4], [-w / 2, -8], [-w / 2, 16], [7, -8], [7, 16], [-7 - w, -8], [-7 - w, 16], [-w / 2, 28], [-w / 2, -20], [-w, -8], [-w, 16], [-w, 28], [-w, 40], [-w / 2, 40], [-w / 2, 52]]) {
        const box = [x + dx, y + dy - 9, x + dx + w, y + dy + 2];
        if (lines.some(y => [0, 0.5, 1].some(k => { const v = y(box[0] + k * w); return v > box[1] - 1 && v < box[3] + 1; }))) continue;
        if (box[0] < left || box[2] > right || box[1] < top || box[3] > bottom || taken.some(t => t[0] < box[2] && t[2] > box[0] && t[1] < box[3] && t[3] > box[1])) continue;
        taken.push(box); names.add(name);
        out.push(svg('text', {x: x + dx, y: y + dy, class: chosen(p.s) ? 'dot-name strong' : 'dot-name'}, name));
        break;
      }
      if (out.length >= 6) break;
    }
    return out;
  }
  return {draw};
})();
