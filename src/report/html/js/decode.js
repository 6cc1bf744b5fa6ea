// Unpacks what the page carries: columns of designs.csv and the entries of outcome.json.

/** The result as plain objects: `outcome` with its entries in place, and `designs`. */
export function unpack(packed) {
  const { entries } = packed;
  const outcome = structuredClone(packed.outcome);
  const whole = (index) => (index === null || index === undefined ? null : entries[index]);
  outcome.winner = whole(outcome.winner);
  for (const list of [outcome.best_by_hbm ?? [], outcome.baselines ?? []]) {
    for (const item of list) item.entry = whole(item.entry);
  }
  for (const key of ["pareto", "top"]) {
    outcome[key] = { exact: false, ...outcome[key] };
    outcome[key].entries = (outcome[key].entries ?? []).map(whole);
  }
  return { name: packed.name, outcome, designs: designs(packed.designs, outcome) };
}

/** The table of designs: `column(name)[row]`, the status of each row, and its objective or bound. */
function designs(packed, outcome) {
  const columns = new Map();
  for (const column of packed.columns) columns.set(column.name, column);
  const cache = new Map();
  const column = (name) => {
    if (!cache.has(name)) cache.set(name, columns.has(name) ? values(columns.get(name), packed.rows) : null);
    return cache.get(name);
  };
  const table = { n: packed.rows, names: [...columns.keys()], column };
  table.hbm = table.names
    .filter((name) => name.startsWith("status_hbm"))
    .map((name) => Number(name.slice(10)));
  table.status = status(table);
  table.bound = bound(table, lessIsBetter(outcome));
  return table;
}

/** Whether the objective counts down. */
export function lessIsBetter(outcome) {
  return outcome.request?.objective === "energy-per-token";
}

export const STATUSES = ["evaluated", "pruned", "open", "infeasible"];

/** The most hopeful status over all memory sizes, as an index into STATUSES. */
function status(table) {
  const found = new Uint8Array(table.n).fill(STATUSES.length - 1);
  for (const size of table.hbm) {
    const column = table.column(`status_hbm${size}`);
    for (let row = 0; row < table.n; row++) {
      const index = STATUSES.indexOf(column[row]);
      if (index >= 0 && index < found[row]) found[row] = index;
    }
  }
  return found;
}

/** The most optimistic bound over all memory sizes. */
function bound(table, less) {
  const best = new Float64Array(table.n).fill(NaN);
  for (const size of table.hbm) {
    const column = table.column(`bound_hbm${size}`);
    if (!column) continue;
    for (let row = 0; row < table.n; row++) {
      const value = column[row] ?? NaN;
      const better = less ? value < best[row] : value > best[row];
      if (better || Number.isNaN(best[row])) best[row] = value;
    }
  }
  return best;
}

function values(column, rows) {
  if (column.words !== undefined) return column.words;
  if (column.codes !== undefined) {
    const codes = binary(column.codes, Uint8Array);
    return Array.from(codes, (code) => column.dictionary[code]);
  }
  const kind = column.f32 === undefined ? Float64Array : Float32Array;
  const dense = binary(column.f32 ?? column.f64, kind);
  if (column.rows === undefined) return Array.from(dense, (value) => (Number.isNaN(value) ? null : value));
  const sparse = new Array(rows).fill(null);
  binary(column.rows, Uint32Array).forEach((row, i) => {
    sparse[row] = dense[i];
  });
  return sparse;
}

function binary(base64, Kind) {
  const text = atob(base64);
  const raw = new Uint8Array(text.length);
  for (let i = 0; i < text.length; i++) raw[i] = text.charCodeAt(i);
  return new Kind(raw.buffer);
}
