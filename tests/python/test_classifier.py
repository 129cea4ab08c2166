"""gleaner.GleanerClassifier by scikit-learn's own checks, and on several labels."""

import sys
import unittest

from cases import SKIPPED, Case, animal_texts

try:
    from sklearn.base import clone
    from sklearn.model_selection import cross_val_score
    from sklearn.utils.estimator_checks import check_estimator
except ImportError:
    print("skipped: needs scikit-learn (python3-sklearn)")
    sys.exit(SKIPPED)

import numpy as np
from gleaner import GleanerClassifier
from scipy import sparse


class Classifier(Case):
    def test_scikit_learns_checks_pass(self):
        failed, skipped = {}, {}
        for estimator, check in check_estimator(GleanerClassifier(threads=1), generate_only=True):
            name = check.func.__name__
            try:
                check(estimator)
            except unittest.SkipTest as why:
                skipped[name] = str(why)
            except Exception as error:
                failed[name] = f"{type(error).__name__}: {error}"
        self.assertEqual(failed, {})
        # Frames are rows as any array is; without pandas there is nothing to check.
        for why in skipped.values():
            self.assertRegex(why, "pandas|depends on the order of the examples")

    def test_an_indicator_matrix_is_several_labels(self):
        draw = np.random.default_rng(1)
        Y = draw.random((400, 6)) < 0.3
        X = sparse.csr_matrix(np.repeat(Y, 3, axis=1) * draw.random((400, 18)))
        model = GleanerClassifier(epochs=20, threads=1).fit(X, Y.astype(int))
        self.assertGreater(np.mean(model.predict(X) == Y), 0.9)
        self.assertEqual(model.predict_proba(X).shape, (400, 6))
        found = clone(model).fit(X, sparse.csr_matrix(Y.astype(int))).predict(X)
        self.assertTrue(sparse.issparse(found))
        np.testing.assert_array_equal(found.toarray(), model.predict(X))

    def test_texts_are_cross_validated(self):
        texts, tags = animal_texts(160)
        scores = cross_val_score(GleanerClassifier(epochs=5, hidden=0, threads=1), texts, [own[0] for own in tags], cv=2)
        self.assertGreater(min(scores), 0.9)


if __name__ == "__main__":
    unittest.main()
