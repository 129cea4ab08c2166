"""Runs the real programs on loopback for the end-to-end tests.

No wait is for a fixed time: every wait is for a message or an act of a program, and has a deadline. Every
process belongs to a Cluster, which ends it however the test ends.

Environment: GLEANER_BIN, the folder of the programs (build/release/bin unless set); GLEANER_DATA, the
folder of the real data sets (../shared/data beside the repository unless set); GLEANER_TIME_FACTOR,
by which deadlines grow in slow builds; GLEANER_LONG, which makes the sweeps long.
"""

import json
import os
import pathlib
import random
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import time
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BIN = pathlib.Path(os.environ.get("GLEANER_BIN") or ROOT / "build/release/bin").resolve()
DATA = pathlib.Path(os.environ.get("GLEANER_DATA") or ROOT / "../shared/data").resolve()
TIME_FACTOR = float(os.environ.get("GLEANER_TIME_FACTOR") or 1)
IS_LONG = os.environ.get("GLEANER_LONG", "") not in ("", "0")

# Epochs of a run whose end no test sees, however slow a browser beside it is.
ENDLESS = 100_000

# No run of these tests takes longer, with every other test running beside it.
RUN_SECONDS = 180 * TIME_FACTOR

# By which a program may be later than it should, with other tests running beside it.
LATE_SECONDS = 60 * TIME_FACTOR


def faults(**variables):
    """The environment in which a program has the trouble that faults.c makes."""
    library = BIN.parent / "tests" / "libgleaner_faults.so"
    if not library.is_file():
        raise AssertionError(f"{library} does not exist: build it")
    # The sanitizers' own library insists on being the first.
    options = os.environ.get("ASAN_OPTIONS", "") + ":verify_asan_link_order=0"
    return {"LD_PRELOAD": str(library), "ASAN_OPTIONS": options, **variables}


def simd_levels():
    """The levels that this machine has, as GLEANER_SIMD names them."""
    flags = set()
    try:
        for line in pathlib.Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            if line.startswith("flags"):
                flags = set(line.split(":", 1)[1].split())
                break
    except OSError:
        pass
    levels = ["scalar"]
    if {"avx2", "fma", "f16c"} <= flags:
        levels.append("avx2")
        if {"avx512f", "avx512bw", "avx512dq", "avx512vl"} <= flags:
            levels.append("avx512")
    return levels


def free_port():
    """A port that nobody listens on, for a program that will. It is none of those from which the
    system takes the near end of a connection: such a one may be taken again before the program has it."""
    lowest, highest = map(int, pathlib.Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split())
    while True:
        port = random.choice([*range(10000, lowest), *range(highest + 1, 65536)])
        try:
            with socket.socket() as listener:
                listener.bind(("127.0.0.1", port))
            return port
        except OSError:
            continue


def free_address():
    """Where a master can listen that is started again at the same address."""
    return f"127.0.0.1:{free_port()}"


