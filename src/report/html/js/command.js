// The command that opens a design which the page holds only as a row.

/** What `phaze place` takes where it is not told; of the widths, those that the model allows. */
const USUAL = { micro_batches: [1, 2, 4, 8], tensor_parallel: [1, 2, 4, 8] };
const PLAIN = { ...USUAL, optimizer: "adam-mixed", attention: "recomputed", time_model: "1f1b" };
const PUBLISHED = { ...USUAL, optimizer: "sgd", attention: "stored", time_model: "published" };

/** `phaze place …` for the design of a row, on its best memory size where that is known. */
export function openingCommand({ outcome, designs }, row, model) {
  const at = (name) => designs.column(name)?.[row];
  const { request = {} } = outcome;
  const asked = request.models?.[model];
  const published = request.published_vector_costs === true;
  const usual = published ? PUBLISHED : PLAIN;
  const unusual = (key) => (String(request[key]) === String(usual[key]) ? null : request[key]);
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
    ["micro-batch", unusual("micro_batches")],
    ["tensor-parallel", unusual("tensor_parallel")],
    ["recompute", request.recompute?.length === 1 ? request.recompute[0] : null],
    ["optimizer", unusual("optimizer")],
    ["attention", unusual("attention")],
    ["time-model", unusual("time_model")],
  ].filter(([, value]) => value !== null && value !== undefined);
  const flags = words.map(([name, value]) => `--${name} ${quoted(String(value))}`);
  if (request.sequence_parallel) flags.push("--sequence-parallel");
  if (published) flags.push("--published");
  return `phaze place ${quoted(asked?.name ?? "MODEL")} ${flags.join(" ")} --out plan.json`;
}

/** A word that a shell reads as one. */
function quoted(word) {
  return /^[\w.,/-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`;
}
