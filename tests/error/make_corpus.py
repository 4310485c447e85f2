#!/usr/bin/env python3
"""Writes the corpus of bad (and oddly good) models: OUT_DIR/NAME/model.onnx and a manifest.

    make_corpus.py OUT_DIR

Each case states which exit status ingot must end with and which words its message must hold.
Statuses: 0 compiles, 2 usage, 3 the model is invalid, 4 valid but not supported, 6 file error.
Where the damage is random (bit flips) any honest answer is right, but never a crash.
Every byte comes from a fixed seed.
"""

import argparse
import json
import pathlib
import random
import shutil

import numpy as np
from onnx import TensorProto as T
from onnx import helper as h

from corpus import CASES, OPSET, case, field, mlp, model, nested, node, relu, value, varint, weight
from corpus_models import (
    attributes,
    declared,
    undeclared,
    functions,
    operators,
    shapes,
    shapes_of_constants,
    sparse_constants,
    structure,
    tensors,
    types,
)

# -- the file itself --------------------------------------------------------------------------


def bytes_and_wire():
    good = mlp().SerializeToString(deterministic=True)
    case("empty_file", b"", 3)
    case("missing_file", None, 6)
    case("text_file", b"this is not a model\n" * 40, 3)
    case("zip_file", b"PK\x03\x04" + bytes(200), 3)
    case("zeros", bytes(4096), 3)
    case("random_bytes", np.random.Generator(np.random.PCG64(1)).bytes(5000), 3, damage=True)
    rng = random.Random(11)
    cuts = sorted({1, 2, 7, len(good) - 1} | {rng.randrange(8, len(good)) for _ in range(16)})
    for cut in cuts:
        case(f"truncated_{cut}", good[:cut], 3, damage=True)
    for i in range(80):
        data = bytearray(good)
        for _ in range(rng.choice((1, 1, 1, 3, 10))):
            bit = rng.randrange(len(data) * 8)
            data[bit // 8] ^= 1 << bit % 8
        case(f"flipped_{i:02}", bytes(data), (0, 3, 4), damage=True)
    for i in range(20):
        data = bytearray(good)
        at = rng.randrange(len(data))
        n = rng.randrange(1, 12)
        data[at : at + n] = rng.choice(
            (b"", b"\xff" * n, rng.randbytes(n), bytes(data[at : at + n]) * 2)
        )
        case(f"spliced_{i:02}", bytes(data), (0, 3, 4), damage=True)

    opset = field(8, b"\x10" + varint(OPSET))
    head = b"\x08\x08" + opset
    case("wire_group_10000", head + b"\x3b" * 10000, 3)
    case("wire_type_7", head + b"\x3f\x00", 3)
    case("wire_field_0", head + b"\x02\x00", 3)
    case("wire_overlong_varint", b"\x08" + b"\xff" * 11 + b"\x01" + opset, 3)
    case("wire_length_beyond_file", head + varint(7 << 3 | 2) + varint(1 << 40) + b"abc", 3)
    case("wire_length_max", head + varint(7 << 3 | 2) + varint((1 << 64) - 1) + b"abc", 3)
    # GraphProto.node(1) . NodeProto.attribute(5) . AttributeProto.g(6)
    case("nested_subgraphs_10000", head + field(7, nested(10000, (1, 5, 6), field(2, b"g"))), 3)
    # TypeProto.sequence_type(4) . elem_type(1), under ModelProto.graph.input.type
    case(
        "nested_types_10000",
        head + field(7, field(11, field(1, b"x") + field(2, nested(10000, (4, 1), b"")))),
        3,
    )
    # SequenceProto-like nesting in an unknown field must be skipped, not followed
    case(
        "nested_unknown_10000",
        relu().SerializeToString() + field(4000, nested(10000, (1,), b"")),
        (0, 3),
    )


def classical():
    def use(name, says, op, **attrs):
        case(
            f"ml_{name}",
            model(
                [node(op, ("x",), ("y", "z"), name="m0", domain="ai.onnx.ml", **attrs)],
                outputs=[value("z", (2, 2))],
                opsets=[("", 17), ("ai.onnx.ml", 1)],
            ),
            3,
            ["m0", op, says],
        )

    def maps(name, status, says, kind=T.INT64, **attrs):
        out = h.make_sequence_type_proto(
            h.make_map_type_proto(kind, h.make_tensor_type_proto(T.FLOAT, []))
        )
        case(
            f"ml_zipmap_{name}",
            model(
                [node("ZipMap", name="m0", domain="ai.onnx.ml", **attrs)],
                outputs=[h.make_value_info("y", out)],
                opsets=[("", 17), ("ai.onnx.ml", 1)],
            ),
            status,
            says,
            build=status == 0,
        )

    maps("numbers", 0, (), classlabels_int64s=[-(2**63), -5, 2**63 - 1])
    maps("names", 0, (), T.STRING, classlabels_strings=["*/", 'a"b\\n', "\xe9??/"])
    maps("count", 3, ["m0", "2 classes for 3 columns"], classlabels_int64s=[1, 2])
    maps("none", 3, ["m0", "no classes"])
    maps(
        "both",
        3,
        ["m0", "integers and as strings"],
        classlabels_int64s=[1, 2, 3],
        classlabels_strings=list("abc"),
    )
    good = dict(
        coefficients=[1.0, 2.0, 3.0],
        support_vectors=[0.5] * 9,
        vectors_per_class=[1, 2],
        rho=[0.1],
        kernel_type="RBF",
        kernel_params=[0.5, 0.0, 3.0],
        classlabels_ints=[0, 1],
    )
    for what, says, change in (
        ("no_labels", "no labels", {"classlabels_ints": None}),
        ("rho", "rho", {"rho": None}),
        ("one_class", "two are the least", {"classlabels_ints": [7], "vectors_per_class": [3]}),
        ("classes", "labels of 3", {"classlabels_ints": [1, 2, 3]}),
        ("weights", "coefficients", {"coefficients": [1.0]}),
        ("vectors", "support_vectors", {"support_vectors": [1.0] * 7}),
        ("count", "vectors_per_class", {"vectors_per_class": [-1, 4]}),
        ("prob", "prob_a", {"prob_a": [1.0]}),
        ("kernel", "SINE", {"kernel_type": "SINE"}),
        ("many", "vectors_per_class", {"vectors_per_class": [2**31 - 1] * 2}),
    ):
        use(f"svm_{what}", says, "SVMClassifier", **{**good, **change})


def branches_of_two_ranks():
    cond = [value("x"), value("c", (), T.BOOL)]
    axes = weight("axes", np.array([0], np.int64))
    ranks = [
        h.make_graph(
            [
                node("Identity" if deep else "Transpose", ("x",), ("s",), "i1"),
                node("Unsqueeze" if deep else "Identity", ("x", "axes")[: deep + 1], ("t",), "i2"),
            ],
            "branch",
            [],
            [value("s", None), value("t", None)],
        )
        for deep in (0, 1)
    ]
    case(
        "if_branch_ranks_differ",
        model(
            [node("If", ("c",), ("s0", "y"), then_branch=ranks[0], else_branch=ranks[1])],
            cond,
            weights=[axes],
        ),
        4,
        ["n0", "If", "rank 2", "rank 3", "--bind"],
    )


def control_flow():
    then = h.make_graph([node("Relu", ("x",), ("t",), "inner")], "then", [], [value("t")])
    cond = [value("x"), value("c", (), T.BOOL)]
    case(
        "if_without_else",
        model([node("If", ("c",), then_branch=then)], cond),
        3,
        ["n0", "else_branch"],
    )
    other = h.make_graph(
        [node("Cast", ("x",), ("e",), "inner2", to=T.INT32)],
        "else",
        [],
        [value("e", dtype=T.INT32)],
    )
    case(
        "if_branch_types_differ",
        model([node("If", ("c",), then_branch=then, else_branch=other)], cond),
        3,
        ["n0", "If"],
    )
    two = h.make_graph(
        [node("Relu", ("x",), ("a",), "i1"), node("Neg", ("x",), ("b",), "i2")],
        "else",
        [],
        [value("a"), value("b")],
    )
    case(
        "if_branch_output_counts_differ",
        model([node("If", ("c",), then_branch=then, else_branch=two)], cond),
        3,
        ["n0", "If"],
    )
    case(
        "if_condition_float",
        model([node("If", ("x",), then_branch=then, else_branch=then)]),
        3,
        ["n0", "If"],
    )
    body = h.make_graph(
        [node("Relu", ("v",), ("w",), "inner")], "body", [value("i", (), T.INT64)], [value("w")]
    )
    case(
        "loop_body_signature",
        model([node("Loop", ("m", "", "x"), body=body)], weights=[weight("m", np.int64(3))]),
        3,
        ["n0", "Loop"],
    )
    body = h.make_graph(
        [node("Relu", ("v",), ("w",), "inner"), node("Not", ("v",), ("c",), "inner2")],
        "body",
        [value("v", (), T.BOOL)],
        [value("c", (), T.BOOL), value("w")],
    )
    case(
        "loop_body_inputs",
        model([node("Loop", ("m", "", "x"), body=body)], weights=[weight("m", np.int64(3))]),
        3,
        ["n0", "Loop", "1 inputs, not 3"],
    )
    axes = weight("axes", np.array([0], np.int64))
    unfit = h.make_graph(
        [node("Squeeze", ("x", "axes"), ("t",), "inner")], "then", [], [value("t")]
    )
    case(
        "if_branch_does_not_fit",
        model([node("If", ("c",), then_branch=unfit, else_branch=then)], cond, weights=[axes]),
        4,
        ["inner", "Squeeze", "n0", "--bind"],
    )
    unknown = h.make_graph([node("NoSuchOp", ("x",), ("t",), "inner")], "then", [], [value("t")])
    case(
        "if_unknown_op_inside",
        model([node("If", ("c",), then_branch=unknown, else_branch=then)], cond),
        4,
        ["inner", "NoSuchOp"],
    )
    scope = h.make_graph(
        [node("Relu", ("x",), ("hidden",), "i1"), node("Neg", ("hidden",), ("t",), "i2")],
        "then",
        [],
        [value("t")],
    )
    case(
        "subgraph_name_used_outside",
        model(
            [
                node("If", ("c",), ("a",), then_branch=scope, else_branch=then),
                node("Relu", ("hidden",), ("y",), "n1"),
            ],
            cond,
        ),
        3,
        ["hidden", "n1"],
    )
    case(
        "split_into_too_many",
        model(
            [node("SplitToSequence", ("x", "k"), ("s",)), node("SequenceLength", ("s",))],
            [value("x"), value("k", (2**31 - 1,), T.INT64)],
            [value("y", (), T.INT64)],
        ),
        4,
        ["SplitToSequence", "2147483647 pieces"],
    )


# -- odd but good -----------------------------------------------------------------------------


def zero_sizes():
    def good(name, nodes, inputs, out, weights=(), dtype=T.FLOAT):
        case(f"zero_{name}", model(nodes, inputs, [value("y", out, dtype)], weights), 0, build=True)

    good("relu", [node("Relu")], [value("x", (0, 3))], (0, 3))
    good("concat", [node("Concat", ("x", "b"), axis=0)], [value("x", (0, 3)), value("b")], (2, 3))
    good("matmul_k", [node("MatMul", ("x", "b"))], [value("x", (2, 0)), value("b", (0, 4))], (2, 4))
    good("matmul_m", [node("MatMul", ("x", "b"))], [value("x", (0, 3)), value("b", (3, 4))], (0, 4))
    good(
        "reducesum",
        [node("ReduceSum", ("x", "a"), keepdims=0)],
        [value("x", (0, 3))],
        (3,),
        [weight("a", np.array([0], np.int64))],
    )
    good(
        "weight",
        [node("Concat", ("x", "w"), axis=0)],
        [value("x")],
        (2, 3),
        [weight("w", np.zeros((0, 3), np.float32))],
    )
    good("transpose", [node("Transpose", perm=[1, 0])], [value("x", (0, 3))], (3, 0))
    good("all", [node("Add", ("x", "x"))], [value("x", (0, 0))], (0, 0))
    case(
        "zero_resize",
        model(
            [node("Resize", ("x", "", "", "s"), mode="cubic", antialias=1)],
            [value("x", (2, 4))],
            [value("y", (0, 2))],
            [weight("s", np.array([0, 2], np.int64))],
            opset=19,
        ),
        0,
        build=True,
    )


def hostile_names():
    names = {
        "comment_end": "*/ #error no /*",
        "newline": "a\nb",
        "backslash": "end\\",
        "quote": '"%s%n"',
        "keyword": "int",
        "own": "model_run",
        "digits": "9lives",
        "unicode": "größe_層",
        "trigraph": "what??/",
        "dots": "a.b/c:0",
        "dollar": "$(id)",
        "long": "n" * 100_000,
        "main": "main",
        "escape": "\x1b[31m\x07",
    }
    for name, text in names.items():
        m = model(
            [
                node("Relu", (text,), (f"{text}_t",), text),
                node("Neg", (f"{text}_t",), (f"{text}_y",), f"{text}2"),
            ],
            [value(text)],
            [value(f"{text}_y")],
        )
        m.graph.name = text
        m.producer_name = text
        m.doc_string = text
        case(f"name_{name}", m, 0, build=True)
        # the same name in a message: one printable line of a sane length, letters as they are
        says = ["NoSuchOp"] + ([text] if name == "unicode" else [])
        case(f"message_{name}", model([node("NoSuchOp", name=text)]), 4, says)
    m = relu()
    m.graph.node[0].name = "not_utf8_?"
    case("name_not_utf8", m.SerializeToString().replace(b"utf8_?", b"utf8_\xff"), (0, 3))
    case(
        "name_mangles_alike",
        model(
            [node("Relu", ("a.b",), ("a/b",)), node("Neg", ("a/b",), ("a:b",), "n1")],
            [value("a.b")],
            [value("a:b")],
        ),
        0,
        build=True,
    )
    case(
        "name_empty_nodes",
        model([node("Relu", ("x",), ("t",), ""), node("Neg", ("t",), ("y",), "")]),
        0,
        build=True,
    )
    case(
        "name_twice_nodes",
        model([node("Relu", ("x",), ("t",)), node("Neg", ("t",), ("y",))]),
        (0, 3),
    )


# -- the command line -------------------------------------------------------------------------


def use(name, args, status=2, says=(), mod=None, **more):
    """args of its own: {model} and {out} stand for the paths."""
    case(f"usage_{name}", mod or relu(), status, says, args=args, **more)


def usage():
    use("nothing", [])
    use("unknown_command", ["frobnicate", "{model}"], says="frobnicate")
    use("unknown_flag", ["compile", "{model}", "-o", "{out}", "--frobnicate"], says="--frobnicate")
    use("no_model", ["compile", "-o", "{out}"])
    use("no_output", ["compile", "{model}"], says="-o")
    use("two_models", ["compile", "{model}", "{model}", "-o", "{out}"])
    use("flag_without_value", ["compile", "{model}", "-o"], says="-o")
    use(
        "target_unknown", ["compile", "{model}", "-o", "{out}", "--target", "abacus"], says="abacus"
    )
    use(
        "target_machine_unknown",
        ["compile", "{model}", "-o", "{out}", "--target", "c:abacus"],
        says="abacus",
    )
    for what, bad in (
        ("digit", "9x"),
        ("space", "a b"),
        ("path", "../x"),
        ("empty", ""),
        ("quote", "a\"b"),
        ("keyword", "int"),
    ):
        use(f"name_{what}", ["compile", "{model}", "-o", "{out}", "--name", bad], says="--name")
    for what, bad in (("no_value", "k"), ("no_name", "=5"), ("empty", "")):
        use(f"bind_{what}", ["compile", "{model}", "-o", "{out}", "--bind", bad], says="--bind")
    use(
        "bind_unknown",
        ["compile", "{model}", "-o", "{out}", "--bind", "nosuch=5"],
        (2, 3),
        says="nosuch",
    )
    use(
        "prefer",
        ["compile", "{model}", "-o", "{out}", "--prefer", "speed"],
        says=("--prefer", "ram", "time"),
    )
    use(
        "out_is_a_file", ["compile", "{model}", "-o", "{file}"], 6, files={"taken": b"here already"}
    )
    use(
        "out_below_a_file",
        ["compile", "{model}", "-o", "{file}/sub"],
        6,
        files={"taken": b"here already"},
    )
    use("model_is_a_folder", ["compile", "{folder}", "-o", "{out}"], (3, 6))
    use("model_is_empty_word", ["compile", "", "-o", "{out}"], (2, 6))
    use(
        "run_data_missing",
        ["run", "{model}", "--data", "{folder}/nosuch", "--output-dir", "{out}"],
        6,
    )
    use("run_data_empty", ["run", "{model}", "--data", "{folder}", "--output-dir", "{out}"], (3, 6))
    use(
        "bench_threads_0",
        ["bench", "{model}", "--data", "{folder}", "--threads", "0"],
        says="--threads",
    )
    use("check_missing_file", ["check", "{folder}/nosuch.onnx"], 6, says="nosuch.onnx")
    use(
        "inspect_missing_file", ["inspect", "{folder}/nosuch.onnx", "--json"], 6, says="nosuch.onnx"
    )


def usage_of_dims():
    dyn = model(
        [node("Relu")], inputs=[value("x", ("batch", 3))], outputs=[value("y", ("batch", 3))]
    )
    for what, bad in (
        ("no_value", "batch"),
        ("words", "batch=one..two"),
        ("reversed", "batch=8..1"),
        ("negative", "batch=-4..2"),
        ("huge", "batch=1..99999999999999999999"),
        ("open", "batch=1.."),
    ):
        use(
            f"dim_{what}",
            ["compile", "{model}", "-o", "{out}", "--dim", bad],
            says="--dim",
            mod=dyn,
        )
    fixed = model(
        [node("Relu", ("x",), ("r",)), node("Neg", ("r",), name="n1")],
        inputs=[value("x", (1, 3)), value("n", ("seq",), T.INT64)],
        outputs=[value("y", (1, 3))],
    )
    for what, flags, says, n, rc in (
        (
            "bounds",
            ("x_0=1..8",),
            ("x_0=1..8", "fixes axis 0 of the input 'x' to 1", "'seq'"),
            1,
            2,
        ),
        ("size", ("x_1=4",), ("fixes axis 1 of the input 'x' to 3",), 1, 2),
        ("same", ("x_0=1",), (), 1, 0),
        ("axis", ("x_7=2",), ("'x' has 2 dims",), 1, 2),
        ("other_name", ("n_0=2",), ("has the name 'seq'",), 2, 2),
        ("equal", ("seq=x_0",), ("x_0", "fixes it to 1"), 1, 2),
        ("itself", ("seq=seq",), ("one dim",), 2, 2),
        ("inside", ("r_0=1..8",), ("does nothing", "along axis 0 is 1"), 1, 0),
        ("value", ("x=1..8",), ("f32",), 1, 2),
        ("all", ("x_0=1..8", "nosuch=3", "x_9=1", "w_0=1"), ("x_0", "nosuch", "x_9", "w_0"), 4, 2),
    ):
        seq = () if any(f.startswith(("seq", "n_0")) for f in flags) else ("seq=4",)
        use(
            f"dim_fixed_{what}",
            [
                "compile",
                "{model}",
                "-o",
                "{out}",
                *(w for f in (*flags, *seq) for w in ("--dim", f)),
            ],
            rc,
            says,
            mod=fixed,
            messages=n,
        )
    use(
        "dim_of_bound",
        ["compile", "{model}", "-o", "{out}", "--dim", "seq=1..2", "--bind", "n=1,2,3"],
        2,
        ("'n' has 3 elements",),
        mod=fixed,
    )
    use(
        "dim_unknown",
        ["compile", "{model}", "-o", "{out}", "--dim", "nosuch=1..8"],
        (2, 3),
        says="nosuch",
    )


def usage_of_memory():
    wide = model(
        [
            node("ReduceSum", outputs=("s",), name="sum", keepdims=1),
            node("Div", ("x", "s"), ("d",), "share"),
            node("Transpose", ("d",), ("t",), "turn"),
            node("MatMul", ("d", "t"), ("y",), "product"),
        ],
        inputs=[value("x", (64, 64))],
        outputs=[value("y", (64, 64))],
    )
    use(
        "max_ram",
        ["compile", "{model}", "-o", "{out}", "--max-ram", "1k"],
        4,
        ("1024", "share", "f32[64,64]", "16384 bytes"),
        wide,
    )
    use(
        "max_vram",
        ["compile", "{model}", "-o", "{out}", "--target", "opencl", "--max-vram", "40k"],
        4,
        ("--max-vram", "40960", "share", "32768 inputs"),
        wide,
    )
    use(
        "max_vram_word",
        ["compile", "{model}", "-o", "{out}", "--max-vram", "much"],
        says="--max-vram",
    )
    for what, bad in (("word", "much"), ("nothing", "0"), ("huge", "9999999999G")):
        use(
            f"max_ram_{what}",
            ["compile", "{model}", "-o", "{out}", "--max-ram", bad],
            says="--max-ram",
        )

    def memory(name, *sizes, status=2, says="--memory", mod=None, flags=()):
        args = [
            "compile",
            "{model}",
            "-o",
            "{out}",
            *(w for s in sizes for w in ("--memory", s)),
            *flags,
        ]
        use(f"memory_{name}", args, status, says, mod)

    memory(
        "small",
        "dtcm=64",
        "sram=1k",
        status=4,
        says=("sram", "1024 bytes", "15360 bytes too small", "share"),
        mod=wide,
    )
    memory("small_alone", "sram=1k", status=4, says=("sram", "bytes too small", "share"), mod=wide)
    memory(
        "max_ram",
        "dtcm=64",
        "sram",
        status=4,
        says=("--max-ram", "2048", "share"),
        mod=wide,
        flags=("--max-ram", "2k"),
    )
    memory("gpu", "dtcm=64k", "sram", says=("--memory", "opencl"), flags=("--target", "opencl"))
    memory("twice", "dtcm=64k", "DTCM=64k", says=("DTCM", "two"))
    memory("open", "dtcm", "sram=64k", says=("dtcm", "last"))
    for what, bad in (
        ("name", "=64k"),
        ("empty", ""),
        ("digit", "1a=64k"),
        ("letters", "d-tcm=64k"),
        ("size", "dtcm=much"),
        ("no_size", "dtcm="),
        ("nothing", "dtcm=0"),
        ("huge", "dtcm=9999999999G"),
    ):
        memory(what, bad)


GROUPS = (
    bytes_and_wire,
    structure,
    functions,
    operators,
    attributes,
    types,
    shapes,
    shapes_of_constants,
    declared,
    undeclared,
    tensors,
    sparse_constants,
    classical,
    control_flow,
    branches_of_two_ranks,
    zero_sizes,
    hostile_names,
    usage,
    usage_of_dims,
    usage_of_memory,
)


def make(out):
    """Writes the corpus; returns the manifest (the cases without their bytes)."""
    out = pathlib.Path(out)
    shutil.rmtree(out, ignore_errors=True)
    CASES.clear()
    for g in GROUPS:
        g()
    assert len({c["name"] for c in CASES}) == len(CASES)
    manifest = []
    for c in CASES:
        # NAME/ is what '..' of the model's folder may see; the model lies in NAME/m
        folder = out / c["name"] / "m"
        folder.mkdir(parents=True)
        if c["model"] is not None:
            (folder / "model.onnx").write_bytes(c["model"])
        for name, data in c["files"].items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
        for name, to in c["links"].items():
            (folder / name).symlink_to(to)
        manifest.append(
            {
                k: c[k]
                for k in ("name", "status", "says", "args", "build", "messages", "damage", "note")
            }
        )
    (out / "manifest.json").write_text(json.dumps(manifest, indent=1) + "\n")
    return manifest


if __name__ == "__main__":
    p = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    p.add_argument("out_dir")
    print(len(make(p.parse_args().out_dir)), "cases")
