// Line charts of runs, drawn by uPlot.

import { band, interpolate, smooth } from "./statistics.js";

const CELLS = 400; // about as many points of a line as a chart has pixels
// Colors that are also distinct for color-blind people (Okabe and Ito), for light and for dark pages.
const LIGHT = ["#0072b2", "#d55e00", "#00805f", "#b0508c", "#a87000", "#3a86b8", "#555555", "#7a7a00"];
const DARK = ["#56b4e9", "#ff8a3d", "#2fc79a", "#e39ac4", "#f0b429", "#9fd3f5", "#b9c2cc", "#d7d74a"];
const DASHES = [[], [8, 4], [2, 3], [10, 3, 2, 3]];
const SECONDS = [0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 28800, 43200, 86400, 172800];

const isDark = matchMedia("(prefers-color-scheme: dark)");

/** Return the color of the line with a number, counted from 0. */
export function colorOf(number) {
  const colors = isDark.matches ? DARK : LIGHT;
  return colors[number % colors.length];
}

export function dashOf(number) {
  return DASHES[Math.floor(number / LIGHT.length) % DASHES.length];
}

const theme = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

/** Format a number with three significant digits: 1.25M, 183k, 0.0123. */
export function short(value) {
  if (value === null || value === undefined || !isFinite(value)) return "–";
  for (const [size, unit] of [[1e12, "T"], [1e9, "B"], [1e6, "M"], [1e3, "k"]]) {
    if (Math.abs(value) >= size * 0.9995) return threeDigits(value / size) + unit;
  }
  if (Number.isInteger(value)) return String(value);
  return Math.abs(value) >= 0.001 ? threeDigits(value) : value.toExponential(1);
}

function threeDigits(value) {
  const rounded = Number(value.toPrecision(3));
  const digits = rounded ? Math.floor(Math.log10(Math.abs(rounded))) : 0;
  return rounded.toFixed(2 - Math.min(2, Math.max(digits, -2)));
}

/** Format a duration in seconds: 0:05, 2:05, 1:02:05. */
export function duration(seconds) {
  if (seconds === null || seconds === undefined || !isFinite(seconds)) return "–";
  const all = Math.max(0, Math.round(seconds)), two = (number) => String(number).padStart(2, "0");
  const [hours, minutes, rest] = [Math.floor(all / 3600), Math.floor(all / 60) % 60, all % 60];
  return hours ? `${hours}:${two(minutes)}:${two(rest)}` : `${minutes}:${two(rest)}`;
}

const logRange = (low, high) => low === null ? [0.1, 1] : uPlot.rangeLog(low, high, 10, false);

/** Chart of one metric of several lines.
 *
 * A line is `{label, number, curves}`. Its curves are those of its runs. Several are drawn as their interquartile mean
 * with its interval, and a single one as its smoothed values over all values.
 */
export class Chart {
  /** @param host Element of the page. @param legend Element for the names of the lines and their values. */
  constructor(host, legend) {
    this.host = host;
    this.legend = legend;
    this.zoom = null;
    this.plot = null;
    this.lines = [];
    this.computed = new Map();
    new ResizeObserver(() => this.plot?.setSize(this.size())).observe(host);
    isDark.addEventListener("change", () => this.rebuild());
  }

  /** Draw lines. `options` are `{x: "steps" or "seconds", smoothing, log}`. */
  draw(lines, options) {
    this.lines = lines.filter((line) => line.curves.length);
    if (options.x !== this.options?.x) this.zoom = null;
    this.options = options;
    const shape = JSON.stringify([options.x, options.log, this.lines.map((line) => [line.label, line.number])]);
    const data = this.data();
    if (this.plot && shape === this.shape) {
      this.plot.setData(data);
    } else {
      this.shape = shape;
      this.build(data);
    }
    this.showValues();
  }

  rebuild() {
    if (this.options) this.build(this.data());
  }

  resetZoom() {
    this.zoom = null;
    this.draw(this.lines, this.options);
  }

  size() {
    return { width: Math.max(200, this.host.clientWidth), height: Math.max(150, this.host.clientHeight) };
  }

