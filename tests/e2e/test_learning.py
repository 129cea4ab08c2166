"""Learning with the real programs: runs that diverge, that stop when they gain nothing more, that have no hidden
layer."""

import array
import json
import pathlib
import shutil
import sys
import unittest

from harness import EndToEndTest, Setup, finished, free_address, small_setup

BAD_DATA, BAD_FLAG = 3, 2
SUBJECTS = {"fruit": "apple pear plum cherry", "metal": "iron copper zinc silver", "tree": "oak birch ash larch"}
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
        master = setup.start_master(self.cluster, store, "--listen", free_address(), "--threads", 1)
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


class FewExamples(EndToEndTest):
    def test_one_epoch_of_few_texts_is_as_good_as_the_centroid(self):
        folder = self.cluster.texts("texts", SUBJECTS)
        setup = Setup(folder / "train.txt", folder / "test.txt", ["--epochs", 1, "--evaluate-sample", "all"])
        end = setup.run_local(self.cluster, self.cluster.path("store"))
        self.assertGreaterEqual(end["compared_p_at_1"], end["centroid_p_at_1"])
        self.assertGreater(end["compared_p_at_1"], 0.9)


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
        master = setup.start_master(self.cluster, store, "--listen", free_address(), "--threads", 1,
                                    hold=1)
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

    def test_a_run_whose_length_nobody_gave_has_patience_and_says_so(self):
        made = small_setup(self.cluster, points=300, synth=["--noise", 0.9])
        setup = Setup(made.train, made.test, ["--hidden", 64, "--round-batches", 5])

        def end_of(name, *more):
            return finished(setup.start_master(self.cluster, self.cluster.path(name), "--local", 1, "--threads", 1,
                                               *more))
        auto = end_of("auto")
        self.assertTrue(auto["ended_early"])
        self.assertLessEqual(auto["best_checkpoint"], auto["checkpoint"] / 2 + 1)
        # The recipe gives small sets many epochs. A person's number of epochs is kept to.
        more = auto["epochs"] + 5
        given = end_of("given", "--epochs", more)
        self.assertEqual([given["ended_early"], given["epochs"]], [False, more])
        calm = end_of("calm", "--patience", 0)
        self.assertEqual(calm["ended_early"], False)
        self.assertGreater(calm["epochs"], auto["epochs"])

    def test_a_run_with_a_test_set_keeps_its_best_and_says_so(self):
        setup = small_setup(self.cluster).with_flag("--epochs", 12)
        store = self.cluster.path("store")
        master = setup.start_master(self.cluster, store, "--local", 1, "--threads", 1)
        end = finished(master)
        self.assertEqual(end["best_store"], f"{store}.kept/best")
        told = [e for e in master.events("log") if "kept as" in e["message"]]
        self.assertEqual(len(told), 1, master.said()[-2000:])
        shown = json.loads(self.cluster.gleaner("checkpoint", "keep", store, "best", "--json"))
        self.assertEqual(shown["checkpoint"], end["best_checkpoint"])
        self.assertAlmostEqual(shown["p_at_1"], end["best_p_at_1"], places=6)
        if end["best_checkpoint"] < end["checkpoint"]:
            shutil.rmtree(f"{store}.kept")
            code, program = self.cluster.run("gleaner", "checkpoint", "keep", store, "best")
            self.assertEqual(code, 2, program.said())
            self.assertIn("was not kept and is gone", program.said())

    def test_a_restarted_run_shows_the_last_evaluation(self):
        setup = small_setup(self.cluster).with_flag("--epochs", 400)
        store = self.cluster.path("store")
        master = setup.start_master(self.cluster, store, "--local", 1, "--threads", 1, "--no-keep-best")
        # The next evaluation begins when the first one is on record.
        first = master.wait_event("evaluated")
        master.wait_event("evaluated", lambda event: event["checkpoint"] > first["checkpoint"])
        master.kill()
        self.assertFalse(pathlib.Path(f"{store}.kept").exists())
        again = setup.start_master(self.cluster, store, "--listen", free_address())
        again.wait_event("listening")
        document = json.loads(self.cluster.gleaner("status", store, "--json"))
        self.assertGreater(document["progress"]["p_at_1"], 0)

    def test_a_best_checkpoint_that_was_not_kept_in_time_is_kept_by_the_next_start(self):
        # As after a kill between the record of the evaluation and the keeping.
        setup = small_setup(self.cluster, flags=["--patience", 2]).with_flag("--epochs", 1)
        store = self.cluster.path("store")
        finished(setup.start_master(self.cluster, store, "--local", 1, "--threads", 1))
        shutil.rmtree(f"{store}.kept")
        end = finished(setup.start_master(self.cluster, store, "--local", 1, "--threads", 1))
        self.assertEqual(self.cluster.digest(end["best_store"]), end["digest"])


