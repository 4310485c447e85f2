"""A compiled model as a Python object: the bundle as a shared library, called through ctypes.
Tensors are NumPy arrays, or those of any library that speaks DLPack. The model reads and writes
them where they lie."""

import asyncio
import ctypes
import functools
import math
import os
import pathlib
import tempfile
import threading
import time
import typing
from collections.abc import Mapping

import numpy as np

from . import abi, dlpack
from .build import build
from .command import FileError, ToolError, compile
from .ports import KINDS, InputError, RunError, Side, Struct


def aligned(nbytes, align):
    """An array of bytes that begins at a multiple of align."""
    memory = np.empty(nbytes + align, np.uint8)
    at = -memory.ctypes.data % align
    return memory[at : at + nbytes]


def open_library(path):
    """dlopen by a name of its own: the linker would take a name that it knows for the library that
    it has, although this one was built anew."""
    with tempfile.TemporaryDirectory(prefix="ingot-") as work:
        link = os.path.join(work, path.name)
        os.symlink(path.resolve(), link)
        return ctypes.CDLL(link)


def memory_of(x):
    """Where an array lies, begin and end, on the host or on a GPU; None: it is something else."""
    if isinstance(x, np.ndarray):
        return (x.ctypes.data, x.ctypes.data + x.nbytes) if x.flags.c_contiguous else None
    nbytes = getattr(x, "nbytes", 0)
    return (x.address, x.address + nbytes) if nbytes else None


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
            raise InputError(
                f"input {tensor.name!r}: a sequence of {len(values)}, and there is room for {len(ports)}"
            )
        struct.put(ctypes.c_int64, length_offset, len(values))
        for port, x in zip(ports, values):
            self._fill_one(struct, port, x)
        return None

    def _fill_one(self, struct, port, value):
        if value is None:
            raise InputError(f"input {port.tensor()} is missing")
        gpu = self._owner()._gpu
        x = gpu.input(port, value) if gpu else port.array(value)
        if gpu:
            struct.point_at(port, x.address, x)
        else:
            struct.point(port, x)
        if port.dynamic:
            struct.put(ctypes.c_int64, port.dims_offset, *x.shape)

    def _room(self, struct, tensor, ports, out):
        rooms, gpu = [], self._owner()._gpu
        for port in ports:
            x = out
            if gpu:
                x = gpu.room(port, out)
                struct.point_at(port, x.address, x)
                rooms.append(x)
                continue
            if out is None:
                x = port.room()
            elif dlpack.speaks(out):
                seen = port.view("output", out)
                writable = seen.device in dlpack.ON_HOST and not seen.read_only
                x = seen.array() if writable else None
            if x is not None and out is None:
                pass
            elif (
                not isinstance(x, np.ndarray)
                or x.dtype != port.dtype
                or port.number in abi.WIDENED
                or x.dtype == object
                or not x.flags.c_contiguous
                or not x.flags.writeable
                or x.shape != port.greatest
            ):
                wanted = f"{port.dtype}[{','.join(map(str, port.greatest))}]"
                raise InputError(
                    f"output {tensor.name!r}: out has to be a dense writable array {wanted}, the greatest shape"
                )
            struct.point(port, x)
            rooms.append(x)
        return rooms

    def _result(self, struct, slot, rooms, out):
        _, ports, group = slot
        gpu = self._owner()._gpu

        def one(port, room):
            dims = (
                struct.get(ctypes.c_int64, port.dims_offset, port.rank)
                if port.dynamic
                else port.greatest
            )
            if out is not None and dlpack.speaks(out):  # a tensor of the caller's: the same, or its
                whole = tuple(dims) == port.greatest  # beginning
                return out if whole else out.reshape(-1)[: math.prod(dims)].reshape(dims)
            return gpu.result(port, room, dims) if gpu else port.result(room, dims)

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
        if out:
            self._check_apart(given.keep, rooms, out)
        model = self._owner()
        model._after_fork()
        with model._lock:
            model._check_open()
            model._check(self._call(model._address, given.memory, made.memory))
            if model._gpu:
                model._gpu.ran(given, made, bool(out))
            return [
                self._result(made, slot, room, out.get(slot[0].name))
                for slot, room in zip(self._out.slots, rooms)
            ]

    def _check_apart(self, inputs, rooms, out):
        """Kernels may write an output before they have read all of an input."""
        for (tensor, _, _), results in zip(self._out.slots, rooms):
            if out.get(tensor.name) is None:
                continue
            spans = [span for x in inputs if (span := memory_of(x))]
            for begin, end in filter(None, map(memory_of, results)):
                if any(begin < e and b < end for b, e in spans):
                    raise InputError(f"output {tensor.name!r}: out overlaps an input")

    def __call__(self, *values, **named):
        """Inputs in order, or by name; the output, or a tuple of several."""
        names = [t.name for t in self.inputs]
        if len(values) > len(names):
            raise InputError(
                f"{self.name}: {len(values)} inputs are given, and it has {len(names)}: {', '.join(names)}"
            )
        taken = dict(zip(names, values))
        for name in named:
            if name in taken:
                raise InputError(f"{self.name}: input {name!r} is given twice")
        outputs = self.run({**taken, **named})
        return next(iter(outputs.values())) if len(outputs) == 1 else tuple(outputs.values())

    def run(self, *given, out=None):
        """run({"x": x}) gives a dict of outputs; run(None, {"x": x}) and run(["y"], {"x": x}) give a
        list, of all outputs or of those named, as ONNX Runtime does. out: tensors to write into, by
        name, of the outputs' greatest shapes."""
        listed = len(given) == 2 and not isinstance(given[0], Mapping)
        if listed and isinstance(given[1], Mapping):
            wanted, inputs = given
            wanted = [wanted] if isinstance(wanted, str) else wanted
        elif given and len(given) <= 2 and isinstance(given[0], Mapping):
            wanted, inputs, out = None, given[0], given[1] if len(given) == 2 else out
        else:
            raise InputError(f"{self.name}: run() takes a dict of inputs, or None and a dict")
        results = self._run_named(inputs, dict(out or {}), wanted or ())
        if not listed:
            return results
        return [results[name] for name in (results if wanted is None else wanted)]

    def _run_named(self, inputs, out, wanted):
        names, results = [t.name for t in self.inputs], [t.name for t in self.outputs]
        for what, known, got in (
            ("input", names, inputs),
            ("output", results, out),
            ("output", results, wanted),
        ):
            for name in got:
                if name not in known:
                    raise InputError(
                        f"{self.name}: there is no {what} {name!r}; there are: {', '.join(known)}"
                    )
        missing = [str(t) for t in self.inputs if t.name not in inputs and not t.optional]
        if missing:
            raise InputError(f"{self.name}: missing: {', '.join(missing)}")
        return dict(zip(results, self._run([inputs.get(name) for name in names], out)))

    async def run_async(self, *given, out=None):
        """run(), in a thread of asyncio's pool: other tasks go on meanwhile. Runs of one Model take
        turns; those of its clone()s do not."""
        return await asyncio.to_thread(self.run, *given, out=out)

    def get_inputs(self):
        """The inputs, as ONNX Runtime lists them: each has name, shape and type."""
        return list(self.inputs)

    def get_outputs(self):
        """The outputs, likewise."""
        return list(self.outputs)


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

    def __init__(
        self,
        folder,
        threads=1,
        cflags="-O3",
        seed=0,
        target=None,
        profile=False,
        on_device=False,
        stream=None,
        progress=None,
    ):
        self._ready, self._stop = False, None
        self._made = {
            "threads": max(1, int(threads)),
            "cflags": cflags,
            "seed": seed,
            "target": target,
            "profile": bool(profile),
            "on_device": bool(on_device),
        }
        self._path, self._again = pathlib.Path(folder), None
        library = build(self._path, cflags, progress)
        try:
            self._library = open_library(library)
            bundle = abi.Bundle.in_dll(self._library, "igrt_bundle")
        except (OSError, ValueError) as e:
            raise ToolError(f"{library}: {e}") from None
        if not bundle.fits():
            raise ToolError(
                f"{library}: of another version of ingot (ABI {bundle.abi}, here {abi.VERSION}); compile it again"
            )
        self._bundle, self._weights = bundle, self._map_weights(bundle.model.contents)
        self._begin(stream)

    def _map_weights(self, table):
        """The file of weights, read page by page as it is needed."""
        if not table.weights_file:
            return None
        path = self._path / table.weights_file.decode()
        try:
            mapped = (
                np.memmap(path, np.uint8, "r") if table.weights_bytes else np.zeros(1, np.uint8)
            )
        except (OSError, ValueError) as e:
            raise FileError(f"{path}: {e}") from None
        if mapped.nbytes < table.weights_bytes:
            raise FileError(
                f"{path}: {mapped.nbytes} bytes, but this model was built for {table.weights_bytes}"
            )
        return mapped

    def _begin(self, stream=None, checked=False):
        """A context of the library that is loaded. checked: another one has seen the weights."""
        self._table = table = self._bundle.model.contents
        self._open(table.name.decode(), table)
        self._lock, self._process = threading.Lock(), os.getpid()
        self._context = aligned(table.ctx_bytes, 64)
        self._address = ctypes.c_void_p(self._context.ctypes.data)
        self._pool = self._gpu = None
        self._config = config = abi.Config()
        config.struct_size, config.threads = ctypes.sizeof(config), 1
        config.seed, target = self._made["seed"], self._made["target"]
        config.target = target.encode() if target else None
        config.flags = int(checked)  # IGRT_SKIP_CHECKSUM
        if self._made["on_device"]:
            from .gpu import Gpu

            self._gpu = Gpu(config, stream)
        if self._made["profile"]:
            self._profile = Profile(config)
        self._start_threads(config)
        self._give_memory(table, config)
        self._check(table.init(self._address, ctypes.byref(config)))
        self._ready = True

    def _check_open(self):
        if not self._ready:
            raise RunError(f"{self.name}: the model is closed")

    def _start_pool(self):
        self._pool[:] = 0
        pool, self._process = ctypes.c_void_p(self._pool.ctypes.data), os.getpid()
        return self._library.igrt_pool_start(pool, self._made["threads"])

    def _after_fork(self):
        """A process that was forked has the model, but not its threads, nor who held the lock."""
        if self._process != os.getpid():
            self._lock, self._process = threading.Lock(), os.getpid()
            if self._pool is not None and self._ready:
                self._start_pool()

    def _start_threads(self, config):
        if self._made["threads"] == 1:
            return
        self._pool = aligned(self._bundle.pool_bytes, 64)
        config.threads = self._start_pool()
        pool = ctypes.c_void_p(self._pool.ctypes.data)
        config.parallel_for = ctypes.cast(self._library.igrt_pool_for, ctypes.c_void_p).value
        config.parallel_user = self._pool.ctypes.data
        self._stop = functools.partial(self._library.igrt_pool_stop, pool)

    def _give_memory(self, table, config):
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
        if self._weights is not None:
            config.weights, config.weights_bytes = self._weights.ctypes.data, table.weights_bytes

    # -- several, elsewhere, no more -------------------------------------------------------------

    def clone(self, threads=None, stream=None):
        """Another context of the same model, for another thread: it shares the code and the weights,
        and has memory of its own for everything else. States begin as they do in a new Model."""
        other = object.__new__(type(self))
        other._ready, other._stop = False, None
        other._made = {**self._made, "threads": int(threads or self._made["threads"])}
        other._path, other._again = self._path, self._again
        other._library, other._bundle = self._library, self._bundle
        other._weights, other._folder = self._weights, getattr(self, "_folder", None)
        other._begin(stream, checked=True)
        return other

    def close(self):
        """Gives back memory and threads, after the run that is on; the model does not run any more."""
        if not hasattr(self, "_lock"):
            return
        here = self._process == os.getpid()  # else these are threads of the process that forked
        if not here:
            self._lock = threading.Lock()
        with self._lock:
            if self._ready:
                self._ready = False
                if self._gpu:
                    self._gpu.finish()
                self._table.deinit(self._address)
                self._arena = None
            if self._stop and here:
                self._stop()
            self._stop = None

    __del__ = close

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def __reduce__(self):
        """A pickle has where the bundle lies, or how load() made it, and what the states are."""
        states = {k: np.array(v) for k, v in self.states.items()} if self._table.n_states else {}
        return _again, (self._again or (str(self._path.resolve()), None), self._made, states)

    def profile(self, clear=False):
        """With profile=True: the steps, slowest first, each with step, name, calls, seconds; of all
        runs since the beginning, or since clear=True. Measuring costs some microseconds a step."""
        if not self._made["profile"]:
            raise RunError(f"{self.name}: there is no profile; pass profile=True to load or Model")
        with self._lock:
            return self._profile.steps(clear)

    @property
    def target(self):
        """Of a bundle for several targets which one runs, "cuda", "c", "x86-64-v3"; None: there is one
        target."""
        self._check_open()
        return self._table.target(self._address).decode() if self._table.target else None

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
        raise KINDS.get(status, RunError)(message, status)

    # -- beside run ------------------------------------------------------------------------------

    @functools.cached_property
    def functions(self):
        """The functions of the bundle except run(), by name."""
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
        self._check_open()
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
            memory._owners = self, self._arena, self._context
            x = np.frombuffer(memory, np.uint8)[: state.bytes].view(dtype)
            found[state.name.decode(errors="replace")] = x.reshape(state.dims[: state.rank])
        return found

    def reset(self):
        """Clears the states (KV cache, hidden state)."""
        with self._lock:
            self._check_open()
            self._check(self._table.reset(self._address))

    def selftest(self):
        """Runs the golden vectors in the bundle; raises RunError where values differ, or there are
        none."""
        with self._lock:
            self._check_open()
            self._check(self._table.selftest(self._address) if self._table.selftest else 20)


