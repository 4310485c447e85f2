# An operator of one's own, in a model of Python's: docs/custom_ops.md.
set -eu
cat > swish.c <<'END'
#include <math.h>
/* elementwise
 * default[beta] = 1 */
float swish(float x, float beta)
{
    return x / (1.0f + expf(-beta * x));
}
END
cat > make.py <<'END'
import os
import numpy as np
from onnx import TensorProto as T, helper, numpy_helper, save
w = np.random.default_rng(0).random((16, 8), np.float32) - 0.5
x = np.random.default_rng(1).random((4, 16), np.float32)
nodes = [helper.make_node("MatMul", ["x", "w"], ["h"]),
         helper.make_node("Swish", ["h"], ["y"], domain="acme.com", beta=1.5)]
graph = helper.make_graph(nodes, "g", [helper.make_tensor_value_info("x", T.FLOAT, [4, 16])],
                          [helper.make_tensor_value_info("y", T.FLOAT, [4, 8])],
                          [numpy_helper.from_array(w, "w")])
save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17),
                                             helper.make_opsetid("acme.com", 1)]), "model.onnx")
os.makedirs("data")
h = x @ w
np.save("data/input_0.npy", x)
np.save("data/output_0.npy", (h / (1 + np.exp(-1.5 * h))).astype(np.float32))
END
python3 make.py
if ingot check model.onnx > before.txt 2>&1; then exit 1; fi
grep -q Swish before.txt
ingot run model.onnx --op acme.com:Swish=swish.c --data data
ingot compile model.onnx -o out --op acme.com:Swish=swish.c
make -s -C out
