// Pages of other results: several models, what is missing or hostile, two results, a plan.

import assert from "node:assert/strict";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, test } from "node:test";

import { best, finds, launch, open, phaze, pointOf, scratch, searched, stickingOut } from "./browser.mjs";

// Two models, the exact front, and a cap of power.
const SEARCH = "--model bert-large --model gpt2-xl --pareto --top 5 --power-cap 300".split(" ");
const SPACE = [
  "tensor_cores=16..128",
  "width=32..128",
  "depth=32..128",
  "vector_cores=64..256",
  "glb_mib=4,16",
];

const {
  folder: small,
  outcome,
  designs,
} = searched(...SEARCH, ...SPACE.flatMap((knob) => ["--space", knob]));
const browser = await launch();
after(() => browser.close());

/** A copy of the small result with `change(outcome)` applied, made into a report; answers its folder. */
function variant(change) {
  const folder = join(scratch(), "result");
  mkdirSync(folder);
  const changed = structuredClone(outcome);
  change(changed);
  writeFileSync(join(folder, "outcome.json"), JSON.stringify(changed));
  writeFileSync(join(folder, "designs.csv"), readFileSync(join(small, "designs.csv")));
  phaze("report", folder);
  return folder;
}

test("a cap of power is told, and baselines that break it are marked", async () => {
  const { page } = await open(browser, join(small, "report.html"));
  assert.match(await page.locator("#answer .eyebrow").textContent(), /at most 300 W per device/);
  assert.match(await page.locator("#proof").textContent(), /at most 300 W per device/);
  const breaking = outcome.baselines.filter(({ entry }) =>
    entry?.results.some((result) => result.average_power_w > 300),
  );
  const told = (await page.locator("#baselines svg").textContent()).match(/draws\s*[\d.,]+\s*W/g) ?? [];
  assert.equal(told.length, breaking.length);
});

test("several models are told apart", async () => {
  const { page, complaints } = await open(browser, join(small, "report.html"), { width: 400 });
  const { results } = outcome.winner;
  const bests = outcome.models.map((model) => model.best_throughput_sequences_per_s);
  const shares = await page.locator("#shares text.value").allTextContents();
  assert.deepEqual(
    shares,
    results.map((one, i) => `${((100 * one.throughput_sequences_per_s) / bests[i]).toFixed(1)} %`),
  );
  for (const [i, result] of results.entries()) {
    await page.selectOption("#model", String(i));
    const shown = await page
      .locator("#plan [data-key=throughput_sequences_per_s]")
      .getAttribute("data-value");
    assert.equal(Number(shown), result.throughput_sequences_per_s);
  }
  assert.ok((await page.locator("#axis-y option").allTextContents()).includes("FLOP utilisation, gpt2-xl"));
  assert.deepEqual(await stickingOut(page), []);
  assert.deepEqual(complaints, []);
});

