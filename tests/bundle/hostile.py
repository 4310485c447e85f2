#!/usr/bin/env python3
"""Names that would break out of what they are written into, through every file that is emitted, in
every language.

hostile.py --ingot build/ingot

c          bundles as C and C++ by gcc and clang with all warnings: weights in each way, sizes,
           states, custom operators, a selftest, halves for a GPU, kernels for OpenCL and CUDA; what
           run and verify say
builds     make -n, cmake and the packages' files
told       the report's page, JSON, Graphviz, dumps, .sched (saved and read again), audit
"""

import collections
import html.parser
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import xml.etree.ElementTree

import numpy as np
from onnx import TensorProto as T
from onnx import helper, numpy_helper
from run import Wrong, call, main, objects

# What a name may have in it; the placeholder becomes bytes that are no UTF-8.
NOT_UTF8 = "ZZNOTUTF8ZZ"
HOSTILE = [
    "*/ int broken; /*",
    "//",
    "\n#error broken\n",
    "\r\nbroken",
    '"; broken("',
    "'broken'",
    "back\\",
    "\\",
    "\\\n",
    "??/",
    "??)",
    "é??)",
    "ééé)",
    "</script><script>broken()</script>",
    "<!--",
    "-->",
    "]]>",
    "&lt;&amp;",
    "%s%n%d",
    "${HOME}",
    "$(shell touch broken)",
    "`touch broken`",
    "@broken@",
    "#",
    "# broken",
    ";",
    "a=b",
    "a:b",
    "a,b",
    "[0]",
    "{",
    "}",
    "..",
    "../../broken",
    "/",
    " ",
    "\t",
    "\x01\x1b[31m\x7f",
    "日本語",
    "\u202e\u2028\u2029",
    "😀",
    NOT_UTF8,
    "L" * 5000,
    "x y",
    "x_y",
    "x-y",
    "x.y",
    "X_Y",
    "1",
    "0x",
    "_",
    "__",
    "int",
    "for",
    "restrict",
    "inline",
    "_Bool",
    "class",
    "namespace",
    "template",
    "operator",
    "this",
    "new",
    "delete",
    "and",
    "not",
    "auto",
    "typeof",
    "kernel",
    "global",
    "__global__",
    "main",
    "NULL",
    "EOF",
    "errno",
    "stdin",
    "assert",
    "true",
    "bool",
    "std",
    "igrt",
    "in",
    "out",
    "ctx",
    "config",
    "model",
    "arena",
    "weights",
    "struct_size",
    "inputs",
    "outputs",
    "size",
    "dims",
    "x_dims",
    "memcpy",
    "M_PI",
    "I",
    "linux",
    "unix",
    "__LINE__",
    "_Pragma",
    "defined",
]
WARNINGS = ["-Wall", "-Wextra", "-Wpedantic", "-Werror", "-Wtrigraphs", "-Wcomment", "-Wno-psabi"]


def want(good, what):
    if not good:
        raise Wrong(what)


def info(name, *shape):
    return helper.make_tensor_value_info(name, T.FLOAT, shape)


def weight(name, *shape):
    return numpy_helper.from_array(
        np.random.default_rng(1).standard_normal(shape).astype(np.float32), name
    )


def save(path, graph, domains=()):
    """With every text that the format has; placeholders are replaced by as many bytes."""
    text = "*/ ??/ </script> \n \" \\ é " + NOT_UTF8
    model = helper.make_model(
        graph,
        opset_imports=[helper.make_opsetid("", 18), *(helper.make_opsetid(d, 1) for d in domains)],
        ir_version=8,
    )
    model.doc_string = model.producer_name = model.producer_version = model.domain = (
        graph.doc_string
    ) = graph.name = text
    helper.set_model_props(model, {text: text})
    for item in (*graph.node, *graph.input, *graph.output, *graph.initializer):
        item.doc_string = text
    path.write_bytes(
        model.SerializeToString().replace(
            NOT_UTF8.encode(),
            b"\xff\xfe\xc0\x80 \xed\xa0\x80\xf8(".ljust(len(NOT_UTF8), b"\x80")[: len(NOT_UTF8)],
        )
    )
    return path


