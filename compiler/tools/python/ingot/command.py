"""The ingot program, called as a user would: its options, messages and exit statuses are what is
documented.

It is a program of its own and no extension module, so one package serves every version of Python,
and a fault of the compiler does not end the interpreter."""

import os
import pathlib
import re
import shutil
import subprocess
import tempfile


class Error(Exception):
    """What the compiler said; status is its exit status (`ingot --help`)."""

    status = None


class UsageError(Error, ValueError):
    """An option is wrong."""

    status = 2


class InvalidModel(Error):
    """The model file is broken."""

    status = 3


class Unsupported(Error):
    """A valid model that is not supported."""

    status = 4


class ToolError(Error):
    """A program that ingot calls failed: the C compiler, make."""

    status = 5


class FileError(Error, OSError):
    """A file cannot be read or written."""

    status = 6


class InternalError(Error):
    """A fault of the compiler."""

    status = 70


class NoMemory(Error, MemoryError):
    """The compiler ran out of memory."""

    status = 71


ERRORS = {
    e.status: e
    for e in (UsageError, InvalidModel, Unsupported, ToolError, FileError, InternalError, NoMemory)
}


def executable():
    """The ingot program: $INGOT, the one of this package, or that of the PATH."""
    here = pathlib.Path(__file__).resolve().parent / "bin" / "ingot"
    for program in (
        os.environ.get("INGOT"),
        here if here.exists() else None,
        shutil.which("ingot"),
    ):
        if program:
            return str(program)
    raise Error("there is no ingot program: neither $INGOT nor one on the PATH")


def text(value):
    """A value of an option as the command line has it: (1, 8) is 1..8 where bounds are wanted, else
    1,8."""
    if isinstance(value, (str, os.PathLike)):
        return os.fspath(value)
    if hasattr(value, "tolist"):  # an array
        value = value.tolist()
    if isinstance(value, (list, tuple)):
        return ",".join(map(text, value))
    if isinstance(value, bool):
        return str(int(value))
    return repr(value) if isinstance(value, float) else str(value)


def arguments(options):
    """max_ram="256k", dim={"batch": (1, 8)}, memory=["dtcm=64k", "sram"], opt_level=0 as words of a
    command line."""
    words = []
    for name, value in options.items():
        flag = "--" + name.replace("_", "-")
        if value is None or value is False:
            continue
        if name == "opt_level":
            words.append(f"-O{value}")
        elif value is True:
            words.append(flag)
        elif isinstance(value, dict):
            for key, v in value.items():
                bounds = name == "dim" and isinstance(v, (tuple, range)) and len(v) >= 2
                words += [flag, f"{key}={f'{v[0]}..{v[-1]}' if bounds else text(v)}"]
        elif isinstance(value, (list, tuple)):
            for v in value:
                words += [flag, text(v)]
        else:
            words += [flag, text(value)]
    return words


def version():
    """What `ingot --version` prints, without the name: "0.1.0"."""
    done = subprocess.run([executable(), "--version"], capture_output=True, text=True, check=False)
    return done.stdout.split()[-1] if done.stdout.split() else "unknown"


def call(command, errors=None, tell=None):
    """Runs a program; returns what it wrote to standard error. errors: the exception for each exit
    status of ingot itself. tell: a function that is called with each line while the program runs;
    ingot writes one after 2, 4, 8 ... seconds."""
    try:
        started = subprocess.Popen(
            command,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            stdin=subprocess.DEVNULL,
            text=True,
            errors="replace",
        )
    except OSError as e:
        raise ToolError(f"{command[0]}: {e.strerror}") from None
    said = []
    with started:
        for line in started.stderr:
            said.append(line)
            if tell:
                tell(line.strip())
    if started.returncode:
        kind = errors.get(started.returncode, InternalError) if errors else ToolError
        raise kind("".join(said).strip() or f"{command[0]}: ended with status {started.returncode}")
    return "".join(said)


def in_python(message):
    """--dim n=1..16 as a Python programmer writes it."""
    found = re.findall(r"--dim '?([^'=]+)=(\d+)\.\.(\d+)", message)
    if not found:
        return message
    sizes = ", ".join(f'"{name}": ({lo}, {hi})' for name, lo, hi in found)
    return f"{message}; in Python: dim={{{sizes}}}"


def compile(model, out, *, progress=None, **options):
    """Writes `model` as a folder of C, as `ingot compile model -o out` does; returns its path.

    model: the path of an ONNX file, its bytes, or an onnx.ModelProto. Options have the names of the
    command line:

        ingot.compile("m.onnx", "out", name="net", target="c:native", dim={"batch": (1, 8), "seq":
                      128}, bind={"k": 5}, weights="blob", max_ram="256k", opt_level=0)

    progress: a function that is called with a line of text now and then while a large model is
    compiled. Warnings are issued as Python's. Raises InvalidModel, Unsupported, UsageError, FileError with
    the compiler's message.
    """
    out = pathlib.Path(out)
    with tempfile.TemporaryDirectory(prefix="ingot-") as work:
        if hasattr(model, "SerializeToString"):
            model = model.SerializeToString()
        if isinstance(model, (bytes, bytearray, memoryview)):
            file = pathlib.Path(work) / "model.onnx"
            file.write_bytes(model)
            model = file
        try:
            said = call(
                [executable(), "compile", os.fspath(model), "-o", str(out), *arguments(options)],
                ERRORS,
                progress,
            )
        except Error as e:
            raise type(e)(in_python(str(e).replace(f"{work}{os.sep}", ""))) from None
    for line in said.splitlines():
        if ": warning: " in line:
            import warnings

            warnings.warn(line, stacklevel=2)
    return out
