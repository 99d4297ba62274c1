// Ratios against a base that is chosen on the page.
import assert from "node:assert/strict";
import { isOpen, ratioOf } from "../src/ratio.js";

const close = (found, wanted) => assert.ok(Math.abs(found - wanted) < 1e-3, `${found} is not ${wanted}`);

const exact = ratioOf([[1, 110], [2, 121]], [[1, 100], [2, 100], [3, 50]]);
close(exact.value, Math.sqrt(1.1 * 1.21));
assert.equal(exact.sign, "");
assert.ok(exact.low < exact.value && exact.value < exact.high);

assert.equal(ratioOf([[1, 7200, true]], [[1, 2400]]).sign, ">");
close(ratioOf([[1, 7200, true]], [[1, 2400]]).value, 3);
assert.equal(ratioOf([[1, 100]], [[1, 200, true]]).sign, "<");
assert.equal(ratioOf([[1, 7200, true], [2, 1]], [[1, 1], [2, 7200, true]]).sign, "≷");
assert.equal(ratioOf([[1, 5, true], [2, 5]], [[1, 4], [2, 5]]).low, null, "a bound has no interval");
assert.equal(ratioOf([[1, 7200, true]], [[1, 7200, true]]), null, "of two that were cut off nothing is known");
assert.equal(ratioOf([[1, 0]], [[1, 5]]), null);
assert.equal(ratioOf([], [[1, 5]]), null);

assert.deepEqual([isOpen(">", 3), isOpen(">", 0.8), isOpen("<", 0.3), isOpen("<", 1.2), isOpen("≷", 2), isOpen("", 2)],
  [false, true, false, true, true, false]);
