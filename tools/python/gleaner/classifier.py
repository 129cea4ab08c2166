"""Gleaner by scikit-learn's conventions. This file alone needs scikit-learn (python3-sklearn)."""

import functools

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import validation
from sklearn.utils.multiclass import check_classification_targets, type_of_target
from sklearn.utils.validation import check_array, check_consistent_length, check_is_fitted, check_X_y, column_or_1d

from . import rows
from .trainer import Gleaner

ENTRIES = 1 << 22  # answers that are held at once
FIRST_LABELS = 64  # of an example, among which those to predict are sought first


class GleanerClassifier(ClassifierMixin, BaseEstimator):
    """A classifier for one class an example (y of one dimension) or several (an indicator matrix, or lists of tags).

    X is a matrix, sparse or not, or a list of texts. It has the parameters of Gleaner, `overwrite` of
    its fit(), and `seed` for random_state. A constant feature of value `intercept` is added to the rows
    of a matrix, since examples are scaled to length one; 0 adds none. With several labels, predict()
    gives labels of probability 0.5 and more.
    """

    def __init__(self, store=None, epochs=None, recipe=None, hidden=None, random_state=1, threads=None,
                 local=1, listen=None, words="icu,characters:1-2", min_count=2, intercept=0.0,
                 progress=False, settings=None, seed=None, missing="refuse", keep_best=False, overwrite=False):
        vars(self).update({name: value for name, value in locals().items() if name != "self"})

    def fit(self, X, y, sample_weight=None, test=None):
        """Trains; self.model_ is then the Model.

        `sample_weight` has whole numbers: an example is repeated as often. `test` is a pair (X, y) to
        measure on, for keep_best and for early stopping (settings={"patience": 3}).
        """
        X, y = self._checked(X, y)
        Y = self._targets(y)
        if sample_weight is not None:
            X, Y = _repeated(X, Y, sample_weight)
        own = {name: value for name, value in self.get_params(deep=False).items()
               if name not in ("intercept", "seed", "overwrite")}
        if self.seed is not None:
            own["random_state"] = self.seed
        if test is not None:
            test = self._rows(test[0]), self._indicator(test[1])
        trainer = Gleaner(**own).fit(X, Y, test=test, overwrite=self.overwrite)
        self.model_, self.n_iter_ = trainer.model, trainer.finished["epochs"]
        self._trainer = trainer  # whose temporary folder the store is in
        return self

    def _checked(self, X, y):
        if y is None:
            raise ValueError("requires y to be passed, but the target y is None")
        texts, tags = _texts(X), _tags(y)
        if texts is not None:
            vars(self).pop("n_features_in_", None)
            X = texts
        elif tags is not None or sparse.issparse(y):
            self._check("feature_names", X, reset=True)
            X = check_array(X, accept_sparse="csr")
        else:
            self._check("feature_names", X, reset=True)
            X, y = check_X_y(X, y, accept_sparse="csr", multi_output=True)
        if texts is None:
            self.n_features_in_ = X.shape[1]
            X = self._with_intercept(X)
        if tags is not None:
            y = tags
        elif getattr(y, "shape", ())[1:] == (1,) and not sparse.issparse(y):
            y = column_or_1d(y, warn=True)
        check_consistent_length(X, y)
        if tags is None:
            for row, own in enumerate(y if getattr(y, "dtype", np.dtype(object)) == object else ()):
                if rows.is_missing(own):
                    raise ValueError(f"y[{row}] is missing ({own!r}): leave the example out. NaN and None are no class")
            check_classification_targets(y)
            if type_of_target(y) == "multiclass-multioutput":
                raise ValueError("several outputs of several classes each are not labels: give an indicator matrix")
        return X, y

    def _check(self, what, X, reset):
        """A check of scikit-learn that was a method until 1.5, and is a function since."""
        name = f"_check_{what}"
        if hasattr(validation, name):
            getattr(validation, name)(self, X, reset=reset)
        elif hasattr(BaseEstimator, name):
            getattr(BaseEstimator, name)(self, X, reset=reset)

    def _targets(self, y):
        """The indicator matrix of y; sets classes_ and the form in which predict() answers."""
        if getattr(y, "ndim", 1) == 2:
            self.multilabel_, self._form = True, "sparse" if sparse.issparse(y) else "dense"
            self.classes_ = np.arange(y.shape[1])
            return self._indicator(y)
        self.multilabel_ = isinstance(y, rows.Labels)
        self._form = "lists" if self.multilabel_ else "classes"
        self.classes_ = np.array(y.names, dtype=object) if self.multilabel_ else np.unique(y)
        if len(self.classes_) < 2:
            raise ValueError(f"y has one class, {', '.join(map(repr, self.classes_))}: a classifier needs two")
        return self._indicator(y)

    def _indicator(self, y):
        """y as a matrix with a column for each class; classes that are not known are left out."""
        if self._form in ("sparse", "dense"):
            return sparse.csr_matrix(y)
        if self._form == "lists":
            y = rows.Labels(getattr(y, "Y", y), self.classes_.tolist(), takes_new=False, what="y")
            indptr, labels = y.block(0, y.examples)
        else:
            y = column_or_1d(y)
            labels = np.minimum(np.searchsorted(self.classes_, y), len(self.classes_) - 1)
            known = self.classes_[labels] == y
            labels, indptr = labels[known], np.concatenate([[0], np.cumsum(known)])
        return sparse.csr_matrix((np.ones(len(labels), np.int8), labels.astype(np.int32), indptr),
                                 (len(indptr) - 1, len(self.classes_)))

    def _with_intercept(self, X):
        X = sparse.csr_matrix(X)
        if not self.intercept:
            return X
        return sparse.hstack([X, np.full((X.shape[0], 1), self.intercept)], format="csr")

    def _rows(self, X):
        texts = _texts(X)
        if texts is not None:
            return texts
        self._check("feature_names", X, reset=False)
        X = check_array(X, accept_sparse="csr")
        expected = getattr(self, "n_features_in_", None)
        if expected is not None and X.shape[1] != expected:
            raise ValueError(f"X has {X.shape[1]} features, but {type(self).__name__} is expecting {expected} "
                             "features as input")
        return self._with_intercept(X)

    # ---- Asking, in blocks: answers of all classes are large ----

    def _blocks(self, X, width):
        count = X.shape[0] if hasattr(X, "shape") else len(X)
        step = max(1, min(rows.BLOCK, ENTRIES // width))
        return count, ((first, X[first:first + step]) for first in range(0, count, step))

    def _all(self, X, choose):
        """What `choose` takes from logits and probabilities of all classes, in the order of the classes."""
        check_is_fitted(self, "model_")
        count, blocks = self._blocks(self._rows(X), len(self.classes_))
        answers = np.empty((count, len(self.classes_)))
        for first, block in blocks:
            labels, logits, probabilities = self.model_.best(block, len(self.classes_))
            np.put_along_axis(answers[first:first + len(labels)], labels.astype(np.intp),
                              choose(logits.astype(float), probabilities), 1)
        return answers

    def decision_function(self, X):
        """Logits: examples x classes; of two classes, one column of how far the second is ahead."""
        check_is_fitted(self, "model_")
        if self.multilabel_ or len(self.classes_) > 2:
            return self._all(X, lambda logits, _: logits)
        # The logarithms of the probabilities, so that predict_proba() says the same.
        ahead = self._all(X, lambda logits, _: -np.logaddexp(0, -logits))
        return ahead[:, 1] - ahead[:, 0]

    def predict_proba(self, X):
        """Probabilities: examples x classes. A row adds up to one where classes exclude each other."""
        check_is_fitted(self, "model_")
        if self.multilabel_:
            return self._all(X, lambda _, probabilities: probabilities)
        parts = self._all(X, lambda logits, _: -np.logaddexp(0, -logits))
        parts -= parts.max(axis=1, keepdims=True)
        np.exp(parts, out=parts)
        parts /= parts.sum(axis=1, keepdims=True)
        return parts

    def predict(self, X):
        """The class of each example, or its labels as fit() had them: an indicator matrix, or lists of tags."""
        check_is_fitted(self, "model_")
        X = self._rows(X)
        if not self.multilabel_:
            return self.classes_[self.model_.best(X, 1)[0][:, 0]]
        found = self._labels(X)
        if self._form == "lists":
            return [self.classes_[found.indices[a:b]].tolist() for a, b in zip(found.indptr, found.indptr[1:])]
        return found if self._form == "sparse" else found.toarray()

    def _labels(self, X):
        """The indicator matrix of labels of probability 0.5 and more."""
        parts, most = [], len(self.classes_)
        count, blocks = self._blocks(X, min(FIRST_LABELS, most))
        for first, block in blocks:
            k = min(FIRST_LABELS, most)
            labels, logits, _ = self.model_.best(block, k)
            while k < most and (logits[:, -1] >= 0).any():
                k = min(4 * k, most)
                labels, logits, _ = self.model_.best(block, k)
            row, place = np.nonzero(logits >= 0)
            parts.append(np.array([row + first, labels[row, place]]))
        row, label = np.concatenate(parts, axis=1) if parts else np.zeros((2, 0), int)
        found = sparse.csr_matrix((np.ones(len(row), int), (row, label)), shape=(count, most))
        found.sort_indices()
        return found

    def top_k(self, X, k=5):
        """As Model.top_k(): the columns are the classes."""
        check_is_fitted(self, "model_")
        return self.model_.top_k(self._rows(X), k)

    def score(self, X, y, sample_weight=None):
        """The accuracy, as scikit-learn has it: with several labels, of whole sets. See precision_at() and ndcg_at()."""
        if getattr(self, "_form", None) != "lists":
            return super().score(X, y, sample_weight)
        wrong = np.diff((self._labels(self._rows(X)) != self._indicator(y)).tocsr().indptr)
        return float(np.average(wrong == 0, weights=sample_weight))

    def __getstate__(self):
        state = super().__getstate__().copy()
        state.pop("_trainer", None)
        return state

    def _more_tags(self):
        return {"multilabel": True, "_xfail_checks": {
            "check_sample_weights_invariance": "the model depends on the order of the examples"}}

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_label = tags.input_tags.sparse = True
        return tags


def _texts(X):
    """A list, where X are texts; otherwise None."""
    if hasattr(X, "tocsr") or getattr(X, "ndim", 1) != 1 and getattr(X, "shape", ())[1:] != (1,):
        return None
    try:
        examples = rows.Examples(X)
    except (TypeError, ValueError):
        return None  # scikit-learn has its own words
    return examples.X if examples.are_texts else None


def _tags(y):
    """The Labels of lists of tags; None for another y."""
    if hasattr(y, "tocsr") or getattr(y, "ndim", 1) != 1 or not hasattr(y, "__len__"):
        return None
    listed = rows.plain(y, "y")
    lists = [own for own in listed if isinstance(own, (list, tuple, set, frozenset, np.ndarray))]
    if not any(isinstance(tag, str) for own in lists for tag in own):
        return None
    return rows.Labels(listed, what="y")


def _repeated(X, Y, weights):
    """The examples, each as often as its weight says."""
    weights = validation._check_sample_weight(weights, Y)
    for place in np.flatnonzero((weights < 0) | (weights != np.round(weights)))[:1]:
        raise ValueError(f"sample_weight[{place}] is {weights[place]:g}, no whole number: an example is repeated by its "
                         "weight")
    chosen = np.repeat(np.arange(len(weights)), weights.astype(np.int64))
    return ([X[row] for row in chosen] if isinstance(X, (list, tuple)) else X[chosen]), Y[chosen]


class _Scorer:
    """A scorer for cross_val_score() and searches: a figure of the k best labels."""

    def __init__(self, name, k):
        self.name, self.k = name, k

    def __call__(self, estimator, X, y):
        if hasattr(estimator, "steps"):
            X, estimator = estimator[:-1].transform(X), estimator[-1]
        if isinstance(estimator, GleanerClassifier):
            check_is_fitted(estimator, "model_")
            X, y, estimator = estimator._rows(X), estimator._indicator(y), estimator.model_
        return getattr(estimator, self.name)(X, y, self.k)

    def __repr__(self):
        return f"{self.name}(k={self.k})"


#: The scorers of precision@k and nDCG@k: scoring=precision_at(5).
precision_at, ndcg_at = (functools.partial(_Scorer, name) for name in ("precision_at_k", "ndcg_at_k"))
