// The space: every design as a point, with axes, colour and filters to choose.

import { describe, grows, measures, ofEntry } from "./axes.js";
import { STATUSES, lessIsBetter } from "./decode.js";
import { el, refill } from "./dom.js";
import { figure } from "./figure.js";
import { number } from "./format.js";
import { filterPanel, filters } from "./filters.js";
import { scatter } from "./scatter.js";
import { scatterVector } from "./scatter_vector.js";
import { shades } from "./shades.js";
import { tick } from "./view.js";

/** Whether small values, the good ones of a cost, would be pressed together on a linear axis. */
function spreads(values) {
  let [low, high] = [Infinity, 0];
  for (const value of values) {
    if (value === null) continue;
    if (value < low) low = value;
    if (value > high) high = value;
  }
  return low > 0 && high > 40 * low;
}

/** The second section. `state` is the page's selection; `select` changes it. */
export function space(result, state, select) {
  const { outcome, designs } = result;
  const all = measures(result);
  const knobs = filters(result);
  const find = (key) => all.find((measure) => measure.key === key) ?? all[0];
  const chosen = { x: find("area"), y: find("objective"), colour: find("tensor_cores") };
  const off = { status: new Set(), knob: new Map(knobs.map(({ key }) => [key, new Set()])) };
  const tip = el("div", { class: "tip", role: "status", hidden: true });
  const counts = el("p", { class: "counts", "aria-live": "polite" });
  const scale = el("div", { class: "colourscale" });
  let view = {};
  let model = null;
  let chart = null;
  let size = [0, 0];

  function build() {
    const column = (measure) => Array.from({ length: designs.n }, (_, row) => measure.of(row));
    const [x, y] = [chosen.x, chosen.y].map((measure) => {
      const at = column(measure);
      return {
        label: measure.label,
        show: measure.show === number ? tick : measure.show,
        discrete: measure.discrete,
        log: measure.discrete || (!measure.linear && !grows(measure.key, outcome) && spreads(at)),
        at,
      };
    });
    const shade = shades(column(chosen.colour), chosen.colour);
    const rows = passing();
    const which = shade.which.map((ink, row) => 2 * ink + (designs.status[row] === 0 ? 0 : 1));
    model = {
      n: designs.n,
      x,
      y,
      rows,
      which,
      inks: shade.inks,
      selected: state.row,
      marks: marks(),
      front: front(),
      plotted: (row) => STATUSES[designs.status[row]] !== "infeasible" && x.at[row] !== null && y.at[row] !== null,
    };
    model.strip = rows.some((row) => !model.plotted(row));
    refill(scale, shade.legend);
    refill(counts, tally(rows));
  }

  /** Rows that pass the filters; evaluated ones last, so that they are painted on top. */
  function passing() {
    const rows = [];
    for (let status = STATUSES.length - 1; status >= 0; status--) {
      if (off.status.has(status)) continue;
      for (let row = 0; row < designs.n; row++) {
        if (
          designs.status[row] === status &&
          knobs.every(({ key, column }) => !off.knob.get(key).has(column[row]))
        )
          rows.push(row);
      }
    }
    return rows;
  }

  function tally(rows) {
    const by = STATUSES.map((_, status) => rows.filter((row) => designs.status[row] === status).length);
    const hidden = rows.filter((row) => !model.plotted(row)).length;
    return [
      el("b", { id: "shown" }, number(rows.length)),
      ` of ${number(designs.n)} designs: `,
      STATUSES.map((name, i) => by[i] > 0 && `${number(by[i])} ${name}`)
        .filter(Boolean)
        .join(", "),
      hidden > 0 && `. ${number(hidden)} without a value on these axes stand in the strip below.`,
    ];
  }

  /** The winner and the baselines, the winner first. */
  function marks() {
    const named = [{ name: "winner", entry: outcome.winner, best: true }, ...outcome.baselines];
    return named
      .filter(({ entry }) => entry)
      .map(({ name, entry, best }) => ({
        name,
        best,
        x: ofEntry(chosen.x.key, entry),
        y: ofEntry(chosen.y.key, entry),
      }))
      .filter(({ x, y }) => x !== null && y !== null);
  }

  /** The Pareto front on these axes: of its entries, those that no other beats on both. */
  function front() {
    const points = outcome.pareto.entries
      .map((entry) => [ofEntry(chosen.x.key, entry), ofEntry(chosen.y.key, entry)])
      .filter(([x, y]) => x !== null && y !== null);
    const [sx, sy] = [chosen.x, chosen.y].map(({ key }) => (grows(key, outcome) ? 1 : -1));
    const kept = points.filter(
      ([x, y]) => !points.some(([a, b]) => sx * a >= sx * x && sy * b >= sy * y && (a !== x || b !== y)),
    );
    kept.sort((a, b) => a[0] - b[0] || a[1] - b[1]);
    // Between two of them nothing is known to be better than the worse of both on each axis.
    const worse = (sign, a, b) => (sign > 0 ? Math.min(a, b) : Math.max(a, b));
    const steps = kept.flatMap((point, i) => {
      const before = kept[i - 1];
      return before ? [[worse(sx, before[0], point[0]), worse(sy, before[1], point[1])], point] : [point];
    });
    return { exact: outcome.pareto.exact, points: steps };
  }

  function draw(host, width) {
    size = [width, Math.round(Math.max(340, Math.min(560, width * 0.56)))];
    chart?.destroy();
    build();
    host.replaceChildren();
    chart = scatter(host, ...size, model, view, { hover, pick: (row) => select({ row }) });
    host.append(tip);
    root.chart = chart;
    root.model = model;
  }

  function hover(row, left, top) {
    tip.hidden = row === null;
    if (row === null) return;
    refill(
      tip,
      el(
        "dl",
        {},
        describe(result, row).map(([name, text]) => [el("dt", {}, name), el("dd", {}, text)]),
      ),
    );
    const box = root.getBoundingClientRect();
    tip.style.left = `${Math.min(left - box.left + 14, box.width - 220)}px`;
    tip.style.top = `${top - box.top + 14}px`;
  }

  function change(part) {
    return (event) => {
      chosen[part] = find(event.target.value);
      if (part !== "colour") view = {};
      root.redraw();
    };
  }

  const picker = (part, label) =>
    el(
      "label",
      {},
      label,
      el(
        "select",
        { id: `axis-${part}`, onchange: change(part) },
        all.map((measure) =>
          el("option", { value: measure.key, selected: measure === chosen[part] }, measure.label),
        ),
      ),
    );
  const button = (name, text, action) =>
    el("button", { type: "button", class: "tool", "aria-label": name, title: name, onclick: action }, text);
  const root = figure({
    id: "scatter",
    title: "All designs",
    note: outcome.pareto.exact
      ? "The line is the Pareto front."
      : "The dashed line joins the best of what was evaluated: a partial Pareto front; search with --pareto for the exact one.",
    controls: el(
      "div",
      {},
      el(
        "div",
        { class: "controls" },
        picker("x", "across"),
        picker("y", "up"),
        picker("colour", "colour"),
        el(
          "div",
          { class: "tools" },
          button("Zoom in", "+", () => chart.zoom(0.7)),
          button("Zoom out", "−", () => chart.zoom(1 / 0.7)),
          button("Show all", "all", () => chart.reset()),
        ),
      ),
      filterPanel(knobs, designs, off, () => {
        root.redraw();
      }),
      scale,
      counts,
    ),
    draw,
    vector: () => scatterVector(chart, model, ...size),
    table: rowsTable,
  });
  root.querySelector(".canvas").tabIndex = 0;
  root.querySelector(".canvas").setAttribute("role", "application");
  root
    .querySelector(".canvas")
    .setAttribute(
      "aria-label",
      "Scatter of designs. Arrow keys pan, plus and minus zoom, 0 shows all, n and p step through evaluated designs.",
    );
  root.querySelector(".canvas").addEventListener("keydown", keyboard);

  function keyboard(event) {
    if (!chart || event.target.closest("table, .pager")) return;
    const step = { ArrowLeft: [-0.1, 0], ArrowRight: [0.1, 0], ArrowUp: [0, 0.1], ArrowDown: [0, -0.1] }[
      event.key
    ];
    if (step) chart.pan(...step);
    else if (event.key === "+" || event.key === "=") chart.zoom(0.7);
    else if (event.key === "-") chart.zoom(1 / 0.7);
    else if (event.key === "0") chart.reset();
    else if (event.key === "n" || event.key === "p") walk(event.key === "n" ? 1 : -1);
    else return;
    event.preventDefault();
  }

  /** Selects the next or the previous evaluated design, best first. */
  function walk(by) {
    const value = designs.column("value") ?? [];
    const sign = lessIsBetter(outcome) ? 1 : -1;
    const ranked = model.rows
      .filter((row) => designs.status[row] === 0)
      .sort((a, b) => sign * (value[a] - value[b]) || a - b);
    if (ranked.length === 0) return;
    const at = ranked.indexOf(state.row);
    select({ row: ranked[(at + by + ranked.length) % ranked.length] });
  }

  function rowsTable() {
    const names = designs.names;
    const columns = names.map((name) => designs.column(name));
    return {
      columns: names.map((name) => ({ name })),
      rows: model.rows.map((row) => columns.map((column) => column[row])),
      pick: (index) => select({ row: model.rows[index] }),
    };
  }

  root.selected = () => {
    if (chart && model) {
      model.selected = state.row;
      chart.redraw();
    }
  };
  return el(
    "section",
    { id: "space" },
    el("h2", {}, "The space"),
    el(
      "p",
      { class: "lead" },
      "Each point is one design. Solid: evaluated. Hollow: ruled out, drawn at the best it could have reached, and 2 % worse than the winner at least. Drag to zoom, shift-drag to pan, click to open a design below.",
    ),
    root,
  );
}
