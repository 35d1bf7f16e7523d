// Draws the page: reads the data in the page, makes a figure for each chart, keeps legend, choices and colours in step.
// docs/report.md says what the data look like.
(() => {
  'use strict';

  const page = JSON.parse(document.getElementById('data').textContent);
  const colours = 7;  // --series-0 and so on
  const dashes = [[], [9, 4], [3, 3]];
  const hidden = new Set();  // names that are switched off
  const chosen = page.choices.map((c) => c.chosen);
  const figures = [];

  // -- small things

  function element(tag, attributes = {}, ...children) {
    const e = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) e.setAttribute(name, value);
    e.append(...children);
    return e;
  }

  const cssColour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

  /// Three digits that count, and no more zeros than needed.
  function shortNumber(value) {
    if (value === null || value === undefined) return '–';
    if (value !== 0 && (Math.abs(value) >= 1e15 || Math.abs(value) < 1e-6)) return value.toExponential(2);
    const digits = value === 0 ? 0 : 2 - Math.floor(Math.log10(Math.abs(value)));
    return value.toLocaleString('en', {maximumFractionDigits: Math.min(8, Math.max(0, digits))});
  }
  const withUnit = (value, axis) => shortNumber(value) + (axis.unit && value !== null ? ' ' + axis.unit : '');
  const titleOf = (axis) => (axis.unit ? `${axis.label} [${axis.unit}]` : axis.label);

  // -- names and their looks

  const names = [...new Set(page.charts.flatMap((c) => c.views.flatMap((v) => v.series))
    .filter((s) => !s.reference).map((s) => s.name))];

  function lookOf(series) {
    if (series.reference) return {variable: '--quiet', dash: [2, 4], width: 1.25};
    const i = names.indexOf(series.name);
    return {variable: `--series-${i % colours}`, dash: dashes[Math.floor(i / colours) % dashes.length], width: 2};
  }

  function swatch(series) {
    const look = lookOf(series);
    const svg = document.createElementNS('http://www.w3.org/2000/svg', 'svg');
    svg.setAttribute('class', 'swatch');
    svg.setAttribute('width', '20');
    svg.setAttribute('height', '8');
    svg.setAttribute('aria-hidden', 'true');
    const line = document.createElementNS('http://www.w3.org/2000/svg', 'line');
    const dash = look.dash.map((d) => d * 0.7).join(' ');
    const set = {x1: 1, x2: 19, y1: 4, y2: 4, 'stroke-width': 3, 'stroke-dasharray': dash};
    for (const [name, value] of Object.entries(set)) line.setAttribute(name, value);
    line.style.stroke = `var(${look.variable})`;
    svg.append(line);
    return svg;
  }

  // -- what is drawn

  function scaleOf(axis, kind) {
    if (!axis.log) {
      return {time: false, distr: 1, range: (u, low, high) => {
        if (low === null) return [0, 1];
        const top = axis.most ?? (high > 0 ? high * (kind === 'y' ? 1.06 : 1) : 1);
        const bottom = kind === 'y' ? Math.min(0, low) : low;
        return [bottom, top > bottom ? top : bottom + 1];
      }};
    }
    return {time: false, distr: 3, range: (u, low, high) => {
      if (low === null || !(high > 0)) return [0.1, 1];
      return kind === 'x' ? [low, high > low ? high : low * 10] : [low / 1.25, high * 1.25];
    }};
  }

  function axisOf(axis, extra) {
    const plain = (u, splits) => splits.map((v) => (v === null ? null : shortNumber(v)));
    return {
      stroke: () => cssColour('--quiet'),
      grid: {stroke: () => cssColour('--grid'), width: 1},
      ticks: {show: false},
      font: '12px system-ui, sans-serif',
      labelFont: '12px system-ui, sans-serif',
      labelSize: 18,
      labelGap: 0,
      gap: 7,
      label: titleOf(axis),
      values: plain,
      ...extra,
    };
  }

  /// An axis is as wide as its longest number.
  const roomFor = (u, values) => 16 + 7.5 * Math.max(3, ...(values ?? []).map((v) => (v ?? '').length));

  function lineOf(series, chart, count) {
    const look = lookOf(series);
    const stroke = () => cssColour(look.variable);
    const scattered = chart.kind === 'points' && !series.reference;
    return {
      label: series.name,
      show: series.reference || !hidden.has(series.name),
      stroke,
      width: look.width,
      dash: look.dash.length ? look.dash : undefined,
      spanGaps: chart.kind === 'points',
      paths: scattered ? () => null : undefined,
      points: {show: !series.reference && (scattered || count <= 40), size: scattered ? 4 : 6,
               width: scattered ? 0 : 1.5, stroke, fill: () => cssColour(scattered ? look.variable : '--card')},
    };
  }

  const viewOf = (chart) => chart.views[chart.choice === undefined ? 0 : chosen[chart.choice]];

  /// Beside the pointer: the numbers of one place on the x axis.
  function readout(chart) {
    const box = element('div', {class: 'readout', hidden: ''});
    let inside = false;
    const show = (u) => {
      const i = u.cursor.idx;
      box.hidden = !inside || i === null || i === undefined || chart.kind === 'points';
      if (box.hidden) return;
      const view = viewOf(chart);
      const table = element('table', {}, element('caption', {}, `${chart.x.label} ${withUnit(view.x[i], chart.x)}`));
      for (const s of view.series.filter((each) => each.reference || !hidden.has(each.name)))
        table.append(element('tr', {}, element('th', {}, swatch(s), s.name),
          element('td', {}, withUnit(s.y[i], chart.y))));
      box.replaceChildren(table);
      const plot = u.over.getBoundingClientRect();
      const root = u.root.getBoundingClientRect();
      const beside = plot.left - root.left + u.cursor.left + 14;
      const fits = beside + box.offsetWidth <= root.width;
      box.style.left = `${Math.max(0, fits ? beside : beside - box.offsetWidth - 28)}px`;
    };
    const plugin = {hooks: {
      ready: (u) => {
        u.root.append(box);
        u.over.addEventListener('mouseenter', () => { inside = true; });
        u.over.addEventListener('mouseleave', () => { inside = false; box.hidden = true; });
      },
      setCursor: show,
    }};
    return plugin;
  }

  /// A table of the same numbers, for who cannot see the chart, or wants to see more than a chart shows.
  function numbers(chart) {
    const view = viewOf(chart);
    const head = element('tr', {}, element('th', {scope: 'col'}, titleOf(chart.x)),
      ...view.series.map((s) => element('th', {scope: 'col'}, s.name)));
    const rows = view.x.map((x, i) => element('tr', {}, element('th', {scope: 'row'}, shortNumber(x)),
      ...view.series.map((s) => element('td', {}, shortNumber(s.y[i])))));
    return element('table', {}, element('caption', {}, `${chart.title}: ${titleOf(chart.y)}`),
      element('thead', {}, head), element('tbody', {}, ...rows));
  }

  function choiceOf(chart) {
    if (chart.choice === undefined) return [];
    const choice = page.choices[chart.choice];
    const select = element('select', {});
    choice.options.forEach((text, i) => select.append(new Option(text, i, false, i === chosen[chart.choice])));
    select.addEventListener('change', () => choose(chart.choice, Number(select.value)));
    return [element('label', {}, choice.label, select)];
  }

  // -- figures

  class Figure {
    constructor(chart) {
      this.chart = chart;
      this.drawing = element('div', {class: 'drawing', role: 'img'});
      this.table = element('div', {class: 'numbers', tabindex: '0'});
      this.details = element('details', {}, element('summary', {}, 'Numbers'), this.table);
      this.details.addEventListener('toggle', () => this.fill());
      const choice = choiceOf(chart);
      this.select = choice[0]?.querySelector('select');
      this.root = element('figure', chart.wide ? {class: 'wide'} : {},
        element('div', {class: 'head'}, element('h2', {}, chart.title), ...choice),
        element('p', {class: 'note'}, chart.note), this.drawing, this.details);
    }
    height() { return this.chart.wide && this.drawing.clientWidth > 600 ? 320 : 260; }
    fill() { this.table.replaceChildren(...(this.details.open ? [numbers(this.chart)] : [])); }

    draw() {
      const {chart} = this;
      const view = viewOf(chart);
      this.plot?.destroy();
      const options = {
        width: Math.max(200, this.drawing.clientWidth),
        height: this.height(),
        legend: {show: false},
        scales: {x: scaleOf(chart.x, 'x'), y: scaleOf(chart.y, 'y')},
        axes: [axisOf(chart.x, {size: 28}), axisOf(chart.y, {size: roomFor})],
        series: [{}, ...view.series.map((s) => lineOf(s, chart, view.x.length))],
        focus: {alpha: 0.2},
        cursor: {
          drag: {x: true, y: false},
          y: false,
          points: {show: chart.kind !== 'points', size: 9, width: 2, fill: () => cssColour('--card'),
                   stroke: (u, i) => cssColour(lookOf(view.series[i - 1]).variable)},
          sync: chart.kind === 'points' ? undefined : {key: titleOf(chart.x)},
        },
        padding: [12, 14, 0, 0],
        plugins: [readout(chart)],
      };
      this.plot = new uPlot(options, [view.x, ...view.series.map((s) => s.y)], this.drawing);
      this.describe();
    }
    describe() {
      const {chart} = this;
      const seen = viewOf(chart).series.filter((s) => !s.reference && !hidden.has(s.name)).map((s) => s.name);
      const choice = page.choices[chart.choice];
      const at = choice ? `, ${choice.label} ${choice.options[chosen[chart.choice]]}` : '';
      this.drawing.setAttribute('aria-label', `Chart: ${titleOf(chart.y)} against ${titleOf(chart.x)}${at}, for ` +
        `${seen.join(', ') || 'nothing: all is switched off'}. The numbers are in the table below.`);
    }
    /// What is switched off is not drawn, and the axes fit what is left.
    toggle() {
      viewOf(this.chart).series.forEach((s, i) => {
        const show = Boolean(s.reference) || !hidden.has(s.name);
        if (this.plot.series[i + 1].show !== show) this.plot.setSeries(i + 1, {show});
      });
      this.describe();
    }
    /// The others step back.
    highlight(name) {
      const i = viewOf(this.chart).series.findIndex((s) => s.name === name);
      this.plot.setSeries(i < 0 ? null : i + 1, {focus: i >= 0});
    }
    resize() { this.plot.setSize({width: Math.max(200, this.drawing.clientWidth), height: this.height()}); }
  }

  function choose(choice, option) {
    chosen[choice] = option;
    for (const f of figures.filter((each) => each.chart.choice === choice)) {
      f.select.value = option;
      f.draw();
      f.fill();
    }
  }

  // -- the page

  function about() {
    const list = element('dl');
    for (const {name, text, code} of page.about)
      list.append(element('dt', {}, name), element('dd', {}, code ? element('code', {}, text) : text));
    document.getElementById('about').append(list);
  }

  function legend() {
    const bar = document.getElementById('legend');
    const buttons = names.map((name) => element('button', {type: 'button'}, swatch({name}), name));
    const all = element('button', {type: 'button', class: 'all'});
    const show = () => {
      names.forEach((name, i) => buttons[i].setAttribute('aria-pressed', String(!hidden.has(name))));
      all.textContent = hidden.size ? 'all on' : 'all off';
      for (const f of figures) f.toggle();
    };
    names.forEach((name, i) => {
      buttons[i].addEventListener('click', () => {
        if (!hidden.delete(name)) hidden.add(name);
        show();
      });
      buttons[i].addEventListener('pointerenter', () => figures.forEach((f) => f.highlight(name)));
      buttons[i].addEventListener('pointerleave', () => figures.forEach((f) => f.highlight(null)));
    });
    all.addEventListener('click', () => {
      if (hidden.size) hidden.clear();
      else names.forEach((name) => hidden.add(name));
      show();
    });
    if (names.length > 0) bar.append(...buttons, all);
    show();
  }

  /// Paper is white, narrow, and cannot be unfolded.
  function followPrinter() {
    const opened = [];
    addEventListener('beforeprint', () => {
      document.documentElement.classList.add('printing');
      for (const f of figures) {
        f.plot.setSize({width: 680, height: 240});
        if (f.details.open || viewOf(f.chart).x.length > 40) continue;
        f.details.open = true;
        f.fill();
        opened.push(f);
      }
    });
    addEventListener('afterprint', () => {
      document.documentElement.classList.remove('printing');
      for (const f of opened.splice(0)) f.details.open = false;
      for (const f of figures) f.resize();
    });
  }

  about();
  legend();
  const charts = document.getElementById('charts');
  for (const chart of page.charts) {
    if (chart.section) charts.append(element('h2', {class: 'section'}, chart.section));
    const figure = new Figure(chart);
    figures.push(figure);
    charts.append(figure.root);
  }
  for (const f of figures) f.draw();
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change',
    () => figures.forEach((f) => f.plot.redraw(false)));
  new ResizeObserver(() => figures.forEach((f) => f.resize())).observe(charts);
  followPrinter();
})();
