#!/bin/sh
# Two processes that train one network, and one process that has their images: the same losses.
#
#     BUILD=../../build sh run.sh digits.csv
set -e
here=$(cd "$(dirname "$0")" && pwd)
build=${BUILD:-$here/../../build}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
for n in 1 2; do
    net=$work/net$n
    "$build/examples/example_train_mpi" "$net" $((64 / n))
    mpicc -std=gnu99 -O2 -ffp-contract=off -I"$net" -I"$net/host" "$here/train.c" "$net"/*.c -o "$work/train$n" -lm
    mpirun --oversubscribe -n $n "$work/train$n" "$1" "${2:-50}" >"$work/losses$n"
done
paste "$work/losses1" "$work/losses2"
