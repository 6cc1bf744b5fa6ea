// The command that opens a design which the page holds only as a row.

/** `phaze place …` for the design of a row, on its best memory size where that is known. */
export function openingCommand({ outcome, designs }, row) {
  const at = (name) => designs.column(name)?.[row];
  const { request = {} } = outcome;
  const model = request.models?.[0];
  const options = [
    ["tensor-cores", at("tensor_cores")],
    ["width", at("width")],
    ["depth", at("depth")],
    ["vector-cores", at("vector_cores")],
    ["vector-width", at("vector_width")],
    ["glb", at("glb_mib")],
    ["hbm", at("best_hbm_gib") ?? Math.max(...(request.hbm_gib ?? designs.hbm))],
    ["devices", request.devices],
    ["global-batch", request.global_batch],
    ["seq", model?.sequence],
  ].filter(([, value]) => value !== null && value !== undefined && Number.isFinite(Number(value)));
  const flags = options.map(([name, value]) => `--${name} ${value}`);
  if (request.published) flags.push("--published");
  return `phaze place ${quoted(model?.name ?? "MODEL")} ${flags.join(" ")} --out plan.json`;
}

/** A word that a shell reads as one. */
function quoted(word) {
  return /^[\w./-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`;
}
