"""Programs of many small bundles, compiled and linked as one: to start a compiler and to read the
runtime's headers takes far longer than to compile a model of one operator.

    a/model.c  b/model.c   ->  joined_own.c: the models' own text, names defined there ending in _0, _1
    runtime, driver        ->  once, as objects.py keeps them
    main                   ->  the model whose number ends the name by which it is called
    a/model-0  b/model-1   ->  two names of the one program, each beside its own weights

Each model still runs in a process of its own, so that what ends one names it. Bundles go together
whose flags and headers of one name are alike. Those that did not compile together are the
caller's, to be compiled by themselves: that also tells which of them was wrong, and where.
"""

import os
import pathlib
import re
import tempfile

import objects

LARGE = 200_000  # bytes of a model's own text, which takes long to rename; alone it is no slower
TOKEN = re.compile(
    r"""^\#\s*include\s+"([^"]+)"              # a header
    | "(?:\\.|[^"\\])*" | '(?:\\.|[^'\\])*'    # texts
    | /\*.*?\*/ | //[^\n]*                     # comments
    | \boffsetof\((\w+)(,\s*\w+) | \d[\w.]*      # a type and its member; numbers
    | [A-Za-z_]\w*""",
    re.M | re.S | re.X,
)
OF_FILE = re.compile(
    r"^static\s[^=;{(\[]*?\b(\w+)\s*[\[(=;]"  # functions and objects
    r"|^\} (\w+)\[\] = \{"  # of a type without a name
    r"|^[ \t]*\#[ \t]*define[ \t]+(\w+)"
    r"|^typedef [^;{]*?(\w+);"
    r"|^ +([A-Z]\w*) = \d+,$",  # sizes that the run knows
    re.M,
)
ENUM = re.compile(r"\benum\s*\{(.*?)\}", re.S)
ENUMERATOR = re.compile(r"^\s*(\w+)\s*(?:=[^,]*)?,?", re.M)
MAIN = "return igrt_driver_main(argc, argv, igrt_bundle.model);"
CHOOSE = """#include <stdlib.h>
#include <string.h>
#include "driver.h"
%s
int main(int argc, char **argv)
{
    static const igrt_table *const tables[] = {%s};
    return igrt_driver_main(argc, argv, tables[atoi(strrchr(argv[0], '-') + 1)]->model);
}
"""


class Bundle:
    """What of a bundle is its own, and what it has in common with others."""

    def __init__(self, folder, program):
        self.folder, self.program = folder, program
        self.name = re.search(r"^all: (\S+)", program.makefile, re.M)[1]
        self.words = [w for w in program.words if w != f"-I{folder}"]
        self.texts = {
            f: text.decode("utf-8", "surrogateescape") for f, text in program.texts.items()
        }
        # to join paths takes longer than to find what lies there
        self.named = {str(f): text for f, text in self.texts.items()}
        files = {
            c: objects.closure(folder / c, program.texts)
            for c in program.own + program.apart
            if c != "host/main.c" and folder / c in program.texts
        }
        self.own = [
            c for c in program.own if not re.search(r"^IGRT_LIB\(\w+\)$", self.text(c), re.M)
        ]
        # compiled for any machine, where the kernels are for one
        self.anywhere = [
            c for c in program.apart if c != "host/main.c" and not objects.SHARED.match(c)
        ]
        self.apart = {c: f for c, f in files.items() if c not in self.own + self.anywhere}
        mine = [c for c in self.own + self.anywhere if c.endswith(".c")]
        mine += [f.name for f in self.texts if self.is_own(f.name)]
        enums = [inside for c in mine for inside in ENUM.findall(self.text(c))]
        self.enumerators = {n for inside in enums for n in ENUMERATOR.findall(inside)}
        self.whole = (
            all(files.get(c) for c in program.own + program.apart if c != "host/main.c")
            and MAIN in self.text("host/main.c")
            and sum(len(self.text(c)) for c in self.own + self.anywhere) < LARGE
            and folder / f"{self.name}_igrt.h" in self.texts
        )

    def text(self, name):
        return self.named.get(f"{self.folder}/{name}", "")

    def shared(self):
        """Texts that others include or link, too, by name."""
        headers = {f.name: t for f, t in self.texts.items() if f.suffix == ".h"}
        found = {n: t for n, t in headers.items() if not self.is_own(n)}
        found.pop(f"{self.name}_igrt.h", None)  # names those functions that this one has
        return found | {c: self.text(c) for c in self.apart}

    def functions(self):
        """The lines of a header that name the runtime's functions for this model."""
        return re.findall(r"^#define igrt_.*\n", self.text(f"{self.name}_igrt.h"), re.M)

    def is_own(self, header):
        return re.match(rf"{self.name}(_(?!igrt)\w+)?\.h$", header)

    def renamed(self, source, end, included):
        """The text of a source and of the model's headers that it includes, where the names of this
        model end in `end`."""
        text = self.text(source)
        static = {"igrt_bundle"} | self.enumerators
        if source.endswith(".c"):
            static |= {n for names in OF_FILE.findall(text) for n in names if n}
        mine = re.compile(rf"{self.name}(?!_igrt_)(_|$)", re.I)
        own = {}  # whether a word is one of these

        def word(found):
            it = found[0]
            if found[1]:
                if not self.is_own(found[1]):
                    return it
                again = found[1] in included
                included.add(found[1])
                return "" if again else self.renamed(found[1], end, included)
            if found[2]:
                return f"offsetof({found[2]}{end if mine.match(found[2]) else ''}{found[3]}"
            if it not in own:
                own[it] = it in static or bool(mine.match(it))
            if not own[it]:
                return it
            before = text[max(0, found.start() - 2) : found.start()]
            member = before == "->" or (before.endswith(".") and before != "..")
            return it if member else it + end

        return TOKEN.sub(word, text)


