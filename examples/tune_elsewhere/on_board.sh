#!/bin/sh
# on_board.sh DIR ARGS...: for `ingot tune --remote`, the program of candidates on another machine that is reached by ssh and has
# make and a C compiler. BOARD is its name, as ssh knows it.
#
#     BOARD=pi ingot tune model.onnx --target c:cortex-a72 --remote ./on_board.sh -o model.sched
set -e
board=${BOARD:?the name of the machine, as ssh knows it}
dir=$1
shift
rsync -a --delete --exclude '*.o' --exclude '*.gch' --exclude tune_run "$dir/" "$board:ingot-tune/"
exec ssh "$board" "make -s -j -C ingot-tune >&2 && exec ingot-tune/tune_run $*"
