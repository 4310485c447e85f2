#!/usr/bin/env python3
"""Numbers above 8 in the passes that choose, schedule and rewrite: figures of machines belong in
Machine (compiler/kernel/machine.h), not here.

    constants.py            fails if there are more than MOST, or one of no reason, or a reason of
                            no number
    constants.py --list     prints them
    constants.py --apart    prints what is not counted: bounds, and numbers of the folders below,
                            where a kernel's text and the estimates are made; these need a reason
                            too

A named constant counts once, a number in an expression once in each file. Apart are bounds of
arrays (in brackets of a declaration, the room that is allocated, a name that is such a bound) and
rows of tables.
"""

import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
FOLDERS = ("choose", "schedule", "rewrite")
BELOW = ("cost", "kernel", "kernel/opt", "kernel/lower")
MOST = 36

# file, name or number: why it is no figure of a machine
REASONS = {
    (
        "choose/cpu.h",
        "MAX_ROWS",
    ): "copies of a row: beyond, the code of a tile is too long for what it saves",
    (
        "choose/cpu.h",
        "MAX_THREADS",
    ): "loops are cut so that 2 to 16 threads have equal shares; what is cut may not depend on the machine",
    ("choose/cpu.h", "WRITTEN_OUT"): "C compilers: gcc writes out a loop of up to 200 instructions",
    (
        "choose/cpu_amx.c",
        "9.2",
    ): "cycles of a product of few rows: of the one matrix unit of CPUs that there is (amx)",
    ("choose/cpu_contraction.c", "LANES_FIRST"): "an order of loops: beyond any stride",
    ("choose/cpu_contraction.c", "PANELS_KEY"): "an order of loops: beyond those",
    ("choose/cpu_contraction.c", "BATCH_KEY"): "an order of loops: beyond these",
    ("choose/cpu_elementwise.c", "1e18"): "an order of loops: a stride that is not known",
    (
        "choose/cpu_tile.c",
        "MANY_TERMS",
    ): "of a sum, so that what begins and ends a tile is next to nothing beside it",
    (
        "choose/gpu_contraction.c",
        "ITEMS",
    ): "the square of items that a block of results is divided among",
    (
        "choose/gpu_contraction.c",
        "LEAST_WORK",
    ): "operations: fewer are not worth the shape of a tile",
    (
        "choose/gpu_contraction.c",
        "LEAST_PARTS",
    ): "operations: fewer are not worth that items wait for each other",
    (
        "choose/gpu_contraction.c",
        "MOST",
    ): "terms of a window that are straight-line code: C compilers",
    (
        "choose/gpu_mma.c",
        "MOST_SIDE",
    ): "fragments that the search tries: more have no registers on any GPU",
    ("choose/gpu_mma.c", "LEAST_WORK"): "operations: fewer are not worth staging",
    (
        "choose/gpu_wgmma.c",
        "NARROW",
    ): "columns of the narrowest unit but one (units.def): it is never too wide",
    (
        "choose/gpu_wgmma.c",
        "EVEN",
    ): "turns: what a rest costs is one of so many, as much as a place is worth",
    (
        "choose/pitch.c",
        "SHARE",
    ): "a part of a product's time, measured beside what it is compared with: decides when gains are of one size",
    ("rewrite/dot_signs.c", "MANY"): "uses that pay for a pass over the input",
    ("rewrite/group_sum.c", "LEAST"): "elements of a channel: fewer gain nothing",
    (
        "rewrite/rewrite.c",
        "16",
    ): "lanes from which on a word is unpacked sooner than its bytes: vectors of 512 bits have the instructions",
    ("rewrite/transposed_conv.c", "MAX_PARTS"): "3x3x3 phases: more are that many kernels",
    (
        "rewrite/transposed_conv.c",
        "MOST_PHASES",
    ): "a bound of the compiler's own work and memory, not of speed",
    ("schedule/attention.c", "LEAST"): "rows of a fragment (units.def): all mma units have 16",
    ("schedule/fuse.c", "MANY"): "a count is cut off there: it may double with each node",
    ("schedule/fusion.c", "LEAST"): "operations: fewer are not worth a kernel of their own",
    ("schedule/merge.c", "REACH"): "kernels that are looked at: bounds the time of compiling",
    (
        "schedule/merge.c",
        "ALL_AXES",
    ): "axes of a kernel for which all orders are tried: bounds the time of compiling",
    ("schedule/merge.c", "MANY"): "pairs from which on a hash pays: the time of compiling",
    ("schedule/provenance.c", "NAME_WORD"): "characters of a name's words, for readers",
    ("schedule/provenance.c", "NAME_BYTES"): "characters of a name, for readers",
    (
        "schedule/readers.c",
        "MAX_STEPS",
    ): "movements that are looked through: bounds the time of compiling",
    (
        "schedule/readers.c",
        "MOST",
    ): "terms of a row that one group walks: more are divided (FUSE would forbid it)",
    (
        "schedule/schedule.h",
        "MAX_BUFFERS",
    ): "arguments of a kernel, which C compilers and drivers take",
    ("schedule/variants.c", "MORE"): "room of arrays that grow",
    (
        "rewrite/two_bytes.c",
        "TRIES",
    ): "steps of a search for numbers that fit all pairs of bytes; it mostly needs one",
}


