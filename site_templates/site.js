// Theme, linked crosshair, weight histograms of any two steps, copying, and charts to explore on demand.
(() => {
  'use strict';
  const doc = document, root = doc.documentElement, $ = (s, at = doc) => at.querySelector(s), $$ = (s, at = doc) => [...at.querySelectorAll(s)];
  root.classList.add('js');

  // A page from a file may run a script beside it but not read a file: data come as calls of these functions.
  const loads = new Map(), records = new Map();
  let forms = null;
  const load = address => {
    if (!loads.has(address)) {
      loads.set(address, new Promise((done, failed) => {
        const script = doc.createElement('script');
        script.src = address;
        script.onload = done;
        script.onerror = () => failed(new Error(`${address} could not be loaded`));
        doc.head.append(script);
      }));
    }
    return loads.get(address);
  };
  window.tsRun = record => records.set(record.entry.id, record);
  window.tsForms = found => { forms = found; };
  const base = root.dataset.root;
  const site = {
    $, $$, load,
    async record(id) {
      await load(`${base}runs/${id}/record.js`);
      if (!records.has(id)) throw new Error(`no run ${id}`);
      return records.get(id);
    },
    figure(v) {
      if (v === null || v === undefined) return '–';
      if (typeof v === 'string') return v;
      const size = Math.abs(v);
      return Number.isInteger(v) && size < 1e7 ? String(v) : size >= 1e5 || (size && size < 1e-3) ? v.toExponential(3) : String(+v.toPrecision(4));
    },
    // Names from logs are hostile: what is invisible is spelled out, what is endless is cut in its middle.
    clean(text, limit = 120) {
      const seen = String(text).replace(/[\p{Cc}\p{Cf}\p{Cn}\p{Co}\p{Cs}\p{Zl}\p{Zp}]/gu, c => `\\u${c.codePointAt(0).toString(16).padStart(4, '0')}`);
      const head = Math.floor((limit - 1) * 2 / 3);
      return seen.length <= limit ? (seen.trim() ? seen : `"${seen}"`) : `${seen.slice(0, head)}…${seen.slice(head + 1 - limit)}`;
    },
    // Text becomes text, never markup.
    make(tag, attributes = {}, ...inside) {
      const made = doc.createElement(tag);
      for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
      made.append(...inside);
      return made;
    },
    async draw(box, form, sets) {
      box.textContent = 'Loading…';
      await Promise.all([load(`${base}assets/vega.js`), load(`${base}assets/forms.js`)]);
      const spec = structuredClone(forms[matchMedia('(max-width: 760px)').matches ? `${form}-narrow` : form]);
      spec.datasets = sets;
      box.textContent = '';
      await window.vegaEmbed(box, spec, { ast: true, actions: false, renderer: 'svg', defaultStyle: false, tooltip: { disableDefaultStyle: true }, logLevel: 1 });
      // The box says what the chart shows; the parts of the chart say nothing that a listener needs.
      for (const picture of $$('svg', box)) picture.setAttribute('aria-hidden', 'true');
    },
    points(curve) {
      const own = curve.low && curve.low.length;
      return curve.step.map((s, i) => ({ s, v: curve.middle[i], a: own ? curve.low[i] : null, b: own ? curve.high[i] : null }));
    },
    isLog(curve) {
      const all = [...curve.middle, ...(curve.low || [])].filter(v => v !== null);
      const low = Math.min(...all), high = Math.max(...all);
      return low > 0 && high / low > 50 && curve.style !== 'rate';
    },
  };
  window.trainscope = site;

  // Theme
  const keep = { get() { try { return localStorage.getItem('trainscope-theme'); } catch { return null; } }, set(v) { try { v ? localStorage.setItem('trainscope-theme', v) : localStorage.removeItem('trainscope-theme'); } catch { /* private window */ } } };
  let theme = keep.get();
  const paint = () => {
    if (theme) root.dataset.theme = theme; else delete root.dataset.theme;
    const shown = $('#theme .theme');
    if (shown) shown.textContent = theme || 'auto';
  };
  paint();
  doc.addEventListener('click', event => {
    const at = selector => event.target.closest(selector);
    if (at('#theme')) {
      theme = theme === null ? 'dark' : theme === 'dark' ? 'light' : null;
      keep.set(theme);
      paint();
    }
    const copy = at('[data-copy]');
    if (copy) {
      const from = doc.getElementById(copy.dataset.copy);
      const selected = () => { const range = doc.createRange(); range.selectNodeContents(from); getSelection().removeAllRanges(); getSelection().addRange(range); copy.textContent = 'Selected'; };
      if (navigator.clipboard) navigator.clipboard.writeText(from.textContent).then(() => { copy.textContent = 'Copied'; }, selected); else selected();
    }
    if (at('[data-close]')) at('dialog').close();
    if (at('[data-explore]')) explore(at('[data-explore]').dataset.explore);
    if (at('[data-layer]')) drill(at('[data-layer]').dataset.layer);
  });

  const main = $('#main[data-run]');
  if (!main) return;
  const own = () => load(main.dataset.run).then(() => records.get(main.dataset.id));
  const find = (record, path) => path.split('.').reduce((at, key) => at && at[key], record);

  // Section list
  const seen = new IntersectionObserver(entries => entries.forEach(entry => {
    const link = $(`.contents a[href="#${entry.target.id}"]`);
    if (link && entry.isIntersecting) {
      $$('.contents a[aria-current]').forEach(a => a.removeAttribute('aria-current'));
      link.setAttribute('aria-current', 'true');
    }
  }), { rootMargin: '-12% 0px -78% 0px' });
  $$('section[id]').forEach(section => seen.observe(section));

  // Linked crosshair: every chart over the run's steps shows the same step.
  const figures = $$('figure[data-from]').map(figure => ({
    figure, from: figure.dataset.from, first: +figure.dataset.first, last: +figure.dataset.last, x: figure.dataset.x, read: $('.read', figure),
  }));
  let step = null, row = null, data = null, asked = 0;
  const visible = f => $$('[data-plot]', f.figure).find(d => d.offsetParent !== null || d.getClientRects().length) || $('[data-plot]', f.figure);
  const cells = new Map();
  const bytes = rows => {
    if (!cells.has(rows)) cells.set(rows, Uint8Array.from(atob(rows.cells), c => c.charCodeAt(0)));
    return cells.get(rows);
  };
  const valueOf = (rows, code) => code === 0 ? null : code === 255 ? 'NaN or inf' : rows.log ? rows.low * (rows.high / rows.low) ** ((code - 1) / 253) : rows.low + (rows.high - rows.low) * (code - 1) / 253;
  const nearest = (steps, wanted) => {
    let low = 0, high = steps.length - 1;
    while (low < high) { const middle = (low + high) >> 1; if (steps[middle] < wanted) low = middle + 1; else high = middle; }
    return low > 0 && Math.abs(steps[low - 1] - wanted) <= Math.abs(steps[low] - wanted) ? low - 1 : low;
  };
  const shown = (found, f) => {
    if (found.cells) {
      const column = Math.min(Math.floor((step - found.first) / (found.last - found.first + 1) * found.columns), found.columns - 1);
      if (row === null || row.from !== f.from || column < 0) return '';
      const at = Math.min(Math.floor(row.share * found.rows.length), found.rows.length - 1);
      let v = valueOf(found, bytes(found)[at * found.columns + column]);
      const share = f.from.startsWith('shares');
      if (share && typeof v === 'number') v = 2 ** v;
      return `${typeof v === 'number' ? `≈ ${site.figure(+v.toPrecision(2))}` : site.figure(v)}${share && typeof v === 'number' ? ' × even' : ''}  ${site.clean(found.rows[at].slice(-40))}`;
    }
    if (!found.step.length) return '';
    const i = nearest(found.step, step), band = found.low && found.low.length;
    const value = found.middle[i] === null ? 'NaN or inf' : site.figure(found.middle[i]);
    return `${value}${band && found.middle[i] !== null ? ` [${site.figure(found.low[i])} … ${site.figure(found.high[i])}]` : ''}`;
  };
  const drawCross = () => {
    asked = 0;
    for (const f of figures) {
      const box = visible(f), svg = box && $('svg', box);
      if (!svg) continue;
      let line = $('.cross', svg);
      const outside = step === null || step < f.first || step > f.last;
      if (outside) { if (line) line.setAttribute('visibility', 'hidden'); f.read.textContent = ''; continue; }
      if (!line) { line = doc.createElementNS('http://www.w3.org/2000/svg', 'line'); line.setAttribute('class', 'cross'); svg.append(line); }
      const [left, top, right, bottom] = box.dataset.plot.split(' ').map(Number);
      const x = left + (right - left) * (step - f.first) / Math.max(f.last - f.first, 1);
      for (const [name, value] of Object.entries({ x1: x, x2: x, y1: top, y2: bottom, visibility: 'visible' })) line.setAttribute(name, value);
      const found = data && find(data, f.from);
      f.read.textContent = `${f.x} ${Math.round(step).toLocaleString('en')}  ${found ? shown(found, f) : ''}`;
    }
  };
  const go = to => { step = to; if (!asked) asked = requestAnimationFrame(drawCross); };
  const want = () => own().then(record => { data = record; drawCross(); }, () => {});
  for (const f of figures) {
    f.figure.tabIndex = 0;
    f.figure.addEventListener('pointerenter', want, { once: true });
    f.figure.addEventListener('focus', want, { once: true });
    f.figure.addEventListener('pointermove', event => {
      const box = visible(f), svg = box && $('svg', box);
      if (!svg) return;
      const [left, top, right, bottom] = box.dataset.plot.split(' ').map(Number), matrix = svg.getScreenCTM();
      const x = (event.clientX - matrix.e) / matrix.a, y = (event.clientY - matrix.f) / matrix.d;
      row = y >= top && y < bottom ? { from: f.from, share: (y - top) / (bottom - top) } : null;
      go(x < left - 3 || x > right + 3 ? null : f.first + Math.min(Math.max((x - left) / (right - left), 0), 1) * (f.last - f.first));
    });
    f.figure.addEventListener('pointerleave', () => go(null));
    f.figure.addEventListener('blur', () => go(null));
    f.figure.addEventListener('keydown', event => {
      if (event.target !== f.figure) return;
      const way = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
      if (way) {
        event.preventDefault();
        const from = step === null || step < f.first || step > f.last ? (f.first + f.last) / 2 : step;
        go(Math.min(Math.max(from + way * (f.last - f.first) / (event.shiftKey ? 20 : 200), f.first), f.last));
      }
      if (event.key === 'Escape') go(null);
    });
  }

  // Charts to explore: Vega is loaded only now.
  const dialog = $('#dialog');
  const open = (title, note) => { $('#dialog-title').textContent = title; $('#dialog-note').textContent = note; dialog.showModal(); return $('.plot', dialog); };
  const told = (box, error) => { box.textContent = `The interactive chart could not be shown: ${error.message}`; };
  async function explore(path) {
    const box = open('', '');
    try {
      const curve = find(await own(), path);
      $('#dialog-title').textContent = site.clean(curve.name);
      $('#dialog-note').textContent = 'Drag over the lower chart to zoom; drag it out again by a double click.';
      await site.draw(box, site.isLog(curve) ? 'explore-log' : 'explore', { points: site.points(curve), rug: (curve.broken || []).map(s => ({ s })) });
    } catch (error) { told(box, error); }
  }
  async function drill(path) {
    const [, map, at] = path.split('.').map(Number), box = open('', '');
    try {
      const record = await own(), rows = record.layers[map], codes = bytes(rows).subarray(at * rows.columns, (at + 1) * rows.columns);
      const points = [], rug = [];
      codes.forEach((code, i) => {
        const s = Math.round(rows.first + (i + 0.5) * (rows.last - rows.first + 1) / rows.columns), v = valueOf(rows, code);
        if (typeof v === 'number') points.push({ s, v: +v.toPrecision(3), a: null, b: null }); else if (v) rug.push({ s });
      });
      $('#dialog-title').textContent = site.clean(rows.rows[at]);
      $('#dialog-note').textContent = `${site.clean(rows.title)}, the greatest value of each share of the steps, to about 1 part in 250 of its scale`;
      await site.draw(box, rows.log ? 'explore-log' : 'explore', { points, rug });
    } catch (error) { told(box, error); }
  }

  // Weight histograms of any two recorded steps
  const table = $('#weight-table'), before = $('#before'), after = $('#after');
  if (table) {
    const outline = (shares, top) => shares.reduce((path, share, i) => `${path}L${i * 160 / shares.length} ${(30 - share / top * 28).toFixed(1)}H${(i + 1) * 160 / shares.length}`, 'M0 30') + 'V30Z';
    const redraw = record => {
      const from = +before.value, to = +after.value, x = record.entry.x_axis || 'step';
      const rows = $$('tr[data-weights]', table).map(tr => ({ tr, w: record.weights[+tr.dataset.weights] })).map(({ tr, w }) => ({ tr, w, i: w.step.indexOf(from), j: w.step.indexOf(to) }));
      const most = Math.max(...rows.map(r => r.i < 0 || r.j < 0 ? 0 : r.w.divergence[r.i][r.j]), 1e-12);
      for (const { tr, w, i, j } of rows) {
        const known = i >= 0 && j >= 0, kl = known ? w.divergence[i][j] : null, top = known ? Math.max(...w.share[i], ...w.share[j]) : 1;
        $('.before', tr).setAttribute('d', known ? outline(w.share[i], top) : '');
        $('.after', tr).setAttribute('d', known ? outline(w.share[j], top) : '');
        $('.kl', tr).textContent = site.figure(kl);
        $('.length rect', tr).setAttribute('width', known ? 100 * kl / most : 0);
        $('.histogram', tr).setAttribute('aria-label', known ? `Weights at ${x}s ${from} and ${to}, ${site.figure(kl)} nat apart` : 'not recorded at both steps');
      }
      $('[data-step=before]', table).textContent = `${x} ${from}`;
      $('[data-step=after]', table).textContent = `${x} ${to}`;
    };
    for (const select of [before, after]) select.addEventListener('change', () => own().then(redraw, () => {}));
  }
})();
