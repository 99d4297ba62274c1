// Pages in a real browser without a network: node browser.mjs SCREENSHOTS PAGE...
//
// Every chart has the marks of its data, tables and charts answer, nothing is fetched, nothing is
// wider than the window, axe finds nothing, and without scripts all figures are there.
import assert from "node:assert/strict";
import fs from "node:fs";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { chromium } from "playwright-core";
import { marksOf } from "./marks.mjs";

const [screenshots, ...pages] = process.argv.slice(2);
const axe = fs.readFileSync(fileURLToPath(import.meta.resolve("axe-core/axe.min.js")), "utf8");
const WINDOWS = [[390, "dark"], [1280, "light"], [1280, "dark"], [1440, "light"]];
const SEEN = new Set();
/** Number of tables by page, with scripts. */
const TABLES = new Map();

const browser = await chromium.launch({
  executablePath: process.env.CHROMIUM || "/usr/bin/chromium",
  args: ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update"],
});
try {
  for (const file of pages) { await checkPage(path.resolve(file)); }
  if (process.env.KINDS) { assert.deepEqual([...SEEN].sort(), process.env.KINDS.split(",").sort(), "kinds of charts"); }
} finally { await browser.close(); }

/** A page of its own, with what goes wrong on it. */
async function opened(file, options, what) {
  const context = await browser.newContext({ viewport: { width: 1280, height: 900 }, acceptDownloads: true, offline: true, ...options });
  const page = await context.newPage(), faults = [];
  page.setDefaultTimeout(120_000);
  page.on("console", (message) => { if (message.type() === "error") { faults.push(message.text()); } });
  page.on("pageerror", (error) => faults.push(error.message));
  page.on("request", (request) => { if (!/^(file|blob|data):/.test(request.url())) { faults.push("requested " + request.url()); } });
  await page.goto("file://" + file);
  try { await what(page, context); } finally { await context.close(); }
  assert.deepEqual(faults, [], file);
}

async function checkPage(file) {
  const name = path.basename(path.dirname(file)).replace(/^\.|^[\dTZ]+-/g, "") + "-" + path.basename(file, ".html");
  for (const [width, colorScheme] of WINDOWS) {
    await opened(file, { viewport: { width, height: 900 }, colorScheme }, async (page) => {
      const early = await page.evaluate(() => [...document.querySelectorAll("figure.chart")].filter((figure) => figure.chart.instance && figure.getBoundingClientRect().top > innerHeight + 900).length);
      assert.equal(early, 0, "charts far below the window are not drawn yet");
      await page.screenshot({ path: path.join(screenshots, `${name}-${width}-${colorScheme}.png`), clip: { x: 0, y: 0, width, height: 4000 }, fullPage: true });
      await showAll(page);
      await checkLayout(page, width);
      if (width === 1280) { await checkAccess(page, colorScheme); }
    });
  }
  await opened(file, {}, async (page) => {
    await checkMarks(page);
    await checkCharts(page);
  });
  await opened(file, {}, checkScore);
  await opened(file, { permissions: [] }, checkTables);
  await opened(file, {}, (page) => checkPrint(page, name));
  await opened(file, { javaScriptEnabled: false }, checkWithoutScripts);
  console.log("checked " + name);
}

async function showAll(page) {
  await page.evaluate(() => document.querySelectorAll("details").forEach((part) => { part.open = true; }));
  // A folded part is filled when it is opened.
  await page.waitForFunction(() => !document.querySelector("details[open] > noscript"));
  await page.evaluate(() => document.querySelectorAll("figure.chart").forEach((figure) => figure.chart.show()));
  TABLES.set(page.url(), await page.locator("main table").count());
}

