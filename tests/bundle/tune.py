#!/usr/bin/env python3
"""`ingot tune`: a search is checked, remembered, cut off at any instant, shared, and replayed to
the same bytes.

    tune.py --ingot build/ingot

    tuned      a search of a few steps writes a file that gives the same bytes anywhere and passes
               `ingot verify`; so does one that says in which way values are computed
    steps      by a clock that counts steps two searches are one: the same candidates, times and
               file; a clock of another kind is refused
    shared     what was timed of a layer in one network is not timed again in another
    threaded   tuned for one thread and for two: a section of the file each, and a build takes the
               one for its threads
    named      a file for c:native gives the same bytes by the name of what that is here, and every
               command tells of a file for another target
    chained    layouts that change together (a chain made up in the database) are timed, and stand
               or not as one decision
    replayed   a winner (made up in the database) changes its kernel and nothing else; another
               build's bytes are the same
    decided    what could as well be stored as computed again is timed both ways in the network,
               once; a file that says so (made up in the database) is replayed to the same bytes and
               passes `ingot verify`
    killed     kill -9 at 2 random instants (30 by `tests/run.sh all`), counted in the time that the
               search had a core: nothing that was timed is lost, and the search goes on; two at
               once
    counted    candidates timed by instructions, under qemu-aarch64, by the script of
               examples/tune_elsewhere (not where that is absent)
    elsewhere  candidates prepared, and timed by a command, in two pieces
    refused    wrong uses end in one line and their status
    silent     with -q only faults are told, and what --explain was asked for
    damaged    so does a database that is none, or is damaged: it is named, and stays as it is

Nothing here depends on how fast or how busy the machine is: budgets are counted in steps
(INGOT_CLOCK, docs/tune.md), and times are estimates.

Exit status 77, skipped: there is no Python with onnx, or ingot has no SQLite.
"""

import json
import re
import sqlite3
import subprocess
import sys

try:
    import numpy as np
    import onnx
    from run import Wrong, call, main
    from tune_faults import counted, damaged, elsewhere, killed, refused, silent
    from tuning import (
        TARGET,
        always,
        bundle,
        entries,
        environment,
        everywhere,
        model_file,
        remote,
        rows,
        sources,
        timed,
        trials,
        tune,
    )
except ModuleNotFoundError as e:
    print(f"skipped: {e}")
    sys.exit(77)


def named(ingot, work):
    """A file for c:native gives the same bytes by the name of what that was; a target that it is
    not for is named, by each command."""
    environment(work)
    model, here, file = model_file(work), everywhere(ingot, work), work / "named.sched"
    call(ingot, "compile", model, "-o", work / "there", "--target", here, "--sched", file)
    if here == "c:native":  # no machine of the list
        return
    if sources(work / "named") != sources(work / "there"):
        raise Wrong(f"{here} is not what c:native is")
    call(ingot, "compile", model, "-o", work / "old", *TARGET, "--sched", file)
    file.write_text(file.read_text().replace(here, "c:native"))
    done = subprocess.run(
        [ingot, "compile", model, "-o", work / "old", *TARGET, "--sched", file],
        text=True,
        stderr=subprocess.PIPE,
    )
    if "its decisions" in done.stderr or sources(work / "named") != sources(work / "old"):
        raise Wrong(f"a file that says c:native is none for it: {done.stderr}")
    file.write_text(file.read_text().replace("c:native", "c:x86-64-v2+cache7m"))
    shape = [d.dim_value for d in onnx.load(model).graph.input[0].type.tensor_type.shape.dim]
    np.save(work / "x.npy", np.ones(shape, np.float32))
    for command in ("compile", "inspect", "run", "bench", "verify"):
        flags = {
            "compile": ("-o", work / "other"),
            "inspect": ("--dump", "plan"),
            "run": ("--input", work / "x.npy"),
            "bench": ("--seconds", "0.01"),
        }.get(command, ())
        data = ("--no-cache",) if command in ("run", "bench", "verify") else ()
        for target, status, text in (
            (
                "c:native",
                0,
                f"its decisions are for target 'c:x86-64-v2+cache7m', and this is '{here}'",
            ),
            ("opencl", 2, "it has no section for target 'opencl'"),
        ):
            done = subprocess.run(
                [
                    str(c)
                    for c in (
                        ingot,
                        command,
                        model,
                        *flags,
                        *data,
                        "--target",
                        target,
                        "--sched",
                        file,
                    )
                ],
                text=True,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
            )
            if done.returncode != status or text not in done.stderr:
                raise Wrong(f"{command} --target {target}: {done.returncode} {done.stderr}")
    for name in (
        "c:x86-64-v4+cache",
        "c:x86-64-v4+cache1q",
        "c:x86-64-v4+cache1mm",
        "c:+halves",
        "c:x86-64-v4+cache1m+halves",
        "c:native+cache1m",
    ):
        done = subprocess.run(
            [ingot, "compile", model, "-o", work / "none", "--target", name],
            text=True,
            stderr=subprocess.PIPE,
        )
        if done.returncode != 2 or "unknown" not in done.stderr:
            raise Wrong(f"{name}: {done.returncode} {done.stderr}")
    print(here)


