// The overall score of variants.
import assert from "node:assert/strict";
import { overall } from "../src/score.js";

const step = (rates, more) => ({ is_time: false, is_scored: true, rates: rates.map((of) => of.map((rate, at) => [at + 1, rate])), ...more });
const rounded = ({ scores, counted }) => [scores.map(({ variant, score }) => [variant, Number(score.toFixed(3))]), counted];

const steps = [step([[100, 110, 90], [200, 200, 200], [50]]), step([[4, 2], [3, 3], [12]], { is_time: true })];
assert.deepEqual(rounded(overall(steps, [0, 1])), [[[1, 1], [0, 1.414]], 2], "the median of 4 s and 2 s is as good as 3 s");
assert.deepEqual(rounded(overall(steps, [0, 1, 2])), [[[1, 1], [0, 1.414], [2, 4]], 2]);
assert.deepEqual(rounded(overall(steps, [0, 2])), [[[0, 1], [2, 2.828]], 2], "a variant that is left out is not the base either");
assert.deepEqual(rounded(overall(steps, [2])), [[[2, 1]], 2]);
assert.deepEqual(rounded(overall(steps, [])), [[], 0]);

const bySchedule = step([[10], [10], [5]], { is_scored: false }), none = step([[10], [], [5]]), stalled = step([[10], [0], [5]]);
assert.deepEqual(rounded(overall([...steps, bySchedule, none, stalled], [0, 1])), [[[1, 1], [0, 1.414]], 2]);
assert.deepEqual(rounded(overall([none], [0, 2])), [[[0, 1], [2, 2]], 1]);
const cut = step([[10], [5]], { is_time: true });
cut.rates[0][0].push(true);
assert.deepEqual(rounded(overall([cut], [0, 1])), [[], 0], "a time that was cut off is only a bound");
