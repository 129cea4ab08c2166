"""gleaner.Model: the answers of `gleaner predict`, in this process."""

import json
import pickle
import shutil
import unittest

import numpy as np
from cases import Case, animal_texts, run
from gleaner import Model
from scipy import sparse


def read_xc(path):
    """The rows of an XC file as a CSR matrix, and their labels as another."""
    lines = path.read_text().splitlines()
    _, features, labels = map(int, lines[0].split())
    X, Y = sparse.lil_matrix((len(lines) - 1, features)), sparse.lil_matrix((len(lines) - 1, labels))
    for row, line in enumerate(lines[1:]):
        tags, *pairs = line.split(" ")
        for pair in pairs:
            feature, value = pair.split(":")
            X[row, int(feature)] = float(value)
        for label in tags.split(",") if tags else []:
            Y[row, int(label)] = 1
    return X.tocsr(), Y.tocsr()


class Asked(Case):
    """A model of texts, without a hidden layer and with one."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.texts, cls.tags = animal_texts(400)
        source = cls.write_csv(cls, "animals.csv", cls.texts, cls.tags)
        cls.set = cls.path / "set"
        run("gleaner", "dataset", "convert", source, "--text", "text", "--tags", "tags", "--tag-separator", ";",
            "--share", 0.2, "--output", cls.set)
        cls.stores = {}
        for kind, hidden in (("wide", 0), ("deep", 32)):
            cls.stores[kind] = cls.path / kind
            run("gleaner-master", "--train", cls.set / "train.txt", "--store", cls.stores[kind], "--local", 1,
                "--threads", 1, "--epochs", 2, "--hidden", hidden, "--quiet", "--http", "off")

    def printed(self, store, *arguments, given=""):
        """(label, logit, probability) of the three best labels of each line, as 32-bit numbers."""
        out = run("gleaner", "predict", store, "--json", "--top", 3, *arguments, given=given)
        return [[(p["label"], np.float32(p["logit"]), np.float32(p["probability"]))
                 for p in json.loads(line)["predicted"]] for line in out.splitlines()]

    def answered(self, model, X):
        labels, logits, probabilities = model.best(X, 3)
        return [list(zip(*row)) for row in zip(labels.tolist(), logits, probabilities)]

    def test_texts_and_rows_have_the_bits_of_gleaner_predict(self):
        X, _ = read_xc(self.set / "test.txt")
        lines = self.texts + ["ÉTIENNE and the OWL", "nothing known at all"]
        for kind, store in self.stores.items():
            model = Model.load(store, data=self.set)
            self.assertEqual(self.answered(model, X), self.printed(store, "--input", self.set / "test.txt"), kind)
            self.assertEqual(self.answered(model, lines),
                             self.printed(store, "--text", self.set, given="\n".join(lines) + "\n"), kind)

    def test_a_model_file_is_whole_by_itself_and_so_is_a_pickle(self):
        for kind, store in self.stores.items():
            model = Model.load(store, data=self.set, threads=1)
            path = model.save(self.path / f"{kind}.safetensors")
            alone = Model.load(path)
            self.assertEqual(alone.label_names, model.label_names)
            expected = self.answered(model, self.texts)
            self.assertEqual(self.answered(alone, self.texts), expected)
            again = pickle.loads(pickle.dumps(alone))
            self.assertEqual(self.answered(again, self.texts), expected)
            self.assertEqual(self.answered(pickle.loads(pickle.dumps(again)), self.texts), expected)

    def test_a_loaded_model_stays_when_its_store_goes(self):
        store = self.path / "gone"
        shutil.copytree(self.stores["wide"], store)
        model = Model.load(store, data=self.set)
        shutil.rmtree(store)
        self.assertEqual(self.answered(model, self.texts),
                         self.answered(Model.load(self.stores["wide"], data=self.set), self.texts))

    def test_a_backup_answers_as_the_store_does(self):
        store, backups = self.path / "kept safe", self.path / "backups"
        run("gleaner-master", "--train", self.set / "train.txt", "--store", store, "--local", 1, "--threads", 1,
            "--epochs", 2, "--quiet", "--http", "off", "--backup", backups, "--backup-every", 0)
        model = Model.load(store, data=self.set)
        last = Model.load(backups, data=self.set)
        self.assertEqual(last.checkpoint, model.checkpoint)
        self.assertEqual(self.answered(last, self.texts), self.answered(model, self.texts))
        saved = Model.load(last.save(self.path / "of_backup.safetensors"))
        self.assertEqual(self.answered(saved, self.texts), self.answered(model, self.texts))
        with self.assertRaisesRegex(FileNotFoundError, "99"):
            Model.load(f"{backups}@99")

    def test_top_k_has_probabilities_at_their_labels(self):
        model = Model.load(self.stores["wide"], data=self.set)
        labels, _, probabilities = model.best(self.texts, 2)
        matrix = model.top_k(self.texts, 2)
        self.assertEqual(matrix.shape, (400, model.labels))
        dense = matrix.toarray()
        for row in range(400):
            np.testing.assert_array_equal(dense[row, labels[row]], probabilities[row])
        self.assertEqual(model.top_k(self.texts, 1000).nnz, 400 * model.labels)
        self.assertEqual(model.top_k([], 2).shape, (0, model.labels))

    def test_parts_of_an_explanation_are_those_of_predict(self):
        model = Model.load(self.stores["wide"], data=self.set)
        out = run("gleaner", "predict", self.stores["wide"], "--json", "--why", "--top", 1, "--text", self.set,
                  given="an owl in nest3\n")
        best = json.loads(out)["predicted"][0]
        parts = model.explain("an owl in nest3", best["name"])
        self.assertEqual([name for name, _ in parts], [part["name"] for part in best["why"]])
        self.assertEqual([np.float32(value) for _, value in parts],
                         [np.float32(part["value"]) for part in best["why"]])
        with self.assertRaisesRegex(KeyError, "no label 'about gnu'"):
            model.explain("an owl", "about gnu")
        with self.assertRaisesRegex(ValueError, "hidden"):
            Model.load(self.stores["deep"], data=self.set).explain("an owl", "all")

    def test_precision_is_that_of_gleaner_evaluate(self):
        out = run("gleaner", "evaluate", self.stores["wide"], "--data", self.set / "test.txt", "--json")
        exact = json.loads(out)["ways"][0]
        X, Y = read_xc(self.set / "test.txt")
        model = Model.load(self.stores["wide"], data=self.set)
        self.assertAlmostEqual(model.score(X, Y), exact["p_at_1"], places=12)
        self.assertAlmostEqual(model.precision_at_k(X, Y, 3), exact["p_at_3"], places=12)
        tags = [[model.label_names[label] for label in row.indices] + ["never seen"] for row in Y]
        self.assertEqual(model.score(X, tags), model.score(X, Y))

    def test_rows_in_any_form_are_read_and_stay_as_they_are(self):
        X, _ = read_xc(self.set / "test.txt")
        model = Model.load(self.stores["wide"], data=self.set)
        expected = self.answered(model, X)
        untidy = sparse.csr_matrix((np.r_[X.data / 2, X.data / 2, 0], (
            np.r_[X.nonzero()[0], X.nonzero()[0], 0], np.r_[X.indices, X.indices, 5])), X.shape)
        row = untidy.indices.copy()
        for other in (X.toarray(), X.tocoo(), X.tocsc(), X.astype(np.float32), untidy):
            self.assertEqual(self.answered(model, other), expected)
        np.testing.assert_array_equal(untidy.indices, row)

    def test_what_cannot_be_asked_is_refused_with_its_place(self):
        model = Model.load(self.stores["wide"])
        X, _ = read_xc(self.set / "test.txt")
        X.data[X.indptr[7]] = np.nan
        with self.assertRaisesRegex(ValueError, "X: row 7, column"):
            model.best(X)
        with self.assertRaisesRegex(ValueError, "knows no words"):
            model.best(["a text"])
        with self.assertRaisesRegex(ValueError, "columns"):
            model.best(np.zeros((1, model.features + 1)))
        with self.assertRaisesRegex(TypeError, "list of texts"):
            model.best("a text")
        with self.assertRaisesRegex(ValueError, "k is 0"):
            model.best(X, 0)
        with self.assertRaises(FileNotFoundError):
            Model.load(self.path / "none")
        with self.assertRaisesRegex(ValueError, "with which the model was trained"):
            few = self.write_csv("few.csv", ["a b", "a b"], [["x"], ["y"]])
            run("gleaner", "dataset", "convert", few, "--text", "text", "--tags", "tags", "--output",
                self.path / "other")
            Model.load(self.stores["wide"], data=self.path / "other")


if __name__ == "__main__":
    unittest.main()