def every(path):
    """Each name as an input's, a node's, an initializer's and an output's; few sizes, so that
    kernels are shared."""
    nodes, inputs, outputs, data = [], [], [], []
    for i, name in enumerate(HOSTILE):
        h, y, w = name + "\u00a0h", name + "'", name + "w"
        inputs.append(info(name, 2, 4))
        outputs.append(info(y, 2, 4))
        data.append(weight(w, 4, 4))
        nodes += [
            helper.make_node("MatMul", [name, w], [h], name=name),
            helper.make_node(
                ("Tanh", "Softmax", "Relu")[i % 3],
                [h],
                [y],
                name="" if i % 7 == 0 else name + "/" + y,
            ),
        ]
    return save(path, helper.make_graph(nodes, "g", inputs, outputs, data))


DIMS = [
    "*/",
    "??)",
    "é??/",
    '"',
    "back\\",
    "new\nline",
    "</script>",
    "int",
    "x y",
    "x_y",
    "%s",
    "${x}",
    "日",
    "L" * 400,
]


def sized(path):
    """Each dim's name as that of a size that the run knows."""
    nodes, inputs, outputs = [], [], []
    for i, name in enumerate(DIMS):
        inputs.append(info(f"x{name}", name, 3))
        outputs.append(info(f"y{name}", None, None))
        nodes += [
            helper.make_node(
                "Concat", [f"x{name}", f"x{DIMS[i - 1]}"], [f"h{name}"], name=f"n{name}", axis=0
            ),
            helper.make_node(
                "ReduceSum", [f"h{name}", "axes"], [f"y{name}"], name=f"m{name}", keepdims=1
            ),
        ]
    graph = helper.make_graph(
        nodes, "g", inputs, outputs, [numpy_helper.from_array(np.array([0], np.int64), "axes")]
    )
    return save(path, graph), [w for name in DIMS for w in ("--dim", f"{name}=1..9")]


SOURCE = """/* elementwise
 * default[beta] = 1 */
float %s(float x, float beta)
{
    return x * beta;
}
"""


def foreign(path, folder):
    """A state, and operators of domains and types with such names, each computed by a C function;
    the words that say so."""
    nodes, data, words, y = [], [], [], "x"
    domains = ["*/", "??/.com", "é??)", '"; #error', "new\nline", "back\\", "%s"]
    for i, domain in enumerate(domains):
        op, file = f"O{i}" + HOSTILE[i], folder / f"f{i}.c"
        file.write_text(SOURCE % f"f{i}")
        nodes.append(
            helper.make_node(
                op, [y], [f"h{i}{HOSTILE[i]}"], name=HOSTILE[-i], domain=domain, beta=2.0
            )
        )
        y = nodes[-1].output[0]
        words += ["--op", f"{domain}:{op}={file}"]
    nodes += [
        helper.make_node("Add", [y, '"??)\n*/'], ["é??/"], name="??/"),
        helper.make_node("Neg", ["é??/"], ["y*/"], name="\\"),
    ]
    graph = helper.make_graph(
        nodes,
        "g",
        [info("x", 2, 4), info('"??)\n*/', 2, 4)],
        [info("y*/", 2, 4), info("é??/", 2, 4)],
        data,
    )
    return save(path, graph, domains), words + ["--state", '"??)\n*/=é??/']


def models(work):
    sized_model, bounds = sized(work / "sized.onnx")
    foreign_model, words = foreign(work / "foreign.onnx", work)
    return {
        "every": (every(work / "every.onnx"), []),
        "sized": (sized_model, bounds),
        "foreign": (foreign_model, words),
    }


def plain(text, what):
    """Of a file or of what is printed: no control characters, which a terminal would obey."""
    found = re.search(rb"[\x00-\x08\x0b-\x1f\x7f]", text)
    want(
        not found,
        f"{what} has {found and found[0]}: {found and text[max(0, found.start() - 60) : found.end() + 20]}",
    )


def standard(cxx, folder, texts):
    """Words by which the C++ library's headers of these texts, which take ten times as long to read
    as what follows, are there; cpp.py has each header alone."""
    names = sorted({name for text in texts for name in re.findall(r"#include <(\w+)>", text)})
    file = folder / f"{'_'.join(names)}.hpp"
    made = folder / f"{file.name}.{'pch' if 'clang' in cxx else 'gch'}"
    if not file.exists():
        file.write_text("".join(f"#include <{name}>\n" for name in names))
    if not made.exists():
        call(cxx, "-std=c++17", *WARNINGS, "-x", "c++-header", file, "-o", made)
    return ["-include", file]


