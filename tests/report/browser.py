"""browser.py - reports in Chromium: tests/browser/chromium.py, with files in place of addresses,
keys that write, and what was fetched.

with Browser() as b:
    page = b.open("report.html", 1280, 800)
    page.eval("document.title"); page.click("#search"); page.type("conv"); page.screenshot("x.png")
    page.errors, page.fetched
"""

import pathlib
import shutil
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "browser"))
import chromium  # noqa: E402
from chromium import Failed, Lost  # noqa: E402, F401


def find():
    """The program, or None."""
    return next(filter(None, map(shutil.which, chromium.NAMES)), None)


class Browser(chromium.Chromium):
    def open(self, path, width=1280, height=800, dark=False):
        return Page(self, path, width, height, dark)


class Page(chromium.Page):
    # virtual key and text of keys that are no letters
    KEYS = {
        "Enter": (13, "\r"),
        "Tab": (9, ""),
        "Escape": (27, ""),
        "Backspace": (8, ""),
        "ArrowLeft": (37, ""),
        "ArrowUp": (38, ""),
        "ArrowRight": (39, ""),
        "ArrowDown": (40, ""),
        "Home": (36, ""),
        "End": (35, ""),
    }

    def __init__(self, browser, path, width, height, dark):
        super().__init__(browser, None, width, height, width < 600)
        for domain in ("Network", "DOM"):
            self.call(f"{domain}.enable")
        self.call(
            "Emulation.setEmulatedMedia",
            features=[{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}],
        )
        file, mark, query = str(path).partition("?")
        address = pathlib.Path(file).resolve().as_uri() + mark + query
        self.load(address)

    @property
    def fetched(self):
        return [
            e["params"]["request"]["url"]
            for e in self.browser.events
            if e.get("sessionId") == self.session and e["method"] == "Network.requestWillBeSent"
        ]

    def eval(self, text):
        """As if somebody had asked for it by a click: the clipboard is open to it."""
        said = self.call(
            "Runtime.evaluate",
            expression=text,
            returnByValue=True,
            awaitPromise=True,
            userGesture=True,
        )
        if "exceptionDetails" in said:
            d = said["exceptionDetails"]
            raise Failed(f"{text:.120}: {d.get('exception', {}).get('description', d['text'])}")
        return said["result"].get("value")

    def wait(self, condition, seconds=1800):
        super().wait(f"Boolean({condition})", seconds)  # an element is no value

    def settle(self):
        """Two frames later."""
        self.eval("new Promise(f => requestAnimationFrame(() => requestAnimationFrame(f)))")

    def wheel(self, x, y, delta):
        self.call("Input.dispatchMouseEvent", type="mouseWheel", x=x, y=y, deltaX=0, deltaY=delta)
        self.settle()

    def click_at(self, x, y):
        self.drag([(x, y)])
        self.settle()

    def click(self, selector):
        if not self.eval(f"Boolean(document.querySelector({selector!r}))"):
            raise Failed(f"there is no {selector}")
        super().click(selector)
        self.settle()

    def key(self, key, code=None):
        number, text = self.KEYS.get(key, (ord(key[0].upper()), key))
        event = {
            "key": key,
            "windowsVirtualKeyCode": number,
            "code": code or (key if len(key) > 1 else ""),
        }
        self.call(
            "Input.dispatchKeyEvent", type="keyDown", **event, **({"text": text} if text else {})
        )
        self.call("Input.dispatchKeyEvent", type="keyUp", **event)
        self.settle()

    def type(self, text):
        for c in text:
            self.key(c)

    def screenshot(self, path):
        self.settle()
        super().screenshot(path)
