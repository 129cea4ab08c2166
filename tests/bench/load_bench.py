#!/usr/bin/env python3
"""A run's loss to an attack on its master: the speed of two honest volunteers, calm and under attack in turns,
for each kind of attack of attacker.cpp.

An attack runs for a while before it is measured, so that the first allowance is used up. All programs share
this machine, so the attacker's processor time is a loss too, unlike in a real attack; it is printed beside.

usage: load_bench.py [--tiny] [--kinds A,B] [--turns N] [--seconds S] [--warm-up S] [--strangers]
"""

import argparse
import json
import os
import pathlib
import statistics
import sys
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "e2e"))
from harness import DATA, Cluster, Setup  # noqa: E402

TICKS = os.sysconf("SC_CLK_TCK")
# Kind: how many; by invites for trusted volunteers, whose number has no limit; what it is.
KINDS = {
    "churn": (10, False, "joins and leaves 10 times per second"),
    "idle": (3500, True, "3,500 volunteers that get no shard"),
    "handshakes": (1000, False, "1,000 handshakes per second: unfinished, or with a wrong invite"),
    "greedy": (20, False, "20 that claim to be infinitely fast, and answer no unit"),
    "taker": (20, False, "the same, and load no shard"),
    "drip": (100, False, "100 that take shards and send a byte at a time, 20 per second"),
    "late": (1, False, "a volunteer that answers 8 s late"),
    "unfinished": (100, True, "100 frames of 63 MiB that lack a byte"),
}
# The invites that strangers come by: by each, 64 join at once.
INVITES = 8


def processor_seconds(pid):
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def memory_mib(pid, field):
    for line in pathlib.Path(f"/proc/{pid}/status").read_text(encoding="utf-8").splitlines():
        if line.startswith(field):
            return int(line.split()[1]) / 1024
    return 0


class Run:
    """A master that trains without an end, and two honest volunteers."""

    def __init__(self, cluster, is_tiny, are_strangers):
        self.cluster = cluster
        train, test = DATA / "citeulike-t/train.txt.zst", DATA / "citeulike-t/test.txt.zst"
        flags = ["--epochs", 1000, "--evaluate-every", 0, "--min-volunteers", 2]
        if is_tiny or not train.is_file():
            train, test = cluster.path("train.txt"), cluster.path("test.txt")
            cluster.gleaner("dataset", "synth", "--train", train, "--test", test, "--points", 3000,
                            "--test-points", 100, "--features", 3000, "--labels", 2000, "--seed", 1)
            flags += ["--hidden", 32]
        store = cluster.path("store")
        self.master = Setup(train, test, flags).start_master(
            cluster, store, "--listen", "127.0.0.1:0", "--threads", 1)
        line = self.master.wait_event("listening", seconds=600)["join"]
        self.trusted = [self.invite(store, "--trusted") for _ in range(INVITES)]
        self.strangers = [self.invite(store) for _ in range(INVITES)]
        self.honest = [cluster.volunteer(self.invite(store) if are_strangers else line, once=False)
                       for _ in range(2)]
        self.store = store
        self.progress = []  # when, batches
        threading.Thread(target=self._watch, daemon=True).start()
        self.master.wait_checkpoint(2)

    def invite(self, store, *flags):
        return json.loads(self.cluster.gleaner("invite", "create", *flags, "--reusable", store,
                                               "--json"))["address"]

    def _watch(self):
        while self.master.is_running():
            for event in self.master.new_events():
                if event["event"] == "progress":
                    self.progress.append((time.monotonic(), event["batch"]))
            time.sleep(0.02)

    def batches_at(self, when):
        """Between two progress events they come evenly."""
        before = max((p for p in self.progress if p[0] <= when), default=self.progress[0])
        after = min((p for p in self.progress if p[0] > when), default=self.progress[-1])
        if after[0] <= before[0]:
            return before[1]
        part = (when - before[0]) / (after[0] - before[0])
        return before[1] + part * (after[1] - before[1])

    def measure(self, seconds, attacker=None):
        """Batches per second, and the processors that master, honest volunteers and attacker take."""
        pids = [[self.master.pid], [v.pid for v in self.honest], [attacker.pid] if attacker else []]
        begin = time.monotonic()
        used = [sum(map(processor_seconds, group)) for group in pids]
        memory = 0
        while time.monotonic() < begin + seconds:
            time.sleep(0.1)
            memory = max(memory, memory_mib(self.master.pid, "VmRSS"))
        used = [sum(map(processor_seconds, group)) - before for group, before in zip(pids, used)]
        end = time.monotonic()
        time.sleep(1.2)  # until the next progress is told
        speed = (self.batches_at(end) - self.batches_at(begin)) / (end - begin)
        return speed, [u / (end - begin) for u in used], memory

    def attack(self, kind, count, is_trusted):
        lines = self.trusted if is_trusted else self.strangers
        if kind == "late":
            return self.cluster.start("../tests/gleaner-liar", lines[0], self.cluster.path("liar"), kind, 0)
        return self.cluster.start("../tests/gleaner-attacker", kind, count, *lines)


def compare(run, kind, turns, seconds, warm_up, count):
    _, is_trusted, what = KINDS[kind]
    ratios, shares, memories = [], [], []
    for _ in range(turns):
        calm, calm_used, calm_memory = run.measure(seconds)
        attacker = run.attack(kind, count, is_trusted)
        if kind in ("idle", "unfinished"):
            attacker.wait_said(f" {count} welcomed", 300)
        early = run.measure(warm_up, attacker)
        speed, used, memory = run.measure(seconds, attacker)
        ratios.append(speed / calm)
        shares.append(used[2] / os.cpu_count())
        memories.append(max(memory, early[2]) - calm_memory)
        said = attacker.out[-1] if attacker.out else ""
        print(f"  {kind}: batches/s {calm:.1f} calm, {early[0]:.1f} at first, {speed:.1f} attacked; "
              f"processors of master {calm_used[0]:.2f} and {used[0]:.2f}, volunteers {calm_used[1]:.2f} and "
              f"{used[1]:.2f}, attacker {used[2]:.2f}; {said}", flush=True)
        run.cluster.forget(attacker)
        time.sleep(min(seconds, 5))
    print(f"{kind}, {what}: {statistics.median(ratios):.2f} of the calm speed (median of {turns}, "
          f"{min(ratios):.2f} to {max(ratios):.2f}), while the attacker takes {statistics.median(shares):.2f} of "
          f"the machine; {max(memories):+.0f} MiB in the master", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--tiny", action="store_true", help="half a minute, for ctest")
    parser.add_argument("--kinds", default=",".join(KINDS), help="which attacks")
    parser.add_argument("--turns", type=int, default=3, help="calm and attacked, each")
    parser.add_argument("--seconds", type=float, default=20, help="of each measurement")
    parser.add_argument("--warm-up", type=float, default=30, help="seconds of attack before")
    parser.add_argument("--strangers", action="store_true", help="the honest ones are strangers as well")
    options = parser.parse_args()
    if options.tiny:
        options.turns, options.seconds, options.warm_up = 1, 0.3, 0.1
    with Cluster() as cluster:
        run = Run(cluster, options.tiny, options.strangers)
        for kind in options.kinds.split(","):
            count = min(KINDS[kind][0], 20) if options.tiny else KINDS[kind][0]
            compare(run, kind, options.turns, options.seconds, options.warm_up, count)


if __name__ == "__main__":
    main()
