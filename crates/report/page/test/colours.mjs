// Colours of variants: each can be seen on its paper, and the first five can be told apart by
// people with deuteranopia and protanopia too.
import assert from "node:assert/strict";
import fs from "node:fs";

const css = fs.readFileSync(new URL("../../src/document/page.css", import.meta.url), "utf8");
const [light, dark] = css.split("@media screen and (prefers-color-scheme: dark)");
const value = (part, name) => part.match(new RegExp(`--${name}: (#[0-9a-f]+)`))[1];

/** Machado, Oliveira and Fernandes (2009): linear red, green and blue as these people see them. */
const EYES = {
  usual: [[1, 0, 0], [0, 1, 0], [0, 0, 1]],
  deuteranopia: [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.01182, 0.04294, 0.968881]],
  protanopia: [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
};
const linear = (hex) => (hex.length === 4 ? [...hex.slice(1)].map((digit) => digit + digit) : hex.slice(1).match(/../g))
  .map((pair) => parseInt(pair, 16) / 255).map((share) => (share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4));
const times = (matrix, vector) => matrix.map((row) => Math.max(0, Math.min(1, row.reduce((sum, factor, at) => sum + factor * vector[at], 0))));
const luminance = (color) => times([[0.2126, 0.7152, 0.0722]], color)[0];
const contrast = (one, other) => { const [low, high] = [luminance(one), luminance(other)].sort((a, b) => a - b); return (high + 0.05) / (low + 0.05); };
/** CIE L*a*b*. */
function lab(color) {
  const [x, y, z] = times([[0.4339, 0.3762, 0.1899], [0.2126, 0.7152, 0.0722], [0.0177, 0.1095, 0.8729]], color)
    .map((share) => (share > 0.008856 ? Math.cbrt(share) : 7.787 * share + 16 / 116));
  return [116 * y - 16, 500 * (x - y), 200 * (y - z)];
}

for (const [scheme, part] of Object.entries({ light, dark })) {
  const colors = Array.from({ length: 8 }, (_, at) => linear(value(part, "s" + at))), paper = linear(value(part, "paper"));
  colors.forEach((color, at) => assert.ok(contrast(color, paper) >= 3, `${scheme}: --s${at} on paper has ${contrast(color, paper)}`));
  for (let one = 0; one < 5; one++) {
    for (let other = one + 1; other < 5; other++) {
      const names = `${scheme}: --s${one} and --s${other}`;
      for (const [eyes, matrix] of Object.entries(EYES)) {
        const [a, b] = [one, other].map((at) => lab(times(matrix, colors[at])));
        assert.ok(Math.hypot(...a.map((part, at) => part - b[at])) >= 20, `${names} with ${eyes}`);
      }
      assert.ok(Math.abs(lab(colors[one])[0] - lab(colors[other])[0]) >= 5, `${names} are equally light`);
    }
  }
}
