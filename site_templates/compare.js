// Two runs of this site side by side: settings, curves, where they part, findings.
(() => {
  'use strict';
  const site = window.trainscope, { $, make, figure, clean } = site;
  const WORDS = { pass: 'Pass', fail: 'Fail', error: 'Cannot judge' };
  const selects = [$('#run-a'), $('#run-b')], metric = $('#metric'), said = $('#said');
  let pair = [null, null], wanted = '';

  const shown = v => v === null || v === undefined ? '–' : typeof v === 'number' ? figure(v) : String(v);
  const head = (box, record) => {
    const e = record.entry, address = record.archived ? `run.html#${e.id}` : `runs/${e.id}/index.html`;
    box.replaceChildren(make('h2', {}, make('a', { href: address }, clean(e.name))), make('p', { class: 'muted' }, `${WORDS[record.verdict.status]} · ${e.x_axis || 'step'}s ${shown(e.steps.first)} to ${shown(e.steps.last)}${record.about && record.about.commit ? ` · ${record.about.commit}` : ''}`), make('p', {}, clean(record.summary || ' ', 800)));
  };
  const settings = (a, b) => {
    const one = a.entry.config || {}, two = b.entry.config || {}, own = Object.prototype.hasOwnProperty;
    const keys = [...new Set([...Object.keys(one), ...Object.keys(two)])].filter(k => !own.call(one, k) || !own.call(two, k) || one[k] !== two[k]).sort();
    const box = $('#settings .scroll');
    if (!keys.length) {
      box.replaceChildren(make('p', { class: 'muted' }, Object.keys(one).length || Object.keys(two).length ? 'None: every setting that the logs have is the same.' : 'The logs of these runs hold no settings.'));
      return;
    }
    if (!Object.keys(one).length || !Object.keys(two).length) {
      box.replaceChildren(make('p', { class: 'muted' }, `Only the log of ${Object.keys(one).length ? 'A' : 'B'} holds settings (${keys.length}): there is nothing to compare them with.`));
      return;
    }
    const body = make('tbody');
    for (const k of keys) body.append(make('tr', {}, make('th', { scope: 'row' }, make('code', {}, clean(k))), make('td', {}, own.call(one, k) ? clean(one[k]) : 'not set'), make('td', {}, own.call(two, k) ? clean(two[k]) : 'not set')));
    box.replaceChildren(make('table', {}, make('thead', {}, make('tr', {}, ...['Setting', 'A', 'B'].map(t => make('th', { scope: 'col' }, t)))), body));
  };
  // Linear between the rows of a curve, nothing across a NaN or outside.
  const reader = curve => {
    let at = 0;
    return step => {
      while (at + 1 < curve.step.length && curve.step[at + 1] <= step) at++;
      const [s, v] = [curve.step[at], curve.middle[at]];
      if (step < s || v === null) return null;
      if (step === s) return v;
      if (at + 1 >= curve.step.length || curve.middle[at + 1] === null) return null;
      return v + (curve.middle[at + 1] - v) * (step - s) / (curve.step[at + 1] - s);
    };
  };
  const median = values => { const v = [...values].sort((p, q) => p - q); return v.length ? v[v.length >> 1] : 0; };
  const difference = (a, b) => {
    const steps = [...new Set([...a.step, ...b.step])].sort((p, q) => p - q).filter(s => s >= Math.max(a.step[0], b.step[0]) && s <= Math.min(a.step.at(-1), b.step.at(-1)));
    const one = reader(a), two = reader(b);
    return steps.map(s => { const p = one(s), q = two(s); return { s, d: p === null || q === null ? null : q - p }; });
  };
  // Where they part: curves that begin the same at five points, to rounding, at their first difference; others where
  // the difference stays outside 4 times its own noise for 5 points. Noise is what neighbouring differences differ by.
  const parting = (rows, a) => {
    const some = rows.filter(r => r.d !== null);
    if (some.length < 8) return null;
    const jumps = some.slice(1).map((r, i) => Math.abs(r.d - some[i].d));
    const size = median(a.middle.filter(v => v !== null).map(Math.abs)), band = Math.max(4 * 1.4826 / Math.SQRT2 * median(jumps), 1e-6 * size);
    const first = some.findIndex(r => Math.abs(r.d) > 1e-6 * size);
    if (first < 0) return { step: null, band, same: true };
    if (first >= 5) return { step: some[first].s, d: some[first].d, band, before: some[first - 1].s };
    for (let i = 0; i + 5 <= some.length; i++) {
      const next = some.slice(i, i + 5), sign = Math.sign(next[0].d);
      if (next.every(r => Math.abs(r.d) > band && Math.sign(r.d) === sign)) return { step: next[0].s, d: next[0].d, band };
    }
    return { step: null, band, most: some.reduce((p, q) => Math.abs(q.d) > Math.abs(p.d) ? q : p) };
  };
  async function curves(a, b) {
    const box = $('#plot'), find = record => record.curves.find(c => c.name === metric.value), one = find(a), two = find(b);
    if (!one || !two) { box.textContent = ''; $('#parting').textContent = 'These runs have no metric in common.'; return; }
    const rows = difference(one, two), part = parting(rows, one), x = a.entry.x_axis || 'step';
    const odd = [['A', one], ['B', two]].filter(([, curve]) => curve.broken_count);
    const compared = part === null ? 'Their steps overlap too little to say where they part.'
      : part.same ? `They are the same at all ${x}s that they share${odd.length ? ' and where both are finite' : ''}.`
      : part.before !== undefined ? `They part at ${x} ${part.step}: up to ${x} ${part.before} they are the same, and there B is ${part.d > 0 ? 'above' : 'below'} A by ${figure(+Math.abs(part.d).toPrecision(3))}.`
      : part.step === null ? `They do not part for good: B minus A is furthest from zero at ${x} ${part.most.s}, with ${figure(+part.most.d.toPrecision(3))}, and leaves its noise (±${figure(+part.band.toPrecision(3))}) for less than five points in a row.`
        : `They part at ${x} ${part.step}: from there B is ${part.d > 0 ? 'above' : 'below'} A, by ${figure(+Math.abs(part.d).toPrecision(3))} at first (noise ±${figure(+part.band.toPrecision(3))}).`;
    // A curve in shares of its steps (one with a band) knows the share of a NaN, not its step.
    const words = [compared, ...odd.map(([name, c]) => `${name} is NaN or infinite at ${c.broken_count === 1 ? 'one point,' : `${c.broken_count} points, first`} ${c.low && c.low.length ? 'near' : 'at'} ${x} ${c.broken[0]}.`)].join(' ');
    $('#parting').textContent = words;
    box.setAttribute('aria-label', `${clean(metric.value)} of both runs, and B minus A. ${words} A ends at ${figure(one.last && one.last[1])}, B at ${figure(two.last && two.last[1])}.`);
    const both = [...site.points(one).map(p => ({ s: p.s, v: p.v, k: 'A' })), ...site.points(two).map(p => ({ s: p.s, v: p.v, k: 'B' }))];
    const form = site.isLog(one) && site.isLog(two) ? 'compare-log' : 'compare';
    try { await site.draw(box, form, { both, difference: rows, parting: part && part.step !== null ? [{ s: part.step }] : [] }); } catch (error) { box.textContent = `The chart could not be shown: ${error.message}`; }
  }
  const findings = (a, b) => {
    const key = f => `${f.detector}\n${f.metric || ''}\n${f.layer || ''}`, of = r => r.entry.findings || [];
    const list = (title, items) => make('div', {}, make('h3', {}, title), items.length ? make('ul', {}, ...items.map(f => make('li', {}, make('b', {}, clean(f.title)), ` ${clean(f.message, 800)}`))) : make('p', { class: 'muted' }, 'none'));
    const [inA, inB] = [new Set(of(a).map(key)), new Set(of(b).map(key))];
    $('#findings .two').replaceChildren(list('Only in A', of(a).filter(f => !inB.has(key(f)))), list('Only in B', of(b).filter(f => !inA.has(key(f)))), list('In both', of(b).filter(f => inA.has(key(f)))));
  };
  async function show() {
    const ids = selects.map(s => s.value);
    history.replaceState(null, '', `#${ids.join(',')}${wanted ? `&metric=${encodeURIComponent(wanted)}` : ''}`);
    try {
      pair = await Promise.all(ids.map(site.record));
    } catch (error) { said.textContent = `Cannot compare: ${error.message}.`; return; }
    said.textContent = ids[0] === ids[1] ? 'A and B are the same run; choose another.' : '';
    const [a, b] = pair, common = a.curves.map(c => c.name).filter(n => b.curves.some(c => c.name === n));
    metric.replaceChildren(...common.map(n => new Option(clean(n, 80), n)));
    metric.value = common.includes(wanted) ? wanted : common[0] || '';
    head($('#versus .a'), a);
    head($('#versus .b'), b);
    settings(a, b);
    findings(a, b);
    for (const id of ['versus', 'settings', 'curves', 'findings']) document.getElementById(id).hidden = false;
    await curves(a, b);
  }
  window.tsRuns = columns => {
    const known = new Set(columns.id), [ids, ...rest] = location.hash.slice(1).split('&'), asked = ids.split(',').filter(id => known.has(id));
    wanted = new URLSearchParams(rest.join('&')).get('metric') || '';
    if (!columns.id.length) { said.textContent = 'This site has no run yet.'; return; }
    selects.forEach((select, k) => {
      columns.id.forEach((id, i) => select.append(new Option(`${columns.name[i]}${columns.apart[i] ? ` · ${columns.apart[i]}` : ''} (${WORDS[columns.status[i]]}, ${id})`, id)));
      select.value = asked[k] || columns.id[Math.min(k, columns.id.length - 1)];
      select.addEventListener('change', show);
    });
    metric.addEventListener('change', () => { wanted = metric.value; history.replaceState(null, '', `#${selects.map(s => s.value).join(',')}&metric=${encodeURIComponent(wanted)}`); curves(...pair); });
    show();
  };
})();
