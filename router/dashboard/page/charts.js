// The charts, drawn by uPlot. Each has its figures in words beside its title, so nothing is told by a line alone.

import { json } from "./api.js";
import { $, clock, h, plural, rate, seconds, text } from "./dom.js";

const CLASSES = ["ttft", "mixed", "throughput"];
const HEIGHT = 200;
const TIME_STEPS_S = [1, 2, 5, 10, 15, 30, 60, 120, 180, 360, 720, 1440, 2880].map((minutes) => 60 * minutes);
const [CALLS, JUDGED, KEPT, FAILED, TOKENS, KEPT_TOKENS, P50, P95] = [0, 1, 2, 3, 4, 5, 6, 7];
const plots = new Map();
let library = null;
let past = { range: "", points: [], at: 0 };

function loadLibrary() {
  library ??= new Promise((resolve) => {
    const script = h("script", { src: "dashboard/uplot.js" });
    script.addEventListener("load", () => resolve(true));
    script.addEventListener("error", () => resolve(false));
    document.head.append(h("link", { rel: "stylesheet", href: "dashboard/uplot.css" }), script);
  });
  return library;
}

const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();

/** Colours are given to a chart when it is made, so another theme needs other charts. */
export function themeCharts() {
  for (const plot of plots.values()) plot.destroy();
  plots.clear();
}

export async function drawCharts(state) {
  if ($("overview").hidden || !state.version) return;
  sums(state);
  $("no-charts").hidden = state.charts;
  if (!state.charts || !(await loadLibrary())) return;
  const points = await pointsOf(state);
  overTime(state, points);
  spread(state, "ttft");
  spread(state, "tpot");
  matrix(state);
}

/** Show data in the chart of that name; `make()` gives its options where it is not there yet or of another kind. */
function put(name, kind, data, make) {
  const holder = $(name).querySelector(".plot");
  let plot = plots.get(name);
  if (plot && plot.kind !== kind) {
    plot.destroy();
    plot = null;
  }
  if (!plot) {
    holder.replaceChildren();
    plot = new window.uPlot({ width: holder.clientWidth, height: HEIGHT, ...make() }, data, holder);
    plot.kind = kind;
    plots.set(name, plot);
    new ResizeObserver(() => holder.clientWidth && plot.width !== holder.clientWidth && plot.setSize({ width: holder.clientWidth, height: HEIGHT })).observe(holder);
  } else plot.setData(data);
}

function axes(x = {}, y = {}) {
  const base = { stroke: colour("dim"), font: "12px system-ui", grid: { stroke: colour("rule"), width: 1 }, ticks: { show: false } };
  return [{ ...base, size: 30, grid: { show: false }, ...x }, { ...base, size: 58, ...y }];
}

/** Vertical lines with words, e.g. where a promise ends. */
function marks(get) {
  return (plot) => {
    const context = plot.ctx;
    context.save();
    for (const [value, label, horizontal] of get()) {
      const at = plot.valToPos(value, horizontal ? "y" : "x", true);
      const { left, top, width, height } = plot.bbox;
      if (horizontal ? at < top || at > top + height : at < left || at > left + width) continue;
      context.strokeStyle = context.fillStyle = colour("bad");
      context.setLineDash([5, 4]);
      context.lineWidth = devicePixelRatio;
      context.beginPath();
      if (horizontal) { context.moveTo(left, at); context.lineTo(left + width, at); }
      else { context.moveTo(at, top); context.lineTo(at, top + height); }
      context.stroke();
      context.font = `${12 * devicePixelRatio}px system-ui`;
      const ends = horizontal || at > left + width / 2;
      context.textAlign = ends ? "right" : "left";
      context.fillText(label, horizontal ? left + width : at + (ends ? -5 : 5) * devicePixelRatio, horizontal ? at - 5 * devicePixelRatio : top + 12 * devicePixelRatio);
    }
    context.restore();
  };
}

// --- over time

