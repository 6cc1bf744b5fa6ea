// The page of a search over chips, in a real browser.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { after, test } from "node:test";

import { AXE, finds, launch, open, phaze, scratch, stickingOut } from "./browser.mjs";

const SPACE = [
  ...["--model", "bert-large", "--devices", "8", "--global-batch", "64", "--micro-batch", "2"],
  ...["--tdp", "350", "--space", "tensor_cores=6,16,24,40", "--fix", "width=128", "--fix", "depth=128"],
  ...["--space", "vector_cores=8,64", "--fix", "vector_width=128", "--space", "glb_mib=16,64"],
  ...["--fix", "glb_bytes_per_cycle=8192", "--space", "clock=1.0,1.4,1.6", "--space", "stacks=1,3,4"],
  ...["--space", "links=50,400"],
];

/** Searches chips: the folder of the result and the content of outcome.json. */
function searched(...words) {
  const folder = join(scratch(), "chips");
  phaze("search", ...SPACE, ...words, "--out", folder);
  return { folder, outcome: JSON.parse(readFileSync(join(folder, "outcome.json"), "utf8")) };
}

const found = searched("--why");
const cheap = searched("--objective", "cost-per-token");
const browser = await launch();
after(() => browser.close());

test("the die is drawn to scale with a block for every stack", async () => {
  const { page, complaints } = await open(browser, join(found.folder, "report.html"));
  const chip = found.outcome.winner.chip;
  await finds(page.locator("#die .stack"), chip.knobs.stacks);
  const areas = await page.locator("#die .part").evaluateAll((parts) =>
    parts.map((part) => part.width.baseVal.value * part.height.baseVal.value),
  );
  const die = await page.locator("#die .outline").evaluate((part) => part.width.baseVal.value ** 2);
  const sum = areas.reduce((a, b) => a + b, 0);
  assert.ok(Math.abs(sum / die - 1) < 0.01, `${sum} of ${die}`);
  assert.deepEqual(complaints, []);
});

test("bars, curves, baselines and near-winners say what the outcome says", async () => {
  const { page } = await open(browser, join(found.folder, "report.html"));
  const { outcome } = found;
  await finds(page.locator("#budget figure"), 4);
  await finds(page.locator("#curves figure"), 6);
  await finds(page.locator("#baselines tr"), outcome.baselines.length + 1);
  await finds(page.locator("#near tr"), 1 + 3 + 6);
  await finds(page.locator("#objectives tr"), 1 + outcome.why.objectives.length);
  assert.match(await page.locator("#why p").textContent(), /of its time/);
  assert.ok(!(await page.locator("#proof table").isVisible()));
  await page.locator("summary").click();
  assert.ok(await page.locator("#proof table").isVisible());
});

test("every part has a colour, and none of a whole share one", async () => {
  const { page } = await open(browser, join(found.folder, "report.html"));
  const wholes = await page
    .locator("ul.keys")
    .evaluateAll((lists) => lists.map((list) => [...list.querySelectorAll("i")].map((key) => key.style.background)));
  assert.equal(wholes.length, 1 + 4 + 1);
  for (const colours of wholes) {
    assert.equal(new Set(colours).size, colours.length, `${colours}`);
    assert.ok(!colours.includes("var(--muted)"), `${colours}`);
  }
});

test("bars beside the winner are as long as the baselines are good", async () => {
  const { page } = await open(browser, join(found.folder, "report.html"));
  const ratios = found.outcome.baselines.map((one) => one.winner_is?.by_objective).filter((ratio) => ratio > 0);
  await finds(page.locator("#beside .other"), ratios.length);
  const width = (bar) => bar.evaluate((rect) => rect.width.baseVal.value);
  const own = await width(page.locator("#beside .top"));
  for (const [at, ratio] of ratios.entries()) {
    const wide = await width(page.locator("#beside .other").nth(at));
    assert.ok(Math.abs((wide * ratio) / own - 1) < 0.02, `${wide} for ${ratio} of ${own}`);
  }
});

test("unlike objectives stand on no common axis", async () => {
  const file = join(scratch(), "compare.html");
  phaze("report", "--compare", found.folder, cheap.folder, "--out", file);
  const unlike = await open(browser, file);
  await finds(unlike.page.locator("#unlike"), 1);
  await finds(unlike.page.locator("#axis"), 0);
  phaze("report", "--compare", found.folder, found.folder, "--out", file);
  const alike = await open(browser, file);
  await finds(alike.page.locator("#axis rect"), 2);
});

test("the page is readable on a telephone, in the dark, and to aids", async () => {
  for (const [width, theme] of [[400, "light"], [400, "dark"], [1280, "dark"]]) {
    const { page, complaints } = await open(browser, join(found.folder, "report.html"), { width, theme });
    assert.deepEqual(await stickingOut(page), []);
    assert.deepEqual(complaints, []);
    await page.evaluate(AXE);
    const violations = await page.evaluate(async () =>
      (await axe.run({ runOnly: ["wcag2a", "wcag2aa"] })).violations.map((one) => one.id),
    );
    assert.deepEqual(violations, []);
  }
});
