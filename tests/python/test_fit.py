"""gleaner.Gleaner: training from Python gives the model that the files give."""

import os
import pickle
import signal
import subprocess
import unittest
import unittest.mock

import numpy as np
from cases import QUIET, SECONDS, Case, animal_texts, run
from gleaner import Gleaner, Model, TrainingError
from scipy import sparse

INTERRUPTED = """
import sys
from gleaner import Gleaner, Model
from cases import animal_texts
model = Gleaner(sys.argv[1], epochs=100000, threads=1, progress=False, settings={"round_batches": 7})
try:
    model.fit(*animal_texts(400))
except KeyboardInterrupt:
    print("interrupted at", model.model.checkpoint, flush=True)
"""

# Bytes of X, and of memory that handing it over takes beyond.
MEASURED = """
import resource, sys
import numpy as np
from gleaner import Gleaner
from scipy import sparse
rows, each = 250_000, 20
X = sparse.csr_matrix((np.ones(rows * each, np.float32), np.tile(np.arange(each, dtype=np.int32), rows),
                       np.arange(rows + 1, dtype=np.int32) * each), (rows, each))
Y = sparse.csr_matrix((np.ones(rows, np.int8), np.zeros(rows, np.int32), np.arange(rows + 1, dtype=np.int32)))
Gleaner()._write_data(sys.argv[1], X[:100], Y[:100], None, None, None)
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
Gleaner()._write_data(sys.argv[1], X, Y, None, None, None)
print(X.data.nbytes + X.indices.nbytes, 1024 * (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before))
"""


def masters_of(store):
    """Process ids of the masters that have the store."""
    found = subprocess.run(["pgrep", "--full", f"gleaner-master .*--store {store} "], capture_output=True, text=True,
                           check=False)
    return found.stdout.split()


def digest(store):
    return run("gleaner", "checkpoint", "digest", store).strip()


