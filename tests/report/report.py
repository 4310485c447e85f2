#!/usr/bin/env python3
"""The page of `ingot inspect -o` in headless Chromium: what it shows is what the JSON says, and
what one does with it works.

    report.py --ingot build/ingot [MODEL...]

Without models: digits and a model of hostile names; with INGOT_ALL=1 also every model of
tests/bundle and a graph of thousands of nodes. Of MODELs (files, or folders with model.onnx) the
counts, the size and the first paint are checked.
Exit status 77, skipped: there is no Chromium, or no Python with onnx.
"""

import argparse
import copy
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import traceback

import browser
from screenshots import VIEWS, faults

HERE = pathlib.Path(__file__).resolve().parent
TREE = HERE.parent.parent
MOST_BYTES, MOST_PAINT_MS, MOST_FRAME_MS = 20 << 20, 2000, 120


class Wrong(Exception):
    pass


def same(what, got, want):
    if got != want:
        raise Wrong(f"{what}: {got!r:.300} is shown, {want!r:.300} is true")


def call(*command):
    done = subprocess.run([str(c) for c in command], capture_output=True, text=True)
    if done.returncode:
        raise Wrong(f"{' '.join(map(str, command))}: status {done.returncode}\n{done.stderr}")
    return done.stdout


def go(page, view, kind=None, number=None):
    page.eval(f"State.go({json.dumps({'view': view, 'kind': kind, 'id': number})})")
    page.settle()


def text(page, selector):
    return page.eval(f"document.querySelector({json.dumps(selector)})?.textContent ?? null")


def texts(page, selector):
    return page.eval(
        f"[...document.querySelectorAll({json.dumps(selector)})].map(e => e.textContent)"
    )


def state(page):
    return page.eval("State.get()")


# ---- what is shown is what is so -----------------------------------------------------------------


def counts(page, told):
    """All figures, lists and details against the JSON."""
    go(page, "overview")
    figures = page.eval(
        "Object.fromEntries([...document.querySelectorAll('[data-figure]')].map(e => [e.dataset.figure, e.firstChild.textContent]))"
    )
    same("steps", figures["Steps"], str(len(told["steps"])))
    same("kernels", figures["Kernels"], str(told["kernels"]))
    same("nodes of the file", figures["Nodes in the file"], str(len(told["source"])))
    same("arena", figures["Arena"], page.eval(f"Format.bytes({told['arena_bytes']})"))
    same("weights", figures["Weights"], page.eval(f"Format.bytes({told['weights_bytes']})"))
    same("stored", figures["stored"], str(sum(n["what"] == "stored" for n in told["notes"])))
    same("folded", figures["folded"], str(sum(t.get("folded", False) for t in told["tensors"])))
    go(page, "timeline")
    rows = page.eval(
        "[...document.querySelectorAll('#steptable tbody tr')].map(r => [+r.dataset.step, r.querySelector('.name').textContent])"
    )
    same("steps of the timeline", rows, [[s["step"], s["name"]] for s in told["steps"]])
    same(
        "bars",
        page.eval("document.querySelectorAll('#strip .strip button').length"),
        len(told["steps"]),
    )
    go(page, "kernels")
    same(
        "kernels listed",
        sorted(
            page.eval(
                "[...document.querySelectorAll('#kernellist button')].map(b => b.dataset.kernel)"
            )
        ),
        sorted(k["name"] for k in told["kernel_list"]),
    )
    go(page, "memory")
    if "memories" not in told:
        same(
            "rectangles",
            page.eval("Arena.shown()"),
            sum(
                t["kind"] in ("arena", "state")
                and "base" not in t
                and t["first"] <= t["last"]
                and t["bytes"] > 0
                for t in told["tensors"]
            ),
        )
    if told["source"]:
        go(page, "graph")
        if (
            page.eval("document.getElementById('graphconstants').getAttribute('aria-pressed')")
            == "false"
        ):
            page.click("#graphconstants")
        same(
            "nodes of the graph",
            page.eval("GraphView.look().leaves"),
            len(told["source"]) + len(told["inputs"]) + len(told["outputs"]),
        )
        edges(page, told)


