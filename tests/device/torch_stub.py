"""As much of torch as bars.py asks for, on the host, for runs by a driver that does nothing
(tests/bundle/cuda_stub.c). An event is a tick, so times do not depend on the machine; trace has
what was asked for, in order."""

import contextlib
import types

import numpy as np

trace = []
float16, float32 = np.float16, np.float32


class Tensor(np.ndarray):
    def cuda(self):
        return self

    cpu = cuda

    def numpy(self):
        return np.asarray(self)

    def float(self):
        return self.astype(np.float32)

    def double(self):
        return self.astype(np.float64)

    def numel(self):
        return self.size

    def data_ptr(self):
        return self.ctypes.data


def from_numpy(x):
    return np.ascontiguousarray(x).view(Tensor)


def ones(*shape, device=None, dtype=np.float32):
    return np.ones(1 << 10, dtype).view(Tensor)


matmul = mv = np.matmul


class Event:
    def __init__(self, enable_timing=False):
        self.tick = 0

    def record(self):
        trace.append("|")
        self.tick = trace.count("|")

    def elapsed_time(self, end):
        return float(end.tick - self.tick)


class Graph:
    def replay(self):
        trace.append("graph")


class Stream:
    cuda_stream = 64


backends = types.SimpleNamespace(
    cuda=types.SimpleNamespace(matmul=types.SimpleNamespace(allow_tf32=True))
)
nn = types.SimpleNamespace(
    functional=types.SimpleNamespace(scaled_dot_product_attention=lambda q, k, v, **how: q),
    attention=types.SimpleNamespace(
        SDPBackend=types.SimpleNamespace(CUDNN_ATTENTION=0, FLASH_ATTENTION=1),
        sdpa_kernel=lambda backend: contextlib.nullcontext(),
    ),
)
cuda = types.SimpleNamespace(
    is_available=lambda: True,
    synchronize=lambda: None,
    Event=Event,
    CUDAGraph=Graph,
    Stream=Stream,
    stream=lambda s: contextlib.nullcontext(),
    graph=lambda g: contextlib.nullcontext(),
)
