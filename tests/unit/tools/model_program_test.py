"""`gleaner evaluate`, `export` and `diff` on a trained run: model_program_test.py GLEANER MASTER."""

import json
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

GLEANER, MASTER = sys.argv[1], sys.argv[2]
SECONDS = 120

# What tools/predict/README.md shows, once for each form of the file.
SCRIPT = """
import json, sys
import numpy as np
if sys.argv[1].endswith(".npz"):
    m = np.load(sys.argv[1])
else:
    raw = open(sys.argv[1], "rb").read()
    start = 8 + int.from_bytes(raw[:8], "little")
    m = {k: np.frombuffer(raw[start + t["data_offsets"][0]:start + t["data_offsets"][1]],
                          {"F32": "<f4", "U32": "<u4", "U8": "u1"}[t["dtype"]]).reshape(t["shape"])
         for k, t in json.loads(raw[8:start]).items() if k != "__metadata__"}
model = json.loads(m["metadata"].tobytes())
is_relu = model["model.hidden_units"] == "relu"
code_max = 2 ** (int(model.get("model.activation_bits", 8)) - 1) - 1
w, b, v, c = (m[k] for k in ("input.weight", "input.bias", "output.weight", "output.bias"))
hits = points = 0
for line in list(open(sys.argv[2]))[1:]:
    y, *f = line.rstrip("\\n").split(" ")
    i, x = np.array([pair.split(":") for pair in f], np.float32).reshape(-1, 2).T
    h = x / (np.linalg.norm(x) or 1) @ w[i.astype(int)] + b
    h = np.maximum(h, 0) if is_relu else h
    s = np.abs(h).max() / code_max
    best = (v @ (np.rint(h / (s or 1)) * s) + c).argmax()
    hits += str(best) in y.split(",")
    points += y != ""
print(hits / points, len(m["label_names"].tobytes().splitlines()), m["label_counts"].sum())
print(json.loads(m["metadata"].tobytes())["digest"])
"""


def run(*arguments):
    done = subprocess.run([GLEANER, *map(str, arguments)], capture_output=True, text=True,
                          timeout=SECONDS)
    return done.returncode, done.stdout, done.stderr


def numpy_python():
    for python in (sys.executable, "/usr/bin/python3"):
        done = subprocess.run([python, "-c", "import numpy"], capture_output=True)
        if done.returncode == 0:
            return python
    return None


