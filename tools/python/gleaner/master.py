"""One run of the program gleaner-master, from its start to its end: its events, progress and Ctrl-C."""

import contextlib
import json
import logging
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading

from . import programs

log = logging.getLogger("gleaner")
LEVELS = {"debug": logging.DEBUG, "info": logging.INFO, "warning": logging.WARNING, "error": logging.ERROR}


class TrainingError(RuntimeError):
    """The master refused or gave up; `code` is that of its event `error`, `exit` its exit code."""

    def __init__(self, message, code="", exit_code=1):
        super().__init__(message)
        self.code, self.exit = code, exit_code

    def __reduce__(self):
        return type(self), (self.args[0], self.code, self.exit)


class Refused(TrainingError, ValueError):
    """The same, where data or settings cannot be used."""


class Bar:
    """Progress for a person: tqdm's bar where there is tqdm, otherwise a line for each evaluation."""

    def __init__(self, wanted):
        self.bar, self.wanted = None, wanted
        if wanted:
            with contextlib.suppress(ImportError):
                from tqdm.auto import tqdm
                self.bar = tqdm(unit="batch", dynamic_ncols=True, disable=None)

    def progress(self, event):
        if self.bar is None:
            return
        self.bar.total = event["batches"]
        self.bar.n = event["batch"]
        shown = {"examples/s": event["examples_per_second"], "loss": event["loss"], "P@1": event["p_at_1"]}
        self.bar.set_postfix({key: f"{value:.4g}" for key, value in shown.items() if value is not None},
                             refresh=False)
        self.bar.set_description(event["stage"], refresh=False)
        self.bar.refresh()

    def say(self, line):
        if self.bar is not None:
            self.bar.write(line, file=sys.stderr)
        elif self.wanted:
            print(line, file=sys.stderr, flush=True)

    def print(self, line):
        """On standard output, bar or not."""
        if self.bar is not None:
            self.bar.write(line)
            sys.stdout.flush()
        else:
            print(line, flush=True)

    def finish(self):
        if self.bar is not None and self.bar.total:
            self.bar.n = self.bar.total
            self.bar.set_description("finished")

    def close(self):
        if self.bar is not None:
            self.bar.close()


def command(arguments):
    """The master ends with this process, whatever ends it; it then stops as after Ctrl-C."""
    with_parent = ["setpriv", "--pdeathsig", "INT"] if shutil.which("setpriv") else []
    return [*with_parent, programs.find("gleaner-master"), "--log-format", "json", *map(str, arguments)]


def train(arguments, progress):
    """Runs a master to its end and returns its event `finished`, and the list of its evaluations.

    Ctrl-C lets the open round become a checkpoint; KeyboardInterrupt goes on when the master has
    ended. A second one gives the round up. TrainingError says why a master refused or gave up.
    """
    bar = Bar(progress)
    with tempfile.TemporaryFile() as complaints:
        # A session of its own: Ctrl-C reaches this process alone, which passes it on.
        master = subprocess.Popen(command(arguments), stdout=subprocess.PIPE, stderr=complaints,
                                  stdin=subprocess.DEVNULL, text=True, start_new_session=True)
        try:
            return _follow(master, bar, complaints)
        except BaseException:
            _end(master)
            raise
        finally:
            bar.close()
            master.stdout.close()


class Interrupts:
    """Ctrl-C while a master trains: passed on to it, rather than raised in the middle of a line."""

    def __init__(self, master, bar):
        self.master, self.bar, self.count, self.before = master, bar, 0, None

    def __enter__(self):
        # Only the main thread gets signals, and who ignores them goes on doing so.
        is_main = threading.current_thread() is threading.main_thread()
        if is_main and signal.getsignal(signal.SIGINT) not in (signal.SIG_IGN, None):
            self.before = signal.signal(signal.SIGINT, self.pass_on)
        return self

    def __exit__(self, *_):
        if self.before is not None:
            signal.signal(signal.SIGINT, self.before)

    def pass_on(self, *_):
        self.count += 1
        self.master.send_signal(signal.SIGINT)
        with contextlib.suppress(RuntimeError):  # it came while a line was being written
            self.bar.say("Stopping after the open round; Ctrl-C again gives it up." if self.count == 1
                         else "Giving the open round up.")


def _follow(master, bar, complaints):
    last, evaluations = {}, []
    with Interrupts(master, bar) as interrupts:
        for line in master.stdout:
            last = json.loads(line)
            if last["event"] == "evaluated":
                evaluations.append(last)
            _show(last, bar)
        master.wait()
    kind = last.get("event")
    if kind == "finished":
        return last, evaluations
    if interrupts.count > 0:
        raise KeyboardInterrupt
    if kind == "error":
        refusal = Refused if last["exit"] in (2, 3) else TrainingError
        raise refusal(last["message"], last["code"], last["exit"])
    if master.returncode == 0:
        raise TrainingError("the master was stopped before the end; resume() goes on")
    complaints.seek(0)
    said = complaints.read().decode(errors="replace").strip()
    refusal = Refused if master.returncode in (2, 3) else TrainingError
    raise refusal(said or f"gleaner-master ended with status {master.returncode}", exit_code=master.returncode)


def _show(event, bar):
    kind = event["event"]
    if kind == "progress":
        bar.progress(event)
    elif kind == "listening" and event["join"]:
        # A caller that gave listen= must see the line.
        bar.print(f"Other machines join with: gleaner-volunteer {event['join']}")
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
    if master.poll() is None:
        master.send_signal(signal.SIGTERM)
        try:
            master.wait(60)
        except subprocess.TimeoutExpired:
            os.kill(master.pid, signal.SIGKILL)
            master.wait()
