// The passes of one batch, played event by event: 1F1B and its interleaved form.

/** What a result says of its pipeline; without it, each stage is a rank of its own. */
export function courseOf({ course, stages = [] }) {
  const plain = { ranks: stages.length, chunks: 1, group: null, delay_s: 0, steps_together: false, ends: [] };
  return course && course.ranks * course.chunks === stages.length ? { ...plain, ...course } : plain;
}

/** A number of micro-batches with about `most` passes that the order allows: all, or whole groups. */
export function shortened({ ranks, chunks, group }, micros, most) {
  const enough = Math.max(2 * ranks * chunks, Math.floor(most / (2 * ranks * chunks)));
  if (micros <= enough) return micros;
  return group ? Math.max(group, Math.floor(enough / group) * group) : enough;
}

/**
 * Plays the passes: virtual stage j is on rank j mod `ranks`. Answers per rank its passes
 * `{ forward, micro, chunk, start, end }` in order.
 */
export function simulate(stages, course, micros) {
  const { ranks, delay_s: delay } = course;
  const orders = Array.from({ length: ranks }, (_, rank) => order(course, micros, rank));
  const done = stages.map(() => ({
    forward: new Float64Array(micros).fill(NaN),
    backward: new Float64Array(micros).fill(NaN),
  }));
  const ready = (stage, { forward, micro }) => {
    if (forward) return stage === 0 ? 0 : done[stage - 1].forward[micro] + delay;
    return stage === stages.length - 1 ? done[stage].forward[micro] : done[stage + 1].backward[micro] + delay;
  };
  const next = new Array(ranks).fill(0);
  const free = new Array(ranks).fill(0);
  const passes = orders.map(() => []);
  // Each sweep runs every rank as far as its inputs are known; both directions feed on each other.
  for (let moved = true; moved;) {
    moved = false;
    for (let rank = 0; rank < ranks; rank++) {
      while (next[rank] < orders[rank].length) {
        const pass = orders[rank][next[rank]];
        const stage = pass.chunk * ranks + rank;
        const from = ready(stage, pass);
        if (Number.isNaN(from)) break;
        const start = Math.max(from, free[rank]);
        const end = start + (pass.forward ? stages[stage].forward_s : stages[stage].backward_s);
        (pass.forward ? done[stage].forward : done[stage].backward)[pass.micro] = end;
        passes[rank].push({ ...pass, start, end });
        free[rank] = end;
        next[rank] += 1;
        moved = true;
      }
    }
  }
  return passes;
}

/** The passes of a rank in the order in which it runs them. */
function order({ ranks, chunks, group }, micros, rank) {
  const all = micros * chunks;
  const after = ranks - 1 - rank;
  const first = Math.min(all, group ? 2 * after + (chunks - 1) * group : after);
  const place = (number) => {
    if (!group) return { chunk: 0, micro: number };
    const before = Math.floor(number / (group * chunks)) * group;
    const within = number % (group * chunks);
    const size = Math.min(group, micros - before);
    return { chunk: Math.floor(within / size), micro: before + (within % size) };
  };
  const forward = (number) => ({ forward: true, ...place(number) });
  const backward = (number) => {
    const { chunk, micro } = place(number);
    return { forward: false, chunk: chunks - 1 - chunk, micro };
  };
  const passes = [];
  for (let number = 0; number < first; number++) passes.push(forward(number));
  for (let number = 0; number < all; number++) {
    if (number + first < all) passes.push(forward(number + first));
    passes.push(backward(number));
  }
  return passes;
}

/** What each rank does after its last backward pass: `{ kind, start, end }` in order. */
export function endings(passes, { ends, steps_together: together }) {
  const finished = passes.map((list) => list.at(-1)?.end ?? 0);
  const exchanged = finished.map((end, rank) => end + (ends[rank]?.exchange_s ?? 0));
  const last = Math.max(0, ...exchanged);
  return finished.map((end, rank) => {
    const stepping = together ? last : exchanged[rank];
    const stepped = stepping + (ends[rank]?.step_s ?? 0);
    return [
      { kind: "exchange", start: end, end: exchanged[rank] },
      { kind: "step", start: stepping, end: stepped },
      { kind: "gather", start: stepped, end: stepped + (ends[rank]?.gather_s ?? 0) },
    ];
  });
}
