// Parallel coordinates of a sweep: an axis for each setting and the score, and a line for each trial.

import { short } from "./charts.js";

const TOP = 46, BOTTOM = 26, SIDE = 48; // margins in CSS pixels
const NEAR = 6; // distance in pixels at which the pointer is on a line

const theme = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

/** Return functions between the values of a setting and positions from 0 to 1 on its axis. */
function scaleOf(space) {
  if (space.distribution === "choice") {
    const last = Math.max(1, space.choices.length - 1);
    return {
      position: (value) => space.choices.findIndex((choice) => String(choice) === String(value)) / last,
      ticks: space.choices.map((choice, i) => [i / last, String(choice)]),
    };
  }
  const transform = { log: Math.log, pow2: Math.log2, logit: (v) => Math.log(v / (1 - v)) }[space.distribution] ?? Number;
  const inverse = { log: Math.exp, pow2: (t) => 2 ** t, logit: (t) => 1 / (1 + Math.exp(-t)) }[space.distribution] ?? Number;
  const [low, high] = [transform(space.min), transform(space.max)];
  const position = (value) => Math.min(1, Math.max(0, (transform(value) - low) / (high - low || 1)));
  const format = (value) => space.distribution === "logit" && value > 0.9 ? String(Number(value.toPrecision(4))) : short(value);
  const ticks = [0, 0.25, 0.5, 0.75, 1].map((at) => [at, format(inverse(low + at * (high - low)))]);
  return { position, ticks };
}

/** Chart on a canvas. Drag along an axis to keep only the trials in a range. Click a line to open its run. */
export class Parallel {
  /** @param onPoint Called with the trial under the pointer, or null. @param onOpen Called with a clicked trial. */
  constructor(canvas, sweep, onPoint, onOpen) {
    Object.assign(this, { canvas, sweep, onPoint, onOpen, ranges: new Map(), pointed: null, drag: null });
    const scores = sweep.trials.map((trial) => trial.score).filter((score) => score !== null);
    const score = { setting: "score", distribution: "uniform", min: Math.min(...scores), max: Math.max(...scores) };
    const value = { score: (trial) => trial.score };
    this.axes = [...sweep.spaces, score].map((space) => ({
      name: space.setting.split(".").pop(),
      value: value[space.setting] ?? ((trial) => trial.settings[space.setting]),
      ...scaleOf(space),
    }));
    this.trials = sweep.trials
      .filter((trial) => trial.score !== null && Object.keys(trial.settings).length)
      .sort((a, b) => a.score - b.score);
    if (sweep.is_minimized) this.trials.reverse(); // the best are drawn last, above the others
    canvas.addEventListener("pointerdown", (event) => this.down(event));
    canvas.addEventListener("pointermove", (event) => this.move(event));
    canvas.addEventListener("pointerup", () => this.up());
    canvas.addEventListener("pointerleave", () => this.point(null));
    this.observer = new ResizeObserver(() => this.draw());
    this.observer.observe(canvas);
  }

  x(i) {
    return SIDE + i * (this.canvas.clientWidth - 2 * SIDE) / (this.axes.length - 1);
  }

  y(position) {
    return this.canvas.clientHeight - BOTTOM - position * (this.canvas.clientHeight - TOP - BOTTOM);
  }

  points(trial) {
    return this.axes.map((axis, i) => [this.x(i), this.y(axis.position(axis.value(trial)))]);
  }

  isKept(trial) {
    return [...this.ranges].every(([i, [low, high]]) => {
      const at = this.axes[i].position(this.axes[i].value(trial));
      return at >= low && at <= high;
    });
  }

