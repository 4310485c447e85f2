#!/bin/sh
# Real digits, from random weights, on one core: takes the images out of scikit-learn's wheel (pip, or WHEEL=file), compiles the
# network and its step of training to C, and trains five times, each time on four fifths of the images.
#   sh examples/train_digits/run.sh [SPLIT..]      after cmake --build build
set -eu
cd "$(dirname "$0")/../.."
work=build/train_digits
here=examples/train_digits
mkdir -p "$work"

if [ ! -s "$work/digits.csv" ]; then
    [ -n "${WHEEL-}" ] || python3 -m pip download -q --no-deps --only-binary :all: -d "$work" scikit-learn
    python3 - "${WHEEL-}" "$work" <<'END'
import glob, gzip, sys, zipfile
wheel = sys.argv[1] or glob.glob(sys.argv[2] + "/scikit_learn-*.whl")[0]
with zipfile.ZipFile(wheel) as z, open(sys.argv[2] + "/digits.csv", "wb") as f:
    f.write(gzip.decompress(z.read("sklearn/datasets/data/digits.csv.gz")))
END
fi

build/examples/example_train_digits "$work/net" c:native
make -s -C "$work/net" libdigits.a
"${CC:-cc}" -std=c99 -O2 -Wall -Wextra -I"$work/net" -I"$work/net/host" -o "$work/train" $here/train.c \
    "$work/net/host/igrt_weights.c" "$work/net/libdigits.a" -lm
"$work/train" "$work/digits.csv" "$work/net/digits.weights" "$@"
