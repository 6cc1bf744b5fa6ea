// Why to believe it: the counts per memory size, the best of each, and the request itself.

import { el } from "./dom.js";
import { capWords, chipName, isNumber, number, percent, sentence } from "./format.js";
import { table } from "./table.js";

/** The last section. */
export function proofSection({ outcome }) {
  const { proof, request } = outcome;
  const best = outcome.best_by_hbm;
  return el(
    "section",
    { id: "proof" },
    el("h2", {}, "The proof"),
    el("p", { class: "lead" }, sentence(proof?.statement ?? "This result carries no proof.")),
    proof?.complete &&
      outcome.winner &&
      el("p", {}, "The winner is optimal within this model, this space and these strategies."),
    capWords(request) &&
      el(
        "p",
        {},
        `Asked for were designs that draw ${capWords(request)} on average; a design that draws more counts as infeasible.`,
      ),
    (proof?.by_hbm ?? []).length > 0 &&
      table({
        caption: "Designs per memory size",
        columns: [
          { name: "HBM", show: (value) => `${number(value)} GiB` },
          { name: "evaluated" },
          { name: "beaten" },
          { name: "ruled out by bound" },
          { name: "infeasible" },
          { name: "not looked at" },
          { name: "best value" },
          { name: "best bound ruled out" },
          { name: "gap", show: (value) => percent(value, 2) },
        ],
        rows: proof.by_hbm.map((row) => [
          row.hbm_gib,
          row.evaluated,
          row.beaten ?? 0,
          row.pruned,
          row.infeasible,
          row.open ?? 0,
          row.best_value ?? null,
          row.best_pruned_bound ?? null,
          row.gap ?? null,
        ]),
      }),
    best.length > 0 && [
      el("h3", {}, "The best at each memory size"),
      table({
        caption: "The best at each memory size",
        columns: [
          { name: "HBM", show: (value) => `${number(value)} GiB` },
          { name: "chip" },
          { name: "objective" },
          { name: "strategy" },
        ],
        rows: best.map(({ hbm_gib: size, entry }) => [
          size,
          entry ? chipName(entry.design) : "nothing fits",
          entry?.value ?? null,
          entry?.results.map((result) => sentence(result.strategy?.sentence)).join("; ") ?? null,
        ]),
      }),
    ],
    el(
      "p",
      { class: "lead" },
      "Check again what can be checked without any solver, in the directory of this page: ",
      el("code", {}, "phaze check outcome.json"),
    ),
    el(
      "details",
      { class: "fold" },
      el("summary", {}, "The request"),
      el("pre", { class: "request" }, JSON.stringify(request ?? {}, null, 2)),
    ),
    el("p", { class: "note" }, `Made by phaze ${outcome.phaze ?? ""} from outcome.json and designs.csv.`),
  );
}

/** The limits of the winner's time in one line, largest first. */
export function limits(outcome) {
  const found = (outcome.limited_by ?? []).filter((item) => isNumber(item.share) && item.share > 0);
  if (found.length === 0) return null;
  const sorted = [...found].sort((a, b) => b.share - a.share);
  return el(
    "p",
    { class: "note", id: "limits" },
    (outcome.winner?.results ?? []).length > 1
      ? `When it trains ${outcome.winner.results[0].model}, the winner's time is spent on: `
      : "The winner's time is spent on: ",
    sorted.map((item) => `${item.what.replaceAll("_", " ")} ${percent(item.share, 0)}`).join(", "),
    ".",
  );
}
