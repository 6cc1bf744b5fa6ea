// The fronts of two results: on one axis where their objectives are the same number, else on one each.

import { objectiveLabel } from "./axes.js";
import { el, svg } from "./dom.js";
import { figure } from "./figure.js";
import { MISSING, chipName, number } from "./format.js";
import { ticks } from "./timeline.js";

const COLOURS = ["--tensor", "--vector"];

/** The objective against area of what each result holds in full. */
export function fronts(pair, names) {
  const series = pair.map(({ outcome }, i) => ({
    name: names[i],
    colour: COLOURS[i],
    label: objectiveLabel(outcome),
    points: [...outcome.pareto.entries, ...outcome.top.entries, outcome.winner]
      .filter(Boolean)
      .map((entry) => ({ x: entry.design.area_um2 / 1e6, y: entry.value, name: chipName(entry.design) })),
  }));
  if (series.every(({ points }) => points.length === 0)) return el("p", {}, MISSING);
  if (sameNumber(pair)) return chart(series, "fronts");
  return [
    el(
      "p",
      { id: "own-axes" },
      "The two results do not measure the same: " +
        series.map(({ name, label }) => `${name} ${label}`).join(", ") +
        ". Each has an axis of its own, and heights cannot be compared between them.",
    ),
    series
      .filter(({ points }) => points.length > 0)
      .map((one) => chart([one], `fronts-${series.indexOf(one) + 1}`)),
  ];
}

/** Whether the values of two results are the same measure of the same models. */
function sameNumber(pair) {
  const [a, b] = pair.map(({ outcome: { request } }) => {
    const models = (request?.models ?? []).map((model) => `${model.name} ${model.weight ?? ""}`);
    // A share is one of the best in its own space: two spaces have two.
    const shares = models.length > 1 && request.combine !== "mean";
    return { text: JSON.stringify([request?.objective, models, request?.combine]), shares };
  });
  return a.text === b.text && !a.shares;
}

function chart(series, id) {
  const all = series.flatMap(({ points }) => points);
  const [low, high] = [Math.min(...all.map((p) => p.x)), Math.max(...all.map((p) => p.x))];
  const top = Math.max(...all.map((p) => p.y)) * 1.05;
  const title = `${series[0].label} against area`;
  const draw = (host, width) => {
    const [left, h] = [58, 280];
    const across = (x) => left + 8 + (high > low ? (x - low) / (high - low) : 0.5) * (width - left - 24);
    const up = (y) => 8 + h * (1 - y / top);
    const picture = svg("svg", { viewBox: `0 0 ${width} ${h + 46}`, role: "img", "aria-label": title });
    for (const y of ticks({ from: 0, to: top }))
      picture.append(
        svg("line", { class: "grid", x1: left, x2: width, y1: up(y), y2: up(y) }),
        svg("text", { class: "tick", x: left - 6, y: up(y) + 4, "text-anchor": "end" }, number(y, 3)),
      );
    for (const x of high > low ? ticks({ from: low, to: high }) : [low])
      picture.append(
        svg(
          "text",
          { class: "tick", x: Math.min(across(x), width - 20), y: h + 24, "text-anchor": "middle" },
          number(x, 3),
        ),
      );
    picture.append(
      svg(
        "text",
        { class: "tick", x: left + (width - left) / 2, y: h + 42, "text-anchor": "middle" },
        "area (mm²)",
      ),
    );
    for (const { name, colour, points } of series)
      for (const point of points)
        picture.append(
          svg(
            "circle",
            { cx: across(point.x), cy: up(point.y), r: 5, style: `fill: var(${colour}); fill-opacity: .75` },
            svg("title", {}, `${name}: ${point.name}, ${number(point.y)}`),
          ),
        );
    host.replaceChildren(picture);
  };
  return figure({
    id,
    title,
    note:
      series.length > 1
        ? "Pareto front and top 20 of both results."
        : `Pareto front and top 20 of ${series[0].name}.`,
    draw,
    legend: series.map(({ name, colour }) => ({ label: name, colour })),
    table: () => ({
      columns: ["result", "chip", "area (mm²)", series[0].label].map((name) => ({ name })),
      rows: series.flatMap(({ name, points }) => points.map((point) => [name, point.name, point.x, point.y])),
    }),
  });
}
