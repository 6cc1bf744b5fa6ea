// The command that opens a design which the page holds only as a row.

/** What `phaze place` takes where it is not told. */
const PLAIN = { optimizer: "adam-mixed", attention: "recomputed", time_model: "1f1b" };
const PUBLISHED = { optimizer: "sgd", attention: "stored", time_model: "published" };

/** The words of `--strategy` and the columns that hold their numbers. */
const DEGREES = [
  ["t", "tensor_parallel"],
  ["c", "context_parallel"],
  ["e", "expert_parallel"],
  ["x", "expert_tensor"],
  ["p", "pipeline"],
  ["v", "chunks"],
  ["d", "data_parallel"],
  ["b", "micro_batch"],
  ["zero", "zero"],
];

/** `phaze place …` for the design of a row, on its best memory size and strategy where they are known. */
export function openingCommand({ outcome, designs }, row, model) {
  const { request = {} } = outcome;
  const asked = request.models?.[model];
  const at = (name) => (designs.column(name) ?? designs.column(`${name}:${asked?.name}`))?.[row];
  const published = request.published_vector_costs === true;
  const usual = published ? PUBLISHED : PLAIN;
  const unusual = (key) => (String(request[key]) === String(usual[key]) ? null : request[key]);
  const known = (value) => value !== null && value !== undefined;
  const degrees = DEGREES.map(([word, column]) => [word, at(column)]).filter(([, value]) => known(value));
  const words = [
    ["design", request.hardware?.name],
    ["tensor-cores", at("tensor_cores")],
    ["width", at("width")],
    ["depth", at("depth")],
    ["vector-cores", at("vector_cores")],
    ["vector-width", at("vector_width")],
    ["glb-mib", at("glb_mib")],
    ["hbm-gib", at("best_hbm_gib") ?? (designs.hbm.length > 0 ? Math.max(...designs.hbm) : null)],
    ["seq", asked?.sequence],
    ["devices", request.devices],
    ["global-batch", request.global_batch],
    ["strategy", degrees.length > 0 ? degrees.map((pair) => pair.join("=")).join(",") : null],
    ["launchable", published ? null : request.strategies?.framework],
    ["optimizer", unusual("optimizer")],
    ["attention", unusual("attention")],
    ["time-model", unusual("time_model")],
  ].filter(([, value]) => known(value));
  const flags = words.map(([name, value]) => `--${name} ${quoted(String(value))}`);
  if (published) flags.push("--published");
  return `phaze place ${quoted(asked?.name ?? "MODEL")} ${flags.join(" ")} --out plan.json`;
}

/** A word that a shell reads as one. */
function quoted(word) {
  return /^[\w.,/=-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`;
}
