// Keeps a page of `dbdyno serve` up to date while runs are in progress.
import { button, part } from "./charts/figure.js";
import { pageData } from "./charts/look.js";

/**
 * Requests the page again at an interval. An index then replaces its rows, and a run's page says
 * that there are new figures.
 */
export function live() {
  const data = pageData();
  if (!data || !data.live || !location.protocol.startsWith("http")) { return; }
  let known = null;
  setInterval(async () => {
    try {
      const text = await (await fetch(location.pathname, { cache: "no-store" })).text();
      if (known !== null && text !== known) { data.steps ? offer() : replaceRows(text); }
      known = text;
    } catch { /* The server has ended, so the page stays as it is. */ }
  }, data.live * 1000);
}

function replaceRows(text) {
  const tables = new DOMParser().parseFromString(text, "text/html").querySelectorAll("main table");
  document.querySelectorAll("main table").forEach((table, at) => {
    if (tables[at]) { table.tBodies[0].innerHTML = tables[at].tBodies[0].innerHTML; }
  });
  document.querySelector("#filters")?.dispatchEvent(new Event("input"));
}

function offer() {
  if (document.querySelector("#news")) { return; }
  const bar = part("p", "tools");
  bar.id = "news";
  bar.setAttribute("role", "status");
  bar.append("There are new figures. ", button("Show them", "", () => location.reload()));
  document.querySelector("h1").after(bar);
}
