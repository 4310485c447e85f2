"""Random graphs of doubles, as ONNX models and as what PyTorch computes beside.

A Graph draws nodes one after the other; values() are kept small by a tanh here and there, so that
no gradient is lost in rounding. Ties, at which a maximum has no gradient that is the right one, do
not happen: all leaves are drawn. There is no root, which has none of the zeros beside an image.
"""

import numpy as np
import torch
import torch.nn.functional as F
from onnx import TensorProto, helper, numpy_helper

UNARY = {
    "Tanh": torch.tanh,
    "Sigmoid": torch.sigmoid,
    "Sin": torch.sin,
    "Cos": torch.cos,
    "Erf": torch.erf,
    "Softplus": F.softplus,
    "Relu": torch.relu,
    "Abs": torch.abs,
    "Neg": torch.neg,
    "Elu": F.elu,
    # ONNX's numbers, which are those of f32
    "Selu": lambda x: 1.05070102214813232421875 * F.elu(x, 1.67326319217681884765625),
    "LeakyRelu": lambda x: F.leaky_relu(x, 0.01),
    "Gelu": F.gelu,
    "Softsign": F.softsign,
    "HardSwish": F.hardswish,
    "Mish": F.mish,
    "Atan": torch.atan,
    "Asinh": torch.asinh,
    "Identity": lambda x: x,
}
BINARY = {
    "Add": torch.add,
    "Sub": torch.sub,
    "Mul": torch.mul,
    "Max": torch.maximum,
    "Min": torch.minimum,
}
REDUCE = {
    "ReduceSum": lambda x, a, k: x.sum(a, k),
    "ReduceMean": lambda x, a, k: x.mean(a, k),
    "ReduceMax": lambda x, a, k: x.amax(a, k),
    "ReduceMin": lambda x, a, k: x.amin(a, k),
    "ReduceSumSquare": lambda x, a, k: (x * x).sum(a, k),
    "ReduceLogSumExp": lambda x, a, k: x.logsumexp(a, k),
}


