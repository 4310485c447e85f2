#!/bin/sh
# gpu_opencl.sh INGOT CASES - runs bundles of --target opencl on whatever OpenCL device there is:
# the hard shapes, and the node cases of opencl.txt out of the folder CASES, which is filled if
# need be, or out of the folders $INGOT_CASES. Status 77, skipped: there is no OpenCL device, or no Python with onnx.
set -u
ingot=$1
here=$(cd "$(dirname "$0")" && pwd)
python=$(dirname "$ingot")/python # with what the tests need, where tests/run.sh made it
[ -x "$python" ] || python=python3
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
export POCL_CACHE_DIR="$work/pocl" # PoCL reads its library of kernels for every program that it has not seen: a second
[ -n "${OCL_ICD_VENDORS:-}" ] || OCL_ICD_VENDORS=$("$python" "$here/small_pocl.py" "$work/small-pocl") # less of it
export OCL_ICD_VENDORS
flags="-O0 -std=c99 -Wall -Wextra -Wpedantic -Wshadow -Werror"

"$python" -c 'import onnx' 2>/dev/null || { echo "skipped: $python has no onnx"; exit 77; }
"$python" "$here/hard_shapes.py" "$work/hard" || exit 1
probe=$work/probe
"$ingot" compile "$work/hard/dim/batch_mlp/model.onnx" --dim batch=1..8 --target opencl -o "$probe" || exit 1
make -s -C "$probe" CFLAGS="$flags" || exit 1
"$probe/model" --selftest >"$work/told" 2>&1
case $?:$(cat "$work/told") in
0:*) ;;
*"status 16"*) echo "skipped: no OpenCL device"; exit 77 ;;
*) cat "$work/told"; exit 1 ;;
esac

failed=0
run() {
    "$python" "$here/../onnx/run.py" --ingot "$ingot" --target opencl --cflags "$flags" --timeout 600 "$@" || failed=1
}
printf '%s\n' plain/if_computed plain/loop_carried plain/nonzero_gather plain/tiles plain/wide plain/rows plain/scales dim/batch_mlp dim/batch_concat dim/batch_conv >"$work/must"
run --baseline "$work/must" "$work/hard/plain"
run --baseline "$work/must" --dim batch=1..8 "$work/hard/dim"
[ -n "${INGOT_CASES:-}" ] || "$python" "$here/../onnx/cases.py" "$2" >/dev/null || exit 1
awk -v all="${INGOT_ALL:-}" '!/^#/ && (all || n++ % 6 == 0)' "$here/opencl.txt" >"$work/list"
# shellcheck disable=SC2086
run --list "$work/list" --json "$work/nodes.json" ${INGOT_CASES:-"$2"}
# a newer onnx package may ask for a later opset; nothing else may be refused, and nothing fail
"$python" - "$work/nodes.json" "$(wc -l <"$work/list")" <<'END' || failed=1
import json, sys
results = json.load(open(sys.argv[1]))
bad = [r for r in results if r["status"] != "passed" and "needs opset" not in r["reason"]]
for r in bad:
    print(f"{r['status']} {r['name']}: {r['reason']}")
passed = sum(r["status"] == "passed" for r in results)
wanted = int(sys.argv[2]) * 7 // 8
print(f"{passed} node cases passed on OpenCL; at least {wanted} have to")
sys.exit(bool(bad) or passed < wanted)
END
exit $failed
