#!/usr/bin/env python3
"""Judges ingot from outside, on folders of cases in the ONNX backend-test layout.

    run.py --ingot build/ingot DIRS...          model.onnx, test_data_set_*/{input,output}_N.pb
                                                below DIRS

Ahead of time: `ingot compile` sees the model only; the bundle is built by make in a directory of
its own, warnings being errors; its driver runs on the data; outputs are compared as the data's own
runner does (rtol 1e-3, atol 1e-7, exact shapes and types; two units for 16-bit floats, one for 8,
integers and strings exact). An output that depends on drawn numbers, which each generator draws
otherwise, has to have type and shape, and what is known of its distribution: bounds, zeros and
ones, mean, variance and counts within 5 sigma, for each operator as drawn.py says; what is drawn
depends on the data set: Dropout that is not training, or whose ratio is 0, is exact. The summary
says how many cases had such an output. With --bind, what did not pass is tried again by `ingot run
--data`, which may bind inputs that decide shapes, and is counted apart.

With --build-only DIR what is built is left in DIR/suite/name, and nothing runs; with --programs DIR
that is run, and nothing is built: on a machine that has the device, but not what the compiler
needs.

With --emulate kernels of a CUDA target run without a GPU (tests/emulator/), from the first item on
and from the last, and what is asynchronous once as late and once as early as it may be; both have
to give the results.

With --interpret nothing is built: `ingot verify --interpret` runs the statements of the target's
kernels, and tells unwritten elements, races and accesses outside of buffers too; its rule for what
is equal holds (see its --help; drawn outputs are compared with the reference interpreter's only),
and cases whose inputs or outputs are no tensors are left out.

    passed    every data set agrees             refused   the compiler said that it cannot (status
                                                          4)
    failed    wrong output, or the bundle did not build or run, or a good model was called bad
    crash     a signal, a sanitizer report or an internal error, in the compiler or in the bundle

Exit status 1 when something crashed or a case named in --baseline (with --all, any) does not pass;
with --least also when one failed, or fewer passed than that share of those not refused for --apart.
"""

import argparse
import concurrent.futures
import functools
import hashlib
import json
import os
import pathlib
import random
import re
import shlex
import shutil
import sys
import tempfile
import time
import zlib

import onnx

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "emulator"))
import emulate  # noqa: E402
import joined  # noqa: E402
import objects  # noqa: E402
import values  # noqa: E402
from drawn import Drawn, may_draw  # noqa: E402
from process import SETTINGS, call, crashed, first_line, sanitized  # noqa: E402
from results import summary, table  # noqa: E402

CFLAGS = "-O1 -std=c99 -Wall -Wextra -Werror"
SANITIZE = "-g1 -fsanitize=address,undefined -fno-sanitize-recover=all"
REFUSED, INVALID, DIFFERS = (1, 4), 3, 7


class Stop(Exception):
    """A case ends here: its status, and why."""

    def __init__(self, status, reason):
        super().__init__(reason)
        self.status, self.reason = status, reason


# -- what an exit says -------------------------------------------------------------------------


def asked(done, stage):
    """Passes a good exit of ingot on; any other ends the case."""
    why = crashed(done)
    if why:
        raise Stop("crash", f"{stage}: {why}")
    if done.timed_out:
        raise Stop("failed", f"{stage}: timed out")
    if done.rc in REFUSED:
        raise Stop("refused", first_line(done.err))
    if done.rc == INVALID:
        raise Stop("failed", f"{stage}: called invalid: {first_line(done.err)}")
    if done.rc:
        raise Stop("failed", f"{stage}: status {done.rc}: {first_line(done.err)}")


def succeeded(done, stage):
    """The same for make and for the bundle's driver."""
    why = crashed(done)
    if why:
        raise Stop("crash", f"{stage}: {why}")
    if done.timed_out:
        raise Stop("failed", f"{stage}: timed out")
    if done.rc:
        raise Stop("failed", f"{stage}: {first_line(done.err)}")


# -- one case ---------------------------------------------------------------------------------