def ways(ingot, work):
    """As if the network had been faster with a convolution in fewer products."""
    call(
        ingot,
        "compile",
        model_file(work),
        "-o",
        work / "out",
        *TARGET,
        "--save-sched",
        work / "saved",
    )
    line = next(
        one
        for one in (work / "saved").read_text().splitlines()
        if "recomputed as direct" in one and "conv_0" in one
    )
    with sqlite3.connect(work / "tune.db") as db:
        if (
            db.execute(
                "UPDATE outcome SET text=? WHERE text NOT LIKE 'sched 2%' AND text NOT LIKE '#%'",
                (line.replace("recomputed as direct", "as winograd2") + "\n",),
            ).rowcount
            < 1
        ):
            raise Wrong("what was found of the ways to compute values is not remembered")
    file = work / "ways.sched"
    tune(ingot, work, "-o", file, "--budget", "0")
    if "as winograd2" not in file.read_text():
        raise Wrong("the file does not say how the value is computed")
    here = bundle(ingot, work, "here", "--sched", file)
    if here == bundle(ingot, work, "without") or here != bundle(
        ingot, work, "there", "--sched", file
    ):
        raise Wrong("the file does nothing, or another thing elsewhere")
    call(ingot, "verify", model_file(work), "--sched", file)


def tuned(ingot, work):
    file = work / "tuned.sched"
    timed(
        ingot,
        work,
        3,
        "-o",
        file,
        "--beam",
        "2",
        "-v",
        told=("Conv conv_0: direct", "    winograd2 "),
    )
    tune(ingot, work, "-o", work / "again.sched", "--budget", "0")
    if (work / "again.sched").read_text() != file.read_text():
        raise Wrong("the database knows another outcome")
    if bundle(ingot, work, "here", "--sched", file) != bundle(
        ingot, work, "there", "--sched", file
    ):
        raise Wrong("another bundle")
    call(ingot, "verify", model_file(work), "--sched", file)
    ways(ingot, work)
    text = tune(ingot, work, "--budget", "0", "--explain")
    if "the compiler's choice:" not in text or "tried:" not in text:
        raise Wrong(f"--explain tells nothing:\n{text}")
    print(f"{len(trials(ingot, work))} candidates")


def steps(ingot, work):
    found = []
    for _ in range(2):
        file = work / "steps.sched"
        tune(ingot, work, "-o", file, "--budget", "4s", "--beam", "1")
        found.append((file.read_text(), entries(ingot, work)))
        (work / "tune.db").unlink()
    if found[0] != found[1] or not any(e.get("ns", 0) > 0 for e in found[0][1]):
        raise Wrong(f"two searches differ, or timed nothing: {found[0]}\n{found[1]}")
    if "INGOT_CLOCK=sun: 'steps' is wanted" not in tune(
        ingot, work, "-o", file, good=(2,), INGOT_CLOCK="sun"
    ):
        raise Wrong("any clock is taken")
    print(f"{len(found[0][1])} entries, twice")


def shared(ingot, work):
    def known(*_):
        return rows(work, "SELECT * FROM region WHERE name LIKE '%winograd2, not%'")

    flags = ("--beam", "1", "-v", "-o", work / "x.sched")
    timed(ingot, work, 4, *flags, done=known)
    before = known()
    text = timed(
        ingot, work, 4, *flags, told=("    winograd2 ",), done=known, model=model_file(work, "b")
    )
    if before != known():
        raise Wrong(f"the convolution's other ways are timed again: {before} {known()}\n{text}")
    print(f"{len(before)} ways")


