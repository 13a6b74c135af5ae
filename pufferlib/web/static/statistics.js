// Smoothing, and the interquartile mean of several curves with its interval. pufferlib.runs.statistics and
// pufferlib.runs.curves compute the same in Python.

const TRIM = 0.25; // share of the scores that is left out at each end
const RESAMPLES = 200;

/** Return the mean over a centered window, which is shorter near the ends. `share` is its part of all points. */
export function smooth(values, share) {
  const half = Math.floor(values.length * share / 2);
  if (half < 1) return values;
  const sums = new Float64Array(values.length + 1);
  for (let i = 0; i < values.length; i++) sums[i + 1] = sums[i] + values[i];
  return Float64Array.from(values, (_, i) => {
    const from = Math.max(0, i - half), to = Math.min(values.length, i + half + 1);
    return (sums[to] - sums[from]) / (to - from);
  });
}

/** Return the values of a curve at the points of `grid`, which increases. They are null where the curve has no value. */
export function interpolate(x, y, grid) {
  let i = 0;
  return grid.map((at) => {
    if (!x.length || at < x[0] || at > x[x.length - 1]) return null;
    while (x[i + 1] < at) i++;
    if (i + 1 >= x.length || x[i] >= at) return y[i];
    return y[i] + (y[i + 1] - y[i]) * (at - x[i]) / (x[i + 1] - x[i]);
  });
}

/** Return the interquartile mean of sorted numbers: the mean of their middle half. */
function iqm(sorted) {
  const out = Math.floor(TRIM * sorted.length);
  let sum = 0;
  for (let i = out; i < sorted.length - out; i++) sum += sorted[i];
  return sum / (sorted.length - 2 * out);
}

/** Return a quantile of sorted numbers, interpolated linearly. */
function quantile(sorted, share) {
  const at = share * (sorted.length - 1), i = Math.floor(at);
  return i + 1 < sorted.length ? sorted[i] + (sorted[i + 1] - sorted[i]) * (at - i) : sorted[i];
}

/** Return a function that draws numbers from 0 to 1, the same ones each time (the generator is mulberry32). */
function generator(seed) {
  return () => {
    seed = (seed + 0x6d2b79f5) | 0;
    let t = Math.imul(seed ^ (seed >>> 15), 1 | seed);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
  };
}

/** Return resamples of `count` runs. All points share them, so that the band has no jumps. */
function resamples(count) {
  const draw = generator(count);
  return Array.from({ length: RESAMPLES }, () => Uint16Array.from({ length: count }, () => draw() * count));
}

const drawn = new Map(); // resamples by number of runs

/** Return the interquartile mean of curves at each point of a grid, and its 95 % bootstrap interval.
 *
 * Each point includes the curves that reach it. Without at least two, there is no interval.
 */
export function band(curves, size) {
  const middle = new Array(size), low = new Array(size), high = new Array(size);
  const means = new Float64Array(RESAMPLES);
  for (let i = 0; i < size; i++) {
    const here = Float64Array.from(curves.map((curve) => curve[i]).filter((value) => value !== null)).sort();
    const count = here.length;
    middle[i] = count ? iqm(here) : null;
    low[i] = high[i] = null;
    if (count < 2) continue;
    if (!drawn.has(count)) drawn.set(count, resamples(count).map((sample) => sample.sort()));
    // Sorted indices into sorted values give sorted values.
    const samples = drawn.get(count), values = new Float64Array(count);
    for (let k = 0; k < RESAMPLES; k++) {
      for (let j = 0; j < count; j++) values[j] = here[samples[k][j]];
      means[k] = iqm(values);
    }
    means.sort();
    low[i] = quantile(means, 0.025);
    high[i] = quantile(means, 0.975);
  }
  return { middle, low, high };
}
