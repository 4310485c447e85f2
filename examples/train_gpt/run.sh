#!/bin/sh
# A small GPT learns to write, from random weights, on one core: takes a text in the public domain out of two Debian packages (apt-get
# download; or TEXT=file), compiles the network and its step of training to C, and trains it.
#   sh examples/train_gpt/run.sh [STEPS]      after cmake --build build
set -eu
cd "$(dirname "$0")/../.."
work=$PWD/build/train_gpt
here=examples/train_gpt
mkdir -p "$work"

text=${TEXT-$work/text}
if [ ! -s "$text" ]; then
    (cd "$work" && apt-get download bible-kjv bible-kjv-text && for p in bible-kjv*.deb; do dpkg -x "$p" deb; done)
    "$work/deb/usr/bin/bible" -d "$work/deb/usr/lib/bible.data" -f gen1:1-rev22:21 </dev/null | sed 's/^[^ ]* //' >"$text"
fi

build/examples/example_train_gpt "$work/net" c:native
make -s -C "$work/net" libgpt.a
"${CC:-cc}" -std=c99 -O2 -Wall -Wextra -I"$work/net" -I"$work/net/host" -o "$work/train" $here/train.c \
    "$work/net/host/igrt_weights.c" "$work/net/host/igrt_states.c" "$work/net/libgpt.a" -lm
"$work/train" "$text" "$work/net/gpt.weights" "${1-2000}" "$work/gpt.safetensors"
