#!/usr/bin/env python3
"""Writes ONNX cases of classical models (domain ai.onnx.ml), with ONNX Runtime's results as the
truth.

ml_cases.py OUT_DIR        OUT_DIR/NAME/{model.onnx,test_data_set_0/...}; exit status 77 without
                           ONNX Runtime
"""

import sys

from case_writer import (
    FLOAT,
    INT64,
    NODE,
    RNG,
    VALUE,
    Cases,
    floats,
)  # first: it ends where something is missing

import numpy as np
import onnx
import onnxruntime as ort
from onnx import TensorProto

ML = "ai.onnx.ml"
TRANSFORMS = ("NONE", "LOGISTIC", "SOFTMAX", "SOFTMAX_ZERO")
KERNELS = ("LINEAR", "POLY", "RBF", "SIGMOID")
WORDS = ["ant", "bee", "cat", "dog"]
TYPES = {"i": TensorProto.INT64, "s": TensorProto.STRING, "f": TensorProto.FLOAT}


class MlCases(Cases):
    domains = {ML: 1}

    def case(self, name, op, x, y="f", **attributes):
        """One node of one input, or of a list of them; y: types of its outputs, a letter for
        each."""
        inputs = [(f"x{i}", v) for i, v in enumerate(x if isinstance(x, list) else [x])]
        outputs = [f"y{i}" for i in range(len(y))]
        node = NODE(op, [k for k, _ in inputs], outputs, domain=ML, **attributes)
        self.add(
            f"ml_{op.lower()}_{name}",
            node,
            inputs,
            17,
            types={o: TYPES[k] for o, k in zip(outputs, y)},
        )


def linear(cases):
    x = floats(6, 5) * 3
    for how in TRANSFORMS:
        w, b = [float(v) for v in floats(20)], [float(v) for v in floats(4)]
        cases.case(
            f"four_{how.lower()}",
            "LinearClassifier",
            x,
            "if",
            coefficients=w,
            intercepts=b,
            classlabels_ints=[3, -1, 7, 40],
            post_transform=how,
        )
        cases.case(
            f"words_{how.lower()}",
            "LinearClassifier",
            x,
            "sf",
            coefficients=w,
            intercepts=b,
            classlabels_strings=WORDS,
            post_transform=how,
        )
        near = np.array([[0, 5e-8, 2], [-5e-8, 1, 0], [3e-7, -1e-7, 4]], np.float32)
        itself = [float(v) for v in np.eye(3).ravel()]
        cases.case(
            f"near_zero_{how.lower()}",
            "LinearRegressor",
            near,
            coefficients=itself,
            targets=3,
            post_transform=how,
        )
        one = {"coefficients": w[:5], "intercepts": b[:1], "post_transform": how}
        cases.case(
            f"pair_{how.lower()}", "LinearClassifier", x, "if", classlabels_ints=[9, 4], **one
        )
        cases.case(
            f"pair_words_{how.lower()}",
            "LinearClassifier",
            x,
            "sf",
            classlabels_strings=WORDS[:2],
            **one,
        )
        cases.case(f"lone_{how.lower()}", "LinearClassifier", x, "if", **one)
        cases.case(
            f"three_{how.lower()}",
            "LinearRegressor",
            x,
            coefficients=w[:15],
            intercepts=b[:3],
            targets=3,
            post_transform=how,
        )
        cases.case(
            f"one_{how.lower()}", "LinearRegressor", x, coefficients=w[:5], post_transform=how
        )
    few = {"coefficients": [1.0, -2.0, 0.5, 0.25, 3.0, -1.0], "intercepts": [0.0, 1.0]}
    for dtype in (np.float64, np.int64, np.int32):
        rows = (floats(4, 3) * 5).astype(dtype)
        cases.case(
            np.dtype(dtype).name, "LinearClassifier", rows, "if", classlabels_ints=[0, 1], **few
        )
    cases.case("vector", "LinearClassifier", floats(3), "if", classlabels_ints=[0, 1], **few)


