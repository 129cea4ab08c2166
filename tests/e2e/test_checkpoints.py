"""Checkpoints kept beside a master that trains, trained again, and a run that begins with a model."""

import json
import shutil
import subprocess
import sys
import unittest

from harness import BIN, EndToEndTest, finished, free_address, small_setup


class Checkpoints(EndToEndTest):
    def setUp(self):
        super().setUp()
        self.setup = small_setup(self.cluster, flags=["--sampling", "lsh", "--no-keep-best"])
        self.store = self.cluster.path("store")

    def ask(self, *arguments, code=0):
        status, program = self.cluster.run("gleaner", *arguments)
        self.assertEqual(status, code, program.said())
        return "\n".join(program.out), "\n".join(program.error)

    def json(self, *arguments, code=0):
        return json.loads(self.ask(*arguments, "--json", code=code)[0])

    def test_kept_while_training_each_is_a_store_of_its_own(self):
        reference = self.setup.run_local(self.cluster, self.cluster.path("reference"))
        master = self.setup.start_master(self.cluster, self.store, "--listen", "127.0.0.1:0", "--threads", 1,
                                         "--silence-ms", 60_000, hold=1)
        volunteer = self.cluster.volunteer(master.wait_event("listening")["address"])
        kept = []
        for checkpoint, then in ((1, 4), (4, 9), (9, None)):
            master.wait_checkpoint(checkpoint)
            volunteer.pause()
            master.let_go(then)
            kept.append(self.json("checkpoint", "keep", self.store, f"c{len(kept)}"))
            volunteer.go_on()
        while master.is_running():
            kept.append(self.json("checkpoint", "keep", self.store, f"c{len(kept)}"))
        self.assertEqual(finished(master)["digest"], reference["digest"])
        listed = self.json("checkpoint", "list", self.store)["checkpoints"]
        self.assertEqual(listed[0]["name"], None)
        self.assertEqual({line["name"] for line in listed[1:]},
                         {f"c{n}" for n in range(len(kept))})
        for number, line in enumerate(kept):
            path = line["store"]
            self.assertEqual(path, f"{self.store}.kept/c{number}")
            self.assertEqual(self.cluster.digest(path), line["digest"])
            self.assertTrue(self.json("verify", path)["is_whole"])
        # One of them trains on to the same model.
        finished_again = finished(self.setup.start_master(
            self.cluster, kept[0]["store"], "--local", 1, "--threads", 1))
        self.assertEqual(finished_again["digest"], reference["digest"])
        self.assertEqual(self.cluster.digest(self.store), reference["digest"])
        for number in range(len(kept)):
            self.ask("checkpoint", "drop", self.store, f"c{number}")
        self.assertEqual(len(self.json("checkpoint", "list", self.store)["checkpoints"]), 1)
        self.assertEqual(self.cluster.digest(self.store), reference["digest"])

    def test_every_nth_checkpoint_is_kept_with_the_start(self):
        done = finished(self.setup.start_master(self.cluster, self.store, "--local", 1, "--threads", 1,
                                                "--keep-every", 4))
        kept = self.json("checkpoint", "list", self.store)["checkpoints"][1:]
        expected = {f"round-{number}" for number in range(0, done["checkpoint"] + 1, 4)}
        self.assertEqual({line["name"] for line in kept}, expected)
        self.assertGreater(len(expected), 2)
        for line in kept:
            self.assertEqual(f"round-{line['checkpoint']}", line["name"])
            self.assertTrue(self.json("verify", line["store"])["is_whole"])
        # One of them is evaluated with the run's own test file, and trains on to the same model.
        self.assertGreater(self.json("evaluate", f"{self.store}.kept/round-4")["evaluated"], 0)
        again = finished(self.setup.start_master(self.cluster, f"{self.store}.kept/round-4", "--local", 1))
        self.assertEqual(again["digest"], done["digest"])

    def test_names_that_will_not_do_are_refused_and_nothing_else_is_dropped(self):
        self.setup.run_local(self.cluster, self.store)
        self.ask("checkpoint", "keep", self.store, "a")
        self.assertIn("exists already", self.ask("checkpoint", "keep", self.store, "a", code=2)[1])
        for name in ("..", ".", "../store", "a/b", "", "x.part"):
            for verb in ("keep", "drop"):
                self.ask("checkpoint", verb, self.store, name, code=2)
        self.assertIn("no kept checkpoint", self.ask("checkpoint", "drop", self.store, "b", code=4)[1])
        self.assertEqual(len(self.json("checkpoint", "list", self.store)["checkpoints"]), 2)
        master = self.setup.with_flag("--epochs", 40).start_master(
            self.cluster, f"{self.store}.kept/a", "--local", 1, "--threads", 1)
        master.wait_event("started")
        self.assertIn("trains", self.ask("checkpoint", "drop", self.store, "a", code=4)[1])

    def test_what_volunteers_trained_is_trained_again_to_the_same_digest(self):
        master = self.setup.start_master(self.cluster, self.store, "--listen", "127.0.0.1:0",
                                         "--threads", 1, hold=3)
        address = master.wait_event("listening")["address"]
        volunteers = [self.cluster.volunteer(address) for _ in range(2)]
        master.wait_checkpoint(3)
        for volunteer in volunteers:
            volunteer.pause()
        master.let_go()
        self.ask("checkpoint", "keep", self.store, "early")
        for volunteer in volunteers:
            volunteer.go_on()
        finished(master)
        deep = self.json("verify", self.store, "--deep", "--train", self.setup.train)
        self.assertTrue(deep["is_whole"])
        self.assertTrue(deep["deep"]["is_same"])
        self.assertGreaterEqual(deep["deep"]["base"], 3)
        self.assertEqual(deep["deep"]["digest"], self.cluster.digest(self.store))
        self.assertEqual(deep["deep"]["retrained_digest"], deep["deep"]["digest"])


