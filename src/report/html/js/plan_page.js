// The page of one plan, as `phaze place` writes it beside plan.json.

import { advice } from "./advice.js";
import { breakdown } from "./breakdown.js";
import { el } from "./dom.js";
import { MISSING, adopt, number, percent, scaled, seconds, sentence } from "./format.js";
import { memory, stages } from "./stages.js";
import { timeline } from "./timeline.js";

/** Fills `main`; answers the navigation. */
export function planPage(main, plan) {
  adopt(plan.units);
  const { result } = plan;
  main.append(
    el(
      "section",
      { id: "answer" },
      el("p", { class: "eyebrow" }, plan.question),
      el("h1", {}, plan.name),
      el("p", { class: "strategy", id: "plan-strategy" }, sentence(result.strategy.sentence)),
      tiles(plan),
      plan.warning && el("p", { class: "lead", id: "warning" }, el("strong", {}, "Warning: "), plan.warning),
      el(
        "p",
        { class: plan.proved ? "proof" : "proof open" },
        el("span", { class: "mark", "aria-hidden": "true" }, plan.proved ? "✓" : "…"),
        el("span", {}, plan.proof, " Check it again: ", el("code", {}, `phaze check ${plan.file}`)),
      ),
    ),
    el(
      "section",
      { id: "plan" },
      el("h2", {}, "The pipeline"),
      timeline(result),
      el("div", { class: "two" }, breakdown(result, []), memory(result)),
      stages(result),
    ),
    ...advice(plan).filter(Boolean),
  );
  const told = plan.advice
    ? [["run", "Run"], plan.advice.curve && ["scaling", "Devices"], ["beside", "Beside"], ["launch", "Launch"]]
    : [];
  return [
    ["answer", "Answer"],
    ["timeline", "Timeline"],
    ["memory", "Memory"],
    ["stages", "Stages"],
    ...told.filter(Boolean),
  ];
}

/** The figures that a plan has; a user's own profile knows no sequences. */
function tiles({ result, devices }) {
  const { strategy } = result;
  const all = [
    ["Time per batch", seconds(result.time_per_batch_s), "time_per_batch_s"],
    ["Simulated", seconds(result.simulated_time_per_batch_s), "simulated_time_per_batch_s"],
    ["Throughput", number(result.throughput_sequences_per_s), "throughput_sequences_per_s", "seq/s"],
    ["Tokens", scaled(result.tokens_per_s, "/s"), "tokens_per_s"],
    ["Tokens per device", scaled(result.tokens_per_s_per_device, "/s"), "tokens_per_s_per_device"],
    ["Computing per device", scaled(result.flops_per_s_per_device, "", 3), "flops_per_s_per_device", "FLOP/s"],
    ["FLOP utilisation", percent(result.mfu), "mfu", "of devices in use"],
    ["Causal utilisation", percent(result.mfu_causal), "mfu_causal"],
    ["Devices", number(strategy.devices_used), "devices_used", `of ${number(devices)}`],
    ["Expert parallel", number(strategy.expert_parallel), "expert_parallel", "devices"],
    ["Devices of an expert", number(strategy.expert_tensor), "expert_tensor"],
    ["Load of experts", number(result.expert_load), "expert_load", "x even"],
    ["To experts and back", seconds(result.to_experts_s), "to_experts_s", "hidden or not"],
    ["Bubble", percent(result.breakdown_s.bubble / result.time_per_batch_s), "bubble"],
  ];
  const known = all.filter(([, shown]) => shown !== MISSING);
  return el(
    "dl",
    { class: "figures" },
    known.map(([name, shown, key, unit]) =>
      el(
        "div",
        {},
        el("dt", {}, name),
        el(
          "dd",
          { "data-key": key, "data-value": result[key] ?? strategy[key] ?? "" },
          shown,
          unit && el("small", {}, ` ${unit}`),
        ),
      ),
    ),
  );
}