class Profile:
    """What config.clock and config.profile are: it adds up how long each step takes."""

    def __init__(self, config):
        self.seen = {}
        self.clock = ctypes.CFUNCTYPE(ctypes.c_uint64, ctypes.c_void_p)(
            lambda _: time.perf_counter_ns()
        )
        kind = ctypes.CFUNCTYPE(
            None, ctypes.c_void_p, ctypes.c_int, ctypes.c_char_p, ctypes.c_uint64
        )
        self.callback = kind(self.add)
        config.clock = ctypes.cast(self.clock, ctypes.c_void_p).value
        config.profile = ctypes.cast(self.callback, ctypes.c_void_p).value

    def add(self, _, step, name, nanoseconds):
        calls, seconds = self.seen.get((step, name), (0, 0.0))
        self.seen[step, name] = calls + 1, seconds + nanoseconds / 1e9

    def steps(self, clear):
        found = [StepTime(i, n.decode(), *got) for (i, n), got in self.seen.items()]
        if clear:
            self.seen.clear()
        return sorted(found, key=lambda s: -s.seconds)


class StepTime(typing.NamedTuple):
    """A step of a profile."""

    step: int
    name: str
    calls: int
    seconds: float


def _again(how, made, states):
    """What a pickle calls."""
    from .cache import load

    what, options = how
    if options is None:
        model = Model(what, **made)
    else:
        model = load(what, **{**made, **options})
    for name, value in states.items():
        model.states[name][...] = value
    return model


def train(
    model, out=None, *, loss=None, optimizer=None, threads=1, cflags="-O3", seed=0, **options
):
    """A model that learns: compile(model, out, train=True, ...), and a Model of the folder.

        m = ingot.train("model.onnx", loss="cross_entropy:logits", optimizer="adamw")
        for x, labels in batches:
            loss = m.step(x, labels, 1e-3)  # the inputs, the target, the rate
        m.save("model.safetensors")         # load() reads it; m(x) runs with the weights of by now

    out: the folder; without it, one that goes with the Model. A file that says how it is trained
    needs no loss and no optimizer. Other options are those of compile() (docs/training.md); the
    target is this machine unless told.
    """
    kept = None
    if out is None:
        kept = tempfile.TemporaryDirectory(prefix="ingot-train-")
        out = kept.name + "/model"
    options.setdefault("target", "c:native")
    for name, value in {"loss": loss, "optimizer": optimizer}.items():
        if value is not None:
            options[name] = value
    compile(model, out, train=True, **options)
    made = Model(out, threads=threads, cflags=cflags, seed=seed)
    made._folder = kept
    return made
