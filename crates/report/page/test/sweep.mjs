// The percentile that a chart of a sweep shows at first.
import assert from "node:assert/strict";
import { percentilesOf } from "../src/charts/lines.js";

const data = (line) => ({ connections: [1, 2], series: [{ p50: [1, 2], p95: [2, 3], p99: [3, 4], ...line }] });
assert.deepEqual(percentilesOf(data({})), ["p99", "p95", "p50"]);
assert.deepEqual(percentilesOf(data({ p99: [null, 4] })), ["p95", "p50", "p99"]);
assert.deepEqual(percentilesOf(data({ p95: [null, 3], p99: [null, null] })), ["p50", "p99", "p95"]);
const none = { p50: [null, 2], p95: [null, 3], p99: [null, 4] };
assert.deepEqual(percentilesOf(data(none)), ["p99", "p95", "p50"], "a step that answered nothing has none");