def edges_of_file(told):
    """How often a node of the file, or an output, reads what an input or another node gives."""
    makers = {v["name"]: -1 for v in told["inputs"]}
    for i, s in enumerate(told["source"]):
        makers.update((v["name"], i) for v in s["outputs"] if v["name"])
    reads = [(v["name"], i) for i, s in enumerate(told["source"]) for v in s["inputs"]]
    reads += [(v["name"], None) for v in told["outputs"]]
    return sum(name in makers and makers[name] != i for name, i in reads)


def edges(page, told):
    """Each edge is drawn: between boxes, and as far as it goes into groups and out of them. What
    comes to the frame of a group goes on inside."""
    go(page, "graph")
    for kind in ("file", "rewritten", "plan"):
        page.click(f"#graphmode [data-value={kind}]")
        for groups in ("true", "false"):
            page.eval(f"GraphView.open({groups})")
            page.settle()
            drawn = page.eval("GraphView.drawn()")
            across = [d for d in drawn if d["from"] != "first" and d["to"] != "last"]
            if groups == "true":
                known = page.eval("GraphView.look().edges")
                same(f"edges drawn of {kind}", sum(d["n"] for d in across), known)
                if kind == "file":
                    same("edges of the file", known, edges_of_file(told))
            for port, side, other in (("first", "from", "to"), ("last", "to", "from")):
                for group in {d["group"] for d in drawn if d[side] == port}:
                    inside = sum(d["n"] for d in drawn if d[side] == port and d["group"] == group)
                    outside = sum(d["n"] for d in drawn if d[other] == group)
                    same(f"edges through the frame of {group}", inside, outside)
    page.click("#graphmode [data-value=file]")


def details(page, told, most=12):
    """Steps, tensors and kernels one by one: their nodes, their places, their text."""
    steps = {s["step"]: s for s in told["steps"]}
    for s in told["steps"][:most]:
        go(page, "timeline", "step", s["step"])
        shown = texts(page, "#details li")
        wanted = [f"{o['node']} ({o['op']})" for o in s["source"]]
        same(f"nodes of step {s['step']}", [w for w in wanted if w in shown], wanted)
    placed = [t for t in told["tensors"] if t["kind"] == "arena" and "base" not in t]
    for t in placed[:most]:
        go(page, "memory", "tensor", t["id"])
        where = re.search(r"at ([\d,]+) of", text(page, "#details") or "")
        same(f"offset of tensor {t['id']}", where and int(where[1].replace(",", "")), t["offset"])
    for k in told["kernel_list"][:most]:
        go(page, "kernels", "kernel", k["name"])
        same(f"code of {k['name']}", text(page, "#kerneltext"), k["code"])
        same(f"opts of {k['name']}", texts(page, ".recipe code"), k["opts"])
        nodes = sorted({f"{o['node']} ({o['op']})" for n in k["steps"] for o in steps[n]["source"]})
        shown = texts(page, "#details li")
        same(f"nodes of {k['name']}", [n for n in nodes if n in shown], nodes)


def planted(b, html, told):
    """Wrong facts in the page's data have to be found by the checks above."""

    def offset(data):
        t = next(t for t in data["tensors"] if t["kind"] == "arena" and "base" not in t)
        t["offset"] += 64

    def nodes(data):
        data["steps"][1]["source"] = data["steps"][2]["source"]

    def steps(data):
        data["steps"].pop()

    def code(data):
        data["kernel_list"][0]["code"] += " "

    page_text = html.read_text()
    head, _, rest = page_text.partition('<script type="application/json" id="data">')
    _, _, tail = rest.partition("</script>")
    for plant in (offset, nodes, steps, code):
        lie = copy.deepcopy(told)
        plant(lie)
        bad = html.with_name("lie.html")
        bad.write_text(
            head
            + '<script type="application/json" id="data">'
            + json.dumps(lie).replace("<", "\\u003c")
            + "</script>"
            + tail
        )
        page = b.open(bad)
        try:
            counts(page, told)
            details(page, told)
        except browser.Lost:
            raise
        except (Wrong, browser.Failed):
            continue
        raise Wrong(f"a planted wrong fact is not found: {plant.__name__}")


# ---- what one does -------------------------------------------------------------------------------


