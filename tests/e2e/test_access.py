"""Access to a run: keys, invites, roles, and refusals."""

import json
import os
import pathlib
import shutil
import signal
import stat
import sys
import time
import unittest

from harness import LATE_SECONDS, RUN_SECONDS, Cluster, EndToEndTest, finished, free_address, small_setup

NETWORK = 5
SECRET = 34  # characters of an invite


class Access(EndToEndTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.shared = Cluster()
        cls.addClassCleanup(cls.shared.close)
        cls.setup = small_setup(cls.shared)
        cls.reference = cls.setup.run_local(cls.shared, cls.shared.path("reference"))
        cls.long = cls.setup.with_flag("--epochs", 2000)

    def setUp(self):
        self.cluster = Cluster()
        self.addCleanup(self.cluster.close)
        self.store = self.cluster.path("store")

    def listening(self, *flags, setup=None):
        master = (setup or self.long).start_master(self.cluster, self.store, "--listen",
                                                   free_address(), "--threads", 1, *flags)
        return master, master.wait_event("listening")

    def invite(self, *flags, where=None):
        return json.loads(self.cluster.gleaner("invite", "create", *flags, where or self.store,
                                               "--json"))

    def refused(self, line, *words):
        volunteer = self.cluster.volunteer(line)
        self.assertEqual(volunteer.wait_exit(), NETWORK, volunteer.said())
        for word in words:
            self.assertIn(word, volunteer.said())
        return volunteer

    def test_the_line_names_what_others_reach_and_for_whom_it_is(self):
        master, listening = self.listening("--advertise", "localhost:7", setup=self.setup)
        self.assertTrue(listening["join"].startswith("gleaner://localhost:7/"), listening)
        self.assertTrue(listening["trusted"])
        master.wait_event("log", lambda e: "leads each machine to itself" in e["message"])
        made = self.invite("--reusable")
        self.assertTrue(made["address"].startswith("gleaner://localhost:7/"), made)
        master.close()
        plain = self.cluster.start("gleaner-master", *self.setup.arguments(self.store, "--listen", "127.0.0.1:0",
                                                                           "--log-format", "text"))
        plain.wait_said("Your own machines join with:")
        plain.wait_said(f"gleaner invite create {self.store} --reusable")
        plain.wait_said("works on this machine alone")

    def test_one_paste_trains_and_no_secret_is_seen(self):
        master, listening = self.listening(setup=self.setup)
        line = listening["join"]
        secret = line[-SECRET:]
        began = time.monotonic()
        volunteer = self.cluster.volunteer(line)
        master.wait_event("volunteer_joined")
        seen = pathlib.Path(f"/proc/{volunteer.pid}/cmdline").read_bytes().decode()
        self.assertNotIn(secret, seen)
        self.assertIn(line[:-SECRET] + "x" * SECRET, seen)
        volunteer.wait_event("status", lambda e: e["activity"] == "training")
        print(f"from the paste to the first shard in training: {time.monotonic() - began:.2f} s")
        self.assertLess(time.monotonic() - began, LATE_SECONDS)
        self.assertEqual(finished(master)["digest"], self.reference["digest"])
        self.assertEqual(volunteer.wait_exit(), 0)
        self.assertNotIn(secret, volunteer.said())
        for name in ("master.key", "access"):
            mode = os.lstat(self.store / name).st_mode
            self.assertEqual(stat.S_IMODE(mode), 0o600)
            self.assertNotIn(secret[8:], (self.store / name).read_text())
        self.assertNotIn(secret[8:], self.cluster.gleaner("inspect", self.store, "volunteers", "--json"))

    def test_a_wrong_key_is_a_loud_error_and_joins_nothing(self):
        master, listening = self.listening()
        key = listening["join"].split("/")[-1].split(".")[0]
        wrong = listening["join"].replace(key, "a" * len(key))
        volunteer = self.cluster.volunteer(wrong)
        volunteer.wait_said("WRONG MASTER")
        volunteer.wait_said("Nothing was sent")
        self.assertEqual(master.events("volunteer_joined"), [])
        code, asked = self.cluster.run("gleaner", "status", wrong)
        self.assertEqual(code, NETWORK)
        self.assertIn("WRONG MASTER", asked.said())

    def test_plain_text_takes_both_ends(self):
        with self.subTest("both"):
            master, listening = self.listening("--insecure", setup=self.setup)
            self.assertEqual(listening["join"], listening["address"] + " --insecure")
            strict = self.cluster.volunteer("gleaner://" + listening["address"] + "/" + "a" * 26 + "."
                                            + "a" * SECRET)
            strict.wait_said("started with --insecure")
            self.cluster.gleaner("status", listening["address"], "--insecure")
            self.cluster.gleaner("status", self.store)
            self.cluster.volunteer(listening["join"])
            self.assertEqual(finished(master)["digest"], self.reference["digest"])
        self.store = self.cluster.path("other")
        with self.subTest("one"):
            master, listening = self.listening()
            volunteer = self.cluster.volunteer(listening["address"] + " --insecure")
            volunteer.wait_said("the other side encrypts")
            self.assertEqual(master.events("volunteer_joined"), [])

    def test_a_revoked_invite_ends_its_sessions_at_once_and_stays_revoked(self):
        master, listening = self.listening()
        made = self.invite("--trusted", "--reusable")
        kept = self.cluster.volunteer(listening["join"])
        gone = self.cluster.volunteer(made["address"])
        master.wait_event("volunteer_joined", lambda e: e["name"] == "v2")
        self.cluster.gleaner("invite", "revoke", made["invite"], self.store)
        began = time.monotonic()
        master.wait_event("volunteer_left", lambda e: e["name"] == "v2")
        self.assertLess(time.monotonic() - began, 1 + LATE_SECONDS)
        self.assertEqual(gone.wait_exit(), NETWORK)
        self.assertIn("revoked the invite", gone.said())
        self.assertTrue(kept.is_running())
        self.refused(made["address"], "the invite was revoked")
        master.kill()
        master = self.long.start_master(self.cluster, self.store, "--listen", listening["address"],
                                        "--threads", 1)
        self.assertEqual(master.wait_event("listening")["join"], listening["join"])
        self.refused(made["address"], "the invite was revoked")

    def test_an_invite_that_expires_ends_its_sessions_at_once(self):
        master, listening = self.listening()
        kept = self.cluster.volunteer(listening["join"])
        made = self.invite("--trusted", "--reusable", "--expires", "20s")
        latest = time.time() + 20
        gone = self.cluster.volunteer(made["address"])
        master.wait_event("volunteer_joined", lambda e: e["name"] == "v2")
        self.assertTrue(gone.is_running())
        master.wait_event("volunteer_left", lambda e: e["name"] == "v2")
        self.assertLess(time.time() - latest, 1 + LATE_SECONDS)
        self.assertEqual(gone.wait_exit(), NETWORK)
        self.assertIn("has expired", gone.said())
        self.assertTrue(kept.is_running())

    def test_an_invite_for_one_is_used_once_and_an_expired_one_never(self):
        _, listening = self.listening()
        once = self.invite()["address"]
        cache = self.cluster.path("cache")
        first = self.cluster.volunteer(once, "--cache", cache)
        first.wait_event("status", lambda e: e["activity"] == "training")
        self.assertEqual(stat.S_IMODE(os.lstat(cache / "key").st_mode), 0o600)
        self.refused(once, "another one has used it")
        first.kill()
        again = self.cluster.volunteer(once, "--cache", cache)
        again.wait_event("status", lambda e: e["activity"] == "training")
        short = self.invite("--expires", "1s")
        deadline = time.monotonic() + RUN_SECONDS
        listed = {}
        while listed.get("state") != "expired":
            self.assertLess(time.monotonic(), deadline)
            invites = json.loads(self.cluster.gleaner("invite", "list", self.store, "--json"))["invites"]
            listed = next(i for i in invites if i["id"] == short["invite"])
        self.refused(short["address"], "the invite has expired")

    def test_of_two_with_one_key_the_last_stays(self):
        _, listening = self.listening()
        cache, copy = self.cluster.path("cache"), self.cluster.path("copy")
        first = self.cluster.volunteer(listening["join"], "--cache", cache)
        first.wait_event("status", lambda e: e["activity"] == "training")
        shutil.copytree(cache, copy)
        second = self.cluster.volunteer(listening["join"], "--cache", copy)
        second.wait_event("status", lambda e: e["activity"] == "training")
        self.assertEqual(first.wait_exit(), NETWORK)
        self.assertIn("another volunteer with the same key", first.said())
        self.assertTrue(second.is_running())

    def test_roles_see_and_do_what_is_theirs(self):
        master, listening = self.listening()
        address = listening["address"]
        self.cluster.volunteer(listening["join"])
        master.wait_event("volunteer_joined")
        observer = self.invite("--role", "observer", "--reusable")["address"]
        admin = self.invite("--role", "admin", "--reusable")["address"]
        for line, names in ((observer, ["volunteer 1"]), (listening["join"], ["volunteer 1"]),
                            (admin, ["v1"]), (self.store, ["v1"])):
            status = json.loads(self.cluster.gleaner("status", line, "--json"))
            self.assertEqual([v["name"] for v in status["volunteers"]], names)
            self.assertEqual(status["address"], address)
            self.assertNotIn(observer[-SECRET:], json.dumps(status))
        self.refused(observer, "takes one for a volunteer")
        for line in (observer, listening["join"]):
            code, asked = self.cluster.run("gleaner", "peers", line)
            self.assertEqual(code, NETWORK)
            self.assertIn("administrator", asked.said())
        peers = json.loads(self.cluster.gleaner("peers", admin, "--json"))["peers"]
        self.assertEqual([(p["name"], p["is_here"]) for p in peers], [("v1", True)])
        self.assertTrue(peers[0]["address"].startswith("127.0.0.1:"))

    def test_a_banned_key_is_gone_at_once_and_for_good_and_an_approved_stranger_is_trusted(self):
        master, listening = self.listening()
        stranger = self.invite("--reusable")["address"]
        cache = self.cluster.path("cache")
        volunteer = self.cluster.volunteer(stranger, "--cache", cache)
        volunteer.wait_event("status", lambda e: e["activity"] == "training")

        def peer():
            peers = json.loads(self.cluster.gleaner("peers", self.store, "--json"))["peers"]
            return next(p for p in peers if p["name"] == "v1")
        self.assertFalse(peer()["is_trusted"])
        self.cluster.gleaner("approve", "v1", self.store)
        self.assertTrue(peer()["is_trusted"])
        def joins():
            return [event for event in master.events("volunteer_joined") if event["name"] == "v1"]
        master.wait_for(lambda: len(joins()) == 2, "the volunteer again")
        self.cluster.gleaner("ban", peer()["id"], self.store, "--reason", "a test")
        self.assertEqual(volunteer.wait_exit(), NETWORK)
        # The connection or the next attempt says it, whichever comes first.
        self.assertRegex(volunteer.said(), r"(banned this key|this key is banned) \(a test\)")
        master.signal(signal.SIGTERM)
        master.wait_exit()
        # Nobody trains the store: its file is changed.
        self.assertTrue(peer()["is_banned"])
        master = self.long.start_master(self.cluster, self.store, "--listen", listening["address"],
                                        "--threads", 1)
        master.wait_event("listening")
        banned = self.cluster.volunteer(stranger, "--cache", cache)
        self.assertEqual(banned.wait_exit(), NETWORK)
        self.assertIn("this key is banned (a test)", banned.said())
        self.cluster.gleaner("unban", peer()["id"][:10], self.store)
        self.cluster.volunteer(stranger, "--cache", cache).wait_event(
            "status", lambda e: e["activity"] == "training")


if __name__ == "__main__":
    sys.exit(unittest.main())
