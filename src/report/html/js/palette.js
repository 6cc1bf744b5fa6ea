// What is stacked and in which colour, so that neighbours stay apart for all readers; an ordered ramp.

/** Where a batch's time goes, in the order in which it is stacked. */
export const PARTS = [
  ["layers", "--tensor", "layers"],
  ["tensor", "--tensor", "tensor cores"],
  ["vector", "--vector", "vector cores"],
  ["memory", "--memory", "memory"],
  ["exchanges_in_layers", "--collective", "exchanges in layers"],
  ["pipeline_transfers", "--transfer", "pipeline transfers"],
  ["recompute", "--recompute", "recompute"],
  ["gradient_exchange", "--gradient", "gradient exchange"],
  ["optimizer", "--optimizer", "optimizer"],
  ["weight_gathering", "--gather", "weights gathered"],
  ["bubble", "--bubble", "bubble"],
];

/** What fills a device's memory, in the order in which it is stacked. */
export const MEMORY = [
  ["weights", "--tensor", "weights"],
  ["gradients", "--gradient", "gradients"],
  ["optimizer_state", "--optimizer", "optimizer state"],
  ["activations", "--transfer", "activations"],
  ["gathered", "--gather", "gathered for a while"],
  ["working", "--memory", "working of the running pass"],
];

/** The colour of an operator by the core that runs it. */
export const CORES = {
  tensor: "--tensor",
  vector: "--vector",
  both: "--both",
  network: "--collective",
  none: "--bubble",
};

/** Parts of `values` in stacking order; unknown keys come last, in grey. */
export function stack(values, known) {
  const named = known
    .filter(([key]) => values[key] > 0)
    .map(([key, colour, label]) => ({ key, colour, label, value: values[key] }));
  const others = Object.keys(values)
    .filter((key) => values[key] > 0 && !known.some(([name]) => name === key))
    .map((key) => ({ key, colour: "--other", label: key.replaceAll("_", " "), value: values[key] }));
  return [...named, ...others];
}

const LIGHT_RAMP = ["#c9a227", "#86a74a", "#3f9b76", "#22808c", "#2b6091", "#39407f", "#3a1d5c"];
const DARK_RAMP = ["#7a5fd0", "#5b8be0", "#3fb0c8", "#4fc99a", "#9fd65f", "#e3d24a", "#fff3a8"];

/** `n` ordered colours as [red, green, blue], lightness rising or falling throughout. */
export function ramp(n, dark) {
  const stops = (dark ? DARK_RAMP : LIGHT_RAMP).map(rgb);
  return Array.from({ length: n }, (_, i) => {
    const place = n === 1 ? stops.length - 1 : (i / (n - 1)) * (stops.length - 1);
    const low = Math.min(Math.floor(place), stops.length - 2);
    const share = place - low;
    return stops[low].map((from, channel) => Math.round(from + share * (stops[low + 1][channel] - from)));
  });
}

/** `#rrggbb` as [red, green, blue]. */
export function rgb(hex) {
  return [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16));
}

export function css([red, green, blue]) {
  return `rgb(${red},${green},${blue})`;
}
