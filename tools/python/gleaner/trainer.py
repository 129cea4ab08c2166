"""Training from Python: examples go to a local master as a packed file, never as text."""

import functools
import inspect
import os
import shutil
import tempfile
import weakref

import numpy as np

from . import _gleaner, call, folders, master, report, rows
from .folders import data_folder
from .master import TrainingError
from .model import Model

TRAIN, TEST = "train.gleaner", "test.gleaner"
BEGIN = "begin.safetensors"  # the model that a run of partial_fit() begins with
LOG = "log.jsonl"  # events of its masters


def _write_lines(path, lines):
    with open(path, "w", encoding="utf-8", newline="\n") as file:
        file.writelines(lines)


def _remove_own(folder, process):
    if os.getpid() == process:  # not in a forked child, which ends too
        shutil.rmtree(folder, ignore_errors=True)


def _seed_of(state):
    if isinstance(state, (int, np.integer)):
        return int(state)
    if not hasattr(state, "integers") and not hasattr(state, "randint"):
        raise ValueError(f"seed is {state!r}: give a whole number, or random_state= a generator of numbers")
    draw = state.integers if hasattr(state, "integers") else state.randint
    return int(draw(2**31 - 1))


class Gleaner:
    """A model that is trained here.

    store           folder of the run; the examples lie beside it, in STORE.data. None: a temporary
                    folder for each fit(), which goes with this object
    epochs, recipe, hidden, seed, threads   as the flags of gleaner-master; None leaves the choice to it
    local           volunteers within the local master; 0 with listen= leaves the work to others
    listen          HOST:PORT at which other machines join; the line that joins is printed
    words, min_count, min_label_count   for texts: the rule of words, and how many examples must have
                    a word or a tag
    missing         what to do with missing texts: "refuse", or "empty" for a text without words
    keep_best       whether to answer with the checkpoint that was best on test=
    progress        whether to show how training goes
    settings        other flags of gleaner-master: {"batch_examples": 64, "l2_normalise": False}
    random_state    another name of seed, which may be a generator of numbers
    """

    def __init__(self, store=None, *, epochs=None, recipe=None, hidden=None, seed=1, threads=None, local=1,
                 listen=None, words="icu,characters:1-2", min_count=2, min_label_count=1, missing="refuse",
                 keep_best=False, progress=True, settings=None, random_state=None):
        self.set_params(**{name: value for name, value in locals().items() if name != "self"})
        #: The trained Model; None before.
        self.model = None
        #: The master's event `finished` of the last training.
        self.finished = None

    @classmethod
    def load(cls, path, **parameters):
        """A run of fit() as it was begun, or any store or file that Model.load() reads, to go on with or to ask."""
        path = os.path.abspath(path)
        known = call.read(data_folder(path)).get("parameters", {})
        is_run = folders.is_run(path) or folders.is_replaced(path)
        own = cls(**{**known, "store": path if is_run else None, **parameters})
        own._load(path)
        return own

    # ---- Parameters, as scikit-learn has them ----

    def get_params(self, deep=True):
        """The parameters by name. A temporary folder is none."""
        names = list(inspect.signature(type(self)).parameters)
        return {name: getattr(self, "_given_store" if name == "store" else name) for name in names}

    def set_params(self, **parameters):
        names = list(inspect.signature(type(self)).parameters)
        for name, value in parameters.items():
            if name not in names:
                raise ValueError(f"Gleaner has no parameter '{name}': it has {', '.join(names)}")
            setattr(self, name, value)
        return self

    @property
    def store(self):
        """The folder of the run: as it was given, or of the last fit()."""
        return self._given_store or self._folder

    @store.setter
    def store(self, path):
        absolute = None if path is None else os.path.abspath(path)
        self._given_store, self._folder = path if absolute == path else absolute, None

    def __repr__(self):
        plain = inspect.signature(type(self)).parameters
        changed = [f"{name}={value!r}" for name, value in self.get_params().items() if value != plain[name].default]
        return f"Gleaner({', '.join(changed)})"

    def _repr_html_(self):
        return report.as_html(self)

    def __getstate__(self):
        return {name: value for name, value in self.__dict__.items() if name not in ("_temporary", "_folder")}

    def __setstate__(self, state):
        self.__dict__.update(state, _folder=None)

    # ---- Training ----

    def fit(self, X, Y, *, test=None, label_names=None, feature_names=None, overwrite=False):
        """Trains on X, a list of texts or a matrix, and Y: tags or label numbers, one or a list for each
        example, or a matrix of zeros and ones with a column for each label.

        `test` is a pair (X, Y) to measure on. Names are for matrices. Without a store each call is a run
        of its own. With one, the same call goes on with the run there, where it was interrupted or for
        more epochs; another call is refused, or begins again with overwrite=True.
        """
        if self._given_store:
            folders.check_own(self._given_store)
        folder = None if self._given_store else os.path.realpath(tempfile.mkdtemp(prefix="gleaner-"))
        store = self._given_store or os.path.join(folder, "run")
        made = f"{data_folder(store)}.new"
        try:
            with folders.held(store) as lock:
                folders.replace_by_following(store)
                shutil.rmtree(made, ignore_errors=True)
                os.makedirs(made)
                data = self._write_data(made, X, Y, test, label_names, feature_names)
                own = {"flags": self._own_flags(), "data": data, "parameters": self.get_params()}
                call.adopt(store, made, own, overwrite)
                if folder:
                    self._use_temporary(folder)
                    folder = None
                return self._train(store, own, lock)
        finally:
            shutil.rmtree(folder or made, ignore_errors=True)

    def resume(self, epochs=None):
        """Goes on with the run in the store as it was begun, from its last checkpoint; for more epochs if given."""
        store = self.store
        if store is None or not (os.path.isfile(os.path.join(data_folder(store), TRAIN)) or folders.is_replaced(store)):
            raise ValueError(f"{store}: there is no run of fit() to go on with")
        with folders.held(store) as lock:
            folders.replace_by_following(store)
            begun = call.read(data_folder(store))
            flags = {**self._own_flags(), **begun.get("flags", {}), **({} if epochs is None else {"epochs": epochs})}
            return self._train(store, {**begun, "flags": flags}, lock)

    def partial_fit(self, X, Y, *, epochs=1):
        """Trains the model on other examples, beginning with its present weights.

        Its words and labels stay; tags that it does not know become labels behind them. The store
        then holds this run in place of the one before; Ctrl-C leaves the model as it was. Without a
        model this is fit().
        """
        if self._given_store:
            folders.check_own(self._given_store)
            if self.model is None and (folders.is_run(self._given_store) or folders.is_replaced(self._given_store)):
                self._load()
        if self.model is None:
            asked, self.epochs = self.epochs, epochs
            try:
                return self.fit(X, Y)
            finally:
                self.epochs = asked
        if self.store is None:
            self._use_temporary(os.path.realpath(tempfile.mkdtemp(prefix="gleaner-")))
        store, after = self.store, folders.following(self.store)
        with folders.held(store) as lock:
            folders.replace_by_following(store)
            try:
                os.makedirs(data_folder(after))
                self.model.save(os.path.join(data_folder(after), BEGIN))
                data = self._write_data(data_folder(after), X, Y, None, None, None, model=self.model)
                kind = self.model.hidden_units if self.model.hidden else None
                flags = {**self._own_flags(), "hidden": self.model.hidden, "epochs": epochs, "hidden_units": kind}
                self._train(after, {"flags": flags, "data": data, "parameters": self.get_params()}, lock, loads=False)
            except BaseException:
                folders.remove(after)
                raise
            folders.complete_following(store)
        self._load()
        return self

    def _use_temporary(self, folder):
        """Takes the temporary folder in place of the one before; it goes with this object."""
        before, self._folder = getattr(self, "_temporary", None), os.path.join(folder, "run")
        self._temporary = weakref.finalize(self, _remove_own, folder, os.getpid())
        if before is not None:
            before()

    def _own_flags(self):
        """The flags that choose a model."""
        seed = _seed_of(self.seed if self.random_state is None else self.random_state)
        return {"epochs": self.epochs, "recipe": self.recipe, "hidden": self.hidden, "seed": seed, **(self.settings or {})}

    def _train(self, store, own, lock, loads=True):
        data = data_folder(store)
        paths = {"--train": TRAIN, "--test": TEST, "--init-from": BEGIN}
        arguments = ["--store", store]
        for flag, path in ((flag, os.path.join(data, name)) for flag, name in paths.items()):
            arguments += [flag, path] if os.path.exists(path) else []
        flags = {"http": "off", "threads": self.threads, "local": self.local, "listen": self.listen, **own["flags"]}
        for name, value in flags.items():
            if value is not None:
                shown = str(value).lower() if isinstance(value, (bool, np.bool_)) else value
                arguments.append(f"--{name.replace('_', '-')}={shown}")
        try:
            self.finished = master.train(arguments, self.progress, os.path.join(data, LOG), lock)
            call.write(data, own)
        except TrainingError as error:
            raise call.in_own_words(error, store, own) from None
        except KeyboardInterrupt:
            with master.Interrupts(master.Bar(False)):  # another Ctrl-C is too late
                try:
                    if loads:
                        self._load()
                except (OSError, RuntimeError):
                    self.model = None  # there is no checkpoint yet
            raise
        if loads:
            self._load()
        return self

    def _load(self, path=None):
        """The last model of the store, or with keep_best the best one."""
        path = path or self.store
        best, data = f"{path}.kept/best", data_folder(path)
        self.model = Model.load(best if self.keep_best and os.path.isdir(best) else path,
                                data if os.path.isdir(data) else None, self.threads or 0)
        self.model.missing = self.missing

    # ---- Data ----

    def _write_data(self, folder, X, Y, test, label_names, feature_names, model=None):
        """Writes what a master and a model read; returns what tells one set of data from another."""
        examples = rows.Examples(X, missing=self.missing)
        if examples.count == 0:
            raise ValueError("X has no examples")
        known = model.label_names if model is not None else rows.check_names(
            () if label_names is None else label_names, "label_names")
        labels = rows.Labels(Y, known, least=self.min_label_count)
        rows.check_lengths(examples, labels)
        words = self._words_of(examples, model)
        features, count = examples.features, labels.count
        if words is not None:
            feature_names = words.names()
            features = len(feature_names)
        elif feature_names is None:
            feature_names = model.feature_names if model is not None else rows.names_of_columns(X)
        if model is not None:
            features, count = max(features, model.features), max(count, model.labels)
        if features == 0 or count == 0:
            raise ValueError(f"the examples give {features} features and {count} labels: see min_count and "
                             "min_label_count")
        for names, kind, ids in ((labels.names, "label", count), (feature_names, "feature", features)):
            if names is not None and len(names):
                if len(names) != ids:
                    raise ValueError(f"there are {len(names)} names for {ids} {kind}s")
                names = rows.check_names(names, f"{kind}_names", unique=False)
                _write_lines(os.path.join(folder, f"{kind}s.txt"), (name + "\n" for name in names))
        marks = {"X": call.Mark(), "Y": call.Mark(labels.names), "test": call.Mark(),
                 "feature_names": call.Mark(feature_names if words is None else None)}
        self._write_file(os.path.join(folder, TRAIN), examples, labels, words, features, count, marks["X"], marks["Y"])
        if test is not None:
            X, Y = test
            examples = rows.Examples(X, "X of test", self.missing)
            rows.check_columns(X, feature_names or () if words is None else (), "X of test")
            if examples.are_texts != (words is not None) and examples.count > 0:
                raise ValueError("the examples of test= are of another kind than X")
            own = rows.Labels(Y, labels.names, takes_new=False, what="Y of test")
            rows.check_lengths(examples, own)
            self._write_file(os.path.join(folder, TEST), examples, own, words, features, count, *[marks["test"]] * 2)
        if words is not None:
            _write_lines(os.path.join(folder, "words.json"), [words.json()])
        own_words = {"words": self.words, "min_count": self.min_count} if words is not None and model is None else {}
        return {**{name: mark.text() for name, mark in marks.items()}, **own_words,
                "min_label_count": self.min_label_count}

    def _words_of(self, examples, model):
        """The words of texts: counted, or taken from the model; None for a matrix."""
        if not examples.are_texts:
            return None
        if model is not None:
            if not model.reads_texts:
                raise ValueError("X is a list of texts, and the model was trained on a matrix")
            return model._loaded.words()
        words = _gleaner.Words(self.words)
        for first, end in rows.blocks(examples.count):
            words.count(*examples.block(first, end))
        words.number(self.min_count)
        return words

    def _write_file(self, path, examples, labels, words, features, count, mark_x, mark_y):
        file = _gleaner.TrainingFile.create(path, (self.settings or {}).get("l2_normalise", True))
        for first, end in rows.blocks(examples.count):
            own, its = examples.block(first, end), labels.block(first, end, count)
            file.add(rows.points(own, words), *its)
            mark_x.add(*own)
            mark_y.add(*its)
        file.finish(features, count)

    # ---- What happened ----

    def _events(self, kind):
        path = os.path.join(data_folder(self.store), LOG) if self.store else ""
        return [event for event in master.events_of(path) if event["event"] == kind]

    @property
    def evaluations(self):
        """The master's events `evaluated` of the run."""
        return self._events("evaluated")

    @property
    def recipe_(self):
        """The values that the master chose, by name, with the reasons."""
        chosen = self._events("recipe")[-1:]
        return {value["key"]: (value["value"], value["why"]) for event in chosen for value in event["values"]}

    def history(self):
        """A row for each checkpoint, with loss and the figures on test=: a DataFrame where there is pandas."""
        return report.history(self._events("checkpoint"), self.evaluations)


# ---- Asking: as Model has it ----

def _asked(method):
    @functools.wraps(method)
    def ask(self, *args, **named):
        if self.model is None:
            raise ValueError("the model is not trained yet: call fit() first")
        return method(self.model, *args, **named)
    return ask


for _name in ("predict", "top_k", "explain", "score", "precision_at_k", "ndcg_at_k", "evaluate", "best_threshold", "save"):
    setattr(Gleaner, _name, _asked(getattr(Model, _name)))
