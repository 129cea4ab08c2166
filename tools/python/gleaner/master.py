"""One run of the program gleaner-master, from its start to its end: its events, progress and Ctrl-C."""

import contextlib
import html
import json
import logging
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading

from . import _gleaner, programs

log = logging.getLogger("gleaner")
LEVELS = {"debug": logging.DEBUG, "info": logging.INFO, "warning": logging.WARNING, "error": logging.ERROR}
LOOK_S = 0.05  # between two looks at the master


class TrainingError(RuntimeError):
    """The master refused or gave up; `code` is that of its event `error`, `exit` its exit code."""

    def __init__(self, message, code="", exit_code=1):
        super().__init__(message)
        self.code, self.exit = code, exit_code

    def __reduce__(self):
        return type(self), (self.args[0], self.code, self.exit)


class Refused(TrainingError, ValueError):
    """The same, where data or settings cannot be used."""


class NotebookBar:
    """What tqdm's bar does here, in a notebook that has no tqdm."""

    total, n, description = None, 0, ""

    def __init__(self):
        from IPython import display
        self.html, self.shown = display.HTML, display.display(display.HTML(""), display_id=True)

    def set_description(self, text, refresh=False):
        self.description = text

    def refresh(self):
        self.shown.update(self.html(f"<progress max='{self.total or 1}' value='{self.n}'></progress> "
                                    f"{html.escape(self.description)}"))

    close = refresh

    @staticmethod
    def write(line, file=None):
        print(line, file=file, flush=True)


class Bar:
    """Progress for a person: tqdm's bar where there is tqdm, otherwise a line for each evaluation."""

    def __init__(self, wanted):
        self.wanted, self.bar = wanted, None
        shell = sys.modules.get("IPython")
        try:
            from tqdm.auto import tqdm
            self.bar = tqdm(unit="batch", dynamic_ncols=True, disable=None) if wanted else None
        except ImportError:
            self.bar = NotebookBar() if wanted and shell and hasattr(shell.get_ipython(), "kernel") else None

    def progress(self, event):
        if self.bar is not None:
            self.bar.total, self.bar.n = event["batches"], event["batch"]
            shown = {"examples/s": event["examples_per_second"], "loss": event["loss"], "P@1": event["p_at_1"]}
            self.bar.set_description(", ".join([event["stage"], *(f"{name} {value:.4g}" for name, value in shown.items()
                                                                  if value is not None)]), refresh=False)
            self.bar.refresh()

    def say(self, line):
        if self.bar is not None:
            self.bar.write(line, file=sys.stderr)
        elif self.wanted:
            print(line, file=sys.stderr, flush=True)

    def finish(self):
        if self.bar is not None and self.bar.total:
            self.bar.n = self.bar.total
            self.bar.set_description("finished")

    def close(self):
        if self.bar is not None:
            self.bar.close()


class EventLog:
    """Events in a file, which outlives its reader: a pipe would end the master with this process."""

    def __init__(self, path):
        self.file = open(path, "ab+", buffering=0)
        self.place, self.rest = os.path.getsize(path), b""

    def new(self):
        """The events of whole lines that are new."""
        while piece := os.pread(self.file.fileno(), 1 << 20, self.place):
            self.place += len(piece)
            *lines, self.rest = (self.rest + piece).split(b"\n")
            yield from map(json.loads, lines)


def events_of(path):
    """The events of all masters that wrote to the file; half a line, of a master that was killed, is none."""
    with contextlib.suppress(OSError), open(path, "rb") as file:
        for line in file:
            with contextlib.suppress(ValueError):
                yield json.loads(line)


