"""A headless Chromium for tests, driven over the DevTools protocol: real input events, no packages.

    with Chromium() as browser, serve(folder) as address:
        page = browser.page(address + "index.html", width=800, height=600)
        page.wait("document.readyState == 'complete'")
        x, y = page.centre("canvas")
        page.drag([(x, y), (x + 50, y)])                # a mouse; touch=True: a finger
        page.click("button")
        print(page.value("document.title"), page.errors)
        page.screenshot("page.png")

The protocol goes through two pipes (--remote-debugging-pipe): JSON, each message ended by a zero
byte. `page.errors` collects exceptions and console errors. Raises Missing where there is no
Chromium.
"""

import base64
import contextlib
import functools
import http.server
import json
import os
import select
import shutil
import subprocess
import tempfile
import threading
import time

NAMES = ("chromium", "chromium-browser", "google-chrome")
FLAGS = (
    "--headless=new",
    "--remote-debugging-pipe",
    "--no-first-run",
    "--no-default-browser-check",
    "--disable-gpu",
    "--disable-extensions",
    "--disable-background-networking",
    "--disable-dev-shm-usage",
    "--hide-scrollbars",
    "--force-device-scale-factor=1",
)
# With WebGPU, by SwiftShader; --disable-gpu takes it away
WEBGPU = (
    *(f for f in FLAGS if f != "--disable-gpu"),
    "--enable-unsafe-webgpu",
    "--use-webgpu-adapter=swiftshader",
)


class Missing(Exception):
    pass


class Failed(Exception):
    pass


class Lost(Failed):
    """Chromium has put another process under a page while it was asked: no answer will come."""