test("the limits of several models are those of the one that is named", async () => {
  const { page } = await open(browser, join(small, "report.html"));
  assert.match(await page.locator("#limits").textContent(), /^When it trains bert-large, the winner's time/);
});

test("of several models more is better, also under energy per token", async () => {
  const space = SPACE.flatMap((knob) => ["--space", knob]);
  const models = "--model bert-large --model gpt2-xl --objective energy-per-token".split(" ");
  const { folder, outcome, designs } = searched(...models, ...space);
  const { page, complaints } = await open(browser, join(folder, "report.html"));
  // Stepping from the winner to the next best.
  await page.locator("#scatter .canvas").focus();
  await page.keyboard.press("n");
  const row = Number(await page.locator("#plan").getAttribute("data-row"));
  const values = designs.filter((one) => best(one) === "evaluated").map((one) => Number(one.value));
  values.sort((a, b) => b - a);
  assert.equal(values[0], outcome.winner.value);
  assert.equal(Number(designs[row].value), values[1]);
  const labels = await page.locator("#axis-y option").allTextContents();
  assert.ok(labels.includes("energy per token, share of each model's own best (geomean)"), labels.join());
  assert.deepEqual(complaints, []);
});

test("a design that does not fit stands in the strip, is counted and can be opened", async () => {
  // What fits does not depend on the design, so one is written to be infeasible.
  const folder = variant(() => {});
  const rows = readFileSync(join(small, "designs.csv"), "utf8").split("\n");
  const lost = designs.length - 1;
  const names = rows[0].split(",");
  const status = (name) => (name.startsWith("status_") ? "infeasible" : "");
  // Commas within quotes part nothing.
  const cells = rows[lost + 1].split(/,(?=(?:[^"]*"[^"]*")*[^"]*$)/);
  rows[lost + 1] = cells.map((cell, at) => (at < 9 ? cell : status(names[at]))).join(",");
  writeFileSync(join(folder, "designs.csv"), rows.join("\n"));
  phaze("report", folder);
  const { page, complaints } = await open(browser, join(folder, "report.html"));
  assert.match(await page.locator("#space .counts").textContent(), /\b1 infeasible/);
  await page.mouse.click(...(await pointOf(page, lost)));
  assert.equal(Number(await page.locator("#plan").getAttribute("data-row")), lost);
  assert.match(await page.locator("#row-facts").textContent(), /infeasible/);
  assert.deepEqual(complaints, []);
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
  await finds(page.locator("main img, main script"), 0);
  assert.ok((await page.locator(".eyebrow").textContent()).includes(name));
  assert.ok((await page.title()).includes(name));
  assert.deepEqual(complaints, []);
});

test("names with control characters show them as codes", async () => {
  const folder = variant((changed) => {
    changed.request.models[0].name = "a\u001b[2Jb\u202e";
  });
  const { page } = await open(browser, join(folder, "report.html"));
  assert.ok((await page.locator(".eyebrow").textContent()).includes("a\\u{1b}[2Jb\\u{202e}"));
  assert.ok((await page.title()).includes("a\\u{1b}[2Jb\\u{202e}"));
});

test("what is missing is left out, not guessed", async () => {
  const folder = variant((changed) => {
    for (const key of ["baselines", "best_by_hbm", "pareto", "top", "sensitivities", "limited_by", "models"])
      delete changed[key];
    for (const result of changed.winner.results)
      for (const key of ["layers", "breakdown_s", "energy_per_token_j", "stages", "strategy"])
        delete result[key];
  });
  const { page, complaints } = await open(browser, join(folder, "report.html"));
  await finds(page.locator("#whatif, #models, #timeline, #memory"), 0);
  assert.equal(await page.locator("#answer [data-key=energy_per_token_j]").first().textContent(), "–");
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
  await finds(page.locator("#plan"), 0);
  assert.deepEqual(complaints, []);
});

test("two results stand side by side", async () => {
  const folder = variant((changed) => {
    changed.request.devices = 512;
    for (const result of changed.winner.results) result.throughput_sequences_per_s /= 2;
  });
  const compared = join(scratch(), "compare.html");
  phaze("report", "--compare", small, folder, "--out", compared);
  for (const width of [400, 1280]) {
    const { page, complaints } = await open(browser, compared, { width });
    assert.match(await page.locator("#answer .lead").textContent(), /0\.50× the throughput/);
    const request = await page.locator("#request tbody tr").first().textContent();
    assert.match(request, /devices.*1,024.*512.*differs/);
    assert.deepEqual(await stickingOut(page), []);
    assert.deepEqual(complaints, []);
  }
});

test("two objectives have an axis each, and the page says so", async () => {
  const single = ["--model", "bert-large", ...SPACE.flatMap((knob) => ["--space", knob])];
  const [fast, also] = [searched(...single), searched(...single, "--devices", "512")];
  const frugal = searched(...single, "--objective", "energy-per-token");
  const compared = join(scratch(), "compare.html");
  phaze("report", "--compare", fast.folder, also.folder, "--out", compared);
  const same = await open(browser, compared);
  await finds(same.page.locator("#own-axes"), 0);
  await finds(same.page.locator("#space figure"), 1);
  phaze("report", "--compare", fast.folder, frugal.folder, "--out", compared);
  const { page, complaints } = await open(browser, compared);
  assert.match(await page.locator("#own-axes").textContent(), /an axis of its own/);
  const titles = await page.locator("#space figure h3").allTextContents();
  assert.deepEqual(titles, ["throughput (sequences/s) against area", "energy per token (J) against area"]);
  assert.deepEqual(complaints, []);
});

test("a plan has its page, and its timeline ends when the batch does", async () => {
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
    const end = Number(await page.locator("#timeline").getAttribute("data-end"));
    assert.ok(Math.abs(end / time - 1) < 1e-9, `${end} is not ${time}`);
    await page.locator("#stages").getByRole("button", { name: "Table" }).click();
    await finds(page.locator("#stages tbody tr"), plan.answer.stages.length);
    assert.deepEqual(await stickingOut(page), []);
    assert.deepEqual(complaints, []);
  }
});