def search(page, told, other):
    node = told["source"][1]
    go(page, "overview")
    page.key("/")
    page.type(node["node"][:30])
    page.wait("!document.getElementById('found').hidden")
    same("what is found", text(page, "#found li .name"), node["node"])
    page.key("Enter")
    same(
        "after the search",
        [state(page)["view"], text(page, "#details h2")],
        ["graph", node["node"]],
    )


def click_node(page, told, other):
    page.eval("State.go({view: 'graph', kind: 'source', id: 2})")
    page.eval("State.select(null)")  # its details go, and the graph has their room
    page.settle()
    x, y = page.eval("GraphView.at('source', 2)")
    left, top = page.eval(
        "(r => [r.x, r.y])(document.getElementById('graphcanvas').getBoundingClientRect())"
    )
    page.click_at(left + x, top + y)
    same("the node under the mouse", text(page, "#details h2"), told["source"][2]["node"])


def to_the_kernel_and_back(page, told, other):
    step = next(s for s in told["steps"] if s["kind"] == "generated" and s["source"])
    at = next(
        i
        for i, n in enumerate(told["source"])
        if (n["node"], n["op"]) == (step["source"][0]["node"], step["source"][0]["op"])
    )
    go(page, "graph", "source", at)
    page.click("#details .actions button")
    name = state(page)["id"]
    same("its kernel", [state(page)["view"], text(page, "#kernelbody h2")], ["kernels", name])
    if name not in {
        s["name"]
        for s in told["steps"]
        if any(o["node"] == told["source"][at]["node"] for o in s["source"])
    }:
        raise Wrong(f"{name} does not compute {told['source'][at]['node']}")
    page.eval(
        "[...document.querySelectorAll('#details .actions button')].find(b => b.textContent === 'In the graph').click()"
    )
    page.settle()
    same("back", state(page)["view"], "graph")
    page.eval("history.back()")
    page.wait("State.get().view === 'kernels'")
    page.eval("history.back()")
    page.wait(f"State.is('source', {at})")


def hover_the_arena(page, told, other):
    go(page, "memory")
    t = max(
        (t for t in told["tensors"] if t["kind"] == "arena" and "base" not in t),
        key=lambda t: t["bytes"] * (t["last"] - t["first"] + 1),
    )
    page.eval("document.getElementById('arenacanvas').scrollIntoView({block: 'nearest'})")
    x, y = page.eval(f"Arena.where({t['id']})")
    left, top = page.eval(
        "(r => [r.x, r.y])(document.getElementById('arenacanvas').getBoundingClientRect())"
    )
    page.move(left + x, top + y)
    page.settle()
    tip = text(page, "#tip")
    if f"at {t['offset']:,}" not in tip or f"from step {t['first']} to {t['last']}" not in tip:
        raise Wrong(f"tensor {t}: {tip}")


def zoom(page, told, other):
    go(page, "graph")
    before = page.eval("GraphView.look().k")
    page.wheel(*page.centre("#graphcanvas"), -300)
    if not page.eval("GraphView.look().k") > 1.2 * before:
        raise Wrong("the wheel does not zoom")
    page.click("[aria-label='Show all']")
    fit = page.eval("GraphView.look()")
    if fit["k"] == page.eval("GraphView.look().k") and fit["x"] < 0:
        raise Wrong(f"all is not shown: {fit}")


def theme(page, told, other):
    before = page.eval("getComputedStyle(document.body).backgroundColor")
    page.click("#theme")
    after = page.eval("getComputedStyle(document.body).backgroundColor")
    if before == after or page.eval("document.documentElement.dataset.theme") != "dark":
        raise Wrong(f"the theme stays {before}")
    page.key("t")
    same(
        "back to the first theme",
        page.eval("getComputedStyle(document.body).backgroundColor"),
        before,
    )


def keyboard(page, told, other):
    page.eval("document.getElementById('tab-overview').click()")
    page.eval("document.getElementById('tab-overview').focus()")
    page.key("ArrowRight")
    same("arrow right on the tabs", state(page)["view"], "graph")
    page.key("End")
    same("end on the tabs", state(page)["view"], "compare")
    page.key("2")
    same("the second view", state(page)["view"], "graph")
    page.eval("document.getElementById('graphcanvas').focus()")
    page.eval("State.select(null)")
    page.key("ArrowDown")
    first = state(page)
    page.key("ArrowDown")
    if first["id"] is None or state(page) == first:
        raise Wrong("arrows do not walk along the graph")
    page.key("3")
    page.eval("document.querySelector('#strip .strip button[tabindex=\"0\"]').focus()")
    page.key("ArrowRight")
    same("arrow right on the steps", state(page)["kind"], "step")


