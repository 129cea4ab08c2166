"""What a run was begun with: whether another call of fit() means the same run, and in which words it does not."""

import hashlib
import json
import os

from . import folders
from .master import Refused

FILE = "call.json"
REMEDY = "overwrite=True begins again, another store leaves it"


class Mark:
    """Tells data from other data."""

    def __init__(self, names=None):
        self.sum = hashlib.blake2b(digest_size=16)
        for name in () if names is None else names:
            self.sum.update(name.encode() + b"\n")

    def add(self, *parts):
        for part in parts:
            if isinstance(part, list):
                for text in part:
                    self.sum.update(b"%d " % len(text) + text)
            else:
                self.sum.update(memoryview(part).cast("B") if part.size else b"-")

    def text(self):
        return self.sum.hexdigest()


def read(data):
    """The call that made a folder of data; empty where there is none."""
    try:
        with open(os.path.join(data, FILE), encoding="utf-8") as file:
            return json.load(file)
    except FileNotFoundError:
        return {}


def write(data, own):
    path = os.path.join(data, FILE)
    with open(f"{path}.new", "w", encoding="utf-8") as file:
        json.dump(own, file, default=str)
    os.replace(f"{path}.new", path)


def _as_read(own):
    return json.loads(json.dumps(own, default=str))


def adopt(store, made, own, overwrite):
    """Makes the folder `made` the data of the store, unless a run there has the same."""
    data = folders.data_folder(store)
    if overwrite or not folders.is_run(store):
        folders.remove(store)
        write(made, own)
        os.rename(made, data)
        return
    begun = read(data)
    if not begun:
        raise Refused(f"{store} holds a run that fit() did not begin: {REMEDY}")
    ours, theirs = _as_read(own["data"]), begun["data"]
    differ = [name for name in {**theirs, **ours} if ours.get(name) != theirs.get(name)]
    if differ:
        marks = [name for name in differ if name in ("X", "Y", "test", "feature_names")]
        values = [f"{name} is {ours.get(name)}, and {theirs.get(name)} there" for name in differ if name not in marks]
        what = [f"other data ({', '.join(marks)})"] if marks else []
        raise Refused(f"{store} holds a run on {'; '.join(what + values + _flags(own, begun))}: {REMEDY}, partial_fit() "
                      "trains on from its model")


def _flags(own, begun):
    """How the flags of two calls differ."""
    ours, theirs = _as_read(own["flags"]), begun.get("flags", {})
    more = " (more epochs go on, fewer do not)"
    return [f"{name} is {ours.get(name)}, and {theirs.get(name)} there{more if name == 'epochs' else ''}"
            for name in {**theirs, **ours} if ours.get(name) != theirs.get(name)]


def in_own_words(error, store, own):
    """The error of a master; where the store has another run, what differs between the two calls of fit()."""
    if error.code != "identity":
        return error
    flags = _flags(own, read(folders.data_folder(store)))
    if not flags:
        return Refused(str(error), error.code, error.exit)
    return Refused(f"{store} holds another run: {'; '.join(flags)}: {REMEDY}", error.code, error.exit)
