"""ingot.load(): compiled once, then taken from the cache.

A model's folder in the cache ($INGOT_CACHE, which `ingot run` uses too) is named by a hash of the
options, the compilers, the processor and the model: its path, or its bytes. `load.json` in it has
the files that were read, with their sizes and times; where one has changed, it is compiled again."""

import hashlib
import json
import os
import pathlib
import platform
import re
import shutil
import sys
import tempfile

from .build import build, c_compiler
from .command import arguments, compile, executable, text
from .model import Model

RECORD = "load.json"


def root():
    for name, below in (("INGOT_CACHE", ""), ("XDG_CACHE_HOME", "ingot"), ("HOME", ".cache/ingot")):
        if os.environ.get(name):
            return pathlib.Path(os.environ[name], below)
    return pathlib.Path(tempfile.gettempdir(), "ingot")


def stamp(path):
    try:
        st = os.stat(path)
    except OSError:
        return None
    return [st.st_size, st.st_mtime_ns]


def processor():
    """What c:native depends on."""
    try:
        lines = pathlib.Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.machine()
    words = ("model name", "flags", "Features", "CPU part", "stepping")
    return "\n".join(sorted({l for l in lines if l.startswith(words)}))


def as_bytes(model):
    if hasattr(model, "SerializeToString"):
        model = model.SerializeToString()
    return bytes(model) if isinstance(model, (bytes, bytearray, memoryview)) else None


def entry(model, data, options, cflags):
    """The folder for it, whether or not it is there."""
    program = executable()
    said = [
        hashlib.sha256(data).hexdigest()
        if data is not None
        else str(pathlib.Path(model).resolve()),
        arguments(options),
        [program, stamp(program)],
        [c_compiler(), shutil.which(c_compiler().split()[0]), cflags],
        processor(),
    ]
    name = hashlib.sha256(json.dumps(said).encode()).hexdigest()[:32]
    return root() / f"{name}-python"


def fresh(folder):
    """Is it complete, and has no file that it was made of changed?"""
    try:
        record = json.loads((folder / RECORD).read_text())
    except (OSError, ValueError):
        return False
    return all(stamp(path) == told for path, told in record.items())


def read_files(depfile):
    """What a rule of make says it depends on: "out/ingot.manifest: m.onnx m.data"."""
    words = depfile.read_text().replace("\\\n", " ").split(":", 1)[1]
    return [re.sub(r"\\(.)", r"\1", w) for w in re.split(r"(?<!\\)\s+", words.strip()) if w]


def fill(folder, model, data, options, cflags, tell):
    """Compiles and builds aside, then moves the result to its place."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    work = pathlib.Path(tempfile.mkdtemp(prefix=f"{folder.name}.partial-", dir=folder.parent))
    try:
        tell(f"compiling {model if data is None else 'the model'}")
        rule = work.with_suffix(".d")
        source = model if data is None else data
        notes = lambda line: tell(line.replace(f"{work / 'b'}: ", ""))
        compile(source, work / "b", depfile=rule, progress=notes, **options)
        files = read_files(rule) if data is None else []
        rule.unlink()
        build(work / "b", cflags, tell)
        record = {str(pathlib.Path(f).resolve()): stamp(f) for f in files}
        (work / "b" / RECORD).write_text(json.dumps(record))
        if folder.exists():
            shutil.rmtree(folder)
        os.replace(work / "b", folder)
    except OSError:
        if not fresh(folder):  # else another process was faster
            raise
    finally:
        work.with_suffix(".d").unlink(missing_ok=True)
        shutil.rmtree(work, ignore_errors=True)


def teller(progress):
    """None: lines on a terminal. True, False, or a function that is called with each line."""
    if callable(progress):
        return progress
    if progress or (progress is None and sys.stderr.isatty()):
        return lambda line: print(f"ingot: {line}", file=sys.stderr, flush=True)
    return lambda line: None


def load(
    model,
    target="native",
    threads=1,
    dim=None,
    *,
    cflags="-O3",
    seed=0,
    profile=False,
    on_device=False,
    stream=None,
    progress=None,
    cache=True,
    **options,
):
    """A model, ready to run: compiled and built when it is seen for the first time, afterwards taken
    from the cache.

        model = ingot.load("resnet18.onnx", threads=4)
        model = ingot.load(data, dim={"batch": (1, 8)})     # bytes, or an onnx.ModelProto
        model = ingot.load("out")                           # a folder that ingot.compile() wrote

    target: "native", this processor; "cuda:native"; else as `ingot compile --target` has it. dim:
    sizes that the file leaves open, a number or bounds (least, greatest). progress: True tells how
    far it is on standard error (None: if that is a terminal), a function is called with each line.
    cache=False compiles again. The other options are those of compile().
    """
    made = dict(threads=threads, cflags=cflags, seed=seed, profile=profile, on_device=on_device)
    data = as_bytes(model)
    if data is None and pathlib.Path(model).is_dir():
        return Model(model, stream=stream, progress=teller(progress), **made)
    told = {"target": "c:native" if target == "native" else text(target), "dim": dim, **options}
    folder = entry(model, data, told, cflags)
    if not cache or not fresh(folder):
        fill(folder, model, data, told, cflags, teller(progress))
    os.utime(folder)  # the cache drops what was used least recently
    loaded = Model(folder, stream=stream, **made)
    what = data if data is not None else str(pathlib.Path(model).resolve())
    loaded._again = (what, {"target": target, "dim": dim, **options})
    return loaded
