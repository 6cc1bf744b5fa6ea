// Opens reports in Debian's Chromium and watches what they do.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

import { chromium } from "playwright-core";

const HERE = fileURLToPath(new URL(".", import.meta.url));
export const PHAZE = process.env.PHAZE ?? join(targetDirectory(), "release/phaze");
export const AXE = readFileSync(join(HERE, "node_modules/axe-core/axe.min.js"), "utf8");

/** Where cargo builds: it knows of CARGO_TARGET_DIR and of configuration files. */
function targetDirectory() {
  const words = ["metadata", "--format-version", "1", "--no-deps", "--offline"];
  const options = { cwd: join(HERE, "../.."), encoding: "utf8", stdio: ["ignore", "pipe", "inherit"] };
  return JSON.parse(execFileSync("cargo", words, options)).target_directory;
}

// The system's own Chromium, as root and without its background talk.
const FLAGS = [
  "--no-sandbox",
  "--disable-gpu",
  "--disable-quic",
  "--no-first-run",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
];

/** A folder that is gone when the tests are. */
export function scratch() {
  const folder = mkdtempSync(join(tmpdir(), "phaze-report-"));
  process.on("exit", () => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

/** Runs phaze; throws with its words if it fails. */
export function phaze(...words) {
  return execFileSync(PHAZE, words, { encoding: "utf8", stdio: ["ignore", "pipe", "pipe"] });
}

/** Searches with those words: the result's folder, the content of outcome.json, and its designs. */
export function searched(...words) {
  const folder = join(scratch(), "result");
  phaze("search", "--space", "published", "--table", ...words, "--out", folder);
  const outcome = JSON.parse(readFileSync(join(folder, "outcome.json"), "utf8"));
  return { folder, outcome, designs: designsOf(folder) };
}

/** The rows of a designs.csv as objects of text; our own files quote only headings with a comma. */
function designsOf(folder) {
  const [heading, ...lines] = readFileSync(join(folder, "designs.csv"), "utf8").trimEnd().split("\n");
  const names = heading.split(",");
  return lines.map((line) => Object.fromEntries(line.split(",").map((cell, i) => [names[i], cell])));
}

/** Starts the browser. */
export async function launch() {
  const executablePath = ["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"].find(
    existsSync,
  );
  return chromium.launch({ executablePath, headless: true, args: FLAGS });
}

/**
 * Opens a page file and collects `complaints`: console errors, uncaught errors, dialogs, and
 * requests that leave the file.
 */
export async function open(browser, file, { width = 1280, height = 900, theme = "light" } = {}) {
  const context = await browser.newContext({
    viewport: { width, height },
    colorScheme: theme,
    acceptDownloads: true,
  });
  const page = await context.newPage();
  page.setDefaultTimeout(10_000);
  const complaints = [];
  page.on("console", (message) => {
    if (["error", "warning"].includes(message.type())) complaints.push(message.text());
  });
  page.on("pageerror", (error) => complaints.push(String(error.stack ?? error)));
  page.on("dialog", (dialog) => {
    complaints.push(`dialog: ${dialog.message()}`);
    dialog.dismiss();
  });
  page.on("request", (request) => {
    if (!/^(file|data|blob):/.test(request.url())) complaints.push(`request: ${request.url()}`);
  });
  await page.goto(`file://${file}`);
  await page.waitForFunction(() => document.querySelector("main").childElementCount > 0);
  // Charts are drawn when their frames have found their widths.
  await page.waitForFunction(() =>
    [...document.querySelectorAll("figure .canvas")].every(
      (host) => host.childElementCount > 0 || host.getBoundingClientRect().width === 0,
    ),
  );
  await page.waitForTimeout(150);
  return { page, complaints };
}

/** Waits until a locator finds that many: charts are drawn a moment after their frame stands. */
export async function finds(locator, wanted) {
  const end = Date.now() + 10_000;
  let found = await locator.count();
  while (found !== wanted && Date.now() < end) {
    await locator.page().waitForTimeout(20);
    found = await locator.count();
  }
  assert.equal(found, wanted, String(locator));
}

/** What sticks out of the window sideways, other than inside boxes that scroll by themselves. */
export function stickingOut(page) {
  return page.evaluate(() => {
    const found = [];
    if (document.documentElement.scrollWidth > innerWidth)
      found.push(`the page is ${document.documentElement.scrollWidth} wide`);
    for (const element of document.querySelectorAll("main *, header *")) {
      if (element.closest(".scroll, nav, .hidden, .tip, canvas, option, title, desc")) continue;
      const box = element.getBoundingClientRect();
      if (box.width > 0 && (box.right > innerWidth + 1 || box.left < -1))
        found.push(`${element.tagName} ${element.textContent.slice(0, 40)}: ${box.left} to ${box.right}`);
    }
    return found;
  });
}

/** Where a design's point is in the window, after scrolling to it. */
export function pointOf(page, row) {
  return page.evaluate((index) => {
    const { chart } = document.querySelector("#scatter");
    chart.over.scrollIntoView({ behavior: "instant", block: "center" });
    const box = chart.over.getBoundingClientRect();
    const [x, y] = chart.position(index);
    return [box.left + x, box.top + y];
  }, row);
}

/** The most hopeful status of a row over all memory sizes. */
export function best(row) {
  const found = Object.keys(row)
    .filter((name) => name.startsWith("status_hbm"))
    .map((name) => row[name]);
  return ["evaluated", "beaten", "pruned", "open", "infeasible"].find((status) => found.includes(status));
}

/** Whether a text such as `226.3 ms` or `33.8 %` is that number to the digits that it shows. */
export function reads(text, value) {
  const [, digits, unit] = text.replaceAll(",", "").match(/^(-?[\d.]+)\s*(\S*)/);
  const prefixes = { T: 1e12, G: 1e9, M: 1e6, k: 1e3, m: 1e-3, µ: 1e-6, n: 1e-9, p: 1e-12, "%": 0.01 };
  const scale = unit === "%" || (unit.length > 1 && unit[0] in prefixes) ? prefixes[unit[0]] : 1;
  const decimals = digits.split(".")[1]?.length ?? 0;
  // Four significant digits are shown at most, so a text without a point may be rounded further.
  const slack = Math.max(0.5 * 10 ** -decimals, 0.5e-3 * Number(digits));
  return Math.abs(Number(digits) - value / scale) <= slack * (1 + 1e-9);
}
