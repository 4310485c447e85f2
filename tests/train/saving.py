#!/usr/bin/env python3
"""Saved states are read again, whole or not at all.

    saving.py --ingot build/ingot     6 s of a core

    goes on    steps, save, load in another process's place, steps: the same bytes as without
    file       what lies there is a .safetensors file with the weights by their names
    refused    cut off anywhere, of another model, another type, one tensor too many: each is told,
               and nothing has changed
    killed     SIGKILL during saves: the file is an old one or a new one
    in C       as igrt_states.h shows it, with sanitizers, gcc and clang
    in C++     steps as methods: the losses that Python gets

Exit status 77, skipped: there is no numpy or no onnx.
"""

import argparse
import json
import os
import pathlib
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time

from training import FLOAT, Net, ingot, np


def mlp(path, hidden):
    net = Net(3)
    a = net.node("Gemm", ["x", net.weight("fc1.weight", 64, hidden), net.weight("a \"b\"", hidden)],
                 "a")  # fmt: skip
    r = net.node("Relu", [a], "r")
    net.node("Gemm", [r, net.weight("fc2.weight", hidden, 5)], "y")
    net.save(path, [("x", FLOAT, [4, 64])], [("y", FLOAT, [4, 5])])


def make(at, name, hidden):
    mlp(at / f"{name}.onnx", hidden)
    return ingot.compile(
        at / f"{name}.onnx", at / name, train=True, loss="cross_entropy:y", optimizer="adamw"
    )


def load(folder):
    return ingot.Model(folder, cflags="-O1")


def steps(model, begin, end):
    for i in range(begin, end):
        r = np.random.default_rng(i)
        model.step(r.standard_normal((4, 64)).astype(np.float32), r.integers(0, 5, 4), 0.01)


def bytes_of(model):
    return {name: x.tobytes() for name, x in model.states.items()}


def want(good, what):
    if not good:
        sys.exit(f"saving: {what}")


def goes_on(at):
    first, second = load(at / "net"), load(at / "net")
    steps(first, 0, 5)
    first.save(at / "five.safetensors")
    steps(first, 5, 9)
    second.load(at / "five.safetensors")
    steps(second, 5, 9)
    want(bytes_of(first) == bytes_of(second), "other bytes after save, load and four steps")


def file(at):
    data = (at / "five.safetensors").read_bytes()
    n = int.from_bytes(data[:8], "little")
    header = json.loads(data[8 : 8 + n])
    model = load(at / "net")
    model.load(at / "five.safetensors")
    want(set(header) == set(model.states), f"names: {sorted(header)}")
    want('a "b".m' in header and n % 8 == 0, "names or alignment")
    for name, x in model.states.items():
        begin, end = header[name]["data_offsets"]
        want(header[name]["shape"] == list(x.shape), f"{name}: dims")
        want(data[8 + n + begin : 8 + n + end] == x.tobytes(), f"{name}: bytes")


def refused(at):
    model, good = load(at / "net"), (at / "five.safetensors").read_bytes()
    steps(model, 0, 2)
    before = bytes_of(model)
    n = int.from_bytes(good[:8], "little")
    header = json.loads(good[8 : 8 + n])

    def changed(change, rest=good[8 + n :]):
        h = json.loads(json.dumps(header))
        rest = rest + (change(h) or b"")
        text = json.dumps(h).encode()
        return len(text).to_bytes(8, "little") + text + rest

    def rename(h):
        h["fc9.weight"] = h.pop("fc1.weight")

    def turn(h):
        h["fc1.weight"]["shape"].reverse()

    def retype(h):
        h["fc1.weight"]["dtype"] = "I32"

    def one_more(h):
        end = max(t["data_offsets"][1] for t in h.values())
        h["more"] = {"dtype": "U8", "shape": [3], "data_offsets": [end, end + 3]}
        return b"abc"

    other = load(make(at, "other", 6))
    other.save(at / "other.safetensors")
    files = [(good[:k], "") for k in (0, 7, 8, 100, 8 + n, 8 + n + 10, len(good) - 1)]
    files += [
        (good + b"x", ""),
        (changed(rename), "'fc1.weight' is missing"),
        (changed(turn), "'fc1.weight' is F32[8,64], and in the model F32[64,8]"),
        (changed(retype), "'fc1.weight' is I32[64,8], and in the model F32[64,8]"),
        (changed(one_more), "'more' is no state of this model"),
        ((at / "other.safetensors").read_bytes(), "'fc1.weight' is F32[64,6]"),
    ]
    for k, (data, told) in enumerate(files):
        (at / "bad").write_bytes(data)
        try:
            model.load(at / "bad")
        except ingot.FileError as e:
            want(told in str(e) and str(at / "bad") in str(e), f"file {k}: {e}")
        else:
            want(False, f"file {k} was not refused")
        want(bytes_of(model) == before, f"file {k} has changed something")
    try:
        model.save(at / "no such folder" / "x")
        want(False, "saved where there is no folder")
    except ingot.FileError as e:
        want("No such file" in str(e), str(e))