  draw() {
    const { canvas } = this, scale = devicePixelRatio, ctx = canvas.getContext("2d");
    if (!canvas.clientWidth) return;
    canvas.width = canvas.clientWidth * scale;
    canvas.height = canvas.clientHeight * scale;
    ctx.scale(scale, scale);
    ctx.lineJoin = "round";
    const last = this.axes[this.axes.length - 1];
    for (const trial of this.trials) {
      const isPointed = trial === this.pointed, rank = last.position(trial.score);
      ctx.globalAlpha = isPointed ? 1 : this.isKept(trial) ? 0.25 + 0.6 * (this.sweep.is_minimized ? 1 - rank : rank) : 0.06;
      ctx.strokeStyle = trial.state === "finished" ? theme("--accent") : theme("--quiet");
      if (isPointed || trial.number === this.sweep.best) ctx.strokeStyle = theme("--best");
      ctx.lineWidth = isPointed || trial.number === this.sweep.best ? 2.5 : 1.2;
      ctx.setLineDash(trial.state === "finished" ? [] : [4, 3]);
      ctx.beginPath();
      for (const point of this.points(trial)) ctx.lineTo(...point);
      ctx.stroke();
    }
    ctx.globalAlpha = 1;
    ctx.setLineDash([]);
    this.axes.forEach((axis, i) => this.drawAxis(ctx, axis, i));
  }

  drawAxis(ctx, axis, i) {
    const x = this.x(i);
    ctx.strokeStyle = theme("--line");
    ctx.lineWidth = 1.5;
    ctx.beginPath();
    ctx.moveTo(x, this.y(0));
    ctx.lineTo(x, this.y(1));
    ctx.stroke();
    const range = this.ranges.get(i);
    if (range) {
      ctx.fillStyle = theme("--accent");
      ctx.fillRect(x - 4, this.y(range[1]), 8, this.y(range[0]) - this.y(range[1]));
    }
    ctx.textAlign = "center";
    ctx.font = "600 12px system-ui";
    ctx.fillStyle = theme("--text");
    // Names take turns on two heights, so that long ones do not touch.
    ctx.fillText(axis.name, Math.min(Math.max(x, SIDE), this.canvas.clientWidth - SIDE), i % 2 ? 14 : 30);
    ctx.font = "11px system-ui";
    const isLast = i === this.axes.length - 1; // whose values stand on the left, where there is room
    ctx.textAlign = isLast ? "right" : "left";
    for (const [at, text] of axis.ticks) {
      const place = [text, isLast ? x - 5 : x + 5, this.y(at) + 4];
      ctx.lineWidth = 3;
      ctx.strokeStyle = theme("--back");
      ctx.strokeText(...place);
      ctx.fillStyle = theme("--quiet");
      ctx.fillText(...place);
    }
  }

  at(event) {
    const box = this.canvas.getBoundingClientRect(), x = event.clientX - box.left, y = event.clientY - box.top;
    const axis = this.axes.findIndex((_, i) => Math.abs(this.x(i) - x) < 10);
    return { x, y, axis, position: (this.y(0) - y) / (this.y(0) - this.y(1)) };
  }

  down(event) {
    const { x, y, axis, position } = this.at(event);
    if (axis < 0) {
      const trial = this.nearest(x, y);
      if (trial && trial === this.pointed) this.onOpen(trial);
      return this.point(trial); // a finger has not pointed before, so its first tap only shows the trial
    }
    this.canvas.setPointerCapture(event.pointerId);
    this.drag = { axis, from: position };
    this.ranges.delete(axis); // a click without a drag removes the range
    this.draw();
  }

  move(event) {
    const { x, y, position } = this.at(event);
    if (!this.drag) return this.point(this.nearest(x, y));
    const ends = [this.drag.from, position].sort((a, b) => a - b);
    if (ends[1] - ends[0] > 0.01) this.ranges.set(this.drag.axis, ends);
    this.draw();
  }

  up() {
    this.drag = null;
  }

  point(trial) {
    if (trial === this.pointed) return;
    this.pointed = trial;
    this.canvas.style.cursor = trial ? "pointer" : "default";
    this.onPoint(trial);
    this.draw();
  }

  /** Return the trial whose line is nearest to a point, or null. */
  nearest(x, y) {
    const i = this.axes.findIndex((_, n) => n + 1 < this.axes.length && this.x(n) <= x && x <= this.x(n + 1));
    if (i < 0) return null;
    let best = null, distance = NEAR;
    for (const trial of this.trials) {
      if (!this.isKept(trial)) continue;
      const [from, to] = this.points(trial).slice(i, i + 2);
      const away = Math.abs(from[1] + (to[1] - from[1]) * (x - from[0]) / (to[0] - from[0]) - y);
      if (away <= distance) [best, distance] = [trial, away];
    }
    return best;
  }
}
