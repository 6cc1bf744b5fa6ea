// Colours for the points of the scatter, and their legend.

import { el } from "./dom.js";
import { css, ramp } from "./palette.js";

/** One ink per distinct value where there are few, else a ramp of 24 steps, and its legend. */
export function shades(values, measure) {
  const dark = document.documentElement.dataset.theme === "dark";
  const known = [...new Set(values)].filter((value) => value !== null).sort((a, b) => a - b);
  const distinct = known.length <= 16;
  const steps = distinct ? known.length : 24;
  const [low, high] = [known[0], known.at(-1)];
  const inks = [...ramp(Math.max(1, steps), dark), dark ? [110, 118, 130] : [160, 165, 172]];
  const level = (value) =>
    distinct ? known.indexOf(value) : Math.min(23, Math.floor(((value - low) / (high - low)) * 24));
  const which = values.map((value) => (value === null ? inks.length - 1 : level(value)));
  const ticks = distinct ? known : [low, high];
  const legend = el(
    "div",
    { class: "ramp" },
    el("span", {}, measure.label),
    ticks.length > 0 &&
      (distinct
        ? known.map((value, i) =>
            el(
              "span",
              { class: "step" },
              el("i", { style: `background:${css(inks[i])}` }),
              measure.show(value),
            ),
          )
        : [
            measure.show(low),
            el("i", {
              class: "wide",
              style: `background:linear-gradient(90deg,${inks.slice(0, -1).map(css).join()})`,
            }),
            measure.show(high),
          ]),
    values.includes(null) &&
      el("span", { class: "step" }, el("i", { style: `background:${css(inks.at(-1))}` }), "unknown"),
  );
  return { inks, which, legend };
}
