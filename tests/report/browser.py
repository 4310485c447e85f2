"""browser.py - Chromium without a window, driven by its DevTools protocol over a pipe: no more than Python's own library.

    with Browser() as b:
        page = b.open("report.html", 1280, 800)
        page.eval("document.title"); page.click("#search"); page.type("conv"); page.screenshot("x.png")
        page.errors      what the console told of errors, and exceptions
"""
import base64
import json
import os
import pathlib
import select
import shutil
import subprocess
import tempfile
import time

NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")


class Failed(Exception):
    pass


def find():
    """The program, or None."""
    return os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, NAMES)), None)


class Browser:
    def __init__(self, program=None):
        self.folder = tempfile.mkdtemp(prefix="ingot-chromium-")
        to_r, self.to_w = os.pipe()
        self.from_r, from_w = os.pipe()

        def descriptors():      # Chromium reads from 3 and writes to 4
            a, b = os.dup(to_r), os.dup(from_w)
            os.dup2(a, 3)
            os.dup2(b, 4)
            os.set_inheritable(3, True)
            os.set_inheritable(4, True)

        flags = ["--headless=new", "--remote-debugging-pipe", f"--user-data-dir={self.folder}", "--no-first-run", "--disable-gpu",
                 "--disable-background-networking", "--disable-component-update", "--disable-sync", "--disable-dev-shm-usage",
                 "--hide-scrollbars", "--force-color-profile=srgb", "--font-render-hinting=none", "about:blank"]
        if os.geteuid() == 0:
            flags.insert(0, "--no-sandbox")
        self.process = subprocess.Popen([program or find(), *flags], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                        close_fds=False, preexec_fn=descriptors, start_new_session=True)
        os.close(to_r)
        os.close(from_w)
        self.number, self.buffer, self.pages = 0, b"", {}

    def __enter__(self):
        return self

    def __exit__(self, *_):
        try:
            self.send("Browser.close")
        except (Failed, OSError):
            pass
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            os.killpg(self.process.pid, 9)
            self.process.wait()
        os.close(self.to_w)
        os.close(self.from_r)
        shutil.rmtree(self.folder, ignore_errors=True)

    def read(self, timeout):
        """The next message, or None."""
        end = time.monotonic() + timeout
        while b"\0" not in self.buffer:
            if not select.select([self.from_r], [], [], max(0, end - time.monotonic()))[0]:
                return None
            data = os.read(self.from_r, 1 << 20)
            if not data:
                raise Failed("Chromium ended")
            self.buffer += data
        text, self.buffer = self.buffer.split(b"\0", 1)
        message = json.loads(text)
        page = self.pages.get(message.get("sessionId"))
        if page and "method" in message:
            page.event(message["method"], message["params"])
        return message

    def send(self, method, params=None, session=None, timeout=60):
        self.number += 1
        message = {"id": self.number, "method": method, "params": params or {}}
        if session:
            message["sessionId"] = session
        os.write(self.to_w, json.dumps(message).encode() + b"\0")
        end = time.monotonic() + timeout
        while True:
            got = self.read(max(0, end - time.monotonic()))
            if got is None:
                raise Failed(f"{method}: no answer in {timeout} s")
            if got.get("id") == message["id"]:
                if "error" in got:
                    raise Failed(f"{method}: {got['error']['message']}")
                return got["result"]

    def open(self, path, width=1280, height=800, dark=False, address=""):
        target = self.send("Target.createTarget", {"url": "about:blank"})["targetId"]
        session = self.send("Target.attachToTarget", {"targetId": target, "flatten": True})["sessionId"]
        page = self.pages[session] = Page(self, session)
        for domain in ("Page", "Runtime", "Log", "Network", "DOM"):
            page.send(f"{domain}.enable")
        page.size(width, height)
        page.send("Emulation.setEmulatedMedia", {"features": [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]})
        page.goto(pathlib.Path(path).resolve().as_uri() + address)
        return page


