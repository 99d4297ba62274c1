// The chart of overall scores, with a choice of variants.
import { part } from "./charts/figure.js";
import { COLOURS, dot, exact, pageData } from "./charts/look.js";
import { overall } from "./score.js";
import { labelled } from "./tables.js";

/** Smallest number of variants, and of steps that can count, for a score. */
const LEAST = 3;
const MEANING = "The score is the geometric mean over steps of the best chosen variant's median rate ÷ the variant's (of times: its time ÷ the best), " +
  "so 1.00 means the fastest in every step; it has no interval and no verdict.";

/** Adds the scores before the first chart of a workload's ratios. Sections of the plan may lack variants. */
export function scoreboard() {
  const data = pageData(), canCount = data?.steps?.filter((step) => step.is_scored).length;
  if (!(canCount >= LEAST) || data.variants.length < LEAST) { return; }
  const first = [...document.querySelectorAll("figure.chart")].find(({ id }) => /^w\d+r/.test(id));
  if (!first) { return; }
  const figure = part("figure", "score"), caption = part("figcaption"), choice = part("fieldset"), legend = part("legend", "unseen");
  const list = part("ol"), meaning = part("p", "facts"), steps = part("p", "facts");
  caption.textContent = "Overall score by variant: shorter is better.";
  legend.textContent = "Variants in the score";
  meaning.textContent = MEANING;
  steps.setAttribute("role", "status");
  const boxes = data.variants.map((name) => {
    const box = part("input");
    box.type = "checkbox";
    box.checked = true;
    return box;
  });
  choice.append(legend, ...boxes.map((box, variant) => labelled(data.variants[variant], box)));
  const draw = () => {
    const { scores, counted } = overall(data.steps, boxes.flatMap((box, variant) => (box.checked ? [variant] : [])));
    const worst = Math.max(...scores.map(({ score }) => score));
    list.replaceChildren(...scores.map(({ variant, score }) => row(data.variants[variant], variant, score, worst)));
    steps.textContent = `${counted} of ${data.steps.length} steps count: those in which all chosen variants have a valid rate that the plan does not set.`;
  };
  choice.addEventListener("change", draw);
  draw();
  figure.append(caption, choice, list, meaning, steps);
  (first.closest(".charts") || first).before(figure);
}

/** A variant's line: its name, its bar and its score. */
function row(name, variant, score, worst) {
  const line = part("li"), title = part("span"), place = part("span", "place"), bar = part("span", "bar"), value = part("span", "value");
  title.innerHTML = dot(variant);
  title.append(name);
  bar.style.background = `var(--s${variant % COLOURS})`;
  bar.style.flexGrow = score / worst;
  value.textContent = score >= 1000 ? exact(score) : score.toFixed(2);
  place.append(bar, value);
  line.append(title, place);
  return line;
}
