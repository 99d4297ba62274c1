// Folded parts. Their content is text within a `noscript` until it is needed, so that a big page
// opens at once.
import { button, part } from "./charts/figure.js";

let setUp = () => {};

/** Makes the content of a folded part. */
function fill(details) {
  const stored = details.querySelector(":scope > noscript");
  if (!stored) { return; }
  const content = part("div");
  content.innerHTML = stored.textContent;
  stored.replaceWith(content);
  setUp(content);
}

const folds = () => [...document.querySelectorAll("details")];

/** Fills all folded parts while the page is idle, so that a search in the page finds their text. */
export function fillLater() {
  const rest = folds().filter((details) => details.querySelector(":scope > noscript"));
  const later = window.requestIdleCallback || ((act) => setTimeout(() => act({ timeRemaining: () => 10 }), 50));
  const next = (deadline) => {
    do { if (rest.length) { fill(rest.shift()); } } while (rest.length && deadline.timeRemaining() > 5);
    if (rest.length) { later(next); }
  };
  later(next);
}

/**
 * Fills a part when it is opened, opens it when a link leads into it, and adds buttons that open
 * and close all parts.
 */
export function unfolding(setUpParts) {
  setUp = setUpParts;
  document.addEventListener("toggle", (event) => { if (event.target.open) { fill(event.target); } }, true);
  const nav = document.querySelector("nav");
  if (nav && folds().length) {
    const bar = part("p", "tools");
    const all = (open) => () => folds().forEach((details) => { if (open) { fill(details); } details.open = open; });
    bar.append(button("Unfold all details", "", all(true)), " ", button("Fold all", "", all(false)));
    nav.append(bar);
  }
  addEventListener("hashchange", reveal);
  reveal();
}

function reveal() {
  const id = decodeURIComponent(location.hash.slice(1));
  const target = id && document.getElementById(id);
  for (let around = target; around; around = around.parentElement) { if (around.tagName === "DETAILS") { around.open = true; } }
  if (target) { target.scrollIntoView(); }
}
