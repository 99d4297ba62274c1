// Pages of `dbdyno serve` while a run goes on: node live.mjs SCREENSHOTS ADDRESS
//
// The index shows how far the run is without being loaded again; the run's page offers new figures.
import assert from "node:assert/strict";
import path from "node:path";
import { chromium } from "playwright-core";

const [screenshots, address] = process.argv.slice(2);
const PATIENCE = { timeout: 240_000 };
const browser = await chromium.launch({ executablePath: process.env.CHROMIUM || "/usr/bin/chromium", args: ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update"] });
try {
  const faults = [], open = async (at) => {
    const page = await browser.newPage();
    page.setDefaultTimeout(PATIENCE.timeout);
    page.on("console", (message) => { if (message.type() === "error") { faults.push(message.text()); } });
    page.on("pageerror", (error) => faults.push(error.message));
    await page.goto(at);
    return page;
  };
  const index = await open(address);
  const row = () => index.evaluate(() => document.querySelector("main tbody tr").textContent);
  const first = await row();
  assert.match(first, /going on/);
  const report = await open(await index.locator("main tbody a").first().evaluate((link) => link.href));
  await index.evaluate(() => { window.isTheSame = true; });
  await index.waitForFunction((text) => document.querySelector("main tbody tr").textContent !== text, first, PATIENCE);
  assert.ok(await index.evaluate(() => window.isTheSame), "the index is not loaded again");
  await index.screenshot({ path: path.join(screenshots, "live-index.png") });
  await report.locator("#news button").click();
  await report.waitForFunction(() => !document.querySelector("#news"), null, PATIENCE);
  assert.ok(await report.locator("main table td").count() > 0, "figures of the cells that have ended");
  await report.screenshot({ path: path.join(screenshots, "live-run.png") });
  // Chromium asks for an icon that no page names.
  assert.deepEqual(faults.filter((fault) => !/404/.test(fault)), []);
} finally { await browser.close(); }
