"""A model whose inputs and outputs lie on a CUDA device (on_device=True): what stands in place of
NumPy arrays in a run."""

import math

import numpy as np

from . import abi, cuda, dlpack
from .ports import InputError

ON_DEVICE = 2  # IGRT_ON_DEVICE


class Room:
    """Where an output goes: address, and who owns it."""

    def __init__(self, address, owner):
        self.address, self.owner = address, owner


class Gpu:
    """The stream that a model runs in, and what its runs still read and write."""

    def __init__(self, config, stream):
        self.stream = cuda.Stream(stream)
        self.in_flight = cuda.InFlight(self.stream)
        config.flags |= ON_DEVICE
        config.stream = self.stream.handle

    def view(self, what, port, value):
        if not dlpack.speaks(value):
            raise InputError(
                f"{what} {port.tensor()} was given {type(value).__name__}; with on_device=True it "
                "has to be a tensor on the GPU (DLPack)"
            )
        seen = port.view(what, value, self.stream.handle)
        if seen.device not in (dlpack.CUDA, dlpack.CUDA_MANAGED):
            raise InputError(f"{what} {port.tensor()} lies on {seen.place()}, not on the GPU")
        if seen.number != port.number or not port.fits(seen.shape):
            given = f"{np.dtype(abi.NUMPY[seen.number])}[{','.join(map(str, seen.shape))}]"
            raise InputError(f"{what} {port.tensor()} was given {given}")
        if seen.strides:
            raise InputError(f"{what} {port.tensor()} is not dense: pass x.contiguous()")
        return seen

    def input(self, port, value):
        return self.view("input", port, value)

    def room(self, port, out):
        if out is not None:
            seen = self.view("output", port, out)
            if seen.shape != port.greatest or seen.read_only:
                raise InputError(
                    f"output {port.tensor()}: out has to be writable and of the greatest shape"
                )
            return Room(seen.address, seen)
        item = 8 if port.number == abi.STRING else port.dtype.itemsize
        memory = cuda.Memory(max(1, math.prod(port.greatest)) * item)
        return Room(memory.address, memory)

    def result(self, port, room, dims):
        return cuda.DeviceArray(room.owner, port, dims, self.stream)

    def ran(self, given, made, into_out):
        """A run is enqueued. Tensors of the caller's are written in our stream, which theirs does not
        wait for: unless it is the same one, they are ready when run() returns."""
        if into_out and self.stream.own:
            self.stream.wait()
        self.in_flight.add(given, made)

    def finish(self):
        self.in_flight.finish()
