#!/usr/bin/env bash
# Has MLCommons' reader of Chakra traces (mlc-chakra on PyPI) read what `phaze plan --chakra` writes, and compares
# nodes and bytes with the plan. Where pip cannot install it, says so and ends well, or fails with
# TRACE_READER=required.
set -euo pipefail
cd "$(dirname "$0")/../.."
phaze=${PHAZE:-target/release/phaze}
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
if ! { python3 -m venv "$folder/venv" && "$folder/venv/bin/pip" install --quiet "mlc-chakra==1.0.0"; } >"$folder/pip" 2>&1; then
    echo "not run: mlc-chakra cannot be installed: $(tail -n 1 "$folder/pip")"
    if [ "${TRACE_READER:-}" = required ]; then exit 1; fi
    exit 0
fi
for strategy in t=4,sp,p=2,v=2,zero=1,b=1,recompute=full t=1,p=1,zero=3 t=2,sp,c=2:ring,p=2,zero=0; do
    "$phaze" plan llama3-8b --gpus 16xh100-sxm --seq 4096 --global-batch 32 --tokens 1G \
        --strategy "$strategy" --out "$folder/plan" --chakra "$folder/traces" >"$folder/said"
    "$folder/venv/bin/python" tests/chakra/read_back.py "$folder/plan/plan.json" "$folder/traces"
    rm -r "$folder/traces"
done