class Case:
    def __init__(self, folder):
        self.folder = folder
        self.name = f"{folder.parent.name}/{folder.name}"
        self.model = folder / "model.onnx"

    def sets(self):
        return sorted(
            self.folder.glob("test_data_set_*"), key=lambda p: int(p.name.rsplit("_", 1)[1])
        )

    @functools.cached_property
    def declared(self):
        """The value infos of the inputs that are no initializers, of all inputs, of the outputs."""
        g = onnx.load(self.model, load_external_data=False).graph
        weights = {t.name for t in g.initializer} | {t.values.name for t in g.sparse_initializer}
        return [v for v in g.input if v.name not in weights], list(g.input), list(g.output)

    def inputs(self, data):
        """(N, path, kind) of each input of a data set, N as the bundle counts."""
        free, every, _ = self.declared
        files = {int(p.stem.rsplit("_", 1)[1]): p for p in data.glob("input_*.pb")}
        order = every if files and max(files) >= len(free) else free
        for n, vi in enumerate(order):
            if n in files and vi in free:
                yield free.index(vi), files[n], vi.type.WhichOneof("value")

    def outputs(self, data):
        """(N, name, value) of each expected output."""
        for n, vi in enumerate(self.declared[2]):
            file = data / f"output_{n}.pb"
            if file.exists():
                yield n, vi.name, values.load_pb(file, vi.type.WhichOneof("value"))

    def sizes(self):
        """A --dim for each free dim of the inputs, with the bounds of its sizes in the data
        sets."""
        seen = {}

        def note(vi, declared, value):
            """A tensor's free dims; of a sequence those of its elements, and its length."""
            kind = declared.WhichOneof("value")
            if kind == "optional_type":
                seen.setdefault(f"{vi.name}_present", []).append(value is not None)
                note(vi, declared.optional_type.elem_type, value)
            elif kind == "sequence_type":
                seen.setdefault(vi.name, []).append(len(value or []))
                for i, v in enumerate(value or []):
                    note(vi, declared.sequence_type.elem_type, v)
                    for axis, size in enumerate(v.shape):
                        seen.setdefault(f"{vi.name}[{i}]_{axis}", []).append(size)
            elif kind == "tensor_type" and value is not None:
                t = declared.tensor_type
                ranked = t.HasField("shape")
                dims = (
                    t.shape.dim if ranked else [None] * (value.ndim if vi.type != declared else 0)
                )
                for axis, (dim, size) in enumerate(zip(dims, value.shape)):
                    if not ranked or not dim.HasField("dim_value") or dim.dim_value < 0:
                        name = dim.dim_param if ranked else ""
                        seen.setdefault(name or f"{vi.name}_{axis}", []).append(size)

        for data in self.sets():
            for n, file, kind in self.inputs(data):
                vi = self.declared[0][n]
                note(vi, vi.type, values.load_pb(file, kind))
        return [f"--dim={name}={int(min(s))}..{int(max(s))}" for name, s in seen.items()]

    @functools.cached_property
    def drawing(self):
        """The model if it may draw random numbers, else None."""
        model = onnx.load(self.model, load_external_data=False)
        return model if may_draw(model) else None

    def drawn(self, data):
        """What a data set draws, or None."""
        if not self.drawing:
            return None
        free = self.declared[0]
        return Drawn(
            self.drawing,
            {free[n].name: values.load_pb(file, kind) for n, file, kind in self.inputs(data)},
        )

    def by_statistics(self):
        """Whether an output of a data set is judged by its distribution."""
        return self.drawing is not None and any(self.drawn(data).outputs for data in self.sets())

    def tensors(self):
        """Whether all inputs and outputs are tensors."""
        free, _, out = self.declared
        return all(v.type.WhichOneof("value") == "tensor_type" for v in [*free, *out])

    def tolerance(self, opt):
        # the light networks' are told beside the real ones they stand for
        real = self.folder.parent.parent / "real" / self.folder.name
        told = [f / "data.json" for f in (self.folder, real) if (f / "data.json").exists()]
        own = json.loads(told[0].read_text()) if told else {}
        return {
            "rtol": own.get("rtol", opt.rtol),
            "atol": own.get("atol", opt.atol),
            "of_range": opt.tolerance_range,
        }


