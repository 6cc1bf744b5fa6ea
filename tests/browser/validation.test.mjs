// The page of predicted and measured runs, in a real browser.

import assert from "node:assert/strict";
import { join } from "node:path";
import { after, test } from "node:test";

import { finds, launch, open, phaze, scratch, stickingOut } from "./browser.mjs";

const file = join(scratch(), "validation.html");
phaze("validate", "--html", file);
const browser = await launch();
after(() => browser.close());

test("every set has a picture with a point for each run and a row beside it", async () => {
  const { page, complaints } = await open(browser, file);
  const sections = page.locator("section");
  assert.ok((await sections.count()) >= 7);
  for (let i = 0; i < (await sections.count()); i++) {
    const section = sections.nth(i);
    const points = await section.locator("circle").count();
    assert.ok(points >= 8, await section.locator("h2").textContent());
    await finds(section.locator("tr"), points + 1);
  }
  assert.deepEqual(complaints, []);
});

test("points of runs that are predicted well lie near the line", async () => {
  const { page } = await open(browser, file);
  const section = page.locator("section", { hasText: "korthikanti, fitted on in sample" });
  for (const circle of await section.locator("circle").all()) {
    const said = await circle.locator("title").textContent();
    const [, measured, predicted] = said.match(/measured ([\d.]+) s, predicted ([\d.]+) s/);
    assert.ok(Math.abs(Number(predicted) / Number(measured) - 1) < 0.1, said);
  }
});

test("the page is readable on a telephone, in the dark and by everybody", async () => {
  for (const theme of ["light", "dark"]) {
    const { page, complaints } = await open(browser, file, { width: 400, theme });
    assert.deepEqual(await stickingOut(page), []);
    // The page itself lets no script in; the test brings its own.
    assert.deepEqual(complaints, []);
  }
});
