"""Examples and their labels, checked where they enter, a block of rows at a time, for the C++ module."""

import numbers
import reprlib

import numpy as np

from . import _gleaner

BLOCK = 8192  # rows: what is copied at once


def blocks(count):
    """The bounds of blocks of rows."""
    return ((first, min(first + BLOCK, count)) for first in range(0, count, BLOCK))


def is_missing(value):
    """None, NaN and what pandas has for them."""
    return value is None or type(value).__name__ in ("NAType", "NaTType") or (
        isinstance(value, numbers.Number) and value != value)


def is_number(value):
    return isinstance(value, (numbers.Real, np.bool_)) and not is_missing(value)


def _first(values):
    return next((value for value in values if not is_missing(value)), None)


def plain(values, what):
    """A scipy matrix, an array of two dimensions, or a list: of a Series, a frame, a generator or the like."""
    if hasattr(values, "tocsr"):
        return values
    if hasattr(values, "columns"):
        return _plain_frame(values, what)
    if isinstance(values, (str, bytes, dict, set, frozenset)) or not hasattr(values, "__iter__"):
        kind = {str: "one string", bytes: "one string of bytes"}.get(type(values), f"a {type(values).__name__}")
        raise TypeError(f"{what} is {kind}: give a list of texts or a matrix, with an entry or a row for each example")
    if isinstance(values, np.ma.MaskedArray):
        for place in np.argwhere(np.ma.getmaskarray(values))[:1]:
            raise ValueError(f"{what}: row {', column '.join(map(str, place))} is masked: fill it or leave the row out")
        values = values.data
    if isinstance(values, np.ndarray):
        if values.ndim not in (1, 2):
            raise ValueError(f"{what} has {values.ndim} dimensions: a matrix has two")
        return values.tolist() if values.ndim == 1 else values
    for name in ("to_list", "to_pylist"):
        if hasattr(values, name):
            return getattr(values, name)()
    if hasattr(values, "__array__"):
        return plain(np.asarray(values), what)
    return values if isinstance(values, (list, tuple)) else list(values)


def _plain_frame(frame, what):
    if frame.shape[1] == 1:
        column = (frame.iloc[:, 0] if hasattr(frame, "iloc") else frame.to_series(0)).to_list()
        if not is_number(_first(column)):
            return column
    if hasattr(frame, "sparse"):
        return frame.sparse.to_coo()
    values = frame.to_numpy()
    for name, column in zip(frame.columns, values.T if values.dtype.kind not in "biuf" else ()):
        if isinstance(_first(column), (str, bytes)):
            raise TypeError(f"{what}: the column {name!r} has texts, not numbers: a list of texts is one column")
    return values


def names_of_columns(values):
    """The names of a frame's columns, where they are strings."""
    columns = list(getattr(values, "columns", ()))
    return columns if len(columns) > 1 and all(isinstance(name, str) for name in columns) else None


def check_columns(values, known, what):
    """Refuses a frame whose columns are named otherwise than features or labels are."""
    for name, own in zip(known, names_of_columns(values) or ()):
        if name != own:
            raise ValueError(f"{what} has the column {own!r} where the model has {name!r}: give the columns their order")


def matrix_of(values, what):
    """CSR, or an array of numbers of two dimensions, without a copy where it is so."""
    if isinstance(values, (list, tuple)) and values and all(hasattr(own, "tocsr") for own in values):
        from scipy import sparse
        values = sparse.vstack(values)
    if hasattr(values, "tocsr"):
        csr = values.tocsr()
        if csr.ndim != 2 or csr.dtype.kind not in "biuf":
            raise TypeError(f"{what}: expected a matrix of numbers, found {csr.ndim} dimensions of {csr.dtype}")
        return csr
    if not isinstance(values, np.ndarray):
        if is_number(_first(values)):
            raise ValueError(f"{what} has one dimension: a matrix has a row for each example. Reshape your data: "
                             "X.reshape(1, -1) is one example")
        for row, own in enumerate(values):
            if not hasattr(own, "__len__") or len(own) != len(values[0]):
                raise ValueError(f"{what}: row {row} has another length than row 0")
        values = np.array([np.asarray(own, object) for own in values], dtype=object).reshape(len(values), -1)
    if values.dtype.kind in "biuf":
        return values
    if values.dtype.kind not in "OUS":
        raise TypeError(f"{what}: expected numbers, found {values.dtype}")
    for (row, column), value in np.ndenumerate(values):
        if not is_number(value):
            why = "is missing" if is_missing(value) else f"{reprlib.repr(value)} is no number"
            raise ValueError(f"{what}: row {row}, column {column}: {why}")
    return values.astype(np.float64)


