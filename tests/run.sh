#!/bin/sh
# The tests: sh tests/run.sh [all]. Installs what is missing, builds, and ends with status 0
# when everything passes. README.md says how long it takes; with `all`, which adds what takes
# longer (INGOT_ALL=1 says so to the steps), more than an hour.
#
#   INGOT_CASES="DIR..."   folders of ONNX test cases, in place of those the onnx package generates
#   INGOT_BUILD_TYPE       default: Release
#   JOBS                   as many as there are cores
set -u
cd "$(dirname "$0")/.." || exit 1
case ${1-} in
'') all= ;;
all) all=1 INGOT_ALL=1 && export INGOT_ALL ;;
*) echo "usage: sh tests/run.sh [all]" >&2 && exit 2 ;;
esac
JOBS=${JOBS:-$(nproc 2>/dev/null || echo 2)}
half=$(((JOBS + 1) / 2))
failed=
began=$(date +%s)
# Tests write files and remove them by the hundred thousand: in memory, where there is plenty of it
memory=$(awk '/^MemAvailable/ { print int($2 / 1048576) }' /proc/meminfo 2>/dev/null)
shared=$(df -k /dev/shm 2>/dev/null | awk 'END { print int($4 / 1048576) }')
if [ -z "${TMPDIR:-}" ] && [ "${memory:-0}" -ge 12 ] && [ "${shared:-0}" -ge 8 ] && [ -w /dev/shm ]; then
    in_memory=$(mktemp -d /dev/shm/ingot-tests.XXXXXX)
    trap 'rm -rf "$in_memory"' EXIT
    trap 'exit 130' INT TERM
    cp /bin/sh "$in_memory" && "$in_memory/sh" -c : && export TMPDIR="$in_memory" # where programs can be run
fi
step() {                        # step NAME COMMAND...: goes on after a failure, to tell all of them
    name=$1
    shift
    printf '\n== %s (%d s)\n' "$name" "$(($(date +%s) - began))"
    "$@"
    case $? in 0 | 77) ;; *) failed="$failed $name" ;; esac # 77: skipped
}
# beside NAME COMMAND...: a step that takes one core or waits, while those that follow take all of
# them; told NAME...: what came of it
beside() {
    name=$1
    shift
    {
        "$@"
        echo $? >"build/beside/$name.status"
    } >"build/beside/$name.log" 2>&1 &
    eval "pid_$(echo "$name" | tr - _)=\$!"
}
# chain NAME...: the functions of these steps, one after the other, beside those that follow
chain() {
    {
        for name in "$@"; do
            "$(echo "$name" | tr - _)" >"build/beside/$name.log" 2>&1
            echo $? >"build/beside/$name.status"
        done
    } &
    for name in "$@"; do
        eval "pid_$(echo "$name" | tr - _)=\$!"
    done
}
told() {
    for name in "$@"; do
        eval "wait \$pid_$(echo "$name" | tr - _)"
        step "$name" sh -c "cat build/beside/$name.log; status=\$(cat build/beside/$name.status) && exit \$status"
    done
}

# What only the tests need comes while they are built; CMake then looks again for what it had not found
sh cmake/bootstrap.sh tests-build || exit 1
sh cmake/bootstrap.sh "tests${all:+-all}" &
rest=$!
python=$PWD/build/python
export INGOT_KEPT_OBJECTS="$PWD/build/objects" # tests/onnx/objects.py
# To read numpy and onnx takes a third as long where Python keeps what it has compiled of them
export PYTHONPYCACHEPREFIX="$PWD/build/pycache"
unset PYTHONDONTWRITEBYTECODE
export INGOT_CLOCK=steps # budgets and progress do not depend on how busy the machine is: docs/tune.md
# A third of a build by make is make and cmake themselves, and ccache reads each source twice unless the compiler lists its headers
by_ninja=
command -v ninja >/dev/null && by_ninja='env CMAKE_GENERATOR=Ninja'
# ld takes 0.25 s for each of a hundred programs, gold 0.1; ar loads clang's plugin each time, gcc-ar gcc's alone
gold=
gcc -fuse-ld=gold -Wl,--version >/dev/null 2>&1 && gold=-fuse-ld=gold
archive=
command -v gcc-ar >/dev/null && command -v gcc-ranlib >/dev/null &&
    archive="-DCMAKE_AR=$(command -v gcc-ar) -DCMAKE_RANLIB=$(command -v gcc-ranlib)"