def compared(case, data, opt, get):
    worst, drawn, results = 0.0, case.drawn(data), {}
    for n, name, want in case.outputs(data):
        try:
            got = results[name] = get(n, want)
            if drawn:
                worst = max(worst, drawn.compare(name, got, want, results, **case.tolerance(opt)))
            else:
                worst = max(worst, values.compare(got, want, **case.tolerance(opt)))
        except values.Mismatch as e:
            raise Stop("failed", f"output {n} '{name}': {e}") from None
    return worst


def optimised(case, compiler, opt):
    """Whether the compiler optimises the case; without, it takes a quarter of the time."""
    by_clang = opt.sanitize and "clang" in compiler
    return not (by_clang or zlib.crc32(case.name.encode()) % opt.optimise)


def flags_for(case, compiler, opt):
    flags = f"{opt.cflags} {SANITIZE}" if opt.sanitize else opt.cflags
    return flags if optimised(case, compiler, opt) else f"{flags} -O0"


def build_and_run(case, bundle, work, compiler, opt):
    """make, then the driver on every data set; the largest error."""
    flags = flags_for(case, compiler, opt)
    made = bundle
    if len(opt.cc) > 1:
        made = work / "bundle-built"
        shutil.copytree(bundle, made)
    done = (objects.make if opt.wasm else objects.program)(
        made, compiler, flags, lambda words: call(words, opt.timeout, opt.env)
    )
    succeeded(done, "build")
    if opt.build_only:
        leave(made, opt.build_only / case.name)
        return 0.0
    program = ["node", made / "run.mjs"] if opt.wasm else [made / "model"]
    worst = run_on_all(case, program, environments(made, work, opt), work, opt)
    if made is not bundle:
        shutil.rmtree(made)
    return worst


def leave(made, to):
    """A program, and the weights that it opens beside it."""
    to.mkdir(parents=True)
    for file in (made / "model", *made.glob("*.weights")):
        shutil.copy(file, to)


def environments(bundle, work, opt):
    """Those that the program runs in."""
    if not opt.emulate:
        return [opt.env]
    folder = work / "emulated"
    shutil.rmtree(folder, ignore_errors=True)
    try:
        emulate.driver(bundle, folder)
    except emulate.Unbuilt as e:
        raise Stop("failed", f"emulated kernels: {first_line(str(e))}") from None
    return [dict(opt.env, **emulate.environment(folder, order)) for order in emulate.ORDERS]


def run_on_all(case, program, envs, work, opt):
    """The program in each environment on every data set; the largest error."""
    runs = [run_on(data, case, program, env, work, opt) for env in envs for data in case.sets()]
    return max([0.0, *runs])


def run_on(data, case, program, env, work, opt):
    """The program on a data set; the largest error."""
    inp, out = work / "in", work / "out"
    inp.mkdir()
    out.mkdir()
    for n, file, kind in case.inputs(data):
        values.save_npy(inp / f"input_{n}", values.load_pb(file, kind))
    succeeded(call([*program, inp, out], opt.timeout, env, cwd=work, limit_mb=opt.limit_mb), "run")
    worst = compared(case, data, opt, lambda n, want: values.load_npy(out / f"output_{n}", want))
    shutil.rmtree(inp)
    shutil.rmtree(out)
    return worst


def digest(case, bundle, opt):
    h = hashlib.blake2b(opt.fingerprint.encode(), digest_size=20)
    for root, pattern in (
        (bundle, "**/*"),
        (case.folder, "*.json"),
        (case.folder, "test_data_set_*/*"),
    ):
        for p in sorted(root.glob(pattern)):
            if p.is_file():
                h.update(f"\0{p.relative_to(root)}\0{p.stat().st_size}\0".encode())
                h.update(p.read_bytes())
    return h.hexdigest()


def ready(case, work, opt):
    """A program that an earlier run has left, on every data set; the largest error."""
    return run_on_all(case, [opt.programs / case.name / "model"], [opt.env], work, opt)


