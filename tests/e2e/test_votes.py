"""Training points that vote beside the network, with the real programs."""

import json
import os
import sys
import unittest

from harness import Cluster, EndToEndTest, finished, small_setup

METRICS = ("p_at_1", "p_at_3", "p_at_5", "psp_at_1", "psp_at_3", "psp_at_5")
NEIGHBOURS = 30


class Votes(EndToEndTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.shared = Cluster()
        cls.addClassCleanup(cls.shared.close)
        cls.setup = small_setup(cls.shared, points=3000, flags=["--neighbours", NEIGHBOURS, "--neighbour-weight", 0.4])
        cls.store = cls.shared.path("reference")
        cls.reference = cls.setup.run_local(cls.shared, cls.store, local=2)

    def ask(self, *arguments):
        """What the verb prints on both streams; it must succeed."""
        code, program = self.cluster.run("gleaner", *arguments)
        self.assertEqual(code, 0, program.said())
        return "\n".join(program.out), "\n".join(program.error)

    def ways(self, store, *arguments):
        """The ways of asking that evaluate measures, and what it says on standard error."""
        out, said = self.ask("evaluate", store, "--data", self.setup.test, "--json", *arguments)
        return {way["way"]: way for way in json.loads(out)["ways"]}, said

    def assert_reported(self, event, ways):
        for metric in METRICS:
            self.assertEqual(event[metric], ways["exact"][metric], metric)
            self.assertEqual(event["voted_" + metric], ways["both"][metric], metric)

    def test_what_the_master_reports_is_what_evaluate_measures(self):
        self.assertEqual(self.reference["neighbours"], NEIGHBOURS)
        self.assertNotEqual(self.reference["voted_p_at_1"], self.reference["p_at_1"])
        ways, said = self.ways(self.store)
        self.assertEqual(said, "")
        self.assert_reported(self.reference, ways)
        # The same of the file, as text or packed, when somebody names it.
        packed = self.cluster.path("train.gleaner")
        self.ask("dataset", "pack", self.setup.train, "--output", packed)
        for file in (self.setup.train, packed):
            self.assert_reported(self.reference, self.ways(self.store, "--neighbours", file)[0])
        last = self.cluster.history(self.store)[-1]
        for metric in METRICS:
            self.assertEqual(last["voted_" + metric], ways["both"][metric], metric)
        self.assertIn("voted P@1 %", self.ask("history", self.store)[0])
        self.assertIn("last, with votes", self.ask("inspect", self.store)[0])

    def test_predictions_are_those_that_were_measured(self):
        out, said = self.ask("predict", self.store, "--input", self.setup.test, "--json")
        self.assertEqual(said, "")
        lines = [json.loads(line) for line in out.splitlines()]
        labelled = [line for line in lines
                    if line["missed"] or any(label["is_true"] for label in line["predicted"])]
        share = sum(line["predicted"][0]["is_true"] for line in labelled) / len(labelled)
        self.assertAlmostEqual(share, self.reference["voted_p_at_1"], places=12)
        alone, said = self.ask("predict", self.store, "--input", self.setup.test, "--json",
                               "--neighbours", "none")
        self.assertEqual(said, "")
        self.assertNotEqual(alone, out)

    def test_a_killed_and_resumed_master_reports_the_same(self):
        store = self.cluster.path("store")
        master = self.setup.start_master(self.cluster, store, "--listen", "127.0.0.1:0",
                                         "--threads", 1)
        address = master.wait_event("listening")["address"]
        volunteers = [self.cluster.volunteer(address) for _ in range(2)]
        first = master.wait_event("evaluated")
        master.kill()
        volunteers[0].kill()
        master = self.setup.start_master(self.cluster, store, "--listen", address, "--threads", 1)
        end = finished(master)
        for key in ("digest", *METRICS, *("voted_" + metric for metric in METRICS)):
            self.assertEqual(end[key], self.reference[key], key)
        self.assertEqual(first["neighbours"], NEIGHBOURS)
        records = [record for record in self.cluster.history(store) if record["evaluated"]]
        expected = [record for record in self.cluster.history(self.store) if record["evaluated"]]
        self.assertEqual(len(records), 2)
        for record, other in zip(records, expected):
            self.assertEqual(record["voted_p_at_1"], other["voted_p_at_1"])
        self.assertEqual(first["voted_p_at_1"], records[0]["voted_p_at_1"])
        self.assert_reported(end, self.ways(store)[0])

    def test_votes_reach_no_weight(self):
        plain = self.setup.with_flag("--neighbours", 0)
        store = self.cluster.path("store")
        end = plain.run_local(self.cluster, store)
        self.assertEqual(end["neighbours"], 0)
        self.assertIsNone(end["voted_p_at_1"])
        for metric in METRICS:
            self.assertEqual(end[metric], self.reference[metric], metric)
        rows = [self.cluster.history(run)[-1]["rows_digest"] for run in (store, self.store)]
        self.assertEqual(rows[0], rows[1])
        self.assertEqual(list(self.ways(store)[0]), ["exact"])
        # But they are part of what the run is.
        master = self.setup.start_master(self.cluster, store, "--local", 1)
        self.assertEqual(master.wait_exit(), 4)
        self.assertIn(f"model.neighbours is {NEIGHBOURS} here and 0 in the store",
                      master.events("error")[0]["message"])

    def test_without_its_training_file_the_network_answers_alone_and_says_so(self):
        setup = small_setup(self.cluster, points=1000, flags=["--neighbours", 5])
        store = self.cluster.path("store")
        setup.run_local(self.cluster, store)
        moved = self.cluster.path("moved.txt")
        os.rename(setup.train, moved)
        out, said = self.ask("evaluate", store, "--data", setup.test, "--json")
        self.assertEqual([way["way"] for way in json.loads(out)["ways"]], ["exact"])
        self.assertEqual(len(said.splitlines()), 1)
        for piece in ("The network answers alone", str(setup.train), "--neighbours FILE"):
            self.assertIn(piece, said)
        self.assertEqual(self.ask("evaluate", store, "--data", setup.test, "--neighbours",
                                  "none")[1], "")
        out, said = self.ask("evaluate", store, "--data", setup.test, "--json", "--neighbours", moved)
        self.assertEqual(said, "")
        self.assertEqual(len(json.loads(out)["ways"]), 3)
        # Another file in its place is not taken for it.
        os.rename(setup.test, setup.train)
        said = self.ask("predict", store, "--input", moved, "--json", "--neighbours", "none")[1]
        self.assertEqual(said, "")
        said = self.ask("predict", store, "--input", moved, "--json")[1]
        self.assertIn("it is not the file any more", said)

    def test_where_points_bear_one_label_the_labels_documents_vote(self):
        # So few words that they alone do not name the label.
        setup = small_setup(self.cluster, points=3000, flags=["--neighbours", NEIGHBOURS],
                            synth=["--labels-per-point", 1, "--features-per-point", 3])
        store = self.cluster.path("store")
        end = setup.run_local(self.cluster, store, local=2)
        self.assertGreater(end["voted_p_at_1"], end["p_at_1"])
        out, said = self.ask("evaluate", store, "--data", setup.test, "--json")
        self.assertEqual(said, "")
        self.assertEqual(json.loads(out)["voters"], "documents of their labels")
        ways = {way["way"]: way for way in json.loads(out)["ways"]}
        self.assert_reported(end, ways)
        # The checkpoints before the last were asked with their own layer.
        evaluated = [[record["voted_" + metric] for metric in METRICS]
                     for record in self.cluster.history(store) if record["evaluated"]]
        self.assertEqual(len(evaluated), 2)
        self.assertNotEqual(evaluated[0], evaluated[1])
        # A master that has lent the layer does not know it; whoever reads the store does.
        lent = self.cluster.path("lent")
        master = setup.start_master(self.cluster, lent, "--local", 2, "--threads", 1,
                                    "--input-layer", "volunteers")
        alone = finished(master)
        self.assertEqual(alone["digest"], end["digest"])
        self.assertEqual(alone["p_at_1"], end["p_at_1"])
        self.assertIsNone(alone["voted_p_at_1"])
        out, _ = self.ask("evaluate", lent, "--data", setup.test, "--json")
        self.assertEqual({way["way"]: way for way in json.loads(out)["ways"]}["both"]["p_at_1"],
                         end["voted_p_at_1"])

    def test_an_exported_file_is_the_network_alone(self):
        file = self.cluster.path("model.safetensors")
        said = self.ask("export", self.store, "--to", file)[0]
        self.assertIn("without the votes of training points", said)
        self.assertNotIn(str(self.setup.train).encode(), file.read_bytes())
        ways, said = self.ways(file)
        self.assertEqual((list(ways), said), (["exact"], ""))
        self.assertEqual(ways["exact"]["p_at_1"], self.reference["p_at_1"])
        self.assertEqual(len(self.ways(file, "--neighbours", self.setup.train)[0]), 3)


if __name__ == "__main__":
    sys.exit(unittest.main())
