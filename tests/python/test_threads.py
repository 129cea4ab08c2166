"""Threads: as many as the process may use, none held up by texts, and Ctrl-C wherever a model is being trained."""

import os
import signal
import subprocess
import threading
import time
import unittest

from cases import SECONDS, Case, animal_texts
from gleaner import Gleaner


TRAINED = """
import asyncio, concurrent.futures, sys, threading
from gleaner import Gleaner
from cases import animal_texts
own = Gleaner(sys.argv[1], epochs=100000, threads=1, progress=False, settings={"round_batches": 7})

def fit():
    try:
        own.fit(*animal_texts(400))
    except KeyboardInterrupt:
        print("stopped at", own.model.checkpoint, flush=True)
        raise
"""
WAYS = {
    "main thread": "fit()",
    "thread": "thread = threading.Thread(target=fit); thread.start(); thread.join()",
    "pool": "with concurrent.futures.ThreadPoolExecutor() as pool: pool.submit(fit).result()",
    "asyncio": "asyncio.run(asyncio.to_thread(fit))",
    "asyncio, in the loop": "async def main(): fit()\nasyncio.run(main())",
    "a thread that nobody waits for": "threading.Thread(target=fit).start()",
}
COUNTED = """
import os, sys
from gleaner import Model
model = Model.load(sys.argv[1])
model.predict(["a cat"])
print(len(os.listdir("/proc/self/task")))
"""


def masters_of(store):
    found = subprocess.run(["pgrep", "--full", f"gleaner-master .*--store {store}( |$)"], capture_output=True, text=True,
                           check=False)
    return found.stdout.split()


class Threads(Case):
    def test_ctrl_c_stops_training_in_any_thread(self):
        for place, (way, line) in enumerate(WAYS.items()):
            for times in (1, 2):
                with self.subTest(way, times=times):
                    store = self.path / f"run{place}-{times}"
                    script = self.script(TRAINED + line, store)
                    self.wait(lambda: self.checkpoint(store) >= 2 or script.poll() is not None)
                    reached = self.checkpoint(store)
                    for _ in range(times):
                        script.send_signal(signal.SIGINT)
                        time.sleep(0.1)
                    said, error = script.communicate(timeout=SECONDS)
                    self.assertIn("KeyboardInterrupt", error)
                    # It ends an interpreter whose main thread only waits for another, the second one even where
                    # it waits well: the master goes with it.
                    if "Thread(" not in line and (times == 1 or "pool" not in line and "to_thread" not in line):
                        self.assertIn("stopped at", said, error)
                        self.assertEqual(masters_of(store), [])
                    self.wait(lambda: not masters_of(store))
                    self.assertGreaterEqual(self.checkpoint(store), reached)

    def test_training_goes_on_when_the_main_thread_has_ended(self):
        script = self.script(TRAINED.replace("epochs=100000", "epochs=3") + "threading.Thread(target=lambda: print("
                             "fit() or own.finished['epochs'])).start()", self.path / "alone")
        self.assertEqual(script.communicate(timeout=SECONDS)[0].strip(), "3")

    def test_ctrl_c_stays_ignored_where_it_was(self):
        script = self.script("import signal; signal.signal(signal.SIGINT, signal.SIG_IGN)\n"
                             + TRAINED.replace("epochs=100000", "epochs=3") + "import os\n"
                             "threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT)).start()\nfit()\n"
                             "print(own.finished['epochs'], signal.getsignal(signal.SIGINT) == signal.SIG_IGN)",
                             self.path / "ignored")
        self.assertEqual(script.communicate(timeout=SECONDS)[0].split(), ["3", "True"])

    def test_the_handler_of_ctrl_c_is_the_one_before(self):
        before = signal.getsignal(signal.SIGINT)
        Gleaner(epochs=1, progress=False, threads=1).fit(*animal_texts(40))
        self.assertIs(signal.getsignal(signal.SIGINT), before)
        with self.assertRaises(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(SECONDS)

    def test_as_many_threads_as_the_process_may_use(self):
        if len(os.sched_getaffinity(0)) < 2:
            self.skipTest("needs two processors")
        own = Gleaner(self.path / "counted", epochs=1, progress=False, threads=1).fit(*animal_texts(100))
        counts = {}
        for cores in (1, 2):
            chosen = sorted(os.sched_getaffinity(0))[:cores]
            script = self.script(COUNTED, own.store, before=["taskset", "-c", ",".join(map(str, chosen))])
            counts[cores] = int(script.communicate(timeout=SECONDS)[0])
        self.assertEqual(counts[2] - counts[1], 1)

    def test_other_threads_go_on_while_texts_are_cut(self):
        texts, tags = animal_texts(30_000)
        ticks, done = [0], threading.Event()

        def tick():
            while not done.is_set():
                ticks[0] += 1
                time.sleep(0)
        words = _words(texts[:1])
        thread = threading.Thread(target=tick)
        thread.start()
        try:
            encoded = [text.encode() for text in texts] * 4
            before = ticks[0]
            words.count(encoded)
            self.assertGreater(ticks[0] - before, 50, "the interpreter was held while words were counted")
        finally:
            done.set()
            thread.join()

    def test_threads_ask_one_model_and_train_side_by_side(self):
        texts, tags = animal_texts(300)
        model = Gleaner(epochs=1, progress=False, threads=2).fit(texts, tags).model
        expected, wrong = model.predict(texts), []

        def ask():
            own = Gleaner(epochs=2, progress=False, threads=1).fit(texts, tags)
            wrong.append(model.predict(texts) != expected or own.finished["epochs"] != 2)
        threads = [threading.Thread(target=ask) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(wrong, [False] * 4)


def _words(texts):
    from gleaner import _gleaner
    words = _gleaner.Words("icu,characters:1-2")
    words.count([text.encode() for text in texts])
    return words


if __name__ == "__main__":
    unittest.main()
