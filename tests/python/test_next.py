"""What people do next: measure, choose thresholds, look at the history, search parameters, weigh, go on."""

import json
import pickle
import sys
import types
import unittest
import unittest.mock

import numpy as np
from cases import QUIET, SKIPPED, Case, animal_texts, run
from gleaner import Gleaner, Model, master
from scipy import sparse

try:
    from sklearn.base import clone
    from sklearn.metrics import ndcg_score
    from sklearn.model_selection import GridSearchCV, cross_val_score
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import FunctionTransformer
except ImportError:
    print("skipped: needs scikit-learn (python3-sklearn)")
    sys.exit(SKIPPED)

from gleaner import GleanerClassifier, ndcg_at, precision_at


class Next(Case):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.texts, cls.tags = animal_texts(300)
        cls.held = animal_texts(90, 300)
        cls.own = Gleaner(cls.path / "run", epochs=3, hidden=0, **QUIET).fit(cls.texts, cls.tags, test=cls.held)

    def test_evaluate_has_the_figures_of_gleaner_evaluate(self):
        figures = self.own.evaluate(*self.held)
        source = self.write_csv("held.csv", *self.held)
        run("gleaner", "dataset", "convert", source, "--text", "text", "--tags", "tags", "--tag-separator", ";",
            "--vocabulary", f"{self.own.store}.data", "--output", self.path / "held.txt")
        said = json.loads(run("gleaner", "evaluate", self.own.store, "--data", self.path / "held.txt", "--json"))
        exact = said["ways"][0]
        for name in exact:
            if name not in ("way", "examples_per_second"):
                self.assertAlmostEqual(figures[name], exact[name], places=12, msg=name)
        for part in said["by_frequency_exact"]:
            if part["true_labels"]:
                self.assertAlmostEqual(figures[f"recall_at_5_{part['class']}"], part["recall_at_5"], places=12)
        self.assertEqual(figures["evaluated"], said["evaluated"])
        self.assertAlmostEqual(self.own.precision_at_k(*self.held, 3), figures["p_at_3"], places=12)
        self.assertAlmostEqual(self.own.ndcg_at_k(*self.held, 3), figures["ndcg_at_3"], places=9)
        self.assertTrue(np.isnan(self.own.evaluate(["a"], [[]])["p_at_1"]))

    def test_a_threshold_is_the_best_of_all(self):
        chosen = self.own.best_threshold(*self.held)
        truth = [set(tags) for tags in self.held[1]]

        def f1(threshold):
            said = [{label for label, _ in row} for row in self.own.predict(self.held[0], 20, threshold=threshold)]
            right = sum(len(own & true) for own, true in zip(said, truth))
            return 2 * right / (sum(map(len, said)) + sum(map(len, truth)))
        self.assertAlmostEqual(chosen["f1"], f1(chosen["threshold"]), places=12)
        all_of_them = {p for row in self.own.predict(self.held[0], 20) for _, p in row}
        self.assertAlmostEqual(chosen["f1"], max(map(f1, all_of_them)), places=12)
        with self.assertRaisesRegex(ValueError, "no example has labels"):
            self.own.best_threshold(["a"], [[]])

    def test_history_and_recipe_are_those_of_the_run(self):
        history = self.own.history()
        try:
            import pandas
            self.assertIsInstance(history, pandas.DataFrame)
            history = history.to_dict("records")
        except ImportError:
            pass
        self.assertEqual([row["epoch"] for row in history], [1, 2, 3])
        self.assertEqual(history[-1]["p_at_1"], self.own.finished["p_at_1"])
        self.assertEqual(Gleaner.load(self.own.store).evaluations, self.own.evaluations)
        with unittest.mock.patch.dict(sys.modules, pandas=None):
            self.assertEqual(self.own.history()[0]["loss"], history[0]["loss"])
        self.assertEqual(self.own.recipe_["model.wide_features"][0], "64")
        self.assertEqual(len(Gleaner().history()), 0)

    def test_a_notebook_shows_curve_and_recipe(self):
        shown = self.own._repr_html_()
        for piece in ("<svg", "polyline", "P@1", "model.wide_features", "epochs=3"):
            self.assertIn(piece, shown)
        self.assertIn("not trained yet", Gleaner(words="<b>")._repr_html_())
        self.assertNotIn("<b>", Gleaner(words="<b>")._repr_html_())
        self.assertIn("epochs=3", repr(self.own))
        self.assertIn("9 labels", repr(self.own.model))

    def test_a_notebook_without_tqdm_has_a_bar(self):
        shown = []
        handle = types.SimpleNamespace(update=shown.append)
        display = types.SimpleNamespace(HTML=str, display=lambda *_, **__: handle)
        notebook = types.SimpleNamespace(get_ipython=lambda: types.SimpleNamespace(kernel=1), display=display)
        with unittest.mock.patch.dict(sys.modules, {"tqdm": None, "tqdm.auto": None, "IPython": notebook}):
            self.assertIsInstance(master.Bar(True).bar, master.NotebookBar)
            Gleaner(epochs=2, threads=1).fit(self.texts, self.tags)
        self.assertIn("<progress", shown[-1])

    def test_parameters_are_those_of_scikit_learn(self):
        own = Gleaner(self.path / "p", epochs=4, settings={"batch_examples": 64}, random_state=3)
        other = clone(own)
        self.assertEqual(other.get_params(), own.get_params())
        self.assertIsNone(other.model)
        self.assertEqual(clone(Gleaner(epochs=1, **QUIET).fit(self.texts, self.tags)).get_params()["store"], None)
        self.assertEqual(other.set_params(epochs=2).epochs, 2)
        with self.assertRaisesRegex(ValueError, "no parameter 'epoch'"):
            other.set_params(epoch=2)
        scores = cross_val_score(Gleaner(epochs=3, hidden=0, **QUIET), self.texts, self.tags, cv=2)
        self.assertGreater(min(scores), 0.9)

    def test_seed_and_random_state_are_one(self):
        def digest(**given):
            return Gleaner(epochs=1, hidden=16, **QUIET, **given).fit(self.texts, self.tags).finished["digest"]
        expected = digest(seed=7)
        for state in (7, np.int64(7)):
            self.assertEqual(digest(random_state=state), expected)
        self.assertNotEqual(digest(seed=8), expected)
        for wrong in ({"seed": "a"}, {"seed": 1.5}, {"random_state": "a"}):
            with self.assertRaisesRegex(ValueError, "give a whole number"):
                digest(**wrong)
        self.assertEqual(digest(random_state=np.random.RandomState(1)), digest(random_state=np.random.RandomState(1)))
        digest(random_state=np.random.default_rng(1))
        y = [own[0] for own in self.tags]
        ours = [GleanerClassifier(epochs=1, hidden=16, threads=1, **given).fit(self.texts, y).decision_function(self.texts[:5])
                for given in ({"seed": 7}, {"random_state": 7}, {"random_state": 8})]
        np.testing.assert_array_equal(ours[0], ours[1])
        self.assertTrue((ours[0] != ours[2]).any())

    def test_the_best_checkpoint_answers(self):
        given = {"epochs": 6, "hidden": 0, **QUIET}
        wrong = (self.texts[:50], [["all"] if i % 2 else own for i, own in enumerate(self.tags[:50])])
        last = Gleaner(**given).fit(self.texts, self.tags, test=wrong)
        best = Gleaner(self.path / "best", keep_best=True, **given).fit(self.texts, self.tags, test=wrong)
        self.assertEqual(best.model.checkpoint, last.finished["best_checkpoint"])
        self.assertEqual(best.score(*wrong), max(event["p_at_1"] for event in last.evaluations))
        self.assertEqual(Gleaner.load(best.store).model.checkpoint, best.model.checkpoint)
        self.assertEqual(Model.load(best.store).checkpoint, last.model.checkpoint)

    # ---- scikit-learn ----

    def test_lists_of_tags_are_classes(self):
        model = GleanerClassifier(epochs=5, hidden=0, threads=1).fit(self.texts, self.tags)
        self.assertEqual(model.classes_.tolist(), sorted({tag for tags in self.tags for tag in tags}))
        self.assertEqual([set(own) for own in model.predict(self.texts[:9])], [set(own) for own in self.tags[:9]])
        self.assertGreater(model.score(*self.held), 0.9)
        self.assertEqual(cross_val_score(model, self.texts, self.tags, cv=2, scoring=precision_at(2)).shape, (2,))
        again = pickle.loads(pickle.dumps(model))
        self.assertEqual(again.predict(self.held[0]), model.predict(self.held[0]))
        for y, piece in (([*self.tags[:-1], [3]], r"y\[299\]: the tag 3"), ([*self.tags[:-1], "x"], r"y\[299\] is a string"),
                         (self.tags[:-1], "inconsistent numbers")):
            with self.assertRaisesRegex((TypeError, ValueError), piece):
                model.fit(self.texts, y)

    def test_a_test_set_ends_training_early(self):
        model = GleanerClassifier(epochs=50, hidden=0, threads=1, keep_best=True, settings={"patience": 2})
        model.fit(self.texts, self.tags, test=self.held)
        self.assertLess(model._trainer.finished["checkpoint"], 50)
        self.assertTrue(model._trainer.finished["ended_early"])
        names = [own[0] for own in self.tags]
        model.fit(self.texts, names, test=(self.held[0], [own[0] for own in self.held[1]]))
        self.assertEqual(model._trainer.finished["compared"], 90)

    def test_weights_are_repetitions(self):
        y = np.array([own[0] for own in self.tags])
        weights = np.arange(300) % 3

        def answers(*given, **named):
            return GleanerClassifier(epochs=2, threads=1).fit(*given, **named).decision_function(self.texts[:9])
        chosen = np.repeat(np.arange(300), weights)
        np.testing.assert_array_equal(answers(self.texts, y, sample_weight=weights),
                                      answers([self.texts[i] for i in chosen], y[chosen]))
        np.testing.assert_array_equal(answers(self.texts, y, sample_weight=np.ones(300)), answers(self.texts, y))
        for wrong in (0.5, -1):
            weights = np.ones(300)
            weights[7] = wrong
            with self.assertRaisesRegex(ValueError, rf"sample_weight\[7\] is {wrong}"):
                answers(self.texts, y, sample_weight=weights)

    def test_scorers_are_the_figures_and_searches_use_them(self):
        draw = np.random.default_rng(1)
        Y = (draw.random((200, 9)) < 0.3).astype(int)
        X = sparse.csr_matrix(np.repeat(Y, 2, axis=1) * draw.random((200, 18)))
        model = GleanerClassifier(epochs=2, threads=1).fit(X, Y)
        scores = model.decision_function(X)
        labelled = Y.any(axis=1)
        self.assertAlmostEqual(ndcg_at(5)(model, X[labelled], Y[labelled]), ndcg_score(Y[labelled], scores[labelled], k=5))
        best = np.argsort(-scores, axis=1)[:, :3]
        self.assertAlmostEqual(precision_at(3)(model, X[labelled], Y[labelled]),
                               np.take_along_axis(Y[labelled], best[labelled], 1).mean())
        search = GridSearchCV(GleanerClassifier(threads=1), {"epochs": [1, 3]}, scoring=precision_at(1), cv=2, n_jobs=2)
        self.assertEqual(search.fit(X, Y).best_params_.keys(), {"epochs"})
        piped = make_pipeline(FunctionTransformer(), GleanerClassifier(epochs=2, threads=1))
        self.assertGreater(cross_val_score(piped, X, Y, cv=2, scoring=ndcg_at(5)).min(), 0.3)
        named = Gleaner(epochs=2, hidden=0, **QUIET)
        self.assertGreater(cross_val_score(named, self.texts, self.tags, cv=2, scoring=precision_at(2)).min(), 0.5)

    def test_labels_are_sought_beyond_the_first(self):
        """Examples with more labels than are looked at first."""
        draw = np.random.default_rng(1)
        Y = np.zeros((60, 400), int)
        Y[:, :150] = 1
        Y[draw.integers(0, 60, 400), np.arange(400)] = 1
        X = sparse.csr_matrix(draw.random((60, 12)))
        model = GleanerClassifier(epochs=30, hidden=0, threads=1).fit(X, Y)
        found = model.predict(X)
        np.testing.assert_array_equal(found, model.predict_proba(X) >= 0.5)
        self.assertGreater(found.sum(axis=1).max(), 100)

    def test_a_store_in_a_cross_validation(self):
        y = [own[0] for own in self.tags]
        with self.assertRaisesRegex(ValueError, "overwrite=True"):
            cross_val_score(GleanerClassifier(store=str(self.path / "cv"), epochs=1, threads=1), self.texts, y, cv=2,
                            error_score="raise")
        model = GleanerClassifier(store=str(self.path / "cv"), epochs=1, threads=1, overwrite=True)
        self.assertEqual(len(cross_val_score(model, self.texts, y, cv=2, error_score="raise")), 2)


if __name__ == "__main__":
    unittest.main()