class Program:
    """A running program: what it has said so far, and ways to wait for what it will say.

    A master started with `hold`=N stands still when it has told of checkpoint N. let_go() ends that, a signal
    does, and a test that waits for the program's end."""

    def __init__(self, name, arguments, simd=None, environment=None, before=(), hold=None):
        self.name = name
        self.command = [*before, str(BIN / name)] + [str(argument) for argument in arguments]
        self._hold, echo, echo_end = hold, None, None
        if hold is not None:
            echo_end, echo = os.pipe()
            environment = faults(**(environment or {}), GLEANER_FAULT_ECHO=str(echo_end))
        variables = dict(os.environ, LC_ALL="C.UTF-8", **(environment or {}))
        for variable in ("GLEANER_LINE_FILE", "GLEANER_MASTER", "GLEANER_SIMD"):
            if variable not in (environment or {}):
                variables.pop(variable, None)
        if simd:
            variables["GLEANER_SIMD"] = simd
        self.out, self.error = [], []  # lines
        self._events_taken = 0
        self._news = threading.Condition()
        self._process = subprocess.Popen(
            self.command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            env=variables, start_new_session=True, pass_fds=() if hold is None else (echo_end,))
        if hold is not None:
            os.close(echo_end)
        self._readers = [
            threading.Thread(target=self._read, args=(self._process.stdout, self.out, echo)),
            threading.Thread(target=self._read, args=(self._process.stderr, self.error))]
        for reader in self._readers:
            reader.start()

    def _read(self, stream, lines, echo=None):
        with stream:
            for line in stream:
                with self._news:
                    lines.append(line.decode(errors="replace").rstrip("\n"))
                    self._news.notify_all()
                    self._news.wait_for(lambda: echo is None or not self._is_held_by(lines[-1]))
                if echo is not None:
                    try:
                        os.write(echo, b".")
                    except BrokenPipeError:  # killed
                        pass
        if echo is not None:
            os.close(echo)
        with self._news:
            self._news.notify_all()

    def _is_held_by(self, line):
        event = json.loads(line) if self._hold is not None and line.startswith("{") else {}
        return event.get("event") == "checkpoint" and event["checkpoint"] >= self._hold

    def let_go(self, hold=None):
        """Lets a program go on that was started with `hold`, until checkpoint `hold` if that is given."""
        with self._news:
            self._hold = hold
            self._news.notify_all()

    def said(self):
        """Everything said so far, for failures and for assertIn."""
        with self._news:
            return "\n".join(self.out + self.error)

    def events(self, kind=None):
        """The JSON events so far."""
        with self._news:
            lines = list(self.out)
        events = [json.loads(line) for line in lines if line.startswith("{")]
        return [event for event in events if kind is None or event["event"] == kind]

    def new_events(self):
        """The JSON events since the last call."""
        with self._news:
            lines = self.out[self._events_taken:]
            self._events_taken = len(self.out)
        return [json.loads(line) for line in lines if line.startswith("{")]

    def wait_for(self, condition, what, seconds=RUN_SECONDS):
        """Waits until condition() is true and returns it. It is asked again whenever a line comes."""
        deadline = time.monotonic() + seconds
        while True:
            with self._news:
                seen = len(self.out) + len(self.error)
            value = condition()
            if value:
                return value
            over = not any(reader.is_alive() for reader in self._readers)
            with self._news:
                news = len(self.out) + len(self.error) > seen
                left = deadline - time.monotonic()
                if not news and (over or left <= 0):
                    raise AssertionError(
                        f"{' '.join(self.command)}\n{'ended' if over else 'went on'} without: {what}"
                        f"; it said:\n" + "\n".join((self.out + self.error)[-40:]))
                if not news:
                    self._news.wait(min(left, 1))

    def wait_event(self, kind, matches=lambda event: True, seconds=RUN_SECONDS):
        """The first event of this kind that matches."""
        return self.wait_for(lambda: next(filter(matches, self.events(kind)), None), f"event {kind}",
                             seconds)

    def wait_checkpoint(self, checkpoint):
        return self.wait_event("checkpoint", lambda event: event["checkpoint"] >= checkpoint)

    def wait_said(self, text, seconds=RUN_SECONDS):
        self.wait_for(lambda: text in self.said(), f"'{text}'", seconds)

    def wait_exit(self, seconds=RUN_SECONDS):
        """The exit code; negative for a signal."""
        self.let_go()
        try:
            code = self._process.wait(seconds)
        except subprocess.TimeoutExpired as error:
            raise AssertionError(f"{' '.join(self.command)}\nstill runs after {seconds:.0f} s; it "
                                 f"said:\n" + self.said()[-4000:]) from error
        for reader in self._readers:
            reader.join()
        return code

    @property
    def pid(self):
        return self._process.pid

    def is_running(self):
        return self._process.poll() is None

    def signal(self, number):
        if self.is_running():
            self._process.send_signal(number)
        if number not in (signal.SIGSTOP, signal.SIGCONT):
            self.let_go()

    def pause(self):
        """Stops the process where it stands; returns when the system says that it is stopped."""
        self.signal(signal.SIGSTOP)
        deadline = time.monotonic() + 10 * TIME_FACTOR
        while self.is_running() and time.monotonic() < deadline:
            stat = pathlib.Path(f"/proc/{self._process.pid}/stat").read_text(encoding="utf-8")
            if stat.rpartition(")")[2].split()[0] == "T":
                return
            os.sched_yield()

    def go_on(self):
        self.signal(signal.SIGCONT)

    def kill(self):
        """SIGKILL, as a crash or a power cut would end it."""
        self.signal(signal.SIGKILL)
        self.wait_exit()

    def close(self):
        if self.is_running():
            self.signal(signal.SIGKILL)
        self.wait_exit()


