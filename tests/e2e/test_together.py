"""Only the right files are accepted: a master its store, a run its test file, a model its names."""

import os
import random
import shutil
import subprocess
import sys
import time
import unittest

from harness import IS_LONG, EndToEndTest, Setup, StorageTest, finished, small_setup

BAD_DATA, BAD_STORE = 3, 4


def remove_whole(folder):
    """As rm -rf does, beside somebody who writes to it; FileNotFoundError where there is none."""
    os.stat(folder)
    for _ in range(100):
        if not os.path.lexists(folder):
            return
        shutil.rmtree(folder, ignore_errors=True)
    raise AssertionError(f"{folder} is filled again and again")


class Place(StorageTest):
    """The folder of a store is moved, removed or replaced while a master writes to it."""

    def setUp(self):
        super().setUp()
        self.other = self.cluster.path("other")

    def begun(self, *flags):
        """A master that has folded two rounds, and stands still until its end is waited for."""
        master, _ = self.start(*flags, hold=2)
        master.wait_checkpoint(2)
        return master

    def test_a_store_that_is_moved_ends_the_master_and_is_whole_where_it_is(self):
        master = self.begun()
        os.rename(self.store, self.other)
        self.assert_ended(master, BAD_STORE, self.store, f"was moved to {self.other}", "--store")
        self.assertFalse(self.store.exists())
        self.assertNotIn("/proc/", master.said())
        self.finish(self.other)

    def test_a_store_that_is_removed_ends_the_master_and_is_not_made_again(self):
        master = self.begun()
        remove_whole(self.store)
        # Files go one by one: the master may notice the first of them, or the folder.
        self.assert_ended(master, BAD_STORE, self.store, "gleaner restore")
        self.assertFalse(self.store.exists())

    def test_a_store_that_loses_its_files_ends_the_master(self):
        master = self.begun()
        for path in self.store.iterdir():
            shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)
        self.assert_ended(master, BAD_STORE, self.store, "gleaner restore")
        self.assertFalse((self.store / "CURRENT").exists())

    def test_a_second_master_at_the_old_place_is_left_alone(self):
        first = self.begun()
        os.rename(self.store, self.other)
        second, helper = self.start(hold=1)
        second.wait_checkpoint(1)
        helper.pause()
        second.let_go()
        self.assert_ended(first, BAD_STORE, "was moved")
        # The first one's end took only its own note away.
        self.assertTrue((self.store / "MASTER").exists())
        helper.go_on()
        self.assertEqual(finished(second)["digest"], self.reference["digest"])
        self.cluster.gleaner("verify", self.store)
        self.finish(self.other)

    def test_backups_that_are_moved_get_no_others_and_a_warning(self):
        backups, elsewhere = self.cluster.path("backups"), self.cluster.path("elsewhere")
        master, _ = self.start("--backup", backups, "--backup-every", 0)
        master.wait_event("backup")
        os.rename(backups, elsewhere)
        self.assertEqual(finished(master)["digest"], self.reference["digest"])
        self.assertIn(f"{backups} was moved to {elsewhere}", master.said())
        self.assertFalse(backups.exists())
        self.assertIn("intact", self.cluster.gleaner("backup", "verify", elsewhere))

    def test_packed_data_that_goes_away_is_held(self):
        setup = small_setup(self.cluster, points=3000).with_flag("--hidden", 256)
        master = setup.start_master(self.cluster, self.store, "--local", 1, hold=1)
        master.wait_checkpoint(1)
        for path in self.cluster.folder.glob("*.gleaner"):
            path.unlink()
            path.write_bytes(b"something else")
        self.assertEqual(finished(master)["digest"], self.reference["digest"])

    def disturb(self, kind):
        """Does it to the store; whether there was one."""
        try:
            if kind == "remove":
                remove_whole(self.store)
            else:
                os.rename(self.store, self.other)
        except FileNotFoundError:
            return self.other.exists() or kind == "remove"
        if kind == "replace":
            shutil.copytree(self.done, self.store)
        return True

    def test_at_any_moment(self):
        """Never an exit with 0 without a whole store, and never two damaged ones."""
        begin = time.monotonic()
        self.finish(self.store)
        length = time.monotonic() - begin
        dice = random.Random(44)
        for _ in range(60 if IS_LONG else 6):
            for folder in (self.store, self.other):
                shutil.rmtree(folder, ignore_errors=True)
            kind = dice.choice(["move", "remove", "replace"])
            # Half of them while the master begins, which is short.
            moment = dice.uniform(0, length * dice.choice([0.1, 1]))
            with self.subTest(kind=kind, moment=moment):
                master = self.setup.start_master(self.cluster, self.store, "--local", 1)
                deadline = time.monotonic() + moment
                while time.monotonic() < deadline and master.is_running():
                    time.sleep(0.001)
                is_finished = bool(master.events("finished"))
                happened = self.disturb(kind)
                code = master.wait_exit()
                said = f"{kind} at {moment:.3f} of {length:.3f} s\n" + master.said()[-2000:]
                if is_finished:
                    self.assertEqual(code, 0, said)
                elif not happened:  # before there was a store
                    self.assertEqual(code, 0, said)
                    self.assertEqual(self.cluster.digest(self.store), self.reference["digest"])
                else:
                    self.assertEqual(code, BAD_STORE, said)
                if kind == "replace" and happened:
                    self.assertEqual(self.cluster.digest(self.store), self.reference["digest"], said)
                if self.other.exists():
                    self.finish(self.other)
                self.cluster.forget(master)


