"""A trained model that answers in this process, by the same code as `gleaner predict`."""

import contextlib
import os
import tempfile
import threading

import numpy as np

from . import _gleaner, programs, rows


def data_folder(store):
    """Where Gleaner.fit() keeps the examples, names and words of a run."""
    return f"{os.fspath(store).rstrip('/')}.data"


def _fact(name, meaning):
    return property(lambda model: getattr(model._loaded, name), doc=meaning)


class Model:
    """Made by Model.load(). Several threads may ask; one is answered at a time."""

    _file = None  # of a pickled model: what it was loaded from

    def __init__(self, path, data, threads):
        self.path, self.data, self.threads = path, data, threads
        self._lock = threading.Lock()
        self._loaded = _gleaner.LoadedModel.open(path, data, threads)
        #: Names of the labels, in their order; empty where they are not known.
        self.label_names = self._loaded.label_names()
        #: Names of the features: words, for a model of texts.
        self.feature_names = self._loaded.feature_names()
        self._label_ids = {name: label for label, name in enumerate(self.label_names)}

    @classmethod
    def load(cls, path, data=None, threads=0):
        """Opens a run's store, also while a master trains, a backup or kept checkpoint of it, or a
        file of `gleaner export`.

        `data` is the folder of the run's data set, which has the names and words. A model file may
        carry them, and a store of Gleaner.fit() has them beside it. `threads`: 0 is one a core.
        """
        path = os.fspath(path)
        if data is None:
            beside = data_folder(path)
            data = beside if os.path.isdir(beside) else ""
        return cls(path, os.fspath(data), threads)

    features = _fact("features", "Number of features: columns of X.")
    labels = _fact("labels", "Number of labels.")
    hidden = _fact("hidden", "Units of the hidden layer; 0: each label has a row of weights straight over features.")
    hidden_units = _fact("hidden_units", 'What they make of their sums: "relu" or "linear".')
    checkpoint = _fact("checkpoint", "Rounds that the model was trained for.")
    reads_texts = _fact("reads_texts", "Whether it knows words.")

    def best(self, X, k=5):
        """Labels, logits and probabilities of the k best labels, three arrays of examples x k.

        X is a list of texts, or a matrix (scipy CSR best) with a column for each feature. Each row
        of the arrays begins with the best label. With fewer labels than k, there are as many columns.
        """
        if k < 1:
            raise ValueError(f"k is {k}: ask for one label or more")
        examples = rows.Examples(X)
        if not examples.are_texts and examples.features > self.features:
            raise ValueError(f"X has {examples.features} columns and the model {self.features} features")
        parts = [self._best_of(examples, first, end, k) for first, end in rows.blocks(examples.count)]
        if parts:
            return tuple(np.concatenate(arrays) for arrays in zip(*parts))
        width = min(k, self.labels)
        return tuple(np.zeros((0, width), dtype) for dtype in (np.uint32, np.float32, np.float32))

    def _best_of(self, examples, first, end, k):
        with self._lock:
            if examples.are_texts:
                return self._loaded.best_of_texts(examples.texts(first, end), k)
            return self._loaded.best_of_rows(*examples.block(first, end), first, k)

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

    def predict(self, X, k=5):
        """For each example its k best labels, as (label, probability), best first.

        A label is its name, or its number where names are not known.
        """
        labels, _, probabilities = self.best(X, k)
        name = self.label_names.__getitem__ if self.label_names else int
        return [[(name(label), float(p)) for label, p in zip(*row)] for row in zip(labels, probabilities)]

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
        with self._lock:
            if isinstance(x, str):
                parts = self._loaded.why_text(x, label, count)
            else:
                row = rows.Examples(x)
                if row.count != 1:
                    raise ValueError(f"explain() takes one row or text, and x has {row.count}")
                parts = self._loaded.why_row(*row.block(0, 1), label, count)
        name = self.feature_names.__getitem__ if self.feature_names else int
        return [(name(feature), part) for feature, part in parts]

    def precision_at_k(self, X, Y, k=1):
        """The fraction of the k best labels that are true, over the examples that have labels.

        Y is a matrix with a column for each label, or a list of tags or of label numbers for each
        example; tags that are no labels of the model are left out, as `gleaner evaluate` does.
        """
        truth = rows.Labels(Y, self.label_names, takes_new=False)
        examples = rows.Examples(X)
        if truth.examples != examples.count:
            raise ValueError(f"X has {examples.count} examples and Y {truth.examples}")
        hits = labelled = 0
        for first, end in rows.blocks(examples.count):
            best = self._best_of(examples, first, end, k)[0]
            indptr, columns = truth.block(first, end)
            row_of = np.repeat(np.arange(end - first), np.diff(indptr))
            hits += np.count_nonzero(best[row_of] == columns[:, None])
            labelled += np.count_nonzero(np.diff(indptr))
        return hits / (k * labelled) if labelled else float("nan")

    def score(self, X, Y):
        """precision_at_k() for k = 1."""
        return self.precision_at_k(X, Y, 1)

    def save(self, path):
        """Writes a file that Model.load() and other programs read: NAME.safetensors or NAME.npz.

        It carries names and words where they are known.
        """
        path = os.fspath(path)
        with self._source() as source:
            data = ["--data", self.data] if self.data else []
            programs.run("gleaner", "export", source, "--to", path, "--force", *data)
        return path

    @contextlib.contextmanager
    def _source(self):
        """The store or file that the model was loaded from; of a pickled one, a file made again."""
        if self._file is None:
            yield self.path
            return
        with tempfile.TemporaryDirectory(prefix="gleaner-") as folder:
            path = os.path.join(folder, "model.safetensors")
            with open(path, "wb") as file:
                file.write(self._file)
            yield path

    # A pickle is the whole model: the store may be gone when it is read.
    def __getstate__(self):
        with tempfile.TemporaryDirectory(prefix="gleaner-") as folder:
            with open(self.save(os.path.join(folder, "model.safetensors")), "rb") as file:
                return {"file": file.read(), "threads": self.threads}

    def __setstate__(self, state):
        self._file = state["file"]
        with self._source() as path:
            self.__init__(path, "", state["threads"])