def vectors(cases):
    x, v, w = floats(6, 5), [float(k) for k in floats(35)], [float(k) for k in floats(7)]
    for kind in KERNELS:
        given = {
            "coefficients": w,
            "support_vectors": v,
            "n_supports": 7,
            "kernel_type": kind,
            "rho": [0.25],
            "kernel_params": [0.3, 0.2, 3.0],
        }
        cases.case(kind.lower(), "SVMRegressor", x, **given)
        cases.case(f"{kind.lower()}_one_class", "SVMRegressor", x, one_class=1, **given)
    cases.case(
        "none",
        "SVMRegressor",
        x,
        coefficients=w[:5],
        kernel_type="LINEAR",
        kernel_params=[0.0, 0.0, 0.0],
        rho=[-0.5],
    )


def machine(classes, of_class=(), probabilities=False, positive=False):
    """What an SVMClassifier of 5 features has beside its labels."""
    pairs, n = classes * (classes - 1) // 2, sum(of_class)
    w = floats((classes - 1) * n if n else classes * 5) * 2
    given = {
        "coefficients": [float(v) for v in (abs(w) if positive else w)],
        "rho": [float(v) for v in floats(max(pairs, 1))],
        "kernel_type": "RBF" if n else "LINEAR",
        "kernel_params": [0.3, 0.2, 3.0],
    }
    if n:
        given.update(
            vectors_per_class=list(of_class), support_vectors=[float(v) for v in floats(n * 5)]
        )
    if probabilities:
        given.update(
            prob_a=[float(-1 - abs(v)) for v in floats(pairs)],
            prob_b=[float(v) for v in floats(pairs)],
        )
    return given


def classes_by_vectors(cases):
    x, op, of_class = floats(9, 5), "SVMClassifier", [2, 4, 1, 3]
    labels = {"classlabels_ints": [3, -1, 7, 40]}
    for kind in KERNELS:
        cases.case(
            kind.lower(), op, x, "if", **{**machine(4, of_class), **labels, "kernel_type": kind}
        )
    for how in (*TRANSFORMS, "PROBIT"):
        for n in (2, 3):
            given = {"classlabels_strings": WORDS[:n], "post_transform": how}
            if n == 3 or how != "PROBIT":  # of one score ONNX Runtime leaves the second unwritten
                cases.case(f"{n}_{how.lower()}", op, x, "sf", **machine(n, of_class[:n]), **given)
            cases.case(
                f"{n}_probabilities_{how.lower()}",
                op,
                x,
                "sf",
                **machine(n, of_class[:n], True),
                **given,
            )
    cases.case("4_probabilities", op, x, "if", **machine(4, of_class, True), **labels)
    cases.case("none_of_one", op, x, "if", **machine(4, [2, 0, 1, 3]), **labels)
    for positive in (False, True):
        for n in (1, 2, 4):
            cases.case(
                f"linear_{n}_{positive}",
                op,
                x,
                "sf",
                classlabels_strings=WORDS[:n],
                **machine(n, positive=positive),
            )
    for dtype in (np.float64, np.int64, np.int32):
        cases.case(
            np.dtype(dtype).name, op, (x * 4).astype(dtype), "if", **machine(4, of_class), **labels
        )


def features(cases):
    x = floats(5, 4)
    x[2] = 0
    for norm in ("MAX", "L1", "L2"):
        cases.case(norm.lower(), "Normalizer", x, norm=norm)
        cases.case(f"{norm.lower()}_vector", "Normalizer", floats(7), norm=norm)
        cases.case(f"{norm.lower()}_int64", "Normalizer", RNG.integers(-5, 9, (3, 4)), norm=norm)
    holes = floats(5, 4)
    holes[1, 2] = holes[3, 0] = np.nan
    cases.case(
        "nan",
        "Imputer",
        holes,
        imputed_value_floats=[1.0, 2.0, 3.0, 4.0],
        replaced_value_float=float("nan"),
    )
    cases.case("number", "Imputer", np.round(x), imputed_value_floats=[7.0])
    cases.case(
        "int64",
        "Imputer",
        RNG.integers(0, 3, (5, 4)),
        "i",
        imputed_value_int64s=[5, 6, 7, 8],
        replaced_value_int64=1,
    )
    words = np.array([["cat", "ant"], ["owl", "dog"]], object)
    cases.case("words", "OneHotEncoder", words, cats_strings=WORDS)
    cases.case("known", "OneHotEncoder", words, zeros=0, cats_strings=[*WORDS, "owl"])
    cases.case("int64", "OneHotEncoder", np.array([[3, 7], [0, 9]]), cats_int64s=[9, 3, 4])
    cases.case("float", "OneHotEncoder", np.array([3.9, 9, -1], np.float32), cats_int64s=[9, 3, 4])
    map_of = {"cats_int64s": [5, 3, 9, 1], "cats_strings": WORDS}
    cases.case("words", "CategoryMapper", words, "i", default_int64=-7, **map_of)
    cases.case(
        "int64", "CategoryMapper", np.array([[9, 2], [5, 1]]), "s", default_string="none", **map_of
    )
    parts = [floats(3, 2), floats(3, 4), floats(3, 1)]
    cases.case("exact", "FeatureVectorizer", parts, inputdimensions=[2, 4, 1])
    cases.case("cut", "FeatureVectorizer", parts, inputdimensions=[2, 3, 1])
    cases.case("filled", "FeatureVectorizer", [floats(3, 2), floats(3, 4)], inputdimensions=[3, 4])


