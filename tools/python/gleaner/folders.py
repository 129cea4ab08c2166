"""The folders of a run: its store, the data beside it, who may write there, and moves that a kill cannot halve."""

import contextlib
import fcntl
import logging
import os
import shutil
import time

log = logging.getLogger("gleaner")
COMPLETE = "complete"  # in the data of a following run that takes the place of the run before


def data_folder(store):
    """Where Gleaner.fit() keeps the examples, names, words and log of a run."""
    return f"{os.fspath(store).rstrip('/')}.data"


def following(store):
    """The run that partial_fit() makes, until it takes the place of the run before."""
    return f"{store}.next"


def remove(store):
    """A run with all that lies beside it."""
    for folder in (store, data_folder(store), f"{store}.kept"):
        shutil.rmtree(folder, ignore_errors=True)


def is_run(store):
    """Whether the folder is the store of a run, which may have just begun."""
    return any(os.path.exists(os.path.join(store, name)) for name in ("CURRENT", "LOCK", "master.key"))


def check_own(store):
    """Refuses places where something else lies than a run and its data: they would be overwritten."""
    data = data_folder(store)
    for folder, is_own in ((store, is_run(store)), (data, any(
            os.path.exists(os.path.join(data, name)) for name in ("train.gleaner", "call.json")))):
        if os.path.lexists(folder) and not is_own and not (os.path.isdir(folder) and not os.listdir(folder)):
            raise ValueError(f"{folder} is there, and no run of Gleaner is in it: choose another store")


class Busy(RuntimeError):
    """Another program writes there."""


def _is_alive(pid):
    try:
        os.kill(int(pid), 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    return True


def _locked(path):
    """A locked descriptor of the file at the path, or None and the process that has it."""
    while True:
        lock = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.pread(lock, 32, 0).decode()
            os.close(lock)
            return None, holder
        except OSError as error:  # the master's lock on the store is left
            log.warning("%s: this file system has no locks: %s", path, error)
        if os.path.exists(path) and os.path.samestat(os.fstat(lock), os.stat(path)):
            os.pwrite(lock, b"%-16d" % os.getpid(), 0)
            return lock, None
        os.close(lock)  # the holder before removed it


@contextlib.contextmanager
def held(store):
    """A lock on the run from the first byte on; gives its descriptor, which a master inherits.

    The lock of a Python process that was killed ends with its master, after the open round: that is
    waited for. Any other holder raises Busy.
    """
    path, said = f"{store}.lock", False
    os.makedirs(os.path.dirname(path), exist_ok=True)
    while (found := _locked(path))[0] is None:
        holder = found[1].strip()
        if not holder or _is_alive(holder):
            raise Busy(f"{store}: process {holder} trains there: wait for its end, or choose another store")
        if not said:
            log.warning("%s: waiting for the master of process %s, which has ended", store, holder)
        said = True
        time.sleep(0.1)
    try:
        yield found[0]
    finally:
        with contextlib.suppress(OSError):
            os.unlink(path)
        with contextlib.suppress(OSError):
            fcntl.flock(found[0], fcntl.LOCK_UN)  # also for children that inherited it
        os.close(found[0])


def is_replaced(store):
    """Whether a following run is complete, and still has to take the store's place."""
    return os.path.exists(os.path.join(data_folder(following(store)), COMPLETE))


def replace_by_following(store):
    """Ends the move that follows partial_fit(), wherever it was interrupted. Requires held()."""
    after = following(store)
    moves = [(f"{store}.kept", f"{after}.kept"), (store, after), (data_folder(store), data_folder(after))]
    if not is_replaced(store):
        remove(after)
    for old, new in moves:
        if os.path.exists(new):  # the mark lies in the folder that moves last
            shutil.rmtree(f"{old}.before", ignore_errors=True)
            if os.path.exists(old):
                os.rename(old, f"{old}.before")
            os.rename(new, old)
    for old, _ in moves:
        shutil.rmtree(f"{old}.before", ignore_errors=True)


def complete_following(store):
    """The following run takes the place of the run before, now or, after a kill, at the next call."""
    shutil.rmtree(f"{store}.kept", ignore_errors=True)
    with open(os.path.join(data_folder(following(store)), COMPLETE), "w", encoding="ascii"):
        pass
    replace_by_following(store)
