"""Objects of bundles: what was compiled before, of the same sources by the same words, is laid into
the bundles that follow as if make had made it. The runtime and the driver are alike in every
bundle; so are the tables of models whose inputs and outputs are alike. The header that kernels
include first is laid beside them as gcc precompiles it, once the same is seen again: reading it
takes as long as most kernels. Likewise ar without the plugins that binutils finds for other
compilers, which cost more than the archive.

ccache knows such sources too, but starts a process for each, and takes longer for what it does not
know.

program() is for those who want to run a bundle and not to look at how it is built: no make and no
archive, and the model's own sources are compiled as one, in half the time:

    table.c  model.c  model_init.c  model_kernels_0.c   ->  whole_model.c, which includes them

$INGOT_KEPT_OBJECTS is the folder that keeps them; without it they are kept for one process.
"""

import atexit
import collections
import functools
import glob
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


class Files(dict):
    """The texts of a bundle's sources and of their headers, which lie beside them."""

    def __init__(self, bundle):
        folders = (bundle, bundle / "host")
        places = [pathlib.Path(f) for folder in folders for f in glob.iglob(f"{folder}/*.[ch]")]
        super().__init__((f, f.read_bytes()) for f in places)
        self.bundle, self.found = bundle, {}
        self.by_name = {str(f): f for f in places}  # to join paths takes longer than the rest

    def included(self, file):
        """Those that the file includes; None: it includes others, too."""
        if file not in self.found:
            names, find = includes(self[file]), self.by_name.get
            places = names and [
                find(f"{file.parent}/{name}") or find(f"{self.bundle}/{name}") for name in names
            ]
            self.found[file] = None if places and None in places else places
        return self.found[file]


def closure(source, texts):
    """The source and the bundle's headers that it includes, in the end, of these Files; None: that
    is not all that it is made of."""
    seen, todo = {}, [source]
    while todo:
        file = todo.pop()
        if file not in seen:
            seen[file] = texts[file]
            more = texts.included(file)
            if more is None:
                return None
            todo += more
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


def changes_objects(word):
    """Whether a word of a make command is for compiling, and not for what is made of objects."""
    name, value, _ = word.partition("=")
    return bool(value) and name not in ("LDFLAGS", "LDLIBS", "AR")


class Objects:
    """Those of one bundle under a compiler with its flags."""

    def __init__(self, bundle, cc, cflags, words):
        self.bundle, self.compiler = bundle, cc
        self.cc = " ".join([cc, *(w for w in words if changes_objects(w))])
        self.makefile = (bundle / "Makefile").read_text()
        rules = re.findall(r"^(?:FLAGS|MACHINE) = (.*)", self.makefile, re.M)
        self.flags = f"{' '.join(rules)} {cflags}"
        anywhere = re.search(r"^\$\(DRIVER\).*: MACHINE =$", self.makefile, re.M)
        self.flags_of_driver = f"{' '.join(rules[:1] if anywhere else rules)} {cflags}"
        self.missing = []
        self.texts = Files(bundle)

    def kept(self, files, suffix, flags=None):
        """The name of what is made of these files."""
        h = hashlib.blake2b(f"{self.cc}\0{flags or self.flags}".encode(), digest_size=20)
        for file in sorted(files):
            h.update(f"\0{file.relative_to(self.bundle)}\0".encode() + files[file])
        return folder() / (h.hexdigest() + suffix)

    def lay(self):
        """Those that are known go into the bundle; the others are for keep()."""
        for source in [f for f in self.texts if f.suffix == ".c"]:
            files = closure(source, self.texts)
            if files:
                flags = self.flags_of_driver if source.parent.name == "host" else None
                kept, made = self.kept(files, ".o", flags), source.with_suffix(".o")
                try:
                    shutil.copyfile(kept, made)
                except FileNotFoundError:
                    self.missing.append((made, kept))

    def lay_headers(self):
        """Those that kernels include first, precompiled; whether there are any."""
        for laid in self.bundle.glob("*.gch"):
            laid.unlink()  # of another compiler, or other flags
        kernels = (
            [
                (includes(text) or [])[:1]
                for f, text in self.texts.items()
                if "_kernels_" in f.name and f.suffix == ".c"
            ]
            if is_gcc(self.compiler)
            else []
        )
        for name in {first for names in kernels for first in names if first.startswith("igrt_")}:
            kept = self.kept(closure(self.bundle / name, self.texts), ".gch")
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


# ---- a program, without make -----------------------------------------------------------------

# Sources of every bundle, or of many: each is compiled by itself, and kept.
SHARED = re.compile(r"host/(driver|igrt_|main\.)|\w+_igrt(_|\.)")
DRIVER = re.compile(r"host/(driver|igrt_|main\.)")
NOT_OF_DRIVER = re.compile(r"-([gO]|W(?![lap],)|pedantic|march=native|mavx|mfma|s$)")
WHOLE = "whole_model.c"


