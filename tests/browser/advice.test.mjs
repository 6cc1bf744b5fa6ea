// The page that `phaze plan --out` writes: the run, other numbers of devices, what is beside it, its files.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { after, test } from "node:test";

import { AXE, finds, launch, open, phaze, scratch, stickingOut } from "./browser.mjs";

const folder = join(scratch(), "plan");
const words = "plan llama3-8b --gpus 8..32xh100-sxm --seq 4096 --tokens 100G --for megatron --deadline 60d";
phaze(...words.split(" "), "--out", folder);
const advice = JSON.parse(readFileSync(join(folder, "advice.json"), "utf8"));
const browser = await launch();
after(() => browser.close());

test("the run is told in the figures of advice.json", async () => {
  const { page, complaints } = await open(browser, join(folder, "plan.html"));
  for (const key of ["steps", "seconds", "device_hours", "dollars", "kwh", "kg_co2e", "checkpoint_bytes"]) {
    const shown = await page.locator(`#run [data-key=${key}]`).getAttribute("data-value");
    assert.equal(Number(shown), advice.run[key], key);
  }
  assert.deepEqual(complaints, []);
});

test("every number of devices has its two bars, and the knee is told", async () => {
  const { page } = await open(browser, join(folder, "plan.html"));
  const points = advice.curve.points.filter((point) => point.found);
  await finds(page.locator("#curve svg rect.doubled"), points.length);
  await finds(page.locator("#curve svg rect.halved"), points.length);
  const { knee } = advice.curve;
  const told = knee === points.at(-1).devices ? `Up to ${knee} devices less` : `Beyond ${knee} devices more`;
  assert.ok((await page.locator("#scaling").textContent()).includes(`${told} than a tenth of the GPU-hours`));
});

test("on a usual screen no figure touches the next and no command is cut off", async () => {
  const { page } = await open(browser, join(folder, "plan.html"), { width: 1280 });
  const wider = (nodes) => nodes.filter((node) => node.scrollWidth > node.clientWidth).map((node) => node.textContent);
  assert.deepEqual(await page.locator("#run .figures > div").evaluateAll(wider), []);
  assert.deepEqual(await page.locator("#beside .scroll").evaluateAll(wider), []);
});

test("what is beside the plan stands in two tables with its ratio", async () => {
  const { page } = await open(browser, join(folder, "plan.html"));
  for (const [id, rows] of [
    ["next", advice.next],
    ["what-if", advice.what_if],
  ]) {
    const ratios = await page.locator(`#${id} td[data-ratio]`).evaluateAll((cells) => cells.map((cell) => Number(cell.dataset.ratio)));
    const known = rows.filter((row) => row.found).map((row) => row.found.run.seconds / advice.run.seconds);
    assert.deepEqual(ratios, known);
  }
});

test("the files that start it are shown as they are saved", async () => {
  const { page } = await open(browser, join(folder, "plan.html"));
  const shown = await page.locator("#launch pre").textContent();
  assert.equal(shown, readFileSync(join(folder, "run.sh"), "utf8"));
});

test("nothing sticks out of a narrow page, and readers by ear find their way", async () => {
  const { page } = await open(browser, join(folder, "plan.html"), { width: 400 });
  assert.deepEqual(await stickingOut(page), []);
  await page.evaluate(AXE);
  const found = await page.evaluate(async () => (await axe.run({ runOnly: ["wcag2a", "wcag2aa"] })).violations.map((one) => one.id));
  assert.deepEqual(found, []);
});
