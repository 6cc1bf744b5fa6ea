// The stages of a pipeline: what each holds and how long it takes.

import { svg } from "./dom.js";
import { figure } from "./figure.js";
import { bytes, count, memoryUnit, number, percent, seconds } from "./format.js";
import { MEMORY, stack } from "./palette.js";
import { ticks } from "./timeline.js";

// Below this share of the limit, columns drawn to its scale would be too low to read.
const LOW = 0.25;

/** Stacked columns of each rank's memory, and the fullest against what plans may fill of a device. */
export function memory(result) {
  // Virtual stages of a rank tell the same memory; the first of each stands for it.
  const seen = (stage, i) => (stage.rank ?? i) === i;
  const found = (result.stages ?? []).filter((stage, i) => stage.memory_bytes && seen(stage, i));
  if (found.length === 0) return null;
  const sum = (stage) => Object.values(stage.memory_bytes).reduce((total, part) => total + (part ?? 0), 0);
  const limit = Math.max(...found.map((stage) => stage.memory_limit_bytes ?? 0));
  const fullest = Math.max(...found.map(sum));
  const most = (fullest < LOW * limit ? fullest : Math.max(limit, fullest)) * 1.04;
  const unit = memoryUnit();
  const draw = (host, width) => {
    const [left, top, h] = [46, 52, 210];
    const step = (width - left) / found.length;
    const picture = svg("svg", {
      viewBox: `0 0 ${width} ${top + h + 28}`,
      role: "img",
      "aria-label": "Memory of each rank",
    });
    if (limit > 0) gauge(picture, width);
    for (const mark of ticks({ from: 0, to: most / unit.size })) {
      const y = top + h * (1 - (mark * unit.size) / most);
      picture.append(
        svg("line", { class: "grid", x1: left, x2: width, y1: y, y2: y }),
        svg(
          "text",
          { class: "tick", x: left - 6, y: y + 4, "text-anchor": "end" },
          unit.size === 1 ? bytes(mark, 3) : number(mark, 3),
        ),
      );
    }
    found.forEach((stage, i) => {
      let y = top + h;
      for (const part of stack(stage.memory_bytes, MEMORY)) {
        const size = (part.value / most) * h;
        y -= size;
        picture.append(
          svg(
            "rect",
            {
              x: left + i * step + step * 0.12,
              y,
              width: step * 0.76,
              height: Math.max(0, size - 0.5),
              style: `fill: var(${part.colour})`,
            },
            svg("title", {}, `rank ${i}, ${part.label}: ${bytes(part.value)}`),
          ),
        );
      }
      if (i % Math.ceil(found.length / Math.max(1, (width - left) / 26)) === 0)
        picture.append(
          svg(
            "text",
            { class: "tick", x: left + (i + 0.5) * step, y: h + top + 16, "text-anchor": "middle" },
            i,
          ),
        );
    });
    if (limit > 0 && limit <= most) {
      const y = top + h * (1 - limit / most);
      picture.append(
        svg("line", { class: "limit", x1: left, x2: width, y1: y, y2: y }),
        svg(
          "text",
          { class: "tick strong", x: width, y: y + 14, "text-anchor": "end" },
          `limit ${bytes(limit)}`,
        ),
      );
    }
    picture.append(svg("text", { class: "tick", x: 0, y: h + top + 16 }, "rank"));
    host.replaceChildren(picture);
  };

  /** The fullest rank against the limit, whatever the scale of the columns. */
  function gauge(picture, width) {
    const at = found.findIndex((stage) => sum(stage) === fullest);
    picture.append(
      svg(
        "text",
        { class: "tick", x: 0, y: 11 },
        `Fullest: rank ${number(at)}, ${bytes(fullest, 3)} of ${bytes(limit, 3)} (${percent(fullest / limit)})`,
      ),
      svg("rect", { class: "track", x: 0, y: 18, width, height: 10, rx: 3 }),
    );
    let x = 0;
    for (const part of stack(found[at].memory_bytes, MEMORY)) {
      const length = (part.value / Math.max(limit, fullest)) * width;
      picture.append(
        svg("rect", { x, y: 18, width: length, height: 10, style: `fill: var(${part.colour})` }),
      );
      x += length;
    }
  }
  return figure({
    id: "memory",
    title: "Memory of each rank",
    note: `${unit.name} on one device${limit > most ? "; the columns have their own scale" : ""}.`,
    draw,
    legend: MEMORY.map(([, colour, label]) => ({ colour, label })),
    table: () => ({
      columns: ["rank", ...MEMORY.map(([, , label]) => `${label} (bytes)`), "sum", "limit"].map((name) => ({
        name,
      })),
      rows: found.map((stage, i) => [
        i,
        ...MEMORY.map(([key]) => stage.memory_bytes[key] ?? null),
        sum(stage),
        stage.memory_limit_bytes ?? null,
      ]),
    }),
  });
}