/** Hours and minutes; days where the range is longer than one. */
function times_(plot, splits) {
  const long = plot.scales.x.max - plot.scales.x.min > 86400;
  return splits.map((value) => {
    const at = new Date(value * 1000);
    const hour = at.toLocaleTimeString([], { hour: "2-digit", minute: "2-digit", hour12: false });
    return long ? `${at.getDate()}.${at.getMonth() + 1}. ${hour}` : hour;
  });
}

async function pointsOf(state) {
  const hours = $("range").value;
  text($("history-note"), state.history ? "" : "charts go back one hour; dashboard: {history: FILE} keeps more");
  if (Number(hours) <= 1) return [...state.series.values()].filter((point) => point[0] >= state.time_s - 3600 * hours);
  if (!state.history) return [...state.series.values()];
  if (past.range !== hours || state.time_s - past.at > 60) {
    past = { range: hours, at: state.time_s, points: past.range === hours ? past.points : [] };
    try {
      past.points = (await json(`history?hours=${hours}`)).series;
    } catch (error) {
      text($("history-note"), error.message);
    }
  }
  return past.points;
}

/** One row for each bucket, empty ones included, so that a pause is a pause in the chart. */
function columns(points, from_s, to_s, only) {
  if (!points.length) return { times: [from_s, to_s], rows: [null, null] };
  const length = Math.max(...points.map((point) => point[1]), (to_s - from_s) / 400);
  const rows = new Map();
  for (let start = Math.floor(from_s / length) * length; start < to_s; start += length) rows.set(start, null);
  for (const [start, , classes] of points) {
    const at = Math.floor(start / length) * length;
    const sum = rows.get(at) ?? [0, 0, 0, 0, 0, 0, [], []];
    for (const [name, counts] of Object.entries(classes)) {
      if (only && name !== only) continue;
      for (let index = CALLS; index <= KEPT_TOKENS; index += 1) sum[index] += counts[index];
      if (counts[P50] !== null) sum[P50].push(counts[P50]);
      if (counts[P95] !== null) sum[P95].push(counts[P95]);
    }
    rows.set(at, sum);
  }
  return { times: [...rows.keys()], rows: [...rows.values()], length };
}

function overTime(state, points) {
  // A router that has just started does not show an hour of nothing.
  const range_s = 3600 * Number($("range").value);
  const first_s = points.length ? points[0][0] : state.time_s;
  const from_s = Math.max(state.time_s - range_s, Math.min(first_s - 60, state.time_s - 300));
  const [unit, only] = [$("unit").value, $("only").value];
  const { times, rows, length } = columns(points, from_s, state.time_s, only);
  const tokens = unit === "tokens";
  // Calls to which nothing was promised count as in time once they are whole, or a batch would look like waste.
  const all = rows.map((row) => (row ? row[tokens ? TOKENS : CALLS] / length : 0));
  const good = rows.map((row) => (row ? (tokens ? row[KEPT_TOKENS] : row[KEPT] + Math.max(0, row[CALLS] - row[JUDGED] - row[FAILED])) / length : 0));
  const label = (value) => (value === null ? "–" : `${rate(value)}/s`);
  put("goodput-chart", "time", [times, all, good], () => ({
    scales: { y: { range: (plot, low, high) => [0, Math.max(high * 1.1, 0.1)] } },
    axes: axes({ values: times_, space: 70, incrs: TIME_STEPS_S }, { values: (plot, splits) => splits.map(rate) }),
    legend: { live: true },
    series: [
      { label: "time", value: (plot, value) => (value === null ? "–" : clock(value)) },
      { label: "all", stroke: colour("dim"), width: 1.5, dash: [4, 3], value: (plot, value) => label(value) },
      { label: "in time", stroke: colour("good-fill"), width: 2, fill: `${colour("good-fill")}22`, value: (plot, value) => label(value) },
    ],
  }));
  // First tokens are promised to ttft; those of a batch beside them would only blur the picture.
  const firstOf = only || "ttft";
  const firsts = columns(points, from_s, state.time_s, firstOf).rows;
  const slo = state.line.find((each) => each.class === firstOf)?.slo.ttft;
  const mean = (list) => (list?.length ? list.reduce((total, each) => total + each, 0) / list.length : null);
  const p50 = firsts.map((row) => mean(row?.[P50]));
  const p95 = firsts.map((row) => (row?.[P95].length ? Math.max(...row[P95]) : null));
  put("first-chart", `first ${slo}`, [times, p50, p95], () => ({
    scales: { y: { range: (plot, low, high) => [0, Math.max((high ?? 0) * 1.15, (slo ?? 0) * 1.3, 0.01)] } },
    axes: axes({ values: times_, space: 70, incrs: TIME_STEPS_S }, { values: (plot, splits) => splits.map(seconds) }),
    hooks: { draw: [marks(() => (slo ? [[slo, `promised ${seconds(slo)}`, true]] : []))] },
    series: [
      { label: "time", value: (plot, value) => (value === null ? "–" : clock(value)) },
      { label: "p50", stroke: colour("ttft"), width: 2, spanGaps: true, value: (plot, value) => seconds(value) },
      { label: "p95", stroke: colour("ink"), width: 1.25, spanGaps: true, points: { size: 4 }, value: (plot, value) => seconds(value) },
    ],
  }));
}

