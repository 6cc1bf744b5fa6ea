// What the scatter can show along an axis or as colour: knobs, results, and the objective.

import { STATUSES, lessIsBetter } from "./decode.js";
import { bytes, degreeOf, isNumber, joules, number, percent, scaled, seconds } from "./format.js";

export const KNOBS = [
  ["tensor_cores", "tensor cores"],
  ["width", "array width"],
  ["depth", "array depth"],
  ["vector_cores", "vector cores"],
  ["vector_width", "vector lanes per core"],
  ["glb_mib", "global buffer (MiB)"],
];

const RESULTS = [
  ["throughput_sequences_per_s", "throughput (sequences/s)", number],
  ["tokens_per_s", "tokens/s", (value) => scaled(value, "/s")],
  ["time_per_batch_s", "time per batch", seconds],
  ["energy_per_token_j", "energy per token", joules],
  ["mfu", "FLOP utilisation", percent],
  ["average_power_w", "power per device (W)", number],
  ["data_parallel", "pipelines (data parallel)", number],
  ["pipeline", "pipeline ranks", number],
  ["chunks", "chunks of a rank", number],
  ["tensor_parallel", "tensor-parallel width", number],
  ["context_parallel", "context-parallel degree", number],
  ["expert_parallel", "expert-parallel degree", number],
  ["expert_tensor", "devices of an expert", number],
  ["micro_batch", "micro-batch", number],
  ["zero", "ZeRO stage", number],
  ["devices_used", "devices used", number],
];

const OBJECTIVES = {
  throughput: "throughput (sequences/s)",
  "throughput-per-area": "throughput per area (sequences/s/mm²)",
  "energy-per-token": "energy per token (J)",
};

/**
 * All measures of a result: `{ key, label, of(row), show, discrete, linear? }`. `of` is null where a design
 * has no such value; the objective answers a pruned design's bound instead.
 */
export function measures({ outcome, designs }) {
  const column = (name) => designs.column(name);
  const value = column("value");
  const found = [
    {
      key: "objective",
      label: objectiveLabel(outcome),
      show: number,
      discrete: false,
      bounds: true,
      of: (row) => finite(designs.status[row] === 0 ? value?.[row] : atBest({ outcome, designs }, row)),
    },
  ];
  const area = column("area_um2");
  if (area)
    found.push({
      key: "area",
      label: "area (mm²)",
      show: number,
      discrete: false,
      linear: true,
      of: (row) => area[row] / 1e6,
    });
  for (const [key, label] of KNOBS) add(key, key, label, number, true);
  add("best_hbm_gib", "best_hbm_gib", "HBM of the best plan (GiB)", number, true);
  if (column("tensor_cores") && column("width") && column("depth")) {
    const [n, width, depth] = ["tensor_cores", "width", "depth"].map(column);
    found.push({
      key: "macs",
      label: "multiply-accumulators",
      show: number,
      discrete: true,
      of: (row) => n[row] * width[row] * depth[row],
    });
  }
  // Of one model, the objective may be a result itself: it is listed once.
  const alone = (outcome.request?.models ?? []).length === 1;
  const same = alone && { throughput: RESULTS[0][0], "energy-per-token": "energy_per_token_j" };
  for (const [key, label, show] of RESULTS) {
    if (same && same[outcome.request.objective] === key) continue;
    const discrete = show === number && !["throughput_sequences_per_s", "average_power_w"].includes(key);
    if (column(key)) add(key, key, label, show, discrete);
    else
      for (const model of outcome.request?.models ?? [])
        add(`${key}:${model.name}`, `${key}:${model.name}`, `${label}, ${model.name}`, show, discrete);
  }

  function add(key, name, label, show, discrete) {
    const values = column(name);
    if (values) found.push({ key, label, show, discrete, of: (row) => finite(values[row]) });
  }
  return found;
}

/**
 * The best that a design without a value of its own could reach: its bound, which may be better than the winner
 * where it was looked at and beaten, by more than 2 %.
 */
function atBest({ outcome, designs }, row) {
  const bound = designs.bound[row];
  const winner = outcome.winner?.value;
  if (STATUSES[designs.status[row]] !== "beaten" || winner === undefined) return bound;
  return lessIsBetter(outcome) ? Math.max(bound, winner * 1.02) : Math.min(bound, winner / 1.02);
}

/** A row of designs.csv as label and text, for the hover and the panel of a design. */
export function describe({ outcome, designs }, row) {
  const at = (name) => designs.column(name)?.[row];
  const facts = [
    ["design", number(at("design") ?? row)],
    ["status", STATUSES[designs.status[row]]],
    ["tensor cores", `${number(at("tensor_cores"))} × ${at("width")}×${at("depth")}`],
    ["vector cores", `${number(at("vector_cores"))} × ${number(at("vector_width"))}`],
    ["global buffer", bytes((at("glb_mib") ?? NaN) * 2 ** 20)],
    ["area", `${number(at("area_um2") / 1e6)} mm²`],
  ];
  const objective = objectiveLabel(outcome);
  if (designs.status[row] === 0)
    facts.push([objective, number(at("value"))], ["HBM", `${number(at("best_hbm_gib"))} GiB`]);
  else if (isNumber(designs.bound[row]))
    facts.push([`${objective}, at best`, number(atBest({ outcome, designs }, row))]);
  return facts;
}

/** What a row says of training each model, as an entry would say it; empty where nothing is known. */
export function resultsOf({ outcome, designs }, row) {
  if (designs.status[row] !== 0) return [];
  return (outcome.request?.models ?? []).map(({ name }) => {
    const at = (key) => (designs.column(key) ?? designs.column(`${key}:${name}`))?.[row] ?? null;
    const keys = [...RESULTS.map(([key]) => key), "recompute"];
    const told = Object.fromEntries(keys.map((key) => [key, at(key)]));
    return { model: name, ...told, strategy: { ...told, sentence: at("strategy") } };
  });
}

/** The objective with its unit; of several models, how they became one number. */
export function objectiveLabel({ request }) {
  const label = OBJECTIVES[request?.objective] ?? "objective";
  if ((request?.models ?? []).length < 2) return label;
  if (request.combine === "mean") return `mean ${label} of all models`;
  return `${label.replace(/ \(.*\)$/, "")}, share of each model's own best (${request.combine ?? "joined"})`;
}

/** The value of a measure for an entry that may not be a row of the table, such as a baseline. */
export function ofEntry(key, { design, value, results }) {
  const known = {
    objective: value,
    area: design.area_um2 / 1e6,
    glb_mib: design.glb_bytes / 2 ** 20,
    best_hbm_gib: design.hbm_bytes / 2 ** 30,
    macs: design.tensor_cores * design.width * design.depth,
  };
  const [name, model] = key.split(/:(.*)/s);
  const result = model === undefined ? results[0] : results.find((one) => one.model === model);
  const found = known[name] ?? design[name] ?? result?.[name] ?? degreeOf(result, name);
  return typeof found === "number" && Number.isFinite(found) ? found : null;
}

/** Whether more of a measure is better. */
export function grows(key, outcome) {
  if (key === "objective") return !lessIsBetter(outcome);
  return ["throughput_sequences_per_s", "tokens_per_s", "mfu"].includes(key.split(":")[0]);
}

function finite(value) {
  return isNumber(value) ? value : null;
}
