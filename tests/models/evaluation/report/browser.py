"""Chromium without a window, driven by its DevTools protocol over pipes."""

import base64
import json
import os
import select
import shutil
import subprocess
import time
from pathlib import Path

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
TIMEOUT_S = 60
LENGTHS = (  # of all sounds in a page, in seconds; -1 of one that cannot be decoded
    "Promise.all([...document.querySelectorAll('audio')].map((audio) => new Promise((done) => {"
    " audio.onloadedmetadata = () => done(audio.duration); audio.onerror = () => done(-1);"
    " audio.preload = 'auto'; audio.load(); })))"
)


def find_browser() -> str | None:
    """Where Chromium is, or None."""
    return next((path for name in NAMES if (path := shutil.which(name))), None)


IN_BROWSER = [  # marks of tests that take the fixture `browser`
    pytest.mark.page,
    pytest.mark.skipif(find_browser() is None, reason="no Chromium or Chrome is installed"),
]


class Browser:
    """One tab. What its console says and what fails to load is in `faults`."""

    def __init__(self, profile: Path) -> None:
        reads_commands, self._commands = os.pipe()
        self._answers, writes_answers = os.pipe()
        # the browser reads commands from its descriptor 3 and writes answers to 4
        shell = f'exec 3<&{reads_commands} 4>&{writes_answers}; exec "$@"'
        flags = ["--headless", "--no-sandbox", "--disable-gpu", "--remote-debugging-pipe"]
        flags += ["--autoplay-policy=no-user-gesture-required", "--mute-audio", "--hide-scrollbars"]
        browser = find_browser()
        assert browser is not None  # tests are skipped without one
        self._process = subprocess.Popen(
            ["bash", "-c", shell, "-", browser, *flags, f"--user-data-dir={profile}"],
            pass_fds=(reads_commands, writes_answers),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(reads_commands)
        os.close(writes_answers)
        self.faults: list[str] = []
        self._buffer = b""
        self._number = 0
        self._session: str | None = None
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        self._session = session
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def open(
        self, page: Path | str, width: int = 1280, height: int = 1600, scheme: str = "light"
    ) -> None:
        """Loads a file or an address and waits for it."""
        self.faults.clear()
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 500}
        self.call("Emulation.setDeviceMetricsOverride", **size)
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        self.call("Emulation.setEmulatedMedia", features=features)
        address = page.resolve().as_uri() if isinstance(page, Path) else page
        self.call("Page.navigate", url=address)
        self.run(
            "new Promise((done) => document.readyState === 'complete' ? done() : (onload = done))"
        )

    def run(self, code: str) -> object:
        """The value of JavaScript, of a promise once it has one."""
        answer = self.call(
            "Runtime.evaluate", expression=code, awaitPromise=True, returnByValue=True
        )
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    def screenshot(self, path: Path) -> None:
        """Writes what is in the window."""
        path.write_bytes(base64.b64decode(self.call("Page.captureScreenshot")["data"]))

    def close(self) -> None:
        """Ends it."""
        self._session = None
        self.call("Browser.close")
        self._process.wait(TIMEOUT_S)
        os.close(self._commands)
        os.close(self._answers)

    def call(self, method: str, **parameters: object) -> dict:
        """What the browser answers to a command."""
        self._number += 1
        message = {"id": self._number, "method": method, "params": parameters}
        if self._session is not None:
            message["sessionId"] = self._session
        os.write(self._commands, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._next()
            if answer.get("id") == self._number:
                assert "error" not in answer, answer["error"]
                return answer["result"]
            self._note(answer)

    def _next(self) -> dict:
        until = time.monotonic() + TIMEOUT_S
        while b"\0" not in self._buffer:
            ready, _, _ = select.select([self._answers], [], [], until - time.monotonic())
            assert ready, "the browser does not answer"
            block = os.read(self._answers, 1 << 16)
            assert block, "the browser has ended"
            self._buffer += block
        answer, _, self._buffer = self._buffer.partition(b"\0")
        return json.loads(answer)

    def _note(self, event: dict) -> None:
        method, parameters = event.get("method"), event.get("params", {})
        if method == "Runtime.exceptionThrown":
            self.faults.append(str(parameters["exceptionDetails"]))
        elif method == "Runtime.consoleAPICalled":
            self.faults.append(str(parameters["args"]))
        elif method == "Log.entryAdded":
            self.faults.append(parameters["entry"]["text"])
        elif method == "Network.loadingFailed" and not parameters.get("canceled"):
            self.faults.append(parameters["errorText"])
