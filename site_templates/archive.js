// An archived run, drawn from its record: one page for all of them.
(() => {
  'use strict';
  const site = window.trainscope, { $, make, figure, clean } = site, box = $('#archived');
  const WORDS = { pass: ['Pass', 'good'], fail: ['Fail', 'error'], error: ['Cannot judge', 'warning'] };
  const shown = v => v === null || v === undefined ? '–' : figure(v);
  const steps = (f, x) => f.start_step === null || f.start_step === undefined ? '' : (f.end_step ?? f.start_step) === f.start_step ? `${x} ${f.start_step}` : `${x}s ${f.start_step} to ${f.end_step}`;
  const table = (head, rows) => {
    const body = make('tbody');
    for (const [name, ...cells] of rows) body.append(make('tr', {}, make('th', { scope: 'row' }, name), ...cells.map(c => make('td', { class: 'num' }, c))));
    return make('table', {}, make('thead', {}, make('tr', {}, ...head.map((h, i) => make('th', i ? { scope: 'col', class: 'num' } : { scope: 'col' }, h)))), body);
  };
  async function show() {
    const id = location.hash.slice(1);
    if (!/^[0-9a-f]{12}(-\d+)?$/.test(id)) { box.replaceChildren(make('p', {}, 'Which run? Choose one from the '), make('a', { href: 'index.html' }, 'list of runs')); return; }
    let record;
    try { record = await site.record(id); } catch (error) { box.replaceChildren(make('p', { class: 'card boxed' }, `This run is not here: ${error.message}.`)); return; }
    const e = record.entry, x = e.x_axis || 'step', [word, css] = WORDS[record.verdict.status];
    document.title = `${clean(e.name)} · archived`;
    $('#here').textContent = clean(e.name);
    const select = make('select', { id: 'curve' }), plot = make('div', { class: 'plot', role: 'img' });
    for (const c of record.curves || []) select.append(new Option(clean(c.name, 80), c.name));
    const draw = async () => {
      const c = record.curves[select.selectedIndex];
      if (!c) return;
      plot.setAttribute('aria-label', `${clean(c.name)} over ${x}s ${c.step[0]} to ${c.step.at(-1)}, from ${shown(c.first && c.first[1])} to ${shown(c.last && c.last[1])}, least ${shown(c.least && c.least[1])}, greatest ${shown(c.most && c.most[1])}`);
      try { await site.draw(plot, site.isLog(c) ? 'explore-log' : 'explore', { points: site.points(c), rug: (c.broken || []).map(s => ({ s })) }); } catch (error) { plot.textContent = `The chart could not be shown: ${error.message}`; }
    };
    select.addEventListener('change', draw);
    const findings = (e.findings || []).map(f => make('li', { class: `card finding plain ${f.severity}` }, make('div', { class: 'head' }, make('span', { class: `chip ${f.severity}` }, f.severity), make('h3', {}, clean(f.title))), make('p', { class: 'where' }, [f.detector, f.metric, f.layer, steps(f, x)].filter(Boolean).map(t => clean(t)).join(' · ')), make('p', {}, clean(f.message, 800))));
    box.replaceChildren(
      make('div', { class: 'intro' }, make('h1', {}, clean(e.name)), make('span', { class: `chip ${css}` }, word), make('p', {}, clean(record.summary || ' ', 800))),
      make('p', { class: 'muted note' }, `${clean(e.source)} · ${e.format} · ${x}s ${shown(e.steps.first)} to ${shown(e.steps.last)} · archived: reduced to its curves and findings`),
      make('section', {}, make('h2', {}, 'Findings'), findings.length ? make('ol', { class: 'findings' }, ...findings) : make('p', { class: 'muted' }, 'none')),
      make('section', {}, make('h2', {}, 'Curves'), make('div', { class: 'card boxed' }, make('label', { for: 'curve' }, 'Metric '), select, plot)),
      make('section', {}, make('h2', {}, 'Metrics'), make('div', { class: 'card scroll', tabindex: '0', role: 'region', 'aria-label': 'Metrics' }, table(['Metric', 'Values', 'First', 'Last', 'Least', 'Greatest'], (e.metrics || []).map(m => [clean(m.name), ...['count', 'first', 'last', 'min', 'max'].map(k => shown(m[k]))])))),
    );
    await draw();
  }
  addEventListener('hashchange', show);
  show();
})();
