// The frame of every chart: title, note, legend, downloads, and the same content as a table.

import { el, refill } from "./dom.js";
import { csv, png, save, standalone } from "./download.js";
import { table } from "./table.js";

const drawn = new Set();

/**
 * `draw(host, width)` fills the host, again whenever its width or the theme changes;
 * `table()` answers `{ columns, rows, pick?, picked? }`; `vector()` answers SVG text where the
 * host holds no SVG of its own; `id` names downloads.
 */
export function figure({ id, title, note, legend, controls, draw, table: content, vector }) {
  const host = el("div", { class: "canvas" });
  const state = { width: 0, tabular: false };
  const picture = () => (vector ? vector() : standalone(host.querySelector("svg")));
  const tabular = el(
    "button",
    { type: "button", class: "tool", "aria-pressed": "false", onclick: toggle },
    "Table",
  );
  const tools = el(
    "div",
    { class: "tools", role: "group", "aria-label": `${title}: other forms` },
    tabular,
    tool("SVG", () => save(`${id}.svg`, picture(), "image/svg+xml")),
    tool("PNG", async () => save(`${id}.png`, await png(picture()))),
    tool("CSV", () => save(`${id}.csv`, csv(content()), "text/csv")),
  );
  const root = el(
    "figure",
    { class: "figure", id },
    el("figcaption", {}, el("div", {}, el("h3", {}, title), note && el("p", { class: "note" }, note)), tools),
    controls,
    legend && keys(legend),
    host,
  );

  function tool(name, action) {
    const run = () => {
      if (!state.tabular || name === "CSV") return action();
      toggle();
      redraw();
      return action();
    };
    return el("button", { type: "button", class: "tool", title: `Download as ${name}`, onclick: run }, name);
  }

  function toggle() {
    state.tabular = !state.tabular;
    tabular.setAttribute("aria-pressed", String(state.tabular));
    tabular.textContent = state.tabular ? "Chart" : "Table";
    redraw();
  }

  function redraw() {
    if (!root.isConnected) return;
    if (state.width === 0) state.width = Math.floor(host.getBoundingClientRect().width);
    if (state.width === 0) return;
    if (state.tabular) refill(host, table({ caption: title, ...content() }));
    else draw(host, state.width);
  }

  new ResizeObserver(([entry]) => {
    const width = Math.floor(entry.contentRect.width);
    if (width === state.width || width === 0) return;
    state.width = width;
    redraw();
  }).observe(host);
  root.redraw = redraw;
  drawn.add(new WeakRef(root));
  return root;
}

/** Draws every chart on the page again, after the theme has changed. */
export function redrawAll() {
  for (const reference of drawn) {
    const root = reference.deref();
    if (!root) drawn.delete(reference);
    else root.redraw();
  }
}

/** A row of colour keys: `{ colour: "--name" or shade: any CSS colour, label, hollow? }`. */
export function keys(items) {
  return el(
    "ul",
    { class: "keys" },
    items.map(({ colour, shade, label, hollow }) =>
      el(
        "li",
        {},
        el("span", { class: hollow ? "key hollow" : "key", style: `--key: ${shade ?? `var(${colour})`}` }),
        label,
      ),
    ),
  );
}
