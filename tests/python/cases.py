"""Shared by the tests of the Python package: programs, a set of texts, and skipping."""

import os
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

SECONDS = 300
SKIPPED = 77  # as CMakeLists.txt has it

try:
    import scipy  # noqa: F401
except ImportError:
    print("skipped: needs SciPy (python3-scipy)")
    sys.exit(SKIPPED)

QUIET = {"progress": False, "threads": 1}
ANIMALS = ["cat", "dog", "cow", "owl", "bee", "eel", "fox", "hen"]


def program(name):
    return os.path.join(os.environ["GLEANER_BIN"], name)


def run(name, *arguments, given=""):
    """What the program prints; it must succeed."""
    done = subprocess.run([program(name), *map(str, arguments)], input=given, capture_output=True, text=True,
                          timeout=SECONDS, check=False)
    if done.returncode != 0:
        raise AssertionError(f"{name} {arguments}: {done.returncode}\n{done.stderr}")
    return done.stdout


def animal_texts(count, first=0):
    """Texts, each with the tags of its animal and of all."""
    texts = [f"the {ANIMALS[i % 8]} number {i % 13}, nest{i % 5} of Étienne" for i in range(first, first + count)]
    return texts, [[f"about {ANIMALS[i % 8]}", "all"] for i in range(first, first + count)]


class Case(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.path = Path(folder.name)

    def script(self, text, *arguments, before=()):
        """A Python program of its own, which ends with the test."""
        process = subprocess.Popen([*before, sys.executable, "-c", text, *map(str, arguments)], stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, text=True, cwd=os.path.dirname(os.path.abspath(__file__)))
        for clean in (process.stdout.close, process.stderr.close, process.wait, process.kill):
            self.addCleanup(clean)
        return process

    def wait(self, condition):
        deadline = time.monotonic() + SECONDS
        while not condition():
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.05)

    def checkpoint(self, store):
        """Rounds of the run in the store; 0 while there is none."""
        from gleaner import Model  # what the package lacks skips a test before
        try:
            return Model.load(store).checkpoint
        except (OSError, RuntimeError):
            return 0

    def write_csv(self, name, texts, tags):
        path = self.path / name
        path.write_text("text,tags\n" + "".join(
            f'"{text}",{";".join(own)}\n' for text, own in zip(texts, tags)), encoding="utf-8")
        return path