def train(arguments, progress, log_path, lock):
    """Runs a master to its end and returns its event `finished`. Its events stand in the file `log_path`.

    Ctrl-C, in any thread, lets the open round become a checkpoint; KeyboardInterrupt goes on when the
    master has ended. A second one gives the round up. TrainingError says why a master refused or gave
    up. The master inherits the descriptor `lock`.
    """
    # The master ends with this process, whatever ends it; it then stops as after Ctrl-C.
    with_parent = ["setpriv", "--pdeathsig", "INT"] if shutil.which("setpriv") else []
    command = [*with_parent, programs.find("gleaner-master"), "--log-format", "json", *map(str, arguments)]
    bar, events = Bar(progress), EventLog(log_path)
    with tempfile.TemporaryFile() as complaints, contextlib.closing(events.file), contextlib.closing(bar):
        with Interrupts(bar) as interrupts:
            # A session of its own: Ctrl-C reaches this process alone, which passes it on.
            master = subprocess.Popen(command, stdout=events.file, stderr=complaints, pass_fds=[lock],
                                      stdin=subprocess.DEVNULL, start_new_session=True)
            try:
                last = _follow(master, events, bar, interrupts)
            finally:
                _end(master)
        if last.get("event") == "finished":
            return last
        if interrupts.passed_on > 0:
            raise KeyboardInterrupt
        complaints.seek(0)
        said, status, code = complaints.read().decode(errors="replace").strip(), master.returncode, ""
        if last.get("event") == "error":
            said, status, code = last["message"], last["exit"], last["code"]
        elif status == 0:
            raise TrainingError("the master was stopped before the end; resume() goes on")
        raise (Refused if status in (2, 3) else TrainingError)(
            said or f"gleaner-master ended with status {status}", code, status)


class Interrupts:
    """Ctrl-C while a master trains: passed on to it, rather than raised in the middle of a line."""

    def __init__(self, bar):
        self.bar, self.passed_on, self.before = bar, 0, None
        self.seen = _gleaner.interrupts()

    def __enter__(self):
        # Only the main thread gets signals from Python, and who ignores them goes on doing so.
        self.is_main = threading.current_thread() is threading.main_thread()
        if self.is_main and signal.getsignal(signal.SIGINT) not in (signal.SIG_IGN, None):
            self.before = signal.signal(signal.SIGINT, lambda *_: None)
        _gleaner.watch_interrupts()
        return self

    def __exit__(self, *_):
        if self.before is not None:
            signal.signal(signal.SIGINT, self.before)

    def pass_on(self, master):
        """Tells the master of each Ctrl-C."""
        _gleaner.watch_interrupts()  # another handler may have been installed meanwhile
        while self.seen < _gleaner.interrupts():
            self.seen += 1
            self.passed_on += 1
            master.send_signal(signal.SIGINT)
            self.bar.say("Stopping after the open round; Ctrl-C again gives it up." if self.passed_on == 1
                         else "Giving the open round up.")


def _follow(master, events, bar, interrupts):
    """Shows what the master says until it ends; returns its last event."""
    last, is_running = {}, True
    while is_running:
        with contextlib.suppress(subprocess.TimeoutExpired):
            master.wait(LOOK_S)
        is_running = master.returncode is None
        interrupts.pass_on(master)
        for last in events.new():
            _show(last, bar)
    return last


def _show(event, bar):
    kind = event["event"]
    if kind == "progress":
        bar.progress(event)
    elif kind == "listening" and event["join"]:
        # A caller that gave listen= must see the line.
        print(f"Other machines join with: gleaner-volunteer {event['join']}", flush=True)
    elif kind == "page":
        log.info("The run's page is at %s", event["url"])
    elif kind == "evaluated":
        bar.say(f"epoch {event['epoch']:g} of {event['epochs']}: P@1 {event['p_at_1']:.4f}  "
                f"P@3 {event['p_at_3']:.4f}  P@5 {event['p_at_5']:.4f}")
    elif kind == "finished":
        bar.finish()
    elif kind == "log":
        log.log(LEVELS[event["level"]], "%s", event["message"])


def _end(master):
    """Leaves no master behind, whatever ended the following of it."""
    if master.poll() is not None:
        return
    master.send_signal(signal.SIGTERM)
    try:
        with contextlib.suppress(subprocess.TimeoutExpired):
            master.wait(60)
    finally:
        if master.poll() is None:
            os.kill(master.pid, signal.SIGKILL)
            master.wait()
