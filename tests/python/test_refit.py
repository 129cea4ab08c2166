"""fit() forgets: each call without a store is its own run, and with a store it says what differs."""

import os
import signal
import threading
import unittest

import numpy as np
from cases import QUIET, Case, animal_texts
from gleaner import Gleaner
from scipy import sparse


class Refit(Case):
    def test_each_fit_without_a_store_is_a_run_of_its_own(self):
        own = Gleaner(epochs=1, **QUIET)
        stores = []
        for count in (100, 200, 100):
            own.fit(*animal_texts(count))
            stores.append(own.store)
        self.assertEqual(len(set(stores)), 3)
        self.assertEqual([os.path.exists(store) for store in stores], [False, False, True])
        own.fit(sparse.identity(9, format="csr"), list(range(9)))
        self.assertEqual(own.model.labels, 9)
        own.seed, own.epochs = 2, 2
        self.assertEqual(own.fit(*animal_texts(100)).finished["epochs"], 2)

    def test_a_fit_that_is_refused_leaves_the_model(self):
        texts, tags = animal_texts(100)
        own = Gleaner(epochs=1, **QUIET).fit(texts, tags)
        expected, store = own.predict(texts), own.store
        with self.assertRaises(ValueError):
            own.fit(texts, tags[:-1])
        self.assertEqual((own.predict(texts), own.store), (expected, store))
        own.resume(epochs=2)

    def test_the_same_call_goes_on_and_another_says_what_differs(self):
        texts, tags = animal_texts(200)
        store = str(self.path / "run")
        given = {"store": store, "epochs": 2, "hidden": 0, **QUIET}
        first = Gleaner(**given).fit(texts, tags).finished["digest"]
        self.assertTrue(Gleaner(**given).fit(texts, tags).finished["already"])
        # Neither threads nor progress make another run; lists, arrays and generators are one call.
        same = Gleaner(**{**given, "threads": 2}).fit(np.array(texts), (own for own in tags))
        self.assertTrue(same.finished["already"])
        for changed, call, pieces, absent in (
                ({"epochs": 1}, (texts, tags), ["epochs is 1, and 2 there"], ["seed", "data"]),
                ({"seed": 2}, (texts, tags), ["seed is 2, and 1 there"], ["epochs", "wide"]),
                ({"hidden": 16}, (texts, tags), ["hidden is 16, and 0 there"], ["seed", "wide", "model."]),
                ({"seed": 3, "epochs": 1}, (texts, tags), ["seed is 3", "epochs is 1"], ["hidden"]),
                ({"settings": {"batch_examples": 16}}, (texts, tags), ["batch_examples is 16, and None there"], ["seed"]),
                ({}, (texts[:-1], tags[:-1]), [r"other data \(X, Y\)"], ["seed"]),
                ({}, (texts, [["x"], *tags[1:]]), [r"other data \(Y\)"], ["X"]),
                ({"seed": 4}, (texts[::-1], tags), [r"other data \(X\)", "seed is 4"], ["Y"]),
                ({"min_count": 3}, (texts, tags), ["min_count is 3, and 2 there"], ["X"])):
            with self.subTest(changed, pieces=pieces), self.assertRaises(ValueError) as caught:
                Gleaner(**{**given, **changed}).fit(*call)
            for piece in [*pieces, "overwrite=True", "another store"]:
                self.assertRegex(str(caught.exception), piece)
            for piece in absent:
                self.assertNotIn(piece, str(caught.exception).replace(store, ""))
        with self.assertRaisesRegex(ValueError, r"other data \(test\)"):
            Gleaner(**given).fit(texts, tags, test=(texts[:9], tags[:9]))
        self.assertEqual(Gleaner(**given).fit(texts, tags).finished["digest"], first)
        more = Gleaner(**{**given, "epochs": 3}).fit(texts, tags)
        self.assertEqual((more.finished["epochs"], more.finished["already"]), (3, False))
        other = Gleaner(**{**given, "seed": 2}).fit(texts[:100], tags[:100], overwrite=True)
        self.assertEqual(other.finished["digest"], Gleaner(**{**given, "store": None, "seed": 2}).fit(
            texts[:100], tags[:100]).finished["digest"])
        # Refused data leave the run in the store as it is.
        with self.assertRaises(ValueError):
            Gleaner(**given).fit(texts, tags[:-1], overwrite=True)
        self.assertTrue(Gleaner(**{**given, "seed": 2}).fit(texts[:100], tags[:100]).finished["already"])

    def test_a_run_goes_on_from_its_store_as_it_was_begun(self):
        texts, tags = animal_texts(200)
        store = self.path / "begun"
        settings = {"batch_examples": 64}
        Gleaner(store, epochs=1, hidden=16, seed=5, settings=settings, **QUIET).fit(texts, tags)
        whole = Gleaner(epochs=3, hidden=16, seed=5, settings=settings, **QUIET).fit(texts, tags)
        self.assertEqual(Gleaner(store, **QUIET).resume(epochs=3).finished["digest"], whole.finished["digest"])
        loaded = Gleaner.load(store)
        self.assertEqual((loaded.hidden, loaded.seed, loaded.settings), (16, 5, settings))
        self.assertEqual(loaded.predict(texts), whole.predict(texts))
        self.assertTrue(loaded.set_params(epochs=3).fit(texts, tags).finished["already"])

    def test_what_is_no_run_is_neither_read_nor_removed(self):
        texts, tags = animal_texts(60)
        (self.path / "mine").mkdir()
        (self.path / "mine" / "thesis.txt").write_text("years of work")
        (self.path / "posts.data").mkdir()
        (self.path / "posts.data" / "posts.csv").write_text("a,b")
        (self.path / "file").write_text("a file")
        for name in ("mine", "posts", "file"):
            for overwrite in (False, True):
                with self.assertRaisesRegex(ValueError, "no run of Gleaner is in it"):
                    Gleaner(self.path / name, epochs=1, **QUIET).fit(texts, tags, overwrite=overwrite)
            with self.assertRaisesRegex(ValueError, "no run of Gleaner is in it"):
                Gleaner(self.path / name, epochs=1, **QUIET).partial_fit(texts, tags)
        self.assertTrue((self.path / "mine" / "thesis.txt").exists() and (self.path / "posts.data" / "posts.csv").exists())
        (self.path / "empty").mkdir()
        own = Gleaner(self.path / "empty", epochs=1, **QUIET).fit(texts, tags)
        saved = own.save(self.path / "kept.safetensors")
        other = Gleaner.load(saved, **QUIET)
        self.assertIsNone(other.store)
        other.partial_fit(texts, [["new"]] * 60)
        self.assertTrue(os.path.isfile(saved))
        self.assertIn("new", other.model.label_names)

    def test_a_partial_fit_that_is_refused_or_stopped_leaves_the_model(self):
        texts, tags = animal_texts(100)
        own = Gleaner(self.path / "left", epochs=1, **QUIET).fit(texts, tags)
        expected = own.predict(texts)
        with self.assertRaisesRegex(ValueError, r"X\[1\] is missing"):
            own.partial_fit(["a", None], ["x", "y"])
        threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT)).start()
        with self.assertRaises(KeyboardInterrupt):
            own.partial_fit(texts, tags, epochs=100000)
        self.assertEqual(own.predict(texts), expected)
        self.assertEqual([name for name in os.listdir(self.path) if name.startswith("left.")], ["left.data"])
        self.assertEqual(own.resume(epochs=2).finished["epochs"], 2)

    def test_partial_fit_does_not_change_parameters(self):
        own = Gleaner(epochs=7, **QUIET)
        own.partial_fit(*animal_texts(100), epochs=2)
        self.assertEqual((own.epochs, own.finished["epochs"]), (7, 2))


if __name__ == "__main__":
    unittest.main()
