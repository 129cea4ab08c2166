"""Training from Python: examples go to a local master as a packed file, never as text."""

import functools
import os
import pathlib
import shutil
import tempfile
import weakref

from . import _gleaner, master, rows
from .master import TrainingError
from .model import Model, data_folder

__all__ = ["Gleaner", "TrainingError"]
TRAIN, TEST = "train.gleaner", "test.gleaner"
BEGIN = "begin.safetensors"  # the model that a run of partial_fit() begins with
NAMES = ("labels.txt", "features.txt", "words.json")


def _write_lines(path, names):
    for name in names:
        if "\n" in name:
            raise ValueError(f"the name {name!r} has a line break, and names stand one a line")
    with open(path, "w", encoding="utf-8", newline="\n") as file:
        file.writelines(name + "\n" for name in names)


class Gleaner:
    """A model that is trained here.

    store           folder of the run; the examples lie beside it, in STORE.data. None: a temporary
                    folder, which goes with this object
    epochs, recipe, hidden, seed, threads   as the flags of gleaner-master; None leaves the choice to it
    local           volunteers within the local master; 0 with listen= leaves the work to others
    listen          HOST:PORT at which other machines join; the line that joins is printed
    words, min_count, min_label_count   for texts: the rule of words, and how many examples must have
                    a word or a tag
    progress        whether to show how training goes
    settings        other flags of gleaner-master: {"batch_examples": 64, "l2_normalise": False}
    """

    def __init__(self, store=None, *, epochs=None, recipe=None, hidden=None, seed=1, threads=None, local=1,
                 listen=None, words="icu,characters:1-2", min_count=2, min_label_count=1, progress=True,
                 settings=None):
        self.store = None if store is None else os.fspath(store).rstrip("/")
        self.epochs, self.recipe, self.hidden, self.seed = epochs, recipe, hidden, seed
        self.threads, self.local, self.listen = threads, local, listen
        self.words, self.min_count, self.min_label_count = words, min_count, min_label_count
        self.progress, self.settings = progress, settings
        #: The trained Model; None before.
        self.model = None
        #: The master's event `finished` of the last training, and its events `evaluated`.
        self.finished, self.evaluations = None, []

    # ---- Training ----

    def fit(self, X, Y, *, test=None, label_names=None, feature_names=None):
        """Trains on X, a list of texts or a matrix, and Y, lists of tags or of label numbers, or a matrix.

        `test` is a pair (X, Y) to measure on. Names are for matrices. Where the store holds a run on
        the same data that was interrupted, it goes on there; with other data it refuses.
        """
        if self.store is None:
            self._make_temporary()
        made = data_folder(self.store) + ".new"
        shutil.rmtree(made, ignore_errors=True)
        os.makedirs(made)
        try:
            self._write_data(made, X, Y, test, label_names, feature_names)
            self._adopt(made)
        finally:
            shutil.rmtree(made, ignore_errors=True)
        return self._train(self.store, self._own_flags())

    def resume(self, epochs=None):
        """Goes on with the run in the store, from its last checkpoint; for more epochs if given."""
        if self.store is None or not os.path.isfile(os.path.join(data_folder(self.store), TRAIN)):
            raise ValueError(f"{self.store}: there is no run of fit() to go on with")
        return self._train(self.store, {**self._own_flags(), "epochs": epochs})

    def partial_fit(self, X, Y, *, epochs=1):
        """Trains the model on other examples, beginning with its present weights.

        Its words and labels stay; tags that it does not know become labels behind them. The store
        then holds this run in place of the one before; Ctrl-C leaves the model as it was. Without a
        model this is fit().
        """
        if self.model is None and self.store is not None and os.path.isdir(self.store):
            self.model = Model.load(self.store, threads=self.threads or 0)
        if self.model is None:
            self.epochs = epochs
            return self.fit(X, Y)
        following = f"{self.store}.next"
        for folder in (following, data_folder(following)):
            shutil.rmtree(folder, ignore_errors=True)
        made = data_folder(following)
        os.makedirs(made)
        self.model.save(os.path.join(made, BEGIN))
        self._write_data(made, X, Y, None, None, None, model=self.model)
        kind = self.model.hidden_units if self.model.hidden else None
        flags = {"hidden": self.model.hidden, "epochs": epochs, "hidden_units": kind}
        self._train(following, {**self._own_flags(), **flags}, loads=False)
        self.model = None
        self._replace_by(following)
        self._load()
        return self

    def _replace_by(self, following):
        """The run before goes when the other one is in its place: a kill between loses neither."""
        before = f"{self.store}.before"
        moves = [(self.store, before), (data_folder(self.store), data_folder(before)),
                 (following, self.store), (data_folder(following), data_folder(self.store))]
        for folder in (before, data_folder(before)):
            shutil.rmtree(folder, ignore_errors=True)
        for old, new in moves:
            os.rename(old, new)
        for folder in (before, data_folder(before)):
            shutil.rmtree(folder)

    def _own_flags(self):
        return {"epochs": self.epochs, "recipe": self.recipe, "hidden": self.hidden, "seed": self.seed,
                "threads": self.threads, "local": self.local, "listen": self.listen, "http": "off",
                **(self.settings or {})}

    def _train(self, store, flags, loads=True):
        data = data_folder(store)
        arguments = ["--train", os.path.join(data, TRAIN), "--store", store]
        if os.path.exists(os.path.join(data, TEST)):
            arguments += ["--test", os.path.join(data, TEST)]
        if os.path.exists(os.path.join(data, BEGIN)):
            arguments += ["--init-from", os.path.join(data, BEGIN)]
        for name, value in flags.items():
            if value is not None:
                shown = str(value).lower() if isinstance(value, bool) else value
                arguments.append(f"--{name.replace('_', '-')}={shown}")
        try:
            self.finished, self.evaluations = master.train(arguments, self.progress)
        except KeyboardInterrupt:
            if loads:
                self._load_if_begun()
            raise
        if loads:
            self._load()
        return self

    def _load(self):
        self.model = Model.load(self.store, threads=self.threads or 0)

    def _load_if_begun(self):
        try:
            self._load()
        except (OSError, RuntimeError):
            self.model = None  # there is no checkpoint yet

    # ---- Data ----

    def _make_temporary(self):
        folder = tempfile.mkdtemp(prefix="gleaner-")
        self._temporary = weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)
        self.store = os.path.join(folder, "run")

    def _adopt(self, made):
        """Makes `made` the data of the store, unless a run there has the same."""
        data = data_folder(self.store)
        if not os.path.isdir(self.store):
            shutil.rmtree(data, ignore_errors=True)
            os.rename(made, data)
        elif self._facts(data) != self._facts(made):
            raise ValueError(f"{self.store} holds a run on other data: train on from it with partial_fit(), "
                             "or choose another store")

    @staticmethod
    def _facts(folder):
        """Equal for equal data."""
        facts = {}
        for name in (TRAIN, TEST, *NAMES):
            path = pathlib.Path(folder, name)
            if path.exists():
                facts[name] = path.read_bytes() if name in NAMES else _gleaner.fingerprint(str(path))
        return facts

    def _write_data(self, folder, X, Y, test, label_names, feature_names, model=None):
        examples = rows.Examples(X)
        if examples.count == 0:
            raise ValueError("X has no examples")
        known = model.label_names if model is not None else []
        labels = rows.Labels(Y, known, least=self.min_label_count)
        words = self._words_of(examples, model, folder)
        features = examples.features
        if words is not None:
            feature_names = words.names()
            features = len(feature_names)
        names = list(label_names) if label_names is not None else labels.names
        count = labels.count
        if model is not None:
            features, count = max(features, model.features), max(count, model.labels)
            if not examples.are_texts and feature_names is None:
                feature_names = model.feature_names
        if features == 0 or count == 0:
            raise ValueError(f"the examples give {features} features and {count} labels: see min_count and "
                             "min_label_count")
        self._write_file(os.path.join(folder, TRAIN), examples, labels, words, features, count)
        if test is not None:
            self._write_test(folder, test, labels, words, features, count)
        for name, file, ids in ((names, "labels.txt", count), (feature_names, "features.txt", features)):
            if name and len(name) != ids:
                raise ValueError(f"there are {len(name)} names for {ids} {file.split('.', maxsplit=1)[0]}")
            if name:
                _write_lines(os.path.join(folder, file), name)
        if words is not None:
            with open(os.path.join(folder, "words.json"), "w", encoding="utf-8") as file:
                file.write(words.json())

    def _words_of(self, examples, model, folder):
        """The words of texts: counted, or taken from the model; None for a matrix."""
        if not examples.are_texts:
            return None
        if model is not None:
            if not model.reads_texts:
                raise ValueError("X is a list of texts, and the model was trained on a matrix")
            # The words are those beside the store: a run of texts always has them there.
            return _gleaner.TextWords.of_folder(model.data)
        words = _gleaner.TextWords.of_rule(self.words)
        for first, end in rows.blocks(examples.count):
            words.count(examples.texts(first, end))
        words.number(self.min_count)
        return words

    def _write_test(self, folder, test, labels, words, features, count):
        X, Y = test
        examples = rows.Examples(X)
        if examples.are_texts != (words is not None):
            raise ValueError("the examples of test= are of another kind than X")
        own = rows.Labels(Y, labels.names, takes_new=False)
        self._write_file(os.path.join(folder, TEST), examples, own, words, features, count)

    def _write_file(self, path, examples, labels, words, features, count):
        if labels.examples != examples.count:
            raise ValueError(f"X has {examples.count} examples and Y {labels.examples}")
        normalise = (self.settings or {}).get("l2_normalise", True)
        file = _gleaner.TrainingFile.create(path, features, count, normalise)
        for first, end in rows.blocks(examples.count):
            if words is not None:
                file.add_texts(examples.texts(first, end), words, *labels.block(first, end))
            else:
                file.add_rows(*examples.block(first, end), *labels.block(first, end))
        file.finish()

    # ---- Asking: as Model has it ----

    def _trained(self):
        if self.model is None:
            raise ValueError("the model is not trained yet: call fit() first")
        return self.model


def _asked(method):
    @functools.wraps(method)
    def ask(self, *args, **named):
        return method(self._trained(), *args, **named)
    return ask


for _name in ("predict", "top_k", "explain", "score", "precision_at_k", "save"):
    setattr(Gleaner, _name, _asked(getattr(Model, _name)))