class Figures(EndToEndTest):
    """Figures of two test files are never mixed."""

    def setUp(self):
        super().setUp()
        self.setup = small_setup(self.cluster)
        self.store = self.cluster.path("store")
        self.later = Setup(self.setup.train, self.cluster.path("later.txt"), self.setup.flags)
        lines = self.setup.test.read_text().splitlines()
        features, labels = lines[0].split()[1:]
        self.later.test.write_text("\n".join([f"100 {features} {labels}"] + lines[1:101]) + "\n")

    def test_another_test_file_is_refused_with_both_names(self):
        first = self.setup.run_local(self.cluster, self.store)
        master = self.later.start_master(self.cluster, self.store, "--local", 1)
        self.assertEqual(master.wait_exit(), BAD_STORE, master.said())
        for piece in (self.setup.test, self.later.test, "--new-test"):
            self.assertIn(str(piece), master.said())
        again = finished(self.setup.start_master(self.cluster, self.store, "--local", 1))
        self.assertEqual(again["digest"], first["digest"])
        # A copy of the test file is accepted: its content counts, and its name does not.
        moved = Setup(self.setup.train, self.cluster.path("moved.txt"), self.setup.flags)
        shutil.copy(self.setup.test, moved.test)
        finished(moved.start_master(self.cluster, self.store, "--local", 1))

    def test_new_figures_begin_on_request(self):
        first = self.setup.run_local(self.cluster, self.store)
        before = self.cluster.history(self.store)
        event = finished(self.later.start_master(self.cluster, self.store, "--local", 1, "--new-test"))
        self.assertEqual(event["digest"], first["digest"])
        self.assertEqual(event["evaluated"], 100)
        self.assertEqual(event["best_checkpoint"], event["checkpoint"])
        evaluated = [record for record in self.cluster.history(self.store) if record["evaluated"]]
        self.assertEqual([record["evaluated"] for record in evaluated], [100])
        self.assertGreater(len([record for record in before if record["evaluated"]]), 1)