class Model(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.path = Path(folder.name)
        cls.store, cls.test = cls.path / "store", cls.path / "test.txt"
        cls.train = cls.path / "train.txt"
        status, _, err = run("dataset", "synth", "--train", cls.train, "--test", cls.test,
                             "--points", 1500, "--test-points", 300, "--features", 200, "--labels",
                             150)
        assert status == 0, err
        cls.train_run(cls.store, 1)

    @classmethod
    def train_run(cls, store, seed, *flags):
        subprocess.run([MASTER, "--train", cls.train, "--test", cls.test, "--store", store,
                        "--local", "1", "--threads", "1", "--epochs", "2", "--seed", str(seed),
                        "--hidden", "128", "--sampling", "lsh", "--quiet", *flags], check=True,
                       capture_output=True, timeout=SECONDS)

    def evaluated(self, *arguments):
        status, out, err = run("evaluate", self.store, "--data", self.test, "--json", *arguments)
        self.assertEqual((status, err), (0, ""))
        return json.loads(out)

    def test_evaluate_says_what_the_run_measured(self):
        last = json.loads(run("history", self.store, "--json")[1].splitlines()[-1])
        for threads in (1, 3):
            way = self.evaluated("--threads", threads)["ways"][0]
            for metric in ("p_at_1", "p_at_3", "p_at_5", "psp_at_1", "psp_at_3", "psp_at_5"):
                self.assertEqual(way[metric], last[metric], metric)

    def test_classes_hold_all_labels_and_their_parts_add_up(self):
        document = self.evaluated()
        classes = document["by_frequency_exact"]
        self.assertEqual(sum(c["labels"] for c in classes), 150)
        self.assertAlmostEqual(sum(c["p_at_5_part"] for c in classes),
                               document["ways"][0]["p_at_5"], places=12)

    def test_with_all_neurons_as_candidates_the_tables_find_everything(self):
        document = self.evaluated("--tables", "--candidates", 150)
        self.assertEqual(document["recall_of_exact"], 1)
        exact, tables = document["ways"]
        for way in (exact, tables):
            del way["way"], way["examples_per_second"]
        self.assertEqual(exact, tables)
        few = self.evaluated("--tables", "--candidates", 5)
        self.assertLess(few["recall_of_exact"], 1)
        self.assertGreater(few["recall_of_exact"], 0.1)
        _, exact, _ = run("predict", self.store, "--input", self.test, "--json")
        _, tables, _ = run("predict", self.store, "--input", self.test, "--json", "--tables", 150)
        self.assertEqual(exact, tables)

    def test_an_exported_model_is_read_like_its_store(self):
        model = self.path / "like.safetensors"
        self.assertEqual(run("export", self.store, "--to", model)[0], 0)
        def answers(words):
            status, out, err = run("evaluate", words, "--data", self.test, "--tables",
                                   "--candidates", 20, "--json")
            self.assertEqual((status, err), (0, ""))
            document = json.loads(out)
            del document["subject"], document["checkpoint"]
            for way in document["ways"]:
                del way["examples_per_second"]
            return document, run("predict", words, "--input", self.test, "--json")
        self.assertEqual(answers(model), answers(self.store))
        row = json.loads(run("inspect", model, "neuron", 3, "--json")[1])
        stored = json.loads(run("inspect", self.store, "neuron", 3, "--json")[1])
        for key in ("label", "training_points", "norm", "bias", "nearest"):
            self.assertEqual(row[key], stored[key], key)

    def test_several_models_become_the_mean_of_their_logits(self):
        others = [self.path / "seed8", self.path / "seed9"]
        for seed, store in enumerate(others, 8):
            self.train_run(store, seed)
        stores = [self.store, *others]
        mean = self.path / "mean.safetensors"
        status, out, err = run("export", *stores, "--to", mean, "--json")
        self.assertEqual((status, err), (0, ""))
        document = json.loads(out)
        self.assertEqual(document["hidden"], 3 * 128)
        digests = [run("checkpoint", "digest", store)[1].strip() for store in stores]
        self.assertEqual([m["digest"] for m in document["models"]], digests)

        def logits(words):
            status, out, err = run("predict", words, "--input", self.test, "--top", 100, "--json")
            self.assertEqual((status, err), (0, ""))
            return [{p["label"]: p["logit"] for p in json.loads(line)["predicted"]}
                    for line in out.splitlines()]
        parts, compared = [logits(store) for store in stores], 0
        for point, own in enumerate(logits(mean)):
            for label, logit in own.items():
                if all(label in part[point] for part in parts):
                    expected = sum(part[point][label] for part in parts) / 3
                    # Activations have eight bits of the longest of three now, five of each before.
                    self.assertAlmostEqual(logit, expected, delta=0.15)
                    compared += 1
        self.assertGreater(compared, 10000)
        # Told apart from one of them.
        self.assertGreater(max(abs(own[label] - parts[0][point][label])
                               for point, own in enumerate(logits(mean))
                               for label in own if label in parts[0][point]), 0.2)
        # As a store it can be exported again, and begun with.
        npz = self.path / "mean.npz"
        self.assertEqual(run("export", mean, "--to", npz)[0], 0)
        said = json.loads(run("import", mean, "--json")[1])["said"]
        self.assertEqual(said["digest"].split(), digests)

    def test_the_mean_of_a_model_with_itself_is_that_model(self):
        store, twice = self.path / "eight", self.path / "twice.safetensors"
        self.train_run(store, 1, "--activation-bits", "8")  # as joined models have
        self.assertEqual(run("export", store, store, "--to", twice)[0], 0)
        own, double = (run("predict", words, "--input", self.test, "--json") for words in (store, twice))
        self.assertEqual([[p["label"] for p in json.loads(line)["predicted"]]
                          for line in own[1].splitlines()],
                         [[p["label"] for p in json.loads(line)["predicted"]]
                          for line in double[1].splitlines()])

    def test_models_that_cannot_be_joined_are_named(self):
        other, data = self.path / "elsewhere", self.path / "elsewhere.txt"
        data.write_text("3 200 150\n1,2 3:1\n3 4:1 5:2\n149 199:1\n")
        subprocess.run([MASTER, "--train", data, "--store", other, "--local", "1", "--threads", "1",
                        "--epochs", "1", "--hidden", "128", "--quiet"], check=True, capture_output=True,
                       timeout=SECONDS)
        target = self.path / "never.safetensors"
        for stores, word in (((self.store, other), f"{other}: it was trained on other examples"),
                             ((self.store,) * 33, "hidden is 4224"),
                             ((self.store, self.path / "none"), "none")):
            status, out, err = run("export", *stores, "--to", target)
            self.assertNotEqual(status, 0)
            self.assertEqual(out, "")
            self.assertIn(word, err)
            self.assertFalse(target.exists())

    def test_a_model_file_that_says_nothing_of_its_run_or_is_damaged_is_no_store(self):
        model = self.path / "odd.safetensors"
        self.assertEqual(run("export", self.store, "--to", model)[0], 0)
        whole = model.read_bytes()
        for content, word in ((whole[:-9], "cut short"), (b"", "no safetensors file"),
                              (whole.replace(b'"model.labels":"150"', b'"model.labels":"151"'), "do not match its tensors"),
                              (whole.replace(b'"model.features"', b'"medal.features"'), "cannot be read")):
            self.assertNotEqual(content, whole)
            model.write_bytes(content)
            status, out, err = run("predict", model, "--input", self.test)
            self.assertEqual((status, out), (4, ""), err)
            self.assertIn("odd.safetensors", err)
            self.assertIn(word, err)

    def test_bad_data_is_status_3(self):
        bad = self.path / "bad.txt"
        bad.write_text("1 200 150\n3 777:1\n")
        status, out, err = run("evaluate", self.store, "--data", bad)
        self.assertEqual((status, out), (3, ""))
        self.assertIn("bad.txt:2", err)
        self.assertEqual(run("evaluate", self.store, "--data", self.path / "none")[0], 3)
        self.assertEqual(run("evaluate", self.path, "--data", self.test)[0], 4)

    def test_numpy_reproduces_the_precision_from_either_file(self):
        python = numpy_python()
        if python is None:
            self.skipTest("needs NumPy (python3-numpy)")
        names = self.path / "names.txt"
        names.write_text("".join(f"näme {i}\n" for i in range(150)))
        digest = run("checkpoint", "digest", self.store)[1].strip()
        expected = self.evaluated()["ways"][0]["p_at_1"]
        for ending in ("npz", "safetensors"):
            target = self.path / f"model.{ending}"
            status, _, err = run("export", self.store, "--to", target, "--labels", names)
            self.assertEqual((status, err), (0, ""))
            done = subprocess.run([python, "-c", SCRIPT, target, self.test], capture_output=True,
                                  text=True, timeout=SECONDS)
            self.assertEqual(done.returncode, 0, done.stderr)
            precision, name_count, count_sum, seen = done.stdout.split()
            self.assertEqual(float(precision), expected)
            self.assertEqual(int(name_count), 150)
            self.assertGreater(int(count_sum), 1500)
            self.assertEqual(seen, digest)

    def test_export_refuses_to_replace_and_unknown_forms(self):
        target = self.path / "kept.npz"
        target.write_text("mine")
        self.assertEqual(run("export", self.store, "--to", target)[0], 2)
        self.assertEqual(target.read_text(), "mine")
        self.assertEqual(run("export", self.store, "--to", target, "--force")[0], 0)
        self.assertEqual(run("export", self.store, "--to", self.path / "model.onnx")[0], 2)
        self.assertEqual(list(self.path.glob("*.part")), [])

    def test_diff_of_a_run_with_itself_and_with_another(self):
        other = self.path / "other"
        self.train_run(other, 7)
        status, out, _ = run("diff", self.store, self.store, "--json")
        self.assertEqual((status, json.loads(out)["is_same"]), (0, True))
        self.assertEqual(run("diff", self.store, self.store, "--digest")[0], 0)
        status, out, _ = run("diff", self.store, other, "--json")
        document = json.loads(out)
        self.assertEqual((status, document["is_same"]), (1, False))
        self.assertEqual([c["key"] for c in document["configuration"]], ["seed"])
        total = document["shards"][-1]
        self.assertGreater(total["changed"], 0)
        self.assertGreater(total["largest"], 0)
        self.assertEqual(run("diff", self.store, other, "--digest")[0], 1)
        for line in run("diff", self.store, other)[1].splitlines():
            self.assertLessEqual(len(line), 100)

    def test_a_trained_store_is_whole(self):
        status, out, _ = run("verify", self.store, "--json")
        self.assertEqual((status, json.loads(out)["findings_count"]), (0, 0))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
