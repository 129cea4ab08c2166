"""Files made from a store: `gleaner export --prune`, `gleaner plot`:
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
    def test_several_runs_are_curves_of_one_picture(self):
        status, out, err = self.plot("--json")
        self.assertEqual((status, err), (0, ""))
        alone = {picture["title"]: picture["points"] for picture in json.loads(out)["pictures"]}
        shutil.copytree(self.store, self.path / "other")
        status, out, err = self.plot(str(self.path / "other"), "--json", "--force")
        self.assertEqual((status, err), (0, ""))
        for picture in json.loads(out)["pictures"]:
            drawn = Path(picture["file"]).read_text()
            for store in self.store, self.path / "other":
                self.assertIn(f"{store}: ", drawn)
            curves = {"Loss": 1, "Active neurons": 1, "Network": 2}.get(picture["title"])
            if curves:
                self.assertEqual(picture["points"], 2 * alone[picture["title"]] // curves)
        status, _, err = self.plot(str(self.path / "none"), "--force")
        self.assertEqual((status, err.count("\n")), (4, 1), err)
        self.assertIn(str(self.path / "none"), err)


class Sets(unittest.TestCase):
    """What `gleaner dataset --json` says of the sets it makes."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = Path(folder.name)
        self.all = self.path / "all.txt"
        self.made = self.ask("synth", "--train", self.all, "--test", self.path / "more.txt",
                             "--points", 300, "--test-points", 20, "--features", 90, "--labels", 60,
                             subject=self.all)

    def ask(self, verb, *arguments, subject=None):
        status, out, err = run("dataset", verb, *arguments, "--json")
        self.assertEqual((status, err), (0, ""), verb)
        self.assertEqual(out.count("\n"), 1)
        document = json.loads(out)
        self.assertEqual((document["gleaner_json"], document["verb"], document["subject"]),
                         (1, f"dataset {verb}", str(subject or self.all)))
        for made in document.get("written", []):
            self.assertTrue(Path(made["file"]).is_file(), made)
        return document

    def written(self, document):
        return [(Path(made["file"]).name, made["points"]) for made in document["written"]]

    def test_synth_and_info(self):
        self.assertEqual(self.written(self.made), [("all.txt", 300), ("more.txt", 20)])
        self.assertEqual((self.made["features"], self.made["labels"]), (90, 60))
        info = self.ask("info", self.all)
        self.assertEqual((info["points"], info["features"], info["form"]), (300, 90, "XC text"))

    def test_sample_convert_pack_and_split(self):
        sample = self.ask("split", self.all, "--points", 40, "--sample", self.path / "few.svm")
        self.assertEqual(self.written(sample), [("few.svm", 40)])
        self.assertEqual((sample["form"], sample["of_points"], sample["features"], sample["labels"]),
                         ("libsvm text", 300, 90, 60))
        converted = self.ask("convert", self.all, "--output", self.path / "all.gleaner")
        self.assertEqual(self.written(converted), [("all.gleaner", 300)])
        self.assertEqual((converted["form"], converted["features"], converted["labels"]),
                         ("packed", 90, 60))
        packed = self.ask("pack", self.all, "--output", self.path / "packed.gleaner")
        self.assertEqual(self.written(packed), [("packed.gleaner", 300)])
        self.assertRegex(packed["fingerprint"], "^[0-9a-f]{16}$")
        parts = self.ask("split", self.all, "--train", self.path / "a", "--test", self.path / "b")
        self.assertEqual(sum(points for _, points in self.written(parts)), 300)
        self.assertEqual([name for name, _ in self.written(parts)], ["a", "b"])
        self.assertEqual(parts["labels"], 60)

    def test_convert_of_texts(self):
        source = self.path / "posts.csv"
        source.write_text("text,tags\n" + "red apple,fruit\nred car,machine\n" * 20)
        learned = self.ask("convert", source, "--text", "text", "--tags", "tags", "--share", 0.25,
                           "--output", self.path / "posts", subject=source)
        self.assertEqual([name for name, _ in self.written(learned)], ["train.txt", "test.txt"])
        self.assertEqual((learned["features"], learned["labels"]), (3, 2))
        source.write_text("text,tags\nblue car,machine\ngreen,plant\n")
        later = self.ask("convert", source, "--vocabulary", self.path / "posts", "--output",
                         self.path / "new.txt", subject=source)
        self.assertEqual(later["written"], [{"file": str(self.path / "new.txt"), "points": 2,
                                             "without_labels": 1, "without_features": 1,
                                             "unknown_tags": 1}])


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
