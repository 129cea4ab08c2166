"""Examples and labels are checked where they enter: usual forms are taken, others are refused by row, in a sentence."""

import unittest

import numpy as np
from cases import QUIET, Case, animal_texts
from gleaner import Gleaner
from scipy import sparse

try:
    import pandas
except ImportError:
    pandas = None

TEXTS = ["a b", "b c", "c a", "a b c"] * 3
TAGS = [["x"], ["y"], ["z"], ["x", "y"]] * 3
MATRIX = sparse.random(12, 9, 0.5, "csr", np.float32, random_state=1)
NUMBERS = [[0], [1], [2], [0, 1]] * 3
INDICATOR = np.array([[1, 0, 0], [0, 1, 0], [0, 0, 1], [1, 1, 0]] * 3)


def digest(X, Y, **named):
    return Gleaner(epochs=1, min_count=1, **QUIET).fit(X, Y, **named).finished["digest"]


class Polars:
    """A frame or a series of polars, as far as the package uses them."""

    def __init__(self, columns):
        self._values = columns
        self.columns = list(columns)
        self.shape = (len(columns[self.columns[0]]), len(columns))

    def to_numpy(self):
        return np.array(list(self._values.values())).T

    def to_series(self, index):
        return PolarsSeries(self._values[self.columns[index]])


class Tensor:
    """What numpy makes an array of, as a tensor of torch is."""

    def __init__(self, values):
        self._values = values

    def __iter__(self):
        return (Tensor(value) for value in self._values)

    def __len__(self):
        return len(self._values)

    def __array__(self, dtype=None, copy=None):
        return np.array(self._values, dtype)


class PolarsSeries:
    def __init__(self, values):
        self._values = values

    def __iter__(self):
        return iter(self._values)

    def __len__(self):
        return len(self._values)

    def to_list(self):
        return list(self._values)