# A volunteer under test computes whatever else the machine does, and gives way as little as a master
# beside it needs.
UNMANNERED = ["--when", "always", "--battery", "--metered", "--free-memory", 0, "--cpu-pressure-max", 100,
              "--memory-pressure-max", 100, "--temperature-max", 200, "--nice", 0]


class Cluster:
    """A temporary folder and the programs that run in it."""

    def __init__(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="gleaner-e2e-"))
        self._programs = []
        self._lines = {}  # by the master's HOST:PORT
        self._names = 0

    def close(self):
        for program in self._programs:
            program.close()
        shutil.rmtree(self.folder, ignore_errors=True)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def path(self, name):
        return self.folder / name

    def start(self, name, *arguments, simd=None, environment=None, before=(), hold=None):
        """`before` is a command that runs the program: on another host, with another priority."""
        program = Program(name, arguments, simd, environment, before, hold)
        self._programs.append(program)
        return program

    def forget(self, program):
        """Ends a program that nobody will ask about any more: long runs start very many."""
        program.close()
        self._programs.remove(program)

    def run(self, name, *arguments, **others):
        """Starts a program and waits for its end; returns (exit code, program)."""
        program = self.start(name, *arguments, **others)
        return program.wait_exit(), program

    def gleaner(self, *arguments):
        """What `gleaner` prints; it must succeed."""
        code, program = self.run("gleaner", *arguments)
        if code != 0:
            raise AssertionError(f"{' '.join(program.command)}\nexit code {code}:\n" + program.said())
        return "\n".join(program.out)

    def texts(self, name, subjects):
        """A data set of texts, 300 for each label: {label: its four words}."""
        folder, source = self.path(name), self.path(f"{name}.csv")
        with open(source, "w", encoding="utf-8") as file:
            file.write("body,tags\n")
            for i in range(300 * len(subjects)):
                tag, words = list(subjects.items())[i % len(subjects)]
                file.write(f"{words.split()[i % 4]} {words.split()[(i // 4) % 4]} thing{i % 30},{tag}\n")
        self.gleaner("dataset", "convert", source, "--text", "body", "--tags", "tags", "--share", "0.2",
                     "--output", folder)
        return folder

    def digest(self, store):
        return self.gleaner("checkpoint", "digest", store).strip()

    def history(self, store):
        return [json.loads(line)
                for line in self.gleaner("history", store, "--json").splitlines() if line]

    def line(self, address, through=None):
        """The line with which volunteers join the master that listens at `address`, HOST:PORT; by way
        of another HOST:PORT if it is given."""
        for program in self._programs:
            for event in program.events("listening") if program.name == "gleaner-master" else []:
                self._lines[event["address"]] = event["join"]
        if address not in self._lines:
            raise AssertionError(f"no master of this cluster has listened at {address}")
        return self._lines[address].replace(address, through or address)

    def volunteer(self, address, *arguments, threads=1, simd=None, once=True, environment=None,
                  before=()):
        """A volunteer that tries again quickly when the master is away. `address` is a whole line, or
        HOST:PORT of a master of this cluster; of one in plain text, HOST:PORT --insecure."""
        self._names += 1
        words = address.split() if "/" in address or " " in address else [self.line(address)]
        once_flag = ["--once"] if once else []
        return self.start("gleaner-volunteer", *words, "--threads", threads, "--log-format", "json",
                          "--name", f"v{self._names}", "--retry-ms-min", 20, "--retry-ms-max", 200,
                          "--control", self.path(f"control-{self._names}"), *UNMANNERED,
                          *once_flag, *arguments, simd=simd, environment=environment, before=before)


