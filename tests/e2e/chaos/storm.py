"""One run under a storm: a master and volunteers that are killed, frozen, spawned and cut off."""

import heapq
import json
import math
import random
import signal
import sys
import time

from harness import TIME_FACTOR, free_address
from proxy import Proxy
from watch import Growth, Standstill, descriptors, folder_mib, orphans, processes_with, resident_mib

TICK_SECONDS = 0.05
SILENCE_SECONDS = 2.0
STANDSTILL_SECONDS_MAX = 30 * TIME_FACTOR
# Seconds of calm training that a master's life has before it at least, whatever the storm leaves of
# its speed: the run must not end before the storm does.
AHEAD_SECONDS = 10
# How often the storm strikes, in seconds from one time to the next.
VOLUNTEER_EVERY = (0.1, 0.5)  # a volunteer is killed or spawned
MASTER_EVERY = (5, 15)        # the master is killed
FREEZE_EVERY = (1, 4)         # a volunteer is stopped, and goes on after FREEZE_SECONDS
FREEZE_SECONDS = (1.1 * SILENCE_SECONDS, 2.5 * SILENCE_SECONDS)
STALL_SECONDS = (0.1, 2 * SILENCE_SECONDS)
SAMPLE_EVERY = 0.5            # memory, descriptors and disk are looked at


def read_trace(path, speed):
    """Lines `seconds,machines` as pairs of seconds, at `speed` times their pace, and machines."""
    steps = []
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        if number == 1 and not line[:1].isdigit():
            continue  # the heading
        try:
            seconds, machines = line.split(",")
            steps.append((float(seconds) / speed, int(machines)))
        except ValueError:
            sys.exit(f"chaos: {path}:{number}: give seconds and machines, as in 3600,16, not {line!r}")
    if len(steps) < 2 or steps != sorted(steps, key=lambda step: step[0]):
        sys.exit(f"chaos: {path}: give two lines or more, by ascending time")
    return steps


