"""What run.py tells of its cases: a summary, and the tables of --out."""

import collections
import re
import sys

STATUSES = ("passed", "failed", "refused", "crash")


def group(reason):
    """The reason without what is particular to a case, to count alike ones together."""
    reason = re.sub(r"^(\S*/)?model\.onnx:\s*", "", reason)
    reason = re.sub(r"'[^']*'|\"[^\"]*\"|‘[^’]*’", "'..'", reason)
    reason = re.sub(r"(\d+ of \d+ values differ).*", "values differ", reason)
    reason = re.sub(r"\b0x[0-9a-f]+\b|\d+(\.\d+)?(e[-+]?\d+)?(?![-\w])", "N", reason)
    return reason[:160]


def table(results, out):
    """A summary, the reasons, and every case that did not pass, as Markdown."""
    w = lambda *cells: print(
        "| " + " | ".join(str(c).replace("|", "\\|").replace("\n", " ") for c in cells) + " |",
        file=out,
    )  # noqa: E731
    suites = collections.defaultdict(collections.Counter)
    for r in results:
        for row in (r["name"].split("/")[0], "all"):
            suites[row][r["status"]] += 1
            suites[row]["bind"] += (
                r["status"] == "passed" or r.get("bind", {}).get("status") == "passed"
            )
            suites[row]["bind crash"] += r.get("bind", {}).get("status") == "crash"
    bind = any("bind" in r for r in results)
    extra = ["passed with bind", "crash with bind"] if bind else []
    w("suite", *STATUSES, "total", *extra)
    w(*["---"] * (6 + len(extra)))
    for row in sorted(set(suites) - {"all"}) + ["all"]:
        c = suites[row]
        w(
            row,
            *(c[s] for s in STATUSES),
            sum(c[s] for s in STATUSES),
            *([c["bind"], c["bind crash"]] if bind else []),
        )
    for status in STATUSES[:0:-1]:
        these = [r for r in results if r["status"] == status]
        if not these:
            continue
        print(f"\n## {status}: {len(these)}\n", file=out)
        w("count", "reason", "for example")
        w("---", "---", "---")
        count = collections.defaultdict(list)
        for r in these:
            count[group(r["reason"])].append(r["name"])
        for reason, names in sorted(count.items(), key=lambda kv: (-len(kv[1]), kv[0])):
            w(len(names), reason, names[0])
        print(file=out)
        w("case", "why", *(["with bind"] if bind else []))
        w("---", "---", *(["---"] if bind else []))
        for r in these:
            b = r.get("bind", {})
            w(
                r["name"],
                r["reason"],
                *([f"{b.get('status', '')} {b.get('reason', '')}".strip()] if bind else []),
            )


def summary(results, seconds, out=sys.stdout):
    count = collections.Counter(r["status"] for r in results)
    for status in ("crash", "failed", "refused"):
        reasons = collections.Counter(group(r["reason"]) for r in results if r["status"] == status)
        for reason, n in reasons.most_common(15):
            print(f"{n:6} {status:8} {reason}", file=out)
    line = ", ".join(f"{count[s]} {s}" for s in STATUSES)
    drawn = sum(r["drawn"] for r in results)
    told = f"; {drawn} judged by statistics of what is drawn" if drawn else ""
    print(f"{len(results)} cases: {line}{told} ({seconds:.0f} s)", file=out)
    if any("bind" in r for r in results):
        got = collections.Counter(r["bind"]["status"] for r in results if "bind" in r)
        total = count["passed"] + got["passed"]
        print(f"with bind: {total} passed ({got['passed']} more), {got['crash']} crash", file=out)
