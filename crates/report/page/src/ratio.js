// Ratios of two variants, as the report computes them, for a base that is chosen on the page.

/** t such that 95 % lie within ±t, by degrees of freedom. */
const STUDENT = [12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.16, 2.145, 2.131, 2.12, 2.11, 2.101, 2.093, 2.086];

/**
 * Ratio of two variants over the blocks in which both have a rate, with its 95 % interval. Rates are
 * pairs of block and rate; `true` as a third item marks a time that was cut off. If one of the two was
 * cut off, the ratio is a bound, with a sign and no interval. A block in which both were is left out.
 */
export function ratioOf(rates, base) {
  const of = new Map(base.map(([block, rate, cut]) => [block, { rate, cut: !!cut }]));
  const pairs = rates.filter(([block, rate]) => rate > 0 && of.get(block)?.rate > 0)
    .map(([block, rate, cut]) => ({ log: Math.log(rate / of.get(block).rate), isCut: !!cut, isBaseCut: of.get(block).cut }));
  const told = pairs.filter((pair) => !(pair.isCut && pair.isBaseCut));
  if (!told.length) { return null; }
  const [above, below] = [told.some((pair) => pair.isCut), told.some((pair) => pair.isBaseCut)];
  const sign = above && below ? "≷" : above ? ">" : below ? "<" : "";
  const logs = told.map((pair) => pair.log);
  const mean = logs.reduce((sum, log) => sum + log, 0) / logs.length;
  if (logs.length < 2 || sign) { return { value: Math.exp(mean), low: null, high: null, sign }; }
  const deviation = Math.sqrt(logs.reduce((sum, log) => sum + (log - mean) ** 2, 0) / (logs.length - 1));
  const half = (STUDENT[logs.length - 2] || 1.96 + 2.4 / (logs.length - 1)) * deviation / Math.sqrt(logs.length);
  return { value: Math.exp(mean), low: Math.exp(mean - half), high: Math.exp(mean + half), sign };
}

/** Whether the true ratio may lie on the other side of 1 from the bound. */
export const isOpen = (sign, value) => sign === "≷" || (sign === ">" && value <= 1) || (sign === "<" && value >= 1);