# Below: file -> {name or number: why it stays}
BELOW_REASONS = {
    "cost/cost.h": {"LITTLE": "a ratio of time to memory: what may be given up to save some"},
    "cost/cost_access.h": {
        "JUMPS": "no figure: stands for strides that are known at run time only"
    },
    "cost/cost_nest.c": {
        "56": "cycles of bytes: where `tune` begins; it fits these weights to what it has timed (least_sum.c)",
        "28": "as 56",
        "PIECE": "C compilers: code that is not there yet, fitted with the weights above",
        "PEELED": "C compilers: gcc peels loops of so many operations,",
        "PEELED_TRIPS": "and iterations",
        "64": "bytes of the widest vector registers: a load is as many of them",
        "4096": "room for nodes that lowering makes",
    },
    "kernel/access.c": {
        "200": "nodes that are looked at before all are marked: the time of compiling"
    },
    "kernel/kernels.h": {"HELD_WORDS": "registers of an item: what else it has fits beside these"},
    "kernel/exact.c": {"1000": "whole numbers up to it have exact sums in any order"},
    "kernel/kernel.c": {"63": "bits of a word, by a hash"},
    "kernel/kernel_text.c": {"MAX_TEXT": "characters", "32": "bits: serials above seeds"},
    "kernel/lanes.c": {"64": "bits: a column of ops.def", "32": "bits: a column of ops.def"},
    "kernel/lower/bulk_weights.c": {"WHOLE": "cp.async.bulk: bytes, of which it copies multiples"},
    "kernel/lower/decompose.c": {
        "16": "bits of a type",
        "MOST": "numbers that f32 has exactly",
        "0xffff": "bits of an index in a table",
        "0xff000000u": "bits of a number",
    },
    "kernel/lower/linearize.c": {
        "256": "statements that share a loop: bounds the time of compiling"
    },
    "kernel/lower/linearize.h": {"64": "bits of a word"},
    "kernel/lower/lower_node.c": {"128": "makes a byte with a sign of one without"},
    "kernel/lower/lower_shares.c": {"MOST_JOINED": "parts that are written out: code of an item"},
    "kernel/lower/mask_bounds.c": {
        "MOST_NODES": "bounds the time of compiling",
        "MUCH": "a sum of more terms may be 0 by rounding",
    },
    "kernel/lower/pad_bounds.c": {"INSIDE": "iterations that pay for a second loop: code for time"},
    "kernel/lower/places.c": {"STACK": "operating systems: bytes that any thread has"},
    "kernel/lower/places_window.c": {
        "1 << 15": "cuTensorMapEncodeIm2col: corners of images of one axis, ...",
        "1 << 7": "... of two, ...",
        "1 << 4": "... and of three",
        "1 << 16": "cp.async.bulk.tensor: taps of images of one axis, ...",
        "1 << 8": "... of two, ...",
        "1 << 5": "... and of three",
    },
    "kernel/lower/places_shared.c": {
        "BYTES": "cp.async: bytes of one copy, at most (as Machine.access, of all that have it)",
        "32": "bytes: four lines of eight banks",
        "16": "bytes: as BYTES",
        "WHOLE": "bytes: as BYTES",
    },
    "kernel/lower/prefetch.c": {"AHEAD": "bytes: as LOWERED_LINE, for statements know no target"},
    "kernel/lower/split_copies.c": {"BITS": "bits of a word"},
    "kernel/lower/sum_blocks.c": {
        "BLOCK_OF_PRODUCTS": "numerics: what a step computes is the same for every machine of a kind",
        "BLOCK_OF_TERMS": "as BLOCK_OF_PRODUCTS",
        "MOST_RANGES": "bits of a word: ranges that other passes add have room",
    },
    "kernel/nest.h": {
        "TILE_LOOSE": "items: of a group where each has one element, as drivers take it without a number",
        "BOX_LINE": "cp.async.bulk.tensor: bytes that addresses are multiples of,",
        "BOX_MOST": "and elements of a box along an axis, or positions of a window",
        "MAX_COPIES": "a bound of what a .sched may ask for: code",
        "LOWERED_LINE": "statements are the same for every target; as its comment says",
    },
    "kernel/nest_check.c": {"OTHERS": "nvcc: registers of an item for all but sums"},
    "kernel/opt/opt.h": {"MAX_RANGES": "bits of a word"},
    "kernel/lower/trigger.c": {
        "MOST_BYTES": "what a group asks for before its wait: more is in the way of its own copies"
    },
    "kernel/opt/opt_trigger.c": {"MOST": "a bound of what a .sched may ask for"},
    "kernel/opt/opt_order.c": {"MAX_PARTS": "a bound of what a .sched may ask for"},
    "kernel/opt/opt_vector.c": {"16": "lanes of the widest vector types that igrt_vec.h has"},
    "kernel/opt_text.c": {
        "80": "characters that are told of a name",
        "10": "the base of decimal digits",
        "MOST": "a bound of what a .sched may ask for",
        "MOST_DEPTH": "as MOST",
    },
    "kernel/tc.c": {
        "0xffffe000u": "bits: what tf32 keeps of f32",
        "128": "a byte's bound",
        "127": "a byte's bound",
        "255": "a byte's bound",
        "32": "items of a warp: how mma lays fragments out",
        "16": "lines of a fragment: how wgmma lays them out",
    },
    "kernel/tc.h": {
        "TC_MOST_SUMS": "nvcc: sums of an item that stay in registers,",
        "TC_MOST_ROW": "and all of a row of attention",
        "TC_LONG_ROW": "two parts of a row that a warp's registers hold, by fragments of 8 keys",
        "TC_PIECE": "cp.async: bytes of one copy",
        "TC_TOKENS": "bytes: a group's memory for a copy's barriers is aligned to as much",
        "TC_RUN": "wgmma: bytes of a swizzled run",
        "32": "items of a warp: what has more lanes is a warpgroup's",
        "40": "nvcc: straight-line steps; registers beside the sums",
        "72": "nvcc: registers beside the sums",
        "56": "nvcc: registers beside the sums",
        "TC_LOADERS": "setmaxnreg: the least an item may keep",
        "ALL": "registers of an item of one warpgroup: an instruction's operand (setmaxnreg), of sm_90a alone",
    },
}