def emitted(case, work, opt):
    """The case's bundle."""
    bundle = work / "bundle"
    args = [opt.ingot, "compile", case.model, "-o", bundle]
    if opt.target:
        args += ["--target", opt.target]
    args += opt.compile_args + (
        case.sizes() if opt.data_dims else []
    )  # of a dim that is named twice the first counts
    asked(call(args, opt.timeout, opt.env, cwd=work, limit_mb=opt.limit_mb_ingot), "compile")
    return bundle


def result_file(case, bundle, opt):
    """Where the result of such a bundle is kept, if it is."""
    return opt.cache / "results" / f"{digest(case, bundle, opt)}.json" if opt.cache else None


def ahead_of_time(case, work, opt, program=None, seen=None):
    """`program` was made together with others; then `seen` is its bundle's result_file()."""
    bundle = None if program else emitted(case, work, opt)
    seen = seen if program else result_file(case, bundle, opt)
    if seen and seen.exists():
        old = json.loads(seen.read_text())
        if old["status"] != "passed":
            raise Stop(old["status"], old["reason"])
        return old["error"]
    entry = {"status": "passed", "reason": ""}
    try:
        if program:
            entry["error"] = run_on_all(case, [program], [opt.env], work, opt)
        else:
            entry["error"] = max([build_and_run(case, bundle, work, cc, opt) for cc in opt.cc])
    except Stop as e:
        entry.update(status=e.status, reason=e.reason)
        raise
    finally:
        if seen and "timed out" not in entry["reason"] and entry["status"] != "crash":
            part = seen.with_suffix(f".{os.getpid()}.{id(work)}")
            part.write_text(json.dumps(entry))
            part.rename(seen)
    return entry["error"]


def bound(case, work, opt):
    """`ingot run` on the data, which may bind inputs that decide shapes."""
    worst = 0.0
    for data in case.sets():
        out = work / "bound"
        args = [opt.ingot, "run", case.model, "--data", data, "--output-dir", out]
        if opt.target:
            args += ["--target", opt.target]
        env = dict(opt.env, XDG_CACHE_HOME=str(work / "cache"), HOME=str(work))
        done = call(args, 2 * opt.timeout, env, cwd=work, limit_mb=opt.limit_mb_ingot)
        if done.rc != DIFFERS:  # it judges by other rules than are used here
            asked(done, "ingot run")
        kinds = [v.type.WhichOneof("value") for v in case.declared[2]]

        def get(n, _):
            file = out / f"output_{n}.pb"
            return values.load_pb(file, kinds[n]) if file.exists() else None

        worst = max(worst, compared(case, data, opt, get))
        shutil.rmtree(out, ignore_errors=True)
    return worst


def interpreted(case, work, opt):
    """`ingot verify --interpret` on the data."""
    args = [
        opt.ingot,
        "verify",
        case.model,
        "--interpret",
        "-q",
        "--target",
        opt.target or "c",
    ] + opt.compile_args
    for data in case.sets():
        given = ["--data", data]
        if case.by_statistics():
            given = [f"--input={file}" for _, file, _ in sorted(case.inputs(data))]
        done = call(args + given, opt.timeout, opt.env, cwd=work, limit_mb=opt.limit_mb_ingot)
        if done.rc == DIFFERS:
            raise Stop("failed", first_line(done.err) or first_line(done.out))
        asked(done, "ingot verify")
    return 0.0


def attempt(step, case, opt, work=None):
    work = work or folder_for_case(opt)
    began = time.monotonic()
    try:
        if not case.sets():
            raise Stop("failed", "no test_data_set_*")
        result = {"status": "passed", "reason": "", "error": step(case, work, opt)}
    except Stop as e:
        result = {"status": e.status, "reason": e.reason}
    except Exception as e:  # a case the harness cannot digest must not end the run
        result = {"status": "failed", "reason": f"harness: {type(e).__name__}: {e}"}
    result["seconds"] = round(time.monotonic() - began, 3)
    # the paths of this run say nothing: a reason speaks of the bundle's files
    for prefix, short in (
        (str(case.folder) + "/", ""),
        (str(work) + "/", ""),
        ("bundle-built/", ""),
    ):
        result["reason"] = result["reason"].replace(prefix, short)
    if opt.keep and result["status"] != "passed":
        result["kept"] = str(work)
    else:
        shutil.rmtree(work, ignore_errors=True)
    return result


