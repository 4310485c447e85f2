'use strict';
// kernels.js - one kernel after the other: what it computes, its opts as a recipe, its place below the roof, its text
// after every pass and what the C compiler made of its innermost loop.

const Kernels = (() => {
  let m, current = null, text = '', tab = 'code', order = 'time';

  const timeOf = k => k.steps.reduce((a, s) => a + m.step.get(s).time, 0);
  const tabs = [['code', 'Code'], ['assembly', 'Assembly'], ['nest', 'Loops'], ['linear', 'Statements'], ['ir', 'IR']];

  // What an opt of docs/sched.md means, in words.
  function meaning(opt, k) {
    const [word, axis, amount] = opt.split(' ');
    const extent = (k.axes.find(a => a.name === axis.split('.')[0]) || {}).extent;
    const of = extent !== undefined && !axis.includes('.') ? ` (of ${extent})` : '';
    switch (word) {
      case 'VECTOR': return `${amount} neighbours along ${axis}${of} are the lanes of one vector`;
      case 'UPCAST': return `${amount} elements along ${axis}${of} are computed at once, in registers`;
      case 'UNROLL': return `${amount} iterations of ${axis}${of} are written out`;
      case 'OVERLAP': return `${axis}${of} becomes two loops, the inner one of ${amount}; the last block begins earlier`;
      case 'SPLIT': return `${axis}${of} becomes two loops, the inner one of ${amount}`;
      case 'ORDER': return 'the loops, outermost first';
      case 'PARTIAL': return `${amount} terms along ${axis}${of} are added at a time to sums that lie in memory, of all results of the loops inside`;
      case 'THREAD': return `threads share ${amount} parts of ${axis}${of}`;
      case 'DOT': return `${amount} terms along ${axis}${of} are multiplied and added by one operation`;
      case 'STAGE': return `what the loops inside ${axis} read of a${amount} is copied first, in that order`;
      case 'PREFETCH': return `what the next iteration of ${axis} reads of a${amount} is requested ahead`;
      case 'TC': return `a matrix unit (${axis}) computes blocks: rows; columns; terms`;
      case 'JOIN': return 'these axes become one; the last one varies fastest';
      case 'MASK': return `${axis}${of} is rounded up to a multiple of ${amount}; what lies beyond its end is skipped`;
      case 'BIND': return {grid: `iterations of ${axis}${of} are groups of the grid`, lane: `iterations of ${axis}${of} are items of a group`, warp: `iterations of ${axis}${of} are warps of a group`, cluster: `iterations of ${axis}${of} are groups of a cluster`}[amount] || '';
      case 'TRIGGER': return 'when the next kernel may begin';
      default: return '';
    }
  }

  function recipe(k) {
    if (!k.opts.length) return el('p', {class: 'dim'}, 'None: the loops stand as the expression says.');
    return el('ol', {class: 'recipe'}, k.opts.map(o => el('li', {}, el('code', {}, o), el('span', {class: 'dim'}, meaning(o, k)))));
  }

  function args(k) {
    const step = m.step.get(k.steps[0]);
    return el('div', {class: 'scroll'}, el('table', {}, el('thead', {}, el('tr', {}, ['', 'Tensor', 'Type', 'Layout', ''].map(t => el('th', {scope: 'col'}, t)))), el('tbody', {}, k.args.map((a, i) => {
      const t = step ? m.tensor.get(step.tensors[i]) : null;
      return el('tr', {}, el('td', {class: 'mono'}, 'a' + i), el('td', {class: 'name'}, t ? el('button', {type: 'button', class: 'link', onclick: () => State.go({view: 'memory', kind: 'tensor', id: t.id})}, m.tensorName(t)) : ''), el('td', {class: 'mono'}, a.type), el('td', {class: 'mono'}, a.layout),
        el('td', {class: 'dim'}, a.read && a.written ? 'in, out' : a.written ? 'out' : a.read ? 'in' : 'not used'));
    }))));
  }

  const colours = {'multiply-add': 'contract', arithmetic: 'map', load: 'io', store: 'reduce', shuffle: 'move', convert: 'quant', integer: 'data', branch: 'call'};
  function assembly(k) {
    const a = k.assembly;
    if (!a) return el('p', {style: {padding: '12px 14px'}, class: 'dim'}, 'There is no assembly in this report: it needs a C compiler for the target, and ingot inspect without --no-assembly.');
    if (a.loop === null) return el('p', {style: {padding: '12px 14px'}, class: 'dim'}, `The C compiler left no loop: ${a.function} instructions in a row.`);
    const used = Object.entries(a.count).filter(x => x[1]);
    return el('div', {style: {padding: '10px 14px 0'}}, el('p', {}, `${a.instructions} instructions in the innermost loop, ${a.function} in the kernel${a.from_memory ? `; ${a.from_memory} of the arithmetic ones have an operand in memory` : ''}. `, el('span', {class: 'dim'}, a.compiler)),
      el('div', {class: 'counts', role: 'img', 'aria-label': used.map(([w, n]) => `${n} ${w}`).join(', ')}, used.map(([w, n]) => el('span', {title: `${n} ${w}`, style: {width: 100 * n / a.instructions + '%', background: Colour.css(colours[w])}}))),
      el('div', {class: 'legend'}, used.map(([w, n]) => el('span', {}, el('span', {class: 'dot', style: {background: Colour.css(colours[w])}}), `${n} ${w}`))));
  }

  function textOf(k) { return tab === 'assembly' ? (k.assembly && k.assembly.loop) || '' : k[tab]; }

  function texts(k) {
    const show = () => { fill(body, tab === 'assembly' ? assembly(k) : null, textOf(k) ? el('pre', {class: 'scroll', tabindex: '0', role: 'region', 'aria-label': 'Text of the kernel'}, el('code', {id: 'kerneltext'}, Highlight.of(textOf(k), tab === 'code' ? 'c' : tab === 'assembly' ? 'assembly' : 'ir'))) : null); };
    const body = el('div', {});
    const copy = el('button', {type: 'button', id: 'copy', onclick: async () => {
      let done = true;
      try { await navigator.clipboard.writeText(textOf(k)); } catch (e) { done = byHand(textOf(k)); }
      copy.textContent = done ? 'Copied' : 'Cannot copy';
      State.say(done ? 'Copied' : 'It cannot be copied');
      setTimeout(() => { copy.textContent = 'Copy'; }, 1500);
    }}, 'Copy');
    show();
    return el('div', {class: 'text'}, el('div', {class: 'bar-top'}, Dom.choice('Text', tabs, tab, t => { tab = t; show(); }), el('span', {style: {marginLeft: 'auto'}}), el('button', {type: 'button', onclick: () => State.go({view: 'passes', kind: 'kernel', id: k.name})}, 'Compare passes'), copy), body);
  }
  function byHand(text) {   // where a page from disk has no clipboard
    const area = el('textarea', {class: 'hidden'});
    area.value = text;
    document.body.append(area);
    area.select();
    const done = document.execCommand('copy');
    area.remove();
    return done;
  }

  function body(k) {
    const steps = k.steps.map(s => m.step.get(s)), time = timeOf(k), s = steps[0];
    const figure = (a, b, c) => el('div', {}, el('dt', {}, a), el('dd', {}, b, c ? el('small', {}, c) : null));
    const layers = [...new Set(steps.map(x => x.layer).filter(Boolean))], more = layers.length > 4 ? ` and ${layers.length - 3} more` : '';
    return [el('h2', {class: 'mono'}, k.name), el('p', {class: 'dim long'}, [[...new Set(steps.map(x => x.form))].join(', '), layers.slice(0, more ? 3 : 4).join(', ') + more, steps.length === 1 ? 'run once' : `run by ${steps.length} steps`].filter(Boolean).join(' \u00b7 ')),
      el('dl', {class: 'figures'}, m.measured ? figure('Time', Format.ms(time), `${Format.percent(m.total ? time / m.total : 0)} of the run`) : figure('Share, estimated', m.time(time), 'of the run'), figure('Operations', Format.count(k.flops), steps.length > 1 ? 'each time' : null), figure('Bytes', Format.bytes(k.bytes)),
        figure('Intensity', k.bytes ? (k.flops / k.bytes).toFixed(2) : '0', 'flops per byte'), s && s.ms !== undefined ? figure('Of the roof', Format.percent(m.ofRoof(s))) : null, figure('Threads', k.parts || 1, k.parts ? 'parts to share' : 'not shared')),
      el('h3', {}, 'It computes'), el('pre', {class: 'expression'}, el('code', {}, Highlight.of(k.expression.trim(), 'ir'))),
      el('div', {class: 'two'}, el('div', {}, el('h3', {}, 'Recipe'), recipe(k), k.sched ? el('p', {class: 'dim', style: {marginTop: '8px'}}, 'To change it: ', el('code', {}, `kernel ${k.sched}`), ' in a .sched file.') : null,
        k.tried.length ? [el('h3', {}, 'What the heuristic considered'), el('ul', {class: 'dim', id: 'tried'}, k.tried.map(t => el('li', {}, t[0].toUpperCase() + t.slice(1) + '.')))] : null,
        el('h3', {}, 'Axes'), el('div', {class: 'chips'}, k.axes.map(a => el('span', {class: 'chip mono'}, `${a.name}: ${a.extent}${a.kind === 'reduce' ? ' reduced' : ''}`)))), el('div', {}, el('h3', {}, 'Roofline'), m.data.firmware ? el('p', {class: 'dim'}, 'None, because the clock and memory speed of the board are not known. The shares of the run are computed from operations and bytes.')
        : Roofline.draw(m, x => x.kind === 'generated' && x.name === k.name))),
      el('h3', {}, 'Arguments'), args(k), el('h3', {}, 'Text'), texts(k)];
  }

  function list() {
    const most = Math.max(...m.data.kernel_list.map(timeOf), 1e-12);
    const rows = m.data.kernel_list.filter(k => !text || `${k.name} ${k.opts.join(' ')} ${k.steps.map(s => m.step.get(s).form).join(' ')} ${k.steps.flatMap(s => m.step.get(s).source.map(o => o.node)).join(' ')}`.toLowerCase().includes(text)).sort((a, b) => order === 'time' ? timeOf(b) - timeOf(a) : 0);
    by('kernelcount').textContent = rows.length === m.data.kernel_list.length ? `${rows.length} kernels` : `${rows.length} of ${m.data.kernel_list.length} kernels`;
    fill(by('kernellist'), rows.map(k => el('li', {}, el('button', {type: 'button', 'data-kernel': k.name, 'aria-current': String(current === k.name), onclick: () => State.select('kernel', k.name)}, el('span', {class: 'mono'}, k.name), el('span', {class: 'dim number'}, m.time(timeOf(k))), el('span', {class: 'dim formline'}, m.step.get(k.steps[0]).form),
      el('span', {class: 'under', style: {width: 100 * timeOf(k) / most + '%', background: Colour.css(Colour.ofStep(m.step.get(k.steps[0])))}})))));
  }

  function make(element) {
    fill(element, el('div', {class: 'split'}, el('div', {class: 'list'}, el('div', {class: 'tools'}, el('input', {type: 'search', id: 'kernelfilter', placeholder: 'Filter kernels', 'aria-label': 'Filter kernels', oninput: e => { text = e.target.value.toLowerCase(); list(); }}),
      Dom.choice('Order', [['time', 'By time'], ['step', 'By step']], order, o => { order = o; list(); }), el('span', {class: 'dim', id: 'kernelcount'})), el('ul', {id: 'kernellist', 'aria-label': 'Kernels', onkeydown: e => {
      if (e.key !== 'ArrowDown' && e.key !== 'ArrowUp') return;
      const li = document.activeElement.parentNode, next = e.key === 'ArrowDown' ? li.nextSibling : li.previousSibling;
      if (!next) return;
      e.preventDefault();
      const name = next.firstChild.dataset.kernel;
      next.firstChild.click();
      const again = [...by('kernellist').querySelectorAll('button')].find(b => b.dataset.kernel === name);
      if (again) again.focus();
    }})), el('div', {class: 'body', id: 'kernelbody'})));
  }

  function show({kind, id}) {
    let name = kind === 'kernel' && m.kernel.has(id) ? id : null;
    if (kind === 'step' && m.step.has(+id) && m.kernelOf(m.step.get(+id))) name = m.step.get(+id).name;
    if (kind === 'source') { const s = (m.stepsOf.get(+id) || []).find(x => x.kind === 'generated'); if (s) name = s.name; }
    const slowest = [...m.data.kernel_list].sort((a, b) => timeOf(b) - timeOf(a))[0];
    name = name || current || (slowest && slowest.name);
    if (!name) { fill(by('kernelbody'), el('p', {class: 'empty'}, 'This model has no kernels of its own.')); list(); return; }
    if (name !== current) { current = name; fill(by('kernelbody'), body(m.kernel.get(name))); by('kernelbody').scrollTop = 0; }
    list();
    const li = by('kernellist').querySelector('[aria-current="true"]');
    if (li && li.offsetParent) { const box = li.closest('.list'); if (li.offsetTop < box.scrollTop || li.offsetTop > box.scrollTop + box.clientHeight - 40) box.scrollTop = li.offsetTop - 120; }
  }
  Views.add({name: 'kernels', title: 'Kernels', make, show, start: model => { m = model; }});
})();