def plain(text):
    """Without comments, strings and lines of the preprocessor but for constants; lines stay where
    they are."""
    blank = lambda m: re.sub(r"[^\n]", " ", m.group())
    text = re.sub(r"/\*.*?\*/|//[^\n]*", blank, text, flags=re.S)
    text = re.sub(r'"(\\.|[^"\\\n])*"' + r"|'(\\.|[^'\\\n])+'", blank, text)
    text = re.sub(r"U?INT64_C\((\w+)\)", r"\1", text)
    return re.sub(r"^#(?!define \w+ )[^\n]*", blank, text, flags=re.M)


NUMBER = re.compile(
    r"(?<![\w.])(0[xX][0-9a-fA-F]+(?:p[-+]?\d+)?|(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)[uUlLfF]*(?!\w)(?:\s*<<\s*(\d+))?"
)


def value(m):
    word = m[1]
    x = (
        float.fromhex(word)
        if word[:2] in ("0x", "0X") and "p" in word
        else int(word, 16)
        if word[:2] in ("0x", "0X")
        else float(word)
    )
    return x * 2 ** int(m[2]) if m[2] else x


def bounds(text):
    """Names between the brackets of a declaration, or that say how much is allocated."""
    found = set()
    for m in re.finditer(
        r"(?:\w\s+\**|,\s*\**)\w+\[([^\]\n]*)\](?:\[([^\]\n]*)\])?\s*(?:[,;=)]|$)", text, flags=re.M
    ):
        found |= set(re.findall(r"\b[A-Z]\w+", f"{m[1]} {m[2]}"))
    for m in re.finditer(r"NEWN\(([^;]*)\)", text):
        found |= set(re.findall(r"\b[A-Z][A-Z_]+\b", m[1].split(",")[-1]))
    return found


