"""A model and a store among several processes: forks, two fits at once, and kills at any place."""

import multiprocessing
import os
import shutil
import signal
import subprocess
import threading
import unittest
import unittest.mock

from cases import QUIET, SECONDS, Case, animal_texts
from gleaner import Gleaner, Model, folders
from gleaner.master import events_of


LONG = """
import sys
from gleaner import Gleaner
from cases import animal_texts
print("began", flush=True)
Gleaner(sys.argv[1], epochs=100000, threads=1, progress=False, settings={"round_batches": 7}).fit(*animal_texts(400))
"""

KILLED = """
import os, sys
from gleaner import Gleaner, folders
from cases import animal_texts
calls = 0
def counted(function):
    def call(*arguments, **named):
        global calls
        calls += 1
        if calls == int(sys.argv[2]):
            os.kill(os.getpid(), 9)
        return function(*arguments, **named)
    return call
folders.os = type("os", (), {**vars(os), "rename": staticmethod(counted(os.rename)), "unlink": staticmethod(counted(os.unlink))})
folders.shutil.rmtree = counted(folders.shutil.rmtree)
Gleaner(sys.argv[1], progress=False, threads=1).partial_fit(*animal_texts(60), epochs=2)
"""

SERVED = """
import os, sys
from gleaner import Model
model = Model.load(sys.argv[1], threads=2)
model.predict(["the cat"] * 9)
children = []
for _ in range(2):
    child = os.fork()
    if child == 0:
        model.predict(["the owl"] * 9)
        sys.exit(0)  # with its destructors
    children.append(child)
print([os.waitpid(child, 0)[1] for child in children], flush=True)
"""


def masters_of(store):
    found = subprocess.run(["pgrep", "--full", f"gleaner-master .*--store {store}( |$)"], capture_output=True, text=True,
                           check=False)
    return found.stdout.split()


def ask(model, texts, queue):
    queue.put(model.predict(texts))


