// The 1F1B timeline of one batch: every stage's forward and backward passes, and what waits.

import { el, svg } from "./dom.js";
import { figure } from "./figure.js";
import { count, isNumber, number, percent, seconds } from "./format.js";

const MOST_PASSES = 100_000;

/**
 * Runs 1F1B event by event: stage i does min(s − i, M) forwards, then alternates backward and
 * forward. Answers per stage its passes `{ forward, micro, start, end }` in order.
 */
export function simulate(stages, micros) {
  const n = stages.length;
  const orders = stages.map((_, i) => order(Math.min(n - i, micros), micros));
  const done = stages.map(() => ({
    forward: new Float64Array(micros).fill(NaN),
    backward: new Float64Array(micros).fill(NaN),
  }));
  const next = new Array(n).fill(0);
  const free = new Array(n).fill(0);
  const passes = stages.map(() => []);
  // Each sweep runs every stage as far as its inputs are known; both directions feed on each other.
  for (let moved = true; moved;) {
    moved = false;
    for (let i = 0; i < n; i++) {
      while (next[i] < orders[i].length) {
        const { forward, micro } = orders[i][next[i]];
        const ready = forward
          ? i === 0
            ? 0
            : done[i - 1].forward[micro]
          : i === n - 1
            ? done[i].forward[micro]
            : done[i + 1].backward[micro];
        if (Number.isNaN(ready)) break;
        const start = Math.max(ready, free[i]);
        const end = start + (forward ? stages[i].forward_s : stages[i].backward_s);
        (forward ? done[i].forward : done[i].backward)[micro] = end;
        passes[i].push({ forward, micro, start, end });
        free[i] = end;
        next[i] += 1;
        moved = true;
      }
    }
  }
  return passes;
}

function order(warmup, micros) {
  const passes = [];
  for (let micro = 0; micro < warmup; micro++) passes.push({ forward: true, micro });
  for (let micro = 0; micro < micros; micro++) {
    passes.push({ forward: false, micro });
    if (micro + warmup < micros) passes.push({ forward: true, micro: micro + warmup });
  }
  return passes;
}

/** The chart for one result of an entry; `seen` is the stage whose waiting its breakdown tells. */
export function timeline(result, seen = "slowest") {
  const { stages, n_micro_batches: micros } = result;
  if (!stages?.length || !isNumber(micros)) return null;
  // A picture has no room for more passes; fewer micro-batches show the same shape.
  const drawn = Math.max(
    1,
    Math.min(micros, Math.max(2 * stages.length, Math.floor(MOST_PASSES / stages.length))),
  );
  const passes = simulate(stages, drawn);
  const finished = passes.map((row) => row.at(-1).end);
  const last = Math.max(...finished);
  const ends = finished.map((end, i) => end + (stages[i].exchange_s ?? 0) + (stages[i].step_s ?? 0));
  const total = Math.max(last, ...ends);
  const busy = passes.flat().reduce((sum, pass) => sum + pass.end - pass.start, 0);
  const window = { from: 0, to: total };

  const draw = (host, width) => {
    const gutter = 34;
    const row = Math.max(2.5, Math.min(26, 300 / stages.length));
    // Thin rows keep what little height they have.
    const bar = row - (row < 8 ? 0.4 : 2);
    const height = stages.length * row + 34;
    const picture = svg("svg", {
      viewBox: `0 0 ${width} ${height}`,
      role: "img",
      "aria-label": `Pipeline of ${count(stages.length, "stage")}, ${count(micros, "micro-batch", "micro-batches")}`,
    });
    const at = (time) => gutter + ((time - window.from) / (window.to - window.from)) * (width - gutter - 2);
    passes.forEach((list, i) => {
      const y = i * row + 1;
      picture.append(svg("rect", { class: "bubble", x: gutter, y, width: width - gutter - 2, height: bar }));
      if (i % Math.ceil(13 / row) === 0)
        picture.append(
          svg("text", { class: "tick", x: gutter - 6, y: y + row / 2 + 2.5, "text-anchor": "end" }, i + 1),
        );
      for (const block of blocks(list, at, gutter, width - 2)) picture.append(blockMark(block, y, bar));
      ending(picture, i, y, bar);
    });
    ticks(window).forEach((time) =>
      picture.append(
        svg("line", { class: "grid", x1: at(time), x2: at(time), y1: height - 32, y2: height - 27 }),
        svg(
          "text",
          { class: "tick", x: Math.min(at(time), width - 24), y: height - 14, "text-anchor": "middle" },
          seconds(time, 3),
        ),
      ),
    );
    host.replaceChildren(picture);

    /** What a stage does after its last backward pass. */
    function ending(target, i, y, h) {
      let from = finished[i];
      for (const [key, kind, name] of [
        ["exchange_s", "exchange", "gradient exchange"],
        ["step_s", "step", "optimizer"],
      ]) {
        const time = stages[i][key] ?? 0;
        const [x1, x2] = [Math.max(gutter, at(from)), Math.min(width - 2, at(from + time))];
        from += time;
        if (x2 <= x1) continue;
        const title = svg("title", {}, `${name}: ${seconds(time)}`);
        target.append(svg("rect", { class: kind, x: x1, y, width: x2 - x1, height: h }, title));
      }
    }
  };
  const zoom = (factor, shift = 0) => {
    const span = Math.min(total, (window.to - window.from) * factor);
    const from = Math.max(0, Math.min(total - span, window.from + shift * span));
    [window.from, window.to] = [from, from + span];
    root.redraw();
  };
  const tool = (name, text, action) =>
    el("button", { type: "button", class: "tool", title: name, "aria-label": name, onclick: action }, text);
  const root = figure({
    id: "timeline",
    title: "One batch through the pipeline",
    note: [
      `Stages from top to bottom, 1F1B, one pipeline of ${number(result.strategy?.data_parallel)}`,
      `${count(micros, "micro-batch", "micro-batches")} each${drawn < micros ? `, of which ${number(drawn)} are drawn` : ""}`,
      `a stage stands idle ${percent(1 - busy / (last * stages.length))} of the ${seconds(last)} of passes on average.`,
    ]
      .join("; ")
      .concat(simulated(result, seen)),
    legend: [
      { colour: "--forward", label: "forward" },
      { colour: "--backward", label: "backward" },
      { colour: "--gradient", label: "gradient exchange" },
      { colour: "--optimizer", label: "optimizer" },
      { colour: "--bubble", label: "idle (bubble)" },
    ],
    controls: el(
      "div",
      { class: "controls tight" },
      el(
        "div",
        { class: "tools" },
        tool("Earlier", "←", () => zoom(1, -0.5)),
        tool("Later", "→", () => zoom(1, 0.5)),
        tool("Zoom in", "+", () => zoom(0.5)),
        tool("Zoom out", "−", () => zoom(2)),
        tool("Whole batch", "all", () => zoom(Infinity)),
      ),
    ),
    draw,
    table: () => ({
      columns: ["stage", "pass", "micro-batch", "start s", "end s"].map((name) => ({ name })),
      rows: passes.flatMap((list, i) =>
        list.map((pass) => [
          i + 1,
          pass.forward ? "forward" : "backward",
          pass.micro + 1,
          pass.start,
          pass.end,
        ]),
      ),
    }),
  });
  root.dataset.end = total;
  return root;
}

