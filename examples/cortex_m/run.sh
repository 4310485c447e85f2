#!/bin/sh
# Keyword spotting on a microcontroller, from nothing: installs what is missing (as root on Debian 12), compiles the network for a
# Cortex-M4F, builds it by the emitted Makefile alone, links it into a program without an operating system, and runs that
# on QEMU's mps2-an386.
#
#   sh examples/cortex_m/run.sh [FOLDER]     FOLDER has model.onnx (one f32 input, one f32 output) and test_data_set_0; without it,
#                                            make_model.py trains a small network and quantises it
#   INGOT, PYTHON, OUT                       an ingot that is built; a Python with onnx; where to work (build/cortex_m)
set -eu
here=$(cd "$(dirname "$0")" && pwd)
cd "$here/../.."
out=${OUT:-build/cortex_m}

missing=
command -v arm-none-eabi-gcc >/dev/null 2>&1 || missing="$missing gcc-arm-none-eabi"
[ -d /usr/lib/arm-none-eabi/include ] || missing="$missing libnewlib-arm-none-eabi"
command -v qemu-system-arm >/dev/null 2>&1 || missing="$missing qemu-system-arm"
if [ -n "$missing" ]; then
    echo "installing$missing"
    apt-get update -qq
    # shellcheck disable=SC2086
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $missing >/dev/null
fi
ingot=${INGOT:-build/ingot}
if [ ! -x "$ingot" ]; then
    sh cmake/bootstrap.sh build
    cmake -S . -B build -DINGOT_TESTS=OFF >/dev/null
    cmake --build build -j 2 --target ingot
fi

rm -rf "$out"
mkdir -p "$out"
model=${1:-}
if [ -z "$model" ]; then
    model=$out/model
    python=${PYTHON:-build/python}
    if [ ! -x "$python" ] && ! command -v "$python" >/dev/null; then
        sh cmake/bootstrap.sh tests
        python=build/python
    fi
    "$python" "$here/make_model.py" "$model"
fi
# program NAME MAIN FLAGS..: the archive of $out/NAME with a main, on QEMU
program() {
    name=$1 main=$2
    shift 2
    make -s -C "$out/$name"
    arm-none-eabi-gcc -mthumb -mcpu=cortex-m4 -mfpu=fpv4-sp-d16 -mfloat-abi=hard -std=c11 -O2 -Wall -Wextra -Werror -I"$out/$name" \
        "$@" -nostartfiles --specs=nosys.specs -Wl,--gc-sections \
        -T "$here/board.ld" -o "$out/$name.elf" "$here/$main" "$here/board.c" "$out/$name/libkws.a" -lm
    arm-none-eabi-size "$out/$name.elf"
    timeout 120 qemu-system-arm -M mps2-an386 -nographic -icount shift=0 -semihosting-config enable=on,target=native \
        -kernel "$out/$name.elf" </dev/null
}

"$ingot" compile "$model/model.onnx" -o "$out/kws" --name kws --target c:cortex-m4 --max-ram 256k --selftest "$model/test_data_set_0"
# f32[1,490] of the header: how many numbers
elements() { sed -n "/^typedef struct kws_$1 {/,/^}/s/.*f32\[\([0-9,]*\)\].*/\1/p" "$out/kws/kws.h" | tr , '*'; }
program kws main.c -DSOUND="$(elements inputs)" -DWORDS="$(elements outputs)"

# The same network without one of the words, which the board learns.
if [ -z "${1:-}" ]; then
    "$python" "$here/make_model.py" "$out/model" learn
    "$ingot" compile "$out/model/model.onnx" -o "$out/learn" --name kws --target c:cortex-m4 --max-ram 32k --train \
        --loss cross_entropy:scores --optimizer sgd:rate=0.02 --trainable 'head.*'
    program learn learn.c -I"$out/model" -DWORDS=4
fi
