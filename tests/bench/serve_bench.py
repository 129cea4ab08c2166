#!/usr/bin/env python3
"""Answered examples per second of `gleaner serve` on one core, in batches of 32 and for five labels: exactly, and
through tables, with the fraction of the exact five that the tables find.

The server with all its threads has the first processor to itself; two connections from other processors keep it
busy. A figure counts reading the request, the answer, and writing. Before that, many clients ask at once,
each for one example after another, exactly. A run without hash tables takes --candidates without numbers.

usage: serve_bench.py STORE TEST [--candidates N ...] [--seconds S] [--clients N]     TEST is the run's test file, XC text
       serve_bench.py --tiny
"""

import argparse
import concurrent.futures
import http.client
import json
import os
import pathlib
import re
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "e2e"))
from harness import Cluster, small_setup  # noqa: E402

BATCH = 32
TOP = 5


def inputs_of(path, count):
    """The features of the file's first examples."""
    inputs = []
    with open(path, encoding="utf-8") as file:
        next(file)
        for line in file:
            pairs = [pair.split(":") for pair in line.split() if ":" in pair]
            inputs.append({"features": [int(feature) for feature, _ in pairs],
                           "values": [float(value) for _, value in pairs]})
            if len(inputs) == count:
                break
    return inputs


def bodies_of(inputs, is_exact):
    return [json.dumps({"inputs": inputs[begin:begin + BATCH], "top": TOP, "exact": is_exact})
            for begin in range(0, len(inputs) - BATCH + 1, BATCH)]


class Asker:
    """One connection."""

    def __init__(self, port):
        self.connection = http.client.HTTPConnection("127.0.0.1", port, timeout=120)

    def status_and_text(self, body):
        self.connection.request("POST", "/v1/predict", body)
        answer = self.connection.getresponse()
        return answer.status, answer.read()

    def ask(self, body):
        status, text = self.status_and_text(body)
        if status != 200:
            raise AssertionError(text.decode())
        return text

    def ask_until(self, end, bodies):
        """Number of batches answered."""
        count = 0
        while time.monotonic() < end:
            self.ask(bodies[count % len(bodies)])
            count += 1
        return count


    def times_until(self, end, bodies):
        """(seconds, status) of each request."""
        times = []
        while time.monotonic() < end:
            begin = time.monotonic()
            status, _ = self.status_and_text(bodies[len(times) % len(bodies)])
            times.append((time.monotonic() - begin, status))
        return times


def crowd(port, inputs, clients, seconds):
    """Prints how many clients at once are answered, and when."""
    bodies = [json.dumps({"inputs": [one], "top": TOP}) for one in inputs]
    end = time.monotonic() + seconds
    with concurrent.futures.ThreadPoolExecutor(clients) as pool:
        askers = [pool.submit(Asker(port).times_until, end, bodies[i::clients]) for i in range(clients)]
        times = [one for asker in askers for one in asker.result()]
    answered = sorted(time for time, status in times if status == 200)
    p50, p99 = (1000 * answered[(len(answered) * percent + 99) // 100 - 1] for percent in (50, 99))
    print(f"{clients} clients: {len(answered) / seconds:,.0f} requests/s, p50 {p50:.0f} ms, p99 {p99:.0f} ms, "
          f"{len(times) - len(answered)} of {len(times)} refused", flush=True)


def labels_of(port, bodies):
    """The labels of every input."""
    asker = Asker(port)
    return [{entry["label"] for entry in one["predicted"]}
            for body in bodies for one in json.loads(asker.ask(body))["predictions"]]


def processor_seconds(pid):
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def measure(server, port, bodies, seconds):
    """(examples per second, examples per second of the server's processor time)."""
    spent, begin = processor_seconds(server.pid), time.monotonic()
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        askers = [pool.submit(Asker(port).ask_until, begin + seconds, bodies[half::2]) for half in (0, 1)]
        examples = BATCH * sum(asker.result() for asker in askers)
    wall = time.monotonic() - begin
    return examples / wall, examples / max(processor_seconds(server.pid) - spent, 0.01)


def serve(cluster, store, *flags):
    server = cluster.start("gleaner", "serve", store, "--threads", 1, "--http", "127.0.0.1:0", *flags,
                           before=("taskset", "-c", "0"))
    server.wait_for(lambda: "answers at http://" in server.said(), "an address")
    return server, int(re.search(r"http://127.0.0.1:(\d+)", server.said()).group(1))


def bench(cluster, store, test, candidates, seconds, clients):
    if os.cpu_count() > 1:
        os.sched_setaffinity(0, range(1, os.cpu_count()))
    inputs = inputs_of(test, 2048)
    server, port = serve(cluster, store)
    crowd(port, inputs, clients, seconds)
    cluster.forget(server)
    exact = None
    for count in candidates:
        server, port = serve(cluster, store, "--tables", count)
        if exact is None:
            speed, per_core = measure(server, port, bodies_of(inputs, True), seconds)
            print(f"exact: {speed:,.0f} examples/s, {per_core:,.0f} per second of processor", flush=True)
            exact = labels_of(port, bodies_of(inputs, True))
        speed, per_core = measure(server, port, bodies_of(inputs, False), seconds)
        found = labels_of(port, bodies_of(inputs, False))
        recall = sum(len(a & b) for a, b in zip(exact, found)) / sum(len(a) for a in exact)
        first = json.loads(Asker(port).ask(bodies_of(inputs, False)[0]))
        if first["way"] != "tables" or not 0 < recall <= 1:
            raise AssertionError(f"way {first['way']}, recall {recall}")
        print(f"{count} candidates: {speed:,.0f} examples/s, {per_core:,.0f} per second of processor, "
              f"{recall:.3f} of the exact {TOP} found", flush=True)
        cluster.forget(server)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("store", nargs="?")
    parser.add_argument("test", nargs="?")
    parser.add_argument("--candidates", type=int, nargs="*", default=[100, 300, 1000])
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--clients", type=int, default=64)
    parser.add_argument("--tiny", action="store_true", help="a few seconds, for ctest")
    flags = parser.parse_args()
    with Cluster() as cluster:
        if not flags.tiny:
            bench(cluster, flags.store, flags.test, flags.candidates, flags.seconds, flags.clients)
            return
        setup, store = small_setup(cluster, flags=("--sampling", "lsh")), cluster.path("store")
        setup.run_local(cluster, store)
        bench(cluster, store, setup.test, [40], 0.5, 8)


if __name__ == "__main__":
    main()
