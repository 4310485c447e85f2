#!/usr/bin/env python3
"""The command line as it tells of itself: help, manual pages and the completion of shells come from
one table.

    cli.py --ingot build/ingot

Each option that a command's help names is taken, in its manual page and completed; what is misspelt
is told what it may have been. groff, zsh and fish are asked where they are there.
"""

import argparse
import re
import shutil
import subprocess
import sys
import tempfile

failed = []


def check(good, what):
    if not good:
        failed.append(what)


def say(*command, text=None):
    done = subprocess.run(command, input=text, capture_output=True, text=True)
    return done.returncode, done.stdout, done.stderr


def main():
    p = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    p.add_argument("--ingot", required=True)
    ingot = p.parse_args().ingot
    check(
        re.fullmatch(r"ingot \d+\.\d+\.\d+\n", say(ingot, "--version")[1]),
        "--version is no version",
    )
    commands = re.findall(r"^  ([a-z]+) +\S", say(ingot, "--help")[1], re.M)
    check(
        {"compile", "run", "bench", "completion", "manual"} <= set(commands),
        f"commands: {commands}",
    )
    shells = {name: say(ingot, "completion", name)[1] for name in ("bash", "zsh", "fish")}
    for command in commands:
        status, text, _ = say(ingot, command, "--help")
        flags = sorted(set(re.findall(r"^  (-\S+)", text, re.M)))
        check(not status and text.startswith(f"usage: ingot {command}"), f"{command} --help")
        page = say(ingot, "manual", command)[1]
        check(page.startswith(".TH INGOT\\-" + command.upper()), f"manual {command}")
        for flag in flags:
            check(flag.replace("-", "\\-") in page, f"manual {command}: {flag}")
            check(
                f"unknown option" not in say(ingot, command, "a", flag)[2],
                f"{command} {flag} is unknown",
            )
        if shutil.which("groff"):
            check(
                not say("groff", "-man", "-ww", "-z", "-Tutf8", text=page)[2],
                f"manual {command}: groff complains",
            )
    check(
        "unknown command 'complie'; did you mean `ingot compile`?" in say(ingot, "complie")[2],
        "no command is suggested",
    )
    check(
        "did you mean --target?" in say(ingot, "compile", "x", "--taget", "c")[2],
        "no option is suggested",
    )
    check(
        "did you mean --output-dir?" in say(ingot, "run", "x", "-o", "y")[2],
        "-o of run is not said to be --output-dir",
    )
    check(
        "did you mean" not in say(ingot, "compile", "x", "--frobnicate")[2], "anything is suggested"
    )
    check(
        "one of `ingot run`" in say(ingot, "compile", "x", "--output-dir", "y")[2],
        "an option of another command",
    )
    check("takes no value" in say(ingot, "bench", "x", "--json=yes")[2], "--json=yes")

    def bash(*words):
        with tempfile.NamedTemporaryFile("w", suffix=".bash") as f:
            f.write(shells["bash"])
            f.flush()
            quoted = " ".join(f"'{w}'" for w in words)
            return say(
                "bash",
                "-c",
                f"source {f.name}; COMP_WORDS=({quoted}); COMP_CWORD={len(words) - 1}; _ingot; "
                'echo "${COMPREPLY[@]}"',
            )[1].split()

    if shutil.which("bash"):
        check(bash("ingot", "com") == ["compile", "completion"], "bash: commands")
        check("--max-ram" in bash("ingot", "compile", "--m"), "bash: options")
        check(bash("ingot", "compile", "--weights", "b") == ["blob"], "bash: values")
        check(bash("ingot", "inspect", "--dump", "join_l") == ["join_loads"], "bash: passes")
        check(
            "cortex-m4" in bash("ingot", "compile", "--target", "c", ":", "cor"), "bash: machines"
        )
    if shutil.which("zsh"):
        check(not say("zsh", "-n", text=shells["zsh"])[0], "zsh: syntax")
    if shutil.which("fish"):
        out = say(
            "fish", "-c", "source; complete -C'ingot compile --weights '", text=shells["fish"]
        )[1]
        check("blob" in out, "fish: values")
    for what in failed:
        print("failed:", what)
    return 1 if failed else 0


sys.exit(main())
