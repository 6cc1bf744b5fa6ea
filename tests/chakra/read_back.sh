#!/usr/bin/env bash
# Has MLCommons' reader of Chakra traces (mlc-chakra on PyPI) read what `phaze plan --chakra` writes, and compares
# nodes and bytes with the plan; then has it read a trace that was changed, which must be found. Where pip cannot
# install it, says so and ends well, or fails with TRACE_READER=required.
set -euo pipefail
cd "$(dirname "$0")/../.."
phaze=${PHAZE:-target/release/phaze}
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
# Its reader needs protobuf alone; what converts other traces needs much more.
packages=("mlc-chakra==1.0.0" "protobuf==6.33.0")
if ! { python3 -m venv "$folder/venv" && "$folder/venv/bin/pip" install --quiet --no-deps "${packages[@]}"; } >"$folder/pip" 2>&1; then
    echo "not run: mlc-chakra cannot be installed: $(tail -n 1 "$folder/pip")"
    if [ "${TRACE_READER:-}" = required ]; then exit 1; fi
    exit 0
fi
read_back() { "$folder/venv/bin/python" tests/chakra/read_back.py "$folder/plan/plan.json" "$folder/traces"; }
written() {
    rm -rf "$folder/plan" "$folder/traces"
    "$phaze" plan "$@" --tokens 1G --out "$folder/plan" --chakra "$folder/traces" >"$folder/said"
    read_back
}
for strategy in t=4,sp,p=2,v=2,zero=1,b=1,recompute=full t=1,p=1,zero=3 t=2,sp,c=2:ring,p=2,zero=0; do
    written llama3-8b --gpus 16xh100-sxm --seq 4096 --global-batch 32 --strategy "$strategy"
done
written mixtral-8x7b --gpus 64xh100-sxm --seq 4096 --global-batch 128 --strategy t=2,sp,p=4,e=8,x=1,zero=1,b=1
"$folder/venv/bin/python" - "$folder/traces" <<'EOF'
import sys
from pathlib import Path
trace = sorted(Path(sys.argv[1]).glob("*.et"))[0]
trace.write_bytes(b"".join([trace.read_bytes(), trace.read_bytes()[-64:]]))
EOF
if read_back >"$folder/forged" 2>&1; then
    echo "a trace that was changed is not found" >&2
    exit 1
fi
