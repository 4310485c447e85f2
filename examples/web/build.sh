#!/bin/sh
# The digits classifier as a page: sh examples/web/build.sh [OUT_DIR]. Needs build/ingot, clang, lld and
# wasi-libc (docs/wasm.md). $INGOT: another compiler; $SIMD empty: without vectors.
set -eu
cd "$(dirname "$0")/../.."
out=${1:-build/web}
simd=${SIMD--simd128}
ingot=${INGOT:-build/ingot}

mkdir -p "$out"
"$ingot" compile examples/digits/digits.onnx -o "$out/digits" --name digits --target "wgsl+c:wasm32$simd" --package web
make -s -C "$out/digits" web CC="${CC:-clang}"
cp examples/web/index.html examples/web/digits.js "$out"
echo "python3 -m http.server -d $out    and open http://localhost:8000/"
