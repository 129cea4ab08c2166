"""Gleaner by scikit-learn's conventions. This file alone needs scikit-learn (python3-sklearn)."""

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets, type_of_target
from sklearn.utils.validation import check_array, check_is_fitted, check_X_y, column_or_1d

from . import rows
from .trainer import Gleaner


class GleanerClassifier(ClassifierMixin, BaseEstimator):
    """A classifier for one class an example (y of one dimension) or several (an indicator matrix).

    X is a matrix, sparse or not, or a list of texts. It has the parameters of Gleaner. A constant
    feature of value `intercept` is added to the rows of a matrix, since examples are scaled to length
    one; 0 adds none. With an indicator matrix, predict() gives labels of probability 0.5 and more.
    """

    def __init__(self, store=None, epochs=None, recipe=None, hidden=None, random_state=1, threads=None,
                 local=1, listen=None, words="icu,characters:1-2", min_count=2, intercept=0.0,
                 progress=False, settings=None):
        self.store = store
        self.epochs = epochs
        self.recipe = recipe
        self.hidden = hidden
        self.random_state = random_state
        self.threads = threads
        self.local = local
        self.listen = listen
        self.words = words
        self.min_count = min_count
        self.intercept = intercept
        self.progress = progress
        self.settings = settings

    def fit(self, X, y):
        """Trains; self.model_ is then the Model."""
        X, y = self._checked(X, y)
        self.multilabel_ = getattr(y, "ndim", 1) == 2
        if self.multilabel_:
            self.classes_ = np.arange(y.shape[1])
            Y, self._sparse_output = sparse.csr_matrix(y), sparse.issparse(y)
        else:
            self.classes_, classes = np.unique(y, return_inverse=True)
            if len(self.classes_) < 2:
                raise ValueError(f"y has one class, {self.classes_[0]!r}: a classifier needs two")
            Y = sparse.csr_matrix((np.ones(len(classes)), classes, np.arange(len(classes) + 1)))
        own = {name: value for name, value in self.get_params(deep=False).items()
               if name not in ("intercept", "random_state")}
        trainer = Gleaner(seed=self._seed(), **own).fit(X, Y)
        self.model_, self.n_iter_ = trainer.model, trainer.finished["epochs"]
        self._trainer = trainer  # whose temporary folder the store is in
        return self

    def _seed(self):
        if self.random_state is None or isinstance(self.random_state, (int, np.integer)):
            return 1 if self.random_state is None else int(self.random_state)
        return int(self.random_state.randint(2**31 - 1))

    def _checked(self, X, y):
        if y is None:
            raise ValueError("requires y to be passed, but the target y is None")
        if rows.are_texts(X):
            if hasattr(self, "n_features_in_"):
                del self.n_features_in_
        else:
            self._check_feature_names(X, reset=True)
            if sparse.issparse(y):
                X = check_array(X, accept_sparse="csr")
                if X.shape[0] != y.shape[0]:
                    raise ValueError(f"X has {X.shape[0]} examples and y {y.shape[0]}")
            else:
                X, y = check_X_y(X, y, accept_sparse="csr", multi_output=True)
            self.n_features_in_ = X.shape[1]
            X = self._with_intercept(X)
        if getattr(y, "shape", ())[1:] == (1,) and not sparse.issparse(y):
            y = column_or_1d(y, warn=True)
        check_classification_targets(y)
        if type_of_target(y) == "multiclass-multioutput":
            raise ValueError("several outputs of several classes each are not labels: give an indicator "
                             "matrix")
        return X, y

    def _with_intercept(self, X):
        X = sparse.csr_matrix(X)
        if not self.intercept:
            return X
        return sparse.hstack([X, np.full((X.shape[0], 1), self.intercept)], format="csr")

    def _rows(self, X):
        check_is_fitted(self, "model_")
        if rows.are_texts(X):
            return X
        self._check_feature_names(X, reset=False)
        X = check_array(X, accept_sparse="csr")
        self._check_n_features(X, reset=False)
        return self._with_intercept(X)

    def _all(self, X):
        """Logits and probabilities of all classes, in their order."""
        return self._all_of_rows(self._rows(X))

    def _all_of_rows(self, X):
        labels, logits, probabilities = self.model_.best(X, len(self.classes_))
        order = np.argsort(labels, axis=1)
        return np.take_along_axis(logits, order, 1), np.take_along_axis(probabilities, order, 1)

    def decision_function(self, X):
        """Logits: examples x classes; of two classes, one column of how far the second is ahead."""
        logits = self._all(X)[0].astype(float)
        if self.multilabel_ or len(self.classes_) > 2:
            return logits
        # The logarithms of the probabilities, so that predict_proba() says the same.
        ahead = -np.logaddexp(0, -logits)
        return ahead[:, 1] - ahead[:, 0]

    def predict_proba(self, X):
        """Probabilities: examples x classes. A row adds up to one where classes exclude each other."""
        logits, probabilities = self._all(X)
        if self.multilabel_:
            return probabilities.astype(float)
        logarithms = -np.logaddexp(0, -logits.astype(float))
        parts = np.exp(logarithms - logarithms.max(axis=1, keepdims=True))
        return parts / parts.sum(axis=1, keepdims=True)

    def predict(self, X):
        """The class of each example, or the indicator matrix of its labels."""
        X = self._rows(X)
        if not self.multilabel_:
            return self.classes_[self._all_of_rows(X)[0].argmax(axis=1)]
        labels, logits, _ = self.model_.best(X, len(self.classes_))
        row, place = np.nonzero(logits >= 0)
        found = sparse.csr_matrix((np.ones(len(row), int), (row, labels[row, place])),
                                  shape=(len(labels), len(self.classes_)))
        return found if self._sparse_output else found.toarray()

    def top_k(self, X, k=5):
        """As Model.top_k(): the columns are the classes."""
        X = self._rows(X)
        return self.model_.top_k(X, k)

    def __getstate__(self):
        state = super().__getstate__().copy()
        state.pop("_trainer", None)
        return state

    def _more_tags(self):
        return {"multilabel": True}
