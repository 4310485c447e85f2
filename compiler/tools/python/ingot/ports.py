"""The inputs and outputs of a compiled model: what Python passes in becomes pointers in the structs
of the bundle, <model>_inputs and <model>_outputs."""

import ctypes
import dataclasses
import math

import numpy as np

from . import abi, dlpack
from .command import Error


class RunError(Error):
    """init, a run, save or load of a compiled model failed; status is an igrt_status (docs/abi.md),
    or None."""

    def __init__(self, message, status=None):
        super().__init__(message)
        self.status = status


class InputError(RunError, ValueError):
    """An argument does not fit the model: a missing input, another dtype, another shape."""


class DataError(RunError, ValueError):
    """The values of the inputs made the run fail: an index out of range, a size that the model does
    not allow."""


class DeviceError(RunError):
    """The GPU, its driver or a feature of the processor is missing or failed."""


KINDS = {n: DataError for n in (10, 11, 12, 13, 19, 21)}
KINDS.update({n: DeviceError for n in (16, 17, 22)})

# ONNX Runtime's words for element types: "tensor(float)"
ORT = {
    "bool": "bool",
    "i8": "int8",
    "u8": "uint8",
    "i16": "int16",
    "u16": "uint16",
    "i32": "int32",
    "u32": "uint32",
    "i64": "int64",
    "u64": "uint64",
    "f16": "float16",
    "bf16": "bfloat16",
    "f32": "float",
    "f64": "double",
}


@dataclasses.dataclass(frozen=True)
class Tensor:
    """An input or output. shape: a number for each dim, or (least, greatest) where it is known at
    run time only. A sequence holds at most `length` of it (None: it is no sequence); optional: it
    may be None."""

    name: str
    dtype: np.dtype
    shape: tuple
    length: int = None
    optional: bool = False
    elements: tuple = ()  # of a sequence: each one's Tensor
    number: int = 0  # of the element type, in igrt.h

    @property
    def type(self):
        """ONNX Runtime's name of the type: "tensor(float)", "seq(tensor(int64))"."""
        name = abi.NAMES.get(self.number, str(self.dtype))
        text = f"tensor({ORT.get(name, name)})"
        text = f"seq({text})" if self.length is not None else text
        return f"optional({text})" if self.optional else text

    def __str__(self):
        dims = ",".join(f"{d[0]}..{d[1]}" if isinstance(d, tuple) else str(d) for d in self.shape)
        return f"{self.name!r} {self.dtype}[{dims}]"


