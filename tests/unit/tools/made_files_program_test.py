"""What is made of a store: `gleaner export --prune`, `gleaner plot`; and charts of data sets:
made_files_program_test.py GLEANER AUDIT_WRITER."""

import json
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

GLEANER, WRITER = sys.argv[1], sys.argv[2]


def run(*arguments):
    done = subprocess.run([GLEANER, *map(str, arguments)], capture_output=True, text=True,
                          timeout=60)
    return done.returncode, done.stdout, done.stderr


class Stores(unittest.TestCase):
    CHECKPOINT = 3

    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.path = Path(self.folder.name)
        self.store = self.path / "store"
        subprocess.run([WRITER, self.store, str(self.CHECKPOINT), self.path / "backups"],
                       check=True, timeout=60)


class Export(Stores):
    CHECKPOINT = 1  # of which many rows are still as they were

    def exported(self, *arguments):
        target = self.path / "model.safetensors"
        status, out, err = run("export", self.store, "--to", target, "--force", "--json",
                               *arguments)
        self.assertEqual((status, err), (0, ""))
        raw = target.read_bytes()
        start = 8 + int.from_bytes(raw[:8], "little")
        header = json.loads(raw[8:start])

        def data(name):
            begin, end = header[name]["data_offsets"]
            return raw[start + begin:start + end]
        return json.loads(out), header, data

    def test_prune_leaves_out_the_neurons_that_no_update_touched(self):
        _, whole, whole_data = self.exported()
        report, pruned, data = self.exported("--prune")
        labels, hidden = whole["output.weight"]["shape"]
        kept = [label for label in range(labels)
                if json.loads(run("inspect", self.store, "neuron", label, "--json")[1])["is_stored"]]
        self.assertTrue(0 < len(kept) < labels)
        self.assertEqual(report["left_out"], labels - len(kept))
        self.assertEqual(pruned["output.weight"]["shape"], [len(kept), hidden])
        self.assertEqual([int.from_bytes(data("output.labels")[i:i + 4], "little")
                          for i in range(0, 4 * len(kept), 4)], kept)
        for name, width in (("output.weight", 4 * hidden), ("output.bias", 4), ("label_counts", 4)):
            rows = whole_data(name)
            self.assertEqual(data(name),
                             b"".join(rows[width * label:width * (label + 1)] for label in kept))
        self.assertEqual(data("input.weight"), whole_data("input.weight"))


class Plot(Stores):
    def plot(self, *arguments, **options):
        done = subprocess.run([GLEANER, "plot", str(self.store), "--out", str(self.path / "plots"),
                               *arguments], capture_output=True, text=True, timeout=60, **options)
        return done.returncode, done.stdout, done.stderr

    def test_without_gnuplot_it_names_the_package_and_writes_nothing(self):
        status, out, err = self.plot(env={"PATH": str(self.path)})
        self.assertEqual((status, out), (1, ""))
        self.assertIn("apt-get install gnuplot-nox", err)
        self.assertEqual(err.count("\n"), 1, err)
        self.assertEqual(list((self.path / "plots").iterdir()), [])

    @unittest.skipUnless(shutil.which("gnuplot"), "gnuplot is not installed (Debian: gnuplot-nox)")
    def test_what_the_history_has_is_drawn_and_nothing_is_replaced(self):
        for form, magic in (("svg", b"<?xml"), ("png", b"\x89PNG")):
            status, out, err = self.plot("--format", form, "--json")
            self.assertEqual((status, err), (0, ""))
            document = json.loads(out)
            self.assertEqual((document["gleaner_json"], document["verb"]), (1, "plot"))
            files = [Path(picture["file"]) for picture in document["pictures"]]
            self.assertEqual({file.stem for file in files} | set(document["not_measured"]),
                             {"loss", "precision", "psp", "active", "throughput", "volunteers",
                              "staleness", "bytes"})
            for file in files:
                self.assertTrue(file.read_bytes().startswith(magic), file)
        self.assertEqual(self.plot()[0], 2)
        self.assertEqual(self.plot("--force")[::2], (0, ""))

    @unittest.skipUnless(shutil.which("gnuplot"), "gnuplot is not installed (Debian: gnuplot-nox)")
    def test_label_frequencies_are_drawn(self):
        data = self.path / "train.txt"
        run("dataset", "synth", "--train", data, "--points", 500, "--labels", 60, "--features", 90)
        # Sets of few labels have empty classes.
        (self.path / "one.txt").write_text("1 1 1\n0 0:1\n")
        for source in (data, self.path / "one.txt"):
            for form, magic in (("svg", b"<?xml"), ("png", b"\x89PNG")):
                target = self.path / f"labels.{form}"
                status, out, err = run("dataset", "stats", source, "--out", target, "--force")
                self.assertEqual((status, err), (0, ""))
                self.assertIn("head", out)
                self.assertTrue(target.read_bytes().startswith(magic))
        self.assertEqual(run("dataset", "stats", data, "--out", target)[0], 2)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
