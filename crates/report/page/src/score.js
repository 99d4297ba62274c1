// The overall score of variants, as ClickBench has it.

/** The middle value, or the mean of the two in the middle. */
function median(values) {
  const sorted = [...values].sort((a, b) => a - b), half = Math.floor(sorted.length / 2);
  return sorted.length % 2 ? sorted[half] : (sorted[half - 1] + sorted[half]) / 2;
}

/**
 * How slow a variant is in a step: its median time, or 1 ÷ its median rate. It is `null` without a
 * valid run, for a rate of zero, and for a time that a limit cut off, because that is only a bound.
 */
function slowness({ is_time: isTime, rates }, variant) {
  const of = rates[variant];
  if (!of.length || of.some(([, , isCut]) => isCut)) { return null; }
  const value = median(of.map(([, rate]) => rate));
  return value > 0 ? (isTime ? value : 1 / value) : null;
}

/**
 * Returns the score of each chosen variant, the best first: the geometric mean over steps of its
 * slowness ÷ that of the best chosen variant. Only steps count whose rate the plan does not set and
 * in which all chosen variants have a valid rate. There are no scores if none counts.
 */
export function overall(steps, chosen) {
  const measured = steps.filter((step) => step.is_scored).map((step) => chosen.map((variant) => slowness(step, variant)));
  const counted = measured.filter((times) => times.length && times.every((time) => time !== null));
  const score = (at) => Math.exp(counted.reduce((sum, times) => sum + Math.log(times[at] / Math.min(...times)), 0) / counted.length);
  const scores = counted.length ? chosen.map((variant, at) => ({ variant, score: score(at) })) : [];
  return { scores: scores.sort((a, b) => a.score - b.score), counted: counted.length };
}
