'use strict';
// layout.js - boxes in layers (Sugiyama, Tagawa, Toda 1981): longest paths give the layers, sweeps over the middle of
// neighbours the order in a layer, and again the places. A group is laid out first, and is a box of its size then. What is
// much taller than the window goes on in a second column, a third ..., which are read like those of a newspaper.

const Layout = (() => {
  const GAP_X = 18, GAP_Y = 34, LONG = 200, SWEEPS = 6, GUTTER = 56, TALL = 640;

  // Layers of boxes; edges [from, to] between places in boxes; aspect: width of the window over its height. A box with pin
  // 'first' or 'last' has that layer to itself. Sets x, y (of the top left corner) of each box, and gives {width, height,
  // paths}: paths[i] has the points between the ends of edge i.
  function layers(boxes, edges, aspect) {
    const n = boxes.length, out = boxes.map(() => []), into = boxes.map(() => []);
    edges.forEach(([a, b], i) => { if (a !== b) { out[a].push(i); into[b].push(i); } });
    const {order: sorted, at} = evaluation(n, edges, out);   // an edge from back to front is part of a cycle
    const pinned = boxes.some(b => b.pin === 'first');
    const rank = boxes.map(b => (pinned && b.pin !== 'first' ? 1 : 0));
    for (const v of sorted) for (const i of out[v]) { const w = edges[i][1]; if (at[w] > at[v]) rank[w] = Math.max(rank[w], rank[v] + 1); }
    for (const v of [...sorted].reverse()) {   // what nothing comes before stands just above what reads it
      const after = out[v].map(i => edges[i][1]).filter(w => at[w] > at[v]).map(w => rank[w]);
      if (!into[v].some(i => at[edges[i][0]] < at[v]) && after.length && !boxes[v].pin) rank[v] = Math.min(...after) - 1;
    }
    const last = Math.max(0, ...rank.filter((r, i) => boxes[i].pin !== 'last')) + 1;
    boxes.forEach((b, i) => { if (b.pin === 'last') rank[i] = last; });
    const nodes = boxes.map((b, i) => ({box: b, w: b.w, h: b.h, rank: rank[i], up: [], down: [], x: 0, i}));
    const trunk = boxes.map(() => []);   // edges of one box that pass a layer pass it as one
    const chains = edges.map(([a, b]) => {
      const chain = [];
      if (at[b] <= at[a] || rank[b] - rank[a] > LONG) return chain;
      let last = nodes[a];
      for (let r = rank[a] + 1; r < rank[b]; r++) {
        let d = trunk[a][r];
        if (!d) {
          d = trunk[a][r] = {box: null, w: 2, h: 0, rank: r, up: [], down: [], x: 0};
          nodes.push(d);
          last.down.push(d); d.up.push(last);
        }
        chain.push(d);
        last = d;
      }
      last.down.push(nodes[b]); nodes[b].up.push(last);
      return chain;
    });
    const rows = [];
    for (const v of nodes) (rows[v.rank] || (rows[v.rank] = [])).push(v);
    for (let r = 0; r < rows.length; r++) rows[r] = rows[r] || [];
    order(rows);
    place(rows);
    const heights = rows.map(row => row.reduce((a, v) => Math.max(a, v.h), 0));
    const gaps = rows.map((row, r) => (pin(row, 'first') || pin(rows[r + 1], 'last') ? GAP_Y / 2 : GAP_Y)), side = row => [Math.min(...row.map(v => v.x - v.w / 2)), Math.max(...row.map(v => v.x + v.w / 2))];
    const columns = cut(rows, heights.map((h, r) => h + gaps[r]), side, aspect), column = [], tops = [], gutters = [];
    let left = 0, height = 0;
    columns.forEach((list, c) => {
      const sides = list.map(r => rows[r]).filter(row => row.length).map(side), low = Math.min(...sides.map(x => x[0])), high = Math.max(...sides.map(x => x[1]));
      let y = c ? GAP_Y / 2 : 0;
      for (const r of list) {
        column[r] = c;
        tops[r] = [y, heights[r]];
        for (const v of rows[r]) { v.x += left - low; if (v.box) { v.box.y = y + (heights[r] - v.h) / 2; v.box.x = v.x - v.w / 2; } }
        y += heights[r] + gaps[r];
      }
      height = Math.max(height, y - gaps[list[list.length - 1]] + (columns.length > 1 ? GAP_Y / 2 : 0));
      left += list.length ? high - low : 0;
      gutters[c] = left + GUTTER / 2;
      left += c + 1 < columns.length ? GUTTER : 0;
    });
    let track = 0;
    const end = (d, port) => (d.box && d.box.open && d.box[port] ? d.box.x + d.box[port].x + 1 : d.x);
    const paths = chains.map((chain, i) => {
      const ends = [nodes[edges[i][0]], ...chain, nodes[edges[i][1]]], points = [];
      ends.forEach((d, k) => {
        const [top, h] = tops[d.rank], before = k ? ends[k - 1] : null;
        if (before && column[before.rank] < column[d.rank]) {   // down to the end of its column, up beside the next one
          const low = height + 2 + 3 * (track % 4), x = gutters[column[d.rank] - 1] + 5 * (track++ % 7 - 3), high = 2 + 3 * (track % 3);
          points.push([end(before, 'exit'), low], [x, low], [x, high], [end(d, 'entry'), high]);
        }
        if (!d.box) points.push([d.x, top], [d.x, top + h]);
      });
      return points;
    });
    return {width: left, height: height + (columns.length > 1 ? 12 : 0), paths};
  }

  // The rows of each column: as many columns as let the whole be largest in the window. Of one number of columns the cuts
  // that leave the tallest one lowest, and let few edges pass (by dynamic programming over where a column ends).
  function cut(rows, heights, side, aspect) {
    const CROSSING = 4, most = rows.length > 300 ? 8 : 12, all = rows.map((r, i) => i), before = [0];
    for (const h of heights) before.push(before[before.length - 1] + h);
    const total = before[rows.length];
    const crossing = rows.map((row, r) => (pin(row, 'first') || pin(rows[r + 1], 'last') ? Infinity : CROSSING * row.reduce((a, v) => a + v.down.length, 0)));
    if (!aspect || total < TALL || rows.length < 4) return [all];
    const width = list => { const x = list.filter(r => rows[r].length).map(r => side(rows[r])); return x.length ? Math.max(...x.map(y => y[1])) - Math.min(...x.map(y => y[0])) : 0; };
    const ends = [];   // by columns, by rows: where the last of so many columns begins
    let least = before.slice(), best = [all], scale = Math.min(aspect / Math.max(1, width(all)), 1 / total);
    for (let n = 2; n <= Math.min(most, rows.length); n++) {
      const next = new Array(rows.length + 1).fill(Infinity), from = new Array(rows.length + 1).fill(0);
      for (let to = n; to <= rows.length; to++)
        for (let k = n - 1; k < to; k++) {
          const cost = Math.max(least[k], before[to] - before[k]) + crossing[k - 1];
          if (cost < next[to]) { next[to] = cost; from[to] = k; }
        }
      ends[n] = from;
      least = next;
      const list = [];
      for (let c = n, to = rows.length; c >= 1; c--) { const k = c > 1 ? ends[c][to] : 0; list.unshift(all.slice(k, to)); to = k; }
      const high = Math.max(...list.map(x => before[x[x.length - 1] + 1] - before[x[0]])), wide = list.reduce((a, x) => a + width(x) + GUTTER, -GUTTER);
      const now = Math.min(aspect / wide, 1 / high);
      if (now > 1.1 * scale) { scale = now; best = list; }
    }
    return best;
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

  const pin = (row, which) => row && row.some(v => v.box && v.box.pin === which);

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
