"""Bundles beside torch on one stream of one process, in turns: what heats the GPU or takes its
power is the same for both.

A bundle is loaded as a shared library (make libmodel.so) and runs on the caller's stream, with the
caller's memory, without waiting. Blocks of some milliseconds of one and of the other follow each
other without a pause; who is first changes from round to round, and each round has a ratio of its
own:

    round 0   | ours ours ours .. | | theirs theirs ..  |
    round 1   | theirs theirs ..  | | ours ours ours .. |        | an event

A product of matrices takes all the power that a GPU may have: without a pause its clock falls to
what that feeds (H200: 1.4 GHz of 1.98), in bursts it does not.
"""

import ctypes
import pathlib
import time

import abi

ON_DEVICE = 2


def median(x):
    return sorted(x)[len(x) // 2]


class Bundle:
    """A context of a bundle: run() computes from memory on the device what it is bound to, in a
    stream."""

    def __init__(self, library, stream=None):
        self.library = ctypes.CDLL(str(pathlib.Path(library).resolve()))
        bundle = abi.Bundle.in_dll(self.library, "igrt_bundle")
        if not bundle.fits():
            raise RuntimeError(f"{library}: of another version of ingot")
        self.table, self.text = bundle.model.contents, bundle.status_text
        table, self.ready = self.table, False
        self.memory = [
            ctypes.create_string_buffer(n + align)
            for n, align in ((table.ctx_bytes, 64), (table.arena_bytes(1), table.arena_align))
        ]
        self.context, arena = (
            ctypes.c_void_p(-(-ctypes.addressof(m) // a) * a)
            for m, a in zip(self.memory, (64, table.arena_align))
        )
        self.config = abi.Config(
            ctypes.sizeof(abi.Config),
            arena.value,
            table.arena_bytes(1),
            threads=1,
            stream=stream,
            flags=ON_DEVICE,
        )
        self.given = [
            ctypes.create_string_buffer(max(1, n))
            for n in (table.inputs_bytes, table.outputs_bytes)
        ]
        self.check(table.init(self.context, ctypes.byref(self.config)))
        self.ready = True

    def check(self, status):
        if status:
            raise RuntimeError(f"{self.table.name.decode()}: {self.text(status).decode()}")

    def bind(self, inputs, outputs):
        """Addresses on the device, in the order of the model."""
        for memory, ios, addresses in zip(
            self.given, (self.table.inputs, self.table.outputs), (inputs, outputs)
        ):
            for i, address in enumerate(addresses):
                ctypes.c_void_p.from_buffer(memory, ios[i].data_offset).value = address
        return self

    def run(self):
        self.check(self.table.run(self.context, *self.given))

    def close(self):
        if self.ready:
            self.table.deinit(self.context)
        self.ready = False


def graph_of(torch, f, repeat):
    """A call of it launches f so many times at once."""
    for _ in range(3):
        f()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(repeat):
            f()
    return graph.replay


def repeats(torch, f, block_ms):
    """How many calls fill a block, when f is warm."""
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    f()
    begin.record()
    for _ in range(5):
        f()
    end.record()
    torch.cuda.synchronize()
    return max(1, round(block_ms / max(1e-3, begin.elapsed_time(end) / 5)))


def turns(torch, calls, stream, rounds=16, warm=4, block_ms=8, pause_s=0):
    """calls: by a name, what enqueues work in the stream, and whether a block of it is one graph.
    With a pause each block finds the GPU idle, and cool. ms of a call by rounds, of each name."""
    blocks, marks = {}, []
    with torch.cuda.stream(stream):
        for name, (f, graphed) in calls.items():
            n = repeats(torch, f, block_ms)
            blocks[name] = (graph_of(torch, f, n), 1, n) if graphed else (f, n, n)
        for i in range(rounds + warm):
            order = list(blocks)[:: 1 if i % 2 else -1]
            for name in order:
                f, times, _ = blocks[name]
                begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
                begin.record()
                for _ in range(times):
                    f()
                end.record()
                marks.append((i, name, begin, end))
                if pause_s:
                    torch.cuda.synchronize()
                    time.sleep(pause_s)
        torch.cuda.synchronize()
    ms = {name: [] for name in blocks}
    for i, name, begin, end in marks:
        if i >= warm:
            ms[name].append(begin.elapsed_time(end) / blocks[name][2])
    return ms


def beside(torch, run, peer, stream):
    """Ours and torch's: median and least ms, and the median of the rounds' ratios, torch's time by
    ours; hot, without a pause, and cool, in bursts."""
    told = {}
    for state, how in (
        ("", {}),
        ("cool_", {"rounds": 10, "warm": 2, "block_ms": 5, "pause_s": 0.05}),
    ):
        ms = turns(torch, {"ours": (run, False), "torch": (peer, True)}, stream, **how)
        told |= {
            f"{state}{name}_{what}ms": of(times)
            for name, times in ms.items()
            for what, of in (("", median), ("least_", min))
        }
        told[f"{state}torch_by_ours"] = median([t / o for o, t in zip(ms["ours"], ms["torch"])])
    return told
