"""An exported model that carries its words: NumPy alone predicts with it from raw text."""

import json
import os
import random
import re
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

GLEANER, MASTER = (os.path.join(os.environ["GLEANER_BIN"], name) for name in ("gleaner", "gleaner-master"))
README = Path(__file__).resolve().parents[2] / "tools/predict/README.md"
SECONDS = 120
CLASSES = 15


def run(*arguments, given=""):
    done = subprocess.run([GLEANER, *map(str, arguments)], input=given, capture_output=True,
                          text=True, timeout=SECONDS)
    return done.returncode, done.stdout, done.stderr


def numpy_python():
    for python in (sys.executable, "/usr/bin/python3"):
        if subprocess.run([python, "-c", "import numpy"], capture_output=True).returncode == 0:
            return python
    return None


def sentence(draw, topic):
    """Words of a topic among words of all; capitals, digits and repeated words occur."""
    words = [f"{'Tree c++ river STONE'.split()[draw.randrange(4)]}{topic}" for _ in range(draw.randrange(1, 5))]
    words += [f"word{draw.randrange(40)}" for _ in range(draw.randrange(6))]
    draw.shuffle(words)
    return " ".join(words) + draw.choice(["", ".", ", again?", "!"])


class RawText(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.path = Path(folder.name)
        cls.set, draw = cls.path / "set", random.Random(1)
        source = cls.path / "texts.csv"
        source.write_text("text,tags\n" + "".join(
            f'"{sentence(draw, i % CLASSES)}",topic {i % CLASSES};half {i % 2}\n' for i in range(900)))
        status, _, err = run("dataset", "convert", source, "--text", "text", "--tags", "tags",
                             "--tag-separator", ";", "--share", 0.1, "--output", cls.set)
        assert status == 0, err
        cls.texts = "".join(sentence(draw, i % CLASSES) + "\n" for i in range(200))

    def trained(self, name, *flags):
        store = self.path / name
        subprocess.run([MASTER, "--train", self.set / "train.txt", "--store", store, "--local", "1",
                        "--threads", "1", "--epochs", "3", "--quiet", *flags], check=True,
                       capture_output=True, timeout=SECONDS)
        return store

    def exported(self, store, ending):
        target = self.path / f"{store.name}.{ending}"
        status, out, err = run("export", store, "--to", target, "--data", self.set, "--force", "--json")
        self.assertEqual((status, err), (0, ""))
        self.assertTrue(json.loads(out)["reads_texts"])
        return target

    def printed(self, *arguments):
        """What `gleaner predict` prints for each text: its labels and their percentages."""
        status, out, err = run("predict", *arguments, "--top", 5, given=self.texts)
        self.assertEqual((status, err), (0, ""))
        answers = [re.findall(r"^ +([0-9.]+ %)    (.+)$", block, re.MULTILINE)
                   for block in out.split("\n\n")[1:-1]]
        self.assertEqual(len(answers), 200)
        return [[(label, percent) for percent, label in answer] for answer in answers]

    def numpy_answers(self, model):
        python = numpy_python()
        if python is None:
            self.skipTest("needs NumPy (python3-numpy)")
        scripts = re.findall(r"```python\n(.*?)```", README.read_text(), re.DOTALL)
        script = next(script for script in scripts if "model.npz" in script)
        self.assertLessEqual(sum(1 for line in script.splitlines() if line), 26)
        script = script.replace("model.npz", str(model))
        done = subprocess.run(
            [python, "-c", script + "import sys\nprint(json.dumps([predict(t) for t in sys.stdin]))"],
            input=self.texts, capture_output=True, text=True, timeout=SECONDS)
        self.assertEqual(done.returncode, 0, done.stderr)
        return [[tuple(pair) for pair in answer] for answer in json.loads(done.stdout)]

    def assert_same_digits(self, ours, theirs):
        for own, other in zip(ours, theirs, strict=True):
            self.assertEqual([percent for _, percent in own], [percent for _, percent in other])
            # Labels of one logit may stand in either order; the last may tie with a label that is not shown.
            for percent in {percent for _, percent in own} - {own[-1][1]}:
                self.assertEqual({label for label, p in own if p == percent},
                                 {label for label, p in other if p == percent})

    def test_numpy_predicts_from_raw_text_what_gleaner_prints(self):
        store = self.trained("wide", "--hidden", "0")
        self.assert_same_digits(self.printed(store, "--text", self.set),
                                self.numpy_answers(self.exported(store, "npz")))

    def test_numpy_predicts_with_a_hidden_layer(self):
        store = self.trained("deep", "--hidden", "32")
        expected = self.printed(store, "--text", self.set)
        found = self.numpy_answers(self.exported(store, "npz"))
        # A unit that lies between two bytes may become either.
        same = sum(own[0] == other[0] for own, other in zip(expected, found, strict=True))
        self.assertGreater(same, 190)

    def test_a_model_file_reads_texts_by_itself_and_passes_its_words_on(self):
        store = self.trained("alone", "--hidden", "0")
        expected = self.printed(store, "--text", self.set)
        model = self.exported(store, "safetensors")
        self.assertEqual(self.printed(model, "--text", model), expected)
        again = self.path / "again.safetensors"
        self.assertEqual(run("export", model, "--to", again)[0], 0)
        self.assertEqual(self.printed(again, "--text", again), expected)
        self.assertEqual(run("export", model, "--to", self.path / "again.npz")[0], 0)
        self.assert_same_digits(expected, self.numpy_answers(self.path / "again.npz"))

    def test_a_model_without_words_says_what_it_lacks(self):
        store, model = self.trained("silent", "--hidden", "0"), self.path / "silent.safetensors"
        status, out, _ = run("export", store, "--to", model, "--json")
        self.assertEqual((status, json.loads(out)["reads_texts"]), (0, False))
        status, out, err = run("predict", model, "--text", model, given="a")
        self.assertEqual((status, out), (3, ""))
        self.assertIn("gleaner export --data", err)

    def test_words_of_another_data_set_are_refused(self):
        store, other = self.trained("own", "--hidden", "0"), self.path / "other"
        few = self.path / "few.csv"
        few.write_text("text,tags\na b,x\na b,y\n")
        self.assertEqual(run("dataset", "convert", few, "--text", "text", "--tags", "tags", "--output",
                             other)[0], 0)
        status, _, err = run("export", store, "--to", self.path / "never.npz", "--data", other)
        self.assertEqual(status, 3)
        self.assertIn("with which the model was trained", err)

    def test_damaged_words_are_refused(self):
        model = self.exported(self.trained("damaged", "--hidden", "0"), "safetensors")
        whole = model.read_bytes()
        for old, new, piece in ((b'"kind":"text"', b'"kind":"tess"', "words in"),
                                (b"\nword1\n", b"\nwo\nd1\n", "feature_names in"),
                                (b'"words":{"dtype":"U8"', b'"words":{"dtype":"U9"', "words is no list of bytes")):
            self.assertTrue(old in whole, old)
            model.write_bytes(whole.replace(old, new))
            status, out, err = run("predict", model, "--text", model, given="a")
            self.assertEqual((status, out), (3, ""), err)
            self.assertIn(piece, err)


if __name__ == "__main__":
    unittest.main()
