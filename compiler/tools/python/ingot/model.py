"""A compiled model as a Python object: the bundle as a shared library, called through ctypes.
Tensors are NumPy arrays, which the model reads and writes where they lie."""

import ctypes
import dataclasses
import functools
import math
import os
import pathlib
import re
import tempfile
import threading

import numpy as np

from . import abi
from .command import Error, FileError, ToolError, call, compile


class RunError(Error):
    """The model refused its inputs, or its data; status is an igrt_status (docs/abi.md)."""

    def __init__(self, message, status=None):
        super().__init__(message)
        self.status = status


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
        return Tensor(self.name, self.dtype, shape, **more)

    def misfit(self, x):
        return RunError(f"input {self.tensor()} was given {x.dtype}[{','.join(map(str, x.shape))}]")

    def array(self, value):
        """The array that the model reads: the caller's own, unless it is no array, not dense, or of
        strings."""
        if self.number == abi.STRING:
            x = np.asarray(value, object)
        elif isinstance(value, (np.ndarray, np.generic)):
            x = np.asarray(value)
            if x.dtype != self.dtype:
                raise self.misfit(x)
        else:
            x = np.asarray(value, self.dtype)
        if x.ndim != self.rank or not all(
            lo <= d <= hi for lo, d, hi in zip(self.least, x.shape, self.greatest)
        ):
            raise self.misfit(x)
        if self.number in abi.WIDENED:
            x = x.astype(abi.WIDENED[self.number])
        return np.require(x, requirements=["C", "A"])

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
                t if isinstance(t, bytes) else str(t).encode(errors="surrogateescape")
                for t in x.ravel()
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


def aligned(nbytes, align):
    """An array of bytes that begins at a multiple of align."""
    memory = np.empty(nbytes + align, np.uint8)
    at = -memory.ctypes.data % align
    return memory[at : at + nbytes]


def manifest(folder):
    try:
        lines = (folder / "ingot.manifest").read_text().splitlines()
    except OSError:
        raise FileError(
            f"{folder}: no bundle: there is no ingot.manifest; ingot.compile writes one"
        ) from None
    return [name for name in lines[1:] if name]


def build(folder, cflags):
    """make lib<name>.so, if it is older than the bundle's sources; its path."""
    names = manifest(folder)
    try:
        goal = re.search(r"^(lib\S+\.so):", (folder / "Makefile").read_text(), re.M)
    except OSError:
        goal = None
    if not goal:
        raise ToolError(
            f"{folder}: this bundle is for another machine, or a device: its Makefile has no shared library"
        )
    library = folder / goal[1]
    newest = max((folder / name).stat().st_mtime_ns for name in names if (folder / name).exists())
    if not library.exists() or library.stat().st_mtime_ns < newest:
        call(
            [
                "make",
                "-s",
                "-C",
                str(folder),
                f"-j{os.cpu_count() or 1}",
                f"CFLAGS={cflags}",
                library.name,
            ]
        )
    return library