class Graph:
    def __init__(self, seed):
        self.random = np.random.default_rng(seed)
        self.nodes, self.constants, self.inputs, self.values = [], [], [], []
        rank = int(self.random.integers(2, 5))
        self.leaf(*(int(n) for n in self.random.integers(2, 7, rank)))
        for _ in range(int(self.random.integers(4, 14))):
            self.draw()
        used = {n for node in self.nodes for n in node.input}
        self.outputs = [(n, v) for n, v in self.values if n not in used and v.grad_fn is not None]

    # ---- leaves

    def leaf(self, *shape):
        a = self.random.standard_normal(shape)
        name = f"x{len(self.inputs)}"
        v = torch.from_numpy(a.copy()).requires_grad_(True)
        self.inputs.append((name, a, v))
        self.values.append((name, v))
        return name, v

    def constant(self, a):
        name = f"c{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(np.asarray(a), name))
        return name

    def node(self, op, inputs, value, **attributes):
        if value.numel() > 2000:
            return None
        name = f"v{len(self.nodes)}"
        self.nodes.append(helper.make_node(op, inputs, [name], name=name, **attributes))
        if value.abs().max() > 6:
            return self.node("Tanh", [name], torch.tanh(value))
        self.values.append((name, value))
        return name, value

    def any(self, least=0, most=9):
        some = [(n, v) for n, v in self.values if least <= v.dim() <= most]
        return some[int(self.random.integers(max(0, len(some) - 4), len(some)))] if some else None

    def chance(self, n):
        return int(self.random.integers(n))

    # ---- nodes

    def draw(self):
        ways = [n for n in dir(self) if n.startswith("draw_")]
        getattr(self, ways[self.chance(len(ways))])()

    def draw_unary(self):
        op = list(UNARY)[self.chance(len(UNARY))]
        n, x = self.any()
        self.node(op, [n], UNARY[op](x))

    def draw_binary(self):
        op = list(BINARY)[self.chance(len(BINARY))]
        n, x = self.any()
        shape = [d if self.chance(3) else 1 for d in x.shape[self.chance(x.dim() + 1) :]]
        m, y = self.leaf(*shape)
        self.node(op, [n, m], BINARY[op](x, y))

    def draw_both(self):
        """Two values that meet again."""
        n, x = self.any()
        for m, y in reversed(self.values):
            if m != n and y.shape == x.shape:
                self.node("Add", [n, m], x + y)
                return

    def draw_quotient(self):
        n, x = self.any()
        m, y = self.node("Sigmoid", [n], torch.sigmoid(x)) or (None, None)
        if m:
            self.node("Div", [n, m], x / y)

    def draw_matmul(self):
        n, x = self.any(2)
        m, w = self.leaf(x.shape[-1], int(self.random.integers(2, 7)))
        self.node("MatMul", [n, m], x @ w)

    def draw_conv(self):
        found = self.any(3, 4)
        if not found or min(found[1].shape[2:]) < 3:
            return
        n, x = found
        spatial, size, stride, pad = x.dim() - 2, 1 + self.chance(3), 1 + self.chance(2), 1
        m, w = self.leaf(int(self.random.integers(2, 5)), x.shape[1], *[size] * spatial)
        f = F.conv1d if spatial == 1 else F.conv2d
        self.node("Conv", [n, m], f(x, w, stride=stride, padding=pad), strides=[stride] * spatial,
                  pads=[pad] * 2 * spatial)  # fmt: skip

    def draw_pool(self):
        found = self.any(4, 4)
        if not found or min(found[1].shape[2:]) < 3:
            return
        n, x = found
        stride = 1 + self.chance(2)
        kind = dict(kernel_shape=[2, 2], strides=[stride] * 2)
        if self.chance(2):
            self.node("MaxPool", [n], F.max_pool2d(x, 2, stride), **kind)
        else:
            self.node("AveragePool", [n], F.avg_pool2d(x, 2, stride), **kind)

    def draw_transpose(self):
        n, x = self.any(2)
        perm = [int(i) for i in self.random.permutation(x.dim())]
        self.node("Transpose", [n], x.permute(perm), perm=perm)

    def draw_reshape(self):
        n, x = self.any(1)
        shape = [x.shape[0], -1] if self.chance(2) else [-1, x.shape[-1]]
        self.node("Reshape", [n, self.constant(np.array(shape))], x.reshape(shape))

    def draw_concat(self):
        n, x = self.any(1)
        axis = self.chance(x.dim())
        shape = [2 if i == axis else d for i, d in enumerate(x.shape)]
        m, y = self.leaf(*shape)
        self.node("Concat", [n, m, n], torch.cat([x, y, x], axis), axis=axis)

    def draw_slice(self):
        n, x = self.any(1)
        axis = self.chance(x.dim())
        if x.shape[axis] < 3:
            return
        step = 1 + self.chance(2)
        y = x[(slice(None),) * axis + (slice(1, None, step),)]
        places = [np.array([k]) for k in (1, 1 << 30, axis, step)]
        self.node("Slice", [n, *(self.constant(k) for k in places)], y)

    def draw_gather(self):
        n, x = self.any(1)
        axis = self.chance(x.dim())
        index = self.random.integers(0, x.shape[axis], 3)
        y = x.index_select(axis, torch.from_numpy(index))
        self.node("Gather", [n, self.constant(index)], y, axis=axis)

    def draw_reduce(self):
        n, x = self.any(1)
        op, axis, keep = (
            list(REDUCE)[self.chance(len(REDUCE))],
            self.chance(x.dim()),
            self.chance(2),
        )
        y = REDUCE[op](x, axis, bool(keep))
        self.node(op, [n, self.constant(np.array([axis]))], y, keepdims=keep)

    def draw_softmax(self):
        n, x = self.any(1)
        op, axis = ("Softmax", "LogSoftmax")[self.chance(2)], self.chance(x.dim())
        self.node(op, [n], getattr(torch, "softmax" if op == "Softmax" else "log_softmax")(x, axis),
                  axis=axis)  # fmt: skip

    def draw_norm(self):
        n, x = self.any(2)
        if x.shape[-1] < 3:
            return
        scale, bias = self.leaf(x.shape[-1]), self.leaf(x.shape[-1])
        y = F.layer_norm(x, x.shape[-1:], scale[1], bias[1], 1e-2)
        self.node("LayerNormalization", [n, scale[0], bias[0]], y, axis=-1, epsilon=1e-2)

    def draw_where(self):
        n, x = self.any(1)
        m, y = self.leaf(*x.shape)
        self.nodes.append(helper.make_node("Greater", [n, m], [f"b{len(self.nodes)}"]))
        self.node("Where", [self.nodes[-1].output[0], m, n], torch.where(x > y, y, x))

    def draw_pad(self):
        n, x = self.any(1)
        pads = np.zeros(2 * x.dim(), np.int64)
        pads[x.dim() - 1], pads[-1] = 1, 2
        self.node("Pad", [n, self.constant(pads)], F.pad(x, (1, 2)))

    def draw_cumsum(self):
        n, x = self.any(1)
        axis = self.chance(x.dim())
        self.node("CumSum", [n, self.constant(np.array(axis))], x.cumsum(axis))

    # ---- the whole

    def model(self):
        def told(name, shape):
            return helper.make_tensor_value_info(name, TensorProto.DOUBLE, shape)

        graph = helper.make_graph(
            self.nodes,
            "graph",
            [told(n, a.shape) for n, a, _ in self.inputs],
            [told(n, v.shape) for n, v in self.outputs],
            self.constants,
        )
        return helper.make_model(
            graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9
        ).SerializeToString()