def threaded(ingot, work):
    file = work / "threads.sched"
    tune(ingot, work, "-o", file, "--budget", "2s", "--beam", "1", "--threads", "1,2")
    targets = [line for line in file.read_text().splitlines() if line.startswith("target ")]
    if targets != [f"target {everywhere(ingot, work)}{threads}" for threads in ("", " threads 2")]:
        raise Wrong(f"not a section for each: {targets}")
    with sqlite3.connect(
        work / "tune.db"
    ) as db:  # by how many threads the network was run counts for what came of it
        if (
            len(
                {
                    " threads 2\n" in text
                    for (text,) in db.execute("SELECT text FROM outcome WHERE text LIKE 'sched 2%'")
                }
            )
            != 2
        ):
            raise Wrong("one thread's outcome stands for two")
    tune(ingot, work, "-o", work / "again.sched", "--budget", "0", "--threads", "1,2")
    if (work / "again.sched").read_text() != file.read_text():
        raise Wrong("the database knows another outcome")
    call(
        ingot,
        "compile",
        model_file(work),
        "-o",
        work / "out",
        *TARGET,
        "--save-sched",
        work / "saved",
    )
    line = next(
        one
        for one in (work / "saved").read_text().splitlines()
        if "recomputed as direct" in one and "conv_0" in one
    )
    both = []
    for word, way in (("", "recomputed as direct"), (" threads 2", "as winograd2")):
        both.append(
            f"sched 2\ntarget c:native{word}\n{line.replace('recomputed as direct', way)}\n"
        )
        (work / way.replace(" ", "_")).write_text(both[-1].replace(word, "") if word else both[-1])
    file.write_text("".join(reversed(both)))
    direct, other = (
        bundle(ingot, work, "alone", "--sched", work / one)
        for one in ("recomputed_as_direct", "as_winograd2")
    )
    taken = [
        bundle(ingot, work, "both", "--sched", file, *flags)
        for flags in ((), ("--threads", "1"), ("--threads", "2"), ("--threads", "8"))
    ]
    if direct == other or taken != [direct, direct, other, other]:
        raise Wrong("another section is taken")
    call(ingot, "verify", model_file(work), "--sched", file, "--threads", "2")
    file.write_text("".join(both).replace("threads 2", "threads 0"))
    done = subprocess.run(
        [ingot, "compile", model_file(work), "-o", work / "out", *TARGET, "--sched", file],
        text=True,
        stderr=subprocess.PIPE,
    )
    if (
        done.returncode != 2
        or "threads.sched:5: 'target NAME [function NAME] threads N' is wanted" not in done.stderr
    ):
        raise Wrong(f"a section for no threads: {done.returncode} {done.stderr}")
    print(f"{len(targets)} sections")


def planned(ingot, work, *flags, model):
    """How many plans were made to see what decisions change."""
    return int(re.search(r"; (\d+) plans\)", tune(ingot, work, *flags, "-v", model=model)).group(1))