def copy_source(page, told, other):
    k = told["kernel_list"][0]
    go(page, "kernels", "kernel", k["name"])
    page.click("#copy")
    page.wait("document.getElementById('copy').textContent === 'Copied'")
    same("the clipboard", page.eval("navigator.clipboard.readText()"), k["code"])


def filter_and_sort(page, told, other):
    go(page, "timeline")
    word = told["steps"][1]["source"][0]["node"]
    page.click("#stepfilter")
    page.type(word)
    wanted = [
        s["step"]
        for s in told["steps"]
        if word.lower()
        in " ".join(
            [str(s["step"]), s["name"], *(f"{o['node']} {o['op']}" for o in s["source"])]
        ).lower()
    ]
    same(
        "steps of the filter",
        page.eval(
            "[...document.querySelectorAll('#steptable tbody tr')].map(r => +r.dataset.step)"
        ),
        wanted,
    )
    page.eval(
        "(e => { e.value = ''; e.dispatchEvent(new Event('input')); })(document.getElementById('stepfilter'))"
    )
    page.eval(
        "[...document.querySelectorAll('#steptable th button')].find(b => b.textContent === 'Share').click()"
    )
    slowest = max(told["steps"], key=lambda s: (s.get("ms", s["roof_ms"]), -s["step"]))
    same(
        "the slowest step",
        page.eval("+document.querySelector('#steptable tbody tr').dataset.step"),
        slowest["step"],
    )
    go(page, "kernels")
    page.click("#kernelfilter")
    page.type("k00")
    same(
        "kernels of the filter",
        texts(page, "#kernellist .mono"),
        [k["name"] for k in told["kernel_list"] if "k00" in k["name"]],
    )


def passes(page, told, other):
    k = next(k for k in told["kernel_list"] if k["opts"])
    go(page, "passes", "kernel", k["name"])
    lines = page.eval(
        "[...document.querySelectorAll('#passtext .diff .add')].map(e => e.textContent.slice(1))"
    )
    if not lines or any(line not in k["linear"].split("\n") for line in lines):
        raise Wrong(f"from loops to statements: {lines[:3]}")


def diff(page, told, other):
    go(page, "compare")
    page.wait("document.getElementById('totals')")
    shown = page.eval(
        "Object.fromEntries([...document.querySelectorAll('#totals tr[data-total]')].map(r => [r.dataset.total, [...r.querySelectorAll('td.number')].map(c => c.textContent)]))"
    )
    same(
        "arenas side by side",
        shown["Arena"][:2],
        [page.eval(f"Format.bytes({x['arena_bytes']})") for x in (told, other)],
    )
    same("steps side by side", shown["Steps"][:2], [f"{len(x['steps']):,}" for x in (told, other)])
    row = page.eval(
        "[...document.querySelectorAll('#pairs tbody tr')].findIndex(r => r.children[2].textContent.includes('opts'))"
    )
    if row < 0:
        raise Wrong("no pair differs in its opts")
    page.click(f"#pairs tbody tr:nth-child({row + 1}) button")
    if not page.eval("document.querySelectorAll('#pair .diff .del').length"):
        raise Wrong("the opts of the pair are not shown")


def another_file(page, told, other):
    path = page.other_file
    node = page.call("DOM.getDocument", depth=0)["root"]["nodeId"]
    field = page.call("DOM.querySelector", nodeId=node, selector="#otherfile")["nodeId"]
    page.call("DOM.setFileInputFiles", files=[str(path)], nodeId=field)
    page.wait(
        "document.querySelector('#totals tr[data-total=Arena] td:nth-child(4)').textContent === 'equal'"
    )


INTERACTIONS = (
    search,
    click_node,
    to_the_kernel_and_back,
    hover_the_arena,
    zoom,
    theme,
    keyboard,
    copy_source,
    filter_and_sort,
    passes,
    diff,
    another_file,
)


def interactions(page, told, other):
    for f in INTERACTIONS:
        try:
            f(page, told, other)
        except browser.Lost:
            raise
        except (Wrong, browser.Failed) as e:
            raise Wrong(f"{f.__name__}: {e}") from None
    return [f.__name__ for f in INTERACTIONS]


