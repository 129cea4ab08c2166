"""`gleaner status` and `gleaner why` of a master that trains, is gone, or refuses."""

import json
import shutil
import os
import pathlib
import subprocess
import sys
import time
import unittest

from harness import BIN, ENDLESS, RUN_SECONDS, EndToEndTest, finished, small_setup


class Status(EndToEndTest):
    def setUp(self):
        super().setUp()
        self.setup = small_setup(self.cluster).with_flag("--epochs", 5)
        self.store = self.cluster.path("store")

    def ask(self, *arguments, code=0, environment=None):
        status, program = self.cluster.run("gleaner", *arguments, environment=environment)
        self.assertEqual(status, code, program.said())
        return "\n".join(program.out), "\n".join(program.error)

    def listening(self, *flags, environment=None, hold=None):
        master = self.setup.start_master(self.cluster, self.store, "--listen", "127.0.0.1:0",
                                         "--threads", 1, *flags, environment=environment, hold=hold)
        return master, master.wait_event("listening")["address"]

    def test_a_run_that_trains_is_told_by_address_and_by_store_and_is_not_disturbed(self):
        reference = self.setup.run_local(self.cluster, self.cluster.path("reference"))
        master, address = self.listening("--silence-ms", 600_000, hold=2)
        join = self.cluster.line(address)
        first = self.ask("why", "run", join)[0]
        self.assertIn("waits for a volunteer: none is connected", first)
        self.assertIn("A person has to end that", first)
        # The disk is what it is now, with nothing trained since.
        grown = self.cluster.path("store") / "grown"
        before = json.loads(self.ask("status", self.store, "--json")[0])["disk"]["store_bytes"]
        grown.write_bytes(bytes(3 << 20))
        deadline = time.monotonic() + RUN_SECONDS
        while (json.loads(self.ask("status", self.store, "--json")[0])["disk"]["store_bytes"]
               < before + (3 << 20)):
            self.assertLess(time.monotonic(), deadline)
        grown.unlink()
        volunteer = self.cluster.volunteer(address)
        master.wait_checkpoint(2)
        volunteer.pause()  # so that the first questions find a run under way
        master.let_go()
        asked = 0
        while master.is_running() and asked < 20:
            code, program = self.cluster.run("gleaner", "status", self.store, "--json")
            self.assertEqual(code, 0, program.said())
            document = json.loads("\n".join(program.out))
            if not document["is_running"]:
                break
            asked += 1
            self.assertEqual(document["gleaner_json"], 1)
            self.assertEqual(document["address"], address)
            self.assertGreaterEqual(document["progress"]["round"], 2)
            self.assertEqual(len(document["shards"]), 11)
            self.assertEqual([v["name"] for v in document["volunteers"]], ["v1"])
            self.assertEqual(document["volunteers"][0]["shards"], list(range(11)))
            self.assertGreater(document["disk"]["store_bytes"], 1000)
            self.assertGreater(document["disk"]["free_bytes"], 1000)
            if asked == 1:
                for line in self.ask("status", join)[0].splitlines():
                    self.assertLessEqual(len(line), 100)
                for line in self.ask("why", "run", join)[0].splitlines():
                    self.assertLessEqual(len(line), 80)
                self.assertIn("trained by v1", self.ask("why", "3", self.store)[0])
                self.assertIn("It holds 11 of 11 shards", self.ask("why", "v1", self.store)[0])
                self.assertIn("here are v1", self.ask("why", "dora", self.store, code=2)[1])
                volunteer.go_on()
        self.assertGreater(asked, 0)
        self.assertEqual(finished(master)["digest"], reference["digest"])
        self.assertEqual(len(master.events("volunteer_joined")), 1)
        # Where a machine is so busy that a master's ticks are late, some questions are put off.
        self.assertEqual([e for e in master.events("log") if e["level"] != "info" and
                          "too many ask this master" not in e["message"]], [])

    def test_a_finished_run_says_so_and_a_store_stands_anywhere(self):
        self.setup.run_local(self.cluster, self.store)
        self.assertRegex(self.ask("status", self.store)[0], r"finished +yes")
        document = json.loads(self.ask("status", self.store, "--json")[0])
        self.assertTrue(document["is_finished"])
        for words in ((self.store,), ("run", self.store), (self.store, "run")):
            self.assertIn("The run is finished: all ", self.ask("why", *words)[0])
        shutil.rmtree(f"{self.store}.kept")  # the best
        self.assertIn("has no kept checkpoint", self.ask("diff", self.store, code=2)[1])
        self.ask("checkpoint", "keep", self.store, "now")
        self.assertIn("the same", self.ask("diff", self.store)[0])
        for words in ((self.store, "dora"), ("dora", self.store)):
            self.assertIn("no peer is known as 'dora'", self.ask("ban", *words, code=2)[1])

    def test_without_a_master_the_store_answers(self):
        master, address = self.listening(hold=1)
        self.cluster.volunteer(address)
        master.wait_checkpoint(1)
        master.kill()
        document = json.loads(self.ask("status", self.store, "--json")[0])
        self.assertFalse(document["is_running"])
        self.assertIn("did not end by itself", document["reason"])
        self.assertGreaterEqual(document["progress"]["round"], 1)
        self.assertIn("gleaner-master goes on from there", self.ask("why", "run", self.store)[0])
        self.assertIn(address, self.ask("status", self.cluster.line(address), code=5)[1])
        # Another run at the address that the last master left behind is not taken for this one.
        other = self.setup.start_master(self.cluster, self.cluster.path("other"), "--listen",
                                        address, "--threads", 1, "--seed", 6)
        other.wait_event("listening")
        document = json.loads(self.ask("status", self.store, "--json")[0])
        self.assertFalse(document["is_running"])
        self.assertIn("another run is trained", document["reason"])

    def test_a_run_without_a_port_for_volunteers_answers_by_its_store(self):
        self.setup = self.setup.with_flag("--epochs", ENDLESS)
        master = self.setup.start_master(self.cluster, self.store, "--local", 1, "--threads", 1)
        master.wait_checkpoint(1)
        document = json.loads(self.ask("status", self.store, "--json")[0])
        self.assertTrue(document["is_running"])
        self.assertRegex(document["address"], r"^127\.0\.0\.1:\d+$")
        self.assertEqual(len(document["shards"]), 11)
        self.assertIn("Shard 3 is", self.ask("why", "3", self.store)[0])
        line = self.ask("invite", "create", self.store, "--role", "observer")[0].split()[-1]
        _, invite = line.rsplit("/", 1)
        observer = f"gleaner://{document['address']}/{invite}"
        self.assertIn("Shard 3 is", self.ask("why", "3", observer)[0])
        self.assertEqual(master.events("listening"), [])
        master.kill()
        document = json.loads(self.ask("status", self.store, "--json")[0])
        self.assertFalse(document["is_running"])
        self.assertIn("did not end by itself", document["reason"])

    def test_a_master_without_a_loopback_trains_and_takes_no_questions(self):
        namespace = ("unshare", "--net", "--map-root-user")
        if subprocess.run([*namespace, "true"], stderr=subprocess.DEVNULL, check=False).returncode:
            self.skipTest("this machine gives no network namespaces")
        master = self.setup.start_master(self.cluster, self.store, "--local", 1, before=namespace)
        self.assertEqual(master.wait_exit(), 0, master.said())

    def test_long_verbs_give_way_to_a_master(self):
        master = self.setup.start_master(self.cluster, self.store, "--local", 1, "--threads", 1, hold=1)
        master.wait_checkpoint(1)
        master.pause()
        self.assertEqual(self.scheduling_of_predict(), {os.SCHED_IDLE})
        master.go_on()
        master.kill()
        self.assertEqual(self.scheduling_of_predict(), {os.sched_getscheduler(0)})

    def scheduling_of_predict(self):
        """Of its threads, while it waits for the second point."""
        with subprocess.Popen(
                [f"{BIN}/gleaner", "predict", self.store, "--input", "-", "--format", "libsvm",
                 "--threads", "2", "--json"],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as predict:
            print("0 1:1", file=predict.stdin, flush=True)
            self.assertIn("predicted", predict.stdout.readline())
            threads = list(pathlib.Path(f"/proc/{predict.pid}/task").iterdir())
            self.assertGreater(len(threads), 1)
            return {os.sched_getscheduler(int(thread.name)) for thread in threads}

    def test_what_is_no_store_and_no_address_is_refused(self):
        for where in ("nowhere", "http://127.0.0.1:8080"):
            self.assertIn("neither the folder of a store nor", self.ask("status", where, code=2)[1])
        self.ask("status", self.cluster.folder, code=4)


if __name__ == "__main__":
    sys.exit(unittest.main())