def csr_block(matrix, first, end, what):
    """indptr, indices and data of some rows: canonical, without zeros, finite, in 32 bits. A copy."""
    from scipy import sparse
    with np.errstate(over="ignore"):
        if isinstance(matrix, np.ndarray):
            block = sparse.csr_matrix(np.asarray(matrix[first:end], np.float32))
        else:
            begin, stop = matrix.indptr[first], matrix.indptr[end]
            block = sparse.csr_matrix(
                (matrix.data[begin:stop].astype(np.float32), matrix.indices[begin:stop].astype(np.int32),
                 matrix.indptr[first:end + 1] - begin), shape=(end - first, matrix.shape[1]))
            block.check_format(full_check=True)
    block.sum_duplicates()
    block.eliminate_zeros()
    for at in np.flatnonzero(~np.isfinite(block.data))[:1]:
        raise ValueError(f"{what}: row {first + np.searchsorted(block.indptr, at, 'right') - 1}, column "
                         f"{block.indices[at]}: {block.data[at]} is not a number of 32 bits")
    return block.indptr.astype(np.int64), block.indices.astype(np.uint32, copy=False), block.data


def indptr_of(lists):
    return np.concatenate([[0], np.cumsum([len(own) for own in lists], dtype=np.int64)])


class Examples:
    """X: texts, or a matrix whose rows are examples. `missing` is "refuse", or "empty" for texts without words."""

    def __init__(self, X, what="X", missing="refuse"):
        if missing not in ("refuse", "empty"):
            raise ValueError(f"missing is {missing!r}: \"refuse\" and \"empty\" are known")
        self.what, self.missing = what, missing
        self.X = plain(X, what)
        self.are_texts = isinstance(self.X, (list, tuple)) and (
            isinstance(_first(self.X), (str, bytes)) or all(map(is_missing, self.X)))
        if not self.are_texts:
            self.X = matrix_of(self.X, what)
            if self.X.shape[1] > _gleaner.FEATURES_MAX:
                raise ValueError(f"{what} has {self.X.shape[1]:,} columns: a model has at most "
                                 f"{_gleaner.FEATURES_MAX:,} features")
        self.count = len(self.X) if self.are_texts else self.X.shape[0]
        self.features = None if self.are_texts else self.X.shape[1]

    def block(self, first, end):
        """The texts of some rows, encoded; or their indptr, indices and data."""
        if not self.are_texts:
            return csr_block(self.X, first, end, self.what)
        block = self.X[first:end]
        try:
            return ([text.encode() for text in block],)
        except (AttributeError, UnicodeEncodeError):
            return ([self._encoded(row, text) for row, text in enumerate(block, first)],)

    def _encoded(self, row, text):
        place = f"{self.what}[{row}]"
        if is_missing(text):
            if self.missing == "empty":
                return b""
            raise ValueError(f"{place} is missing ({text!r}): leave the example out, or give missing=\"empty\"")
        if not isinstance(text, str):
            remedy = ", which must be decoded to a text" if isinstance(text, bytes) else ", no text"
            raise TypeError(f"{place} is {reprlib.repr(text)}{remedy}")
        try:
            return text.encode()
        except UnicodeEncodeError as error:
            raise ValueError(f"{place} has half a surrogate pair at character {error.start}: no text has it") from None


def points(block, words=None):
    """The C++ module's form of Examples.block(). `words` makes examples of texts."""
    return _gleaner.Points(*block) if len(block) > 1 else words.points(*block)


def check_names(names, what, unique=True):
    """A list of names that can stand one a line."""
    names, seen = list(names), {}
    for place, name in enumerate(names):
        if not isinstance(name, str):
            raise TypeError(f"{what}[{place}] is {name!r}, no string")
        if "\n" in name or "\r" in name:
            raise ValueError(f"{what}[{place}]: the name {name!r} has a line break, and names stand one a line")
        if unique and seen.setdefault(name, place) != place:
            raise ValueError(f"{what}: {name!r} stands twice, at {seen[name]} and {place}")
    return names


def _listed(Y, what):
    """A list of each example's own labels, from a list of these or of single labels."""
    single = isinstance(_first(Y), (str, numbers.Number, np.bool_))
    for row, own in enumerate(Y):
        if is_missing(own):
            raise ValueError(f"{what}[{row}] is missing ({own!r}): leave the example out"
                             + ("" if single else ", or give [] where it has no label"))
        if single == (hasattr(own, "__iter__") and not isinstance(own, str)):
            raise TypeError(f"{what}[{row}] is a list, and labels before it are single" if single else
                            f"{what}[{row}] is a {'string' if isinstance(own, str) else type(own).__name__}: "
                            "give a list of tags, also for one tag")
    return [[own] for own in Y] if single else [own if hasattr(own, "__len__") else list(own) for own in Y]


