#!/bin/sh
# Is the tree laid out as .clang-format and pyproject.toml say? What cannot be had is skipped by name: status 77.
#   sh tests/format.sh         tells what is not
#   sh tests/format.sh --fix   lays it out
# Another version of clang-format than 14 breaks lines elsewhere; of ruff, pyproject.toml names the version.
cd "$(dirname "$0")/.." || exit 1
check=--dry-run ruff_check=--check
[ "${1-}" != --fix ] || check=-i ruff_check=
skipped= wrong=

case "$(clang-format --version 2>/dev/null)" in
*"version 14."*)
    git ls-files '*.c' '*.h' | xargs -P "$(nproc 2>/dev/null || echo 2)" -n 50 clang-format $check -Werror || wrong=1
    ;;
*) skipped=1 && echo "skipped: C: there is no clang-format 14" ;;
esac

version=$(sed -n 's/^required-version = "==\(.*\)"/\1/p' pyproject.toml)
ruff=
for r in ruff "build/venv/bin/ruff" "build/python -m ruff"; do
    [ "$ruff" ] || [ "$($r --version 2>/dev/null)" != "ruff $version" ] || ruff=$r
done
if [ "$ruff" ]; then
    git ls-files '*.py' | xargs $ruff format -q $ruff_check || wrong=1
else
    skipped=1 && echo "skipped: Python: there is no ruff $version"
fi

[ -z "$wrong" ] || exit 1
[ -z "$skipped" ] || exit 77
