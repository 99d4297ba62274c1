// The range and the marks of axes of ratios. All charts of a page have the same range, so that a
// reader can compare groups by eye.

/**
 * A ratio is out of range if it is more than `factor` times as far from 1 as this share of all ratios.
 * Its mark is at the edge with its value, because an axis up to it would leave no room for the others.
 */
const USUAL = { share: 0.9, factor: 2 };

/** How far intervals widen the range at most, as a multiple of the furthest ratio in it. */
const INTERVALS = 1.25;

/**
 * Returns the ends of the range of ratios in these charts, as logarithms. It includes most ratios
 * with their intervals, unless these are very wide, and the margin on both sides of 1.
 */
export function commonRange(charts) {
  const points = charts.flatMap((chart) => chart.points).filter((point) => point[2] > 0);
  const margin = Math.log(1 + Math.max(...charts.map((chart) => chart.margin)));
  const size = (point) => Math.abs(Math.log(point[2])), sizes = points.map(size).sort((a, b) => a - b);
  const bound = Math.max(USUAL.factor * sizes[Math.floor(USUAL.share * (sizes.length - 1))] || 0, 3 * margin, 0.05);
  const shown = points.filter((point) => size(point) <= bound);
  const most = INTERVALS * Math.max(3 * margin, ...shown.map(size));
  const ends = shown.flatMap((point) => point.slice(2, 5)).filter((value) => value > 0)
    .map((value) => Math.max(-most, Math.min(most, Math.log(value))));
  const low = Math.min(-2 * margin, ...ends), high = Math.max(2 * margin, ...ends), room = 0.04 * (high - low);
  return { low: low - room, high: high + room };
}

/** Distances of marks around 1, for a range within which they look even. */
const STEPS = [0.01, 0.02, 0.05, 0.1, 0.2];
/** The furthest end of such a range. */
const EVEN = 1.6;
/** Marks within a decade, for ranges up to a factor of three, and for wider ones. */
const FINE = [1, 1.2, 1.4, 1.7, 2, 2.5, 3, 4, 5, 6, 7, 8];
const DECADES = [[1, 1.4, 2, 3, 5, 7], [1, 2, 5], [1, 3], [1]];

/** Returns as many round marks between two ratios as there is room for, among them 1. */
export function ratioMarks(low, high, most) {
  const round = (value) => Number(value.toPrecision(6));
  const within = (values) => values.map(round).filter((value) => value >= low && value <= high);
  const even = (step) => {
    const [first, last] = [Math.ceil((low - 1) / step), Math.floor((high - 1) / step)];
    return Array.from({ length: Math.max(0, last - first + 1) }, (_, at) => 1 + (first + at) * step);
  };
  const decades = (steps, leap) => {
    const [first, last] = [low, high].map((end) => Math.floor(Math.log10(end) / leap));
    return Array.from({ length: last - first + 1 }, (_, at) => 10 ** ((first + at) * leap)).flatMap((power) => steps.map((step) => step * power));
  };
  const isEven = high <= EVEN && low >= 1 / EVEN;
  // A range of very many decades has marks at every second, third, ... of them.
  const leaps = [1, 2, 3, 5, 10, 20].map((leap) => decades([1], leap));
  const finest = isEven ? STEPS.map(even) : high < 3 * low ? [decades(FINE, 1)] : [];
  const ways = [...finest, ...DECADES.map((steps) => decades(steps, 1)), ...leaps].map(within);
  return ways.find((marks) => marks.length <= most) || [1];
}
