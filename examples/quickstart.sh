#!/bin/sh
# From nothing to a running network: installs what is missing (as root on Debian 12), builds ingot,
# compiles the digits classifier to C, builds that with cc into a small program, and runs it.
set -eu
cd "$(dirname "$0")/.."
JOBS=${JOBS:-$(nproc 2>/dev/null || echo 2)}
out=build/digits

sh cmake/bootstrap.sh build
[ -f build/CMakeCache.txt ] || cmake -S . -B build -DCMAKE_BUILD_TYPE=Release -DINGOT_TESTS=OFF >/dev/null
cmake --build build -j "$JOBS" --target ingot

rm -rf "$out"
build/ingot compile examples/digits/digits.onnx -o "$out" --name digits
make -s -C "$out"

# the driver that rides along would do ($out/digits IN OUT); here is a program of our own
show=build/digits-show
"${CC:-cc}" -std=c99 -O2 -Wall -Wextra -I"$out" -o "$show" examples/digits/show.c "$out/libdigits.a" -lm
"$show" examples/digits/samples.txt
