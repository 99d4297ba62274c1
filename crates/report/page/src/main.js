// The script of the page. Without it all numbers are there too, in tables.
import { figuresOf } from "./charts/figure.js";
import { fillLater, unfolding } from "./folds.js";
import { live } from "./live.js";
import { scoreboard } from "./scoreboard.js";
import { filters, meanings, tablesOf } from "./tables.js";

document.documentElement.classList.add("scripted");
const setUp = (part) => { tablesOf(part); figuresOf(part); };
setUp(document);
scoreboard();
filters(document);
meanings();
unfolding(setUp);
live();
addEventListener("load", fillLater);