class Port:
    """A tensor of the interface: its place in the struct of inputs or outputs."""

    def __init__(self, io):
        self.name = io.name.decode(errors="replace")
        self.number, self.rank = io.dtype, io.rank
        self.data_offset, self.dims_offset = io.data_offset, io.dims_offset
        self.dynamic = io.dims_offset != abi.NO_MEMBER
        self.greatest = tuple(io.max_dims[: io.rank])
        self.least = tuple(io.min_dims[: io.rank]) if self.dynamic else self.greatest
        self.dtype = np.dtype(abi.NUMPY[io.dtype])

    def tensor(self, **more):
        shape = tuple(hi if lo == hi else (lo, hi) for lo, hi in zip(self.least, self.greatest))
        return Tensor(self.name, self.dtype, shape, number=self.number, **more)

    def misfit(self, x):
        given = f"{x.dtype}[{','.join(map(str, x.shape))}]"
        return InputError(f"input {self.tensor()} was given {given}")

    def view(self, what, value, stream=None):
        """A tensor of another library, by DLPack."""
        try:
            seen = dlpack.View(value, stream)
        except (BufferError, RuntimeError, TypeError) as e:
            raise InputError(f"{what} {self.tensor()}: {e}") from None
        if seen.number is None:
            raise InputError(f"{what} {self.tensor()} was given {seen.what}")
        return seen

    def fits(self, shape):
        return len(shape) == self.rank and all(
            lo <= d <= hi for lo, d, hi in zip(self.least, shape, self.greatest)
        )

    def array(self, value):
        """The array that the model reads: the caller's own, unless it is no array, not dense, or of
        strings."""
        if self.number == abi.STRING:
            x = self.strings(value)
        elif dlpack.speaks(value):
            seen = self.view("input", value)
            if seen.device not in dlpack.ON_HOST:
                raise InputError(
                    f"input {self.tensor()} lies on {seen.place()}, and this model takes tensors "
                    "of the CPU; compile for cuda and load with on_device=True"
                )
            x = seen.array()
            if seen.number != self.number:
                raise self.misfit(x)
        elif isinstance(value, (np.ndarray, np.generic)):
            x = np.asarray(value)
            if x.dtype != self.dtype:
                raise self.misfit(x)
        else:
            x = self.converted(value)
        if not self.fits(x.shape):
            raise self.misfit(x)
        if self.number in abi.WIDENED:
            x = x.astype(abi.WIDENED[self.number])
        return np.require(x, requirements=["C", "A"])

    def converted(self, value):
        """Lists, numbers and what else NumPy makes an array of, if no value changes its kind: 1.5 is
        no integer, 300 no byte, None nothing at all."""
        try:
            x = np.asarray(value)
        except ValueError as e:  # rows of several lengths
            raise InputError(f"input {self.tensor()}: {e}") from None
        if not x.size:
            return x.astype(self.dtype)
        kind = self.dtype.kind
        if x.dtype.kind not in ("b" if kind == "b" else "biu" if kind in "iu" else "biuf"):
            raise self.misfit(x)
        if kind in "iu" and x.dtype != bool:
            least, greatest = np.iinfo(self.dtype).min, np.iinfo(self.dtype).max
            for v in (int(x.min()), int(x.max())):
                if not least <= v <= greatest:
                    raise InputError(f"input {self.tensor()} was given {v}")
        return x.astype(self.dtype)

    def strings(self, value):
        x = np.asarray(value, object)
        for text in x.flat:
            if not isinstance(text, (str, bytes)):
                raise InputError(f"input {self.tensor()} was given {text!r}, which is no string")
            if (b"\0" if isinstance(text, bytes) else "\0") in text:
                raise InputError(f"input {self.tensor()} was given {text!r}: a zero ends a string")
        return x

    def room(self):
        """An array for an output of the greatest dims; it has an element at least, since no pointer
        may be NULL."""
        dtype = np.intp if self.number == abi.STRING else abi.WIDENED.get(self.number, self.dtype)
        return np.empty(max(1, math.prod(self.greatest)), dtype)

    def result(self, room, dims):
        """What a run has written, as an array: a view of the room."""
        n = math.prod(dims)
        x = room.reshape(-1)[:n]
        if self.number == abi.STRING:
            texts = [
                ctypes.string_at(int(p)).decode(errors="surrogateescape") if p else "" for p in x
            ]
            x = np.array(texts + [None], object)[:-1]
        elif self.number in abi.WIDENED:
            x = x.astype(self.dtype)
        return x.reshape(dims)


class Struct:
    """<model>_inputs or <model>_outputs, and what its pointers point to."""

    def __init__(self, nbytes):
        self.memory = ctypes.create_string_buffer(max(1, nbytes))
        self.keep = []

    def put(self, kind, offset, *values):
        (kind * len(values)).from_buffer(self.memory, offset)[:] = values

    def get(self, kind, offset, n=1):
        return tuple((kind * n).from_buffer(self.memory, offset))

    def point(self, port, x):
        if port.number == abi.STRING and x.dtype == object:
            texts = [
                t if isinstance(t, bytes) else t.encode(errors="surrogateescape") for t in x.ravel()
            ]
            pointers = (ctypes.c_char_p * max(1, len(texts)))(*texts)
            self.keep += [texts, pointers]
            address = ctypes.addressof(pointers)
        else:
            if not x.size:  # a pointer of its own: that of nothing may be any
                x = np.zeros(1, x.dtype)
            self.keep.append(x)
            address = x.ctypes.data
        self.put(ctypes.c_void_p, port.data_offset, address)

    def point_at(self, port, address, owner):
        self.keep.append(owner)
        self.put(ctypes.c_void_p, port.data_offset, address)


class Side:
    """The inputs or the outputs: plain tensors, sequences and optionals in the model's order."""

    def __init__(self, ios, n, groups, ngroup):
        self.ports = [Port(ios[i]) for i in range(n)]
        self.slots = []  # (Tensor, ports, group or None)
        at, k = 0, 0
        while at < n or k < ngroup:
            if k < ngroup and groups[k].first == at:
                g = groups[k]
                k += 1
                ports = self.ports[at : at + g.n]
                at += g.n
                optional = g.present_offset != abi.NO_MEMBER
                name, length = g.name.decode(errors="replace"), None
                if g.length_offset != abi.NO_MEMBER:
                    length = len(ports)
                first = ports[0].tensor() if ports else Tensor(name, np.dtype(np.float32), ())
                elements = tuple(p.tensor() for p in ports) if length is not None else ()
                self.slots.append(
                    (
                        dataclasses.replace(
                            first, name=name, length=length, optional=optional, elements=elements
                        ),
                        ports,
                        (g.length_offset, g.present_offset),
                    )
                )
            else:
                self.slots.append((self.ports[at].tensor(), [self.ports[at]], None))
                at += 1
        self.tensors = tuple(t for t, _, _ in self.slots)
