"""A real Chromium without a window, spoken to over a pipe in its DevTools protocol.

The pipe needs no package: a driver such as Playwright would add 50 MB to every development
environment for the few things that the tests do.
"""

import base64
import fcntl
import json
import os
import shutil
import signal
import time
from itertools import count
from select import select

NAMES = ("chromium", "chromium-browser", "google-chrome")
CHROMIUM = next(filter(None, map(shutil.which, NAMES)), None)
FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--remote-debugging-pipe",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--mute-audio",
    "--use-fake-device-for-media-stream",
    "--use-fake-ui-for-media-stream",
    "--disable-extensions",
    "--disable-dev-shm-usage",
    "--force-device-scale-factor=1",
    "--hide-scrollbars",
]
SECONDS = 60  # until a browser that says nothing is given up
KEYS = {"Tab": 9, "Enter": 13, "Escape": 27, "End": 35, "Home": 36, "ArrowLeft": 37, "ArrowUp": 38,
        "ArrowRight": 39, "ArrowDown": 40, "Delete": 46}  # fmt: skip


class Browser:
    """One browser with one page."""

    def __init__(self, folder):
        asks, hears = os.pipe(), os.pipe()
        read, write = (fcntl.fcntl(fd, fcntl.F_DUPFD, 20) for fd in (asks[0], hears[1]))
        quiet = os.open(os.devnull, os.O_WRONLY)
        self.process = os.posix_spawn(
            CHROMIUM,
            [CHROMIUM, *FLAGS, f"--user-data-dir={folder}"],
            os.environ,
            file_actions=[
                (os.POSIX_SPAWN_DUP2, read, 3),
                (os.POSIX_SPAWN_DUP2, write, 4),
                (os.POSIX_SPAWN_DUP2, quiet, 1),
                (os.POSIX_SPAWN_DUP2, quiet, 2),
            ],
            setsid=True,
        )
        for fd in (asks[0], hears[1], read, write, quiet):
            os.close(fd)
        self.asks, self.hears, self.buffer = asks[1], hears[0], b""
        self.numbers, self.session = count(1), None
        self.errors, self.requests, self.loaded = [], [], False
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        attached = self.call("Target.attachToTarget", targetId=target, flatten=True)
        self.session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def close(self):
        os.killpg(self.process, signal.SIGKILL)
        os.waitpid(self.process, 0)
        os.close(self.asks)
        os.close(self.hears)

    def call(self, method, **parameters):
        number = next(self.numbers)
        asked = {"id": number, "method": method, "params": parameters}
        if self.session:
            asked["sessionId"] = self.session
        os.write(self.asks, json.dumps(asked).encode() + b"\0")
        while (message := self.next_message()).get("id") != number:
            self.note(message)
        assert "error" not in message, (method, message["error"])
        return message["result"]

    def next_message(self):
        while b"\0" not in self.buffer:
            ready, _, _ = select([self.hears], [], [], SECONDS)
            if not ready:
                raise TimeoutError("the browser does not answer")
            found = os.read(self.hears, 2**20)
            assert found, "the browser is gone"
            self.buffer += found
        message, self.buffer = self.buffer.split(b"\0", 1)
        return json.loads(message)

    def note(self, message):
        """Remember what went wrong, and what was fetched."""
        method, values = message.get("method"), message.get("params", {})
        if method == "Runtime.exceptionThrown":
            self.errors.append(values["exceptionDetails"])
        elif method == "Runtime.consoleAPICalled" and values["type"] in ("error", "warning"):
            self.errors.append(values["args"])
        elif method == "Log.entryAdded" and values["entry"]["level"] in ("error", "warning"):
            self.errors.append(values["entry"])
        elif method == "Network.requestWillBeSent":
            self.requests.append(values["request"]["url"])
        elif method == "Page.loadEventFired":
            self.loaded = True

    def open(self, place, *, width=1000, height=900, scheme="light", language="en-US"):
        """Show a file or an address, and wait until it is drawn."""
        self.resize(width, height)
        self.prefer(scheme)
        self.call("Emulation.setUserAgentOverride", userAgent="", acceptLanguage=language)
        for url in ("about:blank", place if isinstance(place, str) else place.as_uri()):
            self.errors, self.requests, self.loaded = [], [], False
            self.call("Page.navigate", url=url)
            while not self.loaded:
                self.note(self.next_message())
        self.settle()

    def resize(self, width, height):
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width, height=height, deviceScaleFactor=1, mobile=width < 500,
        )  # fmt: skip

    def prefer(self, scheme):
        feature = {"name": "prefers-color-scheme", "value": scheme}
        self.call("Emulation.setEmulatedMedia", features=[feature])

    def settle(self):
        """Wait for two frames to be drawn."""
        wait = "new Promise(r => requestAnimationFrame(() => requestAnimationFrame(() => r(1))))"
        self.ask(wait)

    def until(self, expression, seconds=30):
        """Wait until an expression is true."""
        end = time.monotonic() + seconds
        while not self.ask(f"Boolean({expression})"):
            shown = self.ask("document.body.innerText")
            assert time.monotonic() < end, (expression, self.errors, shown)
            time.sleep(0.02)

    def ask(self, expression):
        """The value of an expression of JavaScript, or what its promise gives."""
        found = self.call(
            "Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True,
            userGesture=True,
        )  # fmt: skip
        assert "exceptionDetails" not in found, found["exceptionDetails"]
        return found["result"].get("value")

    def press(self, *keys):
        for key in keys:
            event = {"key": key, "windowsVirtualKeyCode": KEYS.get(key, ord(key[0]))}
            if key not in KEYS or key == "Enter":
                event["text"] = "\r" if key == "Enter" else key
            self.call("Input.dispatchKeyEvent", type="keyDown", **event)
            self.call("Input.dispatchKeyEvent", type="keyUp", **event)
        self.settle()

    def type(self, text):
        """Text at the cursor, as an input method gives it."""
        self.call("Input.insertText", text=text)

    def upload(self, selector, path):
        """Choose a file for an input."""
        root = self.call("DOM.getDocument")["root"]["nodeId"]
        node = self.call("DOM.querySelector", nodeId=root, selector=selector)["nodeId"]
        self.call("DOM.setFileInputFiles", nodeId=node, files=[str(path)])

    def point(self, selector, *, across=0.5, click=False):
        """Move the mouse to the middle of an element, and press it if asked to.

        `across` is the share of its width that is to the left of the mouse.
        """
        x, y = self.middle(selector, across)
        self.call("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)
        if click:
            for kind in ("mousePressed", "mouseReleased"):
                button = {"type": kind, "button": "left", "clickCount": 1}
                self.call("Input.dispatchMouseEvent", x=x, y=y, **button)
        self.settle()

    def tap(self, selector):
        """Touch the middle of an element with a finger."""
        x, y = self.middle(selector)
        self.call("Input.dispatchTouchEvent", type="touchStart", touchPoints=[{"x": x, "y": y}])
        self.call("Input.dispatchTouchEvent", type="touchEnd", touchPoints=[])
        self.settle()

    def middle(self, selector, across=0.5):
        """Where the middle of an element is, once the page is scrolled to it."""
        return self.ask(
            f"(() => {{ const e = document.querySelector({json.dumps(selector)});"
            "e.scrollIntoView({block: 'center'}); const r = e.getBoundingClientRect();"
            f"return [r.x + r.width * {across}, r.y + r.height / 2] }})()"
        )

    def screenshot(self, *, whole=True):
        """PNG bytes of the page."""
        found = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=whole)
        return base64.b64decode(found["data"])
