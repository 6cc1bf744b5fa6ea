// The timeline of one batch: every rank's forward and backward passes, what follows, and what waits.

import { el, svg } from "./dom.js";
import { figure } from "./figure.js";
import { count, isNumber, number, percent, seconds } from "./format.js";
import { courseOf, endings, shortened, simulate } from "./passes.js";

const MOST_PASSES = 200_000;

// What follows the last backward pass, by the kind of its mark.
const ENDINGS = { exchange: "gradient exchange", step: "optimizer", gather: "weights gathered" };

/** How much of a pass's colour is left for a chunk: the first has all of it. */
const strength = (chunk, chunks) => (chunks < 2 ? 100 : Math.round(100 - (55 * chunk) / (chunks - 1)));

/** The colour of a pass of a chunk; later chunks are paler. */
function shade(colour, chunk, chunks) {
  return `color-mix(in srgb, var(${colour}) ${strength(chunk, chunks)}%, var(--ground))`;
}

/** Whether a chunk's colour is so pale that text on it takes the ink of the page. */
const pale = (chunk, chunks) => strength(chunk, chunks) < 70;

/** Chunks are a, b, c … */
const letter = (chunk) => String.fromCharCode(97 + (chunk % 26));

/** The chart for one result of an entry. */
export function timeline(result) {
  const { stages, n_micro_batches: micros } = result;
  if (!stages?.length || !isNumber(micros)) return null;
  const course = courseOf(result);
  const { ranks, chunks } = course;
  // A picture has no room for more passes; fewer micro-batches show the same shape.
  const drawn = shortened(course, micros, MOST_PASSES);
  const passes = simulate(stages, course, drawn);
  const after = endings(passes, course);
  const last = Math.max(...passes.map((row) => row.at(-1)?.end ?? 0));
  const total = Math.max(last, ...after.map((parts) => parts.at(-1).end));
  const busy = passes.flat().reduce((sum, pass) => sum + pass.end - pass.start, 0);
  const window = { from: 0, to: total };

  const draw = (host, width) => {
    const gutter = 34;
    const row = Math.max(2.5, Math.min(26, 300 / ranks));
    // Thin rows keep what little height they have.
    const bar = row - (row < 8 ? 0.4 : 2);
    const height = ranks * row + 34;
    const picture = svg("svg", {
      viewBox: `0 0 ${width} ${height}`,
      role: "img",
      "aria-label": `Pipeline of ${count(ranks, "rank")}, ${count(micros, "micro-batch", "micro-batches")}`,
    });
    const at = (time) => gutter + ((time - window.from) / (window.to - window.from)) * (width - gutter - 2);
    passes.forEach((list, i) => {
      const y = i * row + 1;
      picture.append(svg("rect", { class: "bubble", x: gutter, y, width: width - gutter - 2, height: bar }));
      if (i % Math.ceil(13 / row) === 0)
        picture.append(
          svg("text", { class: "tick", x: gutter - 6, y: y + row / 2 + 2.5, "text-anchor": "end" }, i),
        );
      for (const block of blocks(list, at, gutter, width - 2))
        picture.append(blockMark(block, y, bar, chunks));
      for (const { kind, start, end } of after[i]) {
        const [x1, x2] = [Math.max(gutter, at(start)), Math.min(width - 2, at(end))];
        if (x2 <= x1) continue;
        const title = svg("title", {}, `${ENDINGS[kind]}: ${seconds(end - start)}`);
        picture.append(svg("rect", { class: kind, x: x1, y, width: x2 - x1, height: bar }, title));
      }
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
      `Ranks from top to bottom, ${chunks > 1 ? `interleaved 1F1B with ${number(chunks)} chunks each` : "1F1B"}`,
      `one pipeline of ${number(course.pipelines ?? result.strategy?.degrees?.data_parallel)}`,
      `${count(micros, "micro-batch", "micro-batches")} each${drawn < micros ? `, of which ${number(drawn)} are drawn` : ""}`,
      `a rank stands idle ${percent(1 - busy / (last * ranks))} of the ${seconds(last)} of passes on average.`,
    ]
      .join("; ")
      .concat(simulated(result)),
    legend: legend(chunks),
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
      columns: ["rank", "chunk", "pass", "micro-batch", "start s", "end s"].map((name) => ({ name })),
      rows: passes.flatMap((list, i) =>
        list.map((pass) => [
          i,
          letter(pass.chunk),
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

/** Every colour of the picture; of many chunks the first and the last. */
function legend(chunks) {
  const all = Array.from({ length: chunks }, (_, chunk) => chunk);
  const shown = chunks > 4 ? [0, chunks - 1] : all;
  const between = (chunk) => (chunks > 4 && chunk === 0 ? " (later ones paler)" : "");
  const passes = (colour, label) =>
    chunks === 1
      ? [{ colour, label }]
      : shown.map((chunk) => ({
          shade: shade(colour, chunk, chunks),
          label: `${label}, chunk ${letter(chunk)}${between(chunk)}`,
        }));
  return [
    ...passes("--forward", "forward"),
    ...passes("--backward", "backward"),
    { colour: "--mixed", label: "passes too short to tell apart" },
    { colour: "--gradient", label: ENDINGS.exchange },
    { colour: "--optimizer", label: ENDINGS.step },
    { colour: "--gather", label: ENDINGS.gather },
    { colour: "--bubble", label: "idle (bubble)" },
  ];
}

/** Why the picture and the time per batch differ, where the time model is a closed form of its own. */
function simulated({ simulated_time_per_batch_s: time, time_per_batch_s: formula }) {
  if (!isNumber(time)) return "";
  return ` This is the batch as simulated, ${seconds(time)}; the time per batch is the closed form's, ${seconds(formula)}.`;
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

function blockMark({ x1, x2, pass, joined, n }, y, height, chunks) {
  const kind = joined && n > 1 ? "mixed" : pass.forward ? "forward" : "backward";
  const chunk = chunks > 1 ? ` through chunk ${letter(pass.chunk)}` : "";
  const title =
    joined && n > 1
      ? count(n, "pass", "passes")
      : `${pass.forward ? "forward" : "backward"} of micro-batch ${pass.micro + 1}${chunk}: ${seconds(pass.start)} to ${seconds(pass.end)}`;
  const gap = x2 - x1 > 4 ? 0.5 : 0;
  const mark = svg(
    "rect",
    {
      class: `${kind}${pass.micro % 2 && !joined && chunks === 1 ? " odd" : ""}`,
      style: kind !== "mixed" && chunks > 1 && `fill: ${shade(`--${kind}`, pass.chunk, chunks)}`,
      x: x1,
      y,
      width: Math.max(0.2, x2 - x1 - gap),
      height,
    },
    svg("title", {}, title),
  );
  if (joined || x2 - x1 < (chunks > 1 ? 22 : 16) || height < 11) return mark;
  return svg(
    "g",
    {},
    mark,
    svg(
      "text",
      { class: `inblock ${pale(pass.chunk, chunks) ? "on-pale" : `on-${kind}`}`, x: (x1 + x2) / 2, y: y + height / 2 + 3.5, "text-anchor": "middle" },
      `${pass.micro + 1}${chunks > 1 ? letter(pass.chunk) : ""}`,
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
