#!/usr/bin/env python3
"""What ingot says to people: after it has compiled, and of the mistakes that are made most.

messages.py --ingot build/ingot
"""

import argparse
import io
import os
import pathlib
import platform
import pty
import re
import struct
import subprocess
import sys
import tempfile
import zipfile

import numpy as np
import onnx
from onnx import TensorProto as T
from onnx import helper

DIGITS = pathlib.Path(__file__).resolve().parents[2] / "examples/digits/digits.onnx"


def zipped(*names):
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w") as z:
        for name in names:
            z.writestr(name, b"text")
    return data.getvalue()


def field(number, payload):
    """A field of protobuf: an integer below 128, or bytes."""
    tag = number << 3 | (2 if isinstance(payload, bytes) else 0)
    head = bytes([tag]) if tag < 128 else bytes([tag & 127 | 128, tag >> 7])
    return head + (
        bytes([len(payload)]) + payload if isinstance(payload, bytes) else bytes([payload])
    )


PICKLE = b"\x80\4\x95\x20\0\0\0\0\0\0\0\x8c"
PYTORCH = "PyTorch.*torch.onnx.export"
# files of other programs: a name, the beginning of one, and what is said of it
KINDS = (
    ("m.keras", zipped("metadata.json", "config.json", "model.weights.h5"), "Keras.*model.export"),
    ("m.pt", zipped("m/data.pkl", "m/byteorder", "m/data/0"), PYTORCH),
    ("cut.pth", zipped("m/data.pkl", "m/data/0")[:80], PYTORCH),
    ("m.pt2", zipped("serialized_exported_program.json", "version"), "torch.export"),
    ("m.npz", zipped("a.npy", "b.npy"), "NumPy.*data"),
    ("tf.zip", zipped("m/saved_model.pb"), "SavedModel"),
    ("onnx.zip", zipped("net.onnx"), "unpack"),
    ("x.zip", zipped("x"), "a zip file"),
    ("cut.zip", b"PK\3\4" + bytes(30), "not whole"),
    ("m.safetensors", struct.pack("<Q", 2) + b"{}", "safetensors"),
    ("m.ort", b"\x1c\0\0\0ORTM" + bytes(9), "ONNX Runtime's own"),
    ("m.ggml", b"lmgg" + bytes(9), "GGML.*GGUF"),
    ("m.h5", b"\x89HDF\r\n\x1a\n" + bytes(9), "HDF5.*Keras"),
    ("m.npy", b"\x93NUMPY\1\0" + bytes(9), "NumPy"),
    ("m.pkl", b"\x80\2}q\0.", "pickle"),
    ("t.pkl", PICKLE + b"\x0ctorch._utils", PYTORCH),
    ("s.pkl", PICKLE + b"\x17sklearn.linear_model", "skl2onnx"),
    ("m.gz", b"\x1f\x8b\x08\0" + bytes(9), "unpack"),
    ("m.tar", b"m/config" + bytes(249) + b"ustar" + bytes(9), "tar"),
    ("m.html", b"<!DOCTYPE html>\n<html>", "HTML"),
    ("m.xml", b'<?xml version="1.0"?>\n<net name="m" version="11">', "OpenVINO"),
    ("xgb.json", b'{"learner":{"attributes":{}}}', "XGBoost.*onnxmltools"),
    ("m.json", b'{"a": 1}', "JSON"),
    ("lgb.txt", b"tree\nversion=v4\nnum_class=1\n", "LightGBM"),
    ("m.onnxtxt", b"<\n  ir_version: 8,\n", "as text.*onnx.parser"),
    ("m.pbtxt", b'node {\n  name: "x"\n  op: "Placeholder"\n}', "TensorFlow"),
    ("m.pb", field(1, field(1, b"x") + field(2, b"Placeholder")), "TensorFlow.*tf2onnx"),
    (
        "saved_model.pb",
        field(1, 1) + field(2, field(1, field(1, b"tag")) + field(2, b"\1\2")),
        "SavedModel.*--saved-model",
    ),
    ("m.mlmodel", field(1, 8) + field(2, field(1, field(1, b"x"))) + field(502, b"\0"), "Core ML"),
    ("m.pdmodel", field(1, field(1, 0) + field(2, 5)), "PaddlePaddle"),
    ("t.pb", field(1, 2) + field(2, 1) + field(9, bytes(8)), "ONNX tensor.*--data"),
)


