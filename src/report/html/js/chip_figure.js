// Chips side by side, at one scale.

import { chip, chipFacts, memoryStacks, side } from "./chip.js";
import { svg } from "./dom.js";
import { figure } from "./figure.js";
import { shortened } from "./format.js";

/** The chips of `drawn`, each with its name and facts. */
export function chipFigure(drawn, id, title) {
  const draw = (host, width) => {
    const gap = 30;
    const column = (width - gap * (drawn.length - 1)) / drawn.length;
    const scale = Math.min(14, (column - 24) / Math.max(...drawn.map((one) => side(one.design))));
    const tallest = Math.max(...drawn.map((one) => side(one.design))) * scale;
    const picture = svg("svg", {
      viewBox: `0 0 ${width} ${tallest + 128}`,
      role: "img",
      "aria-label": drawn.map((one) => `${one.name}: ${chipFacts(one.design).join(", ")}`).join("; "),
    });
    let x = 0;
    for (const { name, design } of drawn) {
      const size = side(design) * scale;
      const top = 22 + tallest - size;
      picture.append(
        svg(
          "text",
          { class: "strong", x, y: top - 8 },
          shortened(name, column / 7.6),
          svg("title", {}, name),
        ),
        chip(design, x, top, scale),
        memoryStacks(design, x + size + 6, top, size),
      );
      chipFacts(design).forEach((fact, i) =>
        picture.append(svg("text", { class: "muted", x, y: 22 + tallest + 20 + 17 * i }, fact)),
      );
      x += column + gap;
    }
    const bar = 5 * scale;
    picture.append(
      svg("path", { class: "rule", d: `M0 ${tallest + 106}v5h${bar}v-5` }),
      svg("text", { class: "muted", x: bar + 8, y: tallest + 113 }, "5 mm"),
    );
    host.replaceChildren(picture);
  };
  const regions = ["tensor_cores_um2", "tensor_local_um2", "vector_cores_um2", "vector_local_um2", "glb_um2"];
  return figure({
    id,
    title,
    note: "One area model (22 nm) for both. HBM stands outside the die.",
    draw,
    legend: [
      { colour: "--tensor", label: "tensor cores" },
      { colour: "--vector", label: "vector cores" },
      { colour: "--local", label: "local buffers" },
      { colour: "--glb", label: "global buffer" },
      { colour: "--hbm", label: "HBM" },
    ],
    table: () => ({
      columns: [{ name: "region (µm²)" }, ...drawn.map(({ name }) => ({ name }))],
      rows: [
        ...regions.map((key) => [
          key.replace("_um2", "").replaceAll("_", " "),
          ...drawn.map(({ design }) => design.area?.[key]),
        ]),
        ["total", ...drawn.map(({ design }) => design.area_um2)],
      ],
    }),
  });
}
