// The scatter of all designs: uPlot draws axes and takes the brush, `points` paints the marks.

import { themed } from "./dom.js";
import { apart } from "./labels.js";
import { brush, nearest, paint, stamp } from "./points.js";
import { doublings, extent, jitter, moved, unit, zoomed } from "./view.js";

// Height of the strip that holds the designs without a value on these axes.
const STRIP = 18;

/**
 * `model` holds `n`, `x` and `y` (values or null per row), `x.label`…, `rows` (those that pass the
 * filters, in painting order), `which` and `inks` (their colour), `hollow(row)`, `marks` (named
 * points), `front` (values to join), `selected`. `on.hover(row, left, top)` and `on.pick(row)`.
 */
export function scatter(host, width, height, model, view, on) {
  const ratio = window.devicePixelRatio || 1;
  const full = { x: extent(model, "x"), y: extent(model, "y") };
  const px = new Float32Array(model.n);
  const py = new Float32Array(model.n);
  let drawn = [];
  const ink = {
    ink: themed("--muted"),
    rule: themed("--rule"),
    ground: themed("--ground"),
    strong: themed("--ink"),
    accent: themed("--accent"),
  };
  const axis = ({ label, show }) => ({
    label,
    labelSize: 26,
    labelFont: `500 12px ${themed("--sans")}`,
    font: `11px ${themed("--sans")}`,
    stroke: ink.ink,
    grid: { stroke: ink.rule, width: 1 },
    ticks: { stroke: ink.rule, width: 1, size: 5 },
    values: (_, splits) => splits.map((value) => (value === null ? null : show(value))),
  });
  const scale = (key) => ({
    time: false,
    distr: model[key].log ? 3 : 1,
    log: model[key].discrete ? 2 : 10,
    auto: false,
    range: (_, low, high) => [low, high],
  });
  /** Ticks of a knob stand at its own values, at least `gap` pixels from each other. */
  const stops = (key, gap) => {
    if (!model[key].discrete) return {};
    const marked = model.marks.map((mark) => mark[key]);
    const own = [...new Set([...model[key].at, ...marked])].filter((value) => value > 0);
    own.sort((a, b) => a - b);
    return {
      splits: (self, _, low, high) => {
        const side = (key === "x" ? self.bbox.width : self.bbox.height) / ratio;
        return doublings(own, [low, high], gap / side);
      },
      filter: (_, splits) => splits,
    };
  };
  const plot = new uPlot(
    {
      width,
      height,
      legend: { show: false },
      padding: [8, 12, 0, 0],
      scales: { x: scale("x"), y: scale("y") },
      axes: [
        { ...axis(model.x), ...stops("x", 64), space: 64, size: 30 },
        { ...axis(model.y), ...stops("y", 26), size: 62 },
      ],
      series: [{}, { show: true, stroke: "transparent", points: { show: false } }],
      cursor: {
        points: { show: false },
        x: false,
        y: false,
        drag: { x: true, y: true, setScale: false, dist: 6 },
      },
      hooks: { draw: [marks], setSelect: [brushed] },
    },
    [
      [0, 1],
      [0, 1],
    ],
    host,
  );
  show(view.x ?? full.x, view.y ?? full.y);

  function show(x, y) {
    [view.x, view.y] = [x, y];
    plot.batch(() => {
      plot.setScale("x", { min: x[0], max: x[1] });
      plot.setScale("y", { min: y[0], max: y[1] });
    });
  }

  function place() {
    const { left, top, width: w, height: h } = plot.bbox;
    const across = unit(view.x, model.x.log);
    const up = unit(view.y, model.y.log);
    const strip = h - (STRIP * ratio) / 2;
    for (const row of model.rows) {
      const x = model.x.at[row];
      const y = model.y.at[row];
      const known = x !== null && y !== null && model.plotted(row);
      px[row] = x === null ? w - 8 * ratio : across(x, model.x.discrete ? jitter(row, 1) : 0) * w;
      py[row] = known
        ? (1 - up(y, model.y.discrete ? jitter(row, 2) : 0)) * h
        : strip + 8 * ratio * jitter(row, 3);
    }
    return { left, top, w, h };
  }

  function marks() {
    const { ctx } = plot;
    const { left, top, w, h } = place();
    drawn = model.rows.filter((row) => px[row] >= 0 && px[row] <= w && py[row] >= 0 && py[row] <= h);
    const radius = 2.6 * ratio;
    const [dot, ring] = [stamp(radius, false), stamp(radius, true)];
    // Even indices are solid inks, odd ones the same colour as a ring.
    const brushes = model.inks.flatMap((colour) => [brush(colour, 0.85, dot), brush(colour, 0.38, ring)]);
    const pixels = ctx.createImageData(Math.max(1, Math.round(w)), Math.max(1, Math.round(h)));
    paint(pixels, drawn, px, py, model.which, brushes);
    const layer = new OffscreenCanvas(pixels.width, pixels.height);
    layer.getContext("2d").putImageData(pixels, 0, 0);
    ctx.save();
    ctx.beginPath();
    ctx.rect(left, top, w, h);
    ctx.clip();
    if (model.strip) strip(ctx, left, top, w, h);
    ctx.drawImage(layer, left, top);
    overlay(ctx, left, top, w, h);
    ctx.restore();
  }

  function strip(ctx, left, top, w, h) {
    ctx.fillStyle = themed("--surface");
    ctx.fillRect(left, top + h - STRIP * ratio, w, STRIP * ratio);
  }

  function overlay(ctx, left, top, w, h) {
    const across = unit(view.x, model.x.log);
    const up = unit(view.y, model.y.log);
    const at = (x, y) => [left + across(x, 0) * w, top + (1 - up(y, 0)) * h];
    ctx.lineWidth = 1.6 * ratio;
    ctx.strokeStyle = ink.strong;
    ctx.setLineDash(model.front.exact ? [] : [5 * ratio, 4 * ratio]);
    ctx.beginPath();
    model.front.points.forEach(([x, y], i) => (i === 0 ? ctx.moveTo(...at(x, y)) : ctx.lineTo(...at(x, y))));
    ctx.stroke();
    ctx.setLineDash([]);
    const places = model.marks.map((mark) => at(mark.x, mark.y));
    // The winner last: a baseline may be the same design.
    for (let i = model.marks.length - 1; i >= 0; i--) symbol(ctx, places[i], model.marks[i].best);
    names(ctx, places, { left, top, right: left + w, bottom: top + h });
    if (model.selected !== null && drawn.includes(model.selected)) {
      ctx.strokeStyle = ink.accent;
      ctx.lineWidth = 2.4 * ratio;
      ctx.beginPath();
      ctx.arc(left + px[model.selected], top + py[model.selected], 8 * ratio, 0, 7);
      ctx.stroke();
    }
  }

  /** A star for the winner, a diamond for a baseline. */
  function symbol(ctx, [x, y], best) {
    const size = (best ? 8 : 6) * ratio;
    ctx.beginPath();
    for (const [i, angle] of corners(best).entries()) {
      const reach = best && i % 2 ? size * 0.45 : size;
      ctx.lineTo(x + reach * Math.sin(angle), y - reach * Math.cos(angle));
    }
    ctx.closePath();
    ctx.fillStyle = best ? ink.accent : ink.strong;
    ctx.strokeStyle = ink.ground;
    ctx.lineWidth = 1.5 * ratio;
    ctx.stroke();
    ctx.fill();
  }

  /** Names of the marks in view, on a ground that keeps them readable over the points. */
  function names(ctx, places, bounds) {
    ctx.font = `600 ${11 * ratio}px ${themed("--sans")}`;
    ctx.textAlign = "left";
    const marks = model.marks
      .map((mark, i) => ({ name: mark.name, x: places[i][0], y: places[i][1] }))
      .filter(({ x, y }) => x >= bounds.left && x <= bounds.right && y >= bounds.top && y <= bounds.bottom)
      .map((mark) => ({ ...mark, width: ctx.measureText(mark.name).width + 8 * ratio }));
    apart(marks, bounds, 16 * ratio).forEach((box, i) => {
      if (!box) return;
      ctx.globalAlpha = 0.86;
      ctx.fillStyle = ink.ground;
      ctx.fillRect(box.x, box.y, box.width, box.height);
      ctx.globalAlpha = 1;
      ctx.fillStyle = ink.strong;
      ctx.fillText(marks[i].name, box.x + 4 * ratio, box.y + 12 * ratio);
    });
  }

  function brushed() {
    const { left, top, width: w, height: h } = plot.select;
    plot.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
    if (w < 6 || h < 6 || plot.panning) return;
    show(
      [plot.posToVal(left, "x"), plot.posToVal(left + w, "x")],
      [plot.posToVal(top + h, "y"), plot.posToVal(top, "y")],
    );
  }

  const under = (event, reach) => {
    const box = plot.over.getBoundingClientRect();
    return nearest(
      drawn,
      px,
      py,
      (event.clientX - box.left) * ratio,
      (event.clientY - box.top) * ratio,
      reach * ratio,
    );
  };
  plot.over.addEventListener("mousemove", (event) => {
    if (event.buttons === 0) on.hover(under(event, 10), event.clientX, event.clientY);
  });
  plot.over.addEventListener("mouseleave", () => on.hover(null));
  plot.over.addEventListener("click", (event) => {
    const row = under(event, 14);
    if (row !== null) on.pick(row);
  });
  pannable(plot, (dx, dy) => show(moved(view.x, -dx, model.x.log), moved(view.y, dy, model.y.log)));
  plot.over.addEventListener(
    "wheel",
    (event) => {
      // A plain wheel scrolls the page; pinching arrives as a wheel with the control key.
      if (!event.ctrlKey && !event.metaKey) return;
      event.preventDefault();
      const box = plot.over.getBoundingClientRect();
      zoom(
        Math.exp(event.deltaY / 300),
        (event.clientX - box.left) / box.width,
        1 - (event.clientY - box.top) / box.height,
      );
    },
    { passive: false },
  );

  function zoom(factor, fx = 0.5, fy = 0.5) {
    show(zoomed(view.x, factor, fx, model.x.log), zoomed(view.y, factor, fy, model.y.log));
  }

  return {
    zoom,
    reset: () => show(full.x, full.y),
    redraw: () => plot.redraw(false),
    destroy: () => plot.destroy(),
    pan: (dx, dy) => show(moved(view.x, dx, model.x.log), moved(view.y, dy, model.y.log)),
    drawn: () => drawn,
    position: (row) => [px[row] / ratio, py[row] / ratio],
    over: plot.over,
    plot,
  };
}

/** Shift-drag, a drag with the middle button, or two fingers' worth of neither: moves the view. */
function pannable(plot, move) {
  plot.over.addEventListener(
    "mousedown",
    (event) => {
      if (!event.shiftKey && event.button !== 1) return;
      event.preventDefault();
      event.stopImmediatePropagation();
      plot.panning = true;
      const box = plot.over.getBoundingClientRect();
      let [x, y] = [event.clientX, event.clientY];
      const drag = (to) => {
        move((to.clientX - x) / box.width, (to.clientY - y) / box.height);
        [x, y] = [to.clientX, to.clientY];
      };
      const end = () => {
        plot.panning = false;
        window.removeEventListener("mousemove", drag);
        window.removeEventListener("mouseup", end);
      };
      window.addEventListener("mousemove", drag);
      window.addEventListener("mouseup", end);
    },
    true,
  );
}

function corners(star) {
  const n = star ? 10 : 4;
  return Array.from({ length: n }, (_, i) => (i * 2 * Math.PI) / n);
}
