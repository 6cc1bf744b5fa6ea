// The scatter as SVG text, for downloads.

import { svg, themed } from "./dom.js";
import { apart } from "./labels.js";
import { css } from "./palette.js";

/** The same picture as SVG text: one path of zero-length round strokes per ink. */
export function scatterVector(chart, model, width, height) {
  const { plot } = chart;
  const ratio = window.devicePixelRatio || 1;
  const [left, top] = [plot.bbox.left / ratio, plot.bbox.top / ratio];
  const [w, h] = [plot.bbox.width / ratio, plot.bbox.height / ratio];
  const dots = new Map();
  for (const row of chart.drawn()) {
    const [x, y] = chart.position(row);
    const key = model.which[row];
    dots.set(key, `${dots.get(key) ?? ""}M${(left + x).toFixed(1)} ${(top + y).toFixed(1)}h0`);
  }
  const text = (x, y, anchor, content) =>
    svg("text", { x, y, "text-anchor": anchor, "font-size": 11, fill: themed("--muted") }, content);
  const labels = [0, 1].flatMap((axis) => {
    const key = axis === 0 ? "x" : "y";
    return (plot.axes[axis]._splits ?? [])
      .filter((value) => value !== null)
      .map((value) => {
        const at = plot.valToPos(value, key);
        return axis === 0
          ? text(left + at, top + h + 18, "middle", model.x.show(value))
          : text(left - 8, top + at + 4, "end", model.y.show(value));
      });
  });
  const front = model.front.points
    .map(([x, y], i) => `${i ? "L" : "M"}${left + plot.valToPos(x, "x")} ${top + plot.valToPos(y, "y")}`)
    .join("");
  const marks = model.marks.map((mark) => ({
    ...mark,
    x: left + plot.valToPos(mark.x, "x"),
    y: top + plot.valToPos(mark.y, "y"),
    width: 6 * mark.name.length,
  }));
  const boxes = apart(marks, { left, top, right: left + w, bottom: top + h }, 14);
  const named = marks.flatMap(({ x, y, best, name }, i) => [
    svg("circle", { cx: x, cy: y, r: 5, fill: themed(best ? "--accent" : "--ink") }),
    boxes[i] && text(boxes[i].x, boxes[i].y + 11, "start", name),
  ]);
  const picture = svg(
    "svg",
    { viewBox: `0 0 ${width} ${height}`, width, height, "font-family": "sans-serif" },
    svg("rect", { width, height, fill: themed("--ground") }),
    svg("rect", { x: left, y: top, width: w, height: h, fill: "none", stroke: themed("--rule") }),
    [...dots]
      .sort(([a], [b]) => (b % 2) - (a % 2))
      .map(([which, d]) =>
        svg("path", {
          d,
          fill: "none",
          stroke: css(model.inks[which >> 1]),
          "stroke-linecap": "round",
          "stroke-width": which % 2 ? 2.5 : 5,
          "stroke-opacity": which % 2 ? 0.45 : 0.85,
        }),
      ),
    svg("path", {
      d: front,
      fill: "none",
      stroke: themed("--ink"),
      "stroke-width": 1.5,
      "stroke-dasharray": model.front.exact ? null : "5 4",
    }),
    named,
    labels,
    text(left + w / 2, height - 6, "middle", model.x.label),
    text(8, 12, "start", model.y.label),
  );
  return new XMLSerializer().serializeToString(picture);
}