@functools.lru_cache(maxsize=256)
def split(text):
    """The words of a line that goes on for several; a tuple, for all who ask."""
    return tuple(shlex.split(text.replace("\\\n", " ")))


def listed(makefile, name):
    """The words of a variable of the Makefile, which may go on for several lines."""
    found = re.search(rf"^{name} \??= *((?:.*\\\n)*.*)", makefile, re.M)
    return list(split(found[1])) if found else []


@functools.lru_cache(maxsize=None)
def linker(cc):
    """Words that have the compiler link by gold, which takes half as long, where it can."""
    try:
        done = subprocess.run(
            [*shlex.split(cc), "-fuse-ld=gold", "-Wl,--version"], capture_output=True, text=True
        )
        return ["-fuse-ld=gold"] if "GNU gold" in done.stdout else []
    except OSError:
        return []


class Program(Objects):
    """That of a bundle, linked of objects that many have and one of what is its own."""

    def __init__(self, bundle, cc, cflags, run):
        super().__init__(bundle, cc, cflags, [])
        self.run = run
        self.driver, machine = listed(self.makefile, "DRIVER"), listed(self.makefile, "MACHINE")
        anywhere = {*self.driver, *listed(self.makefile, "ANY")} if machine else set()
        made = {
            o: o.removesuffix(".o") + ".c" for o in listed(self.makefile, "MODEL") + self.driver
        }
        self.own = [c for o, c in made.items() if not SHARED.match(c) and o not in anywhere]
        self.apart = [c for c in made.values() if c not in self.own]
        self.words = [
            f"-I{bundle}" if w == "-I." else w
            for w in (*shlex.split(cc), *listed(self.makefile, "FLAGS"), *shlex.split(cflags))
        ]
        self.machine = {c: machine for c in (WHOLE, *made.values())}
        self.machine |= {made[o]: [] for o in anywhere if o in made}

    def words_of_driver(self):
        """The driver is compiled for all, whatever the model is: who tests how it compiles takes
        make()."""
        few = dict.fromkeys(w for w in self.words if not NOT_OF_DRIVER.match(w))
        return [*few, "-O0", *["-g1"] * ("-fsanitize" in "".join(few)), "-w"]

    def compiled(self, source, files):
        """The object of these files that is kept, or is from now on; None: there is none. What make
        has made of a source will do; make itself makes its own, by its rules."""
        words = [*self.words, *self.machine[source]]
        if DRIVER.match(source):
            words = self.words_of_driver()
            told = " ".join(str(w) for w in words if w != f"-I{self.bundle}")
            kept = self.kept(files, f".{source}.o".replace("/", "."), told)
        else:
            kept = self.kept(files, f".{source}.o".replace("/", "."))
            made = self.kept(files, ".o")
            if source != WHOLE and made.exists():
                return made
        part = kept.with_suffix(f".{os.getpid()}.{id(self)}.o")
        if not kept.exists():
            words += ["-c", self.bundle / source, "-o", part]
            if self.run([str(w) for w in words]).rc:
                return None
            part.rename(kept)
        return kept

    def whole(self):
        """The name of one source that includes all of the model's own; first what has to come before
        anything else: a header that is precompiled, and new names of the runtime's functions."""
        first = [h.stem for h in sorted(self.bundle.glob("*.gch"))[:1]]
        first += [h.name for h in self.bundle.glob("*_igrt.h")]
        text = "".join(f'#include "{name}"\n' for name in first + self.own)
        (self.bundle / WHOLE).write_text(text)
        return WHOLE

    def objects(self):
        """All of the program's; None: this bundle takes make."""
        files = {
            c: closure(self.bundle / c, self.texts)
            for c in self.own + self.apart
            if self.bundle / c in self.texts
        }
        if not self.driver or not self.own or not all(files.get(c) for c in self.own + self.apart):
            return None
        if self.lay_headers():
            self.words.append("-Wno-psabi")  # as make() does
        made = [self.compiled(c, files[c]) for c in self.apart]
        together = {file: text for c in self.own for file, text in files[c].items()}
        made.append(self.compiled(self.whole(), together))
        (self.bundle / WHOLE).unlink()
        return made if all(made) else None

    def linked(self, ldflags):
        """What the compiler said; None: this bundle takes make."""
        name = re.search(r"^all: (\S+)", self.makefile, re.M)[1]
        made = self.objects()
        if not made:
            return None
        words = [*self.words, *ldflags, *linker(self.compiler), "-o", self.bundle / name, *made]
        return self.run([str(w) for w in (*words, *listed(self.makefile, "LDLIBS"))])


def program(bundle, cc, cflags, run, ldflags=()):
    """As make(), for those who want the program alone. `run` is called with the words of a command,
    and gives something that has its status as rc."""
    done = Program(bundle, cc, cflags, run).linked(ldflags)
    if done and not done.rc:
        return done
    return make(bundle, cc, cflags, run, f"LDFLAGS={shlex.join(ldflags)}")
