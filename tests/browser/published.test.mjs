// The report of a search, in a real browser.

import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";

import {
  SAMPLE,
  designsOf,
  launch,
  open,
  outcomeOf,
  phaze,
  scratch,
  stickingOut,
  variant,
} from "./browser.mjs";

const AXE = readFileSync(new URL("node_modules/axe-core/axe.min.js", import.meta.url), "utf8");
const outcome = outcomeOf(SAMPLE);
const designs = designsOf(SAMPLE);
const file = join(scratch(), "report.html");
let browser;

before(async () => {
  phaze("report", SAMPLE, "--out", file);
  browser = await launch();
});
after(() => browser.close());

test("the report opens without complaint and asks nobody for anything", async () => {
  const { page, complaints } = await open(browser, file);
  for (const section of ["answer", "space", "plan", "layer", "whatif", "proof"]) {
    assert.equal(await page.locator(`section#${section}`).count(), 1, section);
  }
  assert.deepEqual(complaints, []);
});

test("the scatter has a point for every row of designs.csv", async () => {
  const { page } = await open(browser, file);
  const drawn = await page.evaluate(() => document.querySelector("#scatter").chart.drawn().length);
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
    .evaluateAll((cells) => cells.map((cell) => [cell.dataset.part, parseFloat(cell.textContent)]));
  for (const [part, percent] of shares)
    assert.ok(
      Math.abs(percent - (100 * result.breakdown_s[part]) / result.time_per_batch_s) <= 0.05 + 1e-9,
      part,
    );
  assert.equal(shares.length, Object.values(result.breakdown_s).filter((value) => value > 0).length);
  assert.ok((await page.locator("#answer .proof").textContent()).includes(outcome.proof.statement));
  assert.equal(await page.locator("#plan-strategy").textContent(), result.strategy.sentence);
  const counts = await page
    .locator("#proof table")
    .first()
    .locator("tbody tr")
    .evaluateAll((rows) =>
      rows.map((row) => [...row.cells].map((cell) => cell.textContent.replaceAll(",", ""))),
    );
  assert.deepEqual(
    counts.map((row) => row.slice(1, 4).map(Number)),
    outcome.proof.by_hbm.map((row) => [row.evaluated, row.pruned, row.infeasible]),
  );
});

test("a click on a point opens that design", async () => {
  const { page, complaints } = await open(browser, file);
  const entries = new Map(
    [outcome.winner, ...outcome.top.entries, ...outcome.pareto.entries].map((entry) => [
      entry.design.index,
      entry,
    ]),
  );
  const kinds = new Set();
  for (const status of ["evaluated", "pruned", "infeasible"]) {
    const rows = designs.filter((row) => best(row) === status).slice(0, 40);
    assert.ok(rows.length > 0, status);
    for (const wanted of [rows[0], rows.at(-1)]) {
      const at = await pointOf(page, Number(wanted.design));
      await page.mouse.click(...at);
      // Points can lie on each other: what counts is that the panel shows the one that was taken.
      const picked = designs[Number(await page.locator("#plan").getAttribute("data-row"))];
      assert.ok(picked, `nothing was selected at ${at}`);
      const entry = entries.get(Number(picked.design));
      kinds.add(entry ? "full" : "row");
      if (entry) {
        const value = await page
          .locator("#plan [data-key=throughput_sequences_per_s]")
          .getAttribute("data-value");
        assert.equal(Number(value), entry.results[0].throughput_sequences_per_s);
        continue;
      }
      const facts = await page.locator("#row-facts").textContent();
      assert.ok(
        facts.includes(
          `${Number(picked.tensor_cores).toLocaleString("en-US")} × ${picked.width}×${picked.depth}`,
        ),
        facts,
      );
      assert.ok(facts.includes(best(picked)), facts);
      const area = await page.locator("#plan [data-cell=area_um2]").textContent();
      assert.ok(reads(area, Number(picked.area_um2)), area);
      const command = await page.locator("#command").textContent();
      for (const knob of ["tensor_cores", "width", "depth", "vector_cores"])
        assert.ok(command.includes(`--${knob.replace("_", "-")} ${picked[knob]}`), command);
    }
  }
  assert.deepEqual([...kinds].sort(), ["full", "row"]);
  assert.deepEqual(complaints, []);
});