def folder_for_case(opt):
    return pathlib.Path(tempfile.mkdtemp(prefix="case-", dir=opt.work))


def made_together(cases, opt):
    """(folder, program, result_file) by the names of cases whose bundles could be compiled as one."""
    folders, files = {}, {}
    for case in cases:
        work = folder_for_case(opt)
        try:
            files[case.name] = result_file(case, emitted(case, work, opt), opt)
            if not files[case.name] or not files[case.name].exists():
                folders[case.name] = work
        except Exception:
            pass  # told, with the reason, when the case is judged by itself
        if case.name not in folders:
            shutil.rmtree(work, ignore_errors=True)
    programs = joined.programs(
        [work / "bundle" for work in folders.values()],
        opt.cc[0],
        flags_for(cases[0], opt.cc[0], opt),
        lambda words: call(words, opt.timeout * len(cases), opt.env),
    )
    found = {}
    for name, work in folders.items():
        if work / "bundle" in programs:
            found[name] = (work, programs[work / "bundle"], files[name])
        else:
            shutil.rmtree(work, ignore_errors=True)
    return found


def judge_some(cases, opt):
    """The results of cases that are optimised alike."""
    made = made_together(cases, opt) if len(cases) > 1 else {}
    return [judge(case, opt, *made.get(case.name, ())) for case in cases]


def judge(case, opt, work=None, program=None, seen=None):
    step = interpreted if opt.interpret else ready if opt.programs else ahead_of_time
    if program:
        step = functools.partial(ahead_of_time, program=program, seen=seen)
    result = {"name": case.name, **attempt(step, case, opt, work)}
    if opt.bind and result["status"] != "passed":
        result["bind"] = attempt(bound, case, opt)
    passed = "passed" in (result["status"], result.get("bind", {}).get("status"))
    result["drawn"] = passed and not opt.interpret and case.by_statistics()
    return result


# -- lists and options --------------------------------------------------------------------------


def read_list(path):
    if not path or not path.exists():
        return []
    return [s.strip() for s in path.read_text().splitlines() if s.strip() and not s.startswith("#")]


def bless(path, results):
    head = [s for s in path.read_text().splitlines() if s.startswith("#")] if path.exists() else []
    ran = {r["name"] for r in results}
    names = (set(read_list(path)) - ran) | {r["name"] for r in results if r["status"] == "passed"}
    path.write_text("".join(f"{s}\n" for s in head + sorted(names)))


# -- the run ----------------------------------------------------------------------------------


def folders_of_models(folder):
    for root, folders, files in os.walk(folder):
        if "model.onnx" in files:
            folders.clear()  # what lies below is its data
            yield root


def find_cases(dirs):
    found = {}
    for d in dirs:
        if not d.is_dir():
            sys.exit(f"run.py: {d}: no such folder")
        for folder in sorted(folders_of_models(d.absolute())):
            case = Case(pathlib.Path(folder))
            found.setdefault(case.name, case)
    return [found[k] for k in sorted(found)]


def fingerprint(opt):
    """What results depend on beside a case and its bundle."""
    here = pathlib.Path(__file__).resolve().parent
    versions = [call([*shlex.split(c), "--version"], 10).out.splitlines()[0] for c in opt.cc]
    sources = [here / f for f in ("run.py", "values.py", "drawn.py", "joined.py")] + (
        emulate.SOURCES if opt.emulate else []
    )
    return repr(
        [
            *(f.read_text() for f in sources),
            opt.cc,
            versions,
            opt.cflags,
            opt.optimise,
            opt.sanitize,
            opt.target,
            opt.rtol,
            opt.atol,
            opt.tolerance_range,
        ]
    )


