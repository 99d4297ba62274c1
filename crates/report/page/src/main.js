// The script of the page. Without it all numbers are there too, in tables.
import { button, figuresOf, part } from "./charts/figure.js";
import { tablesOf } from "./tables.js";
import { live } from "./live.js";

document.documentElement.classList.add("scripted");
tablesOf(document);
figuresOf(document);
unfolding();
live();

/** Buttons that open and close all folded parts; a link into a folded part opens it. */
function unfolding() {
  const parts = [...document.querySelectorAll("details")];
  const nav = document.querySelector("nav");
  if (parts.length && nav) {
    const bar = part("p", "tools");
    const all = (open) => () => parts.forEach((details) => { details.open = open; });
    bar.append(button("Unfold all evidence", "", all(true)), " ", button("Fold all", "", all(false)));
    nav.append(bar);
  }
  const reveal = () => {
    const target = location.hash && document.getElementById(decodeURIComponent(location.hash.slice(1)));
    for (let around = target; around; around = around.parentElement) { if (around.tagName === "DETAILS") { around.open = true; } }
    if (target) { target.scrollIntoView(); }
  };
  addEventListener("hashchange", reveal);
  reveal();
}
