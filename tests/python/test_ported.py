"""A script for napkinXC, ported to this package: the number of changed lines, and that it runs."""

import difflib
import json
import subprocess
import sys
import unittest
from pathlib import Path

from cases import SECONDS, SKIPPED, Case, run

try:
    import sklearn  # noqa: F401
except ImportError:
    print("skipped: needs scikit-learn (python3-sklearn)")
    sys.exit(SKIPPED)

HERE = Path(__file__).parent
BEFORE, AFTER = HERE / "label_tree.py", HERE / "label_tree_ported.py"
LINES_MAX = 10


def lines(path):
    """The lines of a script that do something."""
    text = path.read_text(encoding="utf-8")
    return [line for line in text.split('"""', 2)[2].splitlines() if line.strip()]


class Ported(Case):
    def test_at_most_ten_lines_change(self):
        parts = difflib.SequenceMatcher(None, lines(BEFORE), lines(AFTER)).get_opcodes()
        changed = sum(max(to - first, end - begin) for kind, first, to, begin, end in parts if kind != "equal")
        self.assertLessEqual(changed, LINES_MAX)
        self.assertGreater(changed, 0)

    def test_the_ported_script_fits_and_measures(self):
        run("gleaner", "dataset", "synth", "--train", self.path / "train.txt", "--points", 3000, "--test",
            self.path / "test.txt", "--test-points", 500, "--labels", 50, "--features", 500, "--noise", 0.8)
        for name in ("train", "test"):
            run("gleaner", "dataset", "convert", self.path / f"{name}.txt", "--output", self.path / f"{name}.svm")
        done = subprocess.run([sys.executable, AFTER, self.path / "train.svm", self.path / "test.svm",
                               self.path / "model"], capture_output=True, text=True, timeout=SECONDS)
        self.assertEqual(done.returncode, 0, done.stderr)
        said = dict(line.split() for line in done.stdout.splitlines() if line.startswith("P@"))
        self.assertGreater(float(said["P@1"]), 0.5, done.stdout)
        exact = json.loads(run("gleaner", "evaluate", self.path / "model", "--data", self.path / "test.txt",
                               "--json"))["ways"][0]
        self.assertEqual(said, {f"P@{k}": f"{exact[f'p_at_{k}']:.4f}" for k in (1, 3, 5)})


if __name__ == "__main__":
    unittest.main()
