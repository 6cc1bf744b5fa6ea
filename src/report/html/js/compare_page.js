// Two results side by side: what was asked, what was found, and where the time goes.

import { breakdown } from "./breakdown.js";
import { chipFigure } from "./chip_figure.js";
import { el } from "./dom.js";
import {
  MISSING,
  bytes,
  chipName,
  degreeOf,
  isNumber,
  joules,
  number,
  percent,
  ratio,
  scaled,
  seconds,
  sentence,
  squareMillimetres,
  strategyWords,
  words,
} from "./format.js";
import { fronts } from "./fronts.js";
import { table } from "./table.js";

/** Fills `main` for the pair; answers the navigation. */
export function comparePage(main, [a, b]) {
  const names = a.name === b.name ? ["first", "second"] : [a.name, b.name];
  const winners = [a, b].map(({ outcome }) => outcome.winner);
  const devices = [a, b].map(({ outcome }) => outcome.request?.devices);
  main.append(
    el(
      "section",
      { id: "answer" },
      el("p", { class: "eyebrow" }, "Comparison"),
      el("h1", {}, `${names[0]} and ${names[1]}`),
      el("p", { class: "lead" }, verdict(winners, names)),
      winners.every(Boolean) &&
        chipFigure(
          winners.map((winner, i) => ({ name: names[i], design: winner.design })),
          "chips",
          "The two chips, to one scale",
        ),
      el("h3", {}, "What was found"),
      measureTable(winners, names),
      [a, b].map(({ outcome }, i) =>
        el(
          "p",
          { class: outcome.proof?.complete ? "proof" : "proof open" },
          el("span", { class: "mark" }, outcome.proof?.complete ? "✓" : "…"),
          el("span", {}, el("strong", {}, `${names[i]}: `), sentence(outcome.proof?.statement ?? MISSING)),
        ),
      ),
    ),
  );
  main.append(
    el(
      "section",
      { id: "request" },
      el("h2", {}, "What was asked"),
      requestTable(a.outcome.request, b.outcome.request, names),
    ),
  );
  if (winners.every(Boolean))
    main.append(el("section", { id: "time" }, el("h2", {}, "The plans"), plans(winners, names, devices)));
  main.append(el("section", { id: "space" }, el("h2", {}, "The fronts"), fronts([a, b], names)));
  return [
    ["answer", "Found"],
    ["request", "Asked"],
    ["time", "Plans"],
    ["space", "Fronts"],
  ].filter(([id]) => main.querySelector(`#${id}`));
}

function verdict(winners, names) {
  if (!winners.every(Boolean))
    return winners
      .map((winner, i) => `${names[i]}: ${winner ? chipName(winner.design) : "nothing fits"}`)
      .join(". ");
  const shared = winners[1].results
    .map((result) => [result, winners[0].results.find((one) => one.model === result.model)])
    .filter(([, other]) => other);
  return shared.length === 0
    ? "The two train different models."
    : shared
        .map(
          ([result, other]) =>
            `${result.model}: ${names[1]} reaches ${ratio(result.throughput_sequences_per_s / other.throughput_sequences_per_s)} the throughput of ${names[0]}`,
        )
        .join("; ") + `, in ${ratio(winners[1].design.area_um2 / winners[0].design.area_um2)} its area.`;
}