class Input(Case):
    def refused(self, X, Y, piece, kind=(TypeError, ValueError), **named):
        with self.subTest(piece=piece), self.assertRaisesRegex(kind, piece) as caught:
            Gleaner(epochs=1, min_count=1, **QUIET).fit(X, Y, **named)
        if hasattr(caught, "exception"):
            self.assertLess(len(str(caught.exception)), 300)
            self.assertNotIn("\n", str(caught.exception))

    def test_texts_in_all_usual_forms_are_one_call(self):
        expected = digest(TEXTS, TAGS)
        forms = [tuple(TEXTS), np.array(TEXTS), np.array(TEXTS, dtype=object), (text for text in TEXTS), iter(TEXTS),
                 PolarsSeries(TEXTS), Polars({"text": TEXTS})]
        if pandas is not None:
            series = pandas.Series(TEXTS, index=range(5, 17))
            forms += [series, series.astype("string"), series.astype("category"), pandas.DataFrame({"t": TEXTS}),
                      pandas.DataFrame({"t": TEXTS})["t"], pandas.Index(TEXTS)]
        for form in forms:
            self.assertEqual(digest(form, TAGS), expected, type(form))

    def test_matrices_in_all_usual_forms_are_one_call(self):
        expected = digest(MATRIX, NUMBERS)
        dense = MATRIX.toarray()
        forms = [dense, dense.astype(np.float64), np.asfortranarray(dense), MATRIX.tocoo(), MATRIX.tocsc(), MATRIX.tolil(),
                 MATRIX.todok(), MATRIX.tobsr(), MATRIX.todia(), MATRIX.astype(np.float64), np.asmatrix(dense), dense.tolist(), list(dense),
                 np.ma.masked_array(dense), sparse.csr_array(MATRIX), dense.astype(object), (row for row in dense),
                 Polars({f"f{i}": dense[:, i] for i in range(9)}), Tensor(dense), list(MATRIX), list(map(Tensor, dense))]
        if pandas is not None:
            forms += [pandas.DataFrame(dense), pandas.DataFrame.sparse.from_spmatrix(MATRIX),
                      pandas.DataFrame(dense).astype("Float64")]
        for form in forms:
            self.assertEqual(digest(form, NUMBERS), expected, type(form))

    def test_labels_in_all_usual_forms_are_one_call(self):
        expected = digest(MATRIX, NUMBERS)
        forms = [INDICATOR, INDICATOR.astype(bool), INDICATOR.astype(float), INDICATOR.tolist(), list(INDICATOR),
                 INDICATOR.astype(bool).tolist(), sparse.csr_matrix(INDICATOR), sparse.coo_matrix(INDICATOR),
                 [np.array(own) for own in NUMBERS], [set(own) for own in NUMBERS], [tuple(map(float, own)) for own in NUMBERS],
                 (own for own in NUMBERS), np.array(NUMBERS, dtype=object), sparse.csr_array(INDICATOR),
                 Polars({"x": INDICATOR[:, 0], "y": INDICATOR[:, 1], "z": INDICATOR[:, 2]})]
        if pandas is not None:
            forms += [pandas.Series(NUMBERS), pandas.DataFrame(INDICATOR), pandas.DataFrame(INDICATOR).astype("Int64")]
        for form in forms:
            self.assertEqual(digest(MATRIX, form), expected, type(form))

    def test_one_label_an_example_needs_no_lists(self):
        names = ["x", "y", "z"] * 4
        expected = digest(TEXTS, [[name] for name in names])
        forms = [names, tuple(names), np.array(names), np.array(names)[:, None], iter(names)]
        numbers = [0, 1, 2] * 4
        expected_numbers = digest(TEXTS, [[number] for number in numbers])
        numbered = [numbers, np.array(numbers), np.array(numbers, float), np.array(numbers, np.uint8)]
        if pandas is not None:
            forms += [pandas.Series(names), pandas.Categorical(names), pandas.DataFrame({"tag": names})]
            numbered += [pandas.Series(numbers), pandas.Series(numbers, dtype="Int64")]
        for form in forms:
            self.assertEqual(digest(TEXTS, form), expected, type(form))
        for form in numbered:
            self.assertEqual(digest(TEXTS, form), expected_numbers, type(form))

    def test_columns_of_frames_name_labels_and_features(self):
        if pandas is None:
            self.skipTest("needs pandas")
        X = pandas.DataFrame(MATRIX.toarray(), columns=[f"f{i}" for i in range(9)])
        own = Gleaner(epochs=1, hidden=0, **QUIET).fit(X, pandas.DataFrame(INDICATOR, columns=["x", "y", "z"]))
        self.assertEqual((own.model.label_names, own.model.feature_names), (["x", "y", "z"], list(X.columns)))
        self.assertEqual(own.score(X, TAGS), own.score(X, INDICATOR))
        self.assertEqual(own.predict(X), own.predict(MATRIX))
        swapped, Y = X[[*X.columns[:3], "f4", "f3", *X.columns[5:]]], pandas.DataFrame(INDICATOR, columns=["x", "z", "y"])
        for ask in (lambda: own.predict(swapped), lambda: own.fit(X, INDICATOR, test=(swapped, INDICATOR))):
            with self.assertRaisesRegex(ValueError, "the column 'f4' where the model has 'f3'"):
                ask()
        for ask in (lambda: own.score(X, Y), lambda: own.fit(X, INDICATOR, test=(X, Y), label_names=["x", "y", "z"])):
            with self.assertRaisesRegex(ValueError, "the column 'z' where the model has 'y'"):
                ask()

    def test_missing_texts_are_refused_by_row_or_empty(self):
        for missing in (None, float("nan"), np.nan, *([pandas.NA, pandas.NaT] if pandas is not None else [])):
            for place in (0, 5, 11):
                texts = list(TEXTS)
                texts[place] = missing
                self.refused(texts, TAGS, rf"X\[{place}\] is missing", ValueError)
                blank = [text if text is not missing else "" for text in texts]
                own = Gleaner(epochs=1, min_count=1, missing="empty", **QUIET).fit(texts, TAGS)
                self.assertEqual(own.finished["digest"], digest(blank, TAGS))
                self.assertEqual(own.predict([missing]), own.predict([""]))
        model = Gleaner(epochs=1, **QUIET).fit(*animal_texts(40)).model
        with self.assertRaisesRegex(ValueError, r"X\[1\] is missing"):
            model.predict(["a", None])
        with self.assertRaisesRegex(ValueError, "refuse"):
            Gleaner(missing="drop", **QUIET).fit(TEXTS, TAGS)

    def test_what_is_no_text_is_refused_by_row(self):
        for place in (1, 9000):
            texts = ["a b"] * 9001
            for wrong, piece in ((b"a b", "is b'a b', which must be decoded"), (3, "is 3, no text"),
                                 ("a \ud83d", "half a surrogate pair at character 2"), (["a"], r"\['a'\], no text")):
                texts[place] = wrong
                self.refused(texts, ["x"] * 9001, rf"X\[{place}\] (is|has) .*{piece.split(' ', 1)[1]}")
        for X, piece in (("a b", "X is one string"), (b"a b", "X is one string of bytes"), ({"a": 1}, "X is a dict"),
                         ({"a", "b"}, "X is a set"), (3, "X is a int"), (None, "X is a NoneType"),
                         (np.zeros(12), "one dimension"), (np.zeros((2, 2, 2)), "3 dimensions"),
                         (np.zeros((12, 2), complex), "complex"), ([["a", "b"]] * 12, "row 0, column 0: 'a' is no number"),
                         ([[1, 2]] * 5 + [[1]] * 7, "row 5 has another length"),
                         ([[1, 2]] * 5 + [[1, None]] * 7, "row 5, column 1: is missing"),
                         (np.array([["1", "2"]] * 12), "is no number"), (np.zeros((12, 2), "M8[s]"), "datetime64"),
                         ([], "no examples")):
            self.refused(X, TAGS if not isinstance(X, list) or X else [], piece)
        if pandas is not None:
            self.refused(pandas.DataFrame({"n": [1.0] * 12, "t": TEXTS}), TAGS, "the column 't' has texts")
            self.refused(pandas.DataFrame({"n": [1.0] * 12, "m": [1.0] * 7 + [None] * 5}), TAGS, "row 7, column 1")

    def test_values_that_are_no_numbers_are_refused_by_row(self):
        for value in (np.nan, np.inf, 1e39):
            dense = MATRIX.toarray().astype(float)
            dense[7, 3] = value
            for X in (dense, sparse.csr_matrix(dense), dense.tolist()):
                self.refused(X, NUMBERS, "X: row 7, column 3")
        masked = np.ma.masked_array(MATRIX.toarray(), mask=np.zeros((12, 9), bool))
        masked.mask[4, 2] = True
        self.refused(masked, NUMBERS, "X: row 4, column 2 is masked")
        self.refused(MATRIX, np.ma.masked_array([0, 1, 2] * 4, mask=[0] * 11 + [1]), "Y: row 11 is masked")

    def test_an_indicator_has_zeros_and_ones(self):
        for value in (-1, np.nan, 0.3, 2, np.inf):
            dense = INDICATOR.astype(float)
            dense[5, 2] = value
            for Y in (dense, sparse.csr_matrix(dense), sparse.csc_matrix(dense)):
                self.refused(MATRIX, Y, f"Y: row 5, column 2: {value}")
            if np.isfinite(value):
                self.refused(MATRIX, INDICATOR, f"Y of test: row 5, column 2: {value}", test=(MATRIX, dense))

    def test_label_numbers_are_numbers_of_labels(self):
        for wrong in (-1, 0.5, 2**32, 2**40 + 1, 10**8 + 1, float("inf")):
            self.refused(MATRIX, [*NUMBERS[:6], [wrong], *NUMBERS[7:]], rf"Y\[6\]: {wrong} is no label number", TypeError)
        self.refused(MATRIX, [*NUMBERS[:6], [1, np.nan], *NUMBERS[7:]], r"Y\[6\]: nan is no label number")
        self.refused(MATRIX, [*NUMBERS[:6], None, *NUMBERS[7:]], r"Y\[6\] is missing .*\[\] where it has no label")
        self.refused(MATRIX, [0.0, np.nan, 1.0] * 4, r"Y\[1\] is missing")
        self.refused(MATRIX, [*NUMBERS[:6], ["x"], *NUMBERS[7:]], r"Y\[6\]: 'x' is no label number")

    def test_tags_are_names(self):
        for wrong, piece in ((None, "None is no string"), (3, "3 is no string"), (b"x", "b'x' is no string"),
                             ("", "a tag is empty"), ("x\ud800", "half a surrogate pair")):
            self.refused(TEXTS, [*TAGS[:6], ["x", wrong], *TAGS[7:]], rf"Y\[6\].*{piece}")
        for wrong in ("x\r", "x\ny", "\rx"):
            self.refused(TEXTS, [*TAGS[:6], [wrong], *TAGS[7:]], "line break")
        self.refused(TEXTS, [*TAGS[:6], "x", *TAGS[7:]], r"Y\[6\] is a string: give a list of tags")
        self.refused(TEXTS, ["x", "y", ["z"]] * 4, r"Y\[2\] is a list")
        self.refused(TEXTS, ["x", None, "y"] * 4, r"Y\[1\] is missing")
        names = ["a tab\t", " blanks ", "quotes \"'", "Ünïcode 🦉", "\u2028", "\x85", "\x0b", "a" * 5000]
        own = Gleaner(self.path / "names", epochs=1, min_count=1, **QUIET).fit(TEXTS[:8], names)
        self.assertEqual(own.model.label_names, sorted(names))
        self.assertEqual(Gleaner.load(self.path / "names").model.label_names, sorted(names))

    def test_names_are_checked(self):
        for names, piece in ((["a", "b", "a"], "label_names: 'a' stands twice, at 0 and 2"), (["a", "b"], "2 names for 3"),
                             (["a", 2, "c"], r"label_names\[1\] is 2, no string"), (["a", "b", "c\r"], "line break")):
            self.refused(MATRIX, INDICATOR, piece, label_names=names)
        self.refused(MATRIX, INDICATOR, r"feature_names\[0\]", feature_names=[3] * 9)

    def test_sizes_beyond_a_model_are_refused_in_words(self):
        wide = sparse.csr_matrix((np.ones(1), ([0], [2**30 - 1])), (12, 2**30))
        self.refused(wide, NUMBERS, "X has 1,073,741,824 columns: a model has at most 1,000,000,000 features")
        many = sparse.csr_matrix((np.ones(1), ([0], [5])), (12, 2 * 10**9))
        self.refused(MATRIX, many, "Y has 2,000,000,000 columns: a model has at most 100,000,000 labels")
        self.refused(MATRIX, INDICATOR[:-1], "X has 12 examples and Y 11")
        self.refused(MATRIX, INDICATOR, "X of test has 12 examples and Y of test 3", test=(MATRIX, INDICATOR[:3]))

    def test_tags_of_test_fit_a_matrix_with_names(self):
        tags = [[["a", "b", "c"][i] for i in np.flatnonzero(row)] for row in INDICATOR]
        named = Gleaner(epochs=1, **QUIET).fit(MATRIX, INDICATOR, test=(MATRIX, tags), label_names=["a", "b", "c"])
        plain = Gleaner(epochs=1, **QUIET).fit(MATRIX, INDICATOR, test=(MATRIX, INDICATOR))
        self.assertEqual(named.finished["p_at_1"], plain.finished["p_at_1"])
        self.assertEqual(named.finished["p_at_1"], named.score(MATRIX, tags))
        self.refused(MATRIX, INDICATOR, "Y of test has tags, and the labels have no names", test=(MATRIX, tags))
        known = Gleaner(epochs=1, **QUIET).fit(MATRIX, tags, label_names=["c", "b", "a"]).model
        self.assertEqual(known.label_names, ["c", "b", "a"])
        with self.assertRaisesRegex(ValueError, "Y has tags"):
            plain.score(MATRIX, tags)

    def test_questions_are_checked_too(self):
        model = Gleaner(epochs=1, **QUIET).fit(MATRIX, INDICATOR).model
        texts = Gleaner(epochs=1, hidden=0, min_count=1, **QUIET).fit(TEXTS, TAGS).model
        for ask, piece in ((lambda: model.predict(["a"]), "knows no words"), (lambda: model.best(MATRIX, 0), "k is 0"),
                           (lambda: model.best(MATRIX, 1.5), "k is 1.5"), (lambda: model.best(MATRIX, 2**40), "k is"),
                           (lambda: model.score(MATRIX, INDICATOR * 0.3), "row 0, column 0"),
                           (lambda: texts.predict(["a", "\udc00"]), r"X\[1\] has half"),
                           (lambda: texts.explain(["a", "b"], "x"), "takes one"),
                           (lambda: model.best(MATRIX[0].toarray()[0]), "one dimension")):
            with self.subTest(piece), self.assertRaisesRegex(ValueError, piece):
                ask()
        self.assertEqual(texts.explain("a b", "x"), texts.explain(["a b"], "x"))
        self.assertEqual(texts.predict(text for text in TEXTS), texts.predict(np.array(TEXTS)))


if __name__ == "__main__":
    unittest.main()
