"""CPU time of a training step in PyTorch, one thread (of several: time): milliseconds, the least of all steps.

    networks_torch.py NAME sgd|adamw SECONDS [--compile] [--threads N]

The networks are those of networks.c.
"""

import os
import sys
import time

THREADS = int(sys.argv[sys.argv.index("--threads") + 1]) if "--threads" in sys.argv else 1
os.environ["OMP_NUM_THREADS"] = str(THREADS)
sys.path.pop(0)  # this folder's cuda.py is not the package that PyTorch looks for
import torch  # noqa: E402
import torch.nn.functional as F  # noqa: E402
from torch import nn  # noqa: E402


def conv_norm(i, o, k, stride=1, pad=0, groups=1):
    return [nn.Conv2d(i, o, k, stride, pad, groups=groups, bias=False), nn.BatchNorm2d(o)]


class Block(nn.Module):
    """What is added to its own input, or to a projection of it."""

    def __init__(self, way, short=None, last=None):
        super().__init__()
        self.way, self.short, self.last = nn.Sequential(*way), short, last

    def forward(self, x):
        y = self.way(x) + (self.short(x) if self.short else x)
        return self.last(y) if self.last else y


def cnn():
    return nn.Sequential(
        *(nn.Conv2d(1, 32, 3), nn.ReLU(), nn.MaxPool2d(2)),
        *(nn.Conv2d(32, 64, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(1600, 10)),
    )


def mobilenetv2():
    layers, i = [*conv_norm(3, 32, 3, 2, 1), nn.ReLU6()], 32
    for t, o, n, first in [
        (1, 16, 1, 1),
        (6, 24, 2, 2),
        (6, 32, 3, 2),
        (6, 64, 4, 2),
        (6, 96, 3, 1),
        (6, 160, 3, 2),
        (6, 320, 1, 1),
    ]:
        for stride in [first] + [1] * (n - 1):
            way = [*conv_norm(i, i * t, 1), nn.ReLU6()] if t > 1 else []
            way += [*conv_norm(i * t, i * t, 3, stride, 1, i * t), nn.ReLU6()]
            way += conv_norm(i * t, o, 1)
            layers += [Block(way)] if stride == 1 and i == o else way
            i = o
    layers += [*conv_norm(320, 1280, 1), nn.ReLU6(), nn.AdaptiveAvgPool2d(1), nn.Flatten()]
    return nn.Sequential(*layers, nn.Linear(1280, 1000))


def resnet18():
    layers, i = [*conv_norm(3, 64, 7, 2, 3), nn.ReLU(), nn.MaxPool2d(3, 2, 1)], 64
    for n in range(4):
        for k in range(2):
            o, stride = 64 << n, 2 if n and not k else 1
            way = [*conv_norm(i, o, 3, stride, 1), nn.ReLU(), *conv_norm(o, o, 3, 1, 1)]
            short = nn.Sequential(*conv_norm(i, o, 1, stride)) if i != o else None
            layers.append(Block(way, short, nn.ReLU()))
            i = o
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(512, 1000))


class Attention(nn.Module):
    def __init__(self, width, heads, causal):
        super().__init__()
        self.parts = nn.ModuleList(nn.Linear(width, width) for _ in range(4))
        self.heads, self.causal = heads, causal

    def forward(self, x):
        b, s, w = x.shape
        q, k, v = [p(x).view(b, s, self.heads, -1).transpose(1, 2) for p in self.parts[:3]]
        y = F.scaled_dot_product_attention(q, k, v, is_causal=self.causal)
        return self.parts[3](y.transpose(1, 2).reshape(b, s, w))


class Transformer(nn.Module):
    def __init__(self, length, layers, width, heads, words, places, classes, causal):
        super().__init__()
        self.words, self.places = nn.Embedding(words, width), nn.Embedding(places, width)
        self.register_buffer("here", torch.arange(length))
        wide = [nn.Linear(width, 4 * width), nn.GELU("tanh"), nn.Linear(4 * width, width)]
        self.layers = nn.Sequential(
            *(
                Block(part)
                for _ in range(layers)
                for part in (
                    [nn.LayerNorm(width), Attention(width, heads, causal)],
                    [nn.LayerNorm(width), *[type_of(m) for m in wide]],
                )
            ),
            nn.LayerNorm(width),
        )
        self.last = nn.Linear(width, classes) if classes else None

    def forward(self, ids):
        x = self.layers(self.words(ids) + self.places(self.here)).flatten(0, 1)
        return self.last(x) if self.last else x @ self.words.weight.T


def type_of(m):
    """A layer of its own like m."""
    return nn.Linear(m.in_features, m.out_features) if isinstance(m, nn.Linear) else m


def network(name):
    """The network, its input, and how many classes there are."""
    if name in ("mlp32", "mlp128"):
        m = nn.Sequential(nn.Linear(784, 128), nn.ReLU(), nn.Linear(128, 10))
        return m, torch.randn(int(name[3:]), 784), 10
    if name == "cnn32":
        return cnn(), torch.randn(32, 1, 28, 28), 10
    if name == "mobilenetv2":
        return mobilenetv2(), torch.randn(8, 3, 96, 96), 1000
    if name == "resnet18":
        return resnet18(), torch.randn(8, 3, 224, 224), 1000
    if name == "bert4":
        m = Transformer(128, 4, 768, 12, 30522, 512, 2, False)
        return m, torch.randint(0, 100, (4, 128)), 2
    m = Transformer(64, 12, 768, 12, 50257, 1024, 0, True)
    return m, torch.randint(0, 100, (4, 64)), 50257


def main():
    name, optimizer, seconds = sys.argv[1], sys.argv[2], float(sys.argv[3])
    torch.set_num_threads(THREADS)
    clock = time.process_time if THREADS == 1 else time.perf_counter
    model, x, classes = network(name)
    if x.dim() == 4:
        model, x = (
            model.to(memory_format=torch.channels_last),
            x.contiguous(memory_format=torch.channels_last),
        )
    rows = x.numel() if x.dtype == torch.int64 else x.shape[0]
    target = torch.arange(rows) % classes
    kind = torch.optim.AdamW if optimizer == "adamw" else torch.optim.SGD
    step_of = kind(model.parameters(), lr=1e-3)
    loss_of = lambda: F.cross_entropy(model(x), target)  # noqa: E731
    update = step_of.step
    if "--compile" in sys.argv:
        loss_of, update = torch.compile(loss_of), torch.compile(update)
    best, spent, n = 1e9, 0.0, 0
    while n < 5 or spent < seconds:
        since = clock()
        step_of.zero_grad(set_to_none=True)
        loss_of().backward()
        update()
        took = clock() - since
        best, spent, n = min(best, took), spent + took * (n > 2), n + 1
    print(1e3 * best)


if __name__ == "__main__":
    main()
