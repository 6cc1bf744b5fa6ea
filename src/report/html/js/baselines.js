// Throughput of the answer beside what one would do without it.

import { svg } from "./dom.js";
import { figure } from "./figure.js";
import { MISSING, isNumber, number, overCap, ratio, sentence, wrapped } from "./format.js";

/** Bars of throughput relative to the winner. */
export function baselines(outcome) {
  const winner = {
    name: "This chip",
    description: "the answer, with its best placement",
    entry: outcome.winner,
    ratio: 1,
  };
  const rows = [
    winner,
    ...outcome.baselines.map((baseline) => ({
      ...baseline,
      description: [baseline.description, overCap(outcome.request, baseline.entry)].filter(Boolean).join("; "),
      ratio: baseline.winner_ratio,
    })),
  ];
  const models = outcome.winner.results.map((result) => result.model);
  const single = models.length === 1;
  const speed = (row) => (row.entry && isNumber(row.ratio) ? 1 / row.ratio : null);
  const most = Math.max(1, ...rows.map((row) => speed(row) ?? 0));
  const draw = (host, width) => {
    const told = rows.map((row) =>
      wrapped(sentence(row.entry ? row.description : (row.reason ?? "does not fit")), width / 6.3),
    );
    const height = told.reduce((sum, lines) => sum + 49 + 16 * lines.length, 0);
    const picture = svg("svg", {
      viewBox: `0 0 ${width} ${height}`,
      role: "img",
      "aria-label": "Throughput of this chip and of the baselines",
    });
    let y = 0;
    rows.forEach((row, i) => {
      const length = ((speed(row) ?? 0) / most) * (width - 70);
      picture.append(
        svg("text", { class: "strong", x: 0, y: y + 13 }, row.name),
        svg(
          "text",
          { class: "muted", x: width, y: y + 13, "text-anchor": "end" },
          single && row.entry ? `${number(row.entry.results[0].throughput_sequences_per_s)} seq/s` : "",
        ),
        svg("rect", { class: "track", x: 0, y: y + 21, width: width - 70, height: 14, rx: 3 }),
        svg("rect", {
          class: i === 0 ? "bar best" : "bar",
          x: 0,
          y: y + 21,
          width: length,
          height: 14,
          rx: 3,
        }),
        ...told[i].map((line, n) => svg("text", { class: "muted", x: 0, y: y + 50 + 16 * n }, line)),
        svg(
          "text",
          { class: i === 0 ? "value strong" : "value", x: width, y: y + 33, "text-anchor": "end" },
          speed(row) === null ? MISSING : i === 0 ? "" : ratio(row.ratio),
        ),
      );
      y += 49 + 16 * told[i].length;
    });
    host.replaceChildren(picture);
  };
  return figure({
    id: "baselines",
    title: "Throughput against the baselines",
    note: "The same devices and batch for all. ×: this chip is so many times as fast.",
    draw,
    table: () => ({
      columns: [
        "what",
        "description",
        "winner / this",
        ...models.map((model) => (single ? "sequences/s" : `sequences/s, ${model}`)),
        "area µm²",
        ...models.map((model) => (single ? "strategy" : `strategy, ${model}`)),
        "reason",
      ].map((name) => ({ name })),
      rows: rows.map((row) => [
        row.name,
        row.description,
        row.ratio,
        ...models.map((_, i) => row.entry?.results[i]?.throughput_sequences_per_s ?? null),
        row.entry?.design.area_um2 ?? null,
        ...models.map((_, i) => row.entry?.results[i]?.strategy?.sentence ?? null),
        row.reason ?? null,
      ]),
    }),
  });
}
