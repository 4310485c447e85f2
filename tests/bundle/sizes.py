#!/usr/bin/env python3
"""What --dim says, and what a run says of sizes that do not fit.

sizes.py --ingot build/ingot [CHECK...]

told        every free dim is told in one message, with flags that can be pasted
equal       --dim a=b: one dim, checked at run time; without it, what the model makes equal is,
            with a number too
bounded     --dim of a value and of a size inside: too large a one ends in a status with node and
            sizes
further     what is declared of an output bounds a size before it, through nodes that keep it; never
            a guess
derived     an output's shape tells the values of an input, from which sizes inside are computed
ended       a row of 4 n + 9 elements ends with one that fills no vector, whatever n is
absent      a part of a concat that has no element in a run is not read, whatever is computed of it;
            nor are indices of which there are none; a row without an element weighs nothing
cut         slices from n - n / 2 and from n - 3, which is below zero for some n; a crop to a number of
            rows; an index into nothing, of which there is none
resized     a picture brought to the size of another one, or by a scale, where there is no f64
images      a convolution whose results are flattened: how many images there are changes no opt
strips      attention over rows whose length a run says, a head at a time, and its sums in any of them
checked     `ingot check --dim` finds shapes that do not fit; a name that names nothing is refused
"""

import re
import shutil
import subprocess
import sys

from run import Wrong, call, main, np  # skips where there is no onnx
import onnx
from onnx import TensorProto, helper, numpy_helper

F, I = TensorProto.FLOAT, TensorProto.INT64