def together(cases, opt):
    """Lists of cases that may be compiled as one; not so long that a job has none."""
    n = max(1, min(opt.together, len(cases) // opt.jobs))
    kinds = [[c for c in cases if optimised(c, opt.cc[0], opt) == kind] for kind in (False, True)]
    return [of_kind[i : i + n] for of_kind in kinds for i in range(0, len(of_kind), n)]


def options(argv):
    p = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    a = p.add_argument
    a("dirs", nargs="+", type=pathlib.Path, metavar="DIR")
    a("--ingot", type=pathlib.Path, default=pathlib.Path("build/ingot"))
    a("--jobs", type=int, default=os.cpu_count() or 2)
    a(
        "--cc",
        help="C compiler (gcc; for wasm clang), or several with commas: a case passes when it does with each",
    )
    a("--cflags", default=CFLAGS)
    a("--optimise", type=int, default=1, metavar="N", help="one case of N; -O0 for the others")
    a(
        "--together",
        type=int,
        default=32,
        metavar="N",
        help="compile the bundles of N cases as one, where that can be (joined.py)",
    )
    a("--sanitize", action="store_true", help="build the bundles with ASan and UBSan")
    a("--bind", action="store_true", help="try what did not pass again with `ingot run`")
    a(
        "--interpret",
        action="store_true",
        help="judge by `ingot verify --interpret`: for a target that this machine is not",
    )
    a("--emulate", action="store_true", help="run the kernels of a CUDA target without a GPU")
    a(
        "--build-only",
        type=pathlib.Path,
        metavar="DIR",
        help="leave the programs in DIR, run nothing",
    )
    a("--programs", type=pathlib.Path, metavar="DIR", help="run these, build nothing")
    a("--target", help="as ingot's --target")
    a("--dim", action="append", default=[], metavar="NAME=LO..HI", help="handed to ingot compile")
    a(
        "--data-dims",
        action="store_true",
        help="free dims that no --dim names get the sizes (or bounds) they have in the data",
    )
    a("--compile-arg", action="append", default=[], metavar="ARG", help="handed to ingot compile")
    a("--filter", metavar="REGEX", help="only cases whose suite/name matches")
    a("--list", type=pathlib.Path, metavar="FILE", help="only the cases named in FILE")
    a("--sample", type=int, metavar="N", help="only N of them, drawn by --seed")
    a("--seed", type=int, default=0)
    a("--rtol", type=float, default=1e-3)
    a("--atol", type=float, default=1e-7)
    a(
        "--tolerance-range",
        type=float,
        metavar="T",
        help="floats: largest error at most T of the output's range",
    )
    a("--timeout", type=float, default=240, help="seconds for each step of a case")
    a(
        "--limit-mb",
        type=int,
        default=8192,
        help="address space of what is not sanitized; 0 for no limit",
    )
    a(
        "--cache",
        type=pathlib.Path,
        metavar="DIR",
        help="remember results by bundle, data and compiler",
    )
    a(
        "--keep",
        type=pathlib.Path,
        metavar="DIR",
        help="leave the folders of what did not pass in DIR",
    )
    a("--out", type=pathlib.Path, metavar="FILE.md")
    a("--json", type=pathlib.Path, metavar="FILE.json")
    a("--baseline", type=pathlib.Path, metavar="FILE", help="cases that must pass, one a line")
    a("--all", action="store_true", help="all cases must pass, not only those of --baseline")
    a("--least", type=float, metavar="SHARE", help="none fails, and so many pass")
    a(
        "--apart",
        default="^$",
        metavar="REGEX",
        help="what is refused for this does not count for --least",
    )
    a("--bless", action="store_true", help="write what passed into --baseline")
    a("-v", "--verbose", action="store_true", help="a line for each case")
    opt = p.parse_args(argv)
    if opt.bless and not opt.baseline:
        p.error("--bless needs --baseline")
    opt.ingot = opt.ingot.absolute()
    if not opt.ingot.exists() and not opt.programs:
        p.error(f"{opt.ingot} does not exist")
    if opt.build_only and opt.cache:
        p.error("--build-only builds: there is no --cache")
    opt.wasm = (opt.target or "").startswith("c:wasm")
    opt.cc = (opt.cc or ("clang" if opt.wasm else "gcc")).split(",")
    if opt.wasm or opt.target or opt.interpret or opt.programs or opt.build_only or len(opt.cc) > 1:
        opt.together = 1
    opt.compile_args = [x for d in opt.dim for x in ("--dim", d)] + opt.compile_arg
    opt.env = dict(os.environ, **SETTINGS)
    opt.limit_mb_ingot = 0 if opt.programs or sanitized(opt.ingot) else opt.limit_mb
    if (
        opt.sanitize or opt.wasm or (opt.target or "c").split(":")[0] != "c"
    ):  # node maps more than it uses
        opt.limit_mb = 0
    for folder in ("build_only", "programs"):
        if getattr(opt, folder):
            setattr(opt, folder, getattr(opt, folder).absolute())
    if opt.cache:
        opt.cache = opt.cache.absolute()
        (opt.cache / "results").mkdir(parents=True, exist_ok=True)
    opt.fingerprint = fingerprint(opt)
    return opt


def main(argv=None):
    opt = options(argv)
    if opt.emulate and not emulate.CXX:
        print("skipped: no C++ compiler")
        return 0
    cases = find_cases(opt.dirs)
    if opt.filter:
        cases = [c for c in cases if re.search(opt.filter, c.name)]
    if opt.list:
        wanted = set(read_list(opt.list))
        cases = [c for c in cases if c.name in wanted]
    if opt.interpret:
        cases = [c for c in cases if c.tensors()]
    if opt.sample is not None and opt.sample < len(cases):
        cases = sorted(random.Random(opt.seed).sample(cases, opt.sample), key=lambda c: c.name)
    if not cases:
        sys.exit("run.py: no case found")

    began = time.monotonic()
    results = []
    with tempfile.TemporaryDirectory(prefix="ingot-onnx-") as scratch:
        opt.work = opt.keep.absolute() if opt.keep else scratch
        pathlib.Path(opt.work).mkdir(parents=True, exist_ok=True)
        with concurrent.futures.ThreadPoolExecutor(opt.jobs) as pool:
            lists = together(cases, opt)
            for r in (r for some in pool.map(lambda c: judge_some(c, opt), lists) for r in some):
                results.append(r)
                if opt.verbose:
                    told = r["reason"] or f"error {r['error']:.3g}"
                    also = (
                        f"  [bind: {r['bind']['status']} {r['bind']['reason']}]"
                        if "bind" in r
                        else ""
                    )
                    print(f"{r['status']:8} {r['name']}: {told}{also}", flush=True)
                elif len(results) % 200 == 0:
                    print(f"  {len(results)}/{len(cases)}", file=sys.stderr, flush=True)
    results.sort(key=lambda r: r["name"])
    summary(results, time.monotonic() - began)

    if opt.out:
        with opt.out.open("w") as f:
            table(results, f)
    if opt.json:
        opt.json.write_text(json.dumps(results, indent=1) + "\n")
    bad = [r for r in results if "crash" in (r["status"], r.get("bind", {}).get("status"))]
    by_name = {r["name"]: r for r in results}
    must = read_list(opt.baseline)
    lost = [by_name[n] for n in must if n in by_name and by_name[n]["status"] != "passed"]
    if opt.bless:
        bless(opt.baseline, results)
        lost = []
    elif must:
        ran = sum(n in by_name for n in must)
        print(f"baseline: {len(must)} cases, {ran} of them run, {len(lost)} lost")
    if opt.all:
        lost = [r for r in results if r["status"] != "passed"]
    if opt.least is not None:
        counted = [
            r for r in results if r["status"] != "refused" or not re.search(opt.apart, r["reason"])
        ]
        passed = sum(r["status"] == "passed" for r in counted)
        print(f"{passed} of {len(counted)} passed, {len(results) - len(counted)} apart")
        lost += [r for r in counted if r["status"] == "failed"]
        if passed < opt.least * len(counted):
            bad += [r for r in counted if r["status"] == "refused"]
    for r in lost:
        print(f"LOST {r['name']}: {r['status']}: {r['reason']}")
    for r in bad:
        print(
            f"{r['status'].upper()} {r['name']}: {r['reason']} {r.get('bind', {}).get('reason', '')}"
        )
    return 1 if bad or lost else 0


if __name__ == "__main__":
    sys.exit(main())