def on_terminal(command, work, env, told):
    """What it writes to one. A file is made once that is more than nothing."""
    master, end = pty.openpty()
    process = subprocess.Popen(command, stdout=end, stderr=end, cwd=work, env=env)
    os.close(end)
    text = b""
    while True:
        try:
            piece = os.read(master, 4096)
        except OSError:  # the other end is closed
            piece = b""
        if not piece:
            break
        text += piece
        told.touch()
    process.wait()
    os.close(master)
    return text


class Asked:
    """An ingot, a folder that it works in, and what it said wrong."""

    def __init__(self, ingot, work):
        self.ingot, self.work, self.failed = ingot, work, []
        self.env = {**os.environ, "INGOT_CACHE": str(work / "cache")}

    def says(self, status, pattern, *arguments):
        done = subprocess.run(
            [self.ingot, *map(str, arguments)],
            capture_output=True,
            text=True,
            cwd=self.work,
            env=self.env,
        )
        text = done.stdout + done.stderr
        if done.returncode != status or not re.search(pattern, text, re.S):
            self.failed.append(
                f"ingot {' '.join(map(str, arguments))}: status {done.returncode}, wanted {status} and {pattern!r}:\n{text}"
            )


def write_models(asked):
    """A model of two inputs, and their data."""
    work = asked.work
    value = helper.make_tensor_value_info
    graph = helper.make_graph(
        [helper.make_node("Sub", ["x", "y"], ["z"])],
        "g",
        [value(n, T.FLOAT, ["batch", 2]) for n in "xy"],
        [value("z", T.FLOAT, ["batch", 2])],
    )
    onnx.save(
        helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8),
        str(work / "sub.onnx"),
    )
    np.save(work / "x.npy", np.array([[1, 2]], np.float32))
    np.save(work / "y.npy", np.array([[10, 30]], np.float32))
    np.save(work / "bad.npy", np.zeros(3))


def made(asked):
    """What was made, in a line; -q is silent."""
    says, work = asked.says, asked.work
    # what was made, in a line; -q is silent
    says(
        0,
        r"^  out: \d+ kernels, arena \d+ bytes, weights \d+ bytes\n(  out: k\w+, \d+ % of the work, uses no vectors: [^\n]+\n)*  out: for any processor[^\n]+\n$",
        "compile",
        DIGITS,
        "-o",
        "out",
    )
    says(0, r"^$", "compile", DIGITS, "-o", "out", "-q")
    says(
        2,
        r"^--target 'c:cortxe-m4': unknown; did you mean c:cortex-m4\?",
        "compile",
        DIGITS,
        "-o",
        "out",
        "-q",
        "--target",
        "c:cortxe-m4",
    )
    says(2, r"^--on-device: c is no GPU\n$", "bench", DIGITS, "--target", "c", "--on-device")


def near_names(asked):
    """Names that are nearly right."""
    says = asked.says
    # names that are nearly right
    says(2, r"did you mean opencl\?", "compile", DIGITS, "-o", "out", "--target", "openlc")
    says(2, r"did you mean cuda:sm_90\?", "compile", DIGITS, "-o", "out", "--target", "cuda:sm90")
    says(
        2,
        r"--dim batsh: did you mean 'batch'\?",
        "compile",
        "sub.onnx",
        "-o",
        "out",
        "--dim",
        "batsh=2",
    )
    says(
        2,
        r"--bind bach: .*did you mean 'batch'\?",
        "compile",
        "sub.onnx",
        "-o",
        "out",
        "--bind",
        "bach=2",
    )


