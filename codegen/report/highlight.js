'use strict';
// highlight.js - C, assembly and IR with colours: spans around words, never markup from the text.

const Highlight = (() => {
  const c = /(\/\*[\s\S]*?\*\/|\/\/.*)|\b(for|if|else|while|return|const|static|void|restrict|sizeof|switch|case|break)\b|\b(float|double|int|bool|u?int\d+_t|igrt_[fiu]\d+x\d+|igrt_\w*_t|size_t|char)\b|\b(\d[\w.+]*)\b|\b([A-Za-z_]\w*)(?=\()/g;
  const words = /^(loop|end|for|reduce|threads|return|sum|product|max|min|if)$/;
  const plain = /\b(loop|end|for|reduce|threads|return|if|sum|product)\b|\b(\d[\w.+]*)\b|(%\w+)/g;
  const assembly = /([#].*$)|^\s*([\w.]+:)|^\s+([a-z][\w.]*)|(%\w+)|(\$-?\w+)/gm;

  function spans(text, pattern, names) {
    const out = document.createDocumentFragment();
    let at = 0;
    for (const m of text.matchAll(pattern)) {
      let i = 1;
      while (i < m.length && m[i] === undefined) i++;
      const word = m[i], start = m.index + m[0].indexOf(word);
      if (start > at) out.append(text.slice(at, start));
      out.append(el('span', {class: names[i - 1]}, word));
      at = start + word.length;
    }
    out.append(text.slice(at));
    return out;
  }
  const LIMIT = 200000;   // what is longer is shown plain
  function of(text, language) {
    if (text.length > LIMIT) return document.createTextNode(text);
    if (language === 'c') return spans(text, c, ['c', 'k', 't', 'n', 'f']);
    if (language === 'assembly') return spans(text, assembly, ['c', 'c', 'f', 't', 'n']);
    return spans(text, plain, ['k', 'n', 't']);
  }
  return {of};
})();