test("hovering tells the design", async () => {
  const { page } = await open(browser, file);
  const row = designs.findIndex((one) => best(one) === "evaluated");
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
  const { forward, backward } = outcome.winner.results[0].layers[0];
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
  assert.equal(await page.locator("#roofline circle").count(), matmuls.length);
  await page.locator("[data-pass=backward]").click();
  assert.equal(
    Number(await page.locator("[data-key=layer-time]").getAttribute("data-value")),
    backward.time_s,
  );
  assert.equal(await page.locator("#layer .tablebox tbody tr").count(), backward.operators.length);
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

test("names with markup in them do nothing", async () => {
  const name = "</script><script>alert(1)</script><img src=x onerror=alert(2)>";
  const folder = variant((changed) => {
    changed.request.models[0].name = name;
    changed.models[0].name = name;
    changed.baselines[0].name = name;
    for (const entry of [changed.winner, ...changed.top.entries, ...changed.pareto.entries])
      entry.results[0].model = name;
    changed.winner.results[0].layers[0].forward.operators[0].name = name;
    changed.proof.statement = name;
  });
  const { page, complaints } = await open(browser, join(folder, "report.html"));
  assert.equal(await page.locator("main img, main script").count(), 0);
  assert.ok((await page.locator(".eyebrow").textContent()).includes(name));
  assert.ok((await page.title()).includes(name));
  assert.deepEqual(complaints, []);
});

test("several models are told apart", async () => {
  const folder = variant(
    (changed) => {
      const second = (entry) => {
        if (entry)
          entry.results.push({
            ...structuredClone(entry.results[0]),
            model: "second",
            throughput_sequences_per_s: entry.results[0].throughput_sequences_per_s / 2,
          });
      };
      [
        changed.winner,
        ...changed.top.entries,
        ...changed.pareto.entries,
        ...changed.baselines.map((one) => one.entry),
        ...changed.best_by_hbm.map((one) => one.entry),
      ].forEach(second);
      changed.request.models.push({ name: "second", sequence: 512, weight: 1 });
      changed.models.push({ ...changed.models[0], name: "second" });
    },
    (text) => {
      const columns = text
        .split("\n")[0]
        .split(",")
        .slice(text.split("\n")[0].split(",").indexOf("time_per_batch_s"));
      const [heading, ...lines] = text.trimEnd().split("\n");
      const twice = (line) =>
        [
          ...line.split(",").slice(0, -columns.length),
          ...line.split(",").slice(-columns.length),
          ...line.split(",").slice(-columns.length),
        ].join(",");
      const names = heading
        .split(",")
        .slice(0, -columns.length)
        .concat(
          columns.map((one) => `${one}:gpt2-xl`),
          columns.map((one) => `${one}:second`),
        );
      return [names.join(","), ...lines.map(twice)].join("\n");
    },
  );
  const { page, complaints } = await open(browser, join(folder, "report.html"), { width: 400 });
  const [first] = outcome.winner.results;
  const shares = await page.locator("#shares text.value").allTextContents();
  assert.deepEqual(
    shares.map(parseFloat),
    [1, 0.5].map((part) =>
      Number(
        (
          (100 * part * first.throughput_sequences_per_s) /
          outcome.models[0].best_throughput_sequences_per_s
        ).toFixed(1),
      ),
    ),
  );
  await page.selectOption("#model", "1");
  assert.equal(
    Number(await page.locator("#plan [data-key=throughput_sequences_per_s]").getAttribute("data-value")),
    first.throughput_sequences_per_s / 2,
  );
  assert.ok((await page.locator("#axis-y option").allTextContents()).includes("FLOP utilisation, second"));
  assert.deepEqual(await stickingOut(page), []);
  assert.deepEqual(complaints, []);
});

test("what is missing is left out, not guessed", async () => {
  const folder = variant((changed) => {
    for (const key of ["baselines", "best_by_hbm", "pareto", "top", "sensitivities", "limited_by", "models"])
      delete changed[key];
    const [result] = changed.winner.results;
    for (const key of ["layers", "breakdown_s", "energy_per_token_j", "stages", "strategy"])
      delete result[key];
  });
  const { page, complaints } = await open(browser, join(folder, "report.html"));
  assert.equal(await page.locator("#whatif, #models, #timeline, #memory").count(), 0);
  assert.equal(await page.locator("#answer [data-key=energy_per_token_j]").textContent(), "–");
  assert.deepEqual(complaints, []);
});

test("a search that found nothing says why", async () => {
  const folder = variant((changed) => {
    Object.assign(changed, {
      winner: null,
      infeasible_reason: "layer 0 alone needs 41 GiB of 32 GiB",
      baselines: [],
      pareto: { exact: true, entries: [] },
      top: { exact: true, entries: [] },
      sensitivities: [],
      best_by_hbm: [],
    });
  });
  const { page, complaints } = await open(browser, join(folder, "report.html"));
  assert.match(await page.locator("#answer").textContent(), /layer 0 alone needs 41 GiB of 32 GiB/);
  assert.equal(await page.locator("#plan").count(), 0);
  assert.deepEqual(complaints, []);
});

test("two results stand side by side", async () => {
  const folder = variant((changed) => {
    changed.request.devices = 512;
    changed.winner.results[0].throughput_sequences_per_s /= 2;
  });
  const compared = join(scratch(), "compare.html");
  phaze("report", "--compare", SAMPLE, folder, "--out", compared);
  for (const width of [400, 1280]) {
    const { page, complaints } = await open(browser, compared, { width });
    assert.match(await page.locator("#answer .lead").textContent(), /0\.50× the throughput/);
    const request = await page.locator("#request tbody tr").first().textContent();
    assert.match(request, /devices.*1024.*512.*differs/);
    assert.deepEqual(await stickingOut(page), []);
    assert.deepEqual(complaints, []);
  }
});

test("a plan has its page, and its timeline ends when the simulator says", async () => {
  const folder = scratch();
  const layer = (id, fw, bw, size) => ({
    id,
    parameterSize: size,
    activationSize: 3000,
    optimalLatencyFw: fw,
    optimalLatencyBw: bw,
    isTensorParallelized: false,
  });
  const nodes = [layer(0, 1.5, 2.25, 900), layer(1, 4, 9, 400), layer(2, 4, 9, 400), layer(3, 2, 8.5, 2000)];
  const edges = [0, 1, 2].map((id) => ({ sourceId: id, destId: id + 1, communicationCost: 50 }));
  const profile = {
    maxMemoryPerDevice: 20000,
    maxDevices: 6,
    bandwidth: 100,
    mbsInBatch: 12,
    activationRecomputation: false,
    optimizerAlgorithm: "Adam",
    nodes: { 1: nodes },
    edges: { 1: edges },
  };
  writeFileSync(join(folder, "layers.json"), JSON.stringify(profile));
  const told = phaze(
    "place",
    "--profile",
    join(folder, "layers.json"),
    "--json",
    "--out",
    join(folder, "plan.json"),
  );
  const plan = JSON.parse(readFileSync(join(folder, "plan.json"), "utf8"));
  for (const width of [400, 1280]) {
    const { page, complaints } = await open(browser, join(folder, "plan.html"), { width });
    const time = Number(await page.locator("[data-key=time_per_batch_s]").getAttribute("data-value"));
    assert.equal(time, JSON.parse(told).time_per_batch);
    const simulated = plan.answer.simulated / 10 ** plan.units.time_digits;
    const end = Number(await page.locator("#timeline").getAttribute("data-end"));
    assert.ok(Math.abs(end / simulated - 1) < 1e-9, `${end} is not ${simulated}`);
    await page.locator("#stages").getByRole("button", { name: "Table" }).click();
    assert.equal(await page.locator("#stages tbody tr").count(), plan.answer.stages.length);
    assert.deepEqual(await stickingOut(page), []);
    assert.deepEqual(complaints, []);
  }
});

test("on paper nothing is folded and no control is printed", async () => {
  const { page } = await open(browser, file);
  await page.emulateMedia({ media: "print" });
  assert.equal(await page.locator("header").isVisible(), false);
  assert.equal(await page.locator("#scatter .tools").first().isVisible(), false);
  assert.ok((await page.pdf({ format: "A4" })).length > 20000);
});

/** Where a design's point is in the window, after scrolling to it. */
function pointOf(page, row) {
  return page.evaluate((index) => {
    const { chart } = document.querySelector("#scatter");
    chart.over.scrollIntoView({ behavior: "instant", block: "center" });
    const box = chart.over.getBoundingClientRect();
    const [x, y] = chart.position(index);
    return [box.left + x, box.top + y];
  }, row);
}

/** The most hopeful status of a row over all memory sizes. */
function best(row) {
  const found = Object.keys(row)
    .filter((name) => name.startsWith("status_hbm"))
    .map((name) => row[name]);
  return ["evaluated", "pruned", "open", "infeasible"].find((status) => found.includes(status));
}

/** Whether a text such as `226.3 ms` or `33.8 %` is that number to the digits that it shows. */
function reads(text, value) {
  const [, digits, unit] = text.replaceAll(",", "").match(/^(-?[\d.]+)\s*(\S*)/);
  const prefixes = { T: 1e12, G: 1e9, M: 1e6, k: 1e3, m: 1e-3, µ: 1e-6, n: 1e-9, p: 1e-12, "%": 0.01 };
  const scale = unit === "%" || (unit.length > 1 && unit[0] in prefixes) ? prefixes[unit[0]] : 1;
  const decimals = digits.split(".")[1]?.length ?? 0;
  // Four significant digits are shown at most, so a text without a point may be rounded further.
  const slack = Math.max(0.5 * 10 ** -decimals, 0.5e-3 * Number(digits));
  return Math.abs(Number(digits) - value / scale) <= slack * (1 + 1e-9);
}
