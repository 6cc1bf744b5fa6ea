// Where the time of a batch goes.

import { el, svg } from "./dom.js";
import { figure } from "./figure.js";
import { MISSING, percent, seconds } from "./format.js";
import { PARTS, stack } from "./palette.js";

/** Bars of the shares of the time per batch, for the result and what it is compared with. */
export function breakdown(result, others, name = "this plan") {
  const rows = [{ name, result }, ...others].filter((row) => row.result.breakdown_s);
  if (rows.length === 0) return null;
  const seen = rows.flatMap((row) => stack(row.result.breakdown_s, PARTS));
  const legend = [...PARTS.map(([key]) => key), ...seen.map(({ key }) => key)]
    .filter((key, i, all) => all.indexOf(key) === i)
    .map((key) => seen.find((part) => part.key === key))
    .filter(Boolean);
  const draw = (host, width) => {
    const step = 46;
    const picture = svg("svg", {
      viewBox: `0 0 ${width} ${rows.length * step}`,
      role: "img",
      "aria-label": "Where the time of a batch goes",
    });
    rows.forEach((row, i) => {
      const y = i * step;
      let x = 0;
      picture.append(
        svg("text", { class: i === 0 ? "strong" : "", x: 0, y: y + 13 }, row.name),
        svg(
          "text",
          { class: "muted", x: width, y: y + 13, "text-anchor": "end" },
          seconds(row.result.time_per_batch_s),
        ),
      );
      for (const part of stack(row.result.breakdown_s, PARTS)) {
        const length = (part.value / row.result.time_per_batch_s) * width;
        picture.append(
          svg(
            "rect",
            {
              x,
              y: y + 19,
              width: Math.max(0, length - 0.75),
              height: 17,
              style: `fill: var(${part.colour})`,
            },
            svg(
              "title",
              {},
              `${part.label}: ${seconds(part.value)}, ${percent(part.value / row.result.time_per_batch_s)}`,
            ),
          ),
        );
        x += length;
      }
    });
    host.replaceChildren(picture);
  };
  const root = figure({
    id: "breakdown",
    title: "Where the time goes",
    note: "Each bar is the whole time of one batch, its length at the right.",
    draw,
    table: () => ({
      columns: [
        { name: "plan" },
        ...legend.map(({ label }) => ({ name: `${label} (s)` })),
        { name: "time per batch (s)" },
      ],
      rows: rows.map((row) => [
        row.name,
        ...legend.map(({ key }) => row.result.breakdown_s[key] ?? 0),
        row.result.time_per_batch_s,
      ]),
    }),
  });
  root.append(
    el(
      "ul",
      { class: "shares" },
      legend.map(({ key, colour, label }) => {
        const value = result.breakdown_s[key] || null;
        return el(
          "li",
          {},
          el("span", { class: "key", style: `--key: var(${colour})` }),
          label,
          el("b", { "data-part": key }, value === null ? MISSING : percent(value / result.time_per_batch_s)),
          el("span", { class: "muted" }, seconds(value)),
        );
      }),
    ),
  );
  return root;
}