seen = set()


def unseen(bundle, *words):
    """The bundle's sources but for those that lay in another one, with all that they include, and
    were compiled by these words: functions of the runtime have no name of the model's."""
    files, found = objects.Files(bundle), []
    for source in sorted(bundle.glob("*.c")):
        texts = objects.closure(source, files)
        key = texts and (words, frozenset((f.name, text) for f, text in texts.items()))
        if key not in seen:
            found.append(source)
        seen.add(key)
    seen.discard(None)  # that is not all that it is made of
    return found


def sources(bundle, lanes):
    """In ASCII, without trigraphs; as C, C++ and OpenCL, by both compilers."""
    for file in bundle.rglob("*"):
        if (
            file.suffix in (".c", ".h", ".hpp", ".cl", ".cu", ".hip", ".wgsl", ".S", ".txt", ".ld")
            or file.suffix in (".yml", ".cmake", ".js", ".mjs", ".html")
            or file.name == "Makefile"
        ):
            plain(file.read_bytes(), file)
            want(file.read_bytes().isascii(), f"{file} is not ASCII")
            want("??" not in re.sub(r"\?\\\?", "", file.read_text()), f"{file} has a trigraph")
    march = ["-march=x86-64-v3"] if lanes else []
    for cc in ("gcc", "clang"):
        texts = unseen(bundle, cc, *march)
        if texts:
            call(cc, "-std=c99", "-fsyntax-only", *WARNINGS, *march, "-I", bundle, *texts)
    for cxx in ("g++", "clang++") if shutil.which("clang++") else ("g++",):
        call(
            cxx,
            "-std=c++17",
            "-fsyntax-only",
            *WARNINGS,
            "-I",
            bundle,
            "-x",
            "c++",
            *standard(cxx, bundle.parent, [f.read_text() for f in bundle.glob("*.hpp")]),
            "-include",
            "model.hpp",
            "/dev/null",
        )
    for file in bundle.glob("*.cl"):
        call(
            "clang",
            "-x",
            "cl",
            "-cl-std=CL1.2",
            "-Xclang",
            "-finclude-default-header",
            "-fsyntax-only",
            "-Wtrigraphs",
            "-Wcomment",
            "-Werror",
            file,
        )


WAYS = (
    ["--target", "c", "--weights", "array"],
    ["--target", "c:c99", "--weights", "blob"],
    ["--target", "c:x86-64-v3", "--weights", "incbin", "-O0"],
    ["--target", "opencl"],
    ["--target", "cuda:sm_80"],
    ["--target", "cuda:sm_80+c"],
    ["--fuse", "all", "--memory", "a=4M", "--memory", "b"],
    ["--target", "hip:gfx90a"],
    ["--target", "wgsl"],
)


def c(ingot, work):
    n = 0
    for name, (model, words) in models(work).items():
        for i, way in enumerate(
            WAYS if name == "every" else WAYS[::2] if name == "sized" else WAYS[1::3]
        ):
            bundle = work / f"{name}{i}"
            told = subprocess.run(
                [ingot, "compile", model, "-o", bundle, *words, *way],
                capture_output=True,
                check=False,
            )
            want(told.returncode == 0, f"compile {name} {way}: {told.stderr[-2000:]}")
            plain(told.stdout + told.stderr, f"compile {name} {way}")
            sources(bundle, "c:x86-64-v3" in way)
            n += 1
        told = subprocess.run(
            [ingot, "verify", model, *words, "--target", "c", "-v"],
            capture_output=True,
            env=dict(os.environ, INGOT_CACHE=str(work / "cache")),
            check=False,
        )
        want(told.returncode == 0, f"verify {name}: {told.stderr[-2000:]}")
        plain(told.stdout + told.stderr, f"verify {name}")
    print(f"{n} bundles")


