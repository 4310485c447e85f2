'use strict';
// difftext.js - two texts line by line: the shortest edit (Myers, "An O(ND) Difference Algorithm", 1986), given up for
// blocks where it would take too long.

const DiffText = (() => {
  const MOST = 4000;

  // [[sign, line], ...] with sign ' ', '-' or '+'.
  function lines(a, b) {
    let start = 0, end = 0;
    while (start < a.length && start < b.length && a[start] === b[start]) start++;
    while (end < a.length - start && end < b.length - start && a[a.length - 1 - end] === b[b.length - 1 - end]) end++;
    const out = a.slice(0, start).map(x => [' ', x]);
    out.push(...middle(a.slice(start, a.length - end), b.slice(start, b.length - end)));
    out.push(...a.slice(a.length - end).map(x => [' ', x]));
    return out;
  }

  function middle(a, b) {
    const n = a.length, m = b.length, all = [...a.map(x => ['-', x]), ...b.map(x => ['+', x])];
    if (!n || !m || n + m > 20000) return all;
    let v = new Map([[1, 0]]);
    const trace = [];
    for (let d = 0; d <= n + m; d++) {
      if (d > MOST) return all;
      trace.push(new Map(v));
      for (let k = -d; k <= d; k += 2) {
        let x = k === -d || (k !== d && v.get(k - 1) < v.get(k + 1)) ? v.get(k + 1) : v.get(k - 1) + 1, y = x - k;
        while (x < n && y < m && a[x] === b[y]) { x++; y++; }
        v.set(k, x);
        if (x >= n && y >= m) return walk(trace, a, b, d);
      }
    }
    return all;
  }

  function walk(trace, a, b, last) {
    const out = [];
    let x = a.length, y = b.length;
    for (let d = last; d >= 0; d--) {
      const v = trace[d], k = x - y;
      const from = k === -d || (k !== d && v.get(k - 1) < v.get(k + 1)) ? k + 1 : k - 1;
      const px = v.get(from), py = px - from;
      while (x > px && y > py && d >= 0 && x > 0 && y > 0 && a[x - 1] === b[y - 1]) { out.push([' ', a[--x]]); y--; }
      if (d === 0) break;
      if (x === px) out.push(['+', b[--y]]); else out.push(['-', a[--x]]);
    }
    return out.reverse();
  }

  // As elements; equal stretches are shortened unless all is wanted.
  function show(left, right, whole) {
    const list = lines(left.split('\n'), right.split('\n')), box = el('div', {class: 'diff scroll', tabindex: '0', role: 'region', 'aria-label': 'Difference'});
    const near = new Array(list.length).fill(whole);
    list.forEach(([sign], i) => { if (sign !== ' ') for (let k = Math.max(0, i - 3); k <= i + 3 && k < near.length; k++) near[k] = true; });
    let hidden = 0;
    const gap = () => { if (hidden) box.append(el('div', {class: 'gap'}, `${hidden} equal lines`)); hidden = 0; };
    list.forEach(([sign, text], i) => {
      if (!near[i]) { hidden++; return; }
      gap();
      box.append(el('div', {class: sign === '+' ? 'add' : sign === '-' ? 'del' : ''}, el('span', {class: 'sign'}, sign), text));
    });
    gap();
    box.changes = list.filter(x => x[0] !== ' ').length;
    return box;
  }
  return {lines, show};
})();