// --- spreads

const SHAPES = { ttft: [], mixed: [6, 3], throughput: [2, 3] };

function spread(state, kind) {
  const edges = state.edges_s.map(Math.log10);
  const found = CLASSES.map((name) => state.distributions[name]?.[kind]).map((each) => (each?.calls ? each : null));
  const used = edges.map((_, index) => found.some((each) => each?.counts[index]));
  const [first, last] = [used.indexOf(true), used.lastIndexOf(true)];
  const slos = state.line.map((each) => each.slo[kind]).filter(Boolean);
  const low = Math.min(first < 0 ? 16 : first, ...slos.map((slo) => edges.findIndex((edge) => edge >= Math.log10(slo)))) - 2;
  const high = Math.max(last, ...slos.map((slo) => edges.findIndex((edge) => edge >= Math.log10(slo)))) + 3;
  const from = Math.max(0, low);
  const x = edges.slice(from, high);
  const data = [x, ...found.map((each) => (each ? each.counts.slice(from, from + x.length).map((number) => (100 * number) / each.calls) : x.map(() => null)))];
  put(`${kind}-chart`, `spread ${slos}`, data, () => ({
    scales: { x: { time: false }, y: { range: (plot, min, max) => [0, Math.max(10, (max ?? 0) * 1.15)] } },
    axes: axes(
      { splits: (plot, axis, min, max) => steps(min, max), values: (plot, splits) => splits.map((value) => seconds(10 ** value)) },
      { values: (plot, splits) => splits.map((value) => `${value} %`) }),
    hooks: { draw: [marks(() => slos.map((slo) => [Math.log10(slo), `promised ${seconds(slo)}`]))] },
    series: [
      { label: "up to", value: (plot, value) => (value === null ? "–" : seconds(10 ** value)) },
      ...CLASSES.map((name) => ({
        label: name, stroke: colour(name), width: 2, dash: SHAPES[name], fill: `${colour(name)}18`, paths: window.uPlot.paths.stepped({ align: -1 }), points: { show: false },
        value: (plot, value) => (value === null ? "–" : `${value.toFixed(0)} %`),
      })),
    ],
  }));
}

function steps(low, high) {
  const found = [];
  for (let decade = Math.floor(low); decade <= high; decade += 1) {
    for (const part of high - low > 2.5 ? [1] : [1, 3]) {
      const value = decade + Math.log10(part);
      if (value >= low && value <= high) found.push(value);
    }
  }
  return found;
}

// --- perception and capacity