class InitFrom(EndToEndTest):
    def setUp(self):
        super().setUp()
        self.first = small_setup(self.cluster, flags=["--sampling", "lsh"])
        self.model = self.cluster.path("model.safetensors")
        self.first.run_local(self.cluster, self.cluster.path("first"))
        self.cluster.gleaner("export", self.cluster.path("first"), "--to", self.model)

    def start(self, setup, name, *flags, hold=None):
        return setup.start_master(self.cluster, self.cluster.path(name), "--init-from", self.model,
                                  "--threads", 1, *flags, hold=hold)

    def more_labels(self):
        """The same points with 100 labels more, each of a point of its own."""
        lines = self.first.train.read_text().splitlines()
        points, features, labels = map(int, lines[0].split())
        for i in range(100):
            old, rest = lines[1 + i].split(" ", 1)
            lines[1 + i] = f"{old + ',' if old else ''}{labels + i} {rest}"
        lines[0] = f"{points} {features} {labels + 100}"
        path = self.cluster.path("more.txt")
        path.write_text("\n".join(lines) + "\n")
        first = self.first
        return type(first)(path, first.test, first.flags)

    def test_a_run_goes_on_from_a_model_and_is_a_function_of_it(self):
        setup = self.more_labels().with_flag("--epochs", 1)
        scratch = setup.run_local(self.cluster, self.cluster.path("scratch"))
        one = finished(self.start(setup, "one", "--local", 1))
        self.assertNotEqual(one["digest"], scratch["digest"])
        self.assertLess(self.cluster.history(self.cluster.path("one"))[0]["loss"],
                        self.cluster.history(self.cluster.path("scratch"))[0]["loss"])
        # Over the network, with a death and a restart, to the same bits.
        master = self.start(setup, "two", "--listen", free_address(), hold=2)
        address = master.wait_event("listening")["address"]
        volunteers = [self.cluster.volunteer(address, once=False) for _ in range(2)]
        master.wait_checkpoint(2)
        volunteers[0].kill()
        master.let_go(4)
        master.wait_checkpoint(4)
        master.kill()
        master = self.start(setup, "two", "--listen", address)
        self.assertEqual(finished(master)["digest"], one["digest"])
        self.assertTrue(json.loads(self.cluster.gleaner(
            "verify", self.cluster.path("two"), "--json"))["is_whole"])

    def test_import_says_what_the_model_is_and_starts_a_run_of_it(self):
        setup = self.more_labels().with_flag("--epochs", 1)
        said = json.loads(self.cluster.gleaner("import", self.model, "--json"))
        self.assertEqual((said["gleaner_json"], said["verb"]), (1, "import"))
        self.assertEqual((said["features"], said["hidden"], said["labels"]), (3000, 64, 2000))
        self.assertEqual(said["said"]["digest"], self.cluster.digest(self.cluster.path("first")))
        one = finished(self.start(setup, "one", "--local", 1))
        # A store of a verb's name is a store all the same.
        store = self.cluster.path("history")
        master = self.cluster.start("gleaner", "import", self.model,
                                    *setup.arguments(store, "--local", 1, "--threads", 1))
        self.assertEqual(finished(master)["digest"], one["digest"])
        notes = [event["message"] for event in master.events("log")]
        self.assertIn("100 labels of the training file begin as in any run", "\n".join(notes))
        fingerprint = json.loads(self.cluster.gleaner("inspect", store, "config", "--json"))["model"]
        self.assertIn({"key": "initial_fingerprint", "value": said["fingerprint"]}, fingerprint)

    def test_import_refuses_in_words(self):
        self.cluster.gleaner("export", self.cluster.path("first"), "--to", self.cluster.path("m.npz"))
        for code, arguments, words in (
                (2, [], "file is required"), (3, [self.cluster.path("absent")], "absent: No such file"),
                (3, [self.cluster.path("m.npz")], "NAME.safetensors"),
                (2, [self.model, "--trein", "x"], "--train")):
            status, program = self.cluster.run("gleaner", "import", *arguments)
            self.assertEqual(status, code, program.said())
            self.assertIn(words, program.said())
        alone = shutil.copy(BIN / "gleaner", self.cluster.path("gleaner"))
        done = subprocess.run([alone, "import", self.model, "--train", "x"], check=False, text=True,
                              capture_output=True, env={"PATH": str(self.cluster.path("none"))})
        self.assertEqual(done.returncode, 1)
        self.assertIn("gleaner-master cannot be started", done.stderr)

    def test_another_model_is_another_run(self):
        finished(self.start(self.first.with_flag("--epochs", 1), "run", "--local", 1))
        code, program = self.cluster.run("gleaner-master", *self.first.with_flag(
            "--epochs", 1).arguments(self.cluster.path("run"), "--local", 1))
        self.assertEqual(code, 4, program.said())
        self.assertIn("initial_fingerprint is none here", program.said())

    def test_what_does_not_fit_is_refused_in_words(self):
        code, program = self.cluster.run("gleaner-master", *self.first.with_flag(
            "--hidden", 32).arguments(self.cluster.path("run"), "--local", 1, "--init-from",
                                      self.model))
        self.assertEqual(code, 2, program.said())
        self.assertIn("give --hidden 64", program.said())
        whole = self.model.read_bytes()
        store = self.cluster.path("pruned-from")
        finished(self.first.with_flag("--epochs", 1).start_master(self.cluster, store, "--local", 1))
        self.cluster.gleaner("export", store, "--to", self.model, "--prune", "--force")
        code, program = self.cluster.run("gleaner-master", *self.first.arguments(
            self.cluster.path("run"), "--local", 1, "--init-from", self.model))
        self.assertEqual(code, 3, program.said())
        self.assertIn("without --prune", program.said())
        for damaged in (b"", whole[:7], whole[:100], whole[:-4],
                        whole[:len(whole) // 2], b"\xff" * 200,
                        whole.replace(b"output.bias", b"output.bigs")):
            self.model.write_bytes(damaged)
            code, program = self.cluster.run("gleaner-master", *self.first.arguments(
                self.cluster.path("run"), "--local", 1, "--init-from", self.model))
            self.assertEqual(code, 3, program.said())
            self.assertIn("model.safetensors: ", program.said())


if __name__ == "__main__":
    sys.exit(unittest.main())
