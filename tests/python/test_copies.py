"""A gleaner.Model is what it answers with: copies answer bit for bit as it does, whatever becomes of its store."""

import copy
import os
import pickle
import shutil
import unittest

import numpy as np
from cases import QUIET, Case, animal_texts
from gleaner import Gleaner, Model
from scipy import sparse

try:
    import joblib
except ImportError:
    joblib = None


class Copies(Case):
    def answers(self, model, X):
        return [array.tobytes() for array in model.best(X, 4)] + [model.label_names, model.checkpoint]

    def copies(self, model, name):
        """All ways to copy a model, by name."""
        made = {"deepcopy": copy.deepcopy(model), "copy": copy.copy(model), "pickle": pickle.loads(pickle.dumps(model)),
                "save": Model.load(model.save(self.path / f"{name}.safetensors")),
                "pickle of a pickle": pickle.loads(pickle.dumps(pickle.loads(pickle.dumps(model))))}
        made["pickle of a file"] = pickle.loads(pickle.dumps(made["save"]))
        if joblib is not None:
            joblib.dump(model, self.path / f"{name}.joblib")
            made["joblib"] = joblib.load(self.path / f"{name}.joblib")
        return made

    def check(self, model, X, expected, name):
        self.assertEqual(self.answers(model, X), expected, name)
        for way, made in self.copies(model, name).items():
            self.assertEqual(self.answers(made, X), expected, f"{name}: {way}")

    def test_copies_answer_as_the_object_did_after_its_run_went_on(self):
        texts, tags = animal_texts(200)
        for hidden in (0, 16):
            own = Gleaner(self.path / f"on{hidden}", epochs=1, hidden=hidden, **QUIET).fit(texts, tags)
            first = own.model
            expected = self.answers(first, texts)
            self.assertGreater(first.checkpoint, 0)
            own.resume(epochs=8)
            self.assertNotEqual(self.answers(own.model, texts), expected)
            self.check(first, texts, expected, f"resumed{hidden}")
            own.partial_fit(texts + ["a new one"], tags + [["new"]])
            self.assertEqual(len(own.model.label_names), len(first.label_names) + 1)
            self.check(first, texts, expected, f"partial{hidden}")
            shutil.rmtree(own.store)
            shutil.rmtree(f"{own.store}.data")
            self.check(first, texts, expected, f"gone{hidden}")

    def test_a_model_outlives_its_temporary_run_and_is_explained(self):
        texts, tags = animal_texts(200)
        own = Gleaner(epochs=2, hidden=0, **QUIET).fit(texts, tags)
        model, store = own.model, own.store
        expected, reasons = self.answers(model, texts), model.explain(texts[0], "all")
        del own
        self.assertFalse(os.path.exists(store))
        self.check(model, texts, expected, "temporary")
        for made in self.copies(model, "explained").values():
            self.assertEqual(made.explain(texts[0], "all"), reasons)

    def test_paths_are_absolute_from_the_start(self):
        texts, tags = animal_texts(100)
        before = os.getcwd()
        self.addCleanup(os.chdir, before)
        os.chdir(self.path)
        os.mkdir("elsewhere")
        own = Gleaner("relative", epochs=1, **QUIET).fit(texts, tags)
        expected = self.answers(own.model, texts)
        saved = own.save("kept.safetensors")
        loaded = Model.load("kept.safetensors")
        for model in (own.model, Model.load("relative"), loaded):
            self.assertTrue(os.path.isabs(model.path))
        os.chdir("elsewhere")
        self.assertEqual(saved, os.path.join(os.path.realpath(self.path), "kept.safetensors"))
        self.check(own.model, texts, expected, "moved")
        self.check(loaded, texts, expected, "loaded")
        own.resume(epochs=2)
        own.partial_fit(texts, tags)
        self.assertEqual(os.listdir("."), [])

    def test_a_matrix_and_npz_and_a_whole_gleaner_are_kept(self):
        X = sparse.random(60, 30, 0.2, "csr", np.float32, random_state=1)
        own = Gleaner(epochs=2, **QUIET).fit(X, [i % 3 for i in range(60)])
        self.check(own.model, X, self.answers(own.model, X), "matrix")
        with np.load(own.save(self.path / "model.npz")) as file:
            self.assertIn("label_counts", file)
        again = pickle.loads(pickle.dumps(own))
        self.assertEqual(self.answers(again.model, X), self.answers(own.model, X))
        self.assertIsNone(again.store)
        again.partial_fit(X, [i % 4 for i in range(60)])
        self.assertEqual(again.model.labels, 4)
        with self.assertRaisesRegex(ValueError, "neither .safetensors nor .npz"):
            own.save(self.path / "model.txt")


if __name__ == "__main__":
    unittest.main()
