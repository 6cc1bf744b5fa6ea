// Numbers as people read them. A missing value is always a dash, never a zero.

export const MISSING = "–";

/** A number with `digits` significant digits, those before the point never cut, thousands apart. */
export function number(value, digits = 4) {
  if (!isNumber(value)) return MISSING;
  if (value === 0) return "0";
  const whole = Number.isInteger(value) || Math.abs(value) >= 10 ** (digits - 1);
  if (whole && Math.abs(value) < 1e15) return Math.round(value).toLocaleString("en-US");
  return value.toLocaleString("en-US", { maximumSignificantDigits: digits });
}

/** A ratio such as 1.42×. */
export function ratio(value) {
  return isNumber(value) ? `${value.toFixed(value < 9.995 ? 2 : 1)}×` : MISSING;
}

/** A share of one as a percentage. */
export function percent(value, decimals = 1) {
  return isNumber(value) ? `${(100 * value).toFixed(decimals)} %` : MISSING;
}

/** A value with the largest decimal prefix that keeps it at 1 or more: 275 TFLOP/s. */
export function scaled(value, unit, digits = 4) {
  if (!isNumber(value)) return MISSING;
  const prefixes = [
    [1e18, "E"],
    [1e15, "P"],
    [1e12, "T"],
    [1e9, "G"],
    [1e6, "M"],
    [1e3, "k"],
    [1, ""],
    [1e-3, "m"],
    [1e-6, "µ"],
    [1e-9, "n"],
    [1e-12, "p"],
  ];
  const [size, prefix] = prefixes.find(([size]) => Math.abs(value) >= size) ?? prefixes[6];
  return `${number(value / size, digits)} ${prefix}${unit}`;
}

/** Whether times and sizes are in a user's own units; searches are in seconds and bytes. */
const own = { time: false, size: false };

/** Shows times and sizes as the owner of a plan counts them from now on. */
export function adopt({ time, size }) {
  Object.assign(own, { time: time !== "s", size: size !== "byte" });
}

/** A span of time. */
export function seconds(value, digits = 4) {
  return own.time ? number(value, digits) : scaled(value, "s", digits);
}

export const joules = (value, digits = 4) => scaled(value, "J", digits);

/** Bytes with a binary prefix. */
export function bytes(value, digits = 4) {
  if (!isNumber(value)) return MISSING;
  if (own.size) return scaled(value, "", digits).trim();
  const prefixes = [
    [2 ** 40, "TiB"],
    [2 ** 30, "GiB"],
    [2 ** 20, "MiB"],
    [2 ** 10, "KiB"],
    [1, "B"],
  ];
  const [size, prefix] = prefixes.find(([size]) => Math.abs(value) >= size) ?? prefixes[4];
  return `${number(value / size, digits)} ${prefix}`;
}

/** What a memory axis counts in. */
export function memoryUnit() {
  return own.size ? { size: 1, name: "In the profile's unit" } : { size: 2 ** 30, name: "GiB" };
}

/** Square micrometres as square millimetres. */
export function squareMillimetres(um2, digits = 4) {
  return isNumber(um2) ? `${number(um2 / 1e6, digits)} mm²` : MISSING;
}

/** A degree of a result's strategy by its name; null where it is not told. */
export function degreeOf(result, name) {
  const { degrees, ...told } = result?.strategy ?? {};
  if (name === "chunks" && degrees) return degrees.schedule?.interleaved?.chunks ?? 1;
  return degrees?.[name] ?? told[name] ?? null;
}

/** How a model is trained, as one sentence in the outcome's own words. */
export function strategyWords({ strategy }, devices) {
  const words = sentence(strategy?.sentence ?? MISSING);
  if (!isNumber(strategy?.devices_used)) return words;
  return `${words}: ${number(strategy.devices_used)} of ${number(devices)} devices at work.`;
}

/** The cap of power that was asked for, in words; empty without one. */
export function capWords(request) {
  return isNumber(request?.power_cap_w) ? `at most ${number(request.power_cap_w)} W per device` : "";
}

/** What an entry draws where that is more than was allowed, in words; empty where it is not. */
export function overCap(request, entry) {
  const drawn = (entry?.results ?? []).map((result) => result.average_power_w).filter(isNumber);
  const most = Math.max(0, ...drawn);
  return isNumber(request?.power_cap_w) && most > request.power_cap_w
    ? `draws ${number(most)} W, over the cap of ${number(request.power_cap_w)} W`
    : "";
}

/** A chip in half a line. */
export function chipName(design) {
  if (!design) return MISSING;
  return (
    `${number(design.tensor_cores)} × ${design.width}×${design.depth} tensor, ` +
    `${number(design.vector_cores)} × ${number(design.vector_width)} vector, ` +
    `${bytes(design.glb_bytes)} buffer`
  );
}

/** Text cut to about `length` characters; the end of a path says more than its beginning. */
export function shortened(text, length) {
  const all = String(text);
  return all.length <= length ? all : `…${all.slice(all.length - Math.max(1, Math.floor(length) - 1))}`;
}

/** Text in lines of at most about `length` characters; SVG does not break lines by itself. */
export function wrapped(text, length) {
  const lines = [""];
  for (const word of String(text).split(" ")) {
    if (lines.at(-1) && lines.at(-1).length + word.length >= length) lines.push("");
    lines.push(`${lines.pop()} ${word}`.trim());
  }
  return lines;
}

/** A sentence with its large numbers in groups of three digits, and × between them. */
export function sentence(text) {
  return String(text ?? "")
    .replace(/(?<![\d.,])\d{4,}(?![\d.,]*\d)/g, (digits) => Number(digits).toLocaleString("en-US"))
    .replace(/ x (?=\d|[CPD]P )/g, " × ");
}

/** `gradient_exchange` as `gradient exchange`. */
export function words(key) {
  return String(key).replaceAll("_", " ");
}

/** A noun with its count. */
export function count(n, one, many = `${one}s`) {
  return `${number(n)} ${n === 1 ? one : many}`;
}

export function isNumber(value) {
  return typeof value === "number" && Number.isFinite(value);
}
