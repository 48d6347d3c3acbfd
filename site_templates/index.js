// The table of runs: sorted, filtered, with its state in the address; only the rows in sight are in the page.
(() => {
  'use strict';
  const { $, $$, make, figure } = window.trainscope;
  const ROW = 44, SPARE = 12, LETTERS = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_';
  const WORDS = { pass: ['Pass', 'good'], fail: ['Fail', 'error'], error: ['Cannot judge', 'warning'] };
  const SIGNS = { error: 'M6 0 12 6 6 12 0 6z', warning: 'M6 .5 12 11.5H0z', info: 'M6 .5a5.5 5.5 0 1 0 .1 0z' };
  const box = $('#runs'), body = $('#rows'), filter = $('#filter'), status = $('#status'), found = $('#found'), compare = $('#compare');
  let all = [], shown = [], state = { q: '', v: '', sort: '', dir: 'asc', pick: [] };

  const svg = (tag, attributes) => {
    const made = document.createElementNS('http://www.w3.org/2000/svg', tag);
    for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
    return made;
  };
  const sparkline = letters => {
    const picture = svg('svg', { class: 'spark', viewBox: '0 0 112 26', 'aria-hidden': 'true' });
    let line = '', bad = '', pen = 'M';
    [...letters].forEach((c, i) => {
      const x = (i * 110 / Math.max(letters.length - 1, 1) + 1).toFixed(1);
      if (c === '!') bad += `M${x} 21v5`;
      if (c === '!' || c === '.') { pen = 'M'; return; }
      line += `${pen}${x} ${(24.5 - LETTERS.indexOf(c) / 63 * 23).toFixed(1)}`;
      pen = 'L';
    });
    picture.append(svg('path', { d: line }));
    if (bad) picture.append(svg('path', { class: 'bad', d: bad }));
    return picture;
  };
  const moment = seconds => seconds === null ? '–' : new Date(seconds * 1000).toISOString().slice(0, 16).replace('T', ' ');
  const tally = run => {
    const made = make('span', { class: 'tally' });
    for (const severity of ['error', 'warning', 'info']) {
      if (!run[severity]) continue;
      const sign = svg('svg', { class: 'sign', viewBox: '0 0 12 12', 'aria-hidden': 'true' });
      sign.append(svg('path', { d: SIGNS[severity] }));
      made.append(make('span', { class: severity }, sign, String(run[severity]), make('span', { class: 'hidden' }, ` ${severity}`)));
    }
    return made.childNodes.length ? made : make('span', { class: 'muted' }, '–');
  };
  const rowOf = (run, place) => {
    const [word, css] = WORDS[run.status], picked = make('input', { type: 'checkbox', 'aria-label': `compare ${run.name}` });
    picked.checked = state.pick.includes(run.id);
    picked.addEventListener('change', () => { state.pick = picked.checked ? [...state.pick, run.id].slice(-2) : state.pick.filter(id => id !== run.id); keep(); draw(true); });
    return make('tr', { 'aria-rowindex': place + 2 },
      make('td', { class: 'c-pick' }, picked),
      make('td', {}, make('span', { class: `chip ${css}` }, word)),
      make('th', { scope: 'row' }, make('a', { href: run.archived ? `run.html#${run.id}` : `runs/${run.id}/index.html` }, run.name), run.apart ? make('small', { class: 'apart' }, run.apart) : ''),
      make('td', { class: 'c-started' }, moment(run.started)),
      make('td', { class: 'c-branch' }, run.branch || '–'),
      make('td', { class: 'c-commit' }, make('code', {}, run.commit ? run.commit.slice(0, 9) : '–')),
      make('td', { class: 'num c-steps' }, run.steps === null ? '–' : String(run.steps)),
      make('td', { class: 'num' }, figure(run.loss)),
      make('td', {}, tally(run)),
      make('td', { class: 'c-spark' }, sparkline(run.spark)));
  };
  const space = height => {
    const made = make('tr', { class: 'space', 'aria-hidden': 'true' }, make('td', { class: 'space' }));
    made.style.height = made.firstChild.style.height = `${height}px`;
    return made;
  };

  let window_ = '';
  function draw(anew) {
    const top = Math.max(Math.floor(box.scrollTop / ROW) - SPARE, 0), end = Math.min(top + Math.ceil(box.clientHeight / ROW) + 2 * SPARE, shown.length);
    if (!anew && window_ === `${top} ${end}`) return;
    window_ = `${top} ${end}`;
    const rows = [];
    if (top) rows.push(space(top * ROW));
    for (let i = top; i < end; i++) rows.push(rowOf(shown[i], i));
    if (end < shown.length) rows.push(space((shown.length - end) * ROW));
    body.replaceChildren(...rows);
    found.textContent = shown.length === all.length ? `${all.length} runs` : `${shown.length} of ${all.length} runs`;
    compare.href = state.pick.length === 2 ? `compare.html#${state.pick.join(',')}` : 'compare.html';
    compare.textContent = state.pick.length === 2 ? 'Compare the two' : state.pick.length ? 'Compare: choose one more' : 'Compare';
  }
  const isEmpty = v => v === null || v === undefined || v === '';
  const rank = { fail: 0, error: 1, pass: 2 }, words = { nan: Infinity, inf: Infinity, '-inf': -Infinity };
  const valueOf = (run, key) => key === 'status' ? rank[run.status] : key === 'findings' ? run.error * 1e6 + run.warning * 1e3 + run.info : run[key];
  // Each order is made once; turning it round or filtering it costs next to nothing.
  const orders = new Map();
  function ordered(key) {
    if (!orders.has(key)) {
      const values = all.map(run => { const v = valueOf(run, key); return typeof v === 'string' && v in words && key === 'loss' ? words[v] : v; });
      const some = [], none = [];
      values.forEach((v, i) => (isEmpty(v) ? none : some).push(i));
      some.sort((i, j) => values[i] < values[j] ? -1 : values[i] > values[j] ? 1 : i - j);
      orders.set(key, { some, none });
    }
    return orders.get(key);
  }
  function choose() {
    const wanted = state.q.toLowerCase().split(/\s+/).filter(Boolean);
    const fits = run => (!state.v || run.status === state.v) && wanted.every(w => run.text.includes(w));
    let runs = all;
    if (state.sort) {
      // What a run does not say comes last, whichever way one sorts.
      const { some, none } = ordered(state.sort);
      runs = [...(state.dir === 'desc' ? some.slice().reverse() : some), ...none].map(i => all[i]);
    }
    shown = state.v || wanted.length ? runs.filter(fits) : runs;
    for (const th of $$('th[data-key]')) {
      if (th.dataset.key === state.sort) th.setAttribute('aria-sort', state.dir === 'desc' ? 'descending' : 'ascending'); else th.removeAttribute('aria-sort');
    }
    draw(true);
  }
  const keep = () => {
    const said = new URLSearchParams();
    for (const key of ['q', 'v', 'sort']) if (state[key]) said.set(key, state[key]);
    if (state.sort && state.dir === 'desc') said.set('dir', 'desc');
    if (state.pick.length) said.set('pick', state.pick.join(','));
    history.replaceState(null, '', `#${said}`);
  };
  const recall = () => {
    const said = new URLSearchParams(location.hash.slice(1)), known = new Set($$('th[data-key]').map(th => th.dataset.key));
    state = {
      q: said.get('q') || '', v: ['pass', 'fail', 'error'].includes(said.get('v')) ? said.get('v') : '',
      sort: known.has(said.get('sort')) ? said.get('sort') : '', dir: said.get('dir') === 'desc' ? 'desc' : 'asc',
      pick: (said.get('pick') || '').split(',').filter(Boolean).slice(0, 2),
    };
    filter.value = state.q;
    status.value = state.v;
  };
  window.tsRuns = columns => {
    const keys = Object.keys(columns);
    all = columns.id.map((_, i) => Object.fromEntries(keys.map(key => [key, columns[key][i]])));
    all.forEach((run, i) => { run.place = i; run.text = `${run.name} ${run.apart} ${run.branch || ''} ${run.commit || ''} ${run.found} ${WORDS[run.status][0]}`.toLowerCase(); });
    for (const th of $$('th[data-key]')) {
      const button = make('button', { type: 'button' }, th.textContent);
      // Numbers are asked for largest first, names from A.
      const first = ['name', 'branch', 'commit', 'status', 'loss'].includes(th.dataset.key) ? 'asc' : 'desc';
      button.addEventListener('click', () => {
        const again = state.sort === th.dataset.key;
        state.dir = again ? (state.dir === 'asc' ? 'desc' : 'asc') : first;
        state.sort = th.dataset.key;
        box.scrollTop = 0;
        keep();
        choose();
      });
      th.replaceChildren(button);
    }
    recall();
    choose();
    const later = window.requestIdleCallback || (act => setTimeout(act, 200));
    for (const th of $$('th[data-key]')) later(() => ordered(th.dataset.key));
  };
  filter.addEventListener('input', () => { state.q = filter.value; box.scrollTop = 0; keep(); choose(); });
  status.addEventListener('change', () => { state.v = status.value; box.scrollTop = 0; keep(); choose(); });
  addEventListener('hashchange', () => { recall(); choose(); });
  addEventListener('resize', () => draw(true));
  let asked = 0;
  box.addEventListener('scroll', () => { cancelAnimationFrame(asked); asked = requestAnimationFrame(() => draw(false)); }, { passive: true });
})();
