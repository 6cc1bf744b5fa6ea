// How one matmul is cut: the operands with their global-buffer tile, local tile and core split.

import { el, svg } from "./dom.js";
import { figure } from "./figure.js";
import { number } from "./format.js";

/** The mapping of an operator, or a word on why there is none. */
export function tiles(design, operator) {
  const { matmul, mapping } = operator ?? {};
  if (!matmul || !mapping) {
    return el(
      "div",
      { class: "figure plain" },
      el("h3", {}, operator?.name ?? "Mapping"),
      el(
        "p",
        { class: "note" },
        matmul
          ? "Its mapping is not recorded."
          : `Not a matmul: it runs on ${operator?.core === "network" ? "the network" : "the vector cores"}, limited by ${operator?.limit ?? "nothing"}.`,
      ),
    );
  }
  const draw = (host, width) => {
    // A fixed picture width keeps proportions readable; sizes are compressed so that 64 beside 50,000 can be seen.
    const shrink = (size) => Math.sqrt(size);
    const sum = shrink(matmul.k) + Math.max(shrink(matmul.n), 1);
    const tall = shrink(matmul.k) + shrink(matmul.m);
    const unit = Math.min((width - 60) / sum, 300 / tall);
    const size = (name) => Math.max(26, shrink(matmul[name]) * unit);
    const [m, k, n] = ["m", "k", "n"].map(size);
    const [left, top, gap] = [26, 22, 16];
    const picture = svg("svg", {
      viewBox: `0 0 ${width} ${top + k + gap + m + 24}`,
      role: "img",
      "aria-label": text(operator).join(". "),
    });
    picture.append(
      operand("A", left, top + k + gap, k, m, "k", "m"),
      operand("B", left + k + gap, top, n, k, "n", "k"),
      operand("out", left + k + gap, top + k + gap, n, m, "n", "m"),
    );
    host.replaceChildren(picture);

    /** One matrix with `across` on x and `down` on y; tiles lie in its top left corner. */
    function operand(name, x, y, w, h, across, down) {
      const share = (level, along) => Math.min(1, (mapping[level]?.[along] ?? matmul[along]) / matmul[along]);
      const splits = [mapping.cores?.[across] ?? 1, mapping.cores?.[down] ?? 1];
      const group = svg("g", {}, svg("rect", { class: "whole", x, y, width: w, height: h }));
      // Beyond 16 parts, lines across would hide the tiles: ticks at the edge tell as much.
      const lines = (n, draw) => {
        if (n > 1 && n <= 128) for (let i = 1; i < n; i++) group.append(draw(i / n, n > 16));
      };
      lines(splits[0], (at, short) =>
        svg("line", { class: "split", x1: x + at * w, x2: x + at * w, y1: y + h, y2: short ? y + h - 5 : y }),
      );
      lines(splits[1], (at, short) =>
        svg("line", { class: "split", x1: x + w, x2: short ? x + w - 5 : x, y1: y + at * h, y2: y + at * h }),
      );
      // A sliver stays visible, and that of the global buffer beside the one on top of it.
      for (const [level, least] of [
        ["glb_tile", 5],
        ["local_tile", 3],
      ]) {
        group.append(
          svg(
            "rect",
            {
              class: level,
              x,
              y,
              width: Math.max(least, w * share(level, across)),
              height: Math.max(least, h * share(level, down)),
            },
            svg(
              "title",
              {},
              `${level.replace("_tile", "")} tile of ${name}: ${number(mapping[level]?.[down])} × ${number(mapping[level]?.[across])}`,
            ),
          ),
        );
      }
      group.append(
        svg("text", { class: "strong", x: x + w / 2, y: y + h / 2 + 4, "text-anchor": "middle" }, name),
        svg(
          "text",
          { class: "tick", x: x + w / 2, y: y - 5, "text-anchor": "middle" },
          name === "out" ? "" : `${across} ${number(matmul[across])}`,
        ),
      );
      if (name === "A")
        group.append(
          svg(
            "text",
            { class: "tick", x: 0, y: y + h + 16 },
            `m ${number(matmul.m)}${matmul.b > 1 ? `, ${number(matmul.b)} matrices` : ""}`,
          ),
        );
      return group;
    }
  };
  const root = figure({
    id: "tiles",
    title: `How ${operator.name} is cut`,
    note: "Sides of matrices grow with the square root of their size. Within a matrix, tiles and the cores' parts are to one scale; a tile too thin to see is drawn 3 to 5 pixels wide.",
    draw,
    legend: [
      { colour: "--glbtile", label: "tile in the global buffer" },
      { colour: "--localtile", label: "tile in a core" },
      { colour: "--muted", label: "cores", hollow: true },
    ],
    table: () => ({
      columns: ["dimension", "size", "cores", "global-buffer tile", "local tile", "on the array"].map(
        (name) => ({ name }),
      ),
      rows: ["b", "m", "k", "n"].map((name) => [
        name,
        matmul[name],
        mapping.cores?.[name] ?? null,
        mapping.glb_tile?.[name] ?? null,
        mapping.local_tile?.[name] ?? null,
        Object.entries(mapping.array ?? {}).find(([, along]) => along === name)?.[0] ?? null,
      ]),
    }),
  });
  root.append(
    el(
      "ul",
      { class: "plainlist" },
      text(operator).map((line) => el("li", {}, line)),
    ),
  );
  return root;
}

/** The mapping in words. */
function text({ matmul, mapping }) {
  const split = ["b", "m", "k", "n"]
    .filter((name) => (mapping.cores?.[name] ?? 1) > 1)
    .map((name) => `${name} in ${number(mapping.cores[name])}`);
  const tile = (level) =>
    mapping[level]
      ? `${number(mapping[level].m)} × ${number(mapping[level].k)} × ${number(mapping[level].n)} (m × k × n)`
      : "unknown";
  return [
    `${["b", "m", "k", "n"].map((name) => number(matmul[name])).join(" × ")} (b × m × k × n)`,
    split.length ? `Over the cores: ${split.join(", ")}` : "On one core",
    mapping.array &&
      `On the array: ${mapping.array.width} along its width, ${mapping.array.depth} along its depth, ${mapping.array.stream} streams`,
    `In the global buffer: ${tile("glb_tile")}, ${mapping.glb_inner ?? "?"} innermost`,
    `In a core: ${tile("local_tile")}, ${mapping.local_inner ?? "?"} innermost`,
  ].filter(Boolean);
}