class Names(EndToEndTest):
    """A model never answers with the names and words of another data set."""

    SUBJECTS = {"forest": "oak birch pine ash", "metal": "iron copper zinc silver"}
    OTHERS = {"zebra": "hoof mane tail stripe", "metal": "iron copper zinc silver"}

    def trained(self, folder, store, epochs=2, seed=1):
        setup = Setup(f"{folder}/train.txt", f"{folder}/test.txt",
                      ["--epochs", epochs, "--hidden", 32, "--seed", seed])
        return setup.run_local(self.cluster, store)

    def refused(self, *arguments):
        code, program = self.cluster.run("gleaner", *arguments)
        self.assertEqual(code, BAD_DATA, program.said())
        self.assertIn("with which the model was trained", program.said())
        self.assertIn("own data set", program.said())

    def test_words_and_names_of_another_data_set_are_refused_everywhere(self):
        own, other = self.cluster.texts("own", self.SUBJECTS), self.cluster.texts("another", self.OTHERS)
        store, exported = self.cluster.path("store"), self.cluster.path("model.safetensors")
        self.trained(own, store)
        question = self.cluster.path("question.txt")
        question.write_text("oak and birch\n")
        self.cluster.gleaner("export", store, "--to", exported, "--labels", own / "labels.txt")
        for model in (store, exported):
            self.cluster.gleaner("predict", model, "--text", own, "--input", question)
            self.refused("predict", model, "--text", other, "--input", question)
            self.refused("predict", model, "--data", other)
            self.refused("predict", model, "--input", other / "test.txt")
            self.refused("predict", model, "--input", own / "test.txt", "--labels", other / "labels.txt")
            self.refused("evaluate", model, "--data", other / "test.txt")
            self.refused("serve", model, "--data", other, "--http", "127.0.0.1:0")
        self.refused("export", store, "--to", self.cluster.path("b.npz"), "--labels", other / "labels.txt")

    def test_serve_takes_what_is_whole_whoever_wrote_it_and_whenever(self):
        own, other = self.cluster.texts("own", self.SUBJECTS), self.cluster.texts("another", self.OTHERS)
        store, beside = self.cluster.path("store"), self.cluster.path("beside")
        self.trained(own, store)
        server = self.cluster.start("gleaner", "serve", store, "--data", own, "--http", "127.0.0.1:0")
        server.wait_said("answers at")
        # A training that is over between two looks.
        server.pause()
        more = self.trained(own, store, epochs=3)
        server.go_on()
        server.wait_said(f"checkpoint {more['checkpoint']} of run")
        # A run on other data in its place: the old model goes on, with its own names.
        self.trained(other, beside)
        remove_whole(store)
        os.rename(beside, store)
        server.wait_said("the model in use goes on answering")
        self.assertTrue(server.is_running())
        # Another run on the same data.
        self.trained(own, beside, seed=2)
        remove_whole(store)
        os.rename(beside, store)
        server.wait_for(lambda: server.said().count("answers from now on") == 2, "the third model")


class Beginnings(EndToEndTest):
    """What does not fit together is refused at the start, with what to do."""

    def test_a_first_line_that_may_be_a_header_is_refused(self):
        train = self.cluster.path("train.txt")
        for head in ("200000", "#100 20 5"):
            train.write_text(f"{head}\n" + "1 2:1 3:1\n" * 100)
            for code, program in (
                    self.cluster.run("gleaner-master", "--train", train, "--store", self.cluster.path("s"), "--local", 1,
                                     "--http", "off"),
                    self.cluster.run("gleaner", "dataset", "info", train)):
                self.assertEqual(code, BAD_DATA, program.said())
                self.assertIn("the header 'points features labels'", program.said())

    def test_a_test_file_beyond_the_training_file_names_the_remedy(self):
        train, test, wide = (self.cluster.path(name) for name in ("train.svm", "test.svm", "wide.txt"))
        train.write_text("1 2:1 3:1\n0 1:1\n" * 50)
        test.write_text("1 2:1 9:1\n")
        arguments = ["--test", test, "--store", self.cluster.path("s"), "--http", "off", "--local", 1,
                     "--epochs", 1]
        code, master = self.cluster.run("gleaner-master", "--train", train, *arguments)
        self.assertEqual(code, BAD_DATA, master.said())
        self.assertIn(f"gleaner dataset convert {train} --like {test} --output", master.said())
        self.cluster.gleaner("dataset", "convert", train, "--like", test, "--output", wide)
        code, master = self.cluster.run("gleaner-master", "--train", wide, *arguments)
        self.assertEqual(code, 0, master.said())

    def test_a_store_on_a_read_only_file_system_says_so(self):
        setup, store = small_setup(self.cluster, points=500), self.cluster.path("store")
        store.mkdir()
        inside = f'mount --bind -o ro "{store}" "{store}" && exec "$0" "$@"'
        before = ["unshare", "--map-root-user", "--mount", "sh", "-c", inside]
        if subprocess.run([*before, "true"], capture_output=True, check=False).returncode != 0:
            self.skipTest("this machine lets nobody mount in a namespace")
        code, master = self.cluster.run("gleaner-master", *setup.arguments(store, "--local", 1), before=before)
        self.assertEqual(code, BAD_STORE, master.said())
        self.assertIn("its file system is read-only", master.said())


if __name__ == "__main__":
    sys.exit(unittest.main())