  /** Return the smallest and the largest x of all lines. */
  extent() {
    const ends = this.lines.flatMap((line) => line.curves.map((curve) => curve[this.options.x]));
    const low = Math.min(...ends.map((x) => x[0])), high = Math.max(...ends.map((x) => x[x.length - 1]));
    return isFinite(low) ? [low, high > low ? high : low + 1] : [0, 1];
  }

  /** Return the points at which all lines are computed. Most of them stay when a line becomes longer. */
  grid() {
    const [from, to] = this.zoom ?? this.extent();
    const step = 2 ** Math.ceil(Math.log2((to - from) / CELLS));
    const grid = new Set();
    for (let k = Math.floor(from / step); k <= Math.ceil(to / step); k++) grid.add(k * step);
    for (const line of this.lines) {
      for (const curve of line.curves) { // so that lines begin and end where their data does
        const x = curve[this.options.x];
        for (const end of [x[0], x[x.length - 1]]) if (end >= from && end <= to) grid.add(end);
      }
    }
    return [...grid].sort((a, b) => a - b);
  }

  /** Return the columns of uPlot: x, and for each line its middle and both ends of its interval. */
  data() {
    const grid = this.grid(), columns = [grid], computed = new Map();
    const frame = `${this.options.x} ${this.options.smoothing} ${grid.length} ${grid[0]} ${grid[grid.length - 1]}`;
    for (const line of this.lines) {
      const before = this.computed.get(line.label);
      const isSame = before?.frame === frame && before.curves.length === line.curves.length &&
        before.curves.every((curve, i) => curve === line.curves[i]);
      const result = isSame ? before.result : this.compute(line, grid);
      computed.set(line.label, { frame, curves: line.curves, result });
      columns.push(...result);
    }
    this.computed = computed;
    return this.options.log ? columns.map((column, i) => i ? column.map((v) => v > 0 ? v : null) : column) : columns;
  }

  compute(line, grid) {
    const curves = line.curves.map((curve) =>
      interpolate(curve[this.options.x], smooth(curve.mean, this.options.smoothing), grid));
    if (curves.length === 1) return [curves[0], curves[0].map(() => null), curves[0].map(() => null)];
    const { middle, low, high } = band(curves, grid.length);
    return [middle, low, high];
  }

  build(data) {
    this.plot?.destroy();
    const { x, log } = this.options, quiet = theme("--quiet"), faint = theme("--line");
    const axis = { stroke: quiet, grid: { stroke: faint, width: 1 }, ticks: { stroke: faint, width: 1 }, font: "12px system-ui" };
    const series = [{}], bands = [];
    for (const line of this.lines) {
      const color = colorOf(line.number), edge = { scale: "y", width: 0, points: { show: false } };
      series.push({ label: line.label, scale: "y", stroke: color, width: 2, dash: dashOf(line.number), spanGaps: true,
        points: { show: (u, i) => u.data[i].filter((value) => value !== null).length === 1, size: 7 } }, edge, edge);
      bands.push({ series: [series.length - 1, series.length - 2], fill: color + "2e" });
    }
    const xAxis = x === "seconds"
      ? { values: (u, splits, axis, space, step) => splits.map((at) => step < 1 ? `${short(at)} s` : duration(at)), incrs: SECONDS, space: 70 }
      : { values: (u, splits) => splits.map(short), space: 70 };
    this.plot = new uPlot({
      ...this.size(),
      series, bands,
      legend: { show: false },
      scales: {
        x: { time: false, range: () => this.zoom ?? this.extent() },
        y: { distr: log ? 3 : 1, range: (u, low, high) => log ? logRange(low, high) : this.yRange(low, high) },
      },
      axes: [{ ...axis, ...xAxis }, { ...axis, size: 58, values: (u, splits) => splits.map((v) => v === null ? "" : short(v)) }],
      cursor: { y: false, points: { size: 7 }, drag: { x: true, y: false, setScale: false } },
      hooks: {
        drawAxes: [(u) => this.drawRaw(u)],
        setCursor: [() => this.showValues()],
        setSelect: [(u) => this.select(u)],
      },
    }, data, this.host);
    this.plot.over.addEventListener("dblclick", () => this.resetZoom());
  }

