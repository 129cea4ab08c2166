"""Examples and their labels, a block of rows at a time, in the types of the C++ module."""

import numbers

import numpy as np

BLOCK = 8192  # rows: what is copied at once


def are_texts(X):
    """Whether X is a sequence of strings rather than a matrix."""
    if isinstance(X, str):
        raise TypeError("X is one string: give a list of texts")
    if hasattr(X, "ndim") and X.ndim != 1 or hasattr(X, "indptr") or not hasattr(X, "__len__"):
        return False
    return all(isinstance(text, str) for text in X)


def as_csr(matrix, what="X"):
    """The matrix as CSR, without a copy where it is so."""
    from scipy import sparse
    csr = sparse.csr_matrix(matrix)
    if csr.dtype.kind not in "biuf":
        raise ValueError(f"{what}: expected numbers, found {csr.dtype}")
    return csr


def csr_block(csr, first, end):
    """indptr, indices and data of some rows: canonical, without zeros, in 32 bits. A copy."""
    from scipy import sparse
    begin = csr.indptr[first]
    with np.errstate(over="ignore"):
        values = csr.data[begin:csr.indptr[end]].astype(np.float32)
    block = sparse.csr_matrix(
        (values, csr.indices[begin:csr.indptr[end]].astype(np.int32), csr.indptr[first:end + 1] - begin),
        shape=(end - first, csr.shape[1]))
    block.sum_duplicates()
    block.eliminate_zeros()
    return block.indptr.astype(np.int64), block.indices.view(np.uint32), block.data


def blocks(count):
    """The bounds of blocks of rows."""
    return ((first, min(first + BLOCK, count)) for first in range(0, count, BLOCK))


class Examples:
    """X: texts, or a matrix whose rows are examples."""

    def __init__(self, X):
        self.are_texts = are_texts(X)
        self.X = X if self.are_texts else as_csr(X)
        self.count = len(X) if self.are_texts else self.X.shape[0]
        self.features = None if self.are_texts else self.X.shape[1]

    def texts(self, first, end):
        return list(self.X[first:end])

    def block(self, first, end):
        return csr_block(self.X, first, end)


def are_numbers(Y):
    """Whether Y is a list of label numbers for each example, rather than of tags."""
    return isinstance(next((tag for tags in Y for tag in tags), ""), numbers.Real)


def matrix_of_numbers(Y):
    """A CSR matrix that has a one for each label number of each example."""
    from scipy import sparse
    for row, own in enumerate(Y):
        for label in own:
            if not isinstance(label, numbers.Real) or label != int(label) or label < 0:
                raise TypeError(f"Y[{row}]: {label!r} is no label number, and labels before it are")
    indptr = np.zeros(len(Y) + 1, np.int64)
    np.cumsum([len(own) for own in Y], out=indptr[1:])
    labels = np.fromiter((label for own in Y for label in own), np.int32, indptr[-1])
    return sparse.csr_matrix((np.ones(len(labels), np.int8), labels, indptr), (len(Y), labels.max() + 1))


class Labels:
    """Y: a matrix with a column for each label, or a list of tags or of label numbers for each example.

    `known` are the names that labels have already, in their order; tags beyond them become labels
    behind them, if `takes_new`, where at least `least` examples have them.
    """

    def __init__(self, Y, known=(), takes_new=True, least=1):
        self.is_matrix = hasattr(Y, "indptr") or getattr(Y, "ndim", 1) == 2
        if not self.is_matrix and are_numbers(Y):
            Y, self.is_matrix = matrix_of_numbers(Y), True
        if self.is_matrix:
            self.names = list(known)
            self.Y = as_csr(Y, "Y")
            self.examples, self.count = self.Y.shape
            return
        self.Y, self.examples = Y, len(Y)
        self.names = list(known)
        if takes_new:
            self.names += self._new_tags(set(self.names), least)
        self.ids = {name: label for label, name in enumerate(self.names)}
        self.count = len(self.names)

    def _new_tags(self, known, least):
        counts = {}
        for row, tags in enumerate(self.Y):
            if isinstance(tags, str):
                raise TypeError(f"Y[{row}] is a string: give a list of tags, also for one tag")
            for tag in set(tags):
                if not isinstance(tag, str):
                    raise TypeError(f"Y[{row}]: the tag {tag!r} is no string, and tags before "
                                    "it are")
                counts[tag] = counts.get(tag, 0) + 1
        return sorted(tag for tag, count in counts.items() if count >= least and tag not in known)

    def block(self, first, end):
        """indptr and indices of some rows; tags that are no labels are left out."""
        if self.is_matrix:
            return csr_block(self.Y, first, end)[:2]
        rows = [sorted({self.ids[tag] for tag in tags if tag in self.ids}) for tags in self.Y[first:end]]
        indptr = np.zeros(len(rows) + 1, np.int64)
        np.cumsum([len(row) for row in rows], out=indptr[1:])
        return indptr, np.fromiter((label for row in rows for label in row), np.uint32, indptr[-1])
