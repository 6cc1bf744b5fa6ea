// A chip drawn to scale: every region's area is its share of the silicon.

import { svg } from "./dom.js";
import { bytes, number, scaled, squareMillimetres } from "./format.js";

// More cells than this would be a grey mist; the region is then hatched in the right proportion.
const MOST_CELLS = 1024;

/** Side of the chip in millimetres. */
export function side(design) {
  return Math.sqrt(design.area_um2) / 1000;
}

/** Draws `design` with its top left corner at (x, y), at `scale` pixels per millimetre. */
export function chip(design, x, y, scale) {
  const size = side(design) * scale;
  const parts = design.area ?? {};
  const tensor = (parts.tensor_cores_um2 ?? 0) + (parts.tensor_local_um2 ?? 0);
  const vector = (parts.vector_cores_um2 ?? 0) + (parts.vector_local_um2 ?? 0);
  const cores = tensor + vector;
  const total = cores + (parts.glb_um2 ?? 0);
  const group = svg("g", { class: "chip" });
  group.append(svg("rect", { class: "die", x, y, width: size, height: size, rx: 2 }));
  if (!(total > 0)) return group;
  // Cores above, the global buffer as a band below; vector cores at the right of the tensor cores.
  const coreHeight = size * (cores / total);
  const tensorWidth = size * (tensor / cores);
  group.append(
    cells(x, y, tensorWidth, coreHeight, design.tensor_cores, parts.tensor_local_um2 / tensor, "tensor"),
    cells(
      x + tensorWidth,
      y,
      size - tensorWidth,
      coreHeight,
      design.vector_cores,
      parts.vector_local_um2 / vector,
      "vector",
    ),
    region(x, y + coreHeight, size, size - coreHeight, "glb"),
  );
  label(group, x + tensorWidth / 2, y + coreHeight / 2, tensorWidth, coreHeight, [
    `${number(design.tensor_cores)} tensor`,
    `${design.width}×${design.depth}`,
  ]);
  label(group, x + size / 2, y + coreHeight + (size - coreHeight) / 2, size, size - coreHeight, [
    `buffer ${bytes(design.glb_bytes)}`,
  ]);
  return group;
}

/** HBM stacks beside the chip: one per 16 GiB, not silicon of this die, so not to its scale. */
export function memoryStacks(design, x, y, height) {
  const stacks = Math.max(1, Math.min(8, Math.round(design.hbm_bytes / 2 ** 30 / 16)));
  const step = height / stacks;
  return svg(
    "g",
    { class: "hbm" },
    Array.from({ length: stacks }, (_, i) =>
      svg("rect", { x, y: y + i * step + 1.5, width: 16, height: Math.max(2, step - 3), rx: 2 }),
    ),
  );
}

/** What stands under a drawn chip. */
export function chipFacts(design) {
  return [
    squareMillimetres(design.area_um2),
    `${scaled(design.peak_flops_per_s, "FLOP/s")} peak`,
    `${number(design.vector_cores)} × ${number(design.vector_width)} vector lanes`,
    `HBM ${bytes(design.hbm_bytes)}, ${scaled(design.hbm_bytes_per_s, "B/s")}`,
  ];
}

/** A grid of `n` cores; the darker part of each is its local buffer. */
function cells(x, y, width, height, n, localShare, kind) {
  const group = svg("g", { class: kind }, region(x, y, width, height, "core"));
  if (n > MOST_CELLS || (width * height) / n < 5) {
    const local = Number.isFinite(localShare) ? localShare : 0;
    group.append(
      svg("rect", { class: "local", x, y: y + height * (1 - local), width, height: height * local }),
    );
    return group;
  }
  const columns = bestColumns(n, width, height);
  const rows = Math.ceil(n / columns);
  const [w, h] = [width / columns, height / rows];
  const gap = Math.min(1.2, 0.12 * Math.min(w, h));
  for (let i = 0; i < n; i++) {
    const [left, top] = [x + (i % columns) * w + gap, y + Math.floor(i / columns) * h + gap];
    const [cw, ch] = [Math.max(0.3, w - 2 * gap), Math.max(0.3, h - 2 * gap)];
    const local = ch * (Number.isFinite(localShare) ? localShare : 0);
    group.append(
      svg("rect", { class: "array", x: left, y: top, width: cw, height: ch - local }),
      svg("rect", { class: "local", x: left, y: top + ch - local, width: cw, height: local }),
    );
  }
  return group;
}

/** The number of columns, dividing `n` where it is a power of two, that makes cells squarest. */
function bestColumns(n, width, height) {
  let best = 1;
  let least = Infinity;
  for (let columns = 1; columns <= n; columns *= 2) {
    const shape = Math.abs(Math.log(width / columns / (height / Math.ceil(n / columns))));
    if (shape < least) [best, least] = [columns, shape];
  }
  return best;
}

function region(x, y, width, height, kind) {
  return svg("rect", { class: kind, x, y, width: Math.max(0, width), height: Math.max(0, height) });
}

function label(group, x, y, width, height, lines) {
  if (width < 62 || height < 15 * lines.length) return;
  lines.forEach((line, i) =>
    group.append(
      svg(
        "text",
        { class: "onchip", x, y: y + 14 * (i - (lines.length - 1) / 2) + 4, "text-anchor": "middle" },
        line,
      ),
    ),
  );
}
