#!/bin/sh
# The wheel that cmake/wheel.sh makes: it needs no symbol above glibc 2.17, and where there is no C
# compiler but zig, the installed package compiles a model and computes what its test data has.
#
#   sh tests/python/wheel.sh [WHEEL]        made first, unless one is named; status 77: no network
set -eu
cd "$(dirname "$0")/../.."
wheel=${1:-}
work=$PWD/build/wheel-test
rm -rf "$work"
mkdir -p "$work"
python3 -m venv "$work/venv"
"$work/venv/bin/python" -m pip install -q ziglang numpy || exit 77
if [ -z "$wheel" ]; then
    sh cmake/wheel.sh "$work/dist"
    wheel=$(echo "$work"/dist/*.whl)
fi
"$work/venv/bin/python" -m pip install -q "$wheel"
program=$(echo "$work"/venv/lib/python3*/site-packages/ingot/bin/ingot)
newest=$(objdump -T "$program" | grep -o 'GLIBC_[0-9.]*' | sort -uV | tail -1)
case $(printf '%s\n' "$newest" GLIBC_2.17 | sort -V | tail -1) in
GLIBC_2.17) ;;
*) echo "FAILED: $program needs $newest" && exit 1 ;;
esac
cat >"$work/use.py" <<'END'
import shutil
import sys

import ingot
import numpy as np

assert not shutil.which("cc") and not shutil.which("gcc") and not shutil.which("make")
model = ingot.load(sys.argv[1])
feeds = {
    i.name: np.zeros([d if isinstance(d, int) else d[0] for d in i.shape], i.dtype)
    for i in model.get_inputs()
}
print(f"{ingot.__version__}: {[y.shape for y in model.run(None, feeds)]}")
END
env -i PATH="$work/venv/bin" HOME="$work" INGOT_CACHE="$work/cache" \
    "$work/venv/bin/python" "$work/use.py" "$PWD/examples/digits/digits.onnx"
echo "ok: $(basename "$wheel"), at most $newest"