export CCACHE_DEPEND=1
# shellcheck disable=SC2086
configure() {
    $by_ninja cmake -S . -B build $archive -DCMAKE_EXE_LINKER_FLAGS="$gold" -DCMAKE_BUILD_TYPE="${INGOT_BUILD_TYPE:-Release}" -DINGOT_TESTS=ON -DINGOT_UNITS_TOGETHER=ON -DCMAKE_C_COMPILER_LAUNCHER=ccache >build/cmake.log ||
        { cat build/cmake.log; return 1; }
}
mkdir -p build
configure && cmake --build build -j "$JOBS"
built=$?
wait "$rest" && [ $built = 0 ] && configure || exit 1

mkdir -p build/beside
# The compiler itself under ASan and UBSan, with every pass's result verified. It is compiled where the
# tests before leave a core idle: they wait for browsers and disks, and the last of them is alone. Reports
# name functions; for their lines: -DINGOT_SANITIZE_LEVEL="-O0 -g1".
# shellcheck disable=SC2086
sanitized_build() {
    linker= # lld takes half as long as the default one for a program of this kind
    command -v ld.lld >/dev/null && linker=-fuse-ld=lld
    nice -n 19 env ${by_ninja#env} cmake -S . -B build/sanitized $archive -DCMAKE_BUILD_TYPE=Sanitize -DINGOT_SANITIZE_LEVEL="-O0 -g0" -DCMAKE_C_COMPILER=clang \
        -DCMAKE_EXE_LINKER_FLAGS="$linker" -DCMAKE_C_COMPILER_LAUNCHER=ccache -DINGOT_TESTS=ON -DINGOT_UNITS_TOGETHER=ON -DINGOT_TOGETHER=ON &&
        nice -n 19 cmake --build build/sanitized -j "$JOBS" --target unit_tests
}
beside sanitized-build sanitized_build
# One more than there are cores: some wait for a browser, a signal or a disk
step unit ctest --test-dir build --output-on-failure -j "$((JOBS + 1))"
beside format sh tests/format.sh
beside judge "$python" tests/onnx/test_values.py
beside error "$python" tests/error/run.py --ingot build/ingot --jobs 1
beside ort-models "$python" tests/onnx/ort_models.py --ingot build/ingot --work build/ort-models examples/digits/digits.onnx
step replay "$python" tests/replay/replay.py --ingot build/ingot --jobs "$JOBS"
sanitized() {
    wait "$pid_sanitized_build"
    [ "$(cat build/beside/sanitized-build.status)" = 0 ] || { cat build/beside/sanitized-build.log; return 1; }
    ctest --test-dir build/sanitized -L "unit|ir" -LE tree --output-on-failure -j "$JOBS"
}
step sanitized sanitized
told format judge error ort-models

cases=${INGOT_CASES:-build/onnx-cases}
[ -n "${INGOT_CASES:-}" ] || step cases "$python" tests/onnx/cases.py build/onnx-cases
# What a case computes is judged, and one in four shows what optimising makes of such C; with all, each
optimise='--optimise 4'
[ -n "$all" ] && optimise=
# shellcheck disable=SC2086
onnx() {
    "$python" tests/onnx/run.py --ingot build/ingot --jobs "$JOBS" --cache build/onnx-cache $optimise "$@" $cases
}
# A case _expanded has the data of another, whose operator is written out as the standard's function: one in four
list=build/onnx-list.txt
awk -v all="$all" 'all || !/_expanded/ || n++ % 4 == 0' tests/onnx/expected.txt >$list
# Some in a page; what becomes of WGSL there is another compiler's work than below
# shellcheck disable=SC2086
beside browser-cases "$python" tests/browser/cases.py --ingot build/ingot --models ../shared/models/real $cases

# Short steps that begin and end on one core are a chain beside the long ones
few_sanitized() { onnx --list $list --sample 50 --cc clang --sanitize; }
# What the kernels of a GPU's form do, statement by statement, but for the large networks (light/)
few() { [ -n "$all" ] || echo "--sample $1"; }
# shellcheck disable=SC2046
onnx_cuda() { onnx --interpret --target cuda:sm_90a --list $list --baseline $list --filter ^[nps] $(few 400); }
# The text of such kernels, without a GPU, and so without NVRTC, which cuda_nvrtc of ctest is for
# shellcheck disable=SC2046
onnx_emulated() { INGOT_NVRTC=none onnx --emulate --target cuda:sm_80 --list $list --baseline $list --filter ^[nps] $(few 40); }
# shellcheck disable=SC2046
onnx_emulated_hip() { INGOT_HIPCC=none onnx --emulate --target hip --list $list --baseline $list --filter ^[nps] $(few 10); }
# Modules of WGSL, by the compilers of that language that are here
# shellcheck disable=SC2046,SC2086
wgsl_modules() { "$python" tests/wgsl/modules.py --ingot build/ingot $(few 60) $cases; }
onnx_wasm() { onnx --list $list --sample 25 --target c:wasm32-simd128; }
# lengths, places and sizes that only the run knows
sequences() {
    "$python" tests/onnx/sequence_cases.py build/sequence-cases &&
        "$python" tests/onnx/run.py --ingot build/ingot --jobs "$JOBS" --cache build/onnx-cache --data-dims --all build/sequence-cases || return 1
    for case in if_optional optional_or; do # read, run and compared by ingot itself
        folder=build/sequence-cases/sequence/$case
        build/ingot run "$folder/model.onnx" --data "$folder/test_data_set_1" --no-cache || return 1
    done
}
# Every operator with a size that only the run knows; `tests/run.sh all` tries all axes.
# shellcheck disable=SC2046,SC2086
onnx_dims() {
    "$python" tests/onnx/bounded_dims.py --ingot build/ingot --jobs "$JOBS" --cache build/onnx-cache \
        --work build/bounded $(few 20) --out build/onnx-dims.md --cases $cases
}
# The official cases of one node, of every other type and version that the standard allows, without
# elements, with one, with axes from behind
# shellcheck disable=SC2086
onnx_rewritten() {
    "$python" tests/onnx/rewritten_cases.py build/rewritten --jobs "$JOBS" --kinds types,empty,scalars,versions,negative --cases $cases || return
    "$python" tests/onnx/run.py --ingot build/ingot --jobs "$JOBS" --interpret --json build/rewritten.json build/rewritten &&
        "$python" tests/onnx/rewritten_cases.py build/rewritten --judge build/rewritten.json
}
# Layers of PyTorch as its exporters write them
onnx_torch() {
    "${INGOT_TORCH:-$python}" tests/onnx/torch_cases.py build/torch-cases --jobs "$JOBS" || return
    "$python" tests/onnx/run.py --ingot build/ingot --jobs "$JOBS" --interpret --data-dims --tolerance-range 1e-4 --least 0.97 build/torch-cases
}
# What the official cases lack, and ONNX Runtime's own operators, by ONNX Runtime's results; 77: it is not there
by_ort() {                  # by_ort NAME SAMPLE: the cases of tests/onnx/NAME_cases.py
    "$python" "tests/onnx/$1_cases.py" "build/$1-cases" || return
    # shellcheck disable=SC2046,SC2086
    "$python" tests/onnx/run.py --ingot build/ingot --jobs "$JOBS" --cache build/onnx-cache $optimise \
        --data-dims --tolerance-range 1e-4 --all $(few "$2") "build/$1-cases"
}
onnx_more() { by_ort more 30; }
onnx_microsoft() { by_ort ms 60; }
onnx_ml() { by_ort ml 30; }
chained='wgsl-modules onnx-wasm sequences onnx-dims onnx-more onnx-microsoft onnx-ml'
full=$JOBS JOBS=$half
# shellcheck disable=SC2086
chain $chained
JOBS=$full
if grep -q '^[^#]' $list; then
    step onnx onnx --list $list --baseline $list --out build/onnx.md
    step onnx-sanitized few_sanitized
else
    step onnx onnx --sample 200 --out build/onnx.md
fi
step onnx-cuda onnx_cuda
step onnx-emulated onnx_emulated
step onnx-emulated-hip onnx_emulated_hip
# shellcheck disable=SC2086
told browser-cases $chained

# The Python package as pip installs it, and the official runner's score on it.
installed() {
    rm -rf build/python-package
    "$python" -m pip install -q --no-deps --target build/python-package . &&
        PYTHONPATH=build/python-package "$python" tests/python/package.py &&
        PYTHONPATH=build/python-package CC="ccache gcc" "$python" tests/python/backend.py --jobs "$JOBS" --least 1850
}

if [ -n "$all" ]; then
    step python installed
    step wheel sh tests/python/wheel.sh
    step docs "$python" tests/docs_run.py --ingot build/ingot
    step tasks "$python" tests/tasks/tasks.py --ingot build/ingot
    step recipes "$python" tests/recipes/recipes.py --work build/recipes --apart
    step riscv "$python" tests/bundle/units.py --ingot build/ingot riscv # QEMU 8 or later: INGOT_QEMU_RISCV64
    step onnx-rewritten onnx_rewritten
    step onnx-torch onnx_torch # a Python that has PyTorch and onnxscript; 77: it is not there
    step onnx-bind onnx --bind --out build/onnx-bind.md
    # shellcheck disable=SC2086
    step hip-objects "$python" tests/onnx/hip_objects.py --ingot build/ingot --jobs "$JOBS" --models ../shared/models/real -- $(ls -d build/onnx-cases/node 2>/dev/null)
    # WGSL by wgpu-native, on whatever adapter there is
    wgpu=$("$python" -c 'import pathlib, wgpu; print(*(pathlib.Path(wgpu.__file__).parent / "resources").glob("libwgpu_native*"))' 2>/dev/null)
    wgsl() {
        [ -f "$wgpu" ] || { echo "skipped: there is no wgpu-native" && return 77; }
        IGRT_WEBGPU=$wgpu onnx --target wgsl --sample 400 --filter ^[nps] --least 0.95 --apart 'WGSL has no f64'
    }
    step onnx-wgsl wgsl
    step onnx-native onnx --list $list --baseline $list --target c:native --cflags "-O1 -march=native -std=c99 -Wall -Wextra -Werror -Wno-psabi" --cc gcc,clang
    step onnx-c99 onnx --list $list --baseline $list --target c:c99
    step onnx-wasm32 onnx --list $list --baseline $list --target c:wasm32
    step onnx-wasm-simd onnx --list $list --baseline $list --target c:wasm32-simd128
    step onnx-all-sanitized onnx --list $list --sample 500 --seed 1 --cc clang --sanitize
    step random-graphs "$python" tests/fuzz/random_graphs.py --ingot build/ingot --jobs "$JOBS" --n 300 --seed 11
    step random-graphs-native "$python" tests/fuzz/random_graphs.py --ingot build/ingot --jobs "$JOBS" --n 150 --seed 12 --target c:native --cc clang
    step sized-graphs "$python" tests/fuzz/sized_graphs.py --ingot build/ingot --jobs "$JOBS" --n 20000 --seed 100
    step random-ir build/tests/random_ir --n 100000 --seed 100
    step sized-graphs-sanitized "$python" tests/fuzz/sized_graphs.py --ingot build/ingot --jobs "$JOBS" --n 500 --seed 101 --sanitize --cc clang
    step language-model "$python" tests/llm/smollm2.py --ingot build/ingot --work build/smollm2
    step gguf-mutated "$python" tests/llm/mutate.py --build build/sanitized/tests/gguf_build --ingot build/ingot --every 100
    for precision in q16 f32; do
        step "slots-$precision" "$python" tests/llm/slots.py --ingot build/ingot --target c:native --precision $precision
    done
    step chunks "$python" tests/llm/chunks.py --ingot build/ingot --target c --target c:native
    step folder-mutated "$python" tests/llm/folder.py --ingot build/ingot --logits build/tests/gguf_logits --build build/sanitized/tests/gguf_build --count 3000
    step llm-cuda "$python" tests/llm/cuda.py --ingot build/ingot
    step llama-cpp "$python" tests/llm/llama_cpp.py --ingot build/ingot --work build/llama
    "$python" -m pip install -q --target build/jinja2 jinja2
    step chat-templates env PYTHONPATH=build/jinja2 "$python" tests/llm/templates.py --texts build/tests/chat_texts \
        --mutate 1000 --real "$(ls -d build/llama/llama_cpp_python-*/vendor/llama.cpp/models/templates)"
    step perplexity "$python" tests/llm/perplexity.py --ingot build/ingot --work build/smollm2 --llama-work build/llama
    step tensors "${INGOT_TORCH:-$python}" tests/device/tensors.py --ingot build/ingot --device cpu
    step beside-torch "${INGOT_TORCH:-$python}" tests/train/beside_torch.py --build build # a Python that has PyTorch; 77: it is not there
    step beside-ort-training "$python" tests/train/artifacts.py --ingot build/ingot --ort "${INGOT_ORT_TRAINING:-$python}" # onnxruntime-training-cpu, which no later Python than 3.11 has
    step artifacts-mutated "$python" tests/train/artifacts.py --ingot build/sanitized/ingot --mutate 350
    step bench build/tests/bench --prepare --dir build/bench
fi

printf '\n%d s. ' "$(($(date +%s) - began))"
if [ -n "$failed" ]; then
    echo "FAILED:$failed"
    exit 1
fi
echo "All passed."