/** Nothing is cut or wider than the window; tables need no scrolling on a usual screen. */
async function checkLayout(page, width) {
  const found = await page.evaluate((width) => {
    const wide = [];
    if (document.documentElement.scrollWidth > innerWidth) { wide.push("the page itself"); }
    for (const table of document.querySelectorAll("main table")) {
      if (width >= 1280 && table.scrollWidth > table.parentElement.clientWidth + 1) { wide.push(`${table.caption.textContent}: ${table.scrollWidth} of ${table.parentElement.clientWidth}`); }
    }
    for (const cell of document.querySelectorAll("th, td")) {
      if (getComputedStyle(cell).textOverflow === "ellipsis") { wide.push("cut: " + cell.textContent); }
    }
    // Names at an axis do not lie on each other.
    for (const svg of document.querySelectorAll(".chart-box svg")) {
      const texts = [...svg.querySelectorAll("text")].map((text) => [text.textContent, text.getBoundingClientRect()]).filter(([, box]) => box.width > 0);
      for (let one = 0; one < texts.length; one++) {
        for (let other = one + 1; other < texts.length; other++) {
          const [a, b] = [texts[one][1], texts[other][1]];
          const across = Math.min(a.right, b.right) - Math.max(a.left, b.left), down = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
          if (across > 3 && down > 4) { wide.push(`${svg.closest("figure").id}: "${texts[one][0]}" on "${texts[other][0]}"`); }
        }
      }
      const box = svg.getBoundingClientRect();
      for (const [text, at] of texts) { if (at.left < box.left - 1 || at.right > box.right + 1) { wide.push(`${svg.closest("figure").id}: "${text}" is cut`); } }
    }
    return wide.slice(0, 10);
  }, width);
  assert.deepEqual(found, [], `at ${width} pixels`);
}

/** In the dark only the colours are others. */
async function checkAccess(page, scheme) {
  await page.evaluate(axe);
  const runOnly = scheme === "dark" ? ["color-contrast"] : ["wcag2a", "wcag2aa", "wcag21aa", "best-practice"];
  const found = await page.evaluate((runOnly) => axe.run(document, { runOnly }), runOnly);
  const faults = found.violations.map((fault) => `${fault.id}: ${fault.nodes.length} × ${fault.nodes[0].html.slice(0, 160)} ${fault.nodes[0].failureSummary}`);
  assert.deepEqual(faults, []);
}

/** Each value of a chart's data has a mark where the axes say it is. */
async function checkMarks(page) {
  await showAll(page);
  const figures = await page.evaluate(marksOf);
  for (const { id, kind, values, missing } of figures) {
    SEEN.add(kind);
    assert.ok(values > 0, `${id} (${kind}) draws nothing`);
    assert.deepEqual(missing, [], `${id} (${kind}): values without a mark`);
  }
}

/** Zoom, cursor, legend, choices and export. */
async function checkCharts(page) {
  const ids = await page.$$eval("figure.chart", (figures) => figures.map((figure) => figure.id));
  for (const id of ids.slice(0, 12)) {
    const figure = page.locator(`figure[id="${id}"]`), box = figure.locator(".chart-box");
    await box.scrollIntoViewIfNeeded();
    const zoomIn = figure.getByRole("button", { name: "Zoom in" });
    const window = () => figure.evaluate((element) => { const { start, end } = element.chart.window(); return [start, end]; });
    if (await zoomIn.count()) {
      await box.focus();
      await page.keyboard.press("+");
      assert.deepEqual(await window(), [25, 75], id);
      await page.keyboard.press("0");
      assert.deepEqual(await window(), [0, 100], id);
      const { x, y, width } = await box.boundingBox();
      await page.mouse.move(x + width * 0.5, y + 30);
      await page.mouse.down();
      await page.mouse.move(x + width * 0.8, y + 30, { steps: 4 });
      await page.mouse.up();
      const [start, end] = await window();
      assert.ok(start > 5 && end < 95 && end > start, `${id}: dragging showed ${start} to ${end}`);
      await figure.getByRole("button", { name: "Show all" }).click();
    }
    await box.focus();
    await page.keyboard.press("ArrowRight");
    await page.keyboard.press("ArrowRight");
    await page.waitForFunction((id) => /\d/.test(document.getElementById(id).querySelector("[aria-live]").textContent), id)
      .catch(() => assert.fail(`${id}: the cursor says nothing`));
    await page.keyboard.press("Escape");
    for (const kind of ["SVG", "PNG"]) {
      const [saved] = await Promise.all([page.waitForEvent("download"), figure.getByRole("button", { name: `Save as ${kind}` }).click()]);
      const bytes = fs.readFileSync(await saved.path());
      if (kind === "PNG") { assert.equal(bytes.subarray(1, 4).toString(), "PNG", id); } else { assert.match(bytes.toString(), /^<svg [^]*<path [^]*<\/svg>$/, id); }
      assert.ok(bytes.length > 1000, `${id}: ${kind} of ${bytes.length} bytes`);
    }
    const toggles = figure.locator(".chart-legend button");
    if (await toggles.count() > 1) {
      const paths = () => figure.locator("svg path").count();
      const before = await paths();
      await toggles.first().click();
      assert.equal(await toggles.first().getAttribute("aria-pressed"), "false");
      assert.ok(await paths() < before, `${id}: a hidden variant is still drawn`);
      await toggles.first().click();
    }
  }
  const linked = await page.evaluate(() => [...document.querySelectorAll("figure.chart")].map((figure) => figure.chart).filter((chart) => chart.drawn && chart.drawn.group).map((chart) => chart.instance.group));
  assert.ok(linked.every(Boolean), "charts of seconds share a cursor");
}

