// Inside one layer: its operators on the cores, under the roof, and how a matmul is cut.

import { el, refill, svg } from "./dom.js";
import { figure } from "./figure.js";
import { bytes, count, joules, number, percent, scaled, seconds } from "./format.js";
import { CORES } from "./palette.js";
import { roofline } from "./roofline.js";
import { table } from "./table.js";
import { tiles } from "./tiles.js";
import { ticks } from "./timeline.js";

/** The fourth section for one result; keeps its own choice of layer, pass and operator. */
export function layerPanels(design, result) {
  const layers = (result.layers ?? []).filter((layer) => layer.forward || layer.backward);
  if (layers.length === 0) return [el("p", { class: "lead" }, "This entry holds no layer schedules.")];
  const most = layers.reduce((best, layer) => ((layer.count ?? 1) > (best.count ?? 1) ? layer : best));
  const state = { layer: most, pass: most.forward ? "forward" : "backward", operator: 0 };
  const body = el("div");
  const detail = el("div", { class: "two" });
  const kinds = el(
    "select",
    {
      id: "layer-kind",
      onchange: (event) => {
        state.layer = layers[event.target.value];
        start();
      },
    },
    layers.map((layer, i) =>
      el(
        "option",
        { value: i, selected: layer === most },
        `${layer.kind} (${count(layer.count ?? 1, "time")})`,
      ),
    ),
  );
  const passes = ["forward", "backward"].map((pass) =>
    el(
      "button",
      {
        type: "button",
        class: "tool",
        "data-pass": pass,
        onclick: () => {
          state.pass = pass;
          start();
        },
      },
      pass,
    ),
  );

  function start() {
    if (!state.layer[state.pass]) state.pass = state.layer.forward ? "forward" : "backward";
    passes.forEach((button) =>
      button.setAttribute("aria-pressed", String(button.dataset.pass === state.pass)),
    );
    const schedule = state.layer[state.pass];
    const longest = (at, operator, i) =>
      operator.end_s - operator.start_s > schedule.operators[at].end_s - schedule.operators[at].start_s &&
      operator.matmul
        ? i
        : at;
    state.operator = schedule.operators.reduce(
      longest,
      Math.max(
        0,
        schedule.operators.findIndex((operator) => operator.matmul),
      ),
    );
    refill(
      body,
      summary(schedule, state),
      gantt(design, schedule, pick, () => state.operator),
      operators(design, schedule, pick, state.operator),
    );
    pick(state.operator);
  }

  function pick(at) {
    state.operator = at;
    const { operators: all } = state.layer[state.pass];
    body.querySelector("#gantt")?.redraw();
    refill(detail, roofline(design, all, at, pick, limited), tiles(design, all[at]));
    // At once, so that nothing blinks or jumps between two choices.
    for (const figure of detail.querySelectorAll("figure")) figure.redraw();
  }

  start();
  return [
    el(
      "div",
      { class: "controls" },
      el("label", {}, "layer", kinds),
      el("div", { class: "tools", role: "group", "aria-label": "pass" }, passes),
    ),
    body,
    detail,
  ];
}

function summary(schedule, { layer, pass }) {
  const limits = [
    ["the cores", schedule.makespan_s],
    ["HBM", schedule.hbm_s],
    ["the global buffer", schedule.glb_s],
  ].filter(([, time]) => time > 0);
  const slowest = limits.reduce((a, b) => (b[1] > a[1] ? b : a), limits[0] ?? ["the cores", 0]);
  const proved =
    schedule.proof?.gap === 0
      ? "proved to be the shortest schedule"
      : schedule.proof
        ? `within ${percent(schedule.proof.gap, 2)} of the shortest schedule`
        : "";
  return el(
    "p",
    { class: "lead" },
    `One ${layer.kind} layer ${pass}: `,
    el("strong", { "data-key": "layer-time", "data-value": schedule.time_s }, seconds(schedule.time_s)),
    `, limited by ${slowest[0]}${proved && `, ${proved}`}.`,
  );
}

/** What holds an operator back, in words. */
const LIMITS = { hbm: "HBM", glb: "global buffer" };
const limited = ({ limit }) => LIMITS[limit] ?? limit ?? null;

