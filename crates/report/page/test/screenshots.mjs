// Pictures of a page for documents: node screenshots.mjs PAGE FOLDER
//
// The answer as the first screen shows it, the chart of ratios, and rates against connections.
import path from "node:path";
import { chromium } from "playwright-core";

const [file, folder] = process.argv.slice(2);
const browser = await chromium.launch({ executablePath: process.env.CHROMIUM || "/usr/bin/chromium", args: ["--no-sandbox", "--disable-gpu"] });
try {
  const page = await browser.newPage({ viewport: { width: 1280, height: 1000 } });
  await page.goto("file://" + path.resolve(file));
  await page.screenshot({ path: path.join(folder, "answer.png") });
  for (const kind of ["ratios", "sweep"]) {
    const id = await page.evaluate((kind) => [...document.querySelectorAll("figure.chart")].find((figure) => figure.offsetParent && figure.chart.original.kind === kind)?.id, kind);
    if (!id) { throw new Error("the page shows no chart of " + kind); }
    const figure = page.locator(`figure[id="${id}"]`);
    await figure.evaluate((element) => element.chart.show());
    await figure.screenshot({ path: path.join(folder, kind + ".png") });
  }
} finally { await browser.close(); }