SAVER = """
import sys
sys.path[:0] = {path!r}
import ingot
m = ingot.Model({folder!r}, cflags="-O1")
x = m.states["train.step"]
while True:
    x += 1
    for s in m.states.values():
        s[...] = x
    m.save({file!r})
    print("saved", flush=True)
"""


def killed(at):
    """All elements of a file have one value, unless it has halves of two."""
    make(at, "large", 4000)
    model = load(at / "large")
    model.save(at / "kept")
    code = SAVER.format(path=sys.path, folder=str(at / "large"), file=str(at / "kept"))
    for k in range(6):
        child = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE)
        child.stdout.readline()
        time.sleep(random.Random(k).random() * 0.05)
        child.send_signal(signal.SIGKILL)
        child.communicate()
        model.load(at / "kept")
        values = {float(v) for x in model.states.values() for v in (x.min(), x.max())}
        want(len(values) == 1, f"a file of two saves: {values}")


PROGRAM = r"""
#include <stdio.h>
#include <string.h>
#include "igrt_states.h"
#include "model.h"
static _Alignas(64) unsigned char arena[MODEL_ARENA_BYTES(1)];
int main(int argc, char **argv)
{
    model_ctx ctx;
    model_config config = {.struct_size = sizeof config, .arena = arena, .arena_bytes = sizeof arena};
    igrt_state state[MODEL_STATES];
    char why[256];
    if (argc < 3 || model_init(&ctx, &config))
        return 1;
    for (int i = 0; i < MODEL_STATES; i++)
        if (model_state(&ctx, i, &state[i]))
            return 2;
    if (igrt_states_load(argv[1], state, MODEL_STATES, why, sizeof why) &&
        igrt_states_save(argv[2], state, MODEL_STATES, why, sizeof why))
        return 0;
    puts(why);
    return 3;
}
"""


def in_c(at):
    (at / "try.c").write_text(PROGRAM)
    for cc in ("gcc", "clang"):
        if not shutil.which(cc):
            continue
        sources = [*(at / "net").glob("*.c"), at / "net/host/igrt_states.c", at / "try.c"]
        flags = ["-Wall", "-Wextra", "-Werror", "-Wno-psabi"]
        flags += ["-pedantic"] if cc == "clang" else ["-fsanitize=address,undefined"]
        subprocess.run(
            [cc, "-std=c11", *flags, f"-I{at / 'net'}", f"-I{at / 'net/host'}", "-o", at / cc,
             *sources, "-lm"], check=True)  # fmt: skip
        subprocess.run([at / cc, at / "five.safetensors", at / "again"], check=True)
        want((at / "again").read_bytes() == (at / "five.safetensors").read_bytes(), f"{cc}: bytes")
        done = subprocess.run([at / cc, at / "bad", at / "again"], stdout=subprocess.PIPE)
        want(done.returncode == 3 and b"fc1.weight" in done.stdout, f"{cc}: {done.stdout}")


CPLUSPLUS = r"""
#include <cstdio>
#include "model.hpp"
int main()
{
    model::model net;
    float x[4*64], rate[1] = {0.01f}, loss[1];
    std::int64_t target[4] = {0, 1, 2, 3};
    for (int i = 0; i < 4*64; i++)
        x[i] = (float)(i % 7) - 3;
    model::train_step_inputs in;
    model::train_step_outputs out;
    in.x = x;
    in.target = target;
    in.rate = rate;
    out.loss = loss;
    for (int i = 0; i < 3; i++) {
        net.train_step(in, out);
        std::printf("%.9g\n", loss[0]);
    }
}
"""


def in_cpp(at):
    if not shutil.which("g++"):
        return
    (at / "try.cpp").write_text(CPLUSPLUS)
    subprocess.run(
        ["g++", "-std=c++17", "-Wall", "-Wextra", "-Werror", f"-I{at / 'net'}", "-o", at / "cpp",
         at / "try.cpp", at / "net/libmodel.so", f"-Wl,-rpath,{at / 'net'}"], check=True)  # fmt: skip
    said = subprocess.run([at / "cpp"], check=True, stdout=subprocess.PIPE).stdout.split()
    model, x = load(at / "net"), np.arange(256) % 7 - 3
    x = x.astype(np.float32).reshape(4, 64)
    losses = [model.step(x, np.arange(4), 0.01) for _ in range(3)]
    want([np.float32(v) for v in said] == losses, f"C++: {said}, {losses}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--ingot", required=True)
    os.environ["INGOT"] = parser.parse_args().ingot
    with tempfile.TemporaryDirectory() as folder:
        at = pathlib.Path(folder)
        make(at, "net", 8)
        for check in (goes_on, file, refused, killed, in_c, in_cpp):
            check(at)
    print("saving: good")


if __name__ == "__main__":
    main()