class Function:
    """A function of a model: run(), or one beside it over the same states, as train_step().

    step = model.functions["train_step"]
    step.inputs, step.outputs           # tuples of Tensor
    loss = step(x, target, 1e-3)        # in order, or by name
    step.run({"x": x, ...})             # by name, a dict of outputs
    """

    def __init__(self, model, name, table):
        self._model = model
        self._open(name, table)

    def _call(self, *words):
        return self._table.call(*words)

    def _owner(self):
        """Whose context it runs in."""
        return self._model

    def _open(self, name, table):
        self.name, self._table = name, table
        self._in = Side(table.inputs, table.n_inputs, table.input_groups, table.n_input_groups)
        self._out = Side(table.outputs, table.n_outputs, table.output_groups, table.n_output_groups)
        self.inputs, self.outputs = self._in.tensors, self._out.tensors

    def __repr__(self):
        return f"<ingot.Function {self.name}: {', '.join(map(str, self.inputs))} -> {', '.join(map(str, self.outputs))}>"

    def _fill(self, struct, slot, value):
        tensor, ports, group = slot
        if not group:
            return self._fill_one(struct, ports[0], value)
        length_offset, present_offset = group
        if present_offset != abi.NO_MEMBER:
            struct.put(ctypes.c_int64, present_offset, int(value is not None))
        if length_offset == abi.NO_MEMBER:
            if value is not None:
                self._fill_one(struct, ports[0], value)
            return None
        values = list(value) if value is not None else []
        if len(values) > len(ports):
            raise RunError(
                f"input {tensor.name!r}: a sequence of {len(values)}, and there is room for {len(ports)}"
            )
        struct.put(ctypes.c_int64, length_offset, len(values))
        for port, x in zip(ports, values):
            self._fill_one(struct, port, x)
        return None

    def _fill_one(self, struct, port, value):
        if value is None:
            raise RunError(f"input {port.tensor()} is missing")
        x = port.array(value)
        struct.point(port, x)
        if port.dynamic:
            struct.put(ctypes.c_int64, port.dims_offset, *x.shape)

    def _room(self, struct, tensor, ports, out):
        rooms = []
        for port in ports:
            x = out
            if out is None:
                x = port.room()
            elif (
                not isinstance(out, np.ndarray)
                or out.dtype != port.dtype
                or port.number in abi.WIDENED
                or out.dtype == object
                or not out.flags.c_contiguous
                or not out.flags.writeable
                or out.shape != port.greatest
            ):
                wanted = f"{port.dtype}[{','.join(map(str, port.greatest))}]"
                raise RunError(
                    f"output {tensor.name!r}: out has to be a dense writable array {wanted}, the greatest shape"
                )
            struct.point(port, x)
            rooms.append(x)
        return rooms

    def _result(self, struct, slot, rooms):
        tensor, ports, group = slot

        def one(port, room):
            dims = (
                struct.get(ctypes.c_int64, port.dims_offset, port.rank)
                if port.dynamic
                else port.greatest
            )
            return port.result(room, dims)

        if not group:
            return one(ports[0], rooms[0])
        length_offset, present_offset = group
        if present_offset != abi.NO_MEMBER and not struct.get(ctypes.c_int64, present_offset)[0]:
            return None
        if length_offset == abi.NO_MEMBER:
            return one(ports[0], rooms[0])
        return [
            one(p, r) for p, r in zip(ports[: struct.get(ctypes.c_int64, length_offset)[0]], rooms)
        ]

    def _run(self, values, out):
        given, made = Struct(self._table.inputs_bytes), Struct(self._table.outputs_bytes)
        for slot, value in zip(self._in.slots, values):
            self._fill(given, slot, value)
        rooms = [self._room(made, t, ports, out.get(t.name)) for t, ports, _ in self._out.slots]
        model = self._owner()
        with model._lock:
            model._check(self._call(model._address, given.memory, made.memory))
            return [self._result(made, slot, room) for slot, room in zip(self._out.slots, rooms)]

    def __call__(self, *values, **named):
        """Inputs in order, or by name; the output, or a tuple of several."""
        names = [t.name for t in self.inputs]
        if len(values) > len(names):
            raise RunError(
                f"{self.name}: {len(values)} inputs are given, and it has {len(names)}: {', '.join(names)}"
            )
        taken = dict(zip(names, values))
        for name in named:
            if name in taken:
                raise RunError(f"{self.name}: input {name!r} is given twice")
        outputs = self.run({**taken, **named})
        return next(iter(outputs.values())) if len(outputs) == 1 else tuple(outputs.values())

    def run(self, inputs, out=None):
        """Inputs by name; outputs by name. out: arrays to write into, of the outputs' greatest
        shapes."""
        names, out = [t.name for t in self.inputs], dict(out or {})
        for what, known, got in (
            ("input", names, inputs),
            ("output", [t.name for t in self.outputs], out),
        ):
            for name in got:
                if name not in known:
                    raise RunError(
                        f"{self.name}: there is no {what} {name!r}; there are: {', '.join(known)}"
                    )
        missing = [str(t) for t in self.inputs if t.name not in inputs and not t.optional]
        if missing:
            raise RunError(f"{self.name}: missing: {', '.join(missing)}")
        results = self._run([inputs.get(name) for name in names], out)
        return {t.name: x for t, x in zip(self.outputs, results)}


