// Each operator as a dot under the design's roof: what it reaches against what it could.

import { svg } from "./dom.js";
import { figure } from "./figure.js";
import { number, percent, scaled } from "./format.js";
import { apart } from "./labels.js";

/** The roofline of a design with the operators that do arithmetic; `limited(operator)` names its limit. */
export function roofline(design, operators, chosen, pick, limited) {
  const { peak_flops_per_s: peak, hbm_bytes_per_s: bandwidth } = design;
  const dots = operators
    .map((operator, at) => ({
      operator,
      at,
      rate: operator.flops / (operator.end_s - operator.start_s),
      intensity: operator.flops / operator.hbm_bytes,
    }))
    .filter(
      ({ rate, intensity }) =>
        rate > 0 && Number.isFinite(rate) && intensity > 0 && Number.isFinite(intensity),
    );
  if (dots.length === 0 || !(peak > 0) || !(bandwidth > 0)) return null;
  const ridge = peak / bandwidth;
  const x = span([ridge / 4, ridge * 4, ...dots.map((dot) => dot.intensity)]);
  const y = span([peak / 8, ...dots.map((dot) => dot.rate)], peak * 1.9);
  const draw = (host, width) => {
    const [left, top, h] = [62, 10, 250];
    const across = (value) => left + ((Math.log10(value) - x[0]) / (x[1] - x[0])) * (width - left - 8);
    const up = (value) => top + h * (1 - (Math.log10(value) - y[0]) / (y[1] - y[0]));
    const picture = svg("svg", {
      viewBox: `0 0 ${width} ${h + 50}`,
      role: "group",
      "aria-label": "Roofline",
    });
    for (let power = Math.ceil(x[0]); power <= x[1]; power++)
      picture.append(
        svg("line", {
          class: "grid",
          x1: across(10 ** power),
          x2: across(10 ** power),
          y1: top,
          y2: top + h,
        }),
        svg(
          "text",
          { class: "tick", x: across(10 ** power), y: top + h + 16, "text-anchor": "middle" },
          number(10 ** power),
        ),
      );
    for (let power = Math.ceil(y[0]); power <= y[1]; power++)
      picture.append(
        svg("line", { class: "grid", x1: left, x2: width - 8, y1: up(10 ** power), y2: up(10 ** power) }),
        svg(
          "text",
          { class: "tick", x: left - 6, y: up(10 ** power) + 4, "text-anchor": "end" },
          scaled(10 ** power, ""),
        ),
      );
    const start = 10 ** Math.max(x[0], y[0] - Math.log10(bandwidth));
    picture.append(
      svg("path", {
        class: "roof",
        d: `M${across(start)} ${up(start * bandwidth)}L${across(ridge)} ${up(peak)}H${width - 8}`,
      }),
      svg(
        "text",
        { class: "tick strong", x: width - 10, y: up(peak) - 7, "text-anchor": "end" },
        `${scaled(peak, "FLOP/s")}`,
      ),
      svg(
        "text",
        { class: "tick", x: left + (width - left) / 2, y: h + 44, "text-anchor": "middle" },
        "FLOP per byte of HBM",
      ),
    );
    // The chosen one last, so that no neighbour hides it.
    const order = [...dots].sort((a, b) => (a.at === chosen) - (b.at === chosen));
    for (const { operator, at, rate, intensity } of order) {
      const name = `${operator.name}: ${scaled(rate, "FLOP/s")}, ${percent(rate / Math.min(peak, intensity * bandwidth))} of its roof, limited by ${limited(operator) ?? "nothing"}`;
      const choose = () => pick(at);
      picture.append(
        svg(
          "circle",
          {
            class: at === chosen ? "dot chosen" : "dot",
            cx: across(intensity),
            cy: up(rate),
            r: at === chosen ? 7 : 5,
            tabindex: "0",
            role: "button",
            "aria-label": name,
            onclick: choose,
            onkeydown: (event) => {
              if (event.key === "Enter" || event.key === " ") {
                event.preventDefault();
                choose();
              }
            },
          },
          svg("title", {}, name),
        ),
      );
    }
    // Below the roof, where its own label cannot be met; the chosen one takes its place first.
    const marks = order.reverse().map(({ operator, at, rate, intensity }) => ({
      name: operator.name,
      chosen: at === chosen,
      x: across(intensity),
      y: up(rate),
      width: 6.4 * operator.name.length,
    }));
    const bounds = { left, top: up(peak) + 4, right: width, bottom: top + h };
    apart(marks, bounds, 15).forEach((box, i) => {
      if (!box) return;
      const kind = marks[i].chosen ? "tick strong" : "tick";
      picture.append(svg("text", { class: kind, x: box.x, y: box.y + 11 }, marks[i].name));
    });
    host.replaceChildren(picture);
  };
  return figure({
    id: "roofline",
    title: "Under the roof",
    note: `FLOP/s reached against FLOP per byte; the roof bends at ${number(ridge, 3)}. What holds an operator below the roof, such as the global buffer or the vector cores, stands in its tooltip and in the last column of the table.`,
    draw,
    table: () => ({
      columns: ["operator", "FLOP/byte", "FLOP/s", "of its roof", "limited by"].map((name) => ({ name })),
      rows: dots.map(({ operator, rate, intensity }) => [
        operator.name,
        intensity,
        rate,
        rate / Math.min(peak, intensity * bandwidth),
        limited(operator),
      ]),
      pick: (index) => pick(dots[index].at),
    }),
  });
}

/** Bounds in powers of ten with a little air. */
function span(values, top) {
  const logs = values.map(Math.log10);
  return [Math.min(...logs) - 0.25, top ? Math.log10(top) : Math.max(...logs) + 0.25];
}
