#!/usr/bin/env python3
"""The owner's view of a lent machine: the time until the processor is free after a touch, the slowdown of a
foreground task beside a volunteer at full load, the times of a hand-over and of leaving.

The scheduler's count of thread times gives the volunteer's processor time. The foreground task is measured in
turns with the volunteer paused and at work, because other programs move the figures more than the volunteer
does. The master, elsewhere for a real lender, runs in the idle class and in a session that gives way, so that
its load does not count as the volunteer's.

With --service the volunteer runs in a control group that takes only idle time, as the packaged service does
(CPUWeight=idle); without, it runs as on a terminal.

usage: lending_bench.py [--tiny] [--service]
"""

import argparse
import json
import os
import pathlib
import signal
import statistics
import subprocess
import sys
import threading
import time
import zlib

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "e2e"))
from harness import BIN, Cluster, Setup  # noqa: E402

VOLUNTEER = str(BIN / "gleaner-volunteer")


def pause_for(seconds):
    threading.Event().wait(seconds)


def percentile(values, percent):
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * percent / 100))]


def compute_ns(pid):
    """Time on a processor of all threads that give way."""
    total = 0
    for task in pathlib.Path(f"/proc/{pid}/task").iterdir():
        try:
            fields = (task / "stat").read_text(encoding="utf-8").rpartition(")")[2].split()
            is_idle_class = int(fields[38]) == 5
            if is_idle_class:
                total += int((task / "schedstat").read_text(encoding="utf-8").split()[0])
        except (FileNotFoundError, ProcessLookupError):
            continue  # a thread that ended meanwhile
    return total


class IdleGroup:
    """A control group of idle priority: of the first version or the second, as the machine has it."""

    def __init__(self):
        parents = [pathlib.Path("/sys/fs/cgroup/cpu"), pathlib.Path("/sys/fs/cgroup")]
        parent = next(p for p in parents if (p / "cgroup.procs").exists())
        self.path = parent / f"gleaner-bench-{os.getpid()}"
        self.path.mkdir()
        (self.path / "cpu.idle").write_text("1", encoding="utf-8")

    def take(self, pid):
        (self.path / "cgroup.procs").write_text(str(pid), encoding="utf-8")

    def close(self):
        """When its processes have ended."""
        self.path.rmdir()


class World:
    """A master and a volunteer on every processor, with a folder in the place of the machine."""

    def __init__(self, cluster, group, labels, hidden, points):
        self.group = group
        self.root = cluster.path("root")
        self.socket = cluster.path("control")
        self.terminal = self.root / "dev/pts/0"
        self.terminal.parent.mkdir(parents=True)
        self.terminal.touch()
        os.utime(self.terminal, (0, 0))
        train, test = cluster.path("train.txt"), cluster.path("test.txt")
        cluster.gleaner("dataset", "synth", "--train", train, "--test", test, "--points", points,
                        "--test-points", 200, "--features", 5000, "--labels", labels, "--seed", 1)
        flags = ["--epochs", 1000, "--hidden", hidden, "--output-shards", 16, "--batch-examples", 128,
                 "--round-batches", 16, "--staleness", 4]
        self.master = Setup(train, test, flags).start_master(
            cluster, cluster.path("store"), "--listen", "127.0.0.1:0", "--threads", 1,
            before=("chrt", "--idle", "0"))
        session = pathlib.Path(f"/proc/{self.master.pid}/autogroup")
        if session.exists():
            session.write_text("19", encoding="utf-8")
        if group is not None:
            group.take(self.master.pid)
        self.address = self.master.wait_event("listening")["join"]
        self.cluster = cluster

    def start_volunteer(self, *flags):
        self.volunteer = self.cluster.start(
            "gleaner-volunteer", self.address, "--threads", os.cpu_count(), "--log-format", "json", "--control",
            self.socket, "--free-memory", 0, *flags, environment={"GLEANER_MACHINE_ROOT": str(self.root)})
        if self.group is not None:
            self.group.take(self.volunteer.pid)
        self.wait_busy()

    def verb(self, *words):
        done = subprocess.run([VOLUNTEER, *words, "--control", str(self.socket), "--json"],
                              capture_output=True, text=True, check=True)
        return json.loads(done.stdout)

    def wait_busy(self, seconds=120):
        """Until it has computed for 50 ms."""
        begin = compute_ns(self.volunteer.pid)
        deadline = time.monotonic() + seconds
        while compute_ns(self.volunteer.pid) < begin + 50_000_000:
            if time.monotonic() > deadline:
                raise AssertionError("the volunteer does not compute:\n" + self.volunteer.said()[-2000:])
            pause_for(0.01)

    def touch(self):
        """Somebody types; returns how long compute threads went on, and how much processor time they took
        after it, both in milliseconds."""
        begin = time.monotonic()
        os.utime(self.terminal)
        last, first = begin, compute_ns(self.volunteer.pid)
        before = first
        while time.monotonic() - begin < 0.6:
            pause_for(0.001)
            now_ns = compute_ns(self.volunteer.pid)
            if now_ns > before + 20_000:  # waking up to wait again is no work
                last, before = time.monotonic(), now_ns
        return (last - begin) * 1e3, (before - first) / 1e6


