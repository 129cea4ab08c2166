"""The cells of a notebook: from top to bottom, then in odd orders. Nothing is refused that scikit-learn would take,
and no answer is stale: each fit answers as a new object on the same data would."""

import os
import random
import sys
import unittest

import numpy as np
from cases import SKIPPED, Case, animal_texts

try:
    import joblib
    from sklearn.base import clone
    from sklearn.model_selection import train_test_split
except ImportError:
    print("skipped: needs scikit-learn (python3-sklearn)")
    sys.exit(SKIPPED)

from gleaner import Gleaner, GleanerClassifier, Model, precision_at

# Each cell is what somebody would run, with the names that others left; a cell that lacks a name is left out.
CELLS = [
    "texts, tags = animal_texts(160)",
    "texts, tags = animal_texts(120, 40)",
    "X_train, X_test, Y_train, Y_test = train_test_split(texts, tags, random_state=1)",
    "model = Gleaner(epochs=2, hidden=0, progress=False, threads=1)",
    "model.fit(X_train, Y_train); check(model, X_train, Y_train)",
    "model.fit(X_train, Y_train, test=(X_test, Y_test)); check(model, X_train, Y_train, (X_test, Y_test))",
    "model",
    "model._repr_html_()",
    "model.predict(X_test[:3], k=2)",
    "model.score(X_test, Y_test)",
    "model.evaluate(X_test, Y_test)",
    "model.history()",
    "model.recipe_",
    "model.explain(X_test[0], 'all')",
    "threshold = model.best_threshold(X_test, Y_test)['threshold']; model.predict(X_test, threshold=threshold)",
    "model.set_params(epochs=3)",
    "model.seed = 2",
    "model.hidden = 16",
    "model.hidden = 0",
    "model.resume(epochs=6)",
    "model.partial_fit(['a penguin on the ice'] * 4, [['penguin']] * 4)",
    "tags = [own + ['more'] for own in tags]",
    "texts.append('one more cat'); tags.append(['about cat', 'all'])",
    "texts[0] = 'edited by hand, the owl'; tags[0] = ['about owl']",
    "Y_train[0] = ['changed']",
    "kept = model.model",
    "kept_answers = kept.predict(texts[:20])",
    "same(kept.predict(kept_texts), kept_first)",
    "kept_texts = list(texts[:20]); kept_first = kept.predict(kept_texts)",
    "del model",
    "model = clone(model)",
    "model.save('model.safetensors')",
    "loaded = Model.load('model.safetensors')",
    "loaded.predict(texts[:5])",
    "joblib.dump(kept, 'kept.joblib'); same(joblib.load('kept.joblib').predict(texts[:9]), kept.predict(texts[:9]))",
    "os.makedirs('sub', exist_ok=True); os.chdir('sub')",
    "os.chdir('..')",
    "stored = Gleaner('store', epochs=1, hidden=0, progress=False, threads=1)",
    "stored.fit(X_train, Y_train, overwrite=True); check(stored, X_train, Y_train)",
    "stored.resume(epochs=(stored.finished or {'epochs': 0})['epochs'] + 1)",
    "stored.partial_fit(X_test, Y_test)",
    "same(Gleaner.load(stored.store).predict(X_test), stored.predict(X_test))",
    "same(Model.load(stored.store).predict(X_test), stored.predict(X_test))",
    "stored.score(X_test, Y_test)",
    "names = [own[0] for own in Y_train]",
    "classifier = GleanerClassifier(epochs=2, hidden=0, threads=1)",
    "classifier.fit(X_train, names); check_classifier(classifier, X_train, names)",
    "classifier.predict(X_test)",
    "classifier.predict_proba(X_test[:2])",
    "classifier.score(X_train, names)",
    "classifier.fit(X_train, Y_train); check_classifier(classifier, X_train, Y_train)",
    "precision_at(2)(classifier, X_test, Y_test)",
    "classifier = clone(classifier).set_params(random_state=3)",
    "M = np.random.default_rng(1).random((40, 8)) < 0.4; N = np.arange(40) % 3",
    "matrix = Gleaner(epochs=2, progress=False, threads=1).fit(M, N); check(matrix, M, N)",
    "matrix.predict(M[:3])",
    "M = np.hstack([M, M]); matrix.fit(M, N); check(matrix, M, N)",
    "N = N[::-1].copy(); matrix.fit(M, N); check(matrix, M, N)",
    "matrix.score(M, N)",
    "classifier.fit(M, N); check_classifier(classifier, M, N)",
]
# Errors of cells that were run before the cell that they need.
MEANT = ("not trained yet", "no run of fit", "is not fitted", "not fitted yet", "knows no words", "are of another kind",
         "X is a list of texts, and the model", "columns and the model", "have no names", "no label", "is expecting",
         "inconsistent numbers", "X has", "no example has labels", "one class", "could not be converted", "mix of",
         "unknown label", "no class", "Expected 2D", "dtype='numeric'", "hidden layer", "should be a 1d array")


def same(found, expected):
    if found != expected:
        raise AssertionError("a stale answer")


def check(model, X, Y, test=None):
    own = Gleaner(**{**model.get_params(), "store": None}).fit(X, Y, test=test)
    same(model.predict(X), own.predict(X))


def check_classifier(model, X, y):
    np.testing.assert_array_equal(model.decision_function(X), clone(model).fit(X, y).decision_function(X))


class Cells(Case):
    def run_cells(self, order, name):
        os.makedirs(self.path / name)
        before = os.getcwd()
        os.chdir(self.path / name)
        names = {"animal_texts": animal_texts, "train_test_split": train_test_split, "Gleaner": Gleaner, "Model": Model,
                 "GleanerClassifier": GleanerClassifier, "precision_at": precision_at, "np": np, "os": os, "clone": clone,
                 "joblib": joblib, "same": same, "check": check, "check_classifier": check_classifier}
        ran = 0
        try:
            for place in order:
                try:
                    exec(CELLS[place], names)
                    ran += 1
                except NameError:
                    pass
                except FileNotFoundError as error:
                    self.assertRegex(str(error), "model.safetensors|there is no store", CELLS[place])
                except (ValueError, KeyError, TypeError) as error:
                    self.assertTrue(any(piece in str(error) for piece in MEANT),
                                    f"{name}: {CELLS[place]}: {type(error).__name__}: {error}")
                except Exception as error:
                    raise AssertionError(f"{name}: {CELLS[place]}: {error!r}") from error
        finally:
            os.chdir(before)
        return ran

    def test_from_top_to_bottom(self):
        top = [place for place in range(len(CELLS)) if place != 27]
        self.assertGreaterEqual(len(CELLS), 60)
        self.assertEqual(self.run_cells([*top[:27], 28, 27, *[p for p in top[27:] if p not in (28, 29, 30)]], "top"),
                         len(CELLS) - 2)

    def test_in_odd_orders(self):
        for seed in range(3):
            draw = random.Random(seed)
            order = [*range(5), *(draw.randrange(len(CELLS)) for _ in range(120))]
            with self.subTest(seed=seed):
                self.assertGreater(self.run_cells(order, f"odd{seed}"), 40)

    def test_every_cell_twice(self):
        order = [place for place in range(len(CELLS)) if place not in (27, 29, 30) for _ in range(2)]
        self.assertGreater(self.run_cells(order, "twice"), 100)


if __name__ == "__main__":
    unittest.main()
