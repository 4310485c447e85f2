'use strict';
// layout.js - boxes in layers (Sugiyama, Tagawa, Toda 1981): longest paths give the layers, sweeps over the middle of
// neighbours the order in a layer, and again the places. A group is laid out first, and is a box of its size then.

const Layout = (() => {
  const GAP_X = 18, GAP_Y = 34, LONG = 24, SWEEPS = 6;

  // Layers of boxes; edges [from, to] between places in boxes. Sets x, y (of the top left corner) of each box, and gives
  // {width, height, paths}: paths[i] has the points between the ends of edge i.
  function layers(boxes, edges) {
    const n = boxes.length, out = boxes.map(() => []), into = boxes.map(() => []);
    edges.forEach(([a, b], i) => { if (a !== b) { out[a].push(i); into[b].push(i); } });
    const {order: sorted, at} = evaluation(n, edges, out);   // an edge from back to front is part of a cycle
    const rank = new Array(n).fill(0);
    for (const v of sorted) for (const i of out[v]) { const w = edges[i][1]; if (at[w] > at[v]) rank[w] = Math.max(rank[w], rank[v] + 1); }
    for (const v of [...sorted].reverse()) {   // what nothing comes before stands just above what reads it
      const after = out[v].map(i => edges[i][1]).filter(w => at[w] > at[v]).map(w => rank[w]);
      if (!into[v].some(i => at[edges[i][0]] < at[v]) && after.length) rank[v] = Math.min(...after) - 1;
    }
    const nodes = boxes.map((b, i) => ({box: b, w: b.w, h: b.h, rank: rank[i], up: [], down: [], x: 0, i}));
    const chains = edges.map(([a, b]) => {
      const chain = [];
      if (at[b] <= at[a] || rank[b] - rank[a] > LONG) return chain;
      let last = nodes[a];
      for (let r = rank[a] + 1; r < rank[b]; r++) {
        const d = {box: null, w: 2, h: 0, rank: r, up: [], down: [], x: 0};
        nodes.push(d); chain.push(d);
        last.down.push(d); d.up.push(last); last = d;
      }
      last.down.push(nodes[b]); nodes[b].up.push(last);
      return chain;
    });
    const rows = [];
    for (const v of nodes) (rows[v.rank] || (rows[v.rank] = [])).push(v);
    for (let r = 0; r < rows.length; r++) rows[r] = rows[r] || [];
    order(rows);
    place(rows);
    let y = 0, left = Infinity, right = -Infinity;
    const tops = [];
    rows.forEach((row, r) => {
      const h = row.reduce((a, v) => Math.max(a, v.h), 0);
      tops[r] = [y, h];
      for (const v of row) {
        left = Math.min(left, v.x - v.w / 2);
        right = Math.max(right, v.x + v.w / 2);
        if (v.box) v.box.y = y + (h - v.h) / 2;
      }
      y += h + GAP_Y;
    });
    if (!n) { left = right = 0; y = GAP_Y; }
    for (const v of nodes) { v.x -= left; if (v.box) v.box.x = v.x - v.w / 2; }
    const paths = chains.map(chain => chain.flatMap(d => { const [top, h] = tops[d.rank]; return [[d.x, top], [d.x, top + h]]; }));
    return {width: right - left, height: y - GAP_Y, paths};
  }

  // Sources first; of those that could be next the one that stood first, also where a cycle leaves none.
  function evaluation(n, edges, out) {
    const into = new Array(n).fill(0), order = [], at = new Array(n).fill(-1);
    for (const [a, b] of edges) if (a !== b) into[b]++;
    let ready = [];
    for (let v = 0; v < n; v++) if (!into[v]) ready.push(v);
    for (let next = 0; order.length < n;) {
      if (!ready.length) { while (at[next] >= 0) next++; ready.push(next); }
      const v = ready.reduce((a, b) => (b < a ? b : a));
      ready = ready.filter(x => x !== v);
      if (at[v] >= 0) continue;
      at[v] = order.length;
      order.push(v);
      for (const i of out[v]) { const w = edges[i][1]; if (--into[w] === 0 && at[w] < 0) ready.push(w); }
    }
    return {order, at};
  }

  const middle = list => { const a = list.map(v => v.at).sort((x, y) => x - y), k = a.length >> 1; return a.length % 2 ? a[k] : (a[k - 1] + a[k]) / 2; };

  function order(rows) {
    const number = row => row.forEach((v, i) => { v.at = i; });
    rows.forEach(number);
    for (let s = 0; s < SWEEPS; s++) {
      const down = s % 2 === 0;
      for (let k = 1; k < rows.length; k++) {
        const row = rows[down ? k : rows.length - 1 - k];
        for (const v of row) { const near = down ? v.up : v.down; v.key = near.length ? middle(near) : v.at; }
        row.sort((a, b) => a.key - b.key || a.at - b.at);
        number(row);
      }
    }
  }

  function place(rows) {
    for (const row of rows) { let x = 0; for (const v of row) { v.x = x + v.w / 2; x += v.w + GAP_X; } }
    for (let s = 0; s < 8; s++) {
      const down = s % 2 === 0;
      for (let k = 0; k < rows.length; k++) {
        const row = rows[down ? k : rows.length - 1 - k];
        for (const v of row) {
          const near = down ? v.up : v.down;
          v.want = near.length ? near.reduce((a, u) => a + u.x, 0) / near.length : v.x;
        }
        spread(row);
      }
    }
  }

  // The nearest places to those wanted that do not overlap: pools of neighbours that touch move as one.
  function spread(row) {
    const pools = [];
    let offset = 0;
    for (const v of row) {
      v.off = offset + v.w / 2;
      offset += v.w + GAP_X;
      pools.push({sum: v.want - v.off, n: v.box ? 1 : 4, list: [v]});
      pools[pools.length - 1].sum *= pools[pools.length - 1].n;
      while (pools.length > 1) {
        const a = pools[pools.length - 2], b = pools[pools.length - 1];
        if (a.sum / a.n <= b.sum / b.n) break;
        a.sum += b.sum; a.n += b.n; a.list.push(...b.list);
        pools.pop();
      }
    }
    for (const p of pools) for (const v of p.list) v.x = p.sum / p.n + v.off;
  }

  return {layers};
})();
