#!/bin/sh
# under_qemu.sh DIR ARGS...: for `ingot tune --remote`, the program of candidates under qemu-aarch64, timed by the instructions
# that it executes. Needs qemu-aarch64 and aarch64-linux-gnu-gcc (Debian: qemu-user gcc-aarch64-linux-gnu).
#
#     ingot tune model.onnx --target c:cortex-a72 --remote ./under_qemu.sh -o model.sched
set -e
here=$(cd "$(dirname "$0")" && pwd)
cd "$1"
shift
export CC="${CROSS:-aarch64-linux-gnu-gcc}"
make -s -j2 CFLAGS="-O3 -static" tune_run >&2
[ -e count.so ] || cc -O2 -shared -fPIC -o count.so "$here/count.c"
# the database is to know these apart from times of a board
qemu-aarch64 -B 0 -plugin ./count.so ./tune_run "$@" | sed -u 's/"cpu": "[^"]*"/"cpu": "instructions, by QEMU"/'
