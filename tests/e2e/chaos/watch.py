"""Watches a storm of tools/chaos: standstills, memory, files, processes."""

import os
import pathlib
import re
import time

GROWTH_SHARE = 1.25  # is taken for noise: allocators keep what a busy moment took
SAMPLES_MIN = 16  # fewer say nothing about growth: a life's peak depends on how long it lasted


class Standstill:
    """The longest time in which a run with a volunteer got no further. What counts as further: a new
    checkpoint, an evaluation, or more batches done than ever before in the same master's life."""

    def __init__(self):
        self.longest = self.longest_without_checkpoint = 0.0
        self.checkpoint = self.evaluated = 0
        self.waiting_for = self.worst_wait = ""
        self._volunteers = self._batches = 0
        self._still = self._since_checkpoint = 0.0
        self._asked = time.monotonic()

    def master_started(self):
        """A new life: nobody is connected, and what was not durable is to be done again."""
        self._volunteers = self._batches = 0

    def note(self, events):
        """To be called often: between two calls the number of volunteers is taken to be the same."""
        now = time.monotonic()
        if self._volunteers > 0:
            self._still += now - self._asked
            self._since_checkpoint += now - self._asked
        self._asked = now
        if self._still > self.longest:
            self.longest, self.worst_wait = self._still, self.waiting_for
        self.longest_without_checkpoint = max(self.longest_without_checkpoint, self._since_checkpoint)
        for event in events:
            self._note(event)

    def _note(self, event):
        kind = event["event"]
        if kind in ("volunteer_joined", "volunteer_left"):
            self._volunteers = event["volunteers"]
        elif kind == "progress":
            self._volunteers, self.waiting_for = event["volunteers"], event["waiting_for"]
            if event["batch"] > self._batches:
                self._batches, self._still = event["batch"], 0.0
        elif kind == "checkpoint" and event["checkpoint"] > self.checkpoint:
            self.checkpoint, self._still, self._since_checkpoint = event["checkpoint"], 0.0, 0.0
        elif kind == "evaluated" and event["checkpoint"] > self.evaluated:
            self.evaluated, self._still = event["checkpoint"], 0.0


def resident_mib(pid):
    """0 when the process is gone."""
    try:
        status = pathlib.Path(f"/proc/{pid}/status").read_text(encoding="utf-8")
    except OSError:
        return 0
    match = re.search(r"^VmRSS:\s+(\d+) kB", status, re.MULTILINE)
    return int(match.group(1)) / 1024 if match else 0


def descriptors(pid):
    """Open files and sockets; 0 when the process is gone."""
    try:
        return len(os.listdir(f"/proc/{pid}/fd"))
    except OSError:
        return 0


def folder_mib(folder):
    """Of all files below it. Some may go while they are counted."""
    total = 0
    for path in folder.rglob("*"):
        try:
            total += path.stat().st_size
        except OSError:
            continue
    return total / (1 << 20)


class Growth:
    """Samples over time of what must not grow, or the peak of each of a program's lives; growth by less
    than `slack` besides a share is noise."""

    def __init__(self, name, unit, slack):
        self.name, self.samples = name, []
        self._unit, self._slack = unit, slack

    def note(self, value):
        if value > 0:
            self.samples.append(value)

    def early_and_late(self):
        """The largest of the second quarter and of the last: the first is growing up."""
        quarter = len(self.samples) // 4
        return max(self.samples[quarter:2 * quarter]), max(self.samples[-quarter:])

    def complaint(self):
        """A sentence when it has grown over time, else None."""
        if len(self.samples) < SAMPLES_MIN:
            return None
        early, late = self.early_and_late()
        if late > early * GROWTH_SHARE + self._slack:
            return f"{self.name} grew from {early:.0f} {self._unit} to {late:.0f} {self._unit}"
        return None

    def __str__(self):
        if len(self.samples) < SAMPLES_MIN:
            return f"{max(self.samples, default=0):.0f} {self._unit} at most"
        early, late = self.early_and_late()
        return f"{early:.0f} {self._unit} early, {late:.0f} {self._unit} late"


STORE_FILE = re.compile(r"\d+\.(sst|log)|MANIFEST-\d+|OPTIONS-\d+|CURRENT|IDENTITY|LOCK|LOG(\.old\.\d+)?"
                        r"|access|master\.key")


def orphans(store, expected_files, *empty_folders):
    """Sentences about files that should not be there after a run."""
    found = []
    for path in sorted(store.rglob("*")):
        if path.is_file() and not STORE_FILE.fullmatch(path.name):
            found.append(f"{path.name} is left in the store")
    for kind, most in (("LOG", 4), ("MANIFEST", 1), ("OPTIONS", 2)):
        count = sum(1 for path in store.rglob(kind + "*"))
        if count > most:
            found.append(f"{count} {kind} files are left in the store")
    for folder in empty_folders:
        for path in sorted(folder.rglob("*")):
            if path.is_file() and path not in expected_files:
                found.append(f"{path.relative_to(folder.parent)} is left over")
    return found


def processes_with(marker):
    """Live processes that have this NAME=VALUE in their environment."""
    found = []
    for entry in pathlib.Path("/proc").iterdir():
        if not entry.name.isdigit() or int(entry.name) == os.getpid():
            continue
        try:
            environment = (entry / "environ").read_bytes().split(b"\0")
        except OSError:
            continue
        if marker.encode() in environment:
            found.append(int(entry.name))
    return found