class Chromium:
    def __init__(self, timeout=3600):  # of what hangs: a machine may be busy
        program = next(filter(None, map(shutil.which, NAMES)), None)
        if not program:
            raise Missing("there is no Chromium")
        self.timeout, self.count, self.received, self.events = timeout, 0, b"", []
        self.folder = tempfile.TemporaryDirectory(prefix="chromium-", ignore_cleanup_errors=True)
        theirs_in, self.out = os.pipe()
        self.into, theirs_out = os.pipe()

        def pipes():  # it reads from 3 and writes to 4; none of the copies may be one of the two
            a, b = os.dup(theirs_in), os.dup(theirs_out)
            while a < 5 or b < 5:
                a, b = os.dup(a), os.dup(b)
            os.dup2(a, 3)
            os.dup2(b, 4)

        sandbox = ["--no-sandbox"] if os.geteuid() == 0 else []
        self.process = subprocess.Popen(
            [program, *FLAGS, *sandbox, f"--user-data-dir={self.folder.name}", "about:blank"],
            preexec_fn=pipes,
            close_fds=False,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(theirs_in)
        os.close(theirs_out)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        with contextlib.suppress(Exception):
            self.call("Browser.close")
        try:
            self.process.wait(600)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        os.close(self.out)
        os.close(self.into)
        self.folder.cleanup()

    def receive(self, until):
        """The next message; what is no answer is kept as an event."""
        while b"\0" not in self.received:
            if not select.select([self.into], [], [], max(0, until - time.monotonic()))[0]:
                raise Failed("Chromium does not answer")
            part = os.read(self.into, 1 << 16)
            if not part:
                raise Failed("Chromium ended")
            self.received += part
        text, _, self.received = self.received.partition(b"\0")
        return json.loads(text)

    def call(self, method, session=None, **parameters):
        self.count += 1
        message = {"id": self.count, "method": method, "params": parameters}
        if session:
            message["sessionId"] = session
        data = json.dumps(message).encode() + b"\0"
        while data:
            data = data[os.write(self.out, data) :]
        until = time.monotonic() + self.timeout
        while True:
            answer = self.receive(until)
            if "id" not in answer:
                self.events.append(answer)
            elif answer["id"] == self.count:
                if "error" in answer:
                    message = answer["error"]["message"]
                    kind = Lost if "navigated or closed" in message else Failed
                    raise kind(f"{method}: {message}")
                return answer["result"]

    def await_event(self, wanted):
        """Waits until an event has come that is wanted, since the beginning."""
        until = time.monotonic() + self.timeout
        seen = 0
        while not any(map(wanted, self.events[seen:])):
            seen = len(self.events)
            message = self.receive(until)
            if "id" not in message:
                self.events.append(message)

    def page(self, address, width=800, height=600, touch=False):
        return Page(self, address, width, height, touch)


class Page:
    def __init__(self, browser, address, width, height, touch):
        self.browser = browser
        target = browser.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = browser.call("Target.attachToTarget", targetId=target, flatten=True)[
            "sessionId"
        ]
        for domain in ("Page", "Runtime", "Log"):
            self.call(f"{domain}.enable")
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=touch,
        )
        if touch:
            self.call("Emulation.setTouchEmulationEnabled", enabled=True)
        if address:
            self.load(address)

    def load(self, address):
        """Goes to an address and comes back when this very document has been loaded: what is asked
        of a page while another takes its place may be lost."""
        self.call("Page.setLifecycleEventsEnabled", enabled=True)
        loader = self.call("Page.navigate", url=address)["loaderId"]
        self.browser.await_event(
            lambda e: (
                e["method"] == "Page.lifecycleEvent"
                and e.get("sessionId") == self.session
                and e["params"]["loaderId"] == loader
                and e["params"]["name"] == "load"
            )
        )

    def call(self, method, **parameters):
        return self.browser.call(method, self.session, **parameters)

    def value(self, expression):
        """What a JavaScript expression, which may be a promise, is in the page."""
        said = self.call(
            "Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True
        )
        if "exceptionDetails" in said:
            details = said["exceptionDetails"]
            raise Failed(
                f"{expression}: {details.get('exception', {}).get('description', details['text'])}"
            )
        return said["result"].get("value")

    def wait(self, condition, seconds=1800):
        until = time.monotonic() + seconds
        while not self.value(condition):
            if time.monotonic() > until:
                raise Failed(f"after {seconds} s not true: {condition}; errors: {self.errors}")
            time.sleep(0.02)

    @property
    def errors(self):
        """Exceptions that nobody caught, and what the console was told as an error."""
        found = []
        for e in self.browser.events:
            what = e.get("params", {})
            if e.get("sessionId") != self.session:
                continue
            if e["method"] == "Runtime.exceptionThrown":
                details = what["exceptionDetails"]
                found.append(details.get("exception", {}).get("description", details["text"]))
            elif e["method"] == "Log.entryAdded" and what["entry"]["level"] == "error":
                found.append(f"{what['entry']['text']} {what['entry'].get('url', '')}".strip())
            elif e["method"] == "Runtime.consoleAPICalled" and what["type"] == "error":
                found.append(
                    " ".join(str(a.get("value", a.get("description"))) for a in what["args"])
                )
        return found

    # -- input, as the system would send it; coordinates are those of the window, in CSS pixels

    def box(self, selector):
        """Left, top, width, height of an element, which is scrolled into view."""
        return self.value(
            f"(() => {{ const e = document.querySelector({json.dumps(selector)}); e.scrollIntoView({{block: 'nearest'}});"
            "const r = e.getBoundingClientRect(); return [r.left, r.top, r.width, r.height]; })()"
        )

    def centre(self, selector):
        left, top, width, height = self.box(selector)
        return left + width / 2, top + height / 2

    def mouse(self, kind, x, y, pressed=False, **more):
        self.call(
            "Input.dispatchMouseEvent",
            type=kind,
            x=x,
            y=y,
            button="left" if pressed else "none",
            buttons=int(pressed and kind != "mouseReleased"),
            clickCount=int(kind != "mouseMoved"),
            **more,
        )

    def move(self, x, y):
        self.mouse("mouseMoved", x, y)

    def drag(self, points, touch=False):
        """Pressed at the first point, moved through the others, let go."""
        if touch:
            for i, (x, y) in enumerate(points):
                self.call(
                    "Input.dispatchTouchEvent",
                    type="touchMove" if i else "touchStart",
                    touchPoints=[{"x": x, "y": y}],
                )
            self.call("Input.dispatchTouchEvent", type="touchEnd", touchPoints=[])
            return
        self.mouse("mouseMoved", *points[0])
        self.mouse("mousePressed", *points[0], pressed=True)
        for x, y in points[1:]:
            self.mouse("mouseMoved", x, y, pressed=True)
        self.mouse("mouseReleased", *points[-1], pressed=True)

    def click(self, selector):
        x, y = self.centre(selector)
        self.drag([(x, y)])

    def key(self, key, code=None):
        for kind in ("keyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", type=kind, key=key, code=code or key)

    def screenshot(self, path):
        with open(path, "wb") as f:
            f.write(base64.b64decode(self.call("Page.captureScreenshot", format="png")["data"]))


class Files(http.server.SimpleHTTPRequestHandler):
    extensions_map = {
        **http.server.SimpleHTTPRequestHandler.extensions_map,
        ".wasm": "application/wasm",
        ".mjs": "text/javascript",
        ".js": "text/javascript",
    }

    headers_of_all = {
        "Cache-Control": "no-store"  # else a file that is gone may be found in the browser's cache
    }

    def end_headers(self):
        for name, value in self.headers_of_all.items():
            self.send_header(name, value)
        super().end_headers()

    def log_message(self, *_):
        pass


class Isolated(Files):
    """With what lets pages share memory between threads."""

    headers_of_all = {
        **Files.headers_of_all,
        "Cross-Origin-Opener-Policy": "same-origin",
        "Cross-Origin-Embedder-Policy": "require-corp",
    }


@contextlib.contextmanager
def serve(folder, files=Files):
    """A folder's files over HTTP on this machine: the address, with a slash at its end."""
    server = http.server.ThreadingHTTPServer(
        ("127.0.0.1", 0), functools.partial(files, directory=str(folder))
    )
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/"
    finally:
        server.shutdown()
        server.server_close()
