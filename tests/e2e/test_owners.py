"""The owner of a lent machine, and the owner of several runs: what each is told and can change without a new start."""

import base64
import json
import os
import shutil
import signal
import socket
import subprocess
import unittest
import urllib.request
import zlib

from harness import BIN, ENDLESS, Cluster, EndToEndTest, Setup, finished, small_setup
from test_lending import eventually


class Owners(EndToEndTest):
    """Tests that need a run, and no end of it."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.shared = Cluster()
        cls.addClassCleanup(cls.shared.close)
        cls.setup = small_setup(cls.shared, points=3000).with_flag("--epochs", ENDLESS)

    def start_master(self, *flags, listen="127.0.0.1:0", **others):
        master = self.setup.start_master(self.cluster, self.cluster.path("store"), "--listen", listen,
                                         "--threads", 1, *flags, **others)
        self.address = master.wait_event("listening")["address"]
        return master

    def run_volunteer(self, *words):
        """Exit code, standard output and standard error of gleaner-volunteer."""
        done = subprocess.run([str(BIN / "gleaner-volunteer"), *map(str, words)], capture_output=True, text=True,
                              timeout=120, check=False, stdin=subprocess.DEVNULL)
        return done.returncode, done.stdout, done.stderr


class About(Owners):
    def test_a_lender_is_told_of_the_run_and_does_not_join(self):
        master = self.start_master("--purpose", "Names birds by their songs.")
        code, out, error = self.run_volunteer("about", self.cluster.line(self.address))
        self.assertEqual(code, 0, error)
        for piece in (f"The run store of the master at {self.address}: Names birds by their songs.", "2,000 labels",
                      "64 hidden units", "KiB for one of its 11 shards", "none is measured", "no code is received",
                      "has not joined"):
            self.assertIn(piece, " ".join(out.split()))
        self.assertLessEqual(len(out.splitlines()), 24, out)
        self.assertEqual(master.events("volunteer_joined"), [])

    def test_asking_does_not_use_up_an_invite_for_one_machine(self):
        master = self.start_master()
        made = self.cluster.gleaner("invite", "create", self.cluster.path("store"))
        line = next(word for word in made.split() if word.startswith("gleaner://"))
        for _ in range(2):
            self.assertEqual(self.run_volunteer("about", line)[0], 0)
        self.cluster.volunteer(line)
        master.wait_event("volunteer_joined")
        code, _, error = self.run_volunteer("about", line)
        self.assertEqual(code, 5)
        self.assertIn("another one has used it", error)

    def test_a_plain_master_and_no_master_are_told(self):
        self.start_master("--insecure")
        code, out, error = self.run_volunteer("about", self.address, "--insecure")
        self.assertEqual(code, 0, error)
        self.assertIn("2,000 labels", out)
        code, _, error = self.run_volunteer("about", self.address)
        self.assertEqual(code, 2)
        self.assertIn("--insecure", error)
        code, _, error = self.run_volunteer("about", "127.0.0.1:1", "--insecure")
        self.assertEqual(code, 5)
        self.assertIn("127.0.0.1:1", error)


class Limits(Owners):
    def verb(self, *words):
        return self.run_volunteer(*words, "--control", self.cluster.path("control-1"))

    def status(self):
        code, out, error = self.verb("status", "--json")
        self.assertEqual(code, 0, error)
        return json.loads(out)

    def start_volunteer(self, *flags):
        master = self.start_master()
        volunteer = self.cluster.volunteer(self.address, *flags, threads=2, once=False)
        master.wait_checkpoint(1)
        return volunteer

    def wait_reason(self, reason):
        return eventually(lambda: (status := self.status())["verdict"]["reason"] == reason and status, reason)

    def test_hours_and_threads_change_while_it_works(self):
        self.start_volunteer()
        self.assertEqual(self.status()["threads"], 2)
        code, out, error = self.verb("set", "--threads", 1)
        self.assertEqual(code, 0, error)
        self.assertIn("threads         1", out)
        # Hours that are not now.
        hour = (int(subprocess.run(["date", "+%H"], capture_output=True, text=True, check=True).stdout) + 2) % 24
        self.assertEqual(self.verb("set", "--hours", f"{hour}-{(hour + 2) % 24 or 24}")[0], 0)
        self.assertEqual(self.wait_reason("schedule")["when"], "schedule")
        self.assertEqual(self.verb("set", "--when=always", "--threads=2", "--limit-down=100")[0], 0)
        self.assertEqual(self.wait_reason("none")["threads"], 2)

    def test_fewer_threads_train_the_same_model(self):
        setup = small_setup(self.cluster, points=3000)
        reference = setup.run_local(self.cluster, self.cluster.path("reference"))
        master = setup.start_master(self.cluster, self.cluster.path("store"), "--listen", "127.0.0.1:0", hold=1)
        self.cluster.volunteer(master.wait_event("listening")["address"], threads=2)
        master.wait_checkpoint(1)
        self.assertEqual(self.verb("set", "--threads", 1)[0], 0)
        master.let_go()
        self.assertEqual(finished(master)["digest"], reference["digest"])

    def test_a_change_that_cannot_be_is_refused_and_changes_nothing(self):
        self.start_volunteer()
        for flags, words in ((("--memory", "1G"), "--memory is obeyed at the start alone"),
                             (("--threads", "3"), "it was started with 2"),
                             (("--hours", "soon"), "'soon' is no hours"),
                             (("--nonsense", "1"), "Unknown flag --nonsense"),
                             (("--when", "idle", "--threads", "0"), "--threads is '0'")):
            code, _, error = self.verb("set", *flags)
            self.assertEqual(code, 1, flags)
            self.assertIn(words, error)
        status = self.status()
        self.assertEqual((status["threads"], status["when"]), (2, "always"))
        self.assertEqual(self.verb("set")[0], 2)


class Moving(Owners):
    def test_a_volunteer_follows_the_line_file_when_the_master_moves(self):
        file = self.cluster.path("line")
        master = self.start_master(hold=1)
        file.write_text(self.cluster.line(self.address) + "\n", encoding="utf-8")
        file.chmod(0o600)
        volunteer = self.cluster.start(
            "gleaner-volunteer", "--line-file", file, "--retry-ms-min", 20, "--retry-ms-max", 200, "--when", "always",
            "--control", self.cluster.path("control"), "--threads", 1)
        master.wait_checkpoint(1)
        before = self.address
        master.kill()
        moved = self.start_master()  # at another port
        moved.wait_said(f"this run's lines named {before} until now")
        file.write_text(self.cluster.line(self.address) + "\n", encoding="utf-8")
        moved.wait_event("volunteer_joined")
        volunteer.wait_said(f"the line names {self.address} now")
        code, out, _ = self.run_volunteer("status", "--json", "--control", self.cluster.path("control"))
        self.assertEqual((code, json.loads(out)["master"]), (0, self.address))

    def test_the_line_of_another_master_is_not_followed(self):
        file = self.cluster.path("line")
        master = self.start_master()
        mine = self.cluster.line(self.address)
        file.write_text(mine, encoding="utf-8")
        file.chmod(0o600)
        other = self.setup.start_master(self.cluster, self.cluster.path("other"), "--listen", "127.0.0.1:0")
        line = self.cluster.line(other.wait_event("listening")["address"])
        volunteer = self.cluster.start("gleaner-volunteer", "--line-file", file, "--retry-ms-min", 20,
                                       "--retry-ms-max", 200, "--when", "always", "--control",
                                       self.cluster.path("control"), "--threads", 1)
        master.wait_event("volunteer_joined")
        file.write_text(line, encoding="utf-8")
        master.kill()
        volunteer.wait_said("has the line of another master now")
        self.assertEqual(other.events("volunteer_joined"), [])

    @unittest.skipUnless(os.geteuid() == 0 and shutil.which("unshare"), "needs root and unshare (util-linux)")
    def test_the_name_in_a_line_is_looked_up_again(self):
        """The master moves from 127.0.0.2 to 127.0.0.3, and its name with it."""
        hosts = self.cluster.path("hosts")
        hosts.write_text("127.0.0.2 master.test\n", encoding="utf-8")
        first = self.start_master(listen="127.0.0.2:0", hold=1)
        port = self.address.rsplit(":", 1)[1]
        line = self.cluster.line(self.address).replace("127.0.0.2", "master.test")
        self.cluster.volunteer(line, before=("unshare", "--mount", "sh", "-c",
                                             f"mount --bind {hosts} /etc/hosts && exec \"$@\"", "sh"))
        first.wait_checkpoint(1)
        first.kill()
        hosts.write_text("127.0.0.3 master.test\n", encoding="utf-8")
        self.start_master(listen=f"127.0.0.3:{port}").wait_event("volunteer_joined")

    def test_a_copy_of_a_store_says_that_it_is_one(self):
        store, copy = self.cluster.path("store"), self.cluster.path("copy")
        master = self.start_master("--local", 1, hold=1)
        master.wait_checkpoint(1)
        master.kill()
        shutil.copytree(store, copy)
        for folder, is_copy in ((copy, True), (store, False)):
            again = self.setup.start_master(self.cluster, folder, "--listen", "127.0.0.1:0")
            again.wait_event("listening")
            again.signal(signal.SIGTERM)
            again.wait_exit()
            self.assertEqual(f"this store is a copy of {store}, which still exists" in again.said(), is_copy, again.said())
        moved = self.cluster.path("moved")
        shutil.rmtree(copy)
        store.rename(moved)
        again = self.setup.start_master(self.cluster, moved, "--listen", "127.0.0.1:0")
        again.wait_event("listening")
        again.signal(signal.SIGTERM)
        again.wait_exit()
        self.assertNotIn("is a copy", again.said())


class Identity(Owners):
    def test_a_key_moves_to_another_machine_with_its_account(self):
        master = self.start_master(hold=1)
        caches = [self.cluster.path("one"), self.cluster.path("two")]
        file = self.cluster.path("key")
        first = self.cluster.volunteer(self.address, "--cache", caches[0])
        master.wait_checkpoint(1)
        code, shown, error = self.run_volunteer("identity", "--cache", caches[0])
        self.assertEqual(code, 0, error)
        code, _, error = self.run_volunteer("identity", "export", file, "--cache", caches[0])
        self.assertEqual(code, 0, error)
        self.assertEqual(file.stat().st_mode & 0o777, 0o600)
        code, out, error = self.run_volunteer("identity", "import", file, "--cache", caches[1])
        self.assertEqual(code, 0, error)
        self.assertIn("on one machine at a time", out)
        self.assertEqual(self.run_volunteer("identity", "--cache", caches[1])[1], shown)
        # The second takes the first one's place, since it has its key.
        self.cluster.volunteer(self.address, "--cache", caches[1])
        master.let_go()
        first.wait_exit()
        self.assertIn("another volunteer with the same key", first.said())
        master.wait_checkpoint(5)
        master.signal(signal.SIGTERM)
        master.wait_exit()
        accounts = json.loads(self.cluster.gleaner("inspect", self.cluster.path("store"), "volunteers", "--json"))
        self.assertEqual([one["identity"] for one in accounts["volunteers"]], [shown.strip()])

    def test_a_key_is_never_overwritten(self):
        master = self.start_master()
        caches = [self.cluster.path("one"), self.cluster.path("two")]
        for cache in caches:
            self.cluster.volunteer(self.address, "--cache", cache)
        master.wait_for(lambda: len(master.events("volunteer_joined")) == 2, "two volunteers")
        shown = self.run_volunteer("identity", "--cache", caches[1])[1]
        code, _, error = self.run_volunteer("identity", "import", caches[0] / "key", "--cache", caches[1])
        self.assertEqual(code, 2)
        self.assertIn("move it away first", error)
        self.assertEqual(self.run_volunteer("identity", "--cache", caches[1])[1], shown)
        for words in (("identity",), ("identity", "export", "--cache", caches[0]), ("identity", "--cache", "none")):
            self.assertNotEqual(self.run_volunteer(*words)[0], 0)


# What the volunteer of commit b14bcd09, which trains without a hidden layer by another rule, sends first in plain text.
OLDER_HELLO = zlib.decompress(base64.b64decode(
    "eNorYGJgYFpQbMEABL4MEMAIhMiAjYGVQQBICwHxrT//ubWmKkkxwNUyMJzdaecIpFiQ9QgCsRGUVoLSVlCaC0p/B2IDPUM9AyCd"
    "mJcH1pdYVmFqaIQwxwbqHpaWEBae5dxxhVDzntWWXb7jNLk9F8jWAuKdItq7ufpn3csEsquA+J+cxqkE/+5SED8IiGPmRCysOC1m"
    "BuJHAfHtK4eDpDvE9sPU+4sfy9nZ8X49iO8FxMlee27x7Ht1FqZ+0ucbOwzOB22H8e+G7G1wS1DxBfGLgHi5/F3j57lb9UH8LCD+"
    "fMrjR2xS9SIQPwmIZQt+ck1bfCsSZr55deNLja5VbjC+3mTbbk+bu5Yw81LySyDhUVFQCaKLS3Pj89PiiwtLE4tSi4Fqcovji0tS"
    "C4qh4ZSSCpTJK8ksToXwi/JL81Li04sSUzJT84BG5eSnZxaXZCbDwrWkKDEzL74ovxxqQHFyflEqEr+gKD8rNbkkPjk/BWQdnA9T"
    "ATE/JTWnJBHizpQUJN1Q8zPz0mH88syU1HgkQQB6s5Nm"))


class Versions(Owners):
    def greet(self, flags, texts=None):
        """A master's events, and its answer to an older volunteer."""
        if texts:
            setup = Setup(texts / "train.txt", texts / "test.txt", ["--epochs", 3])
            master = setup.start_master(self.cluster, self.cluster.path("store"), "--listen", "127.0.0.1:0", *flags)
        else:
            master = self.start_master(*flags)
        host, port = master.wait_event("listening")["address"].split(":")
        peer = socket.create_connection((host, int(port)))
        self.addCleanup(peer.close)
        peer.sendall(OLDER_HELLO)
        return master, peer

    def test_an_older_volunteer_helps_a_run_whose_rule_is_the_same(self):
        master, _ = self.greet(["--insecure"])
        self.assertEqual(master.wait_event("volunteer_joined")["name"], "ann")

    def test_an_older_volunteer_is_refused_where_the_rule_has_changed(self):
        texts = self.cluster.texts("texts", {"a": "aa bb cc dd", "b": "ee ff gg hh"})
        master, peer = self.greet(["--insecure"], texts)
        answer = b"".join(iter(lambda: peer.recv(65536), b"")).decode("utf-8", "replace")
        self.assertIn("which protocol 21 has, and the volunteer (version 0.1.0) speaks up to 18: update the volunteer",
                      answer)
        self.assertEqual(master.events("volunteer_joined"), [])