def write(path, nodes, inputs, outputs, **weights):
    def info(name, kind, shape):
        return helper.make_tensor_value_info(name, kind, shape)

    graph = helper.make_graph(
        nodes,
        "sizes",
        [info(*i) for i in inputs],
        [info(*o) for o in outputs],
        [numpy_helper.from_array(np.asarray(v), k) for k, v in weights.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)
    path.write_bytes(model.SerializeToString())
    return path


def product(work):
    """[n, k] x [l, 3], beside [p, 2]"""
    return write(
        work / "product.onnx",
        [
            helper.make_node("MatMul", ["a", "b"], ["m"], name="mm"),
            helper.make_node("Concat", ["m", "d"], ["z"], name="cat", axis=1),
        ],
        [("a", F, ["n", "k"]), ("b", F, ["l", 3]), ("d", F, ["p", 2])],
        [("z", F, None)],
    )


def lengths(work):
    return write(
        work / "lengths.onnx",
        [
            helper.make_node("Range", ["zero", "n", "one"], ["r"], name="count"),
            helper.make_node("Mul", ["r", "n"], ["y"]),
        ],
        [("n", I, [])],
        [("y", I, None)],
        zero=np.int64(0),
        one=np.int64(1),
    )


def refused(status, *command):
    """What a command that has to end with this status says."""
    done = subprocess.run(
        [str(c) for c in command], text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    if done.returncode != status:
        raise Wrong(
            f"{' '.join(map(str, command))}: status {done.returncode}, not {status}: {done.stderr}"
        )
    return done.stderr


def wanted(pattern, text):
    if not re.search(pattern, text):
        raise Wrong(f"'{pattern}' is not in: {text}")


def built(ingot, model, *flags):
    out = model.with_suffix(".out")
    shutil.rmtree(out, ignore_errors=True)
    call(ingot, "compile", model, "-o", out, *flags)
    call("make", "-s", "-C", out, "CFLAGS=-O0 -std=c99 -Wall -Wextra -Werror")
    return out / "model"


def run(program, arrays, good=True):
    data, out = program.parent / "in", program.parent / "got"
    data.mkdir(exist_ok=True)
    for i, a in enumerate(arrays):
        np.save(data / f"input_{i}.npy", a)
    if not good:
        return refused(4, program, data, out)
    call(program, data, out)
    return np.load(out / "output_0.npy")


def told(ingot, work):
    model = product(work)
    said = refused(4, ingot, "compile", model, "-o", work / "none")
    wanted("'n' of input 'a', 'k' of input 'a', 'l' of input 'b', 'p' of input 'd'", said)
    flags = re.findall(r"--dim \S+=\d+\.\.\d+", said)
    if len(flags) != 4:
        raise Wrong(f"no four flags in: {said}")
    call(ingot, "compile", model, "-o", work / "pasted", *" ".join(flags).split())


def equal(ingot, work):
    model, rng = product(work), np.random.default_rng(1)

    def data(n, k, l, p):
        return [rng.standard_normal(s).astype(np.float32) for s in ((n, k), (l, 3), (p, 2))]

    said = [
        (
            "node 'mm' .MatMul.: .* is 5; it has to be 4",
            "node 'cat' .Concat.: .* is 2; it has to be 3",
        ),
        (
            "input 'b': the size of axis 0 is 5; it has to be 4",
            "input 'd': the size of axis 0 is 2; it has to be 3",
        ),
    ]
    for flags, why in zip((("l=1..8", "p=1..8"), ("l=k", "p=n")), said):
        program = built(
            ingot, model, *[f for d in ("n=1..8", "k=1..8", *flags) for f in ("--dim", d)]
        )
        good = data(3, 4, 4, 3)
        if not np.allclose(
            run(program, good), np.concatenate([good[0] @ good[1], good[2]], 1), atol=1e-5
        ):
            raise Wrong("other values")
        wanted(why[0], run(program, data(3, 4, 5, 3), False))
        wanted(why[1], run(program, data(3, 4, 4, 2), False))
    token = helper.make_node  # of n rows and a class, with as many places, only the class is read
    nodes = [
        token("Concat", ["class", "x"], ["rows"], axis=1),
        token("Add", ["rows", "places"], ["placed"]),
        token("Relu", ["placed"], ["relu"]),
        token("Gather", ["relu", "zero"], ["y"], axis=1),
    ]
    numbers = dict(zero=np.array(0), places=rng.standard_normal((1, 17, 8)).astype(np.float32))
    numbers["class"] = np.ones((1, 1, 8), np.float32)
    path, at = work / "places.onnx", work / "places"
    write(path, nodes, [("x", F, [1, "n", 8])], [("y", F, None)], **numbers)
    at.mkdir()
    np.save(at / "input_0.npy", np.zeros((1, 16, 8), np.float32))
    np.save(at / "output_0.npy", np.maximum(numbers["places"][:, 0] + 1, 0))
    call(ingot, "verify", path, "--interpret", "--dim", "n=2..32", "--data", at, "-q")


def bounded(ingot, work):
    model = lengths(work)
    wanted(
        "node 'count' .Range.: .*--dim r_0=lo..hi",
        refused(4, ingot, "compile", model, "-o", work / "none"),
    )
    for flag, said in (
        ("n=0..16", "the value of 'n' is 17; it has to be in 0..16"),
        ("r_0=0..16", "node 'count' .Range.: the size of its result 'r' along axis 0 is 17"),
        ("r_0=9", "along axis 0 is 17; it has to be 9"),
    ):
        program = built(ingot, model, "--dim", flag)
        if run(program, [np.int64(9)]).tolist() != [9 * i for i in range(9)]:
            raise Wrong("other values")
        wanted(said, run(program, [np.int64(17)], False))


def further(ingot, work):
    """Range inside a function, and in a branch; its result goes through another function, and is
    then declared."""
    node, opset = helper.make_node, [helper.make_opsetid("", 18), helper.make_opsetid("own", 1)]

    def model(name, middle, *functions, **weights):
        path = write(
            work / name,
            [*middle, node("Transpose", ["u"], ["y"])],
            [("n", I, [])],
            [("y", I, [5, 1])],
            zero=np.int64(0),
            one=np.int64(1),
            axes=np.array([0]),
            **weights,
        )
        m = onnx.load(path)
        m.functions.extend(functions)
        m.opset_import.append(opset[1])
        path.write_bytes(m.SerializeToString())
        return path

    def function(name, nodes):
        return helper.make_function("own", name, ["a", "b", "c"], ["e"], nodes, opset)

    count = function(
        "count",
        [node("Range", ["b", "a", "c"], ["d"], name="inside"), node("Mul", ["d", "a"], ["e"])],
    )
    keep = function("keep", [node("Add", ["a", "c"], ["d"]), node("Sub", ["d", "c"], ["e"])])
    called = model(
        "called.onnx",
        [
            node("count", ["n", "zero", "one"], ["r"], domain="own"),
            node("keep", ["r", "zero", "one"], ["s"], domain="own"),
            node("Unsqueeze", ["s", "axes"], ["u"]),
        ],
        count,
        keep,
    )
    branch = [
        helper.make_graph(
            [node("Range", ["zero", "n", "one"], ["b"], name=w), node(op, ["b", "n"], [w + "b"])],
            w,
            [],
            [helper.make_tensor_value_info(w + "b", I, None)],
        )
        for w, op in (("then", "Mul"), ("else", "Add"))
    ]
    taken = model(
        "taken.onnx",
        [
            node("Greater", ["n", "zero"], ["p"]),
            node("If", ["p"], ["s"], then_branch=branch[0], else_branch=branch[1]),
            node("Unsqueeze", ["s", "axes"], ["u"]),
        ],
    )
    for path, name in ((called, "inside"), (taken, "then")):
        program = built(ingot, path)
        if run(program, [np.int64(5)]).tolist() != [[5 * i] for i in range(5)]:
            raise Wrong("other values")
        for n in (4, 6, 500):
            wanted(
                f"node '{name}' .Range.: the size of its result '.' along axis 0 is {n}; it has to be 5",
                run(program, [np.int64(n)], False),
            )
    # added to five elements it may have one or five
    either = model(
        "either.onnx",
        [
            node("Range", ["zero", "n", "one"], ["r"], name="count"),
            node("Add", ["r", "five"], ["s"]),
            node("Unsqueeze", ["s", "axes"], ["u"]),
        ],
        five=np.arange(5),
    )
    wanted(
        "node 'count' .Range.: .*--dim r_0=lo..hi",
        refused(4, ingot, "compile", either, "-o", work / "none"),
    )


def derived(ingot, work):
    """x is padded to max(6, n) and cropped to the middle n of it, which is declared; n by way of a
    branch, or not."""
    node = helper.make_node
    keep = [
        helper.make_graph(
            [node(op, ["n", "nothing"], [w])], w, [], [helper.make_tensor_value_info(w, I, [1])]
        )
        for w, op in (("kept", "Add"), ("less", "Sub"))
    ]
    for branch in (False, True):
        first = (
            [
                node("Greater", ["n", "nothing"], ["g"]),
                node("Squeeze", ["g"], ["p"]),
                node("If", ["p"], ["m"], then_branch=keep[0], else_branch=keep[1]),
            ]
            if branch
            else []
        )
        path = write(
            work / f"crop{branch}.onnx",
            first
            + [
                node("Max", ["m" if branch else "n", "six"], ["wide"]),
                node("Sub", ["wide", "six"], ["more"]),
                node("Div", ["more", "two"], ["before"]),
                node("Sub", ["more", "before"], ["after"]),
                node("Concat", ["before", "after"], ["pads"], axis=0),
                node("Pad", ["x", "pads"], ["padded"], name="pad"),
                node("Sub", ["wide", "n"], ["rest"]),
                node("Div", ["rest", "two"], ["start"]),
                node("Add", ["start", "n"], ["end"]),
                node("Slice", ["padded", "start", "end"], ["y"], name="crop"),
            ],
            [("x", F, [6]), ("n", I, [1])],
            [("y", F, [9])],
            six=np.array([6]),
            two=np.array([2]),
            nothing=np.array([0]),
        )
        if branch:
            said = subprocess.run(
                [str(ingot), "compile", str(path), "-o", str(work / "maybe")],
                text=True,
                stderr=subprocess.PIPE,
            )
            if said.returncode:
                wanted("--dim padded_0=lo..hi", said.stderr)
                continue
        program, x = built(ingot, path), np.arange(1, 7, dtype=np.float32)
        if run(program, [x, np.array([9])]).tolist() != [0, 1, 2, 3, 4, 5, 6, 0, 0]:
            raise Wrong("other values")
        for n in (0, 4, 8, 10, 1000):
            wanted(
                f"'padded' along axis 0 is {max(n, 6)}; it has to be 9",
                run(program, [x, np.array([n])], False),
            )


def ended(ingot, work):
    path = work / "ended.onnx"
    nodes = [
        helper.make_node("Concat", ["x", "x", "x", "x", "nine"], ["row"], axis=0),
        helper.make_node("Softmax", ["row"], ["y"], axis=0),
    ]
    nine = np.arange(9, dtype=np.float32)
    write(path, nodes, [("x", F, ["n"])], [("y", F, ["k"])], nine=nine)
    for target in "c", "c:x86-64-v4":
        call(ingot, "verify", path, "--interpret", "--dim", "n=0..3", "--target", target, "-q")
    print("in vectors of 4 and of 16")


def absent(ingot, work):
    path, data = work / "absent.onnx", work / "none"
    nodes = [
        helper.make_node("Softmax", ["x"], ["s"], axis=0),
        helper.make_node("Tile", ["s", "two"], ["t"]),
        helper.make_node("Concat", ["x", "s", "t", "nine"], ["all"], axis=0),
        helper.make_node("Gather", ["all", "last"], ["y"], axis=0),
    ]
    nine = np.arange(9, dtype=np.float32)
    write(
        path,
        nodes,
        [("x", F, ["n"])],
        [("y", F, [])],
        two=np.array([2]),
        nine=nine,
        last=np.array(-2),
    )
    data.mkdir()
    for n in 0, 1:
        np.save(data / "input_0.npy", np.ones(n, np.float32))
        np.save(data / "output_0.npy", nine[-2])
        call(ingot, "verify", path, "--interpret", "--dim", "n=0..1", "--data", data, "-q")
    print("of 0 and of 1 element")
    write(
        path,
        [
            helper.make_node("GatherElements", ["x", "i"], ["e"], "elements", axis=1),
            helper.make_node("Tile", ["e", "three"], ["tiled"]),
            helper.make_node("ReduceSum", ["tiled", "first"], ["sum"], keepdims=0),
            helper.make_node("Tile", ["i", "three"], ["at"]),
            helper.make_node("ScatterElements", ["five", "at", "tiled"], ["s"], "put", axis=0),
        ],
        [("x", F, ["n", 4]), ("i", TensorProto.INT64, ["n", 2])],
        [("tiled", F, None), ("sum", F, None), ("s", F, None)],
        three=np.array([3, 1]),
        first=np.array([0]),
        five=np.zeros((5, 2), np.float32),
    )
    for n in 0, 1:
        x, i = np.array([[1, 2, 3, 4]], np.float32)[:n], np.array([[2, -1]])[:n]
        made = np.tile(np.take_along_axis(x, i, 1), (3, 1))
        put = np.zeros((5, 2), np.float32)
        for row, at in zip(made, np.tile(i, (3, 1))):
            put[at, [0, 1]] = row
        for name, a in ("input_0", x), ("input_1", i), ("output_0", made), ("output_2", put):
            np.save(data / f"{name}.npy", a)
        np.save(data / "output_1.npy", made.sum(0))
        call(ingot, "verify", path, "--interpret", "--dim", "n=0..1", "--data", data, "-q")
    print("checks of indices, of 0 and of 1 row")
    write(
        path,
        [
            helper.make_node("Softmax", ["scores"], ["shares"], "share", axis=-1),
            helper.make_node("MatMul", ["shares", "values"], ["y"], "weigh"),
        ],
        [("scores", F, [1, 1, 3, "n"]), ("values", F, [1, 1, "n", 8])],
        [("y", F, None)],
    )
    for target in "c", "opencl", "cuda:sm_90a":  # its kernels are compared with the graph
        call(ingot, "compile", path, "-o", work / "rows", "--target", target, "--dim", "n=0..5")
    write(  # all of it in one kernel
        path,
        [
            helper.make_node("MatMul", ["q", "k"], ["products"], "product"),
            helper.make_node("Add", ["products", "mask"], ["scores"], "leave_out"),
            helper.make_node("Softmax", ["scores"], ["shares"], "share", axis=-1),
            helper.make_node("MatMul", ["shares", "values"], ["y"], "weigh"),
        ],
        [
            ("q", F, [1, 2, 17, 16]),
            ("k", F, [1, 2, 16, "n"]),
            ("mask", F, [1, 1, 1, "n"]),
            ("values", F, [1, 2, "n", 16]),
        ],
        [("y", F, None)],
    )
    data = work / "rows_of_none"
    data.mkdir()
    for i, dims in enumerate([(1, 2, 17, 16), (1, 2, 16, 0), (1, 1, 1, 0), (1, 2, 0, 16)]):
        np.save(data / f"input_{i}.npy", np.ones(dims, np.float32))
    np.save(data / "output_0.npy", np.zeros((1, 2, 17, 16), np.float32))
    for size in "32", "2048":
        call(ingot, "verify", path, "--interpret", "--target", "cuda:sm_90a", "--data", data, "-q",
             "--dim", "n=0.." + size)  # fmt: skip
    print("rows of shares")


def cut(ingot, work):
    node, path, data = helper.make_node, work / "cut.onnx", work / "cut"
    nodes = [
        node("Shape", ["x"], ["s"]),
        node("Slice", ["s", "zero", "one"], ["n"]),
        node("Div", ["n", "two"], ["half"]),
        node("Sub", ["n", "half"], ["rest"]),
        node("Sub", ["n", "three"], ["less"]),
        node("Slice", ["x", "rest", "far", "zero"], ["y0"]),
        node("Slice", ["x", "less", "far", "zero"], ["y1"]),
        node("Slice", ["x", "zero", "less", "zero"], ["y2"]),
        node("Slice", ["x", "less", "back", "zero", "minus"], ["y3"]),
        node("CenterCropPad", ["x", "four"], ["middle"], axes=[0]),
        node("Add", ["middle", "tall"], ["y4"]),
        node("Gather", ["nothing", "i"], ["y5"], axis=1),
    ]
    numbers = dict(zero=[0], one=[1], two=[2], three=[3], four=[4], far=[1 << 62], back=[-9])
    constants = {k: np.array(v) for k, v in {**numbers, "minus": [-1]}.items()}
    constants.update(tall=np.zeros((4, 1), np.float32), nothing=np.zeros((2, 0), np.float32))
    outputs = [(f"y{i}", F, None) for i in range(6)]
    write(path, nodes, [("x", F, ["n", 2]), ("i", I, ["k"])], outputs, **constants)
    data.mkdir()
    for n in range(1, 8):
        x = np.arange(1, 2 * n + 1, dtype=np.float32).reshape(n, 2)
        less, wide = n - 3, np.zeros((4, 2), np.float32)
        last = max(0, less if less >= 0 else less + n)  # a start is inside, as the standard has it
        at = max(0, (n - 4) // 2)
        kept = x[at : at + 4]
        wide[(4 - len(kept)) // 2 :][: len(kept)] = kept
        want = [
            x[n - n // 2 :],
            x[less:],
            x[:less],
            x[last::-1],
            wide,
            np.zeros((2, 0), np.float32),
        ]
        for k, v in ("input_0", x), ("input_1", np.zeros(0, np.int64)):
            np.save(data / f"{k}.npy", v)
        for i, y in enumerate(want):
            np.save(data / f"output_{i}.npy", np.asarray(y, order="C"))
        flags = "--dim", "n=1..7", "--dim", "k=0..3", "--data", data, "-q"
        call(ingot, "verify", path, "--interpret", *flags)
    print("of 1 to 7 rows")
    write(
        path,
        [node("Pad", ["x", "p"], ["y"])],
        [("x", F, [3, "n"]), ("p", I, [4])],
        [("y", F, None)],
    )
    for i in range(6):
        (data / f"output_{i}.npy").unlink()
    x = np.arange(1, 16, dtype=np.float32).reshape(3, 5)
    np.save(data / "input_0.npy", x)
    np.save(
        data / "input_1.npy", np.array([2, -2, -1, 3])
    )  # where rows begin, columns; where they end
    np.save(data / "output_0.npy", np.pad(x[:-1, 2:], ((2, 0), (0, 3))))
    flags = "--dim", "n=1..7", "--dim", "p=-3..3", "--data", data, "-q"
    call(ingot, "verify", path, "--interpret", *flags)
    wanted("not a size", refused(2, ingot, "check", path, "--dim", "n=-1..7"))
    print("of pads that cut")


def taken(x, axis, place):
    """Between the two neighbours of each place."""
    low = np.floor(place)
    share = (place - low).reshape([-1] + [1] * (x.ndim - 1 - axis))

    def row(at):
        return np.take(x, np.clip(at, 0, x.shape[axis] - 1).astype(int), axis)

    return row(low) * (1 - share) + row(low + 1) * share


def resized(ingot, work):
    node, path, data = helper.make_node, work / "resized.onnx", work / "pictures"
    nodes = [
        node("Shape", ["other"], ["s"]),
        node("Slice", ["s", "two", "four"], ["size"]),
        *(
            node(
                "Resize",
                ["x", "", *by],
                [y],
                mode=mode,
                axes=[2, 3],
                coordinate_transformation_mode=where,
                nearest_mode="floor",
            )
            for y, mode, where, by in (
                ("y0", "linear", "half_pixel", ["", "size"]),
                ("y1", "linear", "align_corners", ["", "size"]),
                ("y2", "nearest", "asymmetric", ["", "size"]),
                ("y3", "linear", "half_pixel", ["scales"]),
            )
        ),
    ]
    pictures = [("x", F, [1, 2, "n", "m"]), ("other", F, [1, 1, "p", "q"])]
    outputs = [(f"y{i}", F, None) for i in range(4)]
    scales = np.array([1.5, 0.5], np.float32)
    write(path, nodes, pictures, outputs, two=np.array([2]), four=np.array([4]), scales=scales)
    data.mkdir()
    flags = [w for k in "nmpq" for w in ("--dim", f"{k}=2..64")]
    for sizes in ((3, 7, 10, 4), (2, 2, 64, 3), (49, 21, 7, 63)):
        x = np.random.default_rng(1).standard_normal((1, 2, *sizes[:2]), np.float32)
        want = [x.astype(float)] * 4
        for axis in (2, 3):
            n, out = sizes[axis - 2], np.arange(sizes[axis])
            half = np.arange(int(n * scales[axis - 2])) + 0.5
            places = [(out + 0.5) * n / len(out) - 0.5, out * (n - 1) / max(1, len(out) - 1)]
            places += [out * n // len(out), half / scales[axis - 2] - 0.5]
            want = [taken(y, axis, place) for y, place in zip(want, places)]
        for name, a in ("input_0", x), ("input_1", np.zeros((1, 1, *sizes[2:]))):
            np.save(data / f"{name}.npy", a.astype(np.float32))
        for i, y in enumerate(want):
            np.save(data / f"output_{i}.npy", y.astype(np.float32))
        for target in "wgsl", "c":
            command = ("verify", path, "--interpret", "--target", target, "--data", data, "-q")
            call(ingot, *command, *flags)
    print("three sizes")


def images(ingot, work):
    rng = np.random.default_rng(2)
    nodes = [
        helper.make_node("Conv", ["x", "k"], ["c"], pads=[1, 1, 1, 1]),
        helper.make_node("Relu", ["c"], ["r"]),
        helper.make_node("Flatten", ["r"], ["f"]),
        helper.make_node("Gemm", ["f", "w"], ["y"]),
    ]
    weights = {
        "k": rng.standard_normal((64, 32, 3, 3), np.float32) / 17,
        "w": rng.standard_normal((64 * 49, 16), np.float32) / 56,
    }
    io = [("x", F, ["n", 32, 7, 7])], [("y", F, ["n", 16])]
    path = write(work / "images.onnx", nodes, *io, **weights)
    for n in "1..4", "4":
        sched, flags = work / f"{n}.sched", ["--dim", f"n={n}", "--target", "c:x86-64-v3", "-q"]
        call(ingot, "compile", path, "-o", work / "images", *flags, "--save-sched", sched)
        opts = re.findall(r"VECTOR .*", sched.read_text())
        assert opts.count("VECTOR i1 8") == 2, f"{n} images: lanes are no channels: {opts}"
        call(ingot, "verify", path, "--interpret", *flags)
    print("lanes are channels")


def strips(ingot, work):
    path, data, rng = work / "strips.onnx", work / "rows", np.random.default_rng(1)
    nodes = [
        helper.make_node("Transpose", ["k"], ["kt"], perm=[0, 1, 3, 2]),
        helper.make_node("MatMul", ["q", "kt"], ["s"]),
        helper.make_node("Softmax", ["s"], ["p"], axis=-1),
        helper.make_node("MatMul", ["p", "v"], ["y"]),
    ]
    rows = [("q", F, [1, 4, "n", 64]), ("k", F, [1, 4, "t", 64]), ("v", F, [1, 4, "t", 64])]
    write(path, nodes, rows, [("y", F, [1, 4, "n", 64])])
    data.mkdir()
    arrays = [rng.standard_normal((1, 4, n, 64), np.float32) for n in (7, 37, 37)]
    for i, x in enumerate(arrays):
        np.save(data / f"input_{i}.npy", x)
    q, k, v = arrays
    e = np.exp(q.astype(float) @ k.transpose(0, 1, 3, 2))
    np.save(data / "output_0.npy", (e / e.sum(-1, keepdims=True) @ v).astype(np.float32))
    sched = work / "strips.sched"
    for target in "c", "c:x86-64-v4":
        flags = ["--dim", "n=1..256", "--dim", "t=1..8192", "--target", target, "-q"]
        call(ingot, "compile", path, "-o", work / "strips", *flags, "--save-sched", sched)
        wanted("as batch_strips", sched.read_text())
        call(ingot, "verify", path, "--interpret", "--data", data, *flags)
    print("four heads, one after the other")


def checked(ingot, work):
    model = product(work)
    flags = "--dim n=1..8 --dim k=1..8 --dim l=1..8 --dim p=1..8".split()
    call(ingot, "check", model)
    call(ingot, "check", model, *flags)
    wanted(
        "the size of 'z' along axis 1 is 5; it has to be 4",
        refused(3, ingot, "check", model, *flags, "--dim", "z_1=4"),
    )
    wanted(
        "they must be equal",
        refused(
            3, ingot, "check", model, "--dim", "n=2", "--dim", "k=3", "--dim", "l=4", "--dim", "p=n"
        ),
    )
    wanted("--dim foo=3: no ", refused(2, ingot, "check", model, *flags, "--dim", "foo=3"))
    wanted(
        "--dim n=foo: no input has a free dim .foo.",
        refused(2, ingot, "check", model, *flags[2:], "--dim", "n=foo"),
    )
    wanted("given twice", refused(2, ingot, "check", model, *flags, "--dim", "n=3"))


CHECKS = {
    f.__name__: f
    for f in (
        told,
        equal,
        bounded,
        further,
        derived,
        ended,
        absent,
        cut,
        resized,
        images,
        strips,
        checked,
    )
}

if __name__ == "__main__":
    sys.exit(main(__doc__, CHECKS))
