// The page of one search: sections, and the selection that joins them.

import { openingCommand } from "./command.js";
import { el, refill } from "./dom.js";
import { MISSING, number } from "./format.js";
import { headline } from "./headline.js";
import { layerPanels } from "./layer.js";
import { entryName, planPanels, rowPanel } from "./plan.js";
import { limits, proofSection } from "./proof.js";
import { space } from "./space.js";
import { severalModels, whatIf } from "./whatif.js";

/** Fills `main`; answers the sections' names for the navigation. */
export function searchPage(main, result) {
  const { outcome, designs } = result;
  const choices = known(outcome);
  const state = { row: outcome.winner?.design.index ?? null, choice: choices[0] ?? null, model: 0 };
  const plan = el("section", { id: "plan" });
  const layer = el("section", { id: "layer" });

  /** Selects an entry that is held in full, or a row of designs.csv. */
  function select({ row, choice }) {
    if (choice) {
      state.choice = choice;
      state.row = choice.entry.design.index ?? null;
    } else {
      state.row = row;
      // The winner before a namesake in a list: choices are in order of importance. A row tells of its
      // best memory size, so the same design with another is not what was picked.
      const hbm = designs.column("best_hbm_gib")?.[row];
      const picked = ({ entry: { design } }) => design.index === row && design.hbm_bytes === hbm * 2 ** 30;
      state.choice = choices.find(picked) ?? null;
    }
    show();
    main.querySelector("#scatter")?.selected();
  }

  function show() {
    const { choice } = state;
    const picker = el(
      "select",
      {
        id: "selection",
        "aria-label": "Design to show",
        onchange: (event) => select({ choice: choices[event.target.value] }),
      },
      !choice && el("option", { selected: true }, `design ${number(state.row)}`),
      choices.map((one, i) => el("option", { value: i, selected: one === choice }, one.name)),
    );
    const result1 = choice?.entry.results[Math.min(state.model, choice.entry.results.length - 1)];
    const models =
      (outcome.request?.models ?? []).length > 1 &&
      choice &&
      el(
        "label",
        {},
        "model",
        el(
          "select",
          {
            id: "model",
            onchange: (event) => {
              state.model = Number(event.target.value);
              show();
            },
          },
          choice.entry.results.map((one, i) =>
            el("option", { value: i, selected: one === result1 }, one.model),
          ),
        ),
      );
    refill(
      plan,
      el("h2", {}, "The plan"),
      el("div", { class: "controls" }, el("label", {}, "design", picker), models),
      choice ? el("p", { class: "lead", id: "plan-design" }, entryName(choice.entry)) : null,
      choice
        ? planPanels(result1, comparisons(choice, result1), outcome.request?.devices)
        : state.row === null
          ? el("p", {}, MISSING)
          : rowPanel(result, state.row, openingCommand(result, state.row, state.model)),
    );
    plan.dataset.row = state.row ?? "";
    refill(layer, choice && [el("h2", {}, "The layer"), layerPanels(choice.entry.design, result1)]);
    layer.hidden = !choice;
  }

  /** The winner and the baselines, to set the selected plan's time against. */
  function comparisons(choice, chosen) {
    return choices
      .filter(({ yardstick }) => yardstick)
      .filter((one) => one !== choice)
      .map(({ name, entry }) => ({ name, result: entry.results.find((one) => one.model === chosen.model) }))
      .filter((one) => one.result);
  }

  if (state.choice) show();
  main.append(headline(result));
  main.querySelector("#answer").append(...[limits(outcome)].filter(Boolean));
  if (designs.n > 0) main.append(space(result, state, select));
  main.append(
    ...[
      state.choice && plan,
      state.choice && layer,
      whatIf(outcome),
      severalModels(outcome),
      proofSection(result),
    ].filter(Boolean),
  );
  return [
    ["answer", "Answer"],
    ["space", "Space"],
    ["plan", "Plan"],
    ["layer", "Layer"],
    ["whatif", "What if"],
    ["models", "Models"],
    ["proof", "Proof"],
  ].filter(([id]) => main.querySelector(`#${id}`));
}

/** Every entry that is held in full, under the name by which it can be chosen. */
function known(outcome) {
  const list = [
    { name: "the winner", entry: outcome.winner, yardstick: true },
    ...outcome.baselines.map(({ name, entry }) => ({ name, entry, yardstick: true })),
    ...outcome.best_by_hbm.map(({ hbm_gib: size, entry }) => ({
      name: `best with ${number(size)} GiB`,
      entry,
    })),
    ...outcome.top.entries.map((entry, i) => ({ name: `number ${i + 1}`, entry })),
    ...outcome.pareto.entries.map((entry, i) => ({ name: `Pareto front, ${i + 1}`, entry })),
  ];
  return list.filter(({ entry }) => entry?.results?.length);
}
