// The colours that stand side by side in a chart, as readers with and without colour blindness see them.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";

const read = (name) => readFileSync(new URL(`../../src/report/${name}`, import.meta.url), "utf8");
const page = (name) => read(`html/${name}`);
const { CORES, MEMORY, PARTS } = await import(
  `data:text/javascript,${encodeURIComponent(page("js/palette.js"))}`
);
const CHARTS = {
  "time breakdown": PARTS.map(([, colour]) => colour),
  memory: MEMORY.map(([, colour]) => colour),
  layer: Object.values(CORES),
  timeline: ["--forward", "--backward", "--gradient", "--optimizer", "--gather", "--bubble"],
  chip: ["--tensor", "--vector", "--local", "--glb", "--hbm"],
};

// What linear red, green and blue become, after Machado, Oliveira and Fernandes (2009), full severity.
const EYES = {
  usual: [
    [1, 0, 0],
    [0, 1, 0],
    [0, 0, 1],
  ],
  protanopia: [
    [0.152286, 1.052583, -0.204868],
    [0.114503, 0.786281, 0.099216],
    [-0.003882, -0.048116, 1.051998],
  ],
  deuteranopia: [
    [0.367322, 0.860646, -0.227968],
    [0.280085, 0.672501, 0.047413],
    [-0.01182, 0.04294, 0.968881],
  ],
};

// A difference of 2.3 can just be seen, side by side; bars in different places need several times that.
const LEAST = 12;

// Parts of chips: silicon, watts, dollars, time.
const OF_CHIPS = { parts: [..."abcdefghijkl"].map((letter) => `--${letter}`) };

for (const [of, theme, colours, charts] of [
  ...Object.entries(themes(page("style.css"))).map((both) => ["pages", ...both, CHARTS]),
  ...Object.entries(themes(read("chip_page/style.css"))).map((both) => ["pages of chips", ...both, OF_CHIPS]),
]) {
  for (const [eye, matrix] of Object.entries(EYES)) {
    test(`colours of ${of} in the ${theme} theme stay apart with ${eye} vision`, () => {
      for (const [chart, names] of Object.entries(charts)) {
        const distinct = [...new Set(names)];
        for (const [i, a] of distinct.entries())
          for (const b of distinct.slice(i + 1)) {
            const [from, to] = [a, b].map((name) => lab(colours[name], matrix));
            const apart = Math.hypot(...from.map((value, axis) => value - to[axis]));
            assert.ok(apart >= LEAST, `${chart}: ${a} and ${b} are ${apart.toFixed(1)} apart`);
          }
      }
    });
  }
}

/** The colours that the style sheet names, for each theme. */
function themes(style) {
  const [light, dark] = style.split(/:root\[data-theme="dark"\]|@media\(prefers-color-scheme:dark\)/);
  const named = (text) =>
    Object.fromEntries(
      [...text.split("}")[0].matchAll(/(--[\w-]+): ?(#[0-9a-f]{6})/g)].map((m) => m.slice(1)),
    );
  return { light: named(light), dark: { ...named(light), ...named(dark) } };
}

/** `#rrggbb`, seen through a matrix, in CIE L*a*b*. */
function lab(hex, matrix) {
  const linear = [1, 3, 5].map((at) => {
    const value = parseInt(hex.slice(at, at + 2), 16) / 255;
    return value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4;
  });
  const dot = (row, by) => row.reduce((sum, factor, i) => sum + factor * by[i], 0);
  const seen = matrix.map((row) => Math.max(0, Math.min(1, dot(row, linear))));
  const [x, y, z] = [
    [0.4339, 0.3762, 0.1899],
    [0.2126, 0.7152, 0.0722],
    [0.0177, 0.1094, 0.8729],
  ].map((row) => {
    const value = dot(row, seen);
    return value > 0.008856 ? Math.cbrt(value) : 7.787 * value + 16 / 116;
  });
  return [116 * y - 16, 500 * (x - y), 200 * (y - z)];
}