class Model(Function):
    """A folder that ingot.compile wrote, ready to run.

        model = ingot.Model("out", threads=4)
        model.inputs, model.outputs         # tuples of Tensor: name, dtype, shape
        y = model(x)                        # in order; a tuple where there are several outputs
        model.run({"x": x})                 # by name, a dict of outputs
        model.run({"x": x}, out={"y": y})   # written into an array of the caller's

    The first Model of a folder builds lib<name>.so there with make and the C compiler ($CC). An
    input is read where it lies if it is a dense array of the declared dtype; arrays of another
    dtype are refused, lists and scalars converted. An output is a view of memory that this run
    allocated for its greatest shape. One Model is one context: a lock lets one thread run at a
    time. Of a bundle for a GPU and for C (compile(target="cuda+c")) `target` says which half is to
    run, and afterwards which one does.
    """

    def _owner(self):
        return self

    def _call(self, *words):
        return self._table.run(*words)

    def __init__(self, folder, threads=1, cflags="-O3", seed=0, target=None):
        folder = pathlib.Path(folder)
        library = build(folder, cflags)
        try:
            self._library = ctypes.CDLL(str(library.resolve()))
            bundle = abi.Bundle.in_dll(self._library, "igrt_bundle")
        except (OSError, ValueError) as e:
            raise ToolError(f"{library}: {e}") from None
        if not bundle.fits():
            raise ToolError(
                f"{library}: of another version of ingot (ABI {bundle.abi}, here {abi.VERSION}); compile it again"
            )
        self._bundle, self._table = bundle, bundle.model.contents
        table = self._table
        self._open(table.name.decode(), table)
        self._lock = threading.Lock()
        self._ready = False
        self._context = aligned(table.ctx_bytes, 64)
        self._address = ctypes.c_void_p(self._context.ctypes.data)
        self._pool = self._stop = None
        self._configure(folder, max(1, int(threads)), seed, target)

    def _configure(self, folder, threads, seed, target):
        table, config = self._table, abi.Config()
        self._config = config
        config.target = target.encode() if target else None
        config.struct_size, config.seed, config.threads = ctypes.sizeof(config), seed, 1
        if threads > 1:
            self._pool = aligned(self._bundle.pool_bytes, 64)
            self._pool[:] = 0
            config.threads = self._library.igrt_pool_start(
                ctypes.c_void_p(self._pool.ctypes.data), threads
            )
            config.parallel_for = ctypes.cast(self._library.igrt_pool_for, ctypes.c_void_p).value
            config.parallel_user = self._pool.ctypes.data
            self._stop = functools.partial(
                self._library.igrt_pool_stop, ctypes.c_void_p(self._pool.ctypes.data)
            )
        if table.n_memories:
            self._arena = [
                aligned(max(64, table.memory_bytes[i]), table.arena_align)
                for i in range(table.n_memories)
            ]
            self._memories = (abi.Memory * table.n_memories)(
                *((a.ctypes.data, a.nbytes) for a in self._arena)
            )
            config.memory, config.n_memories = self._memories, table.n_memories
        else:
            self._arena = aligned(table.arena_bytes(config.threads), table.arena_align)
            config.arena, config.arena_bytes = self._arena.ctypes.data, self._arena.nbytes
        if table.weights_file:
            path = folder / table.weights_file.decode()
            try:  # mapped, page by page as it is read
                self._weights = (
                    np.memmap(path, np.uint8, "r") if table.weights_bytes else np.zeros(1, np.uint8)
                )
            except (OSError, ValueError) as e:
                raise FileError(f"{path}: {e}") from None
            config.weights, config.weights_bytes = self._weights.ctypes.data, table.weights_bytes
            if self._weights.nbytes < table.weights_bytes:
                raise FileError(
                    f"{path}: {self._weights.nbytes} bytes, but this model was built for {table.weights_bytes}"
                )
        self._check(table.init(self._address, ctypes.byref(config)))
        self._ready = True

    @property
    def target(self):
        """Of a bundle for several targets which one runs, "cuda", "c", "x86-64-v3"; None: there is one
        target."""
        return self._table.target(self._address).decode() if self._table.target else None

    def __del__(self):
        if getattr(self, "_ready", False):
            self._ready = False
            self._table.deinit(self._address)
        if getattr(self, "_stop", None):
            self._stop()
            self._stop = None

    def __repr__(self):
        return f"<ingot.Model {self.name}: {', '.join(map(str, self.inputs))} -> {', '.join(map(str, self.outputs))}>"

    def _check(self, status):
        if not status:
            return
        message = f"{self.name}: {self._bundle.status_text(status).decode()}"
        told = self._table.fault and (self._ready or status in abi.OF_INIT)
        fault = self._table.fault(self._address).contents if told else None
        if fault and fault.what:
            message += f": {fault.what.decode(errors='replace')}"
            if fault.least or fault.greatest or fault.value:
                wanted = (
                    fault.least
                    if fault.least == fault.greatest
                    else f"between {fault.least} and {fault.greatest}"
                )
                message += (
                    f" is {fault.value}; it has to be {wanted}"
                    if fault.least <= fault.greatest
                    else ""
                )
        raise RunError(message, status)

    # -- beside run ------------------------------------------------------------------------------

    @functools.cached_property
    def functions(self):
        """Those beside run(), by name: each a Function."""
        all_of = self._table.functions[: self._table.n_functions]
        return {
            f.name.decode(): Function(self, f"{self.name}.{f.name.decode()}", f) for f in all_of
        }

    def step(self, *values, **named):
        """A step of training, of a model that ingot.train() has made: the inputs, the target, the
        rate; gives the loss."""
        if "train_step" not in self.functions:
            raise RunError(f"{self.name}: it has no train_step; ingot.train() makes one")
        return self.functions["train_step"](*values, **named)

    def _state_list(self):
        found = (abi.State * self._table.n_states)()
        for i, state in enumerate(found):
            self._check(self._table.state(self._address, i, ctypes.byref(state)))
        return found

    def _file_of_states(self, function, path):
        if not self._table.n_states:
            raise RunError(f"{self.name}: it has no states")
        found, why = self._state_list(), ctypes.create_string_buffer(512)
        done = self._library[function](
            os.fsencode(path), found, len(found), why, ctypes.c_size_t(len(why))
        )
        if not done:
            raise FileError(why.value.decode(errors="replace"))

    def save(self, path):
        """Writes all states (weights, moments, counters) as a .safetensors file. What is there is
        replaced at once, when the new file is on the disk."""
        with self._lock:
            self._file_of_states("igrt_states_save", path)

    def load(self, path):
        """Reads them again. The file of another model is refused (FileError), and changes
        nothing."""
        with self._lock:
            self._file_of_states("igrt_states_load", path)

    @property
    def states(self):
        """What lives between runs, by name: arrays that are views of the model's memory."""
        found = {}
        for state in self._state_list():
            dtype = np.dtype(abi.WIDENED.get(state.dtype, abi.NUMPY[state.dtype]))
            memory = (ctypes.c_char * max(1, state.bytes)).from_address(state.data)
            memory._model = self  # which owns it
            x = np.frombuffer(memory, np.uint8)[: state.bytes].view(dtype)
            found[state.name.decode(errors="replace")] = x.reshape(state.dims[: state.rank])
        return found

    def reset(self):
        """Clears the states (KV cache, hidden state)."""
        with self._lock:
            self._check(self._table.reset(self._address))

    def selftest(self):
        """Runs the golden vectors in the bundle; raises RunError where values differ, or there are
        none."""
        with self._lock:
            self._check(self._table.selftest(self._address) if self._table.selftest else 20)


def train(model, out=None, *, loss, optimizer, threads=1, cflags="-O3", seed=0, **options):
    """A model that learns: compile(model, out, train=True, ...), and a Model of the folder.

        m = ingot.train("model.onnx", loss="cross_entropy:logits", optimizer="adamw")
        for x, labels in batches:
            loss = m.step(x, labels, 1e-3)  # the inputs, the target, the rate
        m.save("model.safetensors")         # load() reads it; m(x) runs with the weights of by now

    out: the folder; without it, one that goes with the Model. Other options are those of compile()
    (docs/training.md); the target is this machine unless told.
    """
    kept = None
    if out is None:
        kept = tempfile.TemporaryDirectory(prefix="ingot-train-")
        out = kept.name + "/model"
    options.setdefault("target", "c:native")
    compile(model, out, train=True, loss=loss, optimizer=optimizer, **options)
    made = Model(out, threads=threads, cflags=cflags, seed=seed)
    made._folder = kept
    return made