def wake_delays(seconds, step=0.01):
    """How much later than asked a thread that sleeps for 10 ms wakes up, in milliseconds."""
    delays, due = [], time.monotonic() + step
    end = due + seconds
    while due < end:
        now = time.monotonic()
        if now < due:
            time.sleep(due - now)
            delays.append((time.monotonic() - due) * 1e3)
        due = max(due + step, time.monotonic())
    return delays


def compression(seconds, data):
    begin, count = time.monotonic(), 0
    while time.monotonic() - begin < seconds:
        zlib.compress(data, 6)
        count += 1
    return count / (time.monotonic() - begin)


def measure_input(world, samples):
    world.start_volunteer("--when", "idle", "--idle-after-s", 1)
    free, taken = [], []
    for sample in range(samples):
        world.wait_busy()
        pause_for(0.037 * (sample % 7))  # not in step with its clock
        wall, processor = world.touch()
        free.append(wall)
        taken.append(processor)
    world.volunteer.close()
    print(f"input event to processor free: p50 {percentile(free, 50):.0f} ms, p99 "
          f"{percentile(free, 99):.0f} ms, most {max(free):.0f} ms; processor time taken after it: p50 {percentile(taken, 50):.0f} ms, p99 "
          f"{percentile(taken, 99):.0f} ms; of {samples}")


def measure_foreground(world, turns, seconds):
    world.start_volunteer("--when", "always")
    data = bytes(range(256)) * 64 + os.urandom(1 << 14)
    delays = {False: [], True: []}
    ratios = []
    for turn in range(turns):
        speeds = {}
        for works in ((False, True), (True, False))[turn % 2]:
            world.verb("resume" if works else "pause")
            if works:
                world.wait_busy()
            delays[works] += wake_delays(seconds)
            speeds[works] = compression(seconds, data)
        ratios.append(speeds[True] / speeds[False])
    world.verb("resume")
    alone, beside = (percentile(delays[works], 99) for works in (False, True))
    print(f"wake-up delay of a task that wakes every 10 ms, p99: alone {alone:.2f} ms, beside "
          f"{beside:.2f} ms: {beside - alone:+.2f} ms; p50 {percentile(delays[False], 50):.2f} and "
          f"{percentile(delays[True], 50):.2f} ms")
    print(f"compression beside against alone: {statistics.median(ratios):.3f} (median of {turns} turns, "
          f"{min(ratios):.3f} to {max(ratios):.3f})")


def measure_leaving(world, samples):
    """Goes on with the volunteer that works."""
    times = []
    for _ in range(samples):
        held = world.verb("status")["held_bytes"]
        begin = time.monotonic()
        world.volunteer.signal(signal.SIGTERM)
        world.volunteer.wait_exit(30)
        times.append(time.monotonic() - begin)
        world.start_volunteer("--when", "always")
    print(f"SIGTERM to exit: median {statistics.median(times):.2f} s, most {max(times):.2f} s, of {samples}, "
          f"{held / 2**20:.0f} MiB held")
    world.volunteer.close()
    handed = []
    for _ in range(samples):
        world.start_volunteer("--when", "always", "--keep-shards-s", 0, "--limit-up", 100)
        pause_for(1)
        held = world.verb("status")["held_bytes"]
        sent = world.verb("status")["today"]["up_bytes"]
        begin = time.monotonic()
        status = world.verb("pause")
        while status["held_bytes"] > 0 or status["shards"]:
            pause_for(0.02)
            status = world.verb("status")
        handed.append(time.monotonic() - begin)
        sent = status["today"]["up_bytes"] - sent
        world.volunteer.close()
    print(f"pause to hand-over complete at 100 Mbit/s: median {statistics.median(handed):.2f} s, most "
          f"{max(handed):.2f} s, of {samples}, {held / 2**20:.0f} MiB held, {sent / 2**20:.1f} MiB sent last")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--tiny", action="store_true", help="a few seconds, for ctest")
    parser.add_argument("--service", action="store_true", help="in a control group of idle priority")
    arguments = parser.parse_args()
    tiny = arguments.tiny
    group = IdleGroup() if arguments.service else None
    with Cluster() as cluster:
        world = World(cluster, group, *((2000, 64, 3000) if tiny else (100_000, 256, 100_000)))
        measure_input(world, 2 if tiny else 100)
        measure_foreground(world, 2 if tiny else 60, 0.3)
        measure_leaving(world, 1 if tiny else 5)
    if group is not None:
        group.close()


if __name__ == "__main__":
    main()
