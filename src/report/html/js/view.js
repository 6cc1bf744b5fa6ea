// Ranges of the scatter's axes: what is in view, and how it moves.

import { number, scaled } from "./format.js";

/** The range of all rows on an axis, padded; the lower side leaves room for the strip if there is one. */
export function extent(model, key) {
  const { at, log } = model[key];
  let [low, high] = [Infinity, -Infinity];
  const take = (value) => {
    low = Math.min(low, value);
    high = Math.max(high, value);
  };
  for (let row = 0; row < model.n; row++)
    if (at[row] !== null && (key === "x" || model.plotted(row))) take(at[row]);
  for (const mark of model.marks) take(mark[key]);
  if (low > high) [low, high] = log ? [1, 2] : [0, 1];
  if (log) return [low / 1.6, high * 1.6];
  const pad = (high - low || Math.abs(high) || 1) * 0.06;
  const below = key === "y" && model.strip ? [1.4 * pad, 0.08 * high] : [pad, 0.02 * high];
  return [Math.max(low - below[0], low >= 0 ? -below[1] : -Infinity), high + pad];
}

/** Maps a value to 0…1 of the view; logarithmic axes may spread it a little by `shake`. */
export function unit([low, high], log) {
  if (!log) return (value) => (value - low) / (high - low);
  const [from, to] = [Math.log2(low), Math.log2(high)];
  return (value, shake) => (Math.log2(value) + 0.3 * shake - from) / (to - from);
}

/**
 * Values to label on an axis of doublings: a few values are labelled themselves, many by powers of
 * two; labels keep at least the share `gap` of the range from each other.
 */
export function doublings(own, [low, high], gap) {
  const inside = (values) => values.filter((value) => value >= low && value <= high);
  const powers = [];
  for (let power = Math.ceil(Math.log2(low)); 2 ** power <= high; power++) powers.push(2 ** power);
  const few = own.length <= 12 || own.every((value) => Number.isInteger(Math.log2(value)));
  const at = unit([low, high], true);
  const kept = [];
  for (const value of few || powers.length === 0 ? inside(own) : powers)
    if (kept.length === 0 || at(value, 0) - at(kept.at(-1), 0) >= gap) kept.push(value);
  return kept;
}

/** The range after a shift by that share of itself. */
export function moved([low, high], by, log) {
  if (log) return [low, high].map((value) => value * (high / low) ** by);
  return [low, high].map((value) => value + by * (high - low));
}

/** The range scaled about the point at share `at` of it. */
export function zoomed([low, high], factor, at, log) {
  const [from, to] = log ? [Math.log2(low), Math.log2(high)] : [low, high];
  const fixed = from + at * (to - from);
  const range = [fixed + (from - fixed) * factor, fixed + (to - fixed) * factor];
  return log ? range.map((value) => 2 ** value) : range;
}

/** A fixed number in -1…1 for each row: equal knobs do not hide each other, and runs agree. */
export function jitter(row, salt) {
  const mixed = Math.imul(row + 1, 0x9e3779b1) ^ Math.imul(salt, 0x85ebca6b);
  return (Math.imul(mixed ^ (mixed >>> 15), 0x2c1b3c6d) >>> 0) / 2 ** 31 - 1;
}

/** An axis number, short enough to stand beside its tick. */
export function tick(value) {
  const size = Math.abs(value);
  return size >= 1e6 || (size < 1e-3 && size > 0) ? scaled(value, "") : number(value);
}
