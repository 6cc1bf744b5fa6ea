// Prints what a report costs: node measure.mjs RESULT_DIRECTORY
//
// Time to make it, its size, first paint and time until it is whole, and frames per second while
// the scatter is zoomed, panned and brushed by real input events. Best of three, with the worst.

import { statSync } from "node:fs";
import { join } from "node:path";

import { launch, open, phaze, scratch } from "./browser.mjs";

const ROUNDS = 3;
const FRAMES = 90;
const folder = process.argv[2];
if (!folder) {
  console.error("usage: node measure.mjs RESULT_DIRECTORY");
  process.exit(2);
}

const file = join(scratch(), "report.html");
const made = rounds(ROUNDS, () => {
  const start = performance.now();
  phaze("report", folder, "--out", file);
  return performance.now() - start;
});
tell("made in", await made, "ms", "at most 1,000");
console.log(`size            ${(statSync(file).size / 1e6).toFixed(2)} MB (at most 5)`);

const browser = await launch();
const opened = await rounds(ROUNDS, async () => {
  const { page } = await open(browser, file);
  const times = await page.evaluate(() => ({
    paint: performance.getEntriesByName("first-contentful-paint")[0]?.startTime ?? NaN,
    whole: performance.getEntriesByType("navigation")[0].domComplete,
  }));
  await page.context().close();
  return times;
});
tell(
  "first paint",
  opened.map((one) => one.paint),
  "ms",
  "at most 1,500",
);
tell(
  "page complete",
  opened.map((one) => one.whole),
  "ms",
);

const { page, complaints } = await open(browser, file);
await page.evaluate(() =>
  document.querySelector("#scatter .u-over").scrollIntoView({ behavior: "instant", block: "center" }),
);
const points = await page.evaluate(() => document.querySelector("#scatter").chart.drawn().length);
for (const [name, step] of Object.entries({
  "zoom by wheel": (i) => ({ type: "wheel", deltaY: i < 45 ? -12 : 12, ctrlKey: true }),
  "pan by keys": (i) => ({ type: "key", key: i % 30 < 15 ? "ArrowLeft" : "ArrowRight" }),
})) {
  const rates = await rounds(ROUNDS, () =>
    page.evaluate(play, { frames: FRAMES, steps: Array.from({ length: FRAMES }, (_, i) => step(i)) }),
  );
  console.log(
    `${name.padEnd(15)} ${Math.max(...rates).toFixed(0)} frames/s, worst ${Math.min(...rates).toFixed(0)} (at least 30), ${points} points`,
  );
}
await browser.close();
if (complaints.length > 0) {
  console.error(complaints.join("\n"));
  process.exit(1);
}

/** One event per frame on the scatter; answers frames per second, painting included. */
function play({ frames, steps }) {
  const over = document.querySelector("#scatter .u-over");
  const box = over.getBoundingClientRect();
  const at = {
    clientX: box.left + box.width * 0.6,
    clientY: box.top + box.height * 0.5,
    bubbles: true,
    cancelable: true,
  };
  return new Promise((done) => {
    let i = 0;
    let start = 0;
    const frame = (now) => {
      if (i === 0) start = now;
      if (i === frames) return done((frames * 1000) / (now - start));
      const { type, ...rest } = steps[i];
      const event =
        type === "wheel"
          ? new WheelEvent("wheel", { ...at, ...rest })
          : new KeyboardEvent("keydown", { ...rest, bubbles: true, cancelable: true });
      over.dispatchEvent(event);
      i += 1;
      requestAnimationFrame(frame);
    };
    requestAnimationFrame(frame);
  });
}

async function rounds(n, action) {
  const found = [];
  for (let i = 0; i < n; i++) found.push(await action());
  return found;
}

function tell(name, values, unit, bar) {
  console.log(
    `${name.padEnd(15)} ${Math.min(...values).toFixed(0)} ${unit}, worst ${Math.max(...values).toFixed(0)}${bar ? ` (${bar})` : ""}`,
  );
}
