"""A copy of the tree into which what a recipe of docs/recipes.md says is written, and nothing else.

Each file that a recipe's test touches has to be one that the recipe names: by its path, by its name, by a name with a <placeholder> or *; a new
one may lie in a folder that it names. So a door that the recipe forgets is found: either the test needs a file that the text lacks, or what
is tried at the end does not work.
"""

import fnmatch
import os
import pathlib
import re
import subprocess

TREE = pathlib.Path(__file__).resolve().parents[2]


def sections():
    """The recipes of docs/recipes.md by their headings."""
    parts = re.split(r"^### (.*)$", (TREE / "docs/recipes.md").read_text(), flags=re.M)
    return {
        parts[i]: re.split(r"^## ", parts[i + 1], flags=re.M)[0] for i in range(1, len(parts), 2)
    }


def named(text):
    """Patterns of the files in `backticks` and links of a text."""
    words = [
        w.strip("()")
        for m in re.finditer(r"`([^`]+)`|\]\(([^)#:\s]+)", text, re.S)
        for w in (m[1] or m[2]).split()
    ]
    return [re.sub(r"<\w+>", "*", w) for w in words if re.search(r"[./]", w)]


class Unnamed(Exception):
    """A file that the recipe does not name."""


class Tree:
    def __init__(self):
        files = subprocess.run(
            ["git", "ls-files", "-z", "-co", "--exclude-standard"],
            cwd=TREE,
            capture_output=True,
            text=True,
            check=True,
        )
        self.files = {
            f: (TREE / f).read_bytes()
            for f in sorted(files.stdout.split("\0"))
            if f and (TREE / f).is_file()
        }
        self.modes = {f: (TREE / f).stat().st_mode & 0o777 for f in self.files}
        self.recipes = sections()

    def follow(self, *headings):
        """What is written from here on is of these recipes."""
        self.patterns = [p for h in headings for p in named(self.recipes[h])]
        self.headings = headings

    def may_touch(self, path):
        for p in self.patterns:
            if p.endswith("/") and path not in self.files and fnmatch.fnmatchcase(path, p + "*"):
                return
            if fnmatch.fnmatchcase(path, p) or fnmatch.fnmatchcase(path, "*/" + p):
                return
        raise Unnamed(
            f"docs/recipes.md, {' and '.join(self.headings)}: it does not name {path}, which has to change"
        )

    def text(self, path):
        return self.files[path].decode()

    def new(self, path, text):
        self.may_touch(path)
        assert path not in self.files, f"{path} is there already"
        self.files[path] = text.encode()

    def insert(self, path, line, text, before=False):
        """A text behind (or before) the only line that has these words."""
        self.may_touch(path)
        lines = self.text(path).splitlines(keepends=True)
        at = [i for i, there in enumerate(lines) if line in there]
        assert len(at) == 1, f"{path}: {len(at)} lines have {line!r}"
        lines.insert(at[0] + (not before), text if text.endswith("\n") else text + "\n")
        self.files[path] = "".join(lines).encode()

    def append(self, path, text):
        self.may_touch(path)
        self.files[path] += text.encode()

    def replace(self, path, old, new):
        """Words within a line: a name behind others in a list."""
        self.may_touch(path)
        there = self.text(path)
        assert there.count(old) == 1, f"{path} has {old!r} {there.count(old)} times"
        self.files[path] = there.replace(old, new).encode()

    def write(self, folder):
        """The folder becomes this; what is there and the same stays as it is, so that it is not built again."""
        folder.mkdir(parents=True, exist_ok=True)
        for path, data in self.files.items():
            there = folder / path
            if not there.is_file() or there.read_bytes() != data:
                there.parent.mkdir(parents=True, exist_ok=True)
                there.write_bytes(data)
                there.chmod(self.modes.get(path, 0o644))
        for there in folder.rglob("*"):
            path = there.relative_to(folder).as_posix()
            if there.is_file() and path not in self.files and not path.startswith(".git/"):
                os.unlink(there)
