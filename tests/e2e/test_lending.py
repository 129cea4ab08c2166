"""A lent machine: pauses change no bit, long pauses hand the shards over, leaving is quick, the volunteer obeys
its owner alone, and people's activity pauses it."""

import json
import os
import pathlib
import pty
import re
import shutil
import signal
import subprocess
import threading
import time
import unittest

from harness import BIN, ENDLESS, LATE_SECONDS, ROOT, RUN_SECONDS, TIME_FACTOR, Cluster, EndToEndTest, Setup, finished, small_setup

# Debian's own interpreter, to which Debian's modules belong.
SYSTEM_PYTHON = "/usr/bin/python3"
MOCK = pathlib.Path(__file__).with_name("mock_logind.py")


def eventually(condition, what, seconds=RUN_SECONDS):
    """Waits until condition() is true and returns it."""
    deadline = time.monotonic() + seconds
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > deadline:
            raise AssertionError(f"did not happen: {what}")
        threading.Event().wait(0.02)


def processor_seconds(pid):
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


class Lending(EndToEndTest):
    """Runs over one data set, with a reference that nobody paused."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.shared = Cluster()
        cls.addClassCleanup(cls.shared.close)
        cls.setup = small_setup(cls.shared, points=12000)
        cls.reference = cls.setup.run_local(cls.shared, cls.shared.path("reference"))

    def start(self, *flags, volunteers=1, once=True, environment=None, hold=None):
        """A master and volunteers; returns the master, the volunteers, and their sockets."""
        master = self.setup.start_master(
            self.cluster, self.cluster.path("store"), "--listen", "127.0.0.1:0", "--threads", 1,
            "--min-volunteers", volunteers, hold=hold)
        self.address = master.wait_event("listening")["address"]
        programs = [self.cluster.volunteer(self.address, *flags, once=once, environment=environment)
                    for _ in range(volunteers)]
        return master, programs, [self.cluster.path(f"control-{i + 1}") for i in range(volunteers)]

    def give_master(self, *flags):
        self.setup = Setup(self.setup.train, self.setup.test, [*self.setup.flags, *flags])

    def verb(self, socket, *words, before=()):
        """Exit code, standard output and standard error of a verb."""
        command = [*before, str(BIN / "gleaner-volunteer"), *words, "--control", str(socket)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
        return done.returncode, done.stdout, done.stderr

    def status(self, socket):
        code, out, error = self.verb(socket, "status", "--json")
        self.assertEqual(code, 0, error)
        return json.loads(out)

    def answers(self, socket):
        """The status, or None while no volunteer answers: a socket has its name before it listens."""
        code, out, _ = self.verb(socket, "status", "--json")
        return json.loads(out) if code == 0 else None

    def wait_reason(self, socket, reason, said=""):
        def is_given():
            status = self.answers(socket)
            is_it = status and status["verdict"]["reason"] == reason and said in status["sentence"]
            return status if is_it else None

        return eventually(is_given, f"the reason {reason} ({said}) at {socket}")

    def assert_same_model(self, master):
        self.assertEqual(finished(master)["digest"], self.reference["digest"])


class Pauses(Lending):
    @staticmethod
    def is_still(master, volunteer):
        """Waits for a second; whether the volunteer computed nothing in it, and no checkpoint came."""
        before, done = processor_seconds(volunteer.pid), len(master.events("checkpoint"))
        threading.Event().wait(1)
        return (processor_seconds(volunteer.pid) - before < 0.3 * TIME_FACTOR
                and len(master.events("checkpoint")) == done)

    def test_pauses_in_mid_run_change_no_bit_and_use_no_processor(self):
        master, (volunteer,), (socket,) = self.start("--keep-shards-s", 300, hold=1)
        for checkpoint, then in ((1, 3), (3, None)):
            master.wait_checkpoint(checkpoint)
            code, out, error = self.verb(socket, "snooze", "200s")
            self.assertEqual(code, 0, error)
            master.let_go(then)
            self.assertRegex(out, "paused by its owner since [0-9:]*, until [0-9:]*[.]")
            master.wait_event("log", lambda event: "is paused by its owner" in event["message"])
            eventually(lambda: self.is_still(master, volunteer), "a second in which nothing is computed")
            status = self.status(socket)
            self.assertGreater(len(status["shards"]), 0)
            self.assertGreater(status["held_bytes"], 0)
            code, out, error = self.verb(socket, "resume")
            self.assertEqual(code, 0, error)
            self.assertNotIn("paused", out)
        self.assert_same_model(master)
        self.assertEqual(volunteer.wait_exit(), 0, volunteer.said())

    def test_a_pause_without_an_end_hands_over_at_once_and_says_who_wanted_it(self):
        master, _, sockets = self.start(volunteers=2, hold=1)
        master.wait_checkpoint(1)
        began = time.monotonic()
        code, out, error = self.verb(sockets[0], "pause")
        master.let_go()
        self.assertEqual(code, 0, error)
        self.assertIn("paused by its owner since ", out)
        self.assertIn("until somebody resumes it", out)
        gone = master.wait_event("volunteer_left")
        self.assertLess(time.monotonic() - began, LATE_SECONDS)
        self.assertTrue(gone["polite"], master.said())
        store = self.cluster.path("store")
        went = json.loads(self.cluster.gleaner("status", store, "--json"))["gone"][-1]
        self.assertEqual(went["reason"], "paused by its owner")
        self.assertIn("ago: paused by its owner", self.cluster.gleaner("why", gone["name"], store))
        self.verb(sockets[0], "resume")
        self.assert_same_model(master)

    def test_a_long_pause_hands_over_and_gives_the_memory_back(self):
        master, _, sockets = self.start(volunteers=2, hold=1)
        master.wait_checkpoint(1)
        code, _, error = self.verb(sockets[0], "snooze", "1h")
        master.let_go()
        self.assertEqual(code, 0, error)
        gone = master.wait_event("volunteer_left")
        self.assertTrue(gone["polite"], master.said())
        status = eventually(lambda: self.status(sockets[0])["held_bytes"] == 0
                            and self.status(sockets[0]), "memory is given back")
        self.assertEqual(status["verdict"]["reason"], "snoozed")
        self.assertEqual(status["shards"], [])
        self.assertAlmostEqual(status["verdict"]["until_seconds"], 3600, delta=120)
        self.assert_same_model(master)
        code, out, error = self.verb(sockets[0], "log")
        self.assertEqual(code, 0, error)
        self.assertIn("paused by its owner since ", out)

    def test_it_is_told_the_run_s_name_and_what_it_is_for(self):
        self.give_master("--purpose", "Names birds by their songs")
        master, (volunteer,), (socket,) = self.start()
        volunteer.wait_said("works for the run store: Names birds by their songs")
        self.assertEqual(self.status(socket)["run_name"], "store")
        self.assertRegex(self.verb(socket, "status")[1], r"run +store: Names birds by their songs\n")

    def test_after_the_run_it_gives_thanks_keeps_them_and_stops_trying(self):
        cache = self.cluster.path("cache")
        master, (volunteer,), (socket,) = self.start("--cache", cache, once=False)
        self.assert_same_model(master)
        status = eventually(lambda: self.status(socket)["sentence"].startswith("finished: thank you, ")
                            and self.status(socket), "thanks")
        self.assertEqual((status["shards"], status["held_bytes"]), ([], 0))
        self.assertNotIn("cannot reach", volunteer.said())
        volunteer.signal(signal.SIGTERM)
        self.assertEqual(volunteer.wait_exit(), 0, volunteer.said())
        # The master is gone, and what was done for it is known all the same.
        again = self.cluster.volunteer(self.address, "--cache", cache, once=False)
        again.wait_said("cannot reach")
        code, out, error = self.verb(self.cluster.path(f"control-{self.cluster._names}"), "log")
        self.assertEqual(code, 0, error)
        key = re.search("/([a-z2-7]{26})[.]", self.cluster.line(self.address))[1]
        signed = f"finished: thank you, .* examples, for the run store; signed by master {key} for volunteer "
        self.assertRegex(out, signed)
        # Nor must the volunteer run; and who changes what it did is found out.
        again.kill()
        self.assertRegex(self.verb(socket, "log", "--cache", cache)[1], signed)
        finished_file = pathlib.Path(cache, "finished")
        finished_file.write_text(re.sub(r"(\t[1-9]\d*)(\t[0-2]\t1\t)", r"\g<1>0\2", finished_file.read_text()))
        self.assertIn("was changed since\n", self.verb(socket, "log", "--cache", cache)[1])

    def test_one_that_rests_comes_back(self):
        master, _, (socket,) = self.start("--keep-shards-s", 0, hold=1)
        master.wait_checkpoint(1)
        self.verb(socket, "pause")
        master.let_go()
        master.wait_event("volunteer_left")
        eventually(lambda: self.status(socket)["held_bytes"] == 0, "memory is given back")
        self.verb(socket, "resume")
        self.assert_same_model(master)

    def test_finish_hands_over_and_ends(self):
        master, volunteers, sockets = self.start(volunteers=2, hold=1)
        master.wait_checkpoint(1)
        code, _, error = self.verb(sockets[1], "finish")
        master.let_go()
        self.assertEqual(code, 0, error)
        self.assertEqual(volunteers[1].wait_exit(), 0, volunteers[1].said())
        self.assertTrue(master.wait_event("volunteer_left")["polite"])
        self.assertFalse(sockets[1].exists())
        self.assert_same_model(master)

    def test_one_whose_time_ends_hands_over_before(self):
        seconds = 10 * TIME_FACTOR
        for by_job in (False, True):
            with self.subTest(by_job=by_job):
                shutil.rmtree(self.cluster.path("store"), ignore_errors=True)
                end = int(time.time() + seconds)
                how = {"environment": {"SLURM_JOB_END_TIME": str(end)}} if by_job else {}
                flags = () if by_job else ("--until", f"@{end}")
                master, volunteers, _ = self.start("--keep-shards-s", 300, *flags, volunteers=2, hold=1, **how)
                master.wait_checkpoint(1)
                # The run waits for this one, and is not over before.
                self.verb(self.cluster.path(f"control-{self.cluster._names}"), "snooze", "200s")
                master.let_go()
                for volunteer in volunteers:
                    self.assertEqual(volunteer.wait_exit(), 0, volunteer.said())
                self.assertLess(time.time(), end + LATE_SECONDS)
                self.assertEqual([event["polite"] for event in master.events("volunteer_left")], [True, True])
                leaving = [event for event in master.events("log") if "its time here ends in" in event["message"]]
                self.assertEqual(len(leaving), 2, master.said())
                self.cluster.volunteer(self.address)
                self.assert_same_model(master)

    def test_sigterm_ends_within_5_s_at_work_and_in_a_pause(self):
        for pauses in (False, True):
            with self.subTest(pauses=pauses):
                shutil.rmtree(self.cluster.path("store"), ignore_errors=True)
                master, (volunteer,), _ = self.start(hold=1)
                master.wait_checkpoint(1)
                if pauses:
                    self.verb(self.cluster.path(f"control-{self.cluster._names}"), "pause")
                master.let_go()
                begin = time.monotonic()
                volunteer.signal(signal.SIGTERM)
                self.assertEqual(volunteer.wait_exit(), 0, volunteer.said())
                self.assertLess(time.monotonic() - begin, 5 + LATE_SECONDS)
                self.cluster.volunteer(self.address)
                self.assert_same_model(master)

    def test_sigterm_ends_within_5_s_when_the_master_is_frozen(self):
        master, (volunteer,), _ = self.start(hold=1)
        master.wait_checkpoint(1)
        master.pause()
        begin = time.monotonic()
        volunteer.signal(signal.SIGTERM)
        self.assertEqual(volunteer.wait_exit(), 0, volunteer.said())
        self.assertLess(time.monotonic() - begin, 5 + LATE_SECONDS)
        master.go_on()
        self.cluster.volunteer(self.address)
        self.assert_same_model(master)

    def test_a_day_s_traffic_that_is_spent_pauses_until_midnight(self):
        self.setup = self.setup.with_flag("--epochs", ENDLESS)
        _, _, (socket,) = self.start("--down-per-day", "1M")
        status = self.wait_reason(socket, "traffic")
        self.assertIn("received", status["sentence"])
        self.assertGreater(status["today"]["down_bytes"], 1 << 20)
        self.assertLessEqual(status["verdict"]["until_seconds"], 24 * 3600)


class Control(Lending):
    def test_the_status_is_a_sentence_and_a_table(self):
        master, _, (socket,) = self.start(hold=1)
        master.wait_checkpoint(1)
        code, out, error = self.verb(socket, "status")
        self.assertEqual(code, 0, error)
        self.assertRegex(out, r"^[a-z][^\n]*\(it may always work\)\.\n\n  master +127\.0\.0\.1:")
        self.assertRegex(out, r"\n  today +[1-9]\d* examples, \d")
        self.assertEqual(os.stat(socket).st_mode & 0o777, 0o600)
        for words in (("status", "--nonsense"), ("snooze", "soon"), ("snooze",)):
            self.assertEqual(self.verb(socket, *words)[0], 2, words)
        code, _, error = self.verb(self.cluster.path("nobody"), "status")
        self.assertEqual(code, 1)
        self.assertIn("no volunteer answers", error)

    def test_who_names_no_socket_asks_the_service_of_the_package_too(self):
        unit = (ROOT / "tools/packaging/debian/gleaner-volunteer.service").read_text(encoding="utf-8")
        folder = re.search("^RuntimeDirectory=(.+)$", unit, re.MULTILINE)[1]
        runtime = self.cluster.path(folder)
        runtime.mkdir()
        self.start()
        self.cluster.start("gleaner-volunteer", self.cluster.line(self.address), "--cache", "",
                           environment={"RUNTIME_DIRECTORY": str(runtime)})
        (socket,) = eventually(lambda: list(runtime.iterdir()), "its socket")
        asked = subprocess.run([BIN / "gleaner-volunteer", "status"], capture_output=True, text=True, check=False,
                               env={"HOME": str(self.cluster.path("home"))})
        self.assertEqual(asked.returncode, 1, asked.stdout)
        self.assertIn(f" /run/{folder}/{socket.name}: ", asked.stderr)

    def test_its_threads_give_way_each_as_far_as_its_work_allows(self):
        master, (volunteer,), _ = self.start("--nice", "idle", hold=1)
        master.wait_checkpoint(1)
        threads = [(task / "stat").read_text(encoding="utf-8").rpartition(")")[2].split()
                   for task in sorted(pathlib.Path(f"/proc/{volunteer.pid}/task").iterdir(), key=lambda t: int(t.name))]
        policies = [(int(fields[38]), int(fields[16])) for fields in threads]
        own = os.getpriority(os.PRIO_PROCESS, 0)  # which all begin with
        self.assertEqual(policies[0], (os.SCHED_OTHER, max(own, 10)))  # it decrypts and unpacks
        self.assertEqual({policy for policy, _ in policies[1:]}, {os.SCHED_IDLE, os.SCHED_OTHER})
        self.assertIn((os.SCHED_OTHER, own), policies[1:])  # the watch notices people at once

    @unittest.skipUnless(os.geteuid() == 0 and shutil.which("setpriv"), "needs root and setpriv")
    def test_other_users_are_refused(self):
        _, _, (socket,) = self.start()
        eventually(lambda: self.answers(socket), "the volunteer's answer")
        os.chmod(self.cluster.folder, 0o755)
        # The program lies where nobody else may look.
        program = self.cluster.path("gleaner-volunteer")
        shutil.copy(BIN / "gleaner-volunteer", program)
        nobody = ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups", str(program)]

        def ask_as_nobody():
            return subprocess.run([*nobody, "status", "--control", str(socket)], capture_output=True,
                                  text=True, timeout=60, check=False)

        done = ask_as_nobody()
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("Permission denied", done.stderr)
        os.chmod(socket, 0o666)  # whoever opens the file still has to be the owner
        done = ask_as_nobody()
        self.assertNotEqual(done.returncode, 0, done.stdout)
        self.assertIn("only the volunteer's own user and root", done.stderr)
        self.assertEqual(self.verb(socket, "status")[0], 0)


IDLE = ("--when", "idle", "--idle-after-s", 2)


class People(Lending):
    def test_typing_in_a_terminal_pauses(self):
        leader, follower = pty.openpty()
        self.addCleanup(os.close, leader)
        self.addCleanup(os.close, follower)
        self.setup = self.setup.with_flag("--epochs", 4000)  # a volunteer rests when its run is complete
        _, _, (socket,) = self.start(*IDLE, once=False)
        # Its access time moves at once only after a rest of 8 s (volunteer/lend/watch.hpp).
        self.wait_reason(socket, "none")
        threading.Event().wait(9)
        os.write(leader, b"x\n")
        os.read(follower, 10)
        status = self.wait_reason(socket, "in_use")
        self.assertIn("terminals: pts/", status["sentence"])
        self.assertLessEqual(status["verdict"]["until_seconds"], 2)
        self.wait_reason(socket, "none")

    def test_what_logind_says_pauses_and_resumes(self):
        if shutil.which("dbus-daemon") is None or subprocess.run(
                [SYSTEM_PYTHON, "-c", "import dbus, gi"], capture_output=True, check=False).returncode:
            self.skipTest("needs Debian's dbus, python3-dbus and python3-gi")
        daemon = subprocess.Popen(
            ["dbus-daemon", "--session", "--nofork", "--print-address"], stdout=subprocess.PIPE, text=True)
        self.addCleanup(daemon.wait)
        self.addCleanup(daemon.terminate)
        bus = {"DBUS_SYSTEM_BUS_ADDRESS": daemon.stdout.readline().strip()}
        self.addCleanup(daemon.stdout.close)
        mock = subprocess.Popen([SYSTEM_PYTHON, str(MOCK)], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                text=True, env={**os.environ, **bus})
        self.addCleanup(mock.stdout.close)
        self.addCleanup(mock.wait)
        self.addCleanup(mock.stdin.close)

        def happen(line):
            mock.stdin.write(line + "\n")
            mock.stdin.flush()

        def heard(line):
            self.assertEqual(mock.stdout.readline().strip(), line)

        heard("ready")
        happen("idle 600")
        self.setup = self.setup.with_flag("--epochs", ENDLESS)
        master, _, (socket,) = self.start(*IDLE, once=False, environment=bus)
        heard("locked")
        self.wait_reason(socket, "none")
        happen("active")
        self.wait_reason(socket, "in_use", "logind: session 2")
        happen("lock")
        self.wait_reason(socket, "none")
        happen("film")
        self.wait_reason(socket, "in_use", "film")
        happen("end")
        self.wait_reason(socket, "none")
        # Sleep waits until the shards are handed over.
        happen("sleep")
        heard("released")
        status = self.wait_reason(socket, "suspending")
        self.assertEqual(status["held_bytes"], 0)
        self.assertTrue(master.wait_event("volunteer_left")["polite"])
        happen("wake")
        heard("locked")
        self.wait_reason(socket, "none")
        # A logind that is gone is not known to be idle.
        mock.kill()
        self.wait_reason(socket, "unknown_use", "logind")

    def test_input_in_an_x11_session_pauses_through_the_helper(self):
        if shutil.which("Xvfb") is None or shutil.which("xdotool") is None:
            self.skipTest("needs Debian's xvfb and xdotool")
        reader, writer = os.pipe()
        server = subprocess.Popen(["Xvfb", "-displayfd", str(writer), "-nolisten", "tcp"],
                                  pass_fds=[writer], stderr=subprocess.DEVNULL)
        self.addCleanup(server.wait)
        self.addCleanup(server.terminate)
        os.close(writer)
        with os.fdopen(reader) as lines:
            display = {**os.environ, "DISPLAY": ":" + lines.readline().strip()}
        _, _, (socket,) = self.start(*IDLE, once=False)
        # A display is here, and nobody tells of it yet.
        self.wait_reason(socket, "unknown_use", "session-helper")
        helper = subprocess.Popen(
            [str(BIN / "gleaner-volunteer"), "session-helper", "--control", str(socket)],
            env={**display, "XDG_SESSION_ID": "7"}, stderr=subprocess.DEVNULL)
        self.addCleanup(helper.wait)
        self.addCleanup(helper.terminate)
        self.wait_reason(socket, "none")
        subprocess.run(["xdotool", "mousemove", "10", "20"], env=display, check=True)
        self.wait_reason(socket, "in_use", "session helper: session 7")
        self.wait_reason(socket, "none")
        helper.terminate()
        self.wait_reason(socket, "unknown_use")


if __name__ == "__main__":
    unittest.main()
