// The common range of the charts of ratios, and its marks.
import assert from "node:assert/strict";
import { commonRange, ratioMarks } from "../src/charts/range.js";

const chart = (...points) => ({ margin: 0.05, points: points.map(([value, low, high]) => [0, 1, value, low ?? null, high ?? null, "faster"]) });
const ends = (charts) => { const { low, high } = commonRange(charts); return [Math.exp(low), Math.exp(high)]; };

const [low, high] = ends([chart([1.02], [0.98]), chart([1.4, 1.3, 1.5], [1.3])]);
assert.ok(low < 1 / 1.05 && low > 0.85, `the margin below 1: ${low}`);
assert.ok(high > 1.5 && high < 1.6, `the highest interval of all charts: ${high}`);

const many = chart(...Array.from({ length: 30 }, (_, at) => [1 + at / 300]), [40]);
assert.ok(ends([many])[1] < 1.4, "a single far ratio does not widen the range");
const wide = chart([0.8], [1.2, 0.001, 1000]);
assert.ok(ends([wide])[1] < 1.4, "nor does an interval that shows nothing");
const [least, most] = ends([chart([1.001])]);
assert.ok(least < 0.95 && most > 1.05, "equal variants: the margin is visible");

assert.deepEqual(ratioMarks(0.45, 2.2, 8), [0.5, 0.7, 1, 1.4, 2]);
assert.deepEqual(ratioMarks(0.45, 5.5, 8), [0.5, 0.7, 1, 1.4, 2, 3, 5]);
assert.deepEqual(ratioMarks(0.45, 5.5, 4), [0.5, 1, 2, 5]);
assert.deepEqual(ratioMarks(0.58, 1.5, 8), [0.6, 0.7, 0.8, 1, 1.2, 1.4]);
assert.deepEqual(ratioMarks(0.88, 1.22, 8), [0.9, 0.95, 1, 1.05, 1.1, 1.15, 1.2]);
assert.deepEqual(ratioMarks(0.88, 1.22, 4), [0.9, 1, 1.1, 1.2]);
assert.deepEqual(ratioMarks(0.009, 110, 5), [0.01, 0.1, 1, 10, 100]);
assert.deepEqual(ratioMarks(1e-6, 1e9, 4), [1e-5, 1, 1e5]);
