"""Debian's chromium, headless, spoken to over its DevTools protocol: what it logs, what it asks for, what it shows."""

from __future__ import annotations

import base64
import json
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from websockets.sync.client import ClientConnection, connect

QUIET = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
    "--remote-debugging-port=0",
    "about:blank",
]
TIMEOUT_S = 30


class Page:
    """One tab. `events` are all that arrived: console messages, log entries, requests."""

    def __init__(self, socket: ClientConnection) -> None:
        self._socket, self._id = socket, 0
        self.events: list[dict[str, Any]] = []
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        """One command's result."""
        self._id += 1
        self._socket.send(json.dumps({"id": self._id, "method": method, "params": parameters}))
        while True:
            message = self._receive()
            if message.get("id") == self._id:
                assert "error" not in message, f"{method}: {message['error']}"
                return dict(message["result"])

    def open(self, url: str, width: int = 1280, height: int = 900, *, dark: bool = False, media: str = "") -> None:
        """Load a page at a width in CSS pixels, in a colour scheme; `media` may be print."""
        self.events.clear()
        self.call(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 600
        )
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", media=media, features=[scheme])
        self.call("Page.navigate", url=url)
        while not any(event["method"] == "Page.loadEventFired" for event in self.events):
            self._receive()

    def run(self, script: str) -> Any:
        """The value of an expression in the page."""
        result = self.call("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in result, result["exceptionDetails"]
        return result["result"].get("value")

    def press(self, key: str, text: str = "", code: int = 0) -> None:
        """One key, down and up."""
        common = {"key": key, "code": key, "windowsVirtualKeyCode": code, "nativeVirtualKeyCode": code}
        self.call("Input.dispatchKeyEvent", type="keyDown", text=text, **common)
        self.call("Input.dispatchKeyEvent", type="keyUp", **common)

    def type(self, text: str) -> None:
        """Characters, one key each."""
        for character in text:
            self.press(character, character, ord(character.upper()))

    def screenshot(self, path: Path, *, whole: bool = False) -> None:
        """A PNG of the view, or of the whole page."""
        shot = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=whole)
        path.write_bytes(base64.b64decode(shot["data"]))

    def complaints(self) -> list[str]:
        """Console messages, log entries and exceptions."""
        kinds = ("Runtime.consoleAPICalled", "Runtime.exceptionThrown", "Log.entryAdded")
        return [json.dumps(event["params"])[:500] for event in self.events if event["method"] in kinds]

    def requests(self) -> list[str]:
        """Every URL that was asked for."""
        return [e["params"]["request"]["url"] for e in self.events if e["method"] == "Network.requestWillBeSent"]

    def _receive(self) -> dict[str, Any]:
        message: dict[str, Any] = json.loads(self._socket.recv(timeout=TIMEOUT_S))
        if "method" in message:
            self.events.append(message)
        return message


@contextmanager
def open_browser(profile_path: Path) -> Iterator[Page]:
    """A browser with a fresh profile; gone afterwards. An absent chromium fails the test: apt-get install chromium."""
    program = shutil.which("chromium")
    assert program, "chromium is not installed: apt-get install chromium"
    port_path = profile_path / "DevToolsActivePort"
    log_path = profile_path.with_suffix(".log")
    with log_path.open("wb") as log:
        process = subprocess.Popen([program, f"--user-data-dir={profile_path}", *QUIET], stdout=log, stderr=log)
    try:
        port = _wait_for_port(port_path, process, log_path)
        with connect(_page_url(port), max_size=64 << 20, proxy=None) as socket:
            yield Page(socket)
    finally:
        process.terminate()
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _wait_for_port(port_path: Path, process: subprocess.Popen[bytes], log_path: Path) -> int:
    deadline = time.monotonic() + TIMEOUT_S
    while not port_path.is_file() or len(port_path.read_text().split()) < 2:
        assert process.poll() is None, log_path.read_text()[-2000:]
        assert time.monotonic() < deadline, f"chromium opened no port: {log_path.read_text()[-2000:]}"
        time.sleep(0.05)
    return int(port_path.read_text().split()[0])


def _page_url(port: int) -> str:
    import urllib.request

    with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(f"http://127.0.0.1:{port}/json") as reply:
        tabs = json.load(reply)
    return str(next(tab["webSocketDebuggerUrl"] for tab in tabs if tab["type"] == "page"))