class SeveralRuns(Owners):
    def metrics(self, url):
        with urllib.request.urlopen(url + "/metrics", timeout=60) as answer:
            return answer.read().decode()

    def test_every_metric_names_its_run_and_volunteers_have_series(self):
        master = self.start_master("--http", "127.0.0.1:0", "--backup", self.cluster.path("backups"), "--backup-every",
                                   0, "--backup-command", f'echo "$1" >> {self.cluster.path("handed-on")}; false')
        url = master.wait_event("page")["url"]
        for _ in range(2):  # two machines of one name
            self.cluster.volunteer(self.address, "--name", "ann")
        master.wait_for(lambda: len(master.events("volunteer_joined")) == 2, "two volunteers")
        master.wait_event("backup")
        master.wait_said("--backup-command failed")
        self.assertEqual(self.cluster.path("handed-on").read_text(encoding="utf-8").splitlines()[0],
                         str(self.cluster.path("backups")))
        text = eventually(lambda: (text := self.metrics(url)) and "backup_timestamp_seconds{" in text
                          and "volunteer_bytes_total{" in text and text, "figures")
        for line in text.splitlines():
            if not line.startswith("#"):
                self.assertIn('{run="store"', line)
        for series in ('gleaner_volunteer_speed{run="store",volunteer="ann"}',
                       'gleaner_volunteer_bytes_total{run="store",volunteer="ann",direction="down"}',
                       'gleaner_memory_bytes{run="store"}', 'gleaner_processor_seconds_total{run="store"}'):
            self.assertEqual(text.count(series), 1, text)
        failures = [line for line in text.splitlines() if line.startswith("gleaner_backup_failures_total{")]
        self.assertGreater(float(failures[0].split()[-1]), 0)

    def test_top_shows_all_runs_of_the_machine(self):
        names = ("north", "south")
        for name in names:
            self.setup.start_master(self.cluster, self.cluster.path(name), "--local", 1).wait_checkpoint(1)
        rows = {row["run"]: row for row in json.loads(self.cluster.gleaner("top", "--json"))["runs"]}
        for name in names:
            self.assertIn(rows[name]["stage"], ("training", "evaluating"))
            self.assertEqual(rows[name]["volunteers"], 1)
            self.assertEqual(rows[name]["store"], str(self.cluster.path(name)))
        text = self.cluster.gleaner("top", self.cluster.path("north"), self.cluster.path("nowhere"))
        self.assertRegex(text, r"(?m)^ *north +(training|evaluating) ")
        self.assertRegex(text, r"(?m)^ *nowhere .* no master trains it now")


if __name__ == "__main__":
    unittest.main()