function matrix(state) {
  const points = state.matrix.filter((point) => point.ttft_p50_s !== null && point.tokens_per_s > 0).sort((one, other) => one.ttft_p50_s - other.ttft_p50_s);
  const x = points.map((point) => point.ttft_p50_s);
  const data = [x, ...CLASSES.map((name) => points.map((point) => (point.class === name ? point.tokens_per_s : null)))];
  matrix.points = points;
  put("matrix-chart", "matrix", data, () => ({
    legend: { show: false },
    cursor: { show: false },
    scales: { x: { time: false, distr: 3, range: logarithmic(2.5) }, y: { distr: 3, range: logarithmic(1.6) } },
    axes: axes({ values: decades(seconds), space: 70 }, { values: decades(rate) }),
    hooks: { draw: [drawPoints] },
    series: [{}, ...CLASSES.map((name) => ({ label: name, stroke: colour(name), paths: () => null, points: { show: false } }))],
  }));
}

/** Room around the points, on the right for their names. */
const logarithmic = (right) => (plot, low, high) => [(low || 0.1) / 1.6, (high || 1) * right];

/** Only 1, 2 and 5 of each decade have words. */
const decades = (format) => (plot, splits) => splits.map((value) => ([1, 2, 5].includes(Math.round(value / 10 ** Math.floor(Math.log10(value) + 1e-9))) ? format(value) : ""));

/** A circle for ttft, a square for mixed, a triangle for throughput, with the backend's name. */
function drawPoints(plot) {
  const context = plot.ctx;
  const size = 6 * devicePixelRatio;
  context.save();
  context.font = `${12 * devicePixelRatio}px system-ui`;
  context.textAlign = "left";
  context.textBaseline = "middle";
  for (const point of matrix.points) {
    const [x, y] = [plot.valToPos(point.ttft_p50_s, "x", true), plot.valToPos(point.tokens_per_s, "y", true)];
    context.fillStyle = colour(point.class);
    context.beginPath();
    if (point.class === "ttft") context.arc(x, y, size, 0, 7);
    else if (point.class === "mixed") context.rect(x - size, y - size, 2 * size, 2 * size);
    else { context.moveTo(x, y - size); context.lineTo(x + size, y + size); context.lineTo(x - size, y + size); }
    context.fill();
    context.fillStyle = colour("ink");
    context.fillText(point.backend, x + 1.6 * size, y);
  }
  context.restore();
}

// --- in words

function sums(state) {
  const now = state.goodput.windows["5m"].total;
  const put_ = (name, words) => text($(name).querySelector(".sum"), words);
  put_("goodput-chart", `${rate(now.inside_per_s)} of ${rate(now.calls_per_s)} calls/s and ${rate(now.tokens_inside_per_s)} of ${rate(now.tokens_per_s)} tokens/s in time, over 5 min`);
  const first = $("only").value || "ttft";
  const times = state.goodput.windows["5m"].class[first]?.ttft_s ?? {};
  put_("first-chart", `${first}: p50 ${seconds(times.p50)}, p95 ${seconds(times.p95)}, p99 ${seconds(times.p99)} over 5 min`);
  for (const kind of ["ttft", "tpot"]) {
    const words = CLASSES.map((name) => [name, state.distributions[name]?.[kind]]).filter(([, each]) => each?.calls)
      .map(([name, each]) => `${name} p50 ${seconds(each.p50_s)}, p95 ${seconds(each.p95_s)}, p99 ${seconds(each.p99_s)} of ${plural(each.calls, "call")}`);
    put_(`${kind}-chart`, words.join("; ") || "no streamed calls yet");
  }
  const points = state.matrix.filter((point) => point.ttft_p50_s !== null).map((point) => `${point.backend} ${point.class} ${seconds(point.ttft_p50_s)}, ${rate(point.tokens_per_s)} tokens/s`);
  put_("matrix-chart", "each backend and class: median first token → tokens/s ↑, over 5 min");
  text($("matrix-words"), points.join("; "));
}