def inputs(asked):
    """Inputs by name, and what is given beside what is wanted."""
    says = asked.says
    # inputs by name, and what is given beside what is wanted
    says(0, r"z: f32\[1,2\] -9 -28", "run", "sub.onnx", "--input", "x=x.npy", "--input", "y=y.npy")
    says(0, r"z: f32\[1,2\] 9 28", "run", "sub.onnx", "--input", "y=x.npy", "--input", "y.npy")
    says(
        2,
        r"input 'x' is given twice",
        "run",
        "sub.onnx",
        "--input",
        "x=x.npy",
        "--input",
        "x=y.npy",
    )
    says(
        3,
        r"are f64\[3\], and input 'x' is f32\[batch,2\]",
        "run",
        "sub.onnx",
        "--input",
        "bad.npy",
        "--input",
        "y.npy",
    )
    says(
        4,
        r"^sub\.onnx: input 'x' has 2e\+10 elements: too many for random ones",
        "bench",
        "sub.onnx",
        "--dim",
        "batch=9999999999",
    )


def missing(asked):
    """Data of another name, none, or too little; folders that cannot be made; machines of another kind."""
    says, work, ingot = asked.says, asked.work, asked.ingot
    # data of another name, none, or too little; folders that cannot be made; machines of
    # another kind
    says(
        2,
        r"^sub\.onnx: --input q=x\.npy: the model has no input 'q'\n$",
        "run",
        "sub.onnx",
        "--input",
        "q=x.npy",
        "--input",
        "y.npy",
    )
    (work / "empty").mkdir()
    says(
        6,
        r"^empty: there is neither an input_0\.pb nor an input_0\.npy\n$",
        "run",
        "sub.onnx",
        "--data",
        "empty",
    )
    says(
        2,
        r"--bind x=1: 1 element, and input 'x' is f32\[batch,2\]\n",
        "compile",
        "sub.onnx",
        "-o",
        "out",
        "--bind",
        "x=1",
    )
    says(
        2,
        r"--bind x=one: numbers with commas between are wanted, and input 'x' is f32\[batch,2\]\n",
        "compile",
        "sub.onnx",
        "-o",
        "out",
        "--bind",
        "x=one",
    )
    says(
        6,
        r"^/proc/out: no folder can be made there: [^\n]+\n$",
        "compile",
        DIGITS,
        "-o",
        "/proc/out",
    )
    other = "c:armv8-a" if platform.machine() == "x86_64" else "c:x86-64-v3"
    says(
        5,
        rf"compiles nothing for {other}: `ingot compile` writes its bundle[^\n]*\n$",
        "run",
        "sub.onnx",
        "--input",
        "x.npy",
        "--input",
        "y.npy",
        "--target",
        other,
    )


def arrays(asked):
    """What .npy files may be wrong in."""
    says, work = asked.says, asked.work
    # what .npy files may be wrong in
    header = "{'descr': '%s', 'fortran_order': %s, 'shape': %s, }"

    def npy(descr="<f4", order="False", shape="(1, 2)", data=bytes(8), version=1):
        text = (header % (descr, order, shape)).encode()
        return (
            b"\x93NUMPY"
            + bytes((version, 0))
            + struct.pack("<H" if version == 1 else "<I", len(text))
            + text
            + data
        )

    for data, status, told in (
        (npy(), 0, "z: f32"),
        (npy(version=3), 0, "z: f32"),
        (npy(version=4), 3, "version 4 of the format"),
        (npy()[:-1], 3, "truncated: 2 elements of 4 bytes are wanted, and 7 bytes"),
        (npy()[:30], 3, "its header does not end"),
        (npy(data=bytes(9)), 3, "bytes after the last"),
        (npy(shape="(8589934592, 1048576)"), 3, "truncated: 9007199254740992 elements"),
        (npy(shape="(-1, 2)"), 3, "'shape'"),
        (npy(shape="(1, 2"), 3, "'shape'"),
        (npy(order="Maybe"), 3, "'fortran_order'"),
        (npy(descr="|S1000000", shape="(99999999,)"), 3, "truncated"),
        (npy(descr=">f4"), 4, "elements of type '>f4'"),
        (npy().replace(b"shape", b"shope"), 3, "no 'shape'"),
        (npy(order="False" + " " * (2 << 20), version=2), 3, "header is too long"),
        (b"", 3, "not a .npy file"),
    ):
        (work / "odd.npy").write_bytes(data)
        says(
            status,
            told if status == 0 else rf"^odd\.npy: [^\n]*{re.escape(told)}[^\n]*\n$",
            "run",
            "sub.onnx",
            "--input",
            "odd.npy",
            "--input",
            "y.npy",
        )