def trees(cases):
    one = {
        "nodes_nodeids": [0, 1, 2],
        "nodes_treeids": [0] * 3,
        "nodes_featureids": [1, 0, 0],
        "nodes_modes": ["BRANCH_LEQ", "LEAF", "LEAF"],
        "nodes_values": [0.1, 0.0, 0.0],
        "nodes_truenodeids": [1, 0, 0],
        "nodes_falsenodeids": [2, 0, 0],
    }
    votes = {
        "class_treeids": [0] * 4,
        "class_nodeids": [1, 1, 2, 2],
        "class_ids": [0, 2, 1, 2],
        "class_weights": [0.75, 0.25, 0.5, 0.5],
    }
    cases.case(
        "words",
        "TreeEnsembleClassifier",
        floats(6, 2),
        "sf",
        classlabels_strings=WORDS[:3],
        **one,
        **votes,
    )
    # leaves of one class of two: the score of the second, or of the first what it leaves
    for of in (0, 1):
        for sign, weights in (("positive", [0.75, 0.25]), ("either", [0.75, -0.5])):
            for how in TRANSFORMS:
                cases.case(
                    f"two_{of}_{sign}_{how.lower()}",
                    "TreeEnsembleClassifier",
                    floats(6, 2),
                    "sf",
                    classlabels_strings=WORDS[:2],
                    class_treeids=[0, 0],
                    class_nodeids=[1, 2],
                    class_ids=[of, of],
                    class_weights=weights,
                    post_transform=how,
                    **one,
                )
    leaves = {
        "target_treeids": [0, 0],
        "target_nodeids": [1, 2],
        "target_ids": [0, 0],
        "target_weights": [-1.0, 2.0],
    }
    for how in TRANSFORMS:
        cases.case(
            f"one_{how.lower()}",
            "TreeEnsembleRegressor",
            floats(6, 2),
            n_targets=1,
            post_transform=how,
            **one,
            **leaves,
        )


def maps(cases):
    """The numbers under a ZipMap."""

    def without_maps(model, feeds):
        plain = onnx.ModelProto.FromString(model.SerializeToString())
        del plain.graph.node[1:], plain.graph.output[:]
        plain.graph.output.extend([VALUE("l", INT64, None), VALUE("s", FLOAT, None)])
        return cases.session(plain).run(None, feeds)

    model = NODE(
        "LinearClassifier",
        ["x"],
        ["l", "s"],
        domain=ML,
        coefficients=[float(v) for v in floats(15)],
        intercepts=[0.1, 0.2, -0.3],
        classlabels_ints=[3, -1, 7],
        post_transform="SOFTMAX",
    )
    for kind, labels in (("int64s", [3, -1, 7]), ("strings", WORDS[:3])):
        cases.add(
            f"ml_zipmap_{kind}",
            [model, NODE("ZipMap", ["s"], ["z"], domain=ML, **{f"classlabels_{kind}": labels})],
            [("x", floats(6, 5))],
            17,
            wanted=["l", "z"],
            truth=without_maps,
        )


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    ort.set_default_logger_severity(4)
    cases = MlCases(sys.argv[1])
    for family in (linear, vectors, classes_by_vectors, features, trees, maps):
        family(cases)
    print(cases.n, "cases")


if __name__ == "__main__":
    main()
