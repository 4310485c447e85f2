"""Objects of bundles: what was compiled before, of the same sources by the same words, is laid into
the bundles that follow as if make had made it. The runtime and the driver are alike in every
bundle; so are the tables of models whose inputs and outputs are alike. The header that kernels
include first is laid beside them as gcc precompiles it, once the same is seen again: reading it
takes as long as most kernels. Likewise ar without the plugins that binutils finds for other
compilers, which cost more than the archive.

ccache knows such sources too, but starts a process for each, and takes longer for what it does not
know.

$INGOT_KEPT_OBJECTS is the folder that keeps them; without it they are kept for one process.
"""

import atexit
import collections
import functools
import hashlib
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import tempfile

OTHER_FILES = re.compile(
    rb"\.incbin|#\s*(embed|include\s+[^\s\"<])"
)  # of a source that is not all that is compiled
OFTEN = 3  # to precompile a header takes as long as to read it twice
seen = collections.Counter()  # precompiled headers that were wanted


@functools.lru_cache(maxsize=None)
def folder():
    told = os.environ.get("INGOT_KEPT_OBJECTS")
    if told:
        pathlib.Path(told).mkdir(parents=True, exist_ok=True)
        return pathlib.Path(told)
    made = tempfile.mkdtemp(prefix="ingot-objects-")
    atexit.register(shutil.rmtree, made, ignore_errors=True)
    return pathlib.Path(made)


@functools.lru_cache(maxsize=256)
def includes(text):
    """The files named in the text; None: it has others, too."""
    if OTHER_FILES.search(text):
        return None
    return [name.decode() for name in re.findall(rb'^#\s*include\s+"([^"]+)"', text, re.M)]


def closure(bundle, source):
    """The source and the bundle's headers that it includes, in the end; None: that is not all that
    it is made of."""
    seen, todo = {}, [source]
    while todo:
        file = todo.pop()
        if file in seen:
            continue
        seen[file] = file.read_bytes()
        names = includes(seen[file])
        if names is None:
            return None
        for name in names:
            found = next((f for f in (file.parent / name, bundle / name) if f.exists()), None)
            if found is None:
                return None
            todo.append(found)
    return seen


@functools.lru_cache(maxsize=None)
def archiver():
    """ar with gcc's plugin and no other; "ar" where that is not known."""
    try:
        plugin = subprocess.run(
            ["gcc", "-print-file-name=liblto_plugin.so"], capture_output=True, text=True
        ).stdout.strip()
        if (
            os.path.isabs(plugin)
            and not subprocess.run(
                ["ar", "--plugin", plugin, "--version"], capture_output=True
            ).returncode
        ):
            return f"ar --plugin {plugin}"
    except OSError:
        pass
    return "ar"


@functools.lru_cache(maxsize=None)
def is_gcc(cc):
    """Whether the compiler takes x.h.gch where x.h is included."""
    try:
        return (
            "Free Software Foundation"
            in subprocess.run(
                [*shlex.split(cc), "--version"], capture_output=True, text=True
            ).stdout
        )
    except OSError:
        return False


class Objects:
    """Those of one bundle under a compiler with its flags."""

    def __init__(self, bundle, cc, cflags, words):
        self.bundle, self.compiler, self.cc = bundle, cc, " ".join([cc, *words])
        self.makefile = (bundle / "Makefile").read_text()
        rules = re.findall(r"^(?:FLAGS|MACHINE) = (.*)", self.makefile, re.M)
        self.flags = f"{' '.join(rules)} {cflags}"
        self.missing = []

    def kept(self, files, suffix):
        """The name of what is made of these files."""
        h = hashlib.blake2b(f"{self.cc}\0{self.flags}".encode(), digest_size=20)
        for file in sorted(files):
            h.update(f"\0{file.relative_to(self.bundle)}\0".encode() + files[file])
        return folder() / (h.hexdigest() + suffix)

    def lay(self):
        """Those that are known go into the bundle; the others are for keep()."""
        for source in [*self.bundle.glob("*.c"), *self.bundle.glob("host/*.c")]:
            files = closure(self.bundle, source)
            if files:
                kept, made = self.kept(files, ".o"), source.with_suffix(".o")
                try:
                    shutil.copyfile(kept, made)
                except FileNotFoundError:
                    self.missing.append((made, kept))

    def lay_headers(self):
        """Those that kernels include first, precompiled; whether there are any."""
        for laid in self.bundle.glob("*.gch"):
            laid.unlink()  # of another compiler, or other flags
        kernels = (
            [(includes(f.read_bytes()) or [])[:1] for f in self.bundle.glob("*_kernels_*.c")]
            if is_gcc(self.compiler)
            else []
        )
        for name in {first for names in kernels for first in names if first.startswith("igrt_")}:
            kept = self.kept(closure(self.bundle, self.bundle / name), ".gch")
            seen[kept] += 1
            if seen[kept] == OFTEN and not kept.exists():
                part = kept.with_suffix(f".{os.getpid()}.{id(self)}")
                command = [
                    *shlex.split(f"{self.compiler} {self.flags}"),
                    "-x",
                    "c-header",
                    name,
                    "-o",
                    part,
                ]
                if subprocess.run(command, cwd=self.bundle, capture_output=True).returncode == 0:
                    part.rename(kept)
            if kept.exists():
                (self.bundle / f"{name}.gch").symlink_to(kept.absolute())
        return any(self.bundle.glob("*.gch"))

    def keep(self):
        for made, kept in self.missing:
            if made.exists():
                part = kept.with_suffix(f".{os.getpid()}.{id(made)}")
                shutil.copyfile(made, part)
                part.rename(kept)


def make(bundle, cc, cflags, run, *words):
    """`run` is called with the words of a make command."""
    o = Objects(bundle, cc, cflags, words)
    o.lay()
    if "\nAR ?= ar\n" in o.makefile and not any(word.startswith("AR=") for word in words):
        words += (f"AR={archiver()}",)
    # gcc forgets what a precompiled header's pragmas say of warnings
    told = f"{cflags} -Wno-psabi" if o.lay_headers() else cflags
    done = run(["make", "-s", "-C", bundle, f"CC={cc}", f"CFLAGS={told}", *words])
    o.keep()
    return done
