# Save the compiler's decisions, edit one, compile with them, and see what changed: docs/sched.md.
set -eu
ingot compile examples/digits/digits.onnx -o first --target c:native --save-sched a.sched
sed '/^ *UPCAST/d; /^ *ORDER/d' a.sched > b.sched
ingot compile examples/digits/digits.onnx -o second --target c:native --sched b.sched
ingot verify examples/digits/digits.onnx --target c:native --sched b.sched
ingot plan diff a.sched b.sched | tee diff.txt
if grep -q ' 0 kernels differ' diff.txt; then exit 1; fi
ingot inspect examples/digits/digits.onnx --target c:native --sched b.sched -o report.html
test -s report.html
