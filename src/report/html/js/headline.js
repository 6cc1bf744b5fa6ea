// The answer in a minute: the chip, how it is used, how much better it is, and why to believe it.

import { baselines } from "./baselines.js";
import { chipFigure } from "./chip_figure.js";
import { el } from "./dom.js";
import {
  MISSING,
  bytes,
  capWords,
  count,
  isNumber,
  joules,
  number,
  overCap,
  percent,
  ratio,
  scaled,
  seconds,
  sentence,
  squareMillimetres,
  strategyWords,
} from "./format.js";

/** The first section of the page. */
export function headline({ outcome }) {
  const { winner, request = {} } = outcome;
  const models = (request.models ?? []).map((model) => model.name).join(", ");
  const asked = [
    models,
    request.devices && `${number(request.devices)} devices`,
    request.global_batch && `global batch ${number(request.global_batch)}`,
    capWords(request),
    basisWords(winner),
  ]
    .filter(Boolean)
    .join("  ·  ");
  if (!winner) {
    return el(
      "section",
      { id: "answer" },
      el("p", { class: "eyebrow" }, asked),
      el(
        "h1",
        {},
        outcome.proof?.stopped_by ? "Stopped before anything was found" : "Nothing in the space fits",
      ),
      el("p", { class: "lead" }, outcome.infeasible_reason ?? ""),
      proof(outcome),
    );
  }
  const real = yardstick(outcome);
  return el(
    "section",
    { id: "answer" },
    el("p", { class: "eyebrow" }, asked),
    el("h1", {}, title(winner.design)),
    el("p", { class: "lead" }, comparison(outcome, real)),
    figures(winner),
    el(
      "p",
      { class: "strategy" },
      winner.results.map((result) =>
        el(
          "span",
          {},
          winner.results.length > 1 && el("b", {}, `${result.model}: `),
          strategyWords(result, request.devices),
        ),
      ),
    ),
    el("div", { class: "two" }, chips(winner, real), baselines(outcome)),
    proof(outcome),
  );
}

function title(design) {
  return (
    `${count(design.tensor_cores, "tensor core")} of ${design.width}×${design.depth}, ` +
    `${number(design.vector_cores * design.vector_width)} vector lanes, ${bytes(design.glb_bytes)} of buffer`
  );
}

/** The baseline that the chip is drawn beside: the real TPUv4 where it is there. */
export function yardstick(outcome) {
  const baselines = outcome.baselines.filter((baseline) => baseline.entry);
  return baselines.find(isReal) ?? baselines[0] ?? null;
}

const OBJECTIVES = { "throughput-per-area": "throughput per area", "energy-per-token": "energy per token" };

/** What the winner gains over the chip that it is drawn beside, and over the first baseline. */
function comparison({ winner, baselines, request }, real) {
  if (!real) return `${squareMillimetres(winner.design.area_um2)} at 22 nm.`;
  const objective = winner.results.length === 1 && OBJECTIVES[request?.objective];
  const gains = [
    objective && `${ratio(winner.value / real.entry.value)} the ${objective}`,
    `${ratio(real.winner_ratio)} the throughput${winner.results.length > 1 ? " (geometric mean of the models)" : ""}`,
  ].filter(Boolean);
  const [first] = baselines;
  const over = ({ entry }) => {
    const told = overCap(request, entry);
    return told && ` (which ${told})`;
  };
  return [
    el("strong", {}, gains.join(" and ")),
    ` of ${isReal(real) ? "the real TPUv4 with the best placement on it" : sentence(real.description)}${over(real)}, in `,
    el("strong", {}, `${ratio(winner.design.area_um2 / real.entry.design.area_um2)} its area`),
    first !== real &&
      first.entry &&
      `; ${ratio(first.winner_ratio)} the throughput of ${sentence(first.description)}${over(first)}`,
    ".",
  ];
}

function isReal(baseline) {
  return baseline.entry.design.name === "tpuv4";
}

/** What the times of an entry rest on, in words; empty where nothing is said. */
function basisWords(entry) {
  const basis = entry?.results?.[0]?.rests_on;
  return basis ? `times rest on ${basis}` : "";
}

/** The key figures of an entry; several models get a row each. */
export function figures(entry) {
  const several = entry.results.length > 1;
  return entry.results.map((result) => [
    several && el("p", { class: "modelname" }, result.model),
    el(
      "dl",
      { class: "figures", "data-model": result.model },
      tile(
        "Throughput",
        number(result.throughput_sequences_per_s),
        "seq/s",
        "throughput_sequences_per_s",
        result,
      ),
      tile("Tokens", scaled(result.tokens_per_s, "/s"), "", "tokens_per_s", result),
      tile("Time per batch", seconds(result.time_per_batch_s), "", "time_per_batch_s", result),
      tile("FLOP utilisation", percent(result.mfu), "of devices in use", "mfu", result),
      tile("Energy per token", joules(result.energy_per_token_j), "", "energy_per_token_j", result),
      tile(
        "Power per device",
        isNumber(result.average_power_w) ? `${number(result.average_power_w, 3)} W` : MISSING,
        "",
        "average_power_w",
        result,
      ),
    ),
  ]);
}

function tile(name, shown, unit, key, result) {
  return el(
    "div",
    {},
    el("dt", {}, name),
    el(
      "dd",
      { "data-key": key, "data-value": result[key] ?? "" },
      shown,
      unit && el("small", {}, ` ${unit}`),
    ),
  );
}

function chips(winner, real) {
  const drawn = [
    { name: "This chip", design: winner.design },
    real && {
      name: isReal(real) ? "Real TPUv4" : real.name,
      design: real.entry.design,
    },
  ].filter(Boolean);
  return chipFigure(drawn, "chips", "Drawn to scale");
}

function proof(outcome) {
  const found = outcome.proof;
  if (!found) return null;
  const [verdict, ...counts] = sentence(found.statement).split(": ");
  return el(
    "p",
    { class: found.complete ? "proof" : "proof open" },
    el("span", { class: "mark", "aria-hidden": "true" }, found.complete ? "✓" : "…"),
    el(
      "span",
      {},
      el("strong", {}, verdict),
      counts.length > 0 && `: ${counts.join(": ")}`,
      " ",
      el("a", { href: "#proof" }, "See the counts"),
    ),
  );
}