# ---- for everybody -------------------------------------------------------------------------------

CONTRAST = """(() => {
  const rgb = c => { const m = c.match(/[\\d.]+/g).map(Number); return m.length > 3 && m[3] === 0 ? null : m; };
  const light = c => { const f = x => (x /= 255) <= .03928 ? x / 12.92 : ((x + .055) / 1.055) ** 2.4; return .2126 * f(c[0]) + .7152 * f(c[1]) + .0722 * f(c[2]); };
  const out = [];
  for (const e of document.querySelectorAll('body *')) {
    if (!e.offsetParent || ![...e.childNodes].some(n => n.nodeType === 3 && n.data.trim()) || e.disabled) continue;
    let b = e, back = null;
    while (b && !(back = rgb(getComputedStyle(b).backgroundColor))) b = b.parentElement;
    const x = light(rgb(getComputedStyle(e).color)), y = light(back || [255, 255, 255]), ratio = (Math.max(x, y) + .05) / (Math.min(x, y) + .05);
    if (ratio < 4.5) out.push(ratio.toFixed(2) + ': ' + e.className + ' ' + e.textContent.slice(0, 30));
  }
  return [...new Set(out)];
})()"""


def accessible(page, where):
    """Everything one can act on has a name; text can be told from what is behind it."""
    for n in page.call("Accessibility.getFullAXTree")["nodes"]:
        role = n.get("role", {}).get("value")
        if (
            role
            in (
                "button",
                "link",
                "tab",
                "textbox",
                "searchbox",
                "combobox",
                "checkbox",
                "slider",
                "image",
                "img",
                "application",
                "option",
            )
            and not n.get("ignored")
            and not n.get("name", {}).get("value")
        ):
            raise Wrong(f"{where}: a {role} has no name")
    weak = page.eval(CONTRAST)
    if weak:
        raise Wrong(f"{where}: text of little contrast: {weak[:4]}")


def printed(page):
    page.call("Emulation.setEmulatedMedia", media="print")
    same(
        "on paper", page.eval("getComputedStyle(document.getElementById('views')).display"), "none"
    )
    page.call("Emulation.setEmulatedMedia", media="")
    if len(page.call("Page.printToPDF")["data"]) < 4000:
        raise Wrong("nothing is printed")


def quiet(page, where):
    if page.errors:
        raise Wrong(f"{where}: {page.errors[:3]}")
    strange = [u for u in page.fetched if not u.startswith(("file:", "data:"))]
    if strange:
        raise Wrong(f"{where}: it fetches {strange[:3]}")


def functions(b, ingot, model, output, work):
    """Of a model with several functions the page shows one after the other."""
    train = ("--train", "--loss", f"cross_entropy:{output}", "--optimizer", "momentum")
    html = work / "train.html"
    call(ingot, "inspect", model, *train, "-o", html, "--no-assembly")
    for name in ("run", "train_step"):
        told = json.loads(call(ingot, "inspect", model, *train, "--function", name, "--json"))
        page = b.open(f"{html}?{name}")
        same("the function", page.eval("document.getElementById('function').value"), name)
        same("its steps", page.eval("report.model.steps.length"), len(told["steps"]))
        rows = [f"{f['name']} {f['steps']} {f['kernels']}" for f in told["functions"]]
        same(
            "functions",
            page.eval(
                "[...document.querySelectorAll('[data-function]')].map(r => [...r.cells].slice(0, 3).map(c => c.textContent).join(' '))"
            ),
            rows,
        )
        phases = page.eval("Object.values(report.model.phases() || {}).map(p => p.steps)")
        same(
            "phases",
            bool(phases) and min(phases) > 0 and sum(phases),
            name != "run" and len(told["steps"]),
        )
        if faults(page):
            raise Wrong(f"{name}: {faults(page)[:3]}")
    page.eval("Load.show('run')")
    page.wait("window.report && report.model.data.function === 'run'")
    quiet(page, "functions")


