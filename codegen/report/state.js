'use strict';
// state.js - the view that is shown and what is selected, kept in the address (#kernels/kernel=k03_conv) so that the
// browser's back button works; who wants to know of a change adds itself.

const State = (() => {
  const listeners = [];
  let view = 'overview', kind = null, id = null;

  const address = () => '#' + view + (kind ? `/${kind}=${encodeURIComponent(id)}` : '');

  function told() { for (const f of listeners) f({view, kind, id}); }

  function go(next) {
    view = next.view || view;
    if ('kind' in next) { kind = next.kind; id = next.kind ? String(next.id) : null; }
    if (location.hash !== address()) history.pushState(null, '', address());
    told();
  }

  function read() {
    const m = /^#(\w+)(?:\/(\w+)=(.*))?$/.exec(location.hash);
    if (m && Views.known(m[1])) { view = m[1]; kind = m[2] || null; id = null; try { id = m[3] ? decodeURIComponent(m[3]) : null; } catch (e) { kind = null; } }
    told();
  }

  const select = (k, i) => go({kind: k, id: i});
  const say = text => { by('said').textContent = text; };
  addEventListener('popstate', read);
  addEventListener('hashchange', read);
  return {go, select, read, say, listen: f => listeners.push(f), get: () => ({view, kind, id}),
          is: (k, i) => kind === k && id === String(i)};
})();

// The views by name: {title, make(element), show(selection)}; made when first shown.
const Views = (() => {
  const list = [];
  return {
    add: v => list.push(v), list, known: name => list.some(v => v.name === name),
    get: name => list.find(v => v.name === name),
  };
})();

const Theme = (() => {
  const system = matchMedia('(prefers-color-scheme: dark)');
  let chosen = null;
  try { chosen = localStorage.getItem('ingot-theme'); } catch (e) { /* a file may have no storage */ }
  const now = () => chosen || (system.matches ? 'dark' : 'light');
  function apply() {
    document.documentElement.dataset.theme = now();
    const b = by('theme');
    b.textContent = now() === 'dark' ? 'Light' : 'Dark';
    b.setAttribute('aria-label', `Switch to the ${now() === 'dark' ? 'light' : 'dark'} theme`);
    document.dispatchEvent(new Event('theme'));
  }
  function toggle() {
    chosen = now() === 'dark' ? 'light' : 'dark';
    try { localStorage.setItem('ingot-theme', chosen); } catch (e) { /* as above */ }
    apply();
  }
  system.addEventListener('change', apply);
  return {apply, toggle, now};
})();