/** Operators over time, each as tall as the share of its cores that it takes. */
function gantt(design, schedule, pick, chosen) {
  const { operators: all } = schedule;
  const uses = (kinds) => all.some((operator) => kinds.includes(operator.core));
  const bands = [
    { name: "tensor", cores: design.tensor_cores, kinds: ["tensor", "both"], height: 92 },
    { name: "vector", cores: design.vector_cores, kinds: ["vector", "both"], height: 62 },
    { name: "network", cores: 1, kinds: ["network"], height: 24 },
  ].filter((band) => uses(band.kinds));
  const end = Math.max(schedule.time_s ?? 0, ...all.map((operator) => operator.end_s));
  const draw = (host, width) => {
    const left = 74;
    const height = bands.reduce((sum, band) => sum + band.height + 10, 0) + 26;
    const at = (time) => left + (time / end) * (width - left - 2);
    const picture = svg("svg", {
      viewBox: `0 0 ${width} ${height}`,
      role: "group",
      "aria-label": "Schedule of the layer on the cores",
    });
    const foot = height - 26;
    ticks({ from: 0, to: end }).forEach((time) =>
      picture.append(
        svg("line", { class: "grid", x1: at(time), x2: at(time), y1: 2, y2: foot }),
        svg(
          "text",
          { class: "tick", x: Math.min(width - 26, at(time)), y: foot + 16, "text-anchor": "middle" },
          seconds(time, 3),
        ),
      ),
    );
    let top = 2;
    for (const band of bands) {
      picture.append(
        svg("rect", { class: "idle band", x: left, y: top, width: width - left - 2, height: band.height }),
        svg("text", { class: "tick strong", x: 0, y: top + 12 }, band.name),
        svg(
          "text",
          { class: "tick", x: 0, y: top + 26 },
          band.name === "network" ? "" : count(band.cores, "core"),
        ),
      );
      all.forEach((operator, i) => {
        if (band.kinds.includes(operator.core) && operator.end_s > operator.start_s)
          picture.append(mark(operator, i, band, top));
      });
      top += band.height + 10;
    }
    host.replaceChildren(picture);

    function mark(operator, i, band, y) {
      const [x1, x2] = [at(operator.start_s), at(operator.end_s)];
      const spread =
        operator.spread || band.name === "network" || !operator.cores || operator.core === "both";
      const [first, n] = spread ? [0, band.cores] : operator.cores;
      const h = Math.max(3, (n / band.cores) * band.height);
      const from = y + Math.min(band.height - h, (first / band.cores) * band.height);
      const label = `${operator.name}: ${seconds(operator.end_s - operator.start_s)}, limited by ${limited(operator) ?? "nothing"}`;
      const choose = () => pick(i);
      const group = svg(
        "g",
        {
          class: i === chosen() ? "op chosen" : "op",
          tabindex: "0",
          role: "button",
          "aria-label": label,
          onclick: choose,
          onkeydown: (event) => {
            if (event.key === "Enter" || event.key === " ") {
              event.preventDefault();
              choose();
            }
          },
        },
        svg("rect", {
          x: x1,
          y: from,
          width: Math.max(0.6, x2 - x1 - 0.75),
          height: h,
          rx: 1.5,
          style: `fill: var(${CORES[operator.core] ?? "--other"})`,
        }),
        svg("title", {}, label),
      );
      const room = x2 - x1 - 8;
      const fits =
        operator.name.length * 6.2 < room
          ? operator.name
          : room > 28
            ? `${operator.name.slice(0, Math.floor(room / 6.2) - 1)}…`
            : "";
      if (fits && h > 13)
        group.append(
          svg(
            "text",
            { class: `inblock on-${operator.core}`, x: x1 + 5, y: from + Math.min(h / 2 + 4, 16) },
            fits,
          ),
        );
      return group;
    }
  };
  return figure({
    id: "gantt",
    title: "The layer on the cores",
    note: "Height is the share of the cores in use. Click an operator to see it below.",
    draw,
    legend: [
      { colour: "--tensor", label: "tensor cores" },
      { colour: "--vector", label: "vector cores" },
      { colour: "--both", label: "fused on both" },
      { colour: "--collective", label: "network" },
      { colour: "--idle", label: "idle" },
    ],
    table: () => ({
      columns: ["operator", "core", "start (s)", "end (s)", "spread", "first core", "cores"].map((name) => ({
        name,
      })),
      rows: all.map((operator) => [
        operator.name,
        operator.core,
        operator.start_s,
        operator.end_s,
        operator.spread ? "yes" : "no",
        operator.cores?.[0] ?? null,
        operator.cores?.[1] ?? null,
      ]),
      pick,
      picked: chosen(),
    }),
  });
}

function operators(design, { operators: all }, pick, picked) {
  const rate = (operator) =>
    operator.flops > 0 ? operator.flops / (operator.end_s - operator.start_s) : null;
  const shape = ({ matmul }) =>
    matmul ? [matmul.b, matmul.m, matmul.k, matmul.n].map((size) => number(size)).join(" × ") : null;
  return el(
    "details",
    { class: "fold", open: true },
    el("summary", {}, "Operators"),
    table({
      caption: "Operators of the layer",
      pick,
      picked,
      columns: [
        { name: "operator" },
        { name: "core" },
        { name: "time", show: (value) => seconds(value) },
        { name: "b × m × k × n" },
        { name: "FLOPs", show: (value) => scaled(value, "") },
        { name: "HBM", show: (value) => bytes(value) },
        { name: "FLOP/byte", show: (value) => number(value, 3) },
        { name: "of peak", show: (value) => percent(value) },
        { name: "energy", show: (value) => joules(value) },
        { name: "limited by" },
      ],
      rows: all.map((operator) => [
        operator.name,
        operator.core,
        operator.end_s - operator.start_s,
        shape(operator),
        operator.flops || null,
        operator.hbm_bytes || null,
        operator.flops > 0 && operator.hbm_bytes > 0 ? operator.flops / operator.hbm_bytes : null,
        rate(operator) === null ? null : rate(operator) / design.peak_flops_per_s,
        operator.energy_j ?? null,
        limited(operator),
      ]),
    }),
  );
}
