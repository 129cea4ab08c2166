"""Volunteers of a site behind one connection: the model is the same, and fewer bytes cross the line."""

import json
import unittest

from harness import IS_LONG, RUN_SECONDS, EndToEndTest, finished, free_port, small_setup


class Relayed(EndToEndTest):
    def setUp(self):
        super().setUp()
        self.setup = small_setup(self.cluster)
        self.reference = self.setup.run_local(self.cluster, self.cluster.path("reference"))["digest"]
        self.store = self.cluster.path("store")

    def start_master(self, *flags, hold=None):
        master = self.setup.start_master(self.cluster, self.store, "--listen", "127.0.0.1:0", *flags, hold=hold)
        return master, master.wait_event("listening")["join"]

    def start_relay(self, line, port, site="site"):
        """Starts a relay; returns it and the line with which its volunteers join."""
        relay = self.cluster.start("gleaner", "relay", line.split()[-1], "--listen", f"127.0.0.1:{port}",
                                   "--dir", self.cluster.path(f"relay-{site}"), "--name", site)
        relay.wait_for(lambda: relay.out, "its line")
        return relay, relay.out[0].split()[1]

    def volunteers(self, line, count):
        return [self.cluster.volunteer(line) for _ in range(count)]

    def test_the_model_is_the_same(self):
        master, line = self.start_master("--min-volunteers", 4)
        relay, behind = self.start_relay(line, free_port())
        volunteers = self.volunteers(behind, 3) + [self.cluster.volunteer(line)]
        joined = [master.wait_event("volunteer_joined", lambda event, name=f"v{n + 1}": event["name"] == name)
                  for n in range(4)]
        self.assertTrue(all("behind site" in event["address"] for event in joined[:3]), joined)
        self.assertNotIn("behind", joined[3]["address"])
        self.assertEqual(finished(master)["digest"], self.reference)
        self.assertEqual(relay.wait_exit(), 0, relay.said())
        for volunteer in volunteers:
            self.assertEqual(volunteer.wait_exit(), 0, volunteer.said())

    def test_examples_cross_once(self):
        self.setup = self.setup.with_flag("--hidden", 0)
        reference = self.setup.run_local(self.cluster, self.cluster.path("wide"))["digest"]
        master, line = self.start_master("--min-volunteers", 3)
        _, behind = self.start_relay(line, free_port())
        self.volunteers(behind, 3)
        self.assertEqual(finished(master)["digest"], reference)
        traffic = json.loads(self.cluster.gleaner("inspect", self.store, "traffic", "--json"))["traffic"]
        sent = sum(row["points"] for row in traffic if row["direction"] == "down")
        features = sum(file.read_text().count(":") for file in (self.setup.train, self.setup.test))
        self.assertGreater(sent, 0)
        self.assertLess(sent, 8 * features)  # two of the volunteers alone would take more

    def test_killed_relays_and_volunteers_change_nothing(self):
        port = free_port()
        master, line = self.start_master("--min-volunteers", 3, hold=2)
        relay, behind = self.start_relay(line, port)
        volunteers = self.volunteers(behind, 3)
        for checkpoint, then in ((2, 5), (5, 8), (8, 12)):
            master.wait_checkpoint(checkpoint)
            relay.kill()
            master.let_go(then)
            relay, again = self.start_relay(line, port)
            self.assertEqual(again, behind)  # its key and its invite stay
        master.wait_checkpoint(12)
        volunteers.pop().kill()
        master.let_go(14)
        master.wait_checkpoint(14)
        volunteers.append(self.cluster.volunteer(behind))
        self.assertEqual(finished(master)["digest"], self.reference)

    @unittest.skipUnless(IS_LONG, "64 processes: only with GLEANER_LONG")
    def test_sixty_four_behind_eight_of_which_two_die(self):
        self.setup = self.setup.with_flag("--output-shards", 64)
        reference = self.setup.run_local(self.cluster, self.cluster.path("64-shards"))["digest"]
        master, line = self.start_master("--min-volunteers", 64, hold=2)
        sites = []
        for site in range(8):
            port = free_port()
            sites.append((port, *self.start_relay(line, port, f"site{site}")))
            self.volunteers(sites[-1][-1], 8)
        master.wait_checkpoint(2)
        for site, (port, relay, _) in enumerate(sites[:2]):
            relay.kill()
            master.let_go()
            self.start_relay(line, port, f"site{site}")
        self.assertEqual(finished(master, 10 * RUN_SECONDS)["digest"], reference)
        holders = {event["name"] for event in master.events("volunteer_joined")}
        self.assertEqual(len(holders), 64)

    def test_the_work_behind_a_relay_that_strangers_run_is_audited(self):
        master, line = self.start_master("--min-volunteers", 3, "--audit", "all")
        strange = self.cluster.gleaner("invite", "create", self.store, "--reusable").split()[-1]
        _, behind = self.start_relay(strange, free_port())
        self.volunteers(behind, 2)
        self.cluster.volunteer(line)
        self.assertEqual(finished(master)["digest"], self.reference)
        joined = master.events("volunteer_joined")
        self.assertEqual(sum("behind site" in event["address"] for event in joined), 2, joined)

    def test_a_line_that_is_none_is_refused(self):
        code, relay = self.cluster.run("gleaner", "relay", "gleaner://nowhere", "--dir",
                                       self.cluster.path("relay"))
        self.assertEqual(code, 2, relay.said())


if __name__ == "__main__":
    unittest.main()
