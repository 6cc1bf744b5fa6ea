// Unpacks what the page carries: the parts of outcome.json and the columns of designs.csv.

/** The result as plain objects: `outcome`, in which lists may be empty but are there, and `designs`. */
export function unpack(packed) {
  const outcome = unfolded(packed.outcome);
  for (const key of ["best_by_hbm", "baselines"]) outcome[key] ??= [];
  for (const key of ["pareto", "top"])
    outcome[key] = { exact: outcome[key]?.exact ?? false, entries: outcome[key]?.entries ?? [] };
  return { name: packed.name, outcome, designs: designs(packed.designs, outcome) };
}

/** The value of which equal parts were carried once; parts follow what they are made of. */
function unfolded({ shapes, parts, root }) {
  const made = [];
  const whole = (value) => (Array.isArray(value) ? made[value[0]] : value);
  for (const [shape, ...cells] of parts) {
    const values = cells.map(whole);
    made.push(shapes[shape] ? Object.fromEntries(shapes[shape].map((key, i) => [key, values[i]])) : values);
  }
  return whole(root);
}

/** The table of designs: `column(name)[row]`, the status of each row, and its objective or bound. */
function designs(packed, outcome) {
  const columns = new Map();
  for (const column of packed.columns) columns.set(column.name, column);
  const cache = new Map();
  const column = (name) => {
    const found = columns.get(name);
    if (found?.like !== undefined) return column(found.like);
    if (!cache.has(name)) cache.set(name, found ? values(found, packed.rows) : null);
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

/**
 * Whether the objective counts down. Several models are joined as shares of what each reaches at its best, of
 * which more is better whatever they are shares of; only a mean stays in the objective's own unit.
 */
export function lessIsBetter({ request }) {
  const shares = (request?.models ?? []).length > 1 && request.combine !== "mean";
  return request?.objective === "energy-per-token" && !shares;
}

export const STATUSES = ["evaluated", "beaten", "pruned", "open", "infeasible"];

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
  if (column.row_numbers) return Array.from({ length: rows }, (_, row) => row);
  if (column.dictionary !== undefined) {
    const codes =
      column.codes === undefined ? binary(column.wide_codes, Uint16Array) : binary(column.codes, Uint8Array);
    return Array.from(codes, (code) => column.dictionary[code]);
  }
  const dense = binary(column.numbers, Float64Array);
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