class Processes(Case):
    def events_since(self, store, master):
        """The events of the master with this number, and of those after it."""
        events = list(events_of(os.path.join(folders.data_folder(store), "log.jsonl")))
        starts = [place for place, event in enumerate(events) if event["event"] == "started"]
        return events[starts[master - 1]:] if len(starts) >= master else []

    def test_forked_children_answer_as_the_parent_does(self):
        texts, tags = animal_texts(100)
        for hidden in (0, 16):
            own = Gleaner(epochs=1, hidden=hidden, progress=False, threads=2).fit(texts, tags)
            expected = own.predict(texts)
            context = multiprocessing.get_context("fork")
            queue = context.Queue()
            for _ in range(2):
                child = context.Process(target=ask, args=(own.model, texts, queue))
                child.start()
                self.assertEqual(queue.get(timeout=SECONDS), expected)
                child.join(SECONDS)
                self.assertEqual(child.exitcode, 0)
            with context.Pool(2) as pool:
                self.assertEqual(pool.map(own.model.predict, [texts[:50], texts[50:]]),
                                 [expected[:50], expected[50:]])
            self.assertEqual(own.predict(texts), expected)

    def test_a_fork_while_another_thread_asks(self):
        texts, tags = animal_texts(400)
        model = Gleaner(epochs=1, progress=False, threads=2).fit(texts, tags).model
        expected, done = model.predict(texts[:2]), threading.Event()

        def busy():
            while not done.is_set():
                model.predict(texts)
        thread = threading.Thread(target=busy)
        thread.start()
        try:
            context = multiprocessing.get_context("fork")
            for _ in range(5):
                queue = context.Queue()
                child = context.Process(target=ask, args=(model, texts[:2], queue))
                child.start()
                self.assertEqual(queue.get(timeout=SECONDS), expected)
                child.join()
        finally:
            done.set()
            thread.join()

    def test_a_forked_child_that_ends_by_itself_leaves_the_parents_run(self):
        own = Gleaner(self.path / "served", epochs=1, **QUIET).fit(*animal_texts(100))
        self.assertEqual(self.script(SERVED, own.store).communicate(timeout=SECONDS)[0].strip(), "[0, 0]")
        temporary = Gleaner(epochs=1, **QUIET).fit(*animal_texts(100))
        child = os.fork()
        if child == 0:
            with unittest.mock.patch.object(os, "_exit"):
                temporary._temporary()  # as the interpreter's end does
            os._exit(0)
        self.assertEqual(os.waitpid(child, 0)[1], 0)
        self.assertTrue(os.path.isdir(temporary.store))

    def test_two_fits_of_one_store(self):
        store = self.path / "shared"
        script = self.script(LONG, store)
        self.wait(lambda: self.checkpoint(store) >= 1)
        for call in (lambda: Gleaner(store, **QUIET).fit(*animal_texts(100)),
                     lambda: Gleaner(store, **QUIET).fit(*animal_texts(100), overwrite=True),
                     lambda: Gleaner(store, **QUIET).resume(), lambda: Gleaner(store, **QUIET).partial_fit(*animal_texts(9))):
            with self.assertRaisesRegex(RuntimeError, f"process {script.pid} trains there"):
                call()
        self.assertGreater(Model.load(store).score(*animal_texts(50)), 0)
        self.assertEqual(len(masters_of(store)), 1)
        script.send_signal(signal.SIGINT)
        script.communicate(timeout=SECONDS)
        self.assertFalse(os.path.exists(f"{store}.lock"))
        self.assertGreaterEqual(Gleaner.load(store).model.checkpoint, 1)

    def test_a_file_system_without_locks(self):
        refused = OSError(95, "Operation not supported")
        with unittest.mock.patch.object(folders.fcntl, "flock", side_effect=refused), self.assertLogs("gleaner", "WARNING"):
            own = Gleaner(self.path / "unlocked", epochs=1, **QUIET).fit(*animal_texts(60))
        self.assertEqual(own.resume(epochs=2).finished["epochs"], 2)

    def test_a_killed_python_keeps_its_round_and_the_next_call_waits_for_it(self):
        store = self.path / "killed"
        script = self.script(LONG, store)
        self.wait(lambda: self.checkpoint(store) >= 2)
        before = self.checkpoint(store)
        script.kill()
        script.wait()
        # The same call waits until the master has made the open round a checkpoint.
        again = self.script(LONG, store)
        self.wait(lambda: sum(event["event"] == "checkpoint" and event["checkpoint"] > before + 1
                              for event in self.events_since(store, 2)))
        again.send_signal(signal.SIGINT)
        again.communicate(timeout=SECONDS)
        log = [event for event in self.events_since(store, 1) if event["event"] in ("stopped", "started")]
        self.assertEqual([event["event"] for event in log[:2]], ["started", "stopped"], log)
        self.assertGreaterEqual(log[1]["checkpoint"], before)
        self.assertEqual(masters_of(store), [])

    def test_a_kill_at_any_place_of_partial_fit_loses_no_model(self):
        store = str(self.path / "moved")
        Gleaner(store, epochs=3, **QUIET).fit(*animal_texts(100), test=animal_texts(30))
        old = Model.load(store).checkpoint
        texts = animal_texts(50)[0]
        found, place = set(), 0
        kept = self.path / "kept"
        kept.mkdir()
        for name in ("moved", "moved.data", "moved.kept"):
            shutil.copytree(self.path / name, kept / name)
        while True:
            place += 1
            ended = self.script(KILLED, store, place)
            _, said = ended.communicate(timeout=SECONDS)
            self.assertIn(ended.returncode, (0, -9), said)
            model = Model.load(store)
            found.add(model.checkpoint)
            self.assertEqual(len(model.predict(texts)), 50)
            own = Gleaner.load(store, **QUIET)
            own.resume()
            self.assertEqual(own.model.checkpoint, model.checkpoint)
            leftover = [name for name in os.listdir(self.path) if name.startswith("moved.") and name not in (
                "moved.data", "moved.kept")]
            self.assertEqual(leftover, [], place)
            if ended.returncode == 0:
                break
            for name in ("moved", "moved.data", "moved.kept"):
                shutil.rmtree(self.path / name, ignore_errors=True)
                shutil.copytree(kept / name, self.path / name)
        self.assertEqual(len(found), 2, "either the model before or the one after")
        self.assertIn(old, found)
        self.assertGreater(place, 8)


if __name__ == "__main__":
    unittest.main()