def unwritten(asked):
    """What cannot be written."""
    says, work, env, ingot, failed = asked.says, asked.work, asked.env, asked.ingot, asked.failed
    # what cannot be written: the reason, and nothing is left of it; links and devices stay what
    # they are
    says(2, r"^ingot plan: diff A\.sched B\.sched is missing\n", "plan")
    for flags in (
        ("inspect", DIGITS, "-o"),
        ("compile", DIGITS, "-q", "-o", "out", "--save-sched"),
        ("compile", DIGITS, "-q", "-o", "out", "--depfile"),
        ("tune", "--database", "t.db", "--export"),
    ):
        says(6, r"no/such: No such file or directory\n", *flags, "no/such")
        (work / "there").write_text("before")
        (work / "link").unlink(missing_ok=True)
        (work / "link").symlink_to("there")
        says(0, "^$", *flags, "link")
        if not (work / "link").is_symlink() or (work / "there").read_text() == "before":
            failed.append(f"{flags}: the file behind a link is not written")
    os.mkfifo(work / "pipe")
    end = os.open(work / "pipe", os.O_RDWR | os.O_NONBLOCK)
    says(0, "^$", "compile", DIGITS, "-q", "-o", "out", "--depfile", "pipe")
    if not (work / "pipe").is_fifo() or b"ingot.manifest:" not in os.read(end, 65536):
        failed.append("a pipe is not written to")
    os.close(end)
    if pathlib.Path("/dev/full").is_char_device():
        for flags in (("--version",), ("targets",), ("inspect", DIGITS, "--json")):
            with open("/dev/full", "w") as full:
                status = subprocess.run(
                    [ingot, *flags], stdout=full, stderr=subprocess.DEVNULL, cwd=work, env=env
                ).returncode
            if status != 6:
                failed.append(f"{flags} to a full disk: status {status}")


def others(asked):
    """Files of other programs."""
    says, work = asked.says, asked.work
    # files of other programs
    for name, data, told in KINDS:
        (work / name).write_bytes(data)
        says(3, rf"^{name}: not an ONNX model but .*{told}", "compile", name, "-o", "out")
    for name, file, told in (
        ("d0", "saved_model.pb", "SavedModel"),
        ("d1.mlpackage", "Manifest.json", "Core ML"),
        ("d2", "model.onnx", "model.onnx"),
        ("d3", "config.json", "Hugging Face.*optimum-cli"),
        ("d4", "x", "folder"),
    ):
        (work / name).mkdir()
        (work / name / file).write_bytes(b"x")
        says(3, rf"^{name}: not an ONNX model but .*{told}", "compile", name, "-o", "out")


def slow_kernels(asked):
    """What has no fast form, and why."""
    says, work = asked.says, asked.work
    value = helper.make_tensor_value_info
    # what has no fast form, and why
    graph = helper.make_graph(
        [helper.make_node("Add", ["x", "x"], ["y"])],
        "g",
        [value("x", T.UINT32, [64, 64])],
        [value("y", T.UINT32, [64, 64])],
    )
    onnx.save(
        helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8),
        str(work / "u32.onnx"),
    )
    says(
        0,
        r"^  out: 1 kernels[^\n]*\n  out: k00_add_64x64, 100 % of the work, uses no vectors: there are no vectors of u32\n  out: for any processor[^\n]+\n$",
        "compile",
        "u32.onnx",
        "-o",
        "out",
    )


