// A sortable table, shown a page at a time so that 30,000 rows cost no more than 50.

import { el, refill } from "./dom.js";
import { MISSING, number } from "./format.js";

const PAGE = 50;

/**
 * Columns are `{ name, align?, show? }`, rows arrays of raw values in the same order.
 * `pick(row index)`, where given, makes rows clickable; `picked` is the row to mark.
 */
export function table({ caption, columns, rows, pick, picked }) {
  const order = rows.map((_, index) => index);
  const state = { column: null, down: false, page: 0, picked };
  const body = el("tbody");
  const foot = el("div", { class: "pager" });
  const heads = columns.map((column, at) =>
    el(
      "th",
      { scope: "col", class: numeric(at) ? "number" : null },
      el("button", { type: "button", class: "sort", onclick: () => sort(at) }, column.name),
    ),
  );
  const root = el(
    "div",
    { class: "tablebox" },
    el(
      "div",
      { class: "scroll", tabindex: "0", role: "region", "aria-label": caption },
      el(
        "table",
        {},
        el("caption", { class: "hidden" }, caption),
        el("thead", {}, el("tr", {}, heads)),
        body,
      ),
    ),
    foot,
  );

  function numeric(at) {
    return rows.some((row) => typeof row[at] === "number");
  }

  function sort(at) {
    state.down = state.column === at ? !state.down : numeric(at);
    state.column = at;
    state.page = 0;
    const sign = state.down ? -1 : 1;
    // Missing values stay at the end whichever way the column runs; ties keep their order.
    order.sort((a, b) => {
      const [x, y] = [rows[a][at], rows[b][at]];
      const missing = (x === null || x === undefined) - (y === null || y === undefined);
      return missing || sign * compare(x, y) || a - b;
    });
    heads.forEach((head, i) =>
      head.setAttribute("aria-sort", i !== at ? "none" : state.down ? "descending" : "ascending"),
    );
    show();
  }

  function show() {
    const page = order.slice(state.page * PAGE, (state.page + 1) * PAGE);
    refill(body, page.map(line));
    const pages = Math.ceil(order.length / PAGE);
    refill(
      foot,
      pages > 1 && [
        el("button", { type: "button", disabled: state.page === 0, onclick: () => turn(-1) }, "Previous"),
        el(
          "span",
          {},
          `${number(state.page * PAGE + 1)}–${number(Math.min(order.length, (state.page + 1) * PAGE))} of ${number(order.length)}`,
        ),
        el("button", { type: "button", disabled: state.page === pages - 1, onclick: () => turn(1) }, "Next"),
      ],
    );
  }

  function line(index) {
    const cells = rows[index].map((value, at) => cell(shown(columns[at], value), numeric(at)));
    if (!pick) return el("tr", {}, cells);
    const choose = () => {
      state.picked = index;
      body.querySelectorAll("tr").forEach((row) => row.removeAttribute("aria-selected"));
      root.querySelector(`tr[data-row="${index}"]`)?.setAttribute("aria-selected", "true");
      pick(index);
    };
    return el(
      "tr",
      {
        class: "pickable",
        tabindex: "0",
        "data-row": index,
        "aria-selected": index === state.picked ? "true" : null,
        onclick: choose,
        onkeydown: (event) => {
          if (event.key === "Enter" || event.key === " ") {
            event.preventDefault();
            choose();
          }
        },
      },
      cells,
    );
  }

  function turn(by) {
    state.page += by;
    show();
  }

  show();
  return root;
}

function cell(text, number) {
  return el("td", { class: number ? "number" : text.length > 44 ? "long" : null }, text);
}

function shown(column, value) {
  if (value === null || value === undefined || value === "") return MISSING;
  if (column.show) return column.show(value);
  return typeof value === "number" ? number(value, 5) : String(value);
}

function compare(x, y) {
  return typeof x === "number" && typeof y === "number" ? x - y : String(x).localeCompare(String(y));
}
