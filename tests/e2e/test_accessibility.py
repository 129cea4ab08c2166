"""The three pages before axe-core, in light and dark and on a phone: it finds no fault.

axe-core (MPL 2.0) judges pages' accessibility. It belongs neither to Gleaner nor to a Debian package, and
comes from npm's registry: without npm or the registry these tests say so and are skipped.
"""

import functools
import hashlib
import json
import shutil
import subprocess
import sys
import tarfile
import tempfile
import unittest

import browser
from page_case import PageCase

PACKAGE = "axe-core@4.10.2"
SHA256 = "9ea2d2d6917da998122bdacfd3b473e31ead53f4b87146c716a12edf89158100"
SETUPS = ({}, {"dark": True}, {"size": (390, 844), "pixel_ratio": 2})


@functools.lru_cache(maxsize=1)
def source():
    """(axe-core's source, why there is none); one of both is empty."""
    if not shutil.which("npm"):
        return "", "npm is missing: accessibility is not judged by axe-core"
    with tempfile.TemporaryDirectory(prefix="gleaner-axe-") as folder:
        try:
            got = subprocess.run(["npm", "pack", PACKAGE, "--silent", "--fetch-retries=0", "--fetch-timeout=20000"],
                                 cwd=folder, capture_output=True, text=True, timeout=90, check=True)
            name = f"{folder}/{got.stdout.split()[-1]}"
        except (subprocess.SubprocessError, IndexError) as error:
            return "", f"npm's registry cannot be reached: accessibility is not judged by axe-core ({error})"
        with open(name, "rb") as file:
            if hashlib.sha256(file.read()).hexdigest() != SHA256:
                raise AssertionError(f"{PACKAGE} is not what it was")
        with tarfile.open(name) as archive:
            return archive.extractfile("package/axe.min.js").read().decode(), ""


def violations(window):
    """What axe-core has against the page that the window shows, a line for each rule and element."""
    window.run(source()[0])
    return window.run("return axe.run(document, {resultTypes: ['violations']}).then((r) => r.violations.flatMap("
                      "(v) => v.nodes.map((n) => `${v.id} (${v.impact}): ${n.target}: ${n.failureSummary}`)))")


@unittest.skipIf(browser.missing(), browser.missing())
class Accessibility(PageCase):
    def setUp(self):
        reason = source()[1]
        if reason:
            print(f"SKIPPED: {reason}", file=sys.stderr)
            self.skipTest(reason)
        super().setUp()

    def judge(self, url, is_there):
        for setup in SETUPS:
            with self.subTest(url=url, **setup):
                window = browser.Browser(**setup)
                try:
                    window.open(url)
                    window.wait(is_there, "all of the page")
                    self.assertEqual(violations(window), [])
                finally:
                    window.close()

    def test_the_runs_page(self):
        master, port, _ = self.start()
        master.wait_event("evaluated")
        self.judge(f"http://127.0.0.1:{port}/#{self.key}",
                   "return document.querySelectorAll('#join svg').length && document.querySelectorAll('#events li').length"
                   " && document.querySelectorAll('#receipts tbody tr').length"
                   " && document.querySelectorAll('#volunteers tbody tr').length")

    def test_the_page_of_a_model_that_answers(self):
        stores = [self.cluster.path(name) for name in ("a", "b")]
        for store in stores:
            self.setup.with_flag("--epochs", 2).run_local(self.cluster, store)
        server = self.cluster.start("gleaner", "serve", *stores, "--http", "127.0.0.1:0", "--json")
        server.wait_for(lambda: server.out, "an address")
        self.judge(json.loads(server.out[0])["url"], "return document.querySelectorAll('#compare .chart').length")

    def test_a_volunteers_page(self):
        self.start(volunteers=0, checkpoints=0)
        volunteer = self.cluster.volunteer(self.address, "--http", "127.0.0.1:0")
        told = volunteer.wait_event("log", lambda event: "steer" in event["message"])
        self.judge(told["message"].split()[-1], "return document.querySelectorAll('#events li').length"
                                                " && document.querySelectorAll('#work dd').length")


if __name__ == "__main__":
    sys.exit(unittest.main())