class Storm:
    """`calm` is what a calm run of the same setup said first and last, in one."""

    def __init__(self, cluster, setup, options, calm):
        self.cluster, self.setup, self.options = cluster, setup, options
        self.epochs_ahead = math.ceil(AHEAD_SECONDS * calm["examples_per_second"] / calm["points"])
        self.rounds_per_epoch = calm["checkpoint"] // calm["epochs"]
        self.epochs = calm["epochs"]  # the calm run is trained on to as many
        self.draw = random.Random(options.seed)
        self.store = cluster.path("storm")
        self.temporary = cluster.path("tmp")
        self.temporary.mkdir()
        self.marker = f"GLEANER_CHAOS={cluster.folder}"
        self.environment = {"TMPDIR": str(self.temporary), "GLEANER_CHAOS": str(cluster.folder)}
        self.trace = read_trace(options.trace, options.speed) if options.trace else []
        machines = max((count for _, count in self.trace), default=options.volunteers)
        self.slots = [None] * machines  # who comes back is the same one
        self.frozen = set()
        self.counts = dict.fromkeys(("volunteers killed", "volunteers spawned", "volunteers frozen",
                                     "masters killed", "times the run was over too soon"), 0)
        self.failures = []
        self.standstill = Standstill()
        self.master_memory = Growth("memory of the master, life by life", "MiB", 16)
        self.master_files = Growth("descriptors of the master, life by life", "open", 16)
        self.volunteer_memory = Growth("memory of volunteer 1", "MiB", 16)
        self.volunteer_files = Growth("descriptors of volunteer 1", "open", 4)
        self.disk = Growth("the store", "MiB", 256)  # logs and levels come and go
        self.growths = (self.master_memory, self.master_files, self.volunteer_memory, self.volunteer_files,
                        self.disk)
        self.peak_memory = self.peak_files = 0  # of the master's life
        self.master = self.proxy = None
        self.listen = free_address()
        self.began = time.monotonic()
        self._due, self._order = [], 0  # what is to be done, by time

    def log(self, **what):
        if self.options.log:
            what = {"at": round(time.monotonic() - self.began, 2), **what}
            print(json.dumps(what), file=self.options.log)

    # ---- Processes ----

    def start_master(self):
        """A new life, with enough epochs that the run outlasts it."""
        if self.proxy is None or self.proxy.faults_on:
            done = math.ceil(self.standstill.checkpoint / self.rounds_per_epoch)
            self.epochs = max(self.epochs, done + self.epochs_ahead)
        setup = self.setup.with_flag("--epochs", self.epochs)
        self.master = self.cluster.start(
            "gleaner-master", *setup.arguments(
                self.store, "--listen", self.listen, "--threads", 1,
                "--heartbeat-ms", int(SILENCE_SECONDS * 1000 / 5),
                "--silence-ms", int(SILENCE_SECONDS * 1000), "--stall-s", 20),
            environment=self.environment)
        self.standstill.master_started()
        self.peak_memory = self.peak_files = 0

    def start(self):
        self.start_master()
        self.master.wait_event("listening")
        host, port = self.listen.split(":")
        self.proxy = Proxy((host, int(port)), self.options.seed, STALL_SECONDS)
        self.proxy.start()
        if not self.trace:
            self.let_be_here(len(self.slots))

    def kill_master(self):
        self.note()
        self.master_memory.note(self.peak_memory)
        self.master_files.note(self.peak_files)
        self.cluster.forget(self.master)
        self.counts["masters killed"] += 1
        self.log(done="master killed")
        self.start_master()

    def spawn(self, slot):
        self.slots[slot] = self.cluster.volunteer(
            self.cluster.line(self.listen, self.proxy.address), "--cache", self.cluster.path(f"volunteer-{slot}"),
            "--connect-timeout-ms", 3000, environment=self.environment)
        self.counts["volunteers spawned"] += 1
        self.log(done="spawned", volunteer=slot + 1)

    def kill(self, slot):
        self.cluster.forget(self.slots[slot])
        self.slots[slot] = None
        self.frozen.discard(slot)
        self.counts["volunteers killed"] += 1
        self.log(done="killed", volunteer=slot + 1)

    # ---- The storm ----

    def rage(self):
        """Until the storm is over."""
        begun = time.monotonic()
        end = begun + (self.trace[-1][0] if self.trace else self.options.seconds)
        due = self._due
        for act, every in ((self.kill_or_spawn, VOLUNTEER_EVERY), (self.kill_master, MASTER_EVERY),
                           (self.freeze, FREEZE_EVERY), (self.sample, (SAMPLE_EVERY, SAMPLE_EVERY))):
            if not self.trace or act != self.kill_or_spawn:
                heapq.heappush(due, (begun + self.draw.uniform(*every), len(due), act, every))
        self._order = len(due)
        for seconds, count in self.trace:
            self.later(seconds, lambda count=count: self.let_be_here(count))
        while time.monotonic() < end and not self.has_failed():
            while due[0][0] <= time.monotonic():
                at, order, act, every = heapq.heappop(due)
                act()
                if every:
                    at = max(at, time.monotonic() - 1) + self.draw.uniform(*every)
                    heapq.heappush(due, (at, order, act, every))
            self.note()
            if not self.master.is_running():
                self.counts["times the run was over too soon"] += 1
                self.restart_finished()
            time.sleep(min(TICK_SECONDS, max(0, due[0][0] - time.monotonic())))

    def later(self, seconds, act):
        self._order += 1
        heapq.heappush(self._due, (time.monotonic() + seconds, self._order, act, None))

    def restart_finished(self):
        code = self.master.wait_exit()
        if code != 0:
            self.failures.append(f"the master ended with {code}: {self.master.said()[-2000:]}")
            return
        self.cluster.forget(self.master)
        self.start_master()

    def kill_or_spawn(self):
        """Six of eight are here on average, each for three seconds or so; the first is spared, so
        that somebody's memory can be watched."""
        live = [slot for slot, program in enumerate(self.slots) if program]
        if self.draw.random() < 0.65 * len(live) / len(self.slots) and len(live) > 1:
            self.kill(self.draw.choice(live[1:]))
        else:
            empty = [slot for slot, program in enumerate(self.slots) if not program]
            if empty:
                self.spawn(self.draw.choice(empty))

    def let_be_here(self, count):
        """Kills or spawns volunteers until `count` are there. They go without a goodbye."""
        live = [slot for slot, program in enumerate(self.slots) if program]
        empty = [slot for slot, program in enumerate(self.slots) if not program]
        for slot in self.draw.sample(live, max(0, len(live) - count)):
            self.kill(slot)
        for slot in empty[:max(0, count - len(live))]:
            self.spawn(slot)

    def freeze(self):
        slot = self.draw.randrange(len(self.slots))
        program = self.slots[slot]
        seconds = self.draw.uniform(*FREEZE_SECONDS)
        if program is None or slot in self.frozen:
            return
        program.signal(signal.SIGSTOP)
        self.frozen.add(slot)
        self.counts["volunteers frozen"] += 1
        self.log(done="frozen", volunteer=slot + 1, seconds=seconds)
        self.later(seconds, lambda: self.thaw(slot, program))

    def thaw(self, slot, program):
        program.go_on()
        if self.slots[slot] is program:
            self.frozen.discard(slot)

    def sample(self):
        self.peak_memory = max(self.peak_memory, resident_mib(self.master.pid))
        self.peak_files = max(self.peak_files, descriptors(self.master.pid))
        self.disk.note(folder_mib(self.store))
        if self.slots[0]:
            self.volunteer_memory.note(resident_mib(self.slots[0].pid))
            self.volunteer_files.note(descriptors(self.slots[0].pid))

    # ---- What must hold ----

    def note(self):
        events = self.master.new_events()
        for event in events:
            self.log(**event)
        self.standstill.note(events)
        if self.standstill.longest > STANDSTILL_SECONDS_MAX:
            self.failures.append(f"the run stood still for {self.standstill.longest:.0f} s; it waited "
                                 f"for: {self.standstill.worst_wait or 'nothing it could name'}")
        for slot, program in enumerate(self.slots):
            if program and not program.is_running() and self.proxy.faults_on:
                self.failures.append(f"volunteer {slot + 1} ended by itself with {program.wait_exit()}: "
                                     f"{program.said()[-1000:]}")

    def has_failed(self):
        return bool(self.failures)

    def calm_down(self):
        """Ends the storm and waits for the end of the run; returns the finished event or None."""
        self.proxy.faults_on = False
        for program in self.slots:
            if program:
                program.go_on()
        self.frozen.clear()
        self.let_be_here(len(self.slots))
        while self.master.is_running() and not self.has_failed():
            self.note()
            self.sample()
            time.sleep(TICK_SECONDS)
        if self.has_failed():
            return None
        code = self.master.wait_exit()
        events = self.master.events()
        if code != 0 or events[-1]["event"] != "finished":
            self.failures.append(f"the master ended with {code}: {self.master.said()[-2000:]}")
            return None
        for slot, program in enumerate(self.slots):
            code = program.wait_exit()
            if code != 0:
                self.failures.append(f"volunteer {slot + 1} ended with {code}: "
                                     f"{program.said()[-1000:]}")
        return events[-1]

    def look_for_remains(self):
        for growth in self.growths:
            complaint = growth.complaint()
            if complaint:
                self.failures.append(complaint)
        caches = [self.cluster.path(f"volunteer-{slot}") for slot in range(len(self.slots))]
        kept = {cache / name for cache in caches for name in ("key", "today", "finished")}
        self.failures += orphans(self.store, kept, self.temporary, *caches)
        for pid in processes_with(self.marker):
            self.failures.append(f"process {pid} is left over")

    def close(self):
        if self.proxy:
            self.proxy.stop()
