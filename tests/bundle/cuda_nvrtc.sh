#!/bin/sh
# cuda_nvrtc.sh INGOT CASES - compiles the cases of cuda.txt out of the folder CASES (or $INGOT_CASES)
# with --target cuda, which has NVRTC compile every kernel, and builds some of the host code with the
# warnings on; it needs no GPU. Status 77, skipped: there is no NVRTC, or no Python with onnx to
# write the cases.
set -u
ingot=$1
here=$(cd "$(dirname "$0")" && pwd)
python=$(dirname "$ingot")/python # with what the tests need, where tests/run.sh made it
[ -x "$python" ] || python=python3
cases=$2
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
flags="-O0 -std=c99 -Wall -Wextra -Wpedantic -Wshadow -Werror"

if [ -z "${INGOT_CASES:-}" ]; then
    "$python" -c 'import onnx' 2>/dev/null || { echo "skipped: $python has no onnx"; exit 77; }
    "$python" "$here/../onnx/cases.py" "$2" >/dev/null || exit 1
fi
model() { # of a case
    for dir in ${INGOT_CASES:-"$2"}; do
        set -- "$1" "$dir/${1#node/}/model.onnx" "$dir/$1/model.onnx"
        [ -e "$2" ] && echo "$2" && return
        [ -e "$3" ] && echo "$3" && return
    done
    echo "$1 is in no folder of cases"
}
n=0
failed=0
fail() {
    echo "FAILED $1: $(head -1 "$work/told")"
    failed=1
}
for name in $(grep -v '^#' "$here/cuda.txt"); do
    bundle=$work/$n
    n=$((n + 1))
    if ! "$ingot" compile "$(model "$name" "$cases")" --target cuda -o "$bundle" >"$work/told" 2>&1; then
        grep -q "needs opset" "$work/told" || fail "$name" # of a newer onnx package
    elif grep -q "is not installed" "$work/told"; then
        echo "skipped: no NVRTC"
        exit 77
    elif ! grep -q "image0\[\]" "$bundle/model_kernels.c"; then
        echo "no kernels" >"$work/told"
        fail "$name"
    elif [ $((n % 5)) = 1 ] && ! make -s -C "$bundle" CFLAGS="$flags" >"$work/told" 2>&1; then
        fail "$name"
    fi
done
"$ingot" compile "$(model node/test_add "$cases")" --target cuda:sm_90 -o "$work/cubin" >"$work/told" 2>&1 || fail "sm_90"
"$ingot" compile "$(model node/test_add "$cases")" --target cuda:sm_80+sm_90a -o "$work/two" >"$work/told" 2>&1 || fail "sm_80+sm_90a"
[ "$(grep -c "_kernels.cu, compiled for sm_" "$work/two/model_kernels.c")" = 2 ] || fail "not an image each for sm_80 and sm_90a"
make -s -C "$work/two" CFLAGS="$flags" >"$work/told" 2>&1 || fail "two images"
command -v clang >/dev/null && { make -s -C "$work/two" clean && make -s -C "$work/two" CC=clang CFLAGS="$flags" >"$work/told" 2>&1 || fail "two images, by clang"; }
"$ingot" compile "$(model node/test_add "$cases")" --target cuda:sm_1 -o "$work/none" >"$work/told" 2>&1 && fail "sm_1 was accepted"

# a product by warpgroups, whose operands boxes bring: the kernel, and the host code that makes the maps
"$python" -c "
import sys; sys.path[:0] = ['$here/../device']
import device, onnx
onnx.save(device.product(512, 'f16'), '$work/product.onnx')" || fail "product"
if ! "$ingot" compile "$work/product.onnx" --target cuda:sm_90a -o "$work/wgmma" >"$work/told" 2>&1; then
    fail "a product for sm_90a"
elif ! grep -q "igrt_box_2" "$work/wgmma/model_kernels.cu" || ! grep -q "igrt_gpu_make_map" "$work/wgmma/model.c"; then
    echo "no boxes" >"$work/told"
    fail "a product for sm_90a"
else
    make -s -C "$work/wgmma" CFLAGS="$flags" >"$work/told" 2>&1 || fail "the host code of a product for sm_90a"
fi
echo "$n models through NVRTC"
exit $failed
