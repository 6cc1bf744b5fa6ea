// Which designs are shown: by status and by the value of each knob.

import { KNOBS } from "./axes.js";
import { STATUSES } from "./decode.js";
import { el } from "./dom.js";
import { number } from "./format.js";

/** The knobs by which designs can be filtered, each with its values in order. */
export function filters({ designs }) {
  return [...KNOBS, ["best_hbm_gib", "HBM of the best plan (GiB)"], ["recompute", "recompute"]]
    .map(([key, label]) => ({ key, label, column: designs.column(key) }))
    .filter(({ column }) => column)
    .map((filter) => ({
      ...filter,
      values: [...new Set(filter.column)].filter((v) => v !== null && v !== "").sort(order),
    }))
    .filter(({ values }) => values.length > 1);
}

/** Check boxes that keep the sets of `off`: what is unchecked is in them. */
export function filterPanel(knobs, designs, off, changed) {
  const box = (label, set, value) =>
    el(
      "label",
      { class: "chipbox" },
      el("input", {
        type: "checkbox",
        checked: true,
        onchange: (event) => {
          event.target.checked ? set.delete(value) : set.add(value);
          changed();
        },
      }),
      label,
    );
  const statuses = STATUSES.map((name, status) => [name, status]).filter(([, status]) =>
    designs.status.includes(status),
  );
  const row = (label, key, boxes) => el("fieldset", { "data-filter": key }, el("legend", {}, label), boxes);
  return el(
    "details",
    { class: "filters" },
    el("summary", {}, "Filter designs"),
    row(
      "status",
      "status",
      statuses.map(([name, status]) => box(name, off.status, status)),
    ),
    knobs.map(({ key, label, values }) =>
      row(
        label,
        key,
        values.map((value) =>
          box(typeof value === "number" ? number(value) : value, off.knob.get(key), value),
        ),
      ),
    ),
  );
}

function order(a, b) {
  return typeof a === "number" && typeof b === "number" ? a - b : String(a).localeCompare(String(b));
}
