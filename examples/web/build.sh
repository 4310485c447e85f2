#!/bin/sh
# The digits classifier as a page: sh examples/web/build.sh [OUT_DIR]. Needs build/ingot, clang, lld and
# wasi-libc (docs/wasm.md). $INGOT: another compiler; $SIMD empty: without vectors.
set -eu
cd "$(dirname "$0")/../.."
out=${1:-build/web}
simd=${SIMD--simd128}
ingot=${INGOT:-build/ingot}

mkdir -p "$out"
"$ingot" compile examples/digits/digits.onnx -o "$out/bundle" --name digits --target "c:wasm32$simd"
make -s -C "$out/bundle" libdigits.a
"${CC:-clang}" --target=wasm32-wasi ${simd:+-msimd128} -std=c11 -O2 -Wall -Wextra -nostartfiles -Wl,--no-entry -Wl,--strip-all \
    -I"$out/bundle" -o "$out/digits.wasm" examples/web/page.c "$out/bundle/libdigits.a" -lm
cp examples/web/index.html examples/web/digits.js "$out"
echo "python3 -m http.server -d $out    and open http://localhost:8000/"