def builds(ingot, work):
    model, words = models(work)["sized"]
    for package in ("make", "cmake", "zephyr", "esp-idf", "arduino", "cmsis"):
        bundle = work / package
        call(ingot, "compile", model, "-o", bundle, *words, "--package", package, "-q")
        for file in bundle.rglob("*"):
            if file.is_file() and file.suffix not in (".bin", ".npy"):
                want(file.read_bytes().isascii(), f"{file} is not ASCII")
                plain(file.read_bytes(), file)
        if package == "make":
            call("make", "-n", "-C", bundle)
            call("make", "-s", "-C", bundle, "CFLAGS=-O0 -std=c99 " + " ".join(WARNINGS))
        if package == "cmake":
            call("cmake", "-S", bundle, "-B", work / "cmake-build")
        if package == "cmsis":
            for file in bundle.glob("*.pdsc"):
                xml.etree.ElementTree.parse(file)
    want(not list(work.rglob("broken")), "a name was run as a command")
    print("ok")


class Page(html.parser.HTMLParser):
    """How many elements a page has, by tag."""

    def __init__(self, text):
        super().__init__()
        self.tags = collections.Counter()
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags[tag] += 1


def told(ingot, work):
    every_model = models(work)
    simple = work / "simple.onnx"
    simple.write_bytes(
        helper.make_model(
            helper.make_graph(
                [helper.make_node("Relu", ["x"], ["y"])], "g", [info("x", 4)], [info("y", 4)]
            ),
            opset_imports=[helper.make_opsetid("", 18)],
            ir_version=8,
        ).SerializeToString()
    )
    call(ingot, "inspect", simple, "-o", work / "simple.html")
    usual = Page((work / "simple.html").read_text()).tags
    for name, (model, words) in every_model.items():
        call(ingot, "inspect", model, *words, "-o", work / "page.html")
        page = (work / "page.html").read_bytes().decode()
        want(
            Page(page).tags == usual,
            f"{name}: the page has {Page(page).tags - usual} that no other page has",
        )
        for node in HOSTILE[::8]:
            done = subprocess.run(
                [ingot, "explain", model, node.replace(NOT_UTF8, "x"), *words],
                capture_output=True,
                check=False,
            )
            plain(done.stdout + done.stderr, f"explain {name} {node}")
        for what in (
            ["--json"],
            ["--dot"],
            ["--dump", "graph"],
            ["--dump", "plan"],
            ["--dump", "kernels"],
        ):
            done = subprocess.run(
                [ingot, "inspect", model, *words, *what], capture_output=True, check=False
            )
            want(done.returncode == 0, f"inspect {name} {what}: {done.stderr[-1000:]}")
            plain(done.stdout + done.stderr, f"inspect {name} {what}")
            text = done.stdout.decode()
            if what == ["--json"]:
                json.loads(text)
            if what == ["--dot"]:
                outside = re.sub(r'"(?:[^"\\]|\\.)*"', "", text, flags=re.S)
                want(
                    '"' not in outside and "broken" not in outside,
                    f"{name}: a name broke out of its string: {outside}",
                )
        first, again = work / f"{name}_first", work / f"{name}_again"
        call(ingot, "compile", model, *words, "-o", first, "--save-sched", work / "s.sched", "-q")
        plain((work / "s.sched").read_bytes(), "the .sched")
        done = subprocess.run(
            [ingot, "compile", model, *words, "-o", again, "--sched", work / "s.sched"],
            capture_output=True,
            check=False,
        )
        want(
            done.returncode == 0 and b"warning" not in done.stderr,
            f"{name} by its .sched: {done.stderr[-1000:]}",
        )
        for file in first.rglob("*"):
            if file.is_file() and file.name != "ingot.manifest":
                want(
                    file.read_bytes() == (again / file.relative_to(first)).read_bytes(),
                    f"{name}: by its .sched {file.name} is another",
                )
        call(ingot, "plan", "diff", work / "s.sched", work / "s.sched")
        plain(
            subprocess.run([ingot, "audit", first], capture_output=True, check=False).stdout,
            "audit",
        )
        json.loads(
            subprocess.run(
                [ingot, "audit", first, "--json"], capture_output=True, check=False
            ).stdout
        )
        manifest = (first / "ingot.manifest").read_bytes()
        plain(manifest, "the manifest")
        plain(
            subprocess.run(
                [ingot, "check", model, *words], capture_output=True, check=False
            ).stdout,
            "check",
        )
    print("ok")


if __name__ == "__main__":
    sys.exit(main(__doc__, {"c": c, "builds": builds, "told": told}))
