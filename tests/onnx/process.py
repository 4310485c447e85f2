"""Child processes of the outside tests: run with a time and a memory limit, and judged."""

import collections
import math
import os
import re
import signal
import subprocess

REPORT = re.compile(
    r"ERROR: (Address|Leak|Memory|Undefined)\w*Sanitizer|runtime error:|Sanitizer: |SUMMARY: \w+Sanitizer"
)
INTERNAL = 70
# what every child gets: one language, sanitizers that end it with a status of their own
SETTINGS = {
    "LC_ALL": "C",
    "ASAN_OPTIONS": "exitcode=99:hard_rss_limit_mb=8192",
    "UBSAN_OPTIONS": "print_stacktrace=1",
}

Done = collections.namedtuple("Done", "rc out err timed_out")


# At the end of a process LeakSanitizer stops its threads by ptrace from one of its own. That one
# dies in one of some 20,000 runs, on a busy machine ("Tracer caught signal 11", clang 14): nothing
# is known of leaks then, and it is asked again. What is wrong with the process itself is so each time.
TRACER_DIED, ATTEMPTS = "LeakSanitizer has encountered a fatal error", 3
WAITS = 30  # times as long as what hangs takes a core, what waits for something may wait


def call(args, timeout, env=None, cwd=None, limit_mb=0):
    """Runs a command in a process group of its own. timeout: seconds of a core that it has, and
    whatever it starts, each, so that a busy machine ends nobody; the group is ended as a whole
    after many times as long. A process whose tracer of leaks has died runs again."""
    for _ in range(ATTEMPTS):
        done = call_once(args, timeout, env, cwd, limit_mb)
        if TRACER_DIED not in done.err:
            break
    return done


def call_once(args, timeout, env, cwd, limit_mb):
    args = [str(a) for a in args]
    limits = [f"ulimit -S -t {math.ceil(timeout)}"] + (
        [f"ulimit -v {limit_mb * 1024}"] if limit_mb else []
    )
    args = ["sh", "-c", f"{'; '.join(limits)}; exec \"$@\"", "sh", *args]
    p = subprocess.Popen(
        args,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=env,
        cwd=cwd,
        start_new_session=True,
    )
    try:
        out, err = p.communicate(timeout=WAITS * timeout)
        late = p.returncode == -signal.SIGXCPU
    except subprocess.TimeoutExpired:
        os.killpg(p.pid, signal.SIGKILL)
        out, err = p.communicate()
        late = True
    return Done(p.returncode, out.decode(errors="replace"), err.decode(errors="replace"), late)


def first_line(text):
    """The first line that tells something; a compiler's error before its context lines."""
    lines = [s.strip() for s in text.splitlines() if s.strip()]
    for s in lines:
        if re.search(r"\berror\b|undefined reference", s):
            return s[:800]
    return lines[0][:800] if lines else "(no message)"


def crashed(done):
    """Why this process counts as crashed, or None."""
    for line in done.err.splitlines():
        if REPORT.search(line):
            return line.strip()[:300]
    if done.timed_out:
        return None
    if done.rc < 0 or done.rc > 128:
        n = -done.rc if done.rc < 0 else done.rc - 128
        name = signal.Signals(n).name if n in list(signal.Signals) else f"signal {n}"
        return f"{name}: {first_line(done.err)}"
    if done.rc == INTERNAL:
        return f"internal error: {first_line(done.err)}"
    return None


def sanitized(program):
    """Whether an executable was built with ASan, which needs all of the address space."""
    return b"__asan_init" in program.read_bytes()
