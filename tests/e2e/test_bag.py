"""Training without a hidden layer: machines that share the work, join late, or die."""

import json
import unittest

from harness import Cluster, EndToEndTest, finished, small_setup


class Bag(EndToEndTest):
    """A run whose rounds take about a second of one thread."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.shared = Cluster()
        cls.addClassCleanup(cls.shared.close)
        cls.setup = small_setup(cls.shared, points=10000).with_flag("--hidden", 0).with_flag(
            "--round-batches", 100).with_flag("--feature-dropout", 0)
        cls.calm = cls.setup.run_local(cls.shared, cls.shared.path("calm"))["digest"]

    def examples(self, store):
        """Examples times shards that each volunteer trained, by name."""
        found = json.loads(self.cluster.gleaner("inspect", store, "volunteers", "--json"))
        return {one["name"]: one["examples"] for one in found["volunteers"]}

    def assert_same_model(self, store):
        self.assertEqual(self.cluster.digest(store), self.calm)

    def test_both_local_volunteers_train(self):
        store = self.cluster.path("two")
        self.setup.run_local(self.cluster, store, local=2)
        examples = self.examples(store)
        self.assertEqual(len(examples), 2)
        self.assertGreater(min(examples.values()), sum(examples.values()) / 5, examples)
        self.assert_same_model(store)

    def test_whoever_joins_when_all_shards_are_held_trains(self):
        store = self.cluster.path("late")
        master = self.setup.start_master(self.cluster, store, "--listen", "127.0.0.1:0", hold=1)
        address = master.wait_event("listening")["address"]
        first = self.cluster.volunteer(address)
        # The first has trained every shard; now it lies still, and is not dead yet.
        master.wait_checkpoint(1)
        first.pause()
        master.let_go()
        second = self.cluster.volunteer(address)
        master.wait_for(lambda: len(master.events("volunteer_joined")) == 2, "the second to join")
        first.go_on()
        finished(master)
        second.wait_exit()
        self.assertEqual(len(self.examples(store)), 2)
        self.assertGreater(min(self.examples(store).values()), 0)
        self.assert_same_model(store)

    def test_deaths_within_a_round_lose_no_other_work(self):
        store = self.cluster.path("deaths")
        master = self.setup.start_master(self.cluster, store, "--listen", "127.0.0.1:0")
        address = master.wait_event("listening")["address"]
        for _ in range(3):
            count = len(master.events("volunteer_joined"))
            volunteer = self.cluster.volunteer(address)
            master.wait_for(lambda: len(master.events("volunteer_joined")) > count, "the volunteer to join")
            volunteer.kill()
        self.cluster.volunteer(address)
        finished(master)
        self.assert_same_model(store)

    def test_a_killed_master_goes_on_from_what_has_settled(self):
        store = self.cluster.path("killed")
        master = self.setup.start_master(self.cluster, store, "--listen", "127.0.0.1:0", hold=1)
        self.cluster.volunteer(master.wait_event("listening")["address"], once=False)
        master.wait_checkpoint(1)
        master.kill()
        finished(self.setup.start_master(self.cluster, store, "--local", 1))
        self.assert_same_model(store)


if __name__ == "__main__":
    unittest.main()
