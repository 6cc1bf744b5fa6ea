// What a plan means: the run in figures, other numbers of devices, what is beside it, how it is started.

import { el, svg } from "./dom.js";
import { figure } from "./figure.js";
import { isNumber, number } from "./format.js";

const DAY = 86400;

/** A span of time as planners say it. */
export function span(seconds) {
  if (!isNumber(seconds)) return "–";
  if (seconds >= 2 * DAY) return `${number(seconds / DAY)} days`;
  if (seconds >= 7200) return `${number(seconds / 3600)} hours`;
  if (seconds >= 300) return `${number(seconds / 60)} minutes`;
  return `${number(seconds)} s`;
}

function dollars(value) {
  return isNumber(value) ? `$${Math.round(value).toLocaleString("en-US")}` : "–";
}

/** The sections of the advice; none where a page has none. */
export function advice(plan) {
  const told = plan.advice;
  if (!told) return [];
  return [run(told), told.curve && scaling(told.curve), beside(told), launch(told)];
}

function run({ run: figures, fits, command, remarks }) {
  const tiles = [
    ["Steps", number(figures.steps), "steps", figures.steps],
    ["Time", span(figures.seconds), "seconds", figures.seconds],
    ["GPU-hours", number(figures.device_hours), "device_hours", figures.device_hours],
    ["Cost", dollars(figures.dollars), "dollars", figures.dollars],
    ["Energy", isNumber(figures.kwh) ? `${number(figures.kwh / 1000)} MWh` : "–", "kwh", figures.kwh],
    ["Carbon", isNumber(figures.kg_co2e) ? `${number(figures.kg_co2e / 1000)} t CO2e` : "–", "kg_co2e", figures.kg_co2e],
    ["Checkpoint", `${number(figures.checkpoint_bytes / 1e9)} GB`, "checkpoint_bytes", figures.checkpoint_bytes],
    ["Fewest devices", fits ? number(fits.fewest_devices) : "–", "fewest_devices", fits?.fewest_devices],
  ];
  return el(
    "section",
    { id: "run" },
    el("h2", {}, "The run"),
    (remarks ?? []).map((remark) => el("p", { class: "lead" }, remark)),
    el(
      "dl",
      { class: "figures" },
      tiles
        .filter(([, shown]) => shown !== "–")
        .map(([name, shown, key, value]) =>
          el("div", {}, el("dt", {}, name), el("dd", { "data-key": key, "data-value": value ?? "" }, shown)),
        ),
    ),
    el("p", { class: "lead" }, "Asked by: ", el("code", {}, command)),
  );
}

/** Time and GPU-hours against numbers of devices. */
function scaling(curve) {
  const points = curve.points.filter((point) => point.found);
  if (points.length === 0) return null;
  const most = (of) => Math.max(...points.map(of));
  const [longest, dearest] = [most((p) => p.found.run.seconds), most((p) => p.found.run.device_hours)];
  const draw = (host, width) => {
    const [left, row] = [76, 46];
    const reach = Math.max(40, width - left - 120);
    const picture = svg("svg", {
      viewBox: `0 0 ${width} ${points.length * row}`,
      role: "img",
      "aria-label": "Time and GPU-hours against numbers of devices",
    });
    points.forEach(({ devices, found }, i) => {
      const y = i * row;
      const bar = (value, all, name, at) =>
        svg("rect", { class: name, x: left, y: y + at, width: Math.max(1, (value / all) * reach), height: 15, rx: 2 });
      const told = (value, all, text, at) =>
        svg("text", { class: "tick", x: left + Math.max(1, (value / all) * reach) + 6, y: y + at + 12 }, text);
      const { seconds, device_hours: hours } = found.run;
      picture.append(
        svg("text", { class: "strong", x: left - 10, y: y + 22, "text-anchor": "end" }, number(devices)),
        bar(seconds, longest, "doubled", 2),
        told(seconds, longest, span(seconds), 2),
        bar(hours, dearest, "halved", 20),
        told(hours, dearest, `${number(hours)} GPU-hours`, 20),
      );
    });
    host.replaceChildren(picture);
  };
  const last = points[points.length - 1].devices;
  const lost = `a tenth of the GPU-hours is lost. `;
  const beyond = curve.knee === last ? `Up to ${number(last)} devices less than ` : `Beyond ${number(curve.knee)} devices more than `;
  const knee = curve.knee ? beyond + lost : "";
  const cheapest = curve.cheapest
    ? `Cheapest${isNumber(curve.deadline_s) ? ` within ${span(curve.deadline_s)}` : ""}: ${number(curve.cheapest)} devices.`
    : "No number of devices meets the deadline.";
  return el(
    "section",
    { id: "scaling" },
    el("h2", {}, "Other numbers of devices"),
    figure({
      id: "curve",
      title: "Time and GPU-hours",
      note: knee + cheapest,
      draw,
      legend: [
        { colour: "--tensor", label: "time" },
        { colour: "--vector", label: "GPU-hours" },
      ],
      table: () => ({
        columns: ["devices", "seconds", "GPU-hours", "dollars", "strategy"].map((name) => ({ name })),
        rows: points.map(({ devices, found }) => [
          devices,
          found.run.seconds,
          found.run.device_hours,
          found.run.dollars ?? null,
          found.strategy,
        ]),
      }),
    }),
  );
}

/** What is asked next, and what would be if. */
function beside({ run: own, next, what_if: whatIf }) {
  const row = ({ title, found, command }) =>
    el(
      "tr",
      {},
      el("th", { scope: "row" }, title),
      found
        ? [
            el("td", { "data-ratio": found.run.seconds / own.seconds }, change(found.run.seconds / own.seconds)),
            el("td", {}, span(found.run.seconds)),
            el("td", {}, dollars(found.run.dollars)),
            el("td", { class: "long" }, found.strategy, command && el("code", { class: "asks" }, command)),
          ]
        : el("td", { colspan: 4 }, "nothing fits"),
    );
  const table = (id, title, rows) =>
    rows?.length > 0 && [
      el("h3", {}, title),
      el(
        "div",
        { class: "scroll", tabindex: "0", role: "region", "aria-label": title },
        el(
          "table",
          { id },
          el("thead", {}, el("tr", {}, ["", "time", "run", "cost", "strategy"].map((name) => el("th", { scope: "col" }, name)))),
          el("tbody", {}, rows.map(row)),
        ),
      ),
    ];
  return el(
    "section",
    { id: "beside" },
    el("h2", {}, "Beside it"),
    el("p", { class: "lead" }, "Each line is another question, optimised again over every axis."),
    table("next", "Asked next", next),
    table("what-if", "What if", whatIf),
  );
}

function change(ratio) {
  const percent = (ratio - 1) * 100;
  return Math.abs(percent) < 0.05 ? "as fast" : `${percent > 0 ? "+" : "−"}${Math.abs(percent).toFixed(1)} %`;
}

/** The files that start the plan. */
function launch({ launch: told }) {
  if (!told) return null;
  const files = Object.entries(told.files ?? {});
  return el(
    "section",
    { id: "launch" },
    el("h2", {}, "How it is started"),
    files.length === 0
      ? el("p", { class: "lead" }, told.refused)
      : files.map(([name, text]) => [
          el("h3", {}, name),
          el("pre", { tabindex: "0", role: "region", "aria-label": name }, el("code", {}, text)),
        ]),
  );
}