  select(u) {
    if (u.select.width < 5) return;
    const ends = [u.select.left, u.select.left + u.select.width].map((px) => u.posToVal(px, "x"));
    u.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
    this.zoom = ends;
    this.draw(this.lines, this.options);
    this.host.dispatchEvent(new Event("zoomed"));
  }

  /** Return the ends of the y axis, with all values that are drawn. */
  yRange(low, high) {
    const [from, to] = this.zoom ?? this.extent();
    for (const { curves } of this.lines) {
      if (curves.length > 1) continue;
      const [curve] = curves, x = curve[this.options.x];
      const lows = curve.low ?? curve.mean, highs = curve.high ?? curve.mean;
      for (let i = 0; i < x.length; i++) {
        if (x[i] < from || x[i] > to) continue;
        if (low === null || lows[i] < low) low = lows[i];
        if (high === null || highs[i] > high) high = highs[i];
      }
    }
    return low === null ? [0, 1] : uPlot.rangeNum(low, high, 0.08, true);
  }

  /** Draw the values of each update below the smoothed lines, or where several became one point, their range. */
  drawRaw(u) {
    const { ctx, bbox } = u, { x, smoothing } = this.options;
    const [from, to] = this.zoom ?? this.extent();
    ctx.save();
    ctx.beginPath();
    ctx.rect(bbox.left, bbox.top, bbox.width, bbox.height);
    ctx.clip();
    for (const line of this.lines) {
      const [curve] = line.curves;
      if (line.curves.length > 1 || (!curve.low && smoothing === 0)) continue;
      ctx.strokeStyle = ctx.fillStyle = colorOf(line.number) + (curve.low ? "33" : "55");
      ctx.lineWidth = devicePixelRatio;
      ctx.beginPath();
      const at = (i, y) => [u.valToPos(curve[x][i], "x", true), u.valToPos(y[i], "y", true)];
      const inside = [...curve[x].keys()].filter((i) => (curve[x][i + 1] ?? Infinity) >= from && (curve[x][i - 1] ?? -Infinity) <= to);
      for (const i of inside) ctx.lineTo(...at(i, curve.high ?? curve.mean));
      if (curve.low) {
        for (const i of inside.reverse()) ctx.lineTo(...at(i, curve.low));
        ctx.fill();
      } else {
        ctx.stroke();
      }
    }
    ctx.restore();
  }

  /** Show the value of each line under the cursor, or its last value. */
  showValues() {
    const u = this.plot;
    if (!u) return;
    const at = u.cursor.idx, isInside = u.cursor.left >= 0 && at !== null && at !== undefined;
    const lastOf = (column) => { for (let i = column.length - 1; i >= 0; i--) if (column[i] !== null) return i; return 0; };
    if (this.legend.children.length !== this.lines.length || this.legend.dataset.shape !== this.shape) {
      this.legend.dataset.shape = this.shape;
      this.legend.replaceChildren(...this.lines.map((line) => {
        const item = document.createElement("li"), swatch = document.createElement("span"), value = document.createElement("b");
        swatch.className = "swatch";
        swatch.style.background = colorOf(line.number);
        item.title = line.label;
        item.append(swatch, value, document.createTextNode(` ${line.label}`));
        return item;
      }));
    }
    this.lines.forEach((line, n) => {
      const [middle, low, high] = [1, 2, 3].map((k) => u.data[3 * n + k]);
      const i = isInside ? at : lastOf(middle);
      const interval = low[i] === null || low[i] === undefined ? "" : ` (${short(low[i])} to ${short(high[i])})`;
      this.legend.children[n].children[1].textContent = short(middle[i]) + interval;
      this.legend.children[n].firstChild.style.background = colorOf(line.number);
    });
    const where = this.legend.parentElement.querySelector(".where");
    const format = this.options.x === "seconds" ? duration : short;
    where.textContent = isInside ? `at ${format(u.data[0][at])}${this.options.x === "seconds" ? "" : " steps"}` : "last values";
  }
}