const DESIGN = [
  ["tensor cores", (d) => d.tensor_cores, number],
  ["array width", (d) => d.width, number],
  ["array depth", (d) => d.depth, number],
  ["vector cores", (d) => d.vector_cores, number],
  ["vector lanes per core", (d) => d.vector_width, number],
  ["global buffer", (d) => d.glb_bytes, bytes],
  ["HBM", (d) => d.hbm_bytes, bytes],
  ["area", (d) => d.area_um2, squareMillimetres],
  ["peak", (d) => d.peak_flops_per_s, (value) => scaled(value, "FLOP/s")],
];
const RESULT = [
  ["throughput (sequences/s)", (r) => r.throughput_sequences_per_s, number],
  ["tokens/s", (r) => r.tokens_per_s, (value) => scaled(value, "")],
  ["time per batch", (r) => r.time_per_batch_s, seconds],
  ["FLOP utilisation", (r) => r.mfu, percent],
  ["energy per token", (r) => r.energy_per_token_j, joules],
  ["power per device (W)", (r) => r.average_power_w, number],
  ["pipelines", (r) => degreeOf(r, "data_parallel"), number],
  ["pipeline ranks", (r) => degreeOf(r, "pipeline"), number],
  ["chunks of a rank", (r) => degreeOf(r, "chunks"), number],
  ["tensor-parallel width", (r) => degreeOf(r, "tensor_parallel"), number],
  ["context-parallel degree", (r) => degreeOf(r, "context_parallel"), number],
  ["expert-parallel degree", (r) => degreeOf(r, "expert_parallel"), number],
  ["devices of an expert", (r) => degreeOf(r, "expert_tensor"), number],
  ["micro-batch", (r) => degreeOf(r, "micro_batch"), number],
  ["ZeRO stage", (r) => degreeOf(r, "zero"), number],
  ["recompute", (r) => degreeOf(r, "recompute"), String],
  ["devices used", (r) => r.strategy?.devices_used, number],
];

function measureTable(winners, names) {
  const row = (label, values, show) => [
    label,
    ...values.map((value) => (value === undefined || value === null ? null : show(value))),
    values.every(isNumber) && values[0] !== 0 ? ratio(values[1] / values[0]) : null,
  ];
  const models = [
    ...new Set(winners.flatMap((winner) => winner?.results.map((result) => result.model) ?? [])),
  ];
  const rows = [
    ...DESIGN.map(([label, of, show]) =>
      row(
        label,
        winners.map((winner) => winner && of(winner.design)),
        show,
      ),
    ),
    ...models.flatMap((model) =>
      RESULT.map(([label, of, show]) =>
        row(
          models.length > 1 ? `${label}, ${model}` : label,
          winners.map((winner) => {
            const found = winner?.results.find((result) => result.model === model);
            return found && of(found);
          }),
          show,
        ),
      ),
    ),
  ];
  return table({
    caption: "The two winners",
    columns: ["", ...names, `${names[1]} / ${names[0]}`].map((name) => ({ name })),
    rows: rows.filter((cells) => cells[1] !== null || cells[2] !== null),
  });
}

/** Keys of the two requests, those that differ first. */
function requestTable(a = {}, b = {}, names) {
  const text = (value) => {
    if (value === undefined || value === null) return null;
    if (Array.isArray(value)) return value.map(text).join(", ") || null;
    if (typeof value === "number") return number(value);
    if (typeof value !== "object") return String(value);
    const told = Object.entries(value).map(([key, part]) => named(key, part));
    return told.filter(Boolean).join("; ") || null;
  };
  const named = (key, value) => {
    const told = text(value);
    if (told === null || key === "name") return told;
    if (key.endsWith("_nm2")) return `${words(key.slice(0, -4))} ${squareMillimetres(value / 1e6)}`;
    return `${words(key)} ${told}`;
  };
  const rows = [...new Set([...Object.keys(a), ...Object.keys(b)])]
    .sort()
    .map((key) => [
      words(key),
      text(a[key]),
      text(b[key]),
      text(a[key]) === text(b[key]) ? "same" : "differs",
    ])
    .filter(([, ...told]) => told[0] !== null || told[1] !== null);
  rows.sort((x, y) => (x[3] === "same") - (y[3] === "same"));
  return table({ caption: "The two requests", columns: ["", ...names, ""].map((name) => ({ name })), rows });
}

function plans(winners, names, devices) {
  const models = winners[0].results
    .map((result) => result.model)
    .filter((model) => winners[1].results.some((result) => result.model === model));
  const pairs = models.map((model) =>
    winners.map((winner) => winner.results.find((result) => result.model === model)),
  );
  return pairs.map(([first, second]) =>
    el(
      "div",
      {},
      [first, second].map((result, i) =>
        el("p", { class: "strategy" }, el("b", {}, `${names[i]}: `), strategyWords(result, devices[i])),
      ),
      breakdown(first, [{ name: names[1], result: second }], names[0]),
    ),
  );
}
