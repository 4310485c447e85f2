"""What somebody has who knows the docs alone: a folder with the tree's examples/, and ingot and
python3 on the PATH. For the blocks of the docs (docs_run.py) and for tests/tasks."""

import contextlib
import os
import pathlib
import subprocess
import sys
import tempfile

TREE = pathlib.Path(__file__).resolve().parents[1]


@contextlib.contextmanager
def folder(ingot):
    """What runs a command there, and gives what it did, its two outputs as one text."""
    with tempfile.TemporaryDirectory(prefix="ingot-newcomer-") as work:
        work = pathlib.Path(work)
        (work / "bin").mkdir()
        (work / "bin/ingot").symlink_to(ingot.resolve())
        python = work / "bin/python3"  # no link: a virtual environment is found by the path
        python.write_text(f'#!/bin/sh\nexec "{sys.executable}" "$@"\n')
        python.chmod(0o755)
        (work / "examples").symlink_to(TREE / "examples")
        env = dict(os.environ, INGOT=str(ingot.resolve()), INGOT_CACHE=str(work / "cache"))
        env["PATH"] = f"{work / 'bin'}:{env['PATH']}"
        env["PYTHONPATH"] = str(TREE / "compiler/tools/python")

        def run(command, **more):
            return subprocess.run(
                command,
                cwd=work,
                env={k: v for k, v in (env | more).items() if v is not None},
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                check=False,
            )

        yield run