/** Why the idle share here is not the bubble of the breakdown. */
function simulated({ simulated_time_per_batch_s: time, time_per_batch_s: formula, breakdown_s }, seen) {
  if (!isNumber(time) || !breakdown_s) return "";
  return (
    ` This is the batch as simulated, ${seconds(time)}; the breakdown below is the closed form's, ` +
    `${seconds(formula)}: its bubble is the waiting of the ${seen} stage, as a share of the whole batch.`
  );
}

/** Passes inside the window; those narrower than a pixel and a half are joined to busy runs. */
function blocks(list, at, left, right) {
  const found = [];
  for (const pass of list) {
    const [x1, x2] = [Math.max(left, at(pass.start)), Math.min(right, at(pass.end))];
    if (x2 <= left || x1 >= right || x2 <= x1) continue;
    const run = found.at(-1);
    const narrow = x2 - x1 < 1.5;
    if (narrow && run?.joined && x1 - run.x2 < 0.75) {
      run.x2 = x2;
      run.n += 1;
    } else found.push({ x1, x2, pass, joined: narrow, n: 1 });
  }
  return found;
}

function blockMark({ x1, x2, pass, joined, n }, y, height) {
  const kind = joined && n > 1 ? "mixed" : pass.forward ? "forward" : "backward";
  const title =
    joined && n > 1
      ? count(n, "pass", "passes")
      : `${pass.forward ? "forward" : "backward"} of micro-batch ${pass.micro + 1}: ${seconds(pass.start)} to ${seconds(pass.end)}`;
  const gap = x2 - x1 > 4 ? 0.5 : 0;
  const mark = svg(
    "rect",
    {
      class: `${kind}${pass.micro % 2 && !joined ? " odd" : ""}`,
      x: x1,
      y,
      width: Math.max(0.2, x2 - x1 - gap),
      height,
    },
    svg("title", {}, title),
  );
  if (joined || x2 - x1 < 16 || height < 11) return mark;
  return svg(
    "g",
    {},
    mark,
    svg(
      "text",
      { class: `inblock on-${kind}`, x: (x1 + x2) / 2, y: y + height / 2 + 3.5, "text-anchor": "middle" },
      pass.micro + 1,
    ),
  );
}

/** About five round times inside a window. */
export function ticks({ from, to }) {
  const rough = (to - from) / 5;
  const size = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((m) => m * size).find((candidate) => candidate >= rough);
  const found = [];
  for (let i = Math.ceil(from / step); i * step <= to; i++) found.push(i * step);
  return found;
}
