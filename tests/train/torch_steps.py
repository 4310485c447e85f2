"""The networks of networks.c as functions of the weights, in their order, in PyTorch."""

import numpy as np
import torch
import torch.nn.functional as F

from networks import SIZES

TRANSFORMERS = {  # batch, length, layers, width, heads, classes (0: words), causal
    "bert4": (4, 128, 4, 768, 12, 2, False),
    "gpt2": (4, 64, 12, 768, 12, 0, True),
    "tiny": (2, 16, 1, 64, 4, 0, True),
    "encoder": (4, 32, 2, 64, 4, 2, False),
}


class Network:
    def __init__(self, weights):
        self.rest = iter(weights)

    def w(self):
        return next(self.rest)

    def linear(self, x):
        return x @ self.w() + self.w()

    def conv_norm(self, x, stride=1, pad=0, groups=1):
        x = F.conv2d(x, self.w(), None, stride, pad, 1, groups)
        return F.batch_norm(x, None, None, self.w(), self.w(), True, 0.1, 1e-5)

    def mlp(self, x):
        return self.linear(torch.relu(self.linear(x)))

    def cnn(self, x):
        for _ in range(2):
            x = F.max_pool2d(torch.relu(F.conv2d(x, self.w(), self.w())), 2)
        return self.linear(x.flatten(1))

    def resnet(self, x):
        x = F.max_pool2d(torch.relu(self.conv_norm(x, 2, 3)), 3, 2, 1)
        for layer in range(4):
            for i in range(2):
                stride = 2 if layer and not i else 1
                y = torch.relu(self.conv_norm(x, stride, 1))
                y = self.conv_norm(y, 1, 1)
                x = self.conv_norm(x, stride) if layer and not i else x
                x = torch.relu(x + y)
        return self.linear(x.mean((2, 3)))

    def transformer(self, ids, batch, length, layers, width, heads, classes, causal):
        def norm(x):
            return F.layer_norm(x, x.shape[-1:], self.w(), self.w(), 1e-5)

        def split(x):
            return x.view(batch, length, heads, -1).transpose(1, 2)

        words, places = self.w(), self.w()
        x = words[ids] + places[:length]
        for _ in range(layers):
            n = norm(x)
            q, k, v = (split(self.linear(n)) for _ in range(3))
            y = F.scaled_dot_product_attention(q, k, v, is_causal=causal).transpose(1, 2)
            x = x + self.linear(y.reshape(batch, length, width))
            x = x + self.linear(F.gelu(self.linear(norm(x)), approximate="tanh"))
        x = norm(x).flatten(0, 1)
        return self.linear(x) if classes else x @ words.T


def weights_of(states):
    """Those of the folder that step_time wrote, and behind them what else are states."""
    weights = []
    for line in (states / "list").read_text().splitlines():
        file, *dims = line.split()
        w = np.fromfile(states / file, np.float32).reshape([int(d) for d in dims])
        weights.append(torch.from_numpy(w))
    return weights


def result(name, weights, x):
    n = Network(weights)
    if name in TRANSFORMERS:
        return n.transformer(x, *TRANSFORMERS[name])
    return getattr(n, name.rstrip("0123456789"))(x)


def losses(name, states, count, rate, dtype):
    """states: the folder that step_time wrote: input, targets, and each state with its dims."""
    first, targets, classes, is_words = SIZES[name]
    x = np.fromfile(states / "first", np.int64 if is_words else np.float32)
    shape = {
        "mlp32": (32, 784),
        "cnn32": (32, 1, 28, 28),
        "resnet18": (8, 3, 224, 224),
        "resnet64": (8, 3, 64, 64),
    }.get(name)
    x = torch.from_numpy(x.reshape(TRANSFORMERS[name][:2] if is_words else shape))
    x = x if is_words else x.to(dtype)
    target = torch.from_numpy(np.fromfile(states / "target", np.int64))
    weights = [w.to(dtype).requires_grad_(True) for w in weights_of(states)]
    told = []
    for _ in range(count):
        y = result(name, weights, x)
        loss = F.cross_entropy(y, target)
        grads = torch.autograd.grad(loss, weights)
        with torch.no_grad():
            for w, g in zip(weights, grads):
                w -= rate * g
        told.append(loss.item())
    return np.array(told)
