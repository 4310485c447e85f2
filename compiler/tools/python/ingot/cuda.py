"""Memory and streams of a CUDA device, through the driver (libcuda): what a model with
on_device=True needs beside the tensors of the caller. There is no need of PyTorch or CuPy."""

import ctypes
import functools

import numpy as np

from . import abi, dlpack
from .ports import DeviceError


class Driver:
    """libcuda, and the primary context of device 0, which PyTorch and CuPy use too."""

    def __init__(self):
        try:
            self.lib = ctypes.CDLL("libcuda.so.1")
        except OSError as e:
            raise DeviceError(f"there is no CUDA driver: {e}") from None
        self.context = ctypes.c_void_p()
        device = ctypes.c_int()
        self("cuInit", 0)
        self("cuDeviceGet", ctypes.byref(device), 0)
        self("cuDevicePrimaryCtxRetain", ctypes.byref(self.context), device)

    def __call__(self, name, *words):
        status = self.lib[name](*words)
        if status:
            text = ctypes.c_char_p()
            self.lib.cuGetErrorString(status, ctypes.byref(text))
            raise DeviceError(f"{name}: {(text.value or b'?').decode()}")

    def inside(self, name, *words):
        """The same in the context, whichever one the calling thread has."""
        self("cuCtxPushCurrent_v2", self.context)
        try:
            self(name, *words)
        finally:
            self.lib.cuCtxPopCurrent_v2(ctypes.byref(ctypes.c_void_p()))


@functools.cache
def driver():
    return Driver()


class Stream:
    """The stream a model runs in: the caller's, by its handle, or one of its own."""

    def __init__(self, handle=None):
        self.own = handle is None
        value = ctypes.c_void_p(handle)
        if self.own:
            driver().inside("cuStreamCreate", ctypes.byref(value), 1)  # CU_STREAM_NON_BLOCKING
        self.handle = value.value or 1  # CU_STREAM_LEGACY

    def wait(self):
        driver().inside("cuStreamSynchronize", ctypes.c_void_p(self.handle))

    def mark(self):
        """An event after all that is enqueued so far."""
        event = ctypes.c_void_p()
        driver().inside("cuEventCreate", ctypes.byref(event), 2)  # CU_EVENT_DISABLE_TIMING
        driver().inside("cuEventRecord", event, ctypes.c_void_p(self.handle))
        return event

    def followed_by(self, other):
        """What is enqueued in `other` from now on waits for what is enqueued here."""
        if other in (-1, self.handle):
            return
        event = self.mark()
        driver().inside("cuStreamWaitEvent", ctypes.c_void_p(other or 1), event, 0)
        driver().lib.cuEventDestroy_v2(event)

    def __del__(self):
        if self.own and getattr(self, "handle", None):
            driver().lib.cuStreamDestroy_v2(ctypes.c_void_p(self.handle))


class Memory:
    """So many bytes of the device."""

    def __init__(self, nbytes):
        at = ctypes.c_void_p()
        driver().inside("cuMemAlloc_v2", ctypes.byref(at), ctypes.c_size_t(max(1, nbytes)))
        self.address = at.value

    def __del__(self):
        if getattr(self, "address", None):
            driver().inside("cuMemFree_v2", ctypes.c_void_p(self.address))


EXPORTED = {}  # what capsules refer to, by the address of their DLManagedTensor


@dlpack.DELETER
def release(managed):
    EXPORTED.pop(ctypes.addressof(managed.contents), None)


@ctypes.CFUNCTYPE(None, ctypes.c_void_p)
def unused(capsule):  # nobody has consumed it: it still has its first name
    at = is_valid(capsule, b"dltensor") and raw_pointer(capsule, b"dltensor")
    if at:
        EXPORTED.pop(at, None)


is_valid = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_char_p)(
    ("PyCapsule_IsValid", ctypes.pythonapi)
)
raw_pointer = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_char_p)(
    ("PyCapsule_GetPointer", ctypes.pythonapi)
)
new_capsule = ctypes.PYFUNCTYPE(
    ctypes.py_object, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p
)(("PyCapsule_New", ctypes.pythonapi))


class DeviceArray:
    """An output on the device. torch.from_dlpack(y) and cupy.from_dlpack(y) take it as it is;
    y.numpy() copies it to the host."""

    def __init__(self, memory, port, dims, stream):
        self.memory, self.stream, self.number = memory, stream, port.number
        self.dtype, self.shape = port.dtype, tuple(dims)

    def __repr__(self):
        return f"<ingot.DeviceArray {self.dtype}[{','.join(map(str, self.shape))}]>"

    def __dlpack_device__(self):
        return (dlpack.CUDA, 0)

    def __dlpack__(self, *, stream=None, max_version=None, dl_device=None, copy=None):
        if copy or (dl_device is not None and tuple(dl_device) != (dlpack.CUDA, 0)):
            raise BufferError("ingot.DeviceArray: it is handed over where it lies")
        self.stream.followed_by(1 if stream is None else stream)
        code, bits = dlpack.CODES[self.number]
        shape = (ctypes.c_int64 * max(1, len(self.shape)))(*self.shape)
        managed = dlpack.DLManagedTensor()
        managed.tensor = dlpack.DLTensor(
            self.memory.address, dlpack.CUDA, 0, len(self.shape), code, bits, 1, shape, None, 0
        )
        managed.deleter = release
        EXPORTED[ctypes.addressof(managed)] = (managed, shape, self)
        return new_capsule(
            ctypes.addressof(managed), b"dltensor", ctypes.cast(unused, ctypes.c_void_p)
        )

    def numpy(self):
        self.stream.wait()
        x = np.empty(self.shape, abi.WIDENED.get(self.number, self.dtype))
        at, to = ctypes.c_void_p(self.memory.address), ctypes.c_void_p(x.ctypes.data)
        if x.nbytes:
            driver().inside("cuMemcpyDtoH_v2", to, at, ctypes.c_size_t(x.nbytes))
        return x.astype(self.dtype, copy=False)

    __array__ = lambda self, dtype=None, copy=None: self.numpy().astype(dtype or self.dtype)


class InFlight:
    """What runs that may not have ended yet still read and write; the oldest ones are let go."""

    def __init__(self, stream):
        self.stream, self.runs = stream, []

    def add(self, *what):
        self.runs.append((self.stream.mark(), what))
        while self.runs and (len(self.runs) > 8 or not driver().lib.cuEventQuery(self.runs[0][0])):
            event, _ = self.runs.pop(0)
            driver().inside("cuEventSynchronize", event)
            driver().lib.cuEventDestroy_v2(event)

    def finish(self):
        for event, _ in self.runs:
            driver().inside("cuEventSynchronize", event)
            driver().lib.cuEventDestroy_v2(event)
        self.runs = []
