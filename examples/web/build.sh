#!/bin/sh
# Pages that run networks: sh examples/web/build.sh [OUT_DIR [MODEL.onnx [OPTION...]]]. Digits that are
# drawn; with a MODEL that takes a picture and gives a picture or a mask, also picture.html for that one
# (OPTIONs are of `ingot compile`: --dim). Needs build/ingot, clang, lld and wasi-libc (docs/wasm.md).
# $INGOT: another compiler; $SIMD empty: without vectors.
set -eu
here=$(dirname "$0")
out=${1:-$here/../../build/web}
simd=${SIMD--simd128}
ingot=${INGOT:-$here/../../build/ingot}

page() {                        # page NAME MODEL [OPTION...]
    name=$1 model=$2
    shift 2
    "$ingot" compile "$model" -o "$out/$name" --name "$name" --target "wgsl+c:wasm32$simd" --package web "$@"
    make -s -C "$out/$name" web CC="${CC:-clang}"
}
mkdir -p "$out"
page digits "$here/../digits/digits.onnx"
cp "$here/index.html" "$here/digits.js" "$out"
if [ $# -gt 1 ]; then
    shift
    page picture "$@"
    cp "$here/picture.html" "$here/picture.js" "$out"
fi
echo "python3 $here/serve.py $out    and open http://localhost:8000/"
