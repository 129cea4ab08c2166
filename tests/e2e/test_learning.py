"""Runs that diverge and runs that have nothing more to gain, with the real programs."""

import json
import shutil
import sys
import unittest

from harness import EndToEndTest, Setup, finished, small_setup

# Rates far too high, so that the first rounds diverge.
RISING_LOSS = ["--output-rate", 4, "--input-rate", 4, "--divergence-factor", 1.5]
# The first steps drive nearly all hidden units below zero. A round is several windows of codes.
COLLAPSING_CODES = ["--hidden-units", "relu", "--batch-examples", 128, "--input-rate", 2,
                    "--warmup-batches", 0, "--round-batches", 47, "--divergence-factor", 1000]


class Divergence(EndToEndTest):
    def test_rates_are_cut_for_a_rising_loss(self):
        cut = self.cut_alike_whoever_trains_and_however_often_killed(RISING_LOSS)
        self.assertEqual(cut["sign"], "loss")
        self.assertGreater(cut["value"], 1.5 * cut["before"])

    def test_rates_are_cut_for_collapsing_codes(self):
        cut = self.cut_alike_whoever_trains_and_however_often_killed(COLLAPSING_CODES)
        self.assertEqual(cut["sign"], "code_length")
        self.assertLess(16 * cut["value"], cut["before"])

    def cut_alike_whoever_trains_and_however_often_killed(self, flags):
        """Returns the event of the first cut."""
        setup = small_setup(self.cluster, flags=flags)
        reference = setup.run_local(self.cluster, self.cluster.path("reference"))
        status, program = self.cluster.run(
            "gleaner", "history", "--json", self.cluster.path("reference"))
        self.assertEqual(status, 0)
        cuts = [json.loads(line)["rate_cuts"] for line in program.out]
        self.assertGreater(cuts[-1], 0)
        status, program = self.cluster.run("gleaner", "inspect", self.cluster.path("reference"))
        self.assertIn("rates halved", program.said())

        store = self.cluster.path("store")
        master = setup.start_master(self.cluster, store, "--listen", "127.0.0.1:0", "--threads", 1)
        address = master.wait_event("listening")["address"]
        for _ in range(2):
            self.cluster.volunteer(address)
        cut = master.wait_event("rates_cut")
        self.assertEqual(cut["cuts"], 1)
        master.kill()
        master = setup.start_master(self.cluster, store, "--listen", address, "--threads", 1)
        self.assertEqual(finished(master)["digest"], reference["digest"])

        status, program = self.cluster.run("gleaner", "verify", store, "--deep", "--from", "start",
                                           "--train", setup.train)
        self.assertEqual(status, 0, program.said())
        return cut

    def test_a_run_that_cannot_be_helped_ends_with_a_sentence(self):
        # Rounds of one point differ as their points do, at any rate.
        setup = small_setup(self.cluster, points=200, flags=[
            "--batch-examples", 1, "--round-batches", 1, "--divergence-factor", 1.2])
        master = setup.start_master(self.cluster, self.cluster.path("store"), "--local", 1,
                                    "--threads", 1)
        self.assertEqual(master.wait_exit(), 2)
        self.assertEqual(len(master.events("rates_cut")), 20)
        self.assertIn("--divergence-factor", master.events("error")[0]["message"])


