# One program for old and new processors: docs/shipping.md.
set -eu
ingot compile examples/digits/digits.onnx -o out --target c:x86-64-v2,x86-64-v3,x86-64-v4
make -s -C out
out/model --help | grep -qi target
printf 'import numpy as np\nnp.save("in/input_0.npy", np.zeros((1, 1, 8, 8), np.float32))\n' > make.py
mkdir in && python3 make.py
out/model --target x86-64-v2 in old
out/model in new