class Setup:
    """One data set with one configuration; `master` is the command line of its runs."""

    def __init__(self, train, test, flags):
        self.train, self.test, self.flags = train, test, list(flags)

    def with_flag(self, flag, value):
        """The same with another value of a flag."""
        flags = list(self.flags)
        flags[flags.index(flag) + 1] = value
        return Setup(self.train, self.test, flags)

    def arguments(self, store, *others):
        page = [] if "--http" in others else ["--http", "off"]
        return ["--train", self.train, "--test", self.test, "--store", store, "--log-format", "json", *page,
                "--farewell-s", 0, *self.flags, *others]

    def start_master(self, cluster, store, *others, simd=None, environment=None, before=(), hold=None):
        return cluster.start("gleaner-master", *self.arguments(store, *others), simd=simd,
                             environment=environment, before=before, hold=hold)

    def run_local(self, cluster, store, local=1, threads=1, simd=None):
        """Trains to the end in one process; returns the finished event."""
        master = self.start_master(cluster, store, "--local", local, "--threads", threads, simd=simd)
        return finished(master)


# A small network with everything in it: several rounds an epoch, a short last batch, a lag, a schedule
# that hashes rows again in the middle of rounds, random negatives, both kinds of dropout, and shards that no
# tested number of volunteers divides.
SMALL_MODEL = [
    "--epochs", 2, "--seed", 5, "--hidden", 64, "--output-shards", 11, "--batch-examples", 64,
    "--round-batches", 8, "--staleness", 2, "--hash-bits", 5, "--tables", 12, "--active-cap", 200,
    "--random-negatives", 20, "--rehash-batches", 5, "--dropout", 0.1, "--feature-dropout", 0.2,
]


def small_setup(cluster, points=6000, flags=(), synth=()):
    """Generated data, the same in every test of a build."""
    train, test = cluster.path("train.txt"), cluster.path("test.txt")
    cluster.gleaner("dataset", "synth", "--train", train, "--test", test, "--points", points,
                    "--test-points", 500, "--features", 3000, "--labels", 2000, "--seed", 1, *synth)
    return Setup(train, test, SMALL_MODEL + list(flags))


def finished(master, seconds=RUN_SECONDS):
    """Waits for the end of a run that must succeed; returns its last event."""
    code = master.wait_exit(seconds)
    events = master.events()
    if code != 0 or not events or events[-1]["event"] != "finished":
        raise AssertionError(f"{' '.join(master.command)}\nexit code {code}, not finished:\n"
                             + master.said()[-4000:])
    return events[-1]


class EndToEndTest(unittest.TestCase):
    """A test case with a cluster of its own."""

    maxDiff = None

    @classmethod
    def setUpClass(cls):
        for name in ("gleaner-master", "gleaner-volunteer", "gleaner"):
            if not (BIN / name).is_file():
                raise AssertionError(f"{BIN / name} does not exist: build it, or set GLEANER_BIN")

    def setUp(self):
        self.cluster = Cluster()
        self.addCleanup(self.cluster.close)


class StorageTest(EndToEndTest):
    """Tests that share one small data set and one finished run. Its folds are large enough to go
    past the log of the store, so that files are made all the while."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.shared = Cluster()
        cls.addClassCleanup(cls.shared.close)
        cls.setup = small_setup(cls.shared, points=3000).with_flag("--hidden", 256)
        cls.done = cls.shared.path("done")
        cls.reference = cls.setup.run_local(cls.shared, cls.done)

    def setUp(self):
        super().setUp()
        self.store = self.cluster.path("store")

    def start(self, *flags, store=None, environment=None, hold=None):
        """A master and one volunteer over TCP."""
        master = self.setup.start_master(self.cluster, store or self.store, "--listen", "127.0.0.1:0",
                                         "--threads", 1, *flags, environment=environment, hold=hold)
        volunteer = self.cluster.volunteer(master.wait_event("listening")["address"])
        return master, volunteer

    def finish(self, store):
        """Trains to the end in the store; the model must be the reference's."""
        event = self.setup.run_local(self.cluster, store)
        self.assertEqual(event["digest"], self.reference["digest"])

    def assert_ended(self, master, code, *pieces):
        self.assertEqual(master.wait_exit(), code, master.said())
        last = master.events()[-1]
        self.assertEqual(last["event"], "error", master.said())
        for piece in pieces:
            self.assertIn(str(piece), last["message"])
        self.assertNotRegex(master.said(), r"(?i)terminate called|core dumped|check failed")
