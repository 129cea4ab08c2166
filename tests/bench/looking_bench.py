#!/usr/bin/env python3
"""The cost of readers for a run's training: one run, in which short spans with and without readers alternate.

`--mode look` has browsers that follow the stream and ask for shards, volunteers and the history every second,
and one scrape of the metrics per second. `--mode ask` has people who ask the newest checkpoint without a pause.
For each pair of neighbouring spans it compares the examples per second, and per second of the master's
processor; volunteers run in the master's process. It prints the median over the pairs with its quartiles, and
the processor time of the page's thread, of the thread that answers questions, and of all others.

usage: looking_bench.py --train FILE --test FILE [--mode look|ask] [--browsers N] [--volunteers N] [--pairs N]
       looking_bench.py --tiny
"""

import argparse
import http.client
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "e2e"))
from harness import BIN, Cluster, small_setup  # noqa: E402

TABLES = ("/api/v1/shards", "/api/v1/volunteers", "/api/v1/history?points=700")
# How far its threads give way tells what a thread does.
KINDS = {5: "page", 19: "answers"}


class Stream:
    """A reader of server-sent events."""

    def __init__(self, port):
        self.connection = http.client.HTTPConnection("127.0.0.1", port, timeout=600)
        self.connection.request("GET", "/api/v1/events", headers={"Accept": "text/event-stream"})
        self.lines = iter(self.connection.getresponse())

    def next_run(self):
        for line in self.lines:
            if line == b"event: run\n":
                return json.loads(next(self.lines)[6:])
        raise AssertionError("the stream has ended")


def get(port, path):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=600)
    connection.request("GET", path)
    connection.getresponse().read()
    connection.close()


def browse(port, stop):
    stream = Stream(port)
    while not stop.is_set():
        stream.next_run()
        for path in TABLES:
            get(port, path)


def scrape(port, stop):
    while not stop.wait(1):
        get(port, "/metrics")


def ask(port, stop, inputs):
    """Asks without a pause, and after a refusal once per second."""
    body = json.dumps({"inputs": [{"example": i} for i in range(inputs)], "top": 10})
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=600)
    while not stop.is_set():
        connection.request("POST", "/v1/predict", body)
        answer = connection.getresponse()
        answer.read()
        if answer.status != 200:
            stop.wait(1)


def use_up(port, inputs):
    """Asks until the first refusal for want of budget; gives up where there is none."""
    stop = threading.Event()
    for _ in range(20_000):
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=600)
        connection.request("POST", "/v1/predict", json.dumps({"inputs": [{"example": 0}] * inputs}))
        answer = connection.getresponse()
        answer.read()
        connection.close()
        if answer.status == 429:
            return
        if answer.status != 200:
            stop.wait(0.2)


def processor_seconds(pid):
    """By what the threads do."""
    used = dict.fromkeys((*KINDS.values(), "others"), 0.0)
    for task in pathlib.Path(f"/proc/{pid}/task").iterdir():
        try:
            nice = os.getpriority(os.PRIO_PROCESS, int(task.name))
            used[KINDS.get(nice, "others")] += int((task / "schedstat").read_text().split()[0]) / 1e9
        except (FileNotFoundError, ProcessLookupError):
            pass  # it has ended
    return used


class Span:
    """The work between two views of the run."""

    def __init__(self, stream, pid):
        self.stream, self.pid = stream, pid
        self.begin = self.now()

    def now(self):
        return self.stream.next_run()["examples"], time.monotonic(), processor_seconds(self.pid)

    def end(self, seconds):
        while (end := self.now())[1] - self.begin[1] < seconds:
            pass
        self.seconds = end[1] - self.begin[1]
        self.used = {kind: end[2][kind] - self.begin[2][kind] for kind in end[2]}
        examples = end[0] - self.begin[0]
        self.speed = examples / self.seconds
        self.per_processor = examples / sum(self.used.values())


def readers(options, port, stop):
    if options.mode == "ask":
        return [threading.Thread(target=ask, args=(port, stop, options.inputs)) for _ in range(options.browsers)]
    return [threading.Thread(target=scrape, args=(port, stop)),
            *(threading.Thread(target=browse, args=(port, stop)) for _ in range(options.browsers))]


def measured(options, port, pid):
    stream = Stream(port)
    while stream.next_run()["progress"]["round"] < 2:
        pass
    if options.mode == "ask" and not options.tiny:
        use_up(port, options.inputs)
    looked, alone = [], []
    for _ in range(options.pairs):
        stop = threading.Event()
        threads = readers(options, port, stop)
        for thread in threads:
            thread.start()
        looked.append(Span(stream, pid))
        looked[-1].end(options.seconds)
        stop.set()
        for thread in threads:
            thread.join()
        stream.next_run()
        alone.append(Span(stream, pid))
        alone[-1].end(options.seconds)
    return looked, alone


def quartiles(values):
    low, middle, high = statistics.quantiles(values, n=4) if len(values) > 1 else values * 3
    return f"{middle:.4f} ({low:.4f} to {high:.4f})"


def report(looked, alone):
    pairs = list(zip(looked, alone))
    print("examples/s, looked at over alone:", quartiles([a.speed / b.speed for a, b in pairs]))
    print("examples per processor second:   ", quartiles([a.per_processor / b.per_processor for a, b in pairs]))
    for name, spans in (("looked at", looked), ("alone", alone)):
        seconds = sum(span.seconds for span in spans)
        used = {kind: sum(span.used[kind] for span in spans) / seconds for kind in spans[0].used}
        speed = statistics.median(span.speed for span in spans)
        print(f"{name}: {speed:,.0f} examples/s; processor seconds per second:",
              ", ".join(f"{kind} {value:.4f}" for kind, value in used.items()))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--train")
    parser.add_argument("--test")
    parser.add_argument("--mode", choices=("look", "ask"), default="look")
    parser.add_argument("--browsers", type=int, default=8)
    parser.add_argument("--inputs", type=int, default=1, help="examples in each question")
    parser.add_argument("--volunteers", type=int, default=64)
    parser.add_argument("--shards", type=int, default=64)
    parser.add_argument("--pairs", type=int, default=12)
    parser.add_argument("--seconds", type=float, default=6)
    parser.add_argument("--tiny", action="store_true", help="a small one, to see that all of it works")
    options, others = parser.parse_known_args()
    if options.tiny:
        options.volunteers, options.shards, options.pairs, options.seconds = 2, 11, 1, 2
        cluster = Cluster()
        setup = small_setup(cluster)
        options.train, options.test = setup.train, setup.test
    with tempfile.TemporaryDirectory(prefix="gleaner-looking-") as folder:
        master = subprocess.Popen(
            [str(BIN / "gleaner-master"), "--train", str(options.train), "--test", str(options.test), "--store",
             f"{folder}/store", "--local", str(options.volunteers), "--output-shards", str(options.shards), "--threads",
             "1", "--epochs", "100000", "--evaluate-every", "100000", "--http", "127.0.0.1:0", "--log-format", "json", *others],
            stdout=subprocess.PIPE, text=True)
        try:
            events = (json.loads(line) for line in master.stdout)
            port = int(next(e for e in events if e["event"] == "page")["url"].rsplit(":", 1)[1])
            threading.Thread(target=lambda: [None for _ in events], daemon=True).start()
            report(*measured(options, port, master.pid))
        finally:
            master.kill()
            master.wait()
            if options.tiny:
                cluster.close()


if __name__ == "__main__":
    main()
