"""Strangers: every lie leaves the trained model honest, and gets the liar banned and nobody else."""

import json
import signal
import subprocess
import time
import unittest

from harness import BIN, IS_LONG, RUN_SECONDS, Cluster, EndToEndTest, finished, free_port, small_setup
from page_case import ask, port_of

LIAR = BIN.parent / "tests" / "gleaner-liar"


class Strangers(EndToEndTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.shared = Cluster()
        cls.addClassCleanup(cls.shared.close)
        cls.setup = small_setup(cls.shared)
        cls.reference = cls.setup.run_local(cls.shared, cls.shared.path("reference"))

    def setUp(self):
        self.cluster = Cluster()
        self.addCleanup(self.cluster.close)
        self.store = self.cluster.path("store")

    def invite(self):
        return json.loads(self.cluster.gleaner("invite", "create", self.store, "--json"))["address"]

    def start(self, volunteers, *flags, port=0):
        master = self.setup.start_master(self.cluster, self.store, "--listen", f"127.0.0.1:{port}",
                                         "--threads", 1, "--min-volunteers", volunteers, *flags)
        master.wait_event("listening")
        return master

    def banned(self):
        peers = json.loads(self.cluster.gleaner("peers", self.store, "--json"))["peers"]
        return [peer["name"] for peer in peers if peer["is_banned"]]

    def check_honest(self, master):
        self.assertEqual(master.wait_exit(), 0, master.said())
        self.assertEqual(finished(master)["digest"], self.reference["digest"], master.said())

    def test_honest_strangers_give_the_honest_model(self):
        master = self.start(3)
        for _ in range(3):
            self.cluster.volunteer(self.invite())
        self.check_honest(master)
        self.assertEqual(self.banned(), [])
        # The store says who made each shard and who did the same again.
        told = json.loads(self.cluster.gleaner("receipts", self.store, "--json"))["receipts"]
        for receipt in told:
            with self.subTest(receipt=receipt):
                if receipt["holder"] is None:  # the master holds the input layer
                    self.assertEqual(receipt["verdict"], "trusted")
                else:
                    self.assertEqual(receipt["verdict"], "confirmed")
                    self.assertIsNotNone(receipt["auditor"])
                    self.assertNotEqual(receipt["holder"], receipt["auditor"])
        self.assertIn("confirmed", {receipt["verdict"] for receipt in told})
        self.assertIn("0 of strangers whom nobody audited", self.cluster.gleaner("receipts", self.store))
        self.cluster.gleaner("verify", self.store)
        model = self.cluster.path("model.safetensors")
        self.cluster.gleaner("export", self.store, "--to", model)
        content = model.read_bytes()
        header = json.loads(content[8:8 + int.from_bytes(content[:8], "little")])
        self.assertEqual(header["__metadata__"]["audited"], "all")

    def test_one_that_keeps_its_units_is_let_go_and_gets_no_more(self):
        master = self.start(3)
        for _ in range(2):
            self.cluster.volunteer(self.invite(), once=False)
        self.cluster.start("../tests/gleaner-liar", self.invite(), self.cluster.path("late"), "late", 0)
        self.check_honest(master)
        self.assertIn("did not answer a unit within 5 s", master.said())
        self.assertEqual(self.banned(), [])

    def test_one_stranger_alone_is_audited_by_the_master(self):
        master = self.start(1)
        self.cluster.volunteer(self.invite())
        self.check_honest(master)
        self.assertIn("this process does it", master.said())
        self.assertEqual(self.banned(), [])

    def test_the_page_says_who_confirmed_whom_and_who_is_kept_out(self):
        self.setup = self.setup.with_flag("--epochs", 300)
        master = self.start(3, "--http", "127.0.0.1:0")
        for _ in range(2):
            self.cluster.volunteer(self.invite(), once=False)
        self.cluster.start("../tests/gleaner-liar", self.invite(), self.cluster.path("liar"), "gradient", 0)
        page = master.wait_event("page")
        port, key = port_of(page["url"]), {"X-Gleaner-Key": page["key"]}
        deadline = time.monotonic() + RUN_SECONDS
        told = {"banned": [], "receipts": []}
        while not (told["banned"] and told["receipts"]):
            self.assertLess(time.monotonic(), deadline, told)
            told = json.loads(ask(port, "/api/v1/receipts", key)[2])
        self.assertEqual([ban["name"] for ban in told["banned"]], ["eve"])
        self.assertIn("its answers were false", told["banned"][0]["reason"])
        self.assertEqual(told["checked_up_to"], told["last_round"] + 1)
        confirmed = [receipt for receipt in told["receipts"] if receipt["verdict"] == "confirmed"]
        self.assertGreater(len(confirmed), 0)
        self.assertNotIn("eve", {receipt["auditor"] for receipt in confirmed})
        self.assertIsNone(json.loads(ask(port, "/api/v1/receipts")[2])["banned"])
        board = {"contributions": []}
        while not any(one["confirmed"] and one["audited"] for one in board["contributions"]):
            self.assertLess(time.monotonic(), deadline, board)
            board = json.loads(ask(port, "/api/v1/volunteers")[2])
        self.assertEqual(board["audit"], "all")
        for one in board["contributions"]:
            self.assertEqual(one["credit"], one["confirmed"] + one["trusted"] + one["audited"])
            self.assertEqual((one["trusted"], one["unaudited"]), (0, 0))

    def test_a_liar_beside_two_honest_volunteers(self):
        lies = subprocess.run([LIAR, "--list"], check=True, capture_output=True, text=True).stdout.split()
        self.assertGreaterEqual(len(lies), 20)
        # Nothing comes of a commit whose last part never comes: its sender has two minutes.
        lies.remove("parts-more")
        for lie in lies if IS_LONG else lies[::6]:
            for first in (0, 1) if IS_LONG else (0,):
                with self.subTest(lie=lie, first=first):
                    self.setUp()
                    master = self.start(3)
                    for _ in range(2):
                        self.cluster.volunteer(self.invite(), once=False)
                    liar = self.cluster.start("../tests/gleaner-liar", self.invite(),
                                              self.cluster.path("liar"), lie, first)
                    self.check_honest(master)
                    # What no honest arithmetic gives is refused at once; the rest is compared.
                    if self.banned() != ["eve"]:
                        self.assertEqual(self.banned(), [], master.said())
                        self.assertNotEqual(liar.wait_exit(), 0)
                        self.assertIn("refused", liar.said())

    def test_a_liar_that_comes_again_and_again_is_shut_out_with_its_invite(self):
        self.setup = self.setup.with_flag("--epochs", 400)
        master = self.start(2)
        for _ in range(2):
            self.cluster.volunteer(self.invite(), once=False)
        line = json.loads(self.cluster.gleaner("invite", "create", self.store, "--reusable", "--json"))["address"]
        said, keys = "", 0
        while "the invite is suspended" not in said:
            keys += 1
            self.assertLess(keys, 12, master.said())
            liar = self.cluster.start("../tests/gleaner-liar", line, self.cluster.path(f"key{keys}"), "gradient", 0)
            liar.wait_exit()
            said = liar.said()
        self.assertEqual(self.banned(), ["eve"] * 3)
        self.assertIn("nobody new comes by it", master.said())
        before = master.said().count('"event":"checkpoint"')
        deadline = time.monotonic() + RUN_SECONDS
        while master.said().count('"event":"checkpoint"') < before + 50:
            self.assertLess(time.monotonic(), deadline, master.said())
            time.sleep(0.1)

    def test_under_adaptive_audits_what_a_liar_has_done_is_undone(self):
        master = self.start(3, "--audit", "adaptive", "--audit-share", 0.5)
        for _ in range(2):
            self.cluster.volunteer(self.invite(), once=False)
        self.cluster.start("../tests/gleaner-liar", self.invite(), self.cluster.path("liar"), "level", 10)
        self.check_honest(master)
        self.assertEqual(self.banned(), ["eve"])

    def test_under_adaptive_audits_a_ban_undoes_at_once_what_nobody_audited(self):
        self.setup = self.setup.with_flag("--epochs", 400)
        master = self.start(3, "--audit", "adaptive", "--audit-share", 0.001)
        for _ in range(3):
            self.cluster.volunteer(self.invite(), once=False)
        master.wait_checkpoint(20)
        peers = json.loads(self.cluster.gleaner("peers", self.store, "--json"))["peers"]
        answer = self.cluster.gleaner("ban", peers[0]["id"], self.store)
        self.assertIn("is banned", answer)
        deadline = time.monotonic() + RUN_SECONDS
        while "the run goes back to checkpoint" not in master.said():
            self.assertLess(time.monotonic(), deadline, master.said())
            time.sleep(0.1)
        self.assertIn("what it did and nobody audited is trained again without it", master.said())
        master.wait_checkpoint(40)
        receipts = json.loads(self.cluster.gleaner("receipts", self.store, "--json"))
        self.assertNotIn(peers[0]["id"], {entry["key"] for entry in receipts["unaudited"]})

    def test_under_adaptive_audits_a_ban_undoes_what_nobody_audited(self):
        flags = ("--audit", "adaptive", "--audit-share", 0.001)
        port = free_port()
        master = self.start(3, *flags, port=port)
        lines = [self.invite() for _ in range(3)]
        for line in lines:
            self.cluster.volunteer(line, once=False)
        master.wait_checkpoint(10)
        master.signal(signal.SIGTERM)
        self.assertEqual(master.wait_exit(), 0, master.said())
        kept = self.cluster.gleaner("checkpoint", "list", self.store)
        self.assertIn("audit-0", kept)
        all_told = json.loads(self.cluster.gleaner("receipts", self.store, "--json"))
        told = all_told["receipts"]
        unaudited = [receipt for receipt in told if receipt["verdict"] == "unaudited"]
        self.assertGreater(len(unaudited), 0)
        first = min(receipt["round"] for receipt in unaudited)
        bad = next(receipt for receipt in unaudited if receipt["round"] == first)
        self.assertIn({"round": first, "key": bad["holder"]}, all_told["unaudited"])
        self.assertIn("took part unaudited", self.cluster.gleaner("receipts", self.store))
        self.cluster.gleaner("ban", bad["holder"], self.store)
        # A ban undoes that also where later work is all audited.
        again = self.start(2, "--audit", "all", port=port)
        self.check_honest(again)
        self.assertRegex(again.said(), f"did in round {first}: the run goes back to checkpoint")
        holders = {receipt["holder"] for receipt in
                   json.loads(self.cluster.gleaner("receipts", self.store, "--json"))["receipts"]
                   if receipt["verdict"] == "unaudited"}
        self.assertNotIn(bad["holder"], holders)
        # The run is over, and keeps nothing to go back to.
        self.assertNotIn("audit-", self.cluster.gleaner("checkpoint", "list", self.store))


if __name__ == "__main__":
    unittest.main()