def decided(ingot, work):
    model, file = model_file(work, "c"), work / "decided.sched"
    text = timed(
        ingot,
        work,
        12,
        "-o",
        file,
        "--beam",
        "1",
        "--explain",
        told=("timed the other way round",),
        done=always,
        model=model,
    )
    about = [
        line
        for line in text.splitlines()
        if "Exp" in line and line.endswith((", not stored", ", not recomputed"))
    ]
    if len(about) != 1:
        raise Wrong(f"the exponential was not tried the other way round:\n{text}")
    with sqlite3.connect(
        work / "tune.db"
    ) as db:  # as if that had been faster: not seen in the network, perhaps,
        if (
            db.execute(
                "UPDATE region SET ns=base_ns/10, noise=0 WHERE name=?", (about[0].strip(),)
            ).rowcount
            != 1
        ):
            raise Wrong("what was timed is not remembered")
    tune(ingot, work, "-o", file, "--budget", "0", model=model)
    with sqlite3.connect(work / "tune.db") as db:  # but as if it had been
        if (
            db.execute(
                "UPDATE outcome SET text='# decisions that stand' WHERE text LIKE '# decisions that %'"
            ).rowcount
            != 1
        ):
            raise Wrong("what came of it in the network is not remembered")
    known = planned(ingot, work, "-o", file, "--budget", "0", model=model)
    if known:
        raise Wrong(f"{known} plans are made to see what is known")
    with sqlite3.connect(work / "tune.db") as db:  # of another ingot, or another plan
        if (
            db.execute(
                "UPDATE outcome SET key='of another ' || key WHERE text LIKE '# %, taken %' OR text='# no plan'"
            ).rowcount
            < 1
        ):
            raise Wrong("what decisions change is not remembered")
    if (
        not planned(ingot, work, "-o", work / "anew.sched", "--budget", "0", model=model)
        or (work / "anew.sched").read_text() != file.read_text()
    ):
        raise Wrong("what another ingot knew is believed, or the plans tell another thing")
    text = tune(ingot, work, "-o", file, "--budget", "0", "--explain", model=model)
    if "decided so" not in text or "timed the other way round" in text:
        raise Wrong(f"it is timed again, or does not stand:\n{text}")
    then = " stored  #" if "stored, not" in about[0] else " recomputed  #"
    lines = file.read_text().splitlines()
    if (
        not any(line.startswith("value ") and then in line for line in lines)
        or f"# {about[0].strip()}" not in file.read_text()
    ):
        raise Wrong("the file does not say how it is decided:\n" + "\n".join(lines))
    here = bundle(ingot, work, "here", "--sched", file, model=model)
    if here == bundle(ingot, work, "without", model=model) or here != bundle(
        ingot, work, "there", "--sched", file, model=model
    ):
        raise Wrong("the file does nothing, or another thing elsewhere")
    call(ingot, "verify", model, "--sched", file)
    known = entries(ingot, work)
    call(ingot, "tune", "--database", work / "other.db", "--import", work / "exported")
    if known != entries(ingot, work, "other.db") or not any("region" in e for e in known):
        raise Wrong("what was timed is not exported, or not imported")
    print(about[0].strip())


def layout_lines(saved):
    """Of the first two results that do not lie as the model has them: entries that say they do."""
    out = []
    for entry in saved.split("\nkernel ")[1:]:
        head, *rest = entry.splitlines()
        arg = next(
            (line for line in rest if line.startswith("  arg 0 layout ") and "permute" in line),
            None,
        )
        if arg:
            pads = (
                " ".join(word for word in arg.split("#")[0].split()[3:] if word.startswith("pad("))
                or "dense"
            )
            out.append(f"kernel {head}\n  arg 0 layout {pads}\n  auto\n")
    return out[:2]


def chained(ingot, work):
    model, file = model_file(work, "d"), work / "chained.sched"
    call(ingot, "compile", model, "-o", work / "out", *TARGET, "--save-sched", work / "saved")
    lines = layout_lines((work / "saved").read_text())
    if len(lines) != 2:
        raise Wrong("no two results that could lie otherwise")
    timed(
        ingot,
        work,
        12,
        "-o",
        file,
        "--beam",
        "1",
        done=lambda *_: rows(work, "SELECT * FROM outcome WHERE text LIKE '# chains of layouts%'"),
        model=model,
    )
    with sqlite3.connect(
        work / "tune.db"
    ) as db:  # as if the least sum had these two the other way round
        n = db.execute(
            "UPDATE outcome SET text=? WHERE text LIKE '# chains of layouts%'",
            ("# chains of layouts\n" + "".join(lines) + "\n",),
        ).rowcount
        db.execute("DELETE FROM region")
        db.execute(
            "DELETE FROM outcome WHERE text LIKE '# decisions that %' OR text LIKE 'sched 2%'"
        )
    if n < 1:
        raise Wrong("what should change together was not looked for")
    text = timed(
        ingot,
        work,
        12,
        "-o",
        file,
        "--beam",
        "1",
        "--explain",
        told=("layouts together",),
        model=model,
        done=lambda *_: rows(work, "SELECT * FROM region WHERE name LIKE 'layouts together%'"),
    )
    with sqlite3.connect(work / "tune.db") as db:
        db.execute("UPDATE region SET ns=base_ns, noise=0")
        if (
            db.execute(
                "UPDATE region SET ns=base_ns/10 WHERE name LIKE 'layouts together%'"
            ).rowcount
            < 1
        ):
            raise Wrong(f"they were not timed:\n{text}")
        db.execute(
            "DELETE FROM outcome WHERE text LIKE '# decisions that %' OR text LIKE 'sched 2%'"
        )
    tune(ingot, work, "-o", file, "--budget", "0", model=model)
    with sqlite3.connect(work / "tune.db") as db:
        if (
            db.execute(
                "UPDATE outcome SET text='# decisions that stand' WHERE text LIKE '# decisions that %'"
            ).rowcount
            < 1
        ):
            raise Wrong("what came of it in the network is not remembered")
    tune(ingot, work, "-o", file, "--budget", "0", model=model)
    keys = [line.split()[1] for line in lines]
    if not all(f"kernel {key}" in file.read_text() for key in keys):
        raise Wrong("the file does not speak of both:\n" + file.read_text())
    here = bundle(ingot, work, "here", "--sched", file, model=model)
    if here == bundle(ingot, work, "without", model=model) or here != bundle(
        ingot, work, "there", "--sched", file, model=model
    ):
        raise Wrong("the file does nothing, or another thing elsewhere")
    call(ingot, "verify", model, "--sched", file)
    print("2 results")


