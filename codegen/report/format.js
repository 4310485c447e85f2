'use strict';
// format.js - numbers for people.

const Format = (() => {
  function scaled(n, base, units, digits) {
    let i = 0, v = n;
    while (Math.abs(v) >= base && i + 1 < units.length) { v /= base; i++; }
    const text = i === 0 ? String(v) : v >= 100 ? v.toFixed(0) : v >= 10 ? v.toFixed(1) : v.toFixed(digits);
    return text + (units[i] ? ' ' + units[i] : '');
  }
  const bytes = n => scaled(n, 1024, ['B', 'KiB', 'MiB', 'GiB', 'TiB'], 2);
  const count = n => scaled(n, 1000, ['', 'k', 'M', 'G', 'T', 'P'], 2).replace(/ $/, '');
  const whole = n => n.toLocaleString('en-US');
  function ms(t) {
    if (t === 0) return '0';
    if (t >= 1000) return (t / 1000).toFixed(2) + ' s';
    if (t >= 1) return t.toFixed(t >= 100 ? 0 : 2) + ' ms';
    const us = t * 1000;
    return (us >= 100 ? us.toFixed(0) : us >= 1 ? us.toFixed(1) : us.toFixed(3)) + ' \u00b5s';
  }
  const percent = x => (x >= 0.1 ? (100 * x).toFixed(0) : x >= 0.001 ? (100 * x).toFixed(1) : x > 0 ? '<0.1' : '0') + ' %';
  const type = t => `${t.dtype}[${t.dims.join(',')}]`;
  const change = x => (x > 0 ? '+' : x < 0 ? '\u2212' : '') + Math.abs(100 * x).toFixed(Math.abs(x) < 0.1 ? 1 : 0) + ' %';
  // The last names of a path that fit into so many letters.
  function tail(path, most) {
    const names = path.split('/');
    let text = names.pop();
    while (names.length && text.length + 1 + names[names.length - 1].length <= most) text = names.pop() + '/' + text;
    return text.length <= most ? text : text.slice(0, most - 1) + '\u2026';
  }
  return {tail, bytes, count, whole, ms, percent, type, change};
})();