def tokens(b, ingot, work):
    """Of a language model the page tells what its cache takes; its steps have the kind of their
    form, since the file has no operators."""
    sys.path.insert(0, str(HERE.parent / "llm"))
    import decoder

    html = work / "llm.html"
    gguf = decoder.Model("llama", 0).write(work / "llm.gguf")
    call(ingot, "inspect", gguf, "--dim", "past=0..20", "-o", html, "--no-assembly")
    page = b.open(f"{html}?decode")
    states = page.eval("report.model.data.states.reduce((sum, s) => sum + s.max_bytes, 0)")
    told = page.eval("document.querySelector('[data-figure=Cache]').textContent")
    same("the cache", told, page.eval(f"Format.bytes({states})"))
    products = "report.model.steps.filter(s => /product/.test(s.form)).map(Colour.ofStep)"
    same("colours of products", page.eval(f"[...new Set({products})]"), ["contract"])
    if faults(page):
        raise Wrong(f"a language model: {faults(page)[:3]}")
    quiet(page, "a language model")


def hostile(work):
    """A model whose names would end scripts, strings and attributes, if anything took them for more
    than text."""
    import onnx
    from onnx import TensorProto, helper

    names = [
        "</script><script>window.pwned=1</script>",
        "<img src=x onerror='window.pwned=2'>",
        "\"'&<b>\u2028\u2029\u00e9\u4e16",
        "<!--<script>",
        "a/</script>/b\\",
        "${window.pwned=3}`",
    ]
    last, nodes = "x", []
    for i, name in enumerate(names):
        nodes.append(
            helper.make_node(
                "Relu" if i % 2 else "Sigmoid",
                [last],
                [f"y{i}" if i + 1 < len(names) else names[0]],
                name=name,
                doc_string=name,
            )
        )
        last = nodes[-1].output[0]
    shape = helper.make_tensor_value_info
    graph = helper.make_graph(
        nodes,
        names[0],
        [shape("x", TensorProto.FLOAT, [2, 3])],
        [shape(names[0], TensorProto.FLOAT, [2, 3])],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    path = work / "hostile.onnx"
    onnx.save(model, path)
    return path, names


def large(work, n=4000):
    """Thousands of nodes, in blocks with names of their own."""
    import onnx
    from onnx import TensorProto, helper

    nodes, last = [], "x"
    for i in range(n // 8):
        scope, start = f"/stage.{i // 40}/block.{i}", last
        for j, op in enumerate(("Relu", "Neg", "Abs", "Sigmoid", "Tanh", "Floor", "Sqrt")):
            nodes.append(helper.make_node(op, [last], [f"v{i}_{j}"], name=f"{scope}/{op}"))
            last = f"v{i}_{j}"
        nodes.append(helper.make_node("Add", [last, start], [f"w{i}"], name=f"{scope}/Add"))
        last = f"w{i}"
    shape = helper.make_tensor_value_info
    graph = helper.make_graph(
        nodes,
        "g",
        [shape("x", TensorProto.FLOAT, [2, 3])],
        [shape(last, TensorProto.FLOAT, [2, 3])],
    )
    path = work / "large.onnx"
    onnx.save(
        helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path
    )
    return path


def frames(page, open_all):
    """The median time of a frame while the graph is moved and zoomed, in ms."""
    go(page, "graph")
    if open_all:
        page.click("[aria-label='Open all groups']")
    return page.eval("""(async () => { const c = document.getElementById('graphcanvas'), r = c.getBoundingClientRect(); const times = [];
        for (let i = 0; i < 30; i++) { const t = performance.now(); c.dispatchEvent(new WheelEvent('wheel', {deltaY: i % 2 ? 40 : -60, clientX: r.x + 300, clientY: r.y + 200, cancelable: true})); await new Promise(f => requestAnimationFrame(f)); times.push(performance.now() - t); }
        return times.sort((a, b) => a - b)[15]; })()""")


def measure(b, ingot, model, work, flags):
    """Counts, size, first paint and frames of one model."""
    html = work / "report.html"
    call(ingot, "inspect", model, "-o", html, *flags)
    told = json.loads(call(ingot, "inspect", model, "--json", *flags))
    size = html.stat().st_size
    page = b.open(html)
    page.wait("performance.getEntriesByType('paint').length")
    paint = page.eval("Math.max(...performance.getEntriesByType('paint').map(p => p.startTime))")
    counts(page, told)
    details(page, told)
    frame = frames(page, False)
    whole = frames(page, True)
    look = page.eval("GraphView.look()")
    quiet(page, model)
    name = model.parent.name if model.name == "model.onnx" else model.stem
    print(
        f"{name}: {size} bytes, first paint {paint:.0f} ms, {look['leaves']} nodes, a frame {frame:.0f} ms, {whole:.0f} ms with {look['boxes']} boxes open, laid out in {look['laid']:.0f} ms",
        flush=True,
    )
    if size > MOST_BYTES or paint > MOST_PAINT_MS or frame > MOST_FRAME_MS or whole > MOST_FRAME_MS:
        raise Wrong(
            f"{name}: more than {MOST_BYTES} bytes, {MOST_PAINT_MS} ms or {MOST_FRAME_MS} ms a frame"
        )


def run(a):
    """All of it, in a browser of its own: 0 where nothing is wrong."""
    with tempfile.TemporaryDirectory() as work, browser.Browser() as b:
        work, flags = pathlib.Path(work), a.flags.split()
        for model in a.models:
            measure(b, a.ingot, model / "model.onnx" if model.is_dir() else model, work, flags)
        if a.models:
            return 0
        digits, html = TREE / "examples" / "digits" / "digits.onnx", work / "digits.html"
        told = json.loads(call(a.ingot, "inspect", digits, "--json"))
        other = json.loads(call(a.ingot, "inspect", digits, "--json", "--target", "c:x86-64-v3"))
        (work / "other.json").write_text(json.dumps(other))
        (work / "same.json").write_text(json.dumps(told))
        call(a.ingot, "inspect", digits, "-o", html, "--diff", work / "other.json")
        b.call(
            "Browser.grantPermissions",
            permissions=["clipboardReadWrite", "clipboardSanitizedWrite"],
        )
        page = b.open(html)
        page.other_file = work / "same.json"
        counts(page, told)
        details(page, told)
        done = interactions(page, told, other)
        quiet(page, "digits")
        for dark in (False, True):
            for width, height in ((1280, 800), (390, 844)):
                page = b.open(html, width, height, dark=dark)
                for view in VIEWS:
                    go(page, view)
                    found = faults(page)
                    if found:
                        raise Wrong(f"{view} at {width}: {found[:3]}")
                    if width == 1280:
                        accessible(page, f"{view}{' dark' if dark else ''}")
        printed(page)
        planted(b, html, told)
        functions(b, a.ingot, digits, told["outputs"][0]["name"], work)
        tokens(b, a.ingot, work)
        path, names = hostile(work)
        call(a.ingot, "inspect", path, "-o", work / "hostile.html", "--no-assembly")
        page = b.open(work / "hostile.html")
        for view in VIEWS:
            go(page, view)
        for i, name in enumerate(names):
            go(page, "graph", "source", i)
            same("a hostile name", text(page, "#details h2"), name)
        same("what a hostile name did", page.eval("String(window.pwned)"), "undefined")
        quiet(page, "hostile")
        print(
            f"{len(done)} interactions, {len(VIEWS)} views in two sizes and themes, planted faults and hostile names: all as they should be"
        )
        if os.environ.get("INGOT_ALL"):
            sys.path.insert(0, str(HERE.parent / "bundle"))
            import models

            for name in sorted(models.MODELS):
                (work / f"{name}.onnx").write_bytes(models.build(name))
                measure(b, a.ingot, work / f"{name}.onnx", work, ("--target", "c:native"))
            measure(b, a.ingot, large(work), work, ("--no-assembly",))
    return 0


def main():
    p = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    p.add_argument("--ingot", required=True)
    p.add_argument("--flags", default="--target c:native")
    p.add_argument("models", nargs="*", type=pathlib.Path)
    a = p.parse_args()
    if not browser.find():
        print("skipped: there is no Chromium")
        return 77
    try:
        import onnx  # noqa: F401
    except ImportError as e:
        print(f"skipped: {e}")
        return 77
    try:
        return run(a)
    except (
        browser.Lost
    ) as e:  # once may be Chromium's doing; a report that leaves does so each time
        traceback.print_exc()
        print(f"a page was lost ({e}): all again", flush=True)
        return run(a)


if __name__ == "__main__":
    try:
        sys.exit(main())
    except (Wrong, browser.Failed) as e:
        print(f"failed: {e}")
        sys.exit(1)