def progress(asked):
    """What takes long tells how far it is."""
    says, work, env, ingot, failed = asked.says, asked.work, asked.env, asked.ingot, asked.failed
    # what takes long tells how far it is: lines, or one line of a terminal; the compiler waits
    # until that was told. Silent with -q, and where the clock counts steps: there it takes
    # longer than any of these wait
    (work / "slow").write_text(
        '#!/bin/sh\ncase "$*" in *-c*) n=0; until [ -e "$0.told" ] || [ $n -ge $WAITS ]; do sleep 0.1; n=$((n + 1)); done; : >"$0.told" ;; esac\n'
        'exec cc "$@"\n'
    )
    (work / "slow").chmod(0o755)
    told = work / "slow.told"
    env |= {"CC": str(work / "slow"), "WAITS": "6000", "INGOT_CLOCK": ""}
    slow = ("run", "sub.onnx", "--input", "x.npy", "--input", "y.npy", "--no-cache")
    process = subprocess.Popen(
        [ingot, *slow], text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=work, env=env
    )
    line = process.stderr.readline()
    told.touch()
    text = process.communicate()[0]
    if not re.search(
        r"^  \S*slow compiles the model: \d\S* \S[^\n]*\n$", line
    ) or not text.startswith("z: f32"):
        failed.append(f"progress: {line}{text}")
    env["WAITS"] = "26"
    for more in {}, {"INGOT_CLOCK": "steps"}:
        told.unlink()
        env |= more
        says(0, r"^z: f32[^\n]*\n$", *slow, *([] if more else ["-q"]))
    told.unlink()
    env |= {"WAITS": "6000", "INGOT_CLOCK": ""}
    text = on_terminal([ingot, *slow], work, env, told)
    if (
        not re.search(
            rb"\r  \S*slow compiles the model: [^\r\n]*\x1b\[K.*\r\x1b\[K[^\r]*z: f32", text, re.S
        )
        or text.count(b"\n") != 1
    ):
        failed.append(f"progress on a terminal: {text}")
    del env["CC"], env["INGOT_CLOCK"]


def cache(asked):
    """The cache has a limit."""
    says, work, env, ingot, failed = asked.says, asked.work, asked.env, asked.ingot, asked.failed
    # the cache has a limit
    says(0, r"cache: [1-9]\d* models, \d+\.\d MB", "cache")
    says(2, r"a number of bytes is wanted", "cache", "--size", "lots")
    says(0, r"cache: 0 models, 0\.0 MB", "cache", "--size", "1k")
    env["INGOT_CACHE_SIZE"] = "1k"
    os.makedirs(work / "cache" / ("0" * 32))
    (work / "cache" / ("0" * 32) / "file").write_bytes(bytes(9000))
    os.utime(work / "cache" / ("0" * 32), (1, 1))
    (work / "cache/mine").write_text("not ingot's")
    says(0, "z:", "run", "sub.onnx", "--input", "x.npy", "--input", "y.npy")
    if (work / "cache" / ("0" * 32)).exists() or not (work / "cache/mine").exists():
        failed.append(
            "the cache: what was used least recently stays, or what is somebody else's goes"
        )
    says(0, r"cache: 1 models", "cache")
    says(0, r"cache: 0 models", "cache", "--clear")


def main():
    p = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    p.add_argument("--ingot", required=True)
    ingot = str(pathlib.Path(p.parse_args().ingot).resolve())
    with tempfile.TemporaryDirectory() as folder:
        asked = Asked(ingot, pathlib.Path(folder))
        for ask in (
            write_models,
            made,
            near_names,
            inputs,
            missing,
            arrays,
            unwritten,
            others,
            slow_kernels,
            progress,
            cache,
        ):
            ask(asked)
    for what in asked.failed:
        print("failed:", what)
    return 1 if asked.failed else 0


sys.exit(main())
