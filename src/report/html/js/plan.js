// How the selected design is used: strategy, pipeline, memory, and where the time goes.

import { describe, resultsOf } from "./axes.js";
import { breakdown } from "./breakdown.js";
import { el } from "./dom.js";
import { bytes, chipName, number, strategyWords } from "./format.js";
import { figures } from "./headline.js";
import { memory, stages } from "./stages.js";
import { timeline } from "./timeline.js";

/** The panels of an entry that is held in full. `others` are entries to compare its time with. */
export function planPanels(result, others, devices) {
  return [
    el("p", { class: "strategy", id: "plan-strategy" }, strategyWords(result, devices)),
    figures({ results: [result] }),
    timeline(result),
    el("div", { class: "two" }, breakdown(result, others), memory(result)),
    stages(result),
  ];
}

/** The panel of a design of which only the row in designs.csv is known. */
export function rowPanel(result, row, command) {
  const copy = el(
    "button",
    {
      type: "button",
      class: "tool",
      onclick: () =>
        navigator.clipboard?.writeText(command).then(() => {
          copy.textContent = "Copied";
        }),
    },
    "Copy",
  );
  return [
    el(
      "dl",
      { class: "facts", id: "row-facts" },
      describe(result, row).map(([name, text]) => el("div", {}, el("dt", {}, name), el("dd", {}, text))),
    ),
    resultsOf(result, row).map((known) => [
      el("p", { class: "strategy" }, strategyWords(known, result.outcome.request.devices)),
      figures({ results: [known] }),
    ]),
    el("div", { class: "rowcells" }, rowCells(result.designs, row)),
    el(
      "p",
      { class: "lead" },
      "The winner, the baselines, the Pareto front and the top 20 are kept in full. This command opens this design:",
    ),
    el("div", { class: "command" }, el("code", { id: "command" }, command), copy),
  ];
}

/** All cells of a row of designs.csv that are not empty. */
function rowCells(designs, row) {
  const cells = designs.names
    .map((name) => [name, designs.column(name)[row]])
    .filter(([, value]) => value !== null && value !== "");
  return el(
    "details",
    {},
    el("summary", {}, "The whole row of designs.csv"),
    el(
      "dl",
      { class: "cells" },
      cells.map(([name, value]) => [
        el("dt", {}, name),
        el("dd", { "data-cell": name }, typeof value === "number" ? number(value, 6) : value),
      ]),
    ),
  );
}

/** A line that names an entry. */
export function entryName(entry) {
  return `${entry.design.name ? `${entry.design.name}: ` : ""}${chipName(entry.design)}, ${bytes(entry.design.hbm_bytes)} HBM`;
}