/** Stages drawn as wide as their load; neighbours that are alike share a bar. */
export function stages(result) {
  const all = result.stages ?? [];
  if (all.length === 0) return null;
  const slowest = Math.max(...all.map((stage) => stage.load_s));
  const rows = runs(all);
  const draw = (host, width) => {
    const [left, row] = [50, Math.max(7, Math.min(26, 360 / rows.length))];
    const picture = svg("svg", {
      viewBox: `0 0 ${width} ${rows.length * row + 4}`,
      role: "img",
      "aria-label": "Load of each stage",
    });
    rows.forEach(({ stage, first, n }, i) => {
      const y = i * row;
      const length = (stage.load_s / slowest) * (width - left - 70);
      const forward = length * (stage.forward_s / (stage.forward_s + stage.backward_s) || 0);
      picture.append(
        svg(
          "rect",
          { class: "forward", x: left, y: y + 1, width: forward, height: row - 2 },
          svg("title", {}, `forward ${seconds(stage.forward_s)}`),
        ),
        svg(
          "rect",
          { class: "backward", x: left + forward, y: y + 1, width: length - forward, height: row - 2 },
          svg("title", {}, `backward ${seconds(stage.backward_s)}`),
        ),
      );
      if (row < 10 && i % Math.ceil(10 / row) !== 0) return;
      const name = n > 1 ? `${first}–${first + n - 1}` : first;
      const told = n > 1 ? `${count(n, "stage")} of ${content(stage)}` : content(stage);
      picture.append(
        svg("text", { class: "tick", x: left - 6, y: y + row / 2 + 4, "text-anchor": "end" }, name),
        svg("text", { class: "tick", x: left + length + 6, y: y + row / 2 + 4 }, seconds(stage.load_s, 3)),
      );
      if (row < 15) return;
      if (forward > 6.5 * told.length + 12)
        picture.append(svg("text", { class: "inblock on-forward", x: left + 8, y: y + row / 2 + 4 }, told));
      else if (width - left - length - 70 > 6.5 * told.length)
        picture.append(svg("text", { class: "tick", x: left + length + 64, y: y + row / 2 + 4 }, told));
    });
    host.replaceChildren(picture);
  };
  return figure({
    id: "stages",
    title: "Stages and their layers",
    draw,
    note: `Load of one micro-batch; the slowest sets the pace, the fastest waits ${percent(1 - Math.min(...all.map((stage) => stage.load_s)) / slowest)} of the time.`,
    legend: [
      { colour: "--forward", label: "forward" },
      { colour: "--backward", label: "backward" },
    ],
    table: () => ({
      columns: ["stage", "rank", "layers", "repeated", "devices", "forward (s)", "backward (s)", "load (s)"].map(
        (name) => ({ name }),
      ),
      rows: all.map((stage, i) => [
        i + 1,
        stage.rank ?? i,
        content(stage),
        stage.n_repeated ?? null,
        stage.devices ?? null,
        stage.forward_s,
        stage.backward_s,
        stage.load_s,
      ]),
    }),
  });
}

function content(stage) {
  return (stage.layers ?? []).map(({ kind, count: n }) => (n > 1 ? `${n} × ${kind}` : kind)).join(" + ");
}

/** Neighbouring stages with the same layers, devices and times: `{ stage, first, n }`, from 1. */
function runs(all) {
  const found = [];
  let last = null;
  all.forEach((stage, i) => {
    const { devices, n_repeated: repeated, forward_s: forward, backward_s: backward } = stage;
    const alike = JSON.stringify([content(stage), repeated, devices, forward, backward]);
    if (alike === last) found.at(-1).n += 1;
    else found.push({ stage, first: i + 1, n: 1 });
    last = alike;
  });
  return found;
}