/** The overall score has a bar for each chosen variant, the best one first, and a single one has 1. */
async function checkScore(page) {
  const rows = page.locator(".score li"), all = await rows.count();
  const data = JSON.parse(await page.locator("#page-data").textContent());
  const isScored = data?.steps && data.variants.length > 2 && data.steps.filter((step) => step.is_scored).length > 2;
  assert.equal(all > 0, !!isScored, "the score is there where there is something to compare");
  if (!isScored) { return; }
  const bars = () => page.locator(".score .bar").evaluateAll((bars) => bars.map((bar) => bar.offsetWidth));
  const widths = await bars();
  assert.deepEqual(widths, [...widths].sort((a, b) => a - b), "the best is first");
  for (let left = all - 1; left > 0; left--) {
    await page.locator(".score input:checked").first().uncheck();
    assert.equal(await rows.count(), left);
  }
  assert.match(await rows.textContent(), /1\.00$/);
}

/** Sort, filter, another base, rows and columns exchanged, copy. */
async function checkTables(page) {
  const table = page.locator("main table").first();
  const heads = table.locator("thead th button");
  const texts = (column) => table.locator(`tbody tr :nth-child(${column})`).allTextContents();
  if (await heads.count() > 1) {
    const first = await texts(1);
    await heads.nth(0).click();
    const down = await texts(1);
    await heads.nth(0).focus();
    await page.keyboard.press("Enter");
    const up = await texts(1);
    assert.deepEqual([...up].sort(), [...first].sort());
    if (new Set(first).size > 1) { assert.notDeepEqual(down, up, "sorting changes the order"); }
    assert.equal(await table.locator("th[aria-sort]").count(), 1);
  }
  const cells = await table.evaluate((element) => [element.rows.length, element.rows[0].cells.length]);
  const bar = page.locator(".table-tools").first();
  await page.evaluate(() => { navigator.clipboard && (navigator.clipboard.writeText = (text) => { window.copied = text; return Promise.resolve(); }); document.execCommand = () => { window.copied = document.activeElement.value; return true; }; });
  await bar.getByRole("button", { name: "Copy the table as TSV" }).click();
  const tsv = await page.evaluate(() => window.copied);
  assert.deepEqual([tsv.trimEnd().split("\n").length, tsv.split("\n")[0].split("\t").length], cells);
  await bar.getByRole("button", { name: "Copy the table as Markdown" }).click();
  assert.match(await page.evaluate(() => window.copied), /^\| .* \|\n\|---\|/);
  await bar.getByRole("button", { name: "Exchange rows and columns" }).click();
  assert.deepEqual(await table.evaluate((element) => [element.rows[0].cells.length, element.rows.length]), cells);
  await bar.getByRole("button", { name: "Exchange rows and columns" }).click();
  if (await page.locator("#filters").count()) { await checkFilters(page); }
}