class LongRounds(EndToEndTest):
    """Rounds of several epochs."""

    def test_a_run_of_them_is_killed_resumed_and_made_longer(self):
        # 16 batches an epoch, two epochs a round.
        setup = small_setup(self.cluster, points=1000).with_flag("--round-batches", 40)
        setup = setup.with_flag("--epochs", 6)
        reference = setup.run_local(self.cluster, self.cluster.path("reference"))
        self.assertEqual([reference["checkpoint"], reference["epochs"]], [3, 6])

        store = self.cluster.path("store")
        setup = setup.with_flag("--epochs", 4)
        master = setup.start_master(self.cluster, store, "--listen", "127.0.0.1:0", "--threads", 1)
        address = master.wait_event("listening")["address"]
        volunteers = [self.cluster.volunteer(address) for _ in range(2)]
        master.wait_checkpoint(1)
        master.kill()
        volunteers[0].kill()
        master = setup.start_master(self.cluster, store, "--listen", address, "--threads", 1)
        self.assertEqual(finished(master)["epochs"], 4)
        evaluated = [record["epoch"] for record in self.cluster.history(store)
                     if record["evaluated"] > 0]
        self.assertEqual(evaluated, [2, 4])

        master = setup.with_flag("--epochs", 5).start_master(self.cluster, store, "--local", 1)
        self.assertEqual(master.wait_exit(), 2)
        message = master.events("error")[0]["message"]
        self.assertIn("epochs is 5: rounds of 40 batches (round_batches) hold 2 epochs", message)
        longer = setup.with_flag("--epochs", 6).run_local(self.cluster, store, local=2)
        self.assertEqual(longer["digest"], reference["digest"])

    def test_a_run_keeps_what_the_recipe_chose_when_it_is_made_longer(self):
        # 20 epochs by themselves would be cut into rounds of two.
        made = small_setup(self.cluster, points=1000)
        setup = Setup(made.train, made.test, ["--hidden", 512, "--epochs", 5])
        store = self.cluster.path("store")
        self.assertEqual(setup.run_local(self.cluster, store)["checkpoint"], 5)
        setup = setup.with_flag("--epochs", 20)
        self.assertEqual(setup.run_local(self.cluster, store)["checkpoint"], 20)
        self.assertEqual(setup.run_local(self.cluster, self.cluster.path("other"))["checkpoint"], 10)
        # Without the number of epochs the run is as long as it was.
        again = Setup(made.train, made.test, []).run_local(self.cluster, store)
        self.assertEqual([again["already"], again["checkpoint"]], [True, 20])
        # A call by hand must agree.
        master = Setup(made.train, made.test, ["--hidden", 64]).start_master(
            self.cluster, store, "--local", 1)
        self.assertEqual(master.wait_exit(), 4)
        self.assertIn("model.hidden is 64 here and 512 in the store",
                      master.events("error")[0]["message"])


class Patience(EndToEndTest):
    def test_a_run_without_gain_ends_early_and_its_best_is_kept(self):
        setup = small_setup(self.cluster, flags=["--patience", 2]).with_flag("--epochs", 60)
        store = self.cluster.path("store")
        end = finished(setup.start_master(self.cluster, store, "--local", 2, "--threads", 1))
        self.assertTrue(end["ended_early"])
        self.assertLess(end["epochs"], 60)
        self.assertLess(end["best_checkpoint"], end["checkpoint"])
        self.assertEqual(end["best_store"], f"{store}.kept/best")
        status, program = self.cluster.run("gleaner", "evaluate", end["best_store"], "--data",
                                           setup.test, "--json")
        self.assertEqual(status, 0, program.said())
        exact = json.loads(program.out[0])["ways"][0]
        self.assertAlmostEqual(exact["p_at_1"], end["best_p_at_1"], places=6)

        again = finished(setup.start_master(self.cluster, store, "--local", 2, "--threads", 1))
        self.assertTrue(again["already"])
        self.assertEqual(again["digest"], end["digest"])
        self.assertEqual(again["best_store"], end["best_store"])
        shutil.rmtree(f"{store}.kept")
        self.assertIsNone(finished(setup.start_master(
            self.cluster, store, "--local", 2, "--threads", 1))["best_store"])
        # Neither where the run ended nor how it was watched is part of the model.
        calm = setup.with_flag("--patience", 0).with_flag("--epochs", end["epochs"])
        other = finished(calm.start_master(self.cluster, self.cluster.path("other"), "--local", 1,
                                           "--threads", 1))
        self.assertEqual(other["digest"], end["digest"])

    def test_a_best_checkpoint_that_was_not_kept_in_time_is_kept_by_the_next_start(self):
        # As after a kill between the record of the evaluation and the keeping.
        setup = small_setup(self.cluster, flags=["--patience", 2]).with_flag("--epochs", 1)
        store = self.cluster.path("store")
        finished(setup.start_master(self.cluster, store, "--local", 1, "--threads", 1))
        shutil.rmtree(f"{store}.kept")
        end = finished(setup.start_master(self.cluster, store, "--local", 1, "--threads", 1))
        self.assertEqual(self.cluster.digest(end["best_store"]), end["digest"])


if __name__ == "__main__":
    sys.exit(unittest.main())