def tensors(path):
    """The tensors of a safetensors file, by name."""
    data = path.read_bytes()
    begin = 8 + int.from_bytes(data[:8], "little")
    kinds = {"U32": "I", "F32": "f"}
    return {name: array.array(kinds[entry["dtype"]], data[begin + entry["data_offsets"][0]:begin + entry["data_offsets"][1]])
            for name, entry in json.loads(data[8:begin]).items()
            if name != "__metadata__" and entry["dtype"] in kinds}


class WideRows(EndToEndTest):
    def setUp(self):
        super().setUp()
        self.store, self.folder = self.cluster.path("store"), self.cluster.texts("texts", SUBJECTS)
        self.setup = Setup(self.folder / "train.txt", self.folder / "test.txt", ["--epochs", 3, "--hidden", 0])
        self.setup.run_local(self.cluster, self.store)

    def words_of(self, features):
        return {feature["name"] for feature in features}

    def test_a_label_and_a_prediction_name_the_words_that_decide(self):
        for label, words in SUBJECTS.items():
            neuron = json.loads(self.cluster.gleaner(
                "inspect", self.store, "neuron", label, "--labels", self.folder / "labels.txt", "--json"))
            self.assertEqual(neuron["name"], label)
            self.assertEqual(self.words_of(neuron["strongest"][:4]), set(words.split()))
        predictions = self.cluster.gleaner("predict", self.store, "--data", self.folder, "--why", "--json").splitlines()
        self.assertEqual(len(predictions), 5)
        for line in predictions:
            best = json.loads(line)["predicted"][0]
            self.assertTrue(best["is_true"], line)
            self.assertIn(best["why"][0]["name"], SUBJECTS[best["name"]].split())
        for view in ("summary", "layer", "config", "recipe", "space", "checkpoints"):
            self.cluster.gleaner("inspect", self.store, view)
        self.cluster.gleaner("inspect", self.store, "shard", 0)
        code, program = self.cluster.run("gleaner", "inspect", self.store, "table", 0)
        self.assertEqual(code, BAD_FLAG, program.said())
        self.assertIn("without hash tables", program.said())

    def test_feature_names_of_another_data_set_are_refused(self):
        names = self.folder / "features.txt"
        names.write_text("\n".join(reversed(names.read_text().splitlines())) + "\n")
        code, program = self.cluster.run(
            "gleaner", "inspect", self.store, "neuron", "tree", "--labels", self.folder / "labels.txt")
        self.assertEqual(code, BAD_DATA, program.said())
        self.assertIn(str(names), program.said())

    def test_training_again_gives_the_same_rows(self):
        self.cluster.gleaner("verify", self.store, "--deep", "--from", "start", "--train", self.setup.train)

    def test_the_exported_rows_score_as_the_run_does(self):
        exported = self.cluster.path("model.safetensors")
        self.cluster.gleaner("export", self.store, "--to", exported)
        model = tensors(exported)
        offsets, features, weights, biases = (
            model[name] for name in ("wide.offsets", "wide.features", "wide.weights", "output.bias"))
        rows = [dict(zip(features[b:e], weights[b:e])) for b, e in zip(offsets, offsets[1:])]
        self.assertEqual(len(rows), len(SUBJECTS))
        lines = (self.folder / "test.txt").read_text().splitlines()[1:]
        hits = 0
        for line in lines:
            label, *pairs = line.split()
            values = {int(feature): float(value) for feature, value in (pair.split(":") for pair in pairs)}
            length = sum(value * value for value in values.values()) ** 0.5
            scores = [bias + sum(row.get(feature, 0) * value for feature, value in values.items()) / length
                      for row, bias in zip(rows, biases)]
            hits += scores.index(max(scores)) == int(label)
        evaluated = json.loads(self.cluster.gleaner("evaluate", self.store, "--data", self.setup.test, "--json"))
        self.assertEqual(evaluated["evaluated"], len(lines))
        self.assertAlmostEqual(evaluated["ways"][0]["p_at_1"], hits / len(lines))

    def predictions(self, model):
        lines = self.cluster.gleaner("predict", model, "--input", self.setup.test, "--json").splitlines()
        return [json.loads(line)["predicted"] for line in lines]

    def test_a_run_begins_with_the_exported_rows_and_learns_a_label_more(self):
        exported = self.cluster.path("model.safetensors")
        self.cluster.gleaner("export", self.store, "--to", exported)
        self.assertEqual(self.predictions(exported), self.predictions(self.store))

        # 40 examples of a label and two words that the first run had never seen.
        lines = self.setup.train.read_text().splitlines()
        points, features, labels = (int(size) for size in lines[0].split())
        more = self.cluster.path("more.txt")
        more.write_text("\n".join([f"{points + 40} {features + 2} {labels + 1}", *lines[1:],
                                   *[f"{labels} {features}:1 {features + 1}:1"] * 40]) + "\n")
        setup = Setup(more, self.setup.test, ["--epochs", 1, "--init-from", exported])
        grown = self.cluster.path("grown")
        setup.run_local(self.cluster, grown)
        neuron = json.loads(self.cluster.gleaner("inspect", grown, "neuron", labels, "--json"))
        self.assertEqual({feature["feature"] for feature in neuron["strongest"]}, {features, features + 1})
        asked = self.cluster.path("asked.txt")
        asked.write_text(f"1 {features + 2} {labels + 1}\n{labels} {features}:1\n")
        predicted = json.loads(self.cluster.gleaner("predict", grown, "--input", asked, "--json"))["predicted"]
        self.assertEqual(predicted[0]["label"], labels)
        self.assertEqual([predicted[0]["label"] for predicted in self.predictions(grown)],
                         [predicted[0]["label"] for predicted in self.predictions(self.store)])

    def test_a_model_file_with_names_is_matched_by_name(self):
        exported = self.cluster.path("model.safetensors")
        self.cluster.gleaner("export", self.store, "--to", exported, "--data", self.folder)
        # "animal" comes before all other labels and shifts their numbers; "metal" is gone.
        subjects = {"animal": "cat dog fox owl", **SUBJECTS}
        del subjects["metal"]
        folder = self.cluster.texts("next", subjects)
        store = self.cluster.path("next-run")
        for hidden in ([], ["--hidden", 0]):
            code, program = self.cluster.run(
                "gleaner-master", "--train", folder / "train.txt", "--store", store, "--local", 1, "--epochs", 1,
                "--init-from", exported, *hidden)
            self.assertEqual(code, 0, program.said())
            if not hidden:
                self.assertIn("2 of its 3 labels are in the training file, matched by name; 1 labels of", program.said())
        asked = self.cluster.path("asked.txt")
        for label, words in subjects.items():
            asked.write_text(words + "\n")
            answer = json.loads(self.cluster.gleaner("predict", store, "--text", folder, "--input", asked, "--json"))
            self.assertEqual(answer["predicted"][0]["name"], label)

    def test_a_model_file_that_is_too_large_for_the_data_is_refused(self):
        exported = self.cluster.path("model.safetensors")
        self.cluster.gleaner("export", self.store, "--to", exported)
        few = self.cluster.path("few.txt")
        few.write_text("2 3 2\n0 0:1\n1 1:1\n")
        code, program = self.cluster.run(
            "gleaner-master", "--train", few, "--store", self.cluster.path("none"), "--init-from", exported, "--local", 1)
        self.assertEqual(code, BAD_FLAG, program.said())
        self.assertIn("more than the 3 and 2 of the training file", program.said())


if __name__ == "__main__":
    sys.exit(unittest.main())
