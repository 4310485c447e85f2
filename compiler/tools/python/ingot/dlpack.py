"""Tensors of other libraries (PyTorch, JAX, CuPy ...) as the protocol DLPack hands them over: where
their memory is, never a copy of it.

The structs are those of dlpack.h. A capsule that is read here is kept and not consumed: when nobody
refers to it any more, it gives its tensor back by itself."""

import ctypes

import numpy as np

from . import abi

CPU, CUDA, CUDA_HOST, CUDA_MANAGED = 1, 2, 3, 13
DEVICES = {CPU: "cpu", CUDA: "cuda", CUDA_HOST: "pinned memory", CUDA_MANAGED: "managed memory"}
ON_HOST = (CPU, CUDA_HOST, CUDA_MANAGED)

# (code, bits) of a DLDataType: the number that igrt.h has for the type
TYPES = {
    (0, 8): 2,
    (0, 16): 4,
    (0, 32): 6,
    (0, 64): 8,
    (1, 8): 3,
    (1, 16): 5,
    (1, 32): 7,
    (1, 64): 9,
}
TYPES.update(
    {(2, 16): 10, (2, 32): 12, (2, 64): 13, (4, 16): 11, (5, 64): 24, (5, 128): 25, (6, 8): 1}
)
TYPES.update({(10, 8): 14, (11, 8): 15, (12, 8): 16, (13, 8): 17, (14, 8): 18})
CODES = {number: code for code, number in TYPES.items()}


class DLTensor(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    ]


class DLManagedTensor(ctypes.Structure):
    pass


DELETER = ctypes.CFUNCTYPE(None, ctypes.POINTER(DLManagedTensor))
DLManagedTensor._fields_ = [
    ("tensor", DLTensor),
    ("context", ctypes.c_void_p),
    ("deleter", DELETER),
]


class DLManagedTensorVersioned(ctypes.Structure):
    _fields_ = [
        ("major", ctypes.c_uint32),
        ("minor", ctypes.c_uint32),
        ("context", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p),
        ("flags", ctypes.c_uint64),
        ("tensor", DLTensor),
    ]


READ_ONLY = 1
VERSION = (1, 0)

python = ctypes.pythonapi
get_pointer = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(
    ("PyCapsule_GetPointer", python)
)
is_named = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.c_char_p)(
    ("PyCapsule_IsValid", python)
)


def managed(capsule):
    """The tensor of a capsule, and whether it is read-only."""
    if is_named(capsule, b"dltensor_versioned"):
        at = get_pointer(capsule, b"dltensor_versioned")
        m = ctypes.cast(at, ctypes.POINTER(DLManagedTensorVersioned)).contents
        if m.major != VERSION[0]:
            raise BufferError(f"DLPack {m.major}.{m.minor}")
        return m.tensor, bool(m.flags & READ_ONLY)
    at = get_pointer(capsule, b"dltensor")
    return ctypes.cast(at, ctypes.POINTER(DLManagedTensor)).contents.tensor, False


def capsule_of(value, words):
    """A library that is older than DLPack 1.0 does not know max_version."""
    try:
        return value.__dlpack__(**words, max_version=VERSION)
    except TypeError:
        return value.__dlpack__(**words)


def speaks(value):
    """Is it a tensor of another library? NumPy's own arrays are taken as they are."""
    return hasattr(value, "__dlpack__") and not isinstance(value, (np.ndarray, np.generic))


class View:
    """A tensor of another library: address, number (of its type), shape, strides (in elements, None
    where it is dense), device, read_only."""

    def __init__(self, value, stream=None):
        kind, self.device_id = value.__dlpack_device__()
        self.device = int(kind)
        waits = stream is not None and self.device == CUDA  # a tensor elsewhere knows no stream
        self.capsule = capsule_of(value, {"stream": stream} if waits else {})
        t, self.read_only = managed(self.capsule)
        self.address = (t.data or 0) + t.byte_offset
        self.number = TYPES.get((t.code, t.bits)) if t.lanes == 1 else None
        self.what = f"DLPack type {t.code} of {t.bits} bits"
        self.shape = tuple(t.shape[: t.ndim])
        self.strides = None
        if t.strides:
            strides, dense, step = tuple(t.strides[: t.ndim]), True, 1
            for d, s in zip(reversed(self.shape), reversed(strides)):
                dense &= d <= 1 or s == step
                step *= d
            if not dense and 0 not in self.shape:
                self.strides = strides

    def place(self):
        return DEVICES.get(self.device, f"device type {self.device}") + (
            f":{self.device_id}" if self.device == CUDA else ""
        )

    def array(self):
        """The same memory as a NumPy array, which keeps the tensor alive."""
        dtype = np.dtype(abi.NUMPY[self.number])
        steps = self.strides
        if steps is None:
            steps, step = [], 1
            for d in reversed(self.shape):
                steps.insert(0, step)
                step *= max(1, d)
        reach = (
            1 + sum((d - 1) * s for d, s in zip(self.shape, steps)) if 0 not in self.shape else 0
        )
        memory = (ctypes.c_char * max(1, reach * dtype.itemsize)).from_address(
            self.address or ctypes.addressof(EMPTY)
        )
        memory._tensor = self
        x = np.frombuffer(memory, np.uint8)[: reach * dtype.itemsize].view(dtype)
        return np.lib.stride_tricks.as_strided(x, self.shape, [s * dtype.itemsize for s in steps])


EMPTY = (ctypes.c_char * 64)()