def _matrix_of_numbers(lists, what):
    """An array, of rows that have a 0 or 1 for each label; or a matrix with a one for each label number."""
    from scipy import sparse
    width = len(lists[0])  # such rows would mean nothing as label numbers
    if width > 1 and all(len(own) == width and all(value in (0, 1) for value in own) for own in lists):
        return np.array(lists)
    for row, own in enumerate(lists):
        for label in own:
            if not is_number(label) or not 0 <= label < _gleaner.LABELS_MAX or label != int(label):
                known = "and labels before it are" if isinstance(label, str) else (
                    f"they go from 0 to {_gleaner.LABELS_MAX - 1:,}")
                raise TypeError(f"{what}[{row}]: {reprlib.repr(label)} is no label number, {known}")
    labels = np.array([label for own in lists for label in own], np.int32)
    return sparse.csr_matrix((np.ones(len(labels), np.int8), labels, indptr_of(lists)),
                             (len(lists), labels.max(initial=-1) + 1))


class Labels:
    """Y: a matrix with a column for each label, or for each example a tag, a label number, or a list of them.

    `known` are the names that labels have already, in their order; tags beyond them become labels
    behind them, if `takes_new`, where at least `least` examples have them.
    """

    def __init__(self, Y, known=(), takes_new=True, least=1, what="Y"):
        self.what, self.names, columns = what, list(known), names_of_columns(Y)
        if not takes_new:
            check_columns(Y, known, what)
        self.Y = plain(Y, what)
        if isinstance(self.Y, np.ndarray) and isinstance(_first(self.Y.flat), str):
            self.Y = self.Y.tolist()
        self.is_matrix = not isinstance(self.Y, (list, tuple))
        if not self.is_matrix:
            self.Y = _listed(self.Y, what)
            if is_number(_first(tag for own in self.Y for tag in own)):
                self.Y, self.is_matrix = _matrix_of_numbers(self.Y, what), True
        if self.is_matrix:
            self.Y = matrix_of(self.Y, what)
            self.examples, self.count = self.Y.shape
            self.names = self.names or columns or []
            if self.count > _gleaner.LABELS_MAX:
                raise ValueError(f"{what} has {self.count:,} columns: a model has at most {_gleaner.LABELS_MAX:,} labels")
            return
        counts = self._counted()
        if takes_new:
            new = {tag for tag, count in counts.items() if count >= least} - set(self.names)
            self.names += check_names(sorted(new), f"the tags of {what}")
        elif counts and not self.names:
            raise ValueError(f"{what} has tags, and the labels have no names: give label_names= to fit(), or label numbers")
        self.ids = {name: label for label, name in enumerate(self.names)}
        self.examples, self.count = len(self.Y), len(self.names)

    def __len__(self):
        return self.examples

    def _counted(self):
        counts = {}
        for row, tags in enumerate(self.Y):
            for tag in set(tags):
                try:
                    if not tag.encode():
                        raise ValueError(f"{self.what}[{row}]: a tag is empty")
                except AttributeError:
                    raise TypeError(f"{self.what}[{row}]: the tag {reprlib.repr(tag)} is no string, and tags before it "
                                    "are") from None
                except UnicodeEncodeError:
                    raise ValueError(f"{self.what}[{row}]: the tag {tag!r} has half a surrogate pair") from None
                counts[tag] = counts.get(tag, 0) + 1
        return counts

    def block(self, first, end, count=None):
        """indptr and indices of some rows, below `count`; tags that are no labels are left out."""
        if not self.is_matrix:
            lists = [sorted({self.ids[tag] for tag in tags if tag in self.ids}) for tags in self.Y[first:end]]
            return indptr_of(lists), np.array([label for own in lists for label in own], np.uint32)
        dense = isinstance(self.Y, np.ndarray)
        values = self.Y[first:end] if dense else self.Y.data[self.Y.indptr[first]:self.Y.indptr[end]]
        for place in np.argwhere((values != 0) & (values != 1))[:1]:
            at = 0 if dense else self.Y.indptr[first] + place[0]
            row, column = (first + place[0], place[1]) if dense else (
                np.searchsorted(self.Y.indptr, at, "right") - 1, self.Y.indices[at])
            raise ValueError(f"{self.what}: row {row}, column {column}: {values[tuple(place)]} is neither 0 nor 1, and a "
                             f"1 says that an example has a label ({self.what} != 0 may be meant)")
        indptr, labels, _ = csr_block(self.Y, first, end, self.what)
        for at in np.flatnonzero(labels >= (self.count if count is None else count))[:1]:
            raise ValueError(f"{self.what}: row {first + np.searchsorted(indptr, at, 'right') - 1}: label {labels[at]}, "
                             f"and the labels go from 0 to {count - 1}")
        return indptr, labels


def check_lengths(examples, labels):
    if examples.count != labels.examples:
        raise ValueError(f"{examples.what} has {examples.count} examples and {labels.what} {labels.examples}")