# What --remote calls: the folder is copied, built there and run.
def replayed(ingot, work):
    """As if a candidate were ten times as fast; a remote machine's word is not checked in the
    network."""

    def others(ingot, work):  # than the compiler's own choice
        return [
            e
            for e in entries(ingot, work)
            if e.get("verdict") == "right"
            and "ns" in e
            and "UPCAST" in e["opts"]
            and e["ns"] != e["base_ns"]
        ]

    timed(
        ingot,
        work,
        2,
        *remote(work),
        "-o",
        work / "first.sched",
        "--beam",
        "2",
        "--kernels",
        "k01*",
        done=others,
    )
    known, best = entries(ingot, work), others(ingot, work)
    known[known.index(best[-1])]["ns"] = best[-1]["base_ns"] / 10
    (work / "edited").write_text("".join(json.dumps(e) + "\n" for e in known))
    (work / "tune.db").unlink()
    tune(
        ingot,
        work,
        "--import",
        work / "edited",
        *remote(work),
        "-o",
        work / "won.sched",
        "--budget",
        "0",
    )
    text = (work / "won.sched").read_text()
    if text.count("kernel ") != 1 or not all(
        opt in text for opt in best[-1]["opts"].split("; ") if opt.startswith("UPCAST")
    ):
        raise Wrong(f"the winner is not in the file:\n{text}\n{best[-1]}")
    without, here = (
        bundle(ingot, work, "without"),
        bundle(ingot, work, "here", "--sched", work / "won.sched"),
    )
    if without == here or here != bundle(ingot, work, "there", "--sched", work / "won.sched"):
        raise Wrong("the file does nothing, or another thing elsewhere")
    call(ingot, "verify", model_file(work), "--sched", work / "won.sched")
    # an equal kernel of another network
    tune(
        ingot,
        work,
        *remote(work),
        "-o",
        work / "other.sched",
        "--budget",
        "0",
        model=model_file(work, "b"),
    )
    done = subprocess.run(
        [
            ingot,
            "compile",
            model_file(work),
            "-o",
            work / "c",
            "--target",
            "c:x86-64-v2",
            "--sched",
            work / "won.sched",
        ],
        text=True,
        stderr=subprocess.PIPE,
    )
    if everywhere(ingot, work) not in done.stderr or "c:x86-64-v2" not in done.stderr:
        raise Wrong(f"nothing is told of the other machine:\n{done.stderr}")
    print(best[-1]["opts"])


if __name__ == "__main__":
    sys.exit(
        main(
            __doc__,
            {
                f.__name__: f
                for f in (
                    tuned,
                    steps,
                    shared,
                    threaded,
                    named,
                    decided,
                    chained,
                    replayed,
                    killed,
                    counted,
                    elsewhere,
                    refused,
                    silent,
                    damaged,
                )
            },
        )
    )
