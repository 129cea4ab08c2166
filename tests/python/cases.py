"""Shared by the tests of the Python package: programs, a set of texts, and skipping."""

import os
import subprocess
import sys
import tempfile
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

    def write_csv(self, name, texts, tags):
        path = self.path / name
        path.write_text("text,tags\n" + "".join(
            f'"{text}",{";".join(own)}\n' for text, own in zip(texts, tags)), encoding="utf-8")
        return path