class Page:
    def __init__(self, browser, session):
        self.browser, self.session, self.errors, self.fetched, self.loaded = browser, session, [], [], False

    def send(self, method, params=None, **kw):
        return self.browser.send(method, params, self.session, **kw)

    def event(self, method, params):
        if method == "Runtime.exceptionThrown":
            d = params["exceptionDetails"]
            self.errors.append(d.get("exception", {}).get("description") or d["text"])
        elif method == "Runtime.consoleAPICalled" and params["type"] in ("error", "warning", "assert"):
            self.errors.append(" ".join(str(a.get("value", a.get("description"))) for a in params["args"]))
        elif method == "Log.entryAdded" and params["entry"]["level"] in ("error", "warning"):
            self.errors.append(params["entry"]["text"])
        elif method == "Network.requestWillBeSent":
            self.fetched.append(params["request"]["url"])
        elif method == "Page.loadEventFired":
            self.loaded = True

    def size(self, width, height):
        self.send("Emulation.setDeviceMetricsOverride", {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600})

    def goto(self, url, timeout=60):
        self.loaded = False
        self.send("Page.navigate", {"url": url})
        end = time.monotonic() + timeout
        while not self.loaded:
            if self.browser.read(max(0, end - time.monotonic())) is None:
                raise Failed(f"{url}: not loaded in {timeout} s")

    def eval(self, text):
        got = self.send("Runtime.evaluate", {"expression": text, "returnByValue": True, "awaitPromise": True, "userGesture": True})
        if "exceptionDetails" in got:
            d = got["exceptionDetails"]
            raise Failed(f"{text:.120}: {d.get('exception', {}).get('description', d['text'])}")
        return got["result"].get("value")

    def settle(self):
        """Two frames later."""
        self.eval("new Promise(f => requestAnimationFrame(() => requestAnimationFrame(f)))")

    def wait(self, condition, seconds=10):
        end = time.monotonic() + seconds
        while not self.eval(f"Boolean({condition})"):
            if time.monotonic() > end:
                raise Failed(f"not within {seconds} s: {condition}")
            time.sleep(0.05)

    def mouse(self, kind, x, y, **more):
        self.send("Input.dispatchMouseEvent", {"type": kind, "x": x, "y": y, **more})

    def click_at(self, x, y):
        self.mouse("mouseMoved", x, y)
        self.mouse("mousePressed", x, y, button="left", buttons=1, clickCount=1)
        self.mouse("mouseReleased", x, y, button="left", buttons=0, clickCount=1)
        self.settle()

    def middle(self, selector):
        where = self.eval(f"""(() => {{ const e = document.querySelector({json.dumps(selector)}); if (!e) return null;
            e.scrollIntoView({{block: 'nearest', inline: 'nearest'}}); const r = e.getBoundingClientRect(); return [r.x + r.width / 2, r.y + r.height / 2]; }})()""")
        if where is None:
            raise Failed(f"there is no {selector}")
        return where

    def click(self, selector):
        self.click_at(*self.middle(selector))

    KEYS = {"Enter": (13, "\r"), "Tab": (9, ""), "Escape": (27, ""), "Backspace": (8, ""), "ArrowLeft": (37, ""), "ArrowUp": (38, ""), "ArrowRight": (39, ""),
            "ArrowDown": (40, ""), "Home": (36, ""), "End": (35, "")}

    def key(self, name):
        code, text = self.KEYS.get(name, (ord(name[0].upper()), name))
        event = {"key": name, "windowsVirtualKeyCode": code, "code": name if len(name) > 1 else ""}
        self.send("Input.dispatchKeyEvent", {"type": "keyDown", **event, **({"text": text} if text else {})})
        self.send("Input.dispatchKeyEvent", {"type": "keyUp", **event})
        self.settle()

    def type(self, text):
        for c in text:
            self.key(c)

    def screenshot(self, path):
        self.settle()
        data = self.send("Page.captureScreenshot", {"format": "png", "captureBeyondViewport": False})["data"]
        pathlib.Path(path).write_bytes(base64.b64decode(data))
