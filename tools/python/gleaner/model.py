"""A trained model that answers in this process, by the same code as `gleaner predict`."""

import contextlib
import os
import tempfile
import threading
import weakref

import numpy as np

from . import _gleaner, folders, rows

_models = weakref.WeakSet()
_opened = []  # whether a model ever was


def _forget_threads():
    """In the child of a fork: the threads of models and stores, and of whoever was asking, are not here."""
    if _opened:
        _gleaner.end_without_destructors()  # of RocksDB
    for model in list(_models):
        model._lock._at_fork_reinit()
        model._loaded.forget_threads()


os.register_at_fork(after_in_child=_forget_threads)


def _fact(name, meaning):
    return property(lambda model: model._loaded.facts[name], doc=meaning)


class Model:
    """Made by Model.load(). It stays what it is, whatever becomes of the store that it came from, and so do its
    copies, its pickles and what save() writes. Several threads may ask; one is answered at a time."""

    missing = "refuse"  # texts that are missing; "empty": they are texts without words

    def __init__(self, path, data="", threads=0):
        self.path, self.data, self.threads = path, data, threads
        self._lock = threading.Lock()
        _opened[:] = [True]
        self._loaded = _gleaner.LoadedModel.open(path, data, threads)
        #: Names of the labels, in their order; empty where they are not known.
        self.label_names = self._loaded.label_names()
        #: Names of the features: words, for a model of texts.
        self.feature_names = self._loaded.feature_names()
        self._label_ids = {name: label for label, name in enumerate(self.label_names)}
        _models.add(self)

    @classmethod
    def load(cls, path, data=None, threads=0):
        """Opens a run's store, also while a master trains, a backup or kept checkpoint of it, or a
        file of save() or `gleaner export`.

        `data` is the folder of the run's data set, which has the names and words. A model file may
        carry them, and a store of Gleaner.fit() has them beside it. `threads`: 0 is as many as this
        process may use.
        """
        path = os.path.abspath(path)
        if folders.is_replaced(path):
            with contextlib.suppress(folders.Busy), folders.held(path):
                folders.replace_by_following(path)
        if data is None:
            beside = folders.data_folder(path)
            data = beside if os.path.isdir(beside) else ""
        return cls(path, os.path.abspath(data) if data else "", threads)

    features = _fact("features", "Number of features: columns of X.")
    labels = _fact("labels", "Number of labels.")
    hidden = _fact("hidden", "Units of the hidden layer; 0: each label has a row of weights straight over features.")
    hidden_units = _fact("hidden_units", 'What they make of their sums: "relu" or "linear".')
    checkpoint = _fact("checkpoint", "Rounds that the model was trained for.")
    reads_texts = _fact("reads_texts", "Whether it knows words.")

    def __repr__(self):
        kind = "texts" if self.reads_texts else f"{self.features} features"
        return f"<Model of {kind} and {self.labels} labels, at checkpoint {self.checkpoint}>"

    def best(self, X, k=5):
        """Labels, logits and probabilities of the k best labels, three arrays of examples x k.

        X is a list of texts, or a matrix (scipy CSR best) with a column for each feature. Each row
        of the arrays begins with the best label. With fewer labels than k, there are as many columns.
        """
        examples = self._examples(X, k)
        width = min(k, self.labels)
        best = [np.zeros((examples.count, width), dtype) for dtype in (np.uint32, np.float32, np.float32)]
        for first, end in rows.blocks(examples.count):
            for array, part in zip(best, self._best_of(examples, first, end, k)):
                array[first:end] = part
        return tuple(best)

    def _examples(self, X, k):
        if not rows.is_number(k) or k != int(k) or not 0 < k < 2**32:
            raise ValueError(f"k is {k}: ask for one label or more")
        examples = rows.Examples(X, missing=self.missing)
        if examples.are_texts and examples.count > 0 and not self.reads_texts:
            raise ValueError("the model knows no words, so it cannot read texts: give it a matrix; or load it with "
                             "data=FOLDER, the folder of its data set")
        rows.check_columns(X, () if self.reads_texts else self.feature_names, "X")
        if not examples.are_texts and examples.features > self.features:
            raise ValueError(f"X has {examples.features} columns and the model {self.features} features")
        return examples

    def _best_of(self, examples, first, end, k):
        points = rows.points(examples.block(first, end), self._loaded)
        with self._lock:
            return self._loaded.best(points, int(k))

    def top_k(self, X, k=5):
        """A CSR matrix, examples x labels, with the probabilities of each example's k best labels.

        The entries of a row stand in descending order; the probabilities of a row need not add up
        to one.
        """
        from scipy import sparse
        labels, _, probabilities = self.best(X, k)
        count, width = labels.shape
        return sparse.csr_matrix(
            (probabilities.ravel(), labels.ravel().astype(np.int32), np.arange(count + 1) * width),
            shape=(count, self.labels))

    def predict(self, X, k=5, threshold=0.0):
        """For each example its k best labels of at least a probability, as (label, probability), best first.

        A label is its name, or its number where names are not known.
        """
        labels, _, probabilities = self.best(X, k)
        name = self.label_names.__getitem__ if self.label_names else int
        return [[(name(label), float(p)) for label, p in zip(*row) if p >= threshold]
                for row in zip(labels, probabilities)]

    def explain(self, x, label, count=10):
        """The features that decided about a label of one text or row, strongest first.

        Pairs of a feature (its name, or its number) and its part of the logit; the label's bias and
        all parts add up to the logit. `label` is a name or a number. Only for models without a hidden
        layer.
        """
        if isinstance(label, str):
            if label not in self._label_ids:
                raise KeyError(f"the model has no label '{label}'")
            label = self._label_ids[label]
        if not 0 <= label < self.labels:
            raise ValueError(f"label {label}: the model has the labels 0 to {self.labels - 1}")
        if self.hidden:
            raise ValueError("a feature has no part of its own in a score that comes through a hidden layer: train with "
                             "hidden=0")
        row = self._examples([x] if isinstance(x, str) else x, 1)
        if row.count != 1:
            raise ValueError(f"explain() takes one row or text, and x has {row.count}")
        with self._lock:
            parts = self._loaded.why(rows.points(row.block(0, 1), self._loaded), label, count)
        name = self.feature_names.__getitem__ if self.feature_names else int
        return [(name(feature), part) for feature, part in parts]

    # ---- Figures on examples with labels ----

    def _compared(self, X, Y, k):
        """Blocks of the k best labels, their probabilities, and indptr and indices of the true labels.

        Y is as in Gleaner.fit(); tags that are no labels of the model are left out.
        """
        truth = rows.Labels(Y, self.label_names, takes_new=False)
        examples = self._examples(X, k)
        rows.check_lengths(examples, truth)
        for first, end in rows.blocks(examples.count):
            best, _, probabilities = self._best_of(examples, first, end, k)
            yield best, probabilities, *truth.block(first, end)

    def _hits(self, X, Y, k):
        """Blocks of which best labels are true, their probabilities, and the numbers of true labels."""
        for best, probabilities, indptr, columns in self._compared(X, Y, k):
            places = np.arange(len(best), dtype=np.int64) << 32
            true = np.repeat(places, np.diff(indptr)) + columns
            yield np.isin(places[:, None] + best, true), probabilities, np.diff(indptr)

    def precision_at_k(self, X, Y, k=1):
        """The fraction of the k best labels that are true, over the examples that have labels."""
        hits = labelled = 0
        for own, _, counts in self._hits(X, Y, k):
            hits, labelled = hits + np.count_nonzero(own), labelled + np.count_nonzero(counts)
        return hits / (k * labelled) if labelled else float("nan")

    def ndcg_at_k(self, X, Y, k=5):
        """The mean over the examples that have labels of the nDCG of their k best labels."""
        gains = 1 / np.log2(np.arange(2, k + 2))
        ideal = np.concatenate([[np.inf], np.cumsum(gains)])
        total = labelled = 0
        for own, _, counts in self._hits(X, Y, k):
            total += (own @ gains[:own.shape[1]] / ideal[np.minimum(counts, k)]).sum()
            labelled += np.count_nonzero(counts)
        return total / labelled if labelled else float("nan")

    def score(self, X, Y):
        """precision_at_k() for k = 1."""
        return self.precision_at_k(X, Y, 1)

    def evaluate(self, X, Y):
        """The figures of `gleaner evaluate` by name: p_at_1, psp_at_3, ndcg_at_5, recall_at_5 and others."""
        figures = _gleaner.AnswerFigures(self._loaded)
        for best, _, indptr, columns in self._compared(X, Y, 5):
            figures.add(indptr, columns, best)
        return figures.figures()

    def best_threshold(self, X, Y, k=20):
        """The probability from which labels among the k best should be believed, for the best micro-averaged F1.

        Choose it on examples that were held out. A dictionary of threshold, precision, recall and f1.
        """
        parts = list(self._hits(X, Y, k))
        if not parts or not sum(counts.sum() for *_, counts in parts):
            raise ValueError("no example has labels: a threshold cannot be chosen")
        hits, probabilities = (np.concatenate([part[i].ravel() for part in parts]) for i in (0, 1))
        order = np.argsort(-probabilities, kind="stable")
        right, said = np.cumsum(hits[order]), np.arange(1, len(order) + 1)
        true = sum(int(counts.sum()) for *_, counts in parts)
        ends = np.append(np.diff(probabilities[order]) != 0, True)  # equal probabilities stand together
        at = np.argmax(np.where(ends, 2 * right / (said + true), -1))
        return {"threshold": float(probabilities[order][at]), "precision": right[at] / said[at],
                "recall": right[at] / true, "f1": 2 * right[at] / (said[at] + true)}

    # ---- Copies ----

    def save(self, path):
        """Writes a file that Model.load() and other programs read: NAME.safetensors or NAME.npz.

        It has what the model answers with, and names and words where they are known.
        """
        path = os.path.abspath(path)
        with self._lock:
            self._loaded.save(path)
        return path

    def __copy__(self):
        other = type(self).__new__(type(self))
        other.__dict__.update(self.__dict__)  # nothing in it changes but by the lock
        _models.add(other)
        return other

    def __deepcopy__(self, memo):
        other = self.__copy__()
        other.label_names, other.feature_names = list(self.label_names), list(self.feature_names)
        return other

    def __getstate__(self):
        with tempfile.TemporaryDirectory(prefix="gleaner-") as folder:
            with open(self.save(os.path.join(folder, "model.safetensors")), "rb") as file:
                return {"file": file.read(), "threads": self.threads, "path": self.path, "missing": self.missing}

    def __setstate__(self, state):
        with tempfile.TemporaryDirectory(prefix="gleaner-") as folder:
            path = os.path.join(folder, "model.safetensors")
            with open(path, "wb") as file:
                file.write(state["file"])
            self.__init__(path, "", state["threads"])
        self.path, self.missing = state.get("path", ""), state.get("missing", "refuse")