class Fit(Case):
    def folder_of(self, texts, tags, name):
        source, folder = self.write_csv(f"{name}.csv", texts, tags), self.path / name
        run("gleaner", "dataset", "convert", source, "--text", "text", "--tags", "tags", "--tag-separator", ";",
            "--output", folder)
        return folder

    def trained_on_files(self, folder, name):
        store = self.path / name
        run("gleaner-master", "--train", folder / "train.txt", "--store", store, "--local", 1, "--threads", 1,
            "--epochs", 2, "--quiet", "--http", "off")
        return store

    def test_texts_give_the_model_that_their_file_gives(self):
        texts, tags = animal_texts(300)
        store = self.trained_on_files(self.folder_of(texts, tags, "texts"), "texts-store")
        own = Gleaner(self.path / "own", epochs=2, **QUIET).fit(texts, tags)
        self.assertEqual(digest(own.store), digest(store))
        for name in ("labels.txt", "features.txt"):
            self.assertEqual((self.path / "own.data" / name).read_text(), (self.path / "texts" / name).read_text())
        self.assertGreater(own.score(texts, tags), 0.9)
        self.assertEqual(Model.load(own.store).predict(texts[:9]), own.predict(texts[:9]))

    def test_a_matrix_gives_the_model_that_its_file_gives(self):
        draw = np.random.default_rng(1)
        X = sparse.random(300, 50, 0.2, "csr", np.float32, random_state=1)
        Y = sparse.csr_matrix((draw.random((300, 20)) < 0.1).astype(int))
        path = self.path / "matrix.txt"
        with open(path, "w") as file:
            print(*X.shape, Y.shape[1], file=file)
            for row in range(300):
                pairs = " ".join(f"{j}:{v!s}" for j, v in zip(X[row].indices, X[row].data))
                print(",".join(map(str, Y[row].indices)), pairs, file=file)
        store = self.path / "matrix"
        run("gleaner-master", "--train", path, "--store", store, "--local", 1, "--threads", 1, "--epochs", 2,
            "--quiet", "--http", "off")
        own = Gleaner(epochs=2, **QUIET).fit(X, Y, test=(X, Y))
        self.assertEqual(own.finished["digest"], digest(store))
        self.assertAlmostEqual(own.finished["p_at_1"], own.score(X, Y), places=6)
        self.assertEqual(len(own.evaluations), 2)

    def test_lists_of_label_numbers_are_a_matrix(self):
        X = sparse.random(60, 20, 0.3, "csr", np.float32, random_state=1)
        numbers = [(i % 4, 4.0) if i % 3 else () for i in range(60)]
        Y = sparse.lil_matrix((60, 5))
        for row, own in enumerate(numbers):
            Y[row, list(map(int, own))] = 1
        listed, matrix = (Gleaner(epochs=2, **QUIET).fit(X, labels) for labels in (numbers, Y.tocsr()))
        self.assertEqual(listed.finished["digest"], matrix.finished["digest"])
        self.assertEqual(listed.precision_at_k(X, numbers, 2), matrix.precision_at_k(X, Y.tocsr(), 2))

    def test_names_of_a_matrix_are_kept(self):
        X = sparse.identity(40, format="csr")
        Y = sparse.csr_matrix((np.ones(40), (range(40), [i % 4 for i in range(40)])))
        names = ["north", "east", "south", "west"]
        model = Gleaner(self.path / "names", epochs=2, hidden=0, **QUIET).fit(
            X, Y, label_names=names, feature_names=[f"f{i}" for i in range(40)])
        self.assertIn(model.predict(X[5])[0][0][0], names)
        self.assertEqual(model.explain(X[5], "east")[0][0], "f5")
        with self.assertRaisesRegex(ValueError, "3 names for 4 labels"):
            Gleaner(**QUIET).fit(X, Y, label_names=names[:3])

    def test_a_temporary_run_leaves_nothing_behind(self):
        folder = self.path / "temporary"
        folder.mkdir()
        with unittest.mock.patch("tempfile.tempdir", str(folder)):
            model = Gleaner(epochs=1, **QUIET).fit(*animal_texts(100))
            self.assertTrue(model.store.startswith(str(folder)))
            pickle.dumps(model.model)
            del model
        self.assertEqual(os.listdir(folder), [])

    def test_ctrl_c_keeps_the_checkpoint_and_the_same_call_goes_on(self):
        store = self.path / "interrupted"
        reached = 0
        for _ in range(2):
            script = self.script(INTERRUPTED, store)
            self.wait(lambda: self.checkpoint(store) >= reached + 2)
            script.send_signal(signal.SIGINT)
            said = script.communicate(timeout=SECONDS)[0]
            self.assertEqual(script.returncode, 0)
            self.assertGreaterEqual(int(said.split()[-1]), reached + 2)
            reached = int(said.split()[-1])
        self.assertEqual(masters_of(store), [])
        with self.assertRaisesRegex(ValueError, "holds a run on other data"):
            Gleaner(store, **QUIET).fit(*animal_texts(390))
        self.assertEqual(Model.load(store).checkpoint, reached)
        self.assertGreater(Model.load(store).score(*animal_texts(100)), 0.5)

    def test_a_master_ends_with_its_python_process(self):
        store = self.path / "orphan"
        script = self.script(INTERRUPTED, store)
        self.wait(lambda: self.checkpoint(store) >= 1)
        self.assertEqual(len(masters_of(store)), 1)
        script.kill()
        self.wait(lambda: not masters_of(store))
        self.assertGreaterEqual(self.checkpoint(store), 1)

    def test_memory_is_that_of_a_block_of_rows(self):
        said = self.script(MEASURED, self.path).communicate(timeout=SECONDS)[0]
        data, more = map(int, said.split())
        self.assertEqual(data, 40_000_000)
        self.assertLess(more, 0.3 * data)

    def test_a_finished_run_goes_on_for_more_epochs(self):
        texts, tags = animal_texts(200)
        own = Gleaner(self.path / "longer", epochs=1, **QUIET).fit(texts, tags)
        first = digest(own.store)
        self.assertEqual(Gleaner(self.path / "longer", epochs=1, **QUIET).fit(texts, tags).finished["already"], True)
        self.assertEqual(digest(own.store), first)
        own.resume(epochs=2)
        self.assertEqual(own.finished["epochs"], 2)
        whole = Gleaner(self.path / "whole", epochs=2, **QUIET).fit(texts, tags)
        self.assertEqual(digest(own.store), digest(whole.store))

    def test_partial_fit_trains_on_and_takes_new_tags(self):
        for hidden in (0, 32):
            texts, tags = animal_texts(200)
            own = Gleaner(self.path / f"partial{hidden}", epochs=3, hidden=hidden, **QUIET).fit(texts, tags)
            names = own.model.label_names
            own.partial_fit(texts[:80] + ["nest4 of the number 12"] * 20, tags[:80] + [["new"]] * 20, epochs=2)
            self.assertEqual(own.model.label_names, names + ["new"])
            self.assertEqual(own.model.feature_names, Model.load(own.store).feature_names)
            if hidden == 0:
                self.assertGreater(own.score(texts, tags), 0.9)
            self.assertFalse(os.path.exists(f"{own.store}.next"))
            self.assertEqual(own.finished["epochs"], 2)
            own.resume(epochs=3)
            self.assertEqual(own.finished["epochs"], 3)
            # From the store alone, as in another process.
            Gleaner(own.store, hidden=hidden, **QUIET).partial_fit(texts, tags)

    def test_other_machines_join_by_the_printed_line(self):
        script = ("import sys; from gleaner import Gleaner; from cases import animal_texts\n"
                  "model = Gleaner(sys.argv[1], epochs=2, local=0, listen='127.0.0.1:0', progress=False)\n"
                  "model.fit(*animal_texts(200)); print(model.finished['digest'], flush=True)")
        master = self.script(script, self.path / "open")
        line = master.stdout.readline()
        self.assertIn("gleaner-volunteer gleaner://", line)
        run("gleaner-volunteer", line.split()[-1], "--once", "--threads", 1, "--control", self.path / "control")
        found = master.communicate(timeout=SECONDS)[0].split()[-1]
        self.assertEqual(found, Gleaner(epochs=2, **QUIET).fit(*animal_texts(200)).finished["digest"])

    def test_what_cannot_be_trained_on_is_refused_in_words(self):
        X, Y = sparse.identity(4, format="csr"), sparse.identity(4, format="csr")
        for arguments, kind, piece in (
                ((X, Y[:3]), ValueError, "X has 4 examples and Y 3"),
                ((["a b", "a b"], [["x"], "y"]), TypeError, r"Y\[1\] is a string"),
                ((["a b", "a b"], [["x"], [3]]), TypeError, "the tag 3 is no string"),
                ((["a b", "a b"], [[3], ["x"]]), TypeError, r"Y\[1\]: 'x' is no label number"),
                ((["a b", "a b"], [[3], [-1]]), TypeError, r"Y\[1\]: -1 is no label number"),
                ((["a", "b"], [["x"], ["y"]]), ValueError, "0 features and 2 labels"),
                ((["a b", "a b"], [["x\ny"], ["y"]]), ValueError, "line break"),
                ((X * np.inf, Y), ValueError, "X: row 0, column")):
            with self.assertRaisesRegex(kind, piece):
                Gleaner(epochs=1, **QUIET).fit(*arguments)
        with self.assertRaisesRegex(ValueError, "--batch-examples"):
            Gleaner(settings={"batch_examples": -1}, **QUIET).fit(X, Y)
        with self.assertRaisesRegex(ValueError, "not trained yet"):
            Gleaner().predict(["a"])
        with self.assertRaisesRegex(TrainingError, "hidden"):
            Gleaner(hidden=7, **QUIET).fit(X, Y)


if __name__ == "__main__":
    unittest.main()