async function checkFilters(page) {
  const data = JSON.parse(await page.locator("#page-data").textContent());
  if (!data) { return checkRowFilter(page); }
  const shown = () => page.evaluate(() => [...document.querySelectorAll("main section")].filter((section) => !section.hidden && section.offsetHeight).length);
  const before = await shown();
  const wanted = data.steps[0].name;
  await page.locator("#filters").getByLabel("Step").fill(wanted);
  const others = await page.evaluate((ids) => ids.filter((id) => document.getElementById(id)).length, data.steps.filter((step) => !step.name.includes(wanted)).map((step) => step.id));
  assert.equal(await shown(), before - others, "sections of other steps are hidden");
  await page.locator("#filters").getByLabel("Step").fill("");
  assert.equal(await shown(), before);
  if (data.variants.length < 2) { return; }
  const box = page.locator("#filters input[type=checkbox]").nth(1);
  await box.uncheck();
  assert.equal(await page.evaluate((name) => [...document.querySelectorAll("thead th")].filter((head) => !head.hidden && head.textContent.trim() === name).length, data.variants[1]), 0);
  await box.check();
  const select = page.locator("#filters").getByLabel("Base"), other = data.base === 0 ? 1 : 0;
  await select.selectOption({ index: other });
  const { text, expected } = await page.evaluate(({ other }) => {
    const data = JSON.parse(document.getElementById("page-data").textContent);
    const table = [...document.querySelectorAll("main table")].find((table) => data.relative.includes(table.caption.textContent));
    const heads = [...table.tHead.rows[0].cells].map((cell) => cell.textContent.trim());
    const isWhole = (step) => step.rates.every((rates) => rates.length);
    // Steps are rows, or columns in the style of published reports.
    const cells = [...table.tBodies[0].rows].flatMap((row) => [...row.cells].slice(1).map((cell, at) => [cell, [row.cells[0].textContent, heads[at + 1]]]));
    const ofBase = cells.filter(([, names]) => names.includes(data.variants[data.base]));
    const found = ofBase.map(([cell, names]) => [cell, data.steps.find((step) => names.includes(step.name) && isWhole(step))]);
    const [cell, step] = found.find(([, step]) => step), bases = new Map(step.rates[other]);
    const logs = step.rates[data.base].filter(([block]) => bases.has(block)).map(([block, rate]) => Math.log(rate / bases.get(block)));
    return { text: cell.textContent, expected: Math.exp(logs.reduce((sum, log) => sum + log, 0) / logs.length).toFixed(2) };
  }, { other });
  assert.ok(text.startsWith(expected), `against another base: ${text} instead of ${expected}`);
  const caption = await page.locator("figure.chart figcaption").filter({ hasText: "Base:" }).first().textContent();
  assert.ok(caption.endsWith("Base: " + data.variants[other]), caption);
  await select.selectOption({ index: data.base });
}

async function checkRowFilter(page) {
  const shown = () => page.evaluate(() => [...document.querySelectorAll("main tbody tr")].filter((row) => !row.hidden).length);
  const before = await shown(), field = page.locator("#filters input");
  await field.fill("no row holds this text");
  assert.equal(await shown(), 0);
  await field.fill("");
  assert.equal(await shown(), before);
}

/** A4 of a few pages: the summary and what is unfolded. */
async function checkPrint(page, name) {
  const pdf = await page.pdf({ preferCSSPageSize: true, printBackground: true, path: path.join(screenshots, name + ".pdf") });
  const count = (pdf.toString("latin1").match(/\/Type\s*\/Page\b/g) || []).length;
  console.log(`${name}: ${count} printed pages`);
  assert.ok(count > 0 && count <= Number(process.env.MOST_PAGES || 12), `${count} printed pages`);
}

/** Folded parts hold their tables, and all of them as with scripts. */
async function checkWithoutScripts(page) {
  assert.equal(await page.locator("main table").count(), TABLES.get(page.url()));
  assert.ok(await page.locator("main table td").count() > 0);
  assert.equal(await page.locator("figure.chart:visible").count(), 0, "an empty figure is not shown");
  assert.equal(await page.locator("#filters").count(), 0);
}