def numbers(folders):
    """Two tables, (file, name or number) to its line: what counts; names of bounds, which do not."""
    files = sorted(p for f in folders for p in (ROOT / "compiler" / f).glob("*.[ch]"))
    texts = {p: plain(p.read_text()) for p in files}
    everywhere, found, room_of = set().union(*map(bounds, texts.values())), {}, {}
    for p, text in texts.items():
        room = everywhere if p.suffix == ".h" else bounds(text)
        for at, line in enumerate(text.split("\n"), 1):
            if re.fullmatch(r"[\s{}\d.,/+*-]+", line):  # a row of a table
                continue
            for m in NUMBER.finditer(line):
                if value(m) <= 8 or re.search(r"\[[^\]]*$", line[: m.start()]):
                    continue
                name = re.search(r"\b([A-Z]\w*)\s*=?\s*[-(]*$", line[: m.start()])
                (room_of if name and name[1] in room else found).setdefault(
                    (str(p.relative_to(ROOT / "compiler")), name[1] if name else m[0]),
                    f"{at}: {p.read_text().splitlines()[at - 1].strip()}",
                )
    return found, room_of


def main():
    found, room = numbers(FOLDERS)
    below, room_below = numbers(BELOW)
    if "--apart" in sys.argv:
        for table in (room, below, room_below):
            print(*(f"{file} {what}: {line}" for (file, what), line in table.items()), sep="\n")
    if "--list" in sys.argv:
        for (file, what), line in found.items():
            print(f"{file} {what}: {REASONS.get((file, what), '?')}\n    {line}")
    bad = [
        f"{file}: {what} has no reason in tests/constants.py (line {line})"
        for (file, what), line in found.items()
        if (file, what) not in REASONS
    ]
    reasons = {(file, what): why for file, r in BELOW_REASONS.items() for what, why in r.items()}
    bad += [
        f"{file}: {what} is no figure of a machine? Then tests/constants.py says why (line {line})"
        for (file, what), line in below.items()
        if (file, what) not in reasons
    ]
    bad += [
        f"{file}: there is no {what}: its reason can go"
        for table, there in ((REASONS, found), (reasons, below))
        for file, what in table
        if (file, what) not in there
    ]
    print(*bad, f"{len(found)} numbers above 8, at most {MOST}", sep="\n")
    print(
        f"apart: {len(room) + len(room_below)} bounds, {len(below)} numbers of {', '.join(BELOW)}"
    )
    return 1 if bad or len(found) > MOST else 0


sys.exit(main())
