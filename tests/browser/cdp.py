# Copyright: (c) 2026, accel.cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A headless Chromium, driven over its DevTools protocol: just what the tests of a page need.

Run as a program it takes a picture of a page: ``cdp.py report.html picture.png --scheme dark --until '#state-unknown'``

Every wait is for a message of the browser, with a deadline; nothing sleeps in place of a condition but the start,
which polls for the file in which the browser says its port.
"""

from __future__ import annotations

import argparse
import base64
import json
import os
import shutil
import subprocess
import tempfile
import time
from pathlib import Path

import websocket

FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--remote-debugging-port=0",
)
DEADLINE_SECONDS = 60


def find_chromium() -> str | None:
    """Return the path of the browser, None when there is none."""
    return os.environ.get("ACCEL_CHROMIUM") or shutil.which("chromium")


class Browser:
    """One browser with a profile of its own, which is gone afterwards. A context manager."""

    def __init__(self, program: str) -> None:
        self._home = tempfile.TemporaryDirectory(prefix="accel-browser-", ignore_cleanup_errors=True)
        self._log = (Path(self._home.name) / "log").open("w+b")
        profile = Path(self._home.name) / "profile"
        profile.mkdir()
        self._process = subprocess.Popen(
            [program, *FLAGS, f"--user-data-dir={profile}", "about:blank"],
            stdin=subprocess.DEVNULL,
            stdout=self._log,
            stderr=self._log,
            env=dict(os.environ, HOME=self._home.name),
        )
        try:
            port, path = self._address(profile / "DevToolsActivePort")
            # The browser refuses an Origin that it was not told of.
            self.socket = websocket.create_connection(
                f"ws://127.0.0.1:{port}{path}", timeout=DEADLINE_SECONDS, suppress_origin=True
            )
        except BaseException:
            self.close()
            raise
        self._last_id = 0
        self._pages: dict[str, Page] = {}

    def _address(self, file: Path) -> tuple[str, str]:
        end = time.monotonic() + DEADLINE_SECONDS
        while time.monotonic() < end:
            if self._process.poll() is not None:
                break
            lines = file.read_text().split() if file.exists() else []
            if len(lines) == 2:
                return lines[0], lines[1]
            time.sleep(0.05)
        self._log.seek(0)
        raise RuntimeError("the browser did not start: " + self._log.read().decode(errors="replace")[-2000:])

    def __enter__(self) -> Browser:
        return self

    def __exit__(self, *dummy) -> None:
        self.close()

    def close(self) -> None:
        """End the browser and remove its profile."""
        if hasattr(self, "socket"):
            self.socket.close()
        self._process.terminate()
        try:
            self._process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._log.close()
        self._home.cleanup()

    def call(self, method: str, session: str | None = None, **params) -> dict:
        """Send a command, wait for its answer and return it; events that come meanwhile go to their page."""
        self._last_id += 1
        number = self._last_id
        message = {"id": number, "method": method, "params": params}
        if session:
            message["sessionId"] = session
        self.socket.send(json.dumps(message))
        end = time.monotonic() + DEADLINE_SECONDS
        while True:
            answer = self.receive(end)
            if answer.get("id") == number:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']}")
                return answer["result"]

    def receive(self, end: float) -> dict:
        """Return the next message, after a page has noted it when it is an event."""
        self.socket.settimeout(max(end - time.monotonic(), 0.01))
        message = json.loads(self.socket.recv())
        page = self._pages.get(message.get("sessionId"))
        if page and "method" in message:
            page.note(message["method"], message["params"])
        return message

    def page(self) -> Page:
        """Return a new page."""
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        page = Page(self, target, session)
        self._pages[session] = page
        for domain in ("Page", "Runtime", "Log", "Network"):
            page.call(f"{domain}.enable")
        return page


class Page:
    """One page. ``problems`` has all that went wrong on it in words, ``requests`` each address it asked for."""

    def __init__(self, browser: Browser, target: str, session: str) -> None:
        self.browser = browser
        self._target = target
        self._session = session
        self._loaded = False
        self.problems: list[str] = []
        self.requests: list[str] = []

    def call(self, method: str, **params) -> dict:
        """Send a command to this page."""
        return self.browser.call(method, self._session, **params)

    def note(self, method: str, params: dict) -> None:
        """Keep what an event tells."""
        if method == "Page.loadEventFired":
            self._loaded = True
        elif method == "Network.requestWillBeSent":
            self.requests.append(params["request"]["url"])
        elif method == "Network.loadingFailed":
            self.problems.append(f"request failed: {params['errorText']}")
        elif method == "Runtime.exceptionThrown":
            detail = params["exceptionDetails"]
            self.problems.append("exception: " + detail.get("exception", {}).get("description", detail["text"]))
        elif method == "Runtime.consoleAPICalled" and params["type"] in ("error", "warning", "assert"):
            words = [str(one.get("value", one.get("description"))) for one in params["args"]]
            self.problems.append(f"console {params['type']}: {' '.join(words)}")
        elif method == "Log.entryAdded" and params["entry"]["level"] in ("error", "warning"):
            self.problems.append(f"log {params['entry']['level']}: {params['entry']['text']}")

    def open(self, path: Path, *, width: int = 1280, height: int = 900, scheme: str = "light") -> None:
        """Open a file from disk and wait until it and its scripts have loaded."""
        self.call(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 600
        )
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
        # Else a picture of more than the view is laid out wider than what was tested.
        self.call("Emulation.setScrollbarsHidden", hidden=True)
        self._loaded = False
        self.requests.clear()
        self.problems.clear()
        answer = self.call("Page.navigate", url=path.resolve().as_uri())
        if "errorText" in answer:
            raise RuntimeError(f"{path}: {answer['errorText']}")
        end = time.monotonic() + DEADLINE_SECONDS
        while not self._loaded:
            self.browser.receive(end)
        # Errors of scripts that ran while loading are on the way before this answer.
        self.run("1")

    def run(self, expression: str):
        """Return the value of a JavaScript expression; a promise is awaited."""
        answer = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in answer:
            raise RuntimeError(answer["exceptionDetails"].get("exception", {}).get("description", "exception"))
        return answer["result"].get("value")

    def press(self, key: str, code: int, text: str = "") -> None:
        """Press and release a key."""
        common = {"key": key, "code": key, "windowsVirtualKeyCode": code}
        self.call("Input.dispatchKeyEvent", type="keyDown", text=text, **common)
        self.call("Input.dispatchKeyEvent", type="keyUp", **common)

    def screenshot(self, path: Path, *, whole: bool = True, height: int | None = None) -> None:
        """Write a picture: of the whole page, of its first ``height`` pixels, or of what is in view."""
        options: dict = {"format": "png"}
        if whole or height:
            size = self.call("Page.getLayoutMetrics")["cssContentSize"]
            clip = {"x": 0, "y": 0, "width": size["width"], "height": min(size["height"], height or 12000), "scale": 1}
            options.update(clip=clip, captureBeyondViewport=True)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(base64.b64decode(self.call("Page.captureScreenshot", **options)["data"]))

    def close(self) -> None:
        """Close the page."""
        self.browser.call("Target.closeTarget", targetId=self._target)


def main() -> None:
    """Take a picture."""
    parser = argparse.ArgumentParser(description="Take a picture of a page.")
    parser.add_argument("page", type=Path)
    parser.add_argument("picture", type=Path)
    parser.add_argument("--width", type=int, default=1280)
    parser.add_argument("--scheme", choices=("light", "dark"), default="light")
    parser.add_argument("--until", help="selector of the element above which the picture ends")
    options = parser.parse_args()
    program = find_chromium()
    if not program:
        parser.error("there is no Chromium on this machine")
    with Browser(program) as browser:
        page = browser.page()
        page.open(options.page, width=options.width, scheme=options.scheme)
        height = None
        if options.until:
            height = page.run(f"document.querySelector({json.dumps(options.until)}).getBoundingClientRect().top | 0")
        page.screenshot(options.picture, height=height)
        for problem in page.problems:
            print(problem)


if __name__ == "__main__":
    main()
