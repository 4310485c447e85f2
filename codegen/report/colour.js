'use strict';
// colour.js - a colour for each kind of work, the same in all views.

const Colour = (() => {
  const kinds = {
    contract: ['convolution, product', /^(conv|matmul|gemm|einsum|lstm|gru|rnn|attention|multihead|qlinear(conv|matmul)|.*matmul|.*gemm|.*conv.*|groupquery.*)/],
    quant: ['quantise, cast', /^(quantize|dequantize|dynamicquantize|cast|bitcast|qlinear)/],
    reduce: ['reduction, norm, pool', /^(reduce|.*softmax|.*norm.*|.*pool|argm|cumsum|lrn|mean|sum$|variance)/],
    move: ['reshape, gather', /^(reshape|transpose|permute|concat|slice|split|pad|expand|squeeze|unsqueeze|flatten|gather|shrink|flip|tile|resize|identity|depthtospace|spacetodepth|shape|iota|keep|scatter|update|constant|view|embed)/],
    data: ['copy, data', /^(copy|data|const|weight|buffer)/],
    call: ['library, control', /^(call|loop|if|scan|topk|nonmax|nonzero|unique|sort|library|check|proj)/],
    io: ['input, output', /^(input|output|state|param)/],
    map: ['elementwise', /./],
  };
  const cache = new Map();
  function kindOf(op) {
    const key = String(op).toLowerCase();
    if (!cache.has(key)) cache.set(key, Object.keys(kinds).find(k => kinds[k][1].test(key)) || 'map');
    return cache.get(key);
  }
  // A file without operators (GGUF) does not tell the kind: the form of the kernel does.
  const forms = [['contract', /product|convolution|attention/], ['reduce', /reduction|pooling|softmax|normalisation/],
    ['quant', /cast|quantise/], ['data', /copy|fill/], ['move', /gather|scatter/]];
  const ofForm = form => (forms.find(([, words]) => words.test(form)) || ['map'])[0];
  function ofStep(s) {
    if (s.kind === 'copy') return 'data';
    if (s.kind !== 'generated') return 'call';
    const all = s.source.map(o => kindOf(o.op));
    if (all.every(k => k === 'map')) return ofForm(s.form);
    if (s.flops && all.includes('contract') && s.flops > 2 * s.bytes / 8) return 'contract';
    return all.includes('reduce') ? 'reduce' : all.find(k => k !== 'contract') || (s.flops ? 'contract' : 'data');
  }
  let values = {};
  // A CSS colour, of the theme that is shown: for canvases.
  function value(name) {
    if (!values[name]) values[name] = getComputedStyle(document.documentElement).getPropertyValue('--' + name).trim();
    return values[name];
  }
  document.addEventListener('theme', () => { values = {}; });
  const of = kind => value('c-' + kind), css = kind => `var(--c-${kind})`;
  const legend = used => el('div', {class: 'legend'}, Object.keys(kinds).filter(k => used.has(k))
    .map(k => el('span', {}, el('span', {class: 'dot', style: {background: css(k)}}), kinds[k][0])));
  return {kindOf, ofStep, of, css, value, legend, name: k => kinds[k][0]};
})();
