"""A real browser for the tests of the page: Debian's Chromium, driven by its chromedriver through
the WebDriver protocol, which is JSON over HTTP. Python's own library suffices.
"""

import base64
import json
import os
import shutil
import subprocess
import tempfile
import time
import urllib.error
import urllib.request

from harness import TIME_FACTOR


def missing():
    """Why there is no browser to test with; empty when there is one."""
    for program, package in (("chromium", "chromium"), ("chromedriver", "chromium-driver")):
        if not shutil.which(program):
            return f"{program} is missing (Debian package {package})"
    return ""


class Browser:
    """One window. `dark` and `size` are what the person has set and holds."""

    def __init__(self, size=(1440, 900), dark=False, pixel_ratio=1):
        self.profile = tempfile.mkdtemp(prefix="gleaner-browser-")
        self.driver, self.port = self._start_driver()
        arguments = ["--headless=new", f"--user-data-dir={self.profile}", "--disable-gpu",
                     "--disable-dev-shm-usage", f"--window-size={size[0]},{size[1]}",
                     f"--force-device-scale-factor={pixel_ratio}", "--no-first-run",
                     "--disable-background-networking", "--disable-component-update"]
        if hasattr(os, "geteuid") and os.geteuid() == 0:
            arguments.append("--no-sandbox")  # Chromium refuses root otherwise
        capabilities = {"browserName": "chrome", "acceptInsecureCerts": True, "goog:loggingPrefs": {"browser": "ALL"},
                        "goog:chromeOptions": {"args": arguments}}
        made = self._call("POST", "/session", {"capabilities": {"alwaysMatch": capabilities}})
        self.session = f"/session/{made['sessionId']}"
        self.devtools("Emulation.setDeviceMetricsOverride", width=size[0], height=size[1],
                      deviceScaleFactor=pixel_ratio, mobile=size[0] < 600)
        self.devtools("Emulation.setEmulatedMedia", features=[
            {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}])

    @staticmethod
    def _start_driver(tries=5):
        """The driver and its port. It takes a free port of one address family, and ends when the same
        port is taken in the other: then another one is tried."""
        said = []
        for _ in range(tries):
            driver = subprocess.Popen(["chromedriver", "--port=0"], stdout=subprocess.PIPE,
                                      stderr=subprocess.STDOUT, text=True, start_new_session=True)
            for line in driver.stdout:
                said.append(line)
                if "started successfully on port" in line:
                    return driver, int(line.rsplit("on port", 1)[1].strip(" .\n"))
            driver.kill()
            driver.wait()
            driver.stdout.close()
        raise AssertionError("chromedriver does not start:\n" + "".join(said))

    def _call(self, method, path, body=None):
        request = urllib.request.Request(
            f"http://127.0.0.1:{self.port}{path}", method=method,
            data=None if body is None else json.dumps(body).encode(),
            headers={"Content-Type": "application/json"})
        try:
            with urllib.request.urlopen(request, timeout=120) as answer:
                return json.load(answer)["value"]
        except urllib.error.HTTPError as error:
            raise AssertionError(error.read().decode(errors="replace")[:2000]) from error

    def close(self):
        try:
            self._call("DELETE", self.session)
        except (AssertionError, OSError):
            pass
        self.driver.terminate()
        self.driver.wait()
        self.driver.stdout.close()
        shutil.rmtree(self.profile, ignore_errors=True)

    def devtools(self, command, **parameters):
        return self._call("POST", f"{self.session}/goog/cdp/execute", {"cmd": command, "params": parameters})

    def open(self, url):
        self._call("POST", f"{self.session}/url", {"url": url})

    def run(self, script, *arguments):
        """What the function body `script` returns in the page."""
        return self._call("POST", f"{self.session}/execute/sync", {"script": script, "args": arguments})

    def text(self, selector):
        return self.run("return document.querySelector(arguments[0]).textContent", selector)

    def wait(self, script, what, seconds=60 * TIME_FACTOR):
        """Waits until the script's value is true, and returns it."""
        deadline = time.monotonic() + seconds
        while True:
            value = self.run(script)
            if value:
                return value
            if time.monotonic() > deadline:
                raise AssertionError(f"the page never came to: {what}\n{self.console()}")

    def console(self):
        """What the page and the browser complained of since the last call."""
        return self._call("POST", f"{self.session}/se/log", {"type": "browser"})

    def screenshot(self, path, whole=True):
        shot = self.devtools("Page.captureScreenshot", captureBeyondViewport=whole)
        with open(path, "wb") as file:
            file.write(base64.b64decode(shot["data"]))
