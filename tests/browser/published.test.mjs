// The report of the published GPT2-XL search, in a real browser.

import assert from "node:assert/strict";
import { execSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { after, test } from "node:test";

import {
  AXE,
  PHAZE,
  best,
  finds,
  launch,
  open,
  pointOf,
  reads,
  scratch,
  searched,
  stickingOut,
} from "./browser.mjs";

const { folder, outcome, designs } = searched("--model", "gpt2-xl");
const file = join(folder, "report.html");
const browser = await launch();
after(() => browser.close());

test("the report opens without complaint and asks nobody for anything", async () => {
  const { page, complaints } = await open(browser, file);
  for (const section of ["answer", "space", "plan", "layer", "whatif", "proof"]) {
    await finds(page.locator(`section#${section}`), 1);
  }
  assert.deepEqual(complaints, []);
});

test("the scatter has a point for every row of designs.csv", async () => {
  const { page } = await open(browser, file);
  const drawn = await page.evaluate(() => document.querySelector("#scatter").chart.drawn().length);
  assert.equal(designs.length, 29_360);
  assert.equal(drawn, designs.length);
  assert.equal(await page.locator("#shown").textContent(), designs.length.toLocaleString("en-US"));
});

test("every axis can be chosen and keeps every point", async () => {
  const { page, complaints } = await open(browser, file);
  const keys = await page
    .locator("#axis-y option")
    .evaluateAll((options) => options.map((option) => option.value));
  assert.ok(keys.length >= 15, keys.join());
  for (const key of keys) {
    for (const axis of ["#axis-x", "#axis-y", "#axis-colour"]) await page.selectOption(axis, key);
    const drawn = await page.evaluate(() => document.querySelector("#scatter").chart.drawn().length);
    assert.equal(drawn, designs.length, key);
  }
  assert.deepEqual(complaints, []);
});

test("an axis over a knob has its ticks at the knob's values, and menus list nothing twice", async () => {
  const { page } = await open(browser, file);
  await page.selectOption("#axis-y", "tensor_cores");
  const ticks = await page.evaluate(() => document.querySelector("#scatter").chart.plot.axes[1]._splits);
  const own = new Set(designs.map((row) => Number(row.tensor_cores)));
  assert.ok(ticks.length > 4 && ticks.every((value) => own.has(value)), ticks.join());
  const names = await page.locator("#axis-y option").allTextContents();
  assert.equal(new Set(names).size, names.length, names.join());
});

test("values in the page equal outcome.json", async () => {
  const { page } = await open(browser, file);
  const [result] = outcome.winner.results;
  for (const section of ["#answer", "#plan"]) {
    const shown = await page
      .locator(`${section} [data-key]`)
      .evaluateAll((cells) => cells.map((cell) => [cell.dataset.key, cell.dataset.value, cell.textContent]));
    assert.equal(shown.length, 6);
    for (const [key, value, text] of shown) {
      assert.equal(Number(value), result[key], key);
      assert.ok(reads(text, result[key]), `${key}: ${text} is not ${result[key]}`);
    }
  }
  const shares = await page
    .locator("#breakdown [data-part]")
    .evaluateAll((cells) => cells.map((cell) => [cell.dataset.part, parseFloat(cell.textContent)]))
    .then((parts) => parts.filter(([, percent]) => !Number.isNaN(percent)));
  for (const [part, percent] of shares)
    assert.ok(
      Math.abs(percent - (100 * result.breakdown_s[part]) / result.time_per_batch_s) <= 0.05 + 1e-9,
      part,
    );
  assert.equal(shares.length, Object.values(result.breakdown_s).filter((value) => value > 0).length);
  const plain = (text) => text.replaceAll(/(?<=\d),(?=\d{3})/g, "").replaceAll("×", "x");
  const proof = plain(await page.locator("#answer .proof").textContent());
  assert.ok(proof.includes(outcome.proof.statement), proof);
  const { strategy } = result;
  const words = plain(await page.locator("#plan-strategy").textContent());
  for (const told of [
    strategy.sentence,
    `${strategy.devices_used} of ${outcome.request.devices} devices`,
  ])
    assert.ok(words.includes(told), words);
  const counts = await page
    .locator("#proof table")
    .first()
    .locator("tbody tr")
    .evaluateAll((rows) =>
      rows.map((row) => [...row.cells].map((cell) => cell.textContent.replaceAll(",", ""))),
    );
  assert.deepEqual(
    counts.map((row) => row.slice(1, 5).map(Number)),
    outcome.proof.by_hbm.map((row) => [row.evaluated, row.beaten, row.pruned, row.infeasible]),
  );
});

test("the headline compares with the real TPUv4, and each baseline with its ratio", async () => {
  const { page } = await open(browser, file);
  const real = outcome.baselines.find(({ entry }) => entry.design.name === "tpuv4");
  const lead = await page.locator("#answer .lead").textContent();
  assert.ok(lead.startsWith(`${real.winner_ratio.toFixed(2)}× the throughput of the real TPUv4`), lead);
  const area = outcome.winner.design.area_um2 / real.entry.design.area_um2;
  assert.ok(lead.includes(`${area.toFixed(2)}× its area`), lead);
  assert.match(await page.locator("#chips svg").getAttribute("aria-label"), /This chip.*Real TPUv4/);
  const ratios = await page.locator("#baselines text.value").allTextContents();
  assert.deepEqual(ratios, [
    "",
    ...outcome.baselines.map(({ winner_ratio: ratio }) => `${ratio.toFixed(2)}×`),
  ]);
});

test("a click on a point opens that design", async () => {
  const { page, complaints } = await open(browser, file);
  // A row tells of its best memory size; the same design may be held in full with another.
  const key = (index, gib) => `${index} with ${gib}`;
  const entries = new Map(
    [outcome.winner, ...outcome.top.entries, ...outcome.pareto.entries].map((entry) => [
      key(entry.design.index, entry.design.hbm_bytes / 2 ** 30),
      entry,
    ]),
  );
  const kinds = new Set();
  for (const status of ["evaluated", "beaten", "pruned"]) {
    const rows = designs.filter((row) => best(row) === status);
    assert.ok(rows.length > 0, status);
    const some = [0, 0.3, 0.6, 1].map((at) => rows[Math.round(at * (rows.length - 1))]);
    const winner = designs[outcome.winner.design.index];
    for (const wanted of status === "evaluated" ? [...some, winner] : some) {
      const at = await pointOf(page, Number(wanted.design));
      await page.mouse.click(...at);
      // Points can lie on each other: what counts is that the panel shows the one that was taken.
      const picked = designs[Number(await page.locator("#plan").getAttribute("data-row"))];
      assert.ok(picked, `nothing was selected at ${at}`);
      const entry = entries.get(key(picked.design, picked.best_hbm_gib));
      kinds.add(entry ? "full" : best(picked));
      if (best(picked) === "evaluated") {
        const shown = await page.locator("#plan [data-key=time_per_batch_s]").getAttribute("data-value");
        assert.equal(Number(shown), Number(picked.time_per_batch_s));
      }
      if (entry) {
        assert.equal(Number(picked.time_per_batch_s), entry.results[0].time_per_batch_s);
        continue;
      }
      const facts = await page.locator("#row-facts").textContent();
      const cores = Number(picked.tensor_cores).toLocaleString("en-US");
      assert.ok(facts.includes(`${cores} × ${picked.width}×${picked.depth}`), facts);
      assert.ok(facts.includes(best(picked)), facts);
      const area = await page.locator("#plan [data-cell=area_um2]").textContent();
      assert.ok(reads(area, Number(picked.area_um2)), area);
    }
  }
  await page.selectOption("#selection", "0");
  assert.equal(await page.locator("#plan").getAttribute("data-row"), String(outcome.winner.design.index));
  assert.deepEqual([...kinds].sort(), ["beaten", "evaluated", "full", "pruned"]);
  assert.deepEqual(complaints, []);
});

test("the command of a row gives what the row says", async () => {
  const { page } = await open(browser, file);
  await page.locator("#scatter .canvas").focus();
  // The best designs are held in full; further down are rows.
  for (let i = 0; i < 120; i++) await page.keyboard.press("n");
  const row = designs[Number(await page.locator("#plan").getAttribute("data-row"))];
  const command = await page.locator("#command").textContent();
  const told = execSync(command.replace(/^phaze/, `'${PHAZE}'`) + " --json", { cwd: scratch() });
  assert.equal(JSON.parse(told).time_per_batch, Number(row.time_per_batch_s), command);
});

test("hovering tells the design", async () => {
  const { page } = await open(browser, file);
  const row = outcome.winner.design.index;
  await page.mouse.move(...(await pointOf(page, row)));
  assert.match(await page.locator("#scatter .tip").textContent(), /evaluated/);
});

test("filters leave the designs that they name", async () => {
  const { page } = await open(browser, file);
  await page.locator(".filters summary").click();
  const shown = () => page.evaluate(() => document.querySelector("#scatter").chart.drawn().length);
  const width = designs[0].width;
  const box = page
    .locator("fieldset[data-filter=width] label")
    .filter({ hasText: new RegExp(`^${width}$`) })
    .locator("input");
  await box.uncheck();
  assert.equal(await shown(), designs.filter((row) => row.width !== width).length);
  await page
    .locator("fieldset[data-filter=status] label")
    .filter({ hasText: "pruned" })
    .locator("input")
    .uncheck();
  assert.equal(await shown(), designs.filter((row) => row.width !== width && best(row) !== "pruned").length);
  await box.check();
  assert.equal(await shown(), designs.filter((row) => best(row) !== "pruned").length);
});

test("a brush zooms, shift-drag pans, and the button shows all again", async () => {
  const { page } = await open(browser, file);
  const drawn = () => page.evaluate(() => document.querySelector("#scatter").chart.drawn().length);
  await pointOf(page, 0);
  const box = await page.locator("#scatter .u-over").boundingBox();
  const drag = async (from, to) => {
    await page.mouse.move(box.x + box.width * from[0], box.y + box.height * from[1]);
    await page.mouse.down();
    await page.mouse.move(box.x + box.width * to[0], box.y + box.height * to[1], { steps: 5 });
    await page.mouse.up();
  };
  const range = () =>
    page.evaluate(() => {
      const { min, max } = document.querySelector("#scatter").chart.plot.scales.x;
      return [min, max];
    });
  const whole = await range();
  await drag([0.3, 0.2], [0.6, 0.9]);
  const zoomed = await range();
  assert.ok(zoomed[0] > whole[0] && zoomed[1] < whole[1], `${whole} to ${zoomed}`);
  assert.ok((await drawn()) < designs.length);
  await page.keyboard.down("Shift");
  await drag([0.5, 0.5], [0.4, 0.5]);
  await page.keyboard.up("Shift");
  const panned = await range();
  assert.ok(
    panned[0] > zoomed[0] && Math.abs(panned[1] - panned[0] - (zoomed[1] - zoomed[0])) < 1e-6 * whole[1],
  );
  await page.getByRole("button", { name: "Show all" }).click();
  assert.equal(await drawn(), designs.length);
});

test("the keyboard alone reaches the designs", async () => {
  const { page } = await open(browser, file);
  await page.locator("#scatter .canvas").focus();
  const seen = new Set();
  for (let i = 0; i < 3; i++) {
    await page.keyboard.press("n");
    seen.add(await page.locator("#plan").getAttribute("data-row"));
  }
  assert.equal(seen.size, 3);
  await page.keyboard.press("+");
  await page.keyboard.press("ArrowLeft");
  await page.keyboard.press("0");
  assert.equal(
    await page.evaluate(() => document.querySelector("#scatter").chart.drawn().length),
    designs.length,
  );
});

test("an operator can be chosen in the schedule, the table and the roofline", async () => {
  const { page } = await open(browser, file);
  const { forward, backward } = outcome.winner.results[0].layers.find(({ kind }) => kind === "transformer");
  await page.locator("#layer table tbody tr").first().focus();
  await page.keyboard.press("Enter");
  assert.equal(
    await page.locator("#layer h3").last().textContent(),
    forward.operators[0].matmul ? `How ${forward.operators[0].name} is cut` : forward.operators[0].name,
  );
  const matmuls = forward.operators.filter((operator) => operator.matmul);
  await page.locator("#roofline circle").last().focus();
  await page.keyboard.press("Enter");
  assert.match(await page.locator("#tiles h3").textContent(), /^How .+ is cut$/);
  await finds(page.locator("#roofline circle"), matmuls.length);
  await page.locator("[data-pass=backward]").click();
  assert.equal(
    Number(await page.locator("[data-key=layer-time]").getAttribute("data-value")),
    backward.time_s,
  );
  await finds(page.locator("#layer .tablebox tbody tr"), backward.operators.length);
});

test("every chart has a table and downloads", async () => {
  const { page, complaints } = await open(browser, file);
  const ids = await page.locator("figure").evaluateAll((figures) => figures.map((figure) => figure.id));
  assert.ok(ids.length >= 9, ids.join());
  for (const id of ids) {
    const figure = page.locator(`figure#${id}`);
    for (const [kind, start] of [
      ["SVG", "<svg"],
      ["PNG", "\x89PNG"],
      ["CSV", ""],
    ]) {
      const [download] = await Promise.all([
        page.waitForEvent("download"),
        figure.getByRole("button", { name: kind, exact: true }).click(),
      ]);
      assert.equal(download.suggestedFilename(), `${id}.${kind.toLowerCase()}`);
      const content = readFileSync(await download.path(), "latin1");
      assert.ok(content.startsWith(start) && content.length > 60, `${id} ${kind}`);
      if (id === "scatter" && kind === "CSV")
        assert.equal(content.trimEnd().split("\n").length, designs.length + 1);
    }
    await figure.getByRole("button", { name: "Table", exact: true }).click();
    assert.ok((await figure.locator("tbody tr").count()) > 0, id);
    await figure.getByRole("button", { name: "Chart", exact: true }).click();
  }
  assert.deepEqual(complaints, []);
});

for (const theme of ["light", "dark"]) {
  for (const width of [400, 1280]) {
    test(`nothing sticks out at ${width} px in the ${theme} theme, and axe finds nothing`, async () => {
      const { page, complaints } = await open(browser, file, { width, theme });
      assert.equal(await page.locator("html").getAttribute("data-theme"), theme);
      assert.deepEqual(await stickingOut(page), []);
      await page.evaluate(AXE);
      const found = await page.evaluate(async () =>
        (await axe.run({ runOnly: ["wcag2a", "wcag2aa"] })).violations.map(
          (one) =>
            `${one.id}: ${one.nodes
              .slice(0, 3)
              .map((node) => node.html.slice(0, 120))
              .join(" | ")}`,
        ),
      );
      assert.deepEqual(found, []);
      assert.deepEqual(complaints, []);
    });
  }
}

test("the theme can be switched by hand", async () => {
  const { page } = await open(browser, file);
  const ground = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
  const light = await ground();
  await page.locator("#theme").click();
  assert.equal(await page.locator("html").getAttribute("data-theme"), "dark");
  assert.notEqual(await ground(), light);
});

test("on paper nothing is folded and no control is printed", async () => {
  const { page } = await open(browser, file);
  await page.emulateMedia({ media: "print" });
  assert.equal(await page.locator("header").isVisible(), false);
  assert.equal(await page.locator("#scatter .tools").first().isVisible(), false);
  assert.ok((await page.pdf({ format: "A4" })).length > 20000);
});
