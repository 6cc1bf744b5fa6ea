// The passes that the timeline draws, against what is known of 1F1B and its interleaved form.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";

const script = readFileSync(new URL("../../src/report/html/js/passes.js", import.meta.url), "utf8");
const { courseOf, endings, shortened, simulate } = await import(
  `data:text/javascript,${encodeURIComponent(script)}`
);

const stages = (n) => Array.from({ length: n }, () => ({ forward_s: 1, backward_s: 2 }));
const course = (ranks, chunks, more = {}) => ({
  ranks,
  chunks,
  group: chunks > 1 ? ranks : null,
  delay_s: 0,
  steps_together: true,
  ends: [],
  ...more,
});
const end = (passes) => Math.max(...passes.map((list) => list.at(-1).end));

test("equal stages fill and drain once", () => {
  for (const [ranks, micros] of [
    [1, 5],
    [4, 8],
    [3, 2],
  ])
    assert.equal(end(simulate(stages(ranks), course(ranks, 1), micros)), 3 * (ranks - 1 + micros));
});

test("with chunks the bubble is as many times smaller", () => {
  for (const [ranks, chunks] of [
    [2, 2],
    [4, 2],
    [2, 5],
  ]) {
    const passes = simulate(stages(ranks * chunks), course(ranks, chunks), 4 * ranks);
    assert.equal(end(passes), 3 * (4 * ranks * chunks + ranks - 1));
    for (const list of passes) assert.equal(list.length, 2 * 4 * ranks * chunks);
  }
});

test("steps wait for the last gradients where they go together", () => {
  const ends = [
    { exchange_s: 1, step_s: 2, gather_s: 3 },
    { exchange_s: 0, step_s: 1, gather_s: 0 },
  ];
  const passes = simulate(stages(2), course(2, 1), 4);
  const starts = (together) =>
    endings(passes, { ends, steps_together: together }).map((parts) => parts[1].start);
  assert.deepEqual(starts(true), [16, 16]);
  assert.deepEqual(starts(false), [16, 13]);
});

test("a batch is shortened to whole groups", () => {
  assert.equal(shortened(course(2, 2), 7, 1000), 7);
  assert.equal(shortened(course(4, 3), 10_000, 1000) % 4, 0);
});

test("a result that tells nothing of its pipeline has a rank for each stage", () => {
  assert.equal(courseOf({ stages: stages(3) }).ranks, 3);
  assert.equal(courseOf({ stages: stages(3), course: course(2, 2) }).ranks, 3);
  assert.equal(courseOf({ stages: stages(4), course: course(2, 2) }).chunks, 2);
});