class Group:
    """Bundles that go together."""

    def __init__(self, first):
        self.bundles, self.common = [first], first.shared()

    def takes(self, bundle):
        """Whether the bundle has joined."""
        more = bundle.shared()
        if any(self.common.get(name, text) != text for name, text in more.items()):
            return False
        if bundle.words != self.bundles[0].words:
            return False
        self.common |= more
        self.bundles.append(bundle)
        return True


def link(group, work):
    """The names of the one program, by folder; {}: it did not come about."""
    first = group.bundles[0].program
    name, lines = group.bundles[0].name, {line for b in group.bundles for line in b.functions()}
    guard = f"{name.upper()}_IGRT_H"
    made = {}  # the sources, and what of their flags is of a machine
    for kind, machine in (("own", objects.listed(first.makefile, "MACHINE")), ("anywhere", [])):
        text = [f"#define {guard}\n#define IGRT_FUNCTIONS\n", *sorted(lines)]
        for n, bundle in enumerate(group.bundles):
            included = set()
            text += [bundle.renamed(source, f"_{n}", included) for source in getattr(bundle, kind)]
        if any(getattr(bundle, kind) for bundle in group.bundles):
            source = work / f"joined_{kind}.c"
            source.write_text("".join(text), "utf-8", "surrogateescape")
            made[source] = machine
    tables = [f"igrt_bundle_{n}" for n in range(len(group.bundles))]
    (work / "main.c").write_text(
        CHOOSE
        % (
            "".join(f"extern const igrt_table {t};\n" for t in tables),
            ", ".join(f"&{t}" for t in tables),
        )
    )
    apart = {}
    for bundle in group.bundles:
        for source, files in bundle.apart.items():
            if source not in apart:
                apart[source] = bundle.program.compiled(source, files)
    if not all(apart.values()):
        return {}
    folders = [f"-I{d}" for b in group.bundles for d in (b.folder, b.folder / "host")]
    words = [*group.bundles[0].words, *folders, "-Wno-psabi"]
    program = work / "model"
    for command in (
        *(
            [*words, *machine, "-c", source, "-o", source.with_suffix(".o")]
            for source, machine in made.items()
        ),
        [
            *words,
            *objects.linker(first.compiler),
            *("-o", program, work / "main.c"),
            *(source.with_suffix(".o") for source in made),
            *apart.values(),
            *objects.listed(first.makefile, "LDLIBS"),
        ],
    ):
        if first.run([str(w) for w in command]).rc:
            return {}
    names = {b.folder: b.folder / f"model-{n}" for n, b in enumerate(group.bundles)}
    for name in names.values():
        os.link(program, name)
    return names


def programs(bundles, cc, cflags, run):
    """The programs of those bundles that could be joined, by folder; `run` as objects.program()'s."""
    groups = []
    for folder in map(pathlib.Path, bundles):
        bundle = Bundle(folder, objects.Program(folder, cc, cflags, run))
        if bundle.whole and not any(g.takes(bundle) for g in groups):
            groups.append(Group(bundle))
    found = {}
    for group in (g for g in groups if len(g.bundles) > 1):
        with tempfile.TemporaryDirectory(prefix="joined-", dir=folder.parent) as work:
            found |= link(group, pathlib.Path(work))
    return found
