// What would change the answer: knobs doubled and halved, and what each model gives up.

import { el, svg } from "./dom.js";
import { figure } from "./figure.js";
import { isNumber, number, percent, ratio, words } from "./format.js";

/** Bars of throughput when one knob is doubled or halved and everything is optimised again. */
export function whatIf(outcome) {
  const all = outcome.sensitivities ?? [];
  if (all.length === 0) return null;
  const reach = (item) => (isNumber(item.throughput_ratio) ? Math.abs(Math.log2(item.throughput_ratio)) : 0);
  const knobs = [...new Set(all.map((item) => item.knob))]
    .map((knob) => ({ knob, items: all.filter((item) => item.knob === knob) }))
    .sort((a, b) => Math.max(...b.items.map(reach)) - Math.max(...a.items.map(reach)));
  const most = Math.max(0.05, ...all.map(reach)) * 1.05;
  const best = all
    .filter((item) => item.throughput_ratio > 1)
    .sort((a, b) => b.throughput_ratio - a.throughput_ratio)[0];
  const draw = (host, width) => {
    const left = Math.min(150, width * 0.34);
    const roomy = width >= 560;
    const [row, middle, half] = [21, left + (width - left) / 2, (width - left) / 2 - (roomy ? 112 : 46)];
    const height = knobs.reduce((sum, { items }) => sum + items.length * row + 12, 0);
    const picture = svg("svg", {
      viewBox: `0 0 ${width} ${height}`,
      role: "img",
      "aria-label": "Throughput when a knob is doubled or halved",
    });
    picture.append(svg("line", { class: "axis", x1: middle, x2: middle, y1: 0, y2: height - 8 }));
    let y = 4;
    for (const { knob, items } of knobs) {
      picture.append(svg("text", { class: "strong", x: 0, y: y + 13 }, words(knob)));
      for (const item of items) {
        const known = isNumber(item.throughput_ratio);
        const length = known ? (Math.log2(item.throughput_ratio) / most) * half : 0;
        const right = length >= 0;
        picture.append(
          svg(
            "rect",
            {
              class: item.change === "doubled" ? "doubled" : "halved",
              x: right ? middle : middle + length,
              y: y + 1,
              width: Math.max(1, Math.abs(length)),
              height: row - 6,
              rx: 2,
            },
            svg("title", {}, describe(item)),
          ),
          svg(
            "text",
            {
              class: "tick",
              x: middle + length + (right ? 6 : -6),
              y: y + 13,
              "text-anchor": right ? "start" : "end",
            },
            known ? ratio(item.throughput_ratio) : item.note || "does not fit",
            roomy &&
              changesArea(item) &&
              svg("tspan", { class: "faint", dx: 8 }, `area ${ratio(item.area_ratio)}`),
          ),
        );
        y += row;
      }
      y += 12;
    }
    host.replaceChildren(picture);
  };
  return el(
    "section",
    { id: "whatif" },
    el("h2", {}, "What if"),
    el(
      "p",
      { class: "lead" },
      best
        ? [
            `The knob that would help most next: `,
            el("strong", {}, `${words(best.knob)}, ${best.change}: ${ratio(best.throughput_ratio)}`),
            `${best.note ? ` (${best.note})` : ""}. `,
          ]
        : "No single knob, doubled or halved, would help. ",
      "Each bar is the best throughput with that one knob changed and everything else optimised again, the area not limited.",
    ),
    figure({
      id: "sensitivity",
      title: "One knob at a time",
      note: "Throughput relative to the winner, on a logarithmic scale.",
      draw,
      legend: [
        { colour: "--tensor", label: "doubled" },
        { colour: "--vector", label: "halved" },
      ],
      table: () => ({
        columns: ["knob", "change", "from", "to", "throughput ratio", "area ratio", "note"].map((name) => ({
          name,
        })),
        rows: all.map((item) => [
          words(item.knob),
          item.change,
          item.from,
          item.to,
          item.throughput_ratio ?? null,
          item.area_ratio ?? null,
          item.note ?? null,
        ]),
      }),
    }),
  );
}

function changesArea({ area_ratio: area }) {
  return isNumber(area) && Math.abs(area - 1) >= 0.005;
}

function describe(item) {
  const plain = (value) => (typeof value === "number" ? number(value) : String(value ?? ""));
  return `${words(item.knob)} ${item.change}, ${plain(item.from)} to ${plain(item.to)}: ${ratio(item.throughput_ratio)}${item.note ? `, ${item.note}` : ""}`;
}

/** The winner's throughput relative to each model's own best; only where there are several. */
export function severalModels(outcome) {
  const models = outcome.models ?? [];
  const results = outcome.winner?.results ?? [];
  if (models.length < 2 || results.length < 2) return null;
  const rows = models.map((model) => {
    const result = results.find((one) => one.model === model.name);
    const best = model.best_throughput_sequences_per_s;
    return { model, result, share: result && best > 0 ? result.throughput_sequences_per_s / best : null };
  });
  const draw = (host, width) => {
    const step = 48;
    const picture = svg("svg", {
      viewBox: `0 0 ${width} ${rows.length * step}`,
      role: "img",
      "aria-label": "Throughput relative to each model's own best",
    });
    rows.forEach(({ model, result, share }, i) => {
      const y = i * step;
      picture.append(
        svg("text", { class: "strong", x: 0, y: y + 13 }, model.name),
        svg(
          "text",
          { class: "muted", x: width, y: y + 13, "text-anchor": "end" },
          result
            ? `${number(result.throughput_sequences_per_s)} of ${number(model.best_throughput_sequences_per_s)} seq/s`
            : "",
        ),
        svg("rect", { class: "track", x: 0, y: y + 20, width: width - 70, height: 14, rx: 3 }),
        svg("rect", {
          class: "bar best",
          x: 0,
          y: y + 20,
          width: (share ?? 0) * (width - 70),
          height: 14,
          rx: 3,
        }),
        svg("text", { class: "value strong", x: width, y: y + 32, "text-anchor": "end" }, percent(share)),
      );
    });
    host.replaceChildren(picture);
  };
  return el(
    "section",
    { id: "models" },
    el("h2", {}, "Several models, one chip"),
    el(
      "p",
      { class: "lead" },
      "What each model reaches on this chip, relative to the chip that would suit it best alone.",
    ),
    figure({
      id: "shares",
      title: "Throughput relative to each model's own best",
      draw,
      table: () => ({
        columns: ["model", "sequences/s on this chip", "its own best", "share"].map((name) => ({ name })),
        rows: rows.map(({ model, result, share }) => [
          model.name,
          result?.throughput_sequences_per_s ?? null,
          model.best_throughput_sequences_per_s ?? null,
          share,
        ]),
      }),
    }),
  );
}
