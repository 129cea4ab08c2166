"""The programs' output for people and programs: exit codes, errors with their remedy, events."""

import json
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import sys
import unittest

from harness import Cluster, EndToEndTest, Setup, finished, free_port, small_setup

DEBIAN = pathlib.Path(__file__).resolve().parents[2] / "tools/dataset/debian.py"

USAGE, BAD_DATA, BAD_STORE, NETWORK = 2, 3, 4, 5


class CliTest(EndToEndTest):
    """Tests that share one small data set and one finished run."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.shared = Cluster()
        cls.addClassCleanup(cls.shared.close)
        cls.setup = small_setup(cls.shared, points=1500)
        cls.done = cls.shared.path("done")
        cls.reference = cls.setup.run_local(cls.shared, cls.done)

    def setUp(self):
        super().setUp()
        self.store = self.cluster.path("store")

    def assert_refused(self, code, program_name, arguments, *pieces, **others):
        """The program ends with this code and one short complaint that holds all the pieces."""
        actual, program = self.cluster.run(program_name, *arguments, **others)
        said = program.said()
        self.assertEqual(actual, code, f"{' '.join(program.command)}\n{said}")
        for piece in pieces:
            self.assertIn(str(piece), said)
        self.assertNotRegex(said, r"(?i)terminate called|std::|core dumped|check failed")
        self.assertLessEqual(len(program.error), 3, said)
        return program

    def master(self, *flags):
        return ["--train", self.setup.train, "--test", self.setup.test, "--store", self.store,
                "--local", 1, *flags]


class Usage(CliTest):
    def test_the_self_test_says_that_each_instruction_set_is_right(self):
        code, program = self.cluster.run("gleaner-volunteer", "--self-test")
        self.assertEqual(code, 0, program.said())
        levels = re.findall(r"^(scalar|avx2|avx512) +([0-9a-f]{16})  (\w+)$", program.said(), re.MULTILINE)
        self.assertEqual(levels[0][0], "scalar")
        self.assertEqual({(digest, verdict) for _, digest, verdict in levels}, {(levels[0][1], "right")})
        self.assertRegex(program.said(), r"(?m)^  dot +[0-9a-f]{16}$")
        self.assertIn("This machine computes what all machines compute.", program.said())

    def test_help_and_version_tell_what_there_is(self):
        for name in ("gleaner-master", "gleaner-volunteer", "gleaner"):
            with self.subTest(program=name):
                code, program = self.cluster.run(name, "--help")
                self.assertEqual(code, 0)
                self.assertIn("Exit", program.said())
                code, program = self.cluster.run(name, "--version")
                self.assertEqual(code, 0)
                self.assertRegex(program.said(), r"\d+\.\d+\.\d+")

    def test_unknown_flags_and_commands_are_named(self):
        self.assert_refused(USAGE, "gleaner-master", self.master("--epoch", 3), "--epoch", "--epochs")
        self.assert_refused(USAGE, "gleaner-volunteer", ["127.0.0.1:1", "--insecure", "--thread", 1], "--threads")
        self.assert_refused(USAGE, "gleaner", ["chekpoint", "digest", self.done], "chekpoint",
                            "did you mean 'checkpoint'?")
        self.assert_refused(USAGE, "gleaner", ["statsu", self.done], "did you mean 'status'?")
        self.assert_refused(USAGE, "gleaner", ["dataset", "inof", self.done], "did you mean 'info'?")

    def test_values_that_cannot_be_are_refused_with_what_can(self):
        self.assert_refused(USAGE, "gleaner-master", self.master("--hidden", 17), "hidden", 16)
        self.assert_refused(USAGE, "gleaner-master", self.master("--epochs", "many"), "epochs", "many")
        self.assert_refused(USAGE, "gleaner-master", self.master("--staleness", -1), "staleness")
        self.assert_refused(USAGE, "gleaner-master", self.master("--output-rate", "0,2"), "did you mean 0.2?")
        self.assert_refused(USAGE, "gleaner", ["dataset", "split", "a", "--share", "20 %"], "did you mean 0.2?")
        self.assert_refused(USAGE, "gleaner-volunteer", ["nowhere"], "nowhere", "port is missing")
        self.assert_refused(USAGE, "gleaner-volunteer", ["127.0.0.1:1"], "no key", "--insecure")
        self.assert_refused(USAGE, "gleaner-volunteer", [], "HOST:PORT")
        self.assert_refused(USAGE, "gleaner-volunteer", ["http://127.0.0.1:8080/"], "that of a page")

    def test_a_master_that_nobody_could_help_is_refused(self):
        self.assert_refused(USAGE, "gleaner-master",
                            ["--train", self.setup.train, "--store", self.store], "--local", "--listen")
        self.assert_refused(USAGE, "gleaner-master", ["--local", 1, "--store", self.store], "--train")

    def test_an_unknown_simd_level_is_refused(self):
        self.assert_refused(USAGE, "gleaner-master", self.master(), "GLEANER_SIMD", "avx9",
                            simd="avx9")

    def test_configuration_files_are_checked_by_name_and_line(self):
        config = self.cluster.path("run.toml")
        for text, line, pieces in [
                ("[model]\nhiden = 64\n", 2, ["model.hiden", "model.hidden"]),
                ("[model]\n\nhidden = \"wide\"\n", 3, ["model.hidden"]),
                ("[run]\nlocal = 1\n[model\n", 3, []),
                ("[modle]\n", 1, ["modle"])]:
            with self.subTest(text=text):
                config.write_text(text, encoding="utf-8")
                self.assert_refused(USAGE, "gleaner-master", self.master("--config", config),
                                    f"{config}:{line}", *pieces)
        self.assert_refused(USAGE, "gleaner-master",
                            self.master("--config", self.cluster.path("absent.toml")), "absent.toml")

    def test_a_printed_configuration_can_be_used(self):
        code, printed = self.cluster.run("gleaner-master", *self.master("--hidden", 48),
                                         "--print-config")
        self.assertEqual(code, 0)
        text = "\n".join(printed.out) + "\n"
        self.assertRegex(text, r"(?m)^hidden = 48$")
        config = self.cluster.path("printed.toml")
        config.write_text(text, encoding="utf-8")
        code, again = self.cluster.run("gleaner-master", "--config", config, "--print-config")
        self.assertEqual(code, 0)
        self.assertEqual(again.out, printed.out)
        code, flagged = self.cluster.run("gleaner-master", "--config", config, "--hidden", 80,
                                         "--print-config")
        self.assertRegex("\n".join(flagged.out), r"(?m)^hidden = 80$")


class BadData(CliTest):
    def test_malformed_files_are_refused_with_line_and_column(self):
        data = self.cluster.path("bad.txt")
        for text, pieces in [
                ("2 4 3\n0 1:1\n1 1:x\n", [":3:"]), ("2 4 3\n0 1:1\n7 1:1\n", [":3:", "7"]),
                ("2 4 3\n0 1:1\n1 9:1\n", [":3:", "9"]), ("2 4 3\n0 1:1\n1 1:nan\n", [":3:"]),
                ("3 4 3\n0 1:1\n1 2:1\n", ["3"]), ("", []), ("\x00\x01\x02", [])]:
            with self.subTest(text=text):
                data.write_text(text, encoding="utf-8")
                self.assert_refused(
                    BAD_DATA, "gleaner-master",
                    ["--train", data, "--store", self.store, "--local", 1], "bad.txt", *pieces)
                self.assertFalse((self.store / "CURRENT").exists(), "a store was made all the same")

    def test_sizes_that_this_machine_cannot_bear_are_refused_at_once(self):
        data = self.cluster.path("vast.txt")
        data.write_text("3 999999999 99999999\n1,2 3:1 4:1\n5 3:1\n7 9:0.5\n", encoding="utf-8")
        self.assert_refused(BAD_DATA, "gleaner-master",
                            ["--train", data, "--store", self.store, "--local", 1],
                            "vast.txt", "999999999 features", "first line")
        self.assert_refused(BAD_DATA, "gleaner-master",
                            ["--train", data, "--store", self.store, "--local", 1, "--hidden", 128],
                            "vast.txt", "999999999 features", "first line", "--input-layer")
        self.assertFalse((self.store / "CURRENT").exists(), "a store was made all the same")

    def test_data_without_any_label_or_any_feature_is_refused(self):
        data = self.cluster.path("empty.txt")
        for text, missing in [("2 4 3\n 1:1\n 2:1\n", "label"), ("2 4 3\n0 \n1 \n", "feature")]:
            with self.subTest(missing=missing):
                data.write_text(text, encoding="utf-8")
                self.assert_refused(BAD_DATA, "gleaner-master",
                                    ["--train", data, "--store", self.store, "--local", 1],
                                    f"none of its 2 examples has a {missing}")

    def test_files_that_are_not_there_are_named(self):
        absent = self.cluster.path("absent.txt")
        self.assert_refused(BAD_DATA, "gleaner-master",
                            ["--train", absent, "--store", self.store, "--local", 1], "absent.txt")
        self.assert_refused(BAD_DATA, "gleaner-master",
                            ["--train", self.setup.train, "--test", absent, "--store", self.store,
                             "--local", 1], "absent.txt")

    def test_a_test_file_of_another_shape_is_refused(self):
        other = self.cluster.path("other.txt")
        other.write_text("1 9 999999\n999998 3:1\n", encoding="utf-8")
        self.assert_refused(BAD_DATA, "gleaner-master",
                            ["--train", self.setup.train, "--test", other, "--store", self.store,
                             "--local", 1], "other.txt")

    def test_compressed_files_are_the_same_data(self):
        for tool, suffix in (("gzip", ".gz"), ("zstd", ".zst")):
            with self.subTest(tool=tool):
                packed = self.cluster.path("train" + suffix)
                with open(packed, "wb") as out:
                    subprocess.run([tool, "-c", self.setup.train], stdout=out, check=True,
                                   stderr=subprocess.DEVNULL)
                setup = Setup(packed, self.setup.test, self.setup.flags)
                event = setup.run_local(self.cluster, self.cluster.path("store" + suffix))
                self.assertEqual(event["digest"], self.reference["digest"])


class Stores(CliTest):
    def test_a_finished_run_says_so_and_succeeds(self):
        master = self.setup.start_master(self.cluster, self.done, "--local", 1)
        event = finished(master)
        self.assertTrue(event["already"])
        self.assertEqual(event["digest"], self.reference["digest"])
        self.assertEqual(event["p_at_1"], self.reference["p_at_1"])
        code, plain = self.cluster.run(
            "gleaner-master", *["text" if word == "json" else word
                                for word in self.setup.arguments(self.done, "--local", 1)])
        self.assertEqual(code, 0)
        self.assertIn("finished", plain.said())

    def test_a_store_of_another_configuration_is_refused_with_the_keys(self):
        before = self.cluster.digest(self.done)
        flags = self.setup.with_flag("--seed", 77).with_flag("--hidden", 32).flags
        program = self.assert_refused(
            BAD_STORE, "gleaner-master",
            ["--train", self.setup.train, "--test", self.setup.test, "--store", self.done, "--local",
             1, *flags], "model.seed", "77", "model.hidden", "32", "64")
        self.assertNotIn("model.epochs", program.said())
        self.assertEqual(self.cluster.digest(self.done), before)

    def test_a_store_of_other_data_is_refused(self):
        other = self.cluster.path("other.txt")
        self.cluster.gleaner("dataset", "synth", "--train", other, "--points", 1500, "--features", 3000,
                             "--labels", 2000, "--seed", 99)
        self.assert_refused(
            BAD_STORE, "gleaner-master",
            ["--train", other, "--store", self.done, "--local", 1, *self.setup.flags], "data")

    def test_a_store_in_use_is_refused_to_a_second_master(self):
        first = self.setup.start_master(self.cluster, self.store, "--listen", "127.0.0.1:0")
        first.wait_event("listening")
        self.assert_refused(BAD_STORE, "gleaner-master", self.master(*self.setup.flags),
                            self.store.name)
        self.assertTrue(first.is_running())
        first.signal(signal.SIGINT)
        self.assertEqual(first.wait_exit(), 0)

    def test_folders_that_hold_no_run_are_refused_by_the_tools(self):
        empty = self.cluster.path("empty")
        empty.mkdir()
        for arguments in (["checkpoint", "digest"], ["history"]):
            for folder in (empty, self.cluster.path("absent")):
                code, program = self.cluster.run("gleaner", *arguments, folder)
                self.assertNotIn(code, (0, 1), program.said())
                self.assertIn(folder.name, program.said())
        self.assertEqual(list(empty.iterdir()), [])
        self.assertFalse(self.cluster.path("absent").exists())

    def test_damaged_tables_are_reported_and_never_used(self):
        event = self.setup.run_local(self.cluster, self.store)
        self.assertEqual(event["digest"], self.reference["digest"])
        tables = [path for path in self.store.rglob("*")
                  if path.is_file() and path.suffix in (".sst", ".log") and path.stat().st_size > 4096]
        self.assertTrue(tables)
        for path in tables:
            content = bytearray(path.read_bytes())
            for at in range(1000, len(content), 1500):
                content[at] ^= 0x55
            path.write_bytes(content)
        code, program = self.cluster.run("gleaner", "checkpoint", "digest", self.store)
        self.assertEqual(code, BAD_STORE, program.said())

    def test_history_tells_the_run(self):
        records = self.cluster.history(self.done)
        checkpoints = [record["checkpoint"] for record in records]
        self.assertEqual(checkpoints, list(range(1, self.reference["checkpoint"] + 1)))
        self.assertEqual(records[-1]["p_at_1"], self.reference["p_at_1"])
        self.assertLess(records[-1]["loss"], records[0]["loss"])
        self.assertIn("P@1", self.cluster.gleaner("history", self.done))


class Events(CliTest):
    def test_every_line_is_an_event_and_the_last_is_finished(self):
        master = self.setup.start_master(self.cluster, self.store, "--local", 2)
        event = finished(master)
        events = [json.loads(line) for line in master.out]
        self.assertEqual(list(event)[:8], ["event", "epochs", "p_at_1", "p_at_3", "p_at_5", "psp_at_1",
                                           "examples_per_second", "digest"])
        self.assertRegex(event["digest"], r"^[0-9a-f]{64}$")
        self.assertEqual(event["epochs"], 2)
        for key in ("p_at_1", "p_at_3", "p_at_5", "psp_at_1"):
            self.assertTrue(0 <= event[key] <= 1, key)
        self.assertGreater(event["examples_per_second"], 0)
        kinds = {e["event"] for e in events}
        self.assertLessEqual({"started", "checkpoint", "evaluated", "finished"}, kinds)
        checkpoints = [e["checkpoint"] for e in events if e["event"] == "checkpoint"]
        self.assertEqual(checkpoints, list(range(1, event["checkpoint"] + 1)))

    def test_errors_are_events_too(self):
        code, master = self.cluster.run(
            "gleaner-master", "--train", self.cluster.path("absent.txt"), "--store", self.store,
            "--local", 1, "--log-format", "json")
        self.assertEqual(code, BAD_DATA)
        last = json.loads(master.out[-1])
        self.assertEqual((last["event"], last["exit"]), ("error", BAD_DATA))
        self.assertIn("absent.txt", last["message"])

    def test_plain_output_has_no_control_characters(self):
        code, master = self.cluster.run("gleaner-master", *self.master(*self.setup.flags))
        self.assertEqual(code, 0, master.said())
        self.assertNotRegex(master.said(), "[\x00-\x08\x0b-\x1f\x7f]")
        self.assertIn("P@1", master.said())
        self.assertIn(self.reference["digest"][:8], master.said())


class Network(CliTest):
    def listening(self, *flags):
        master = self.setup.start_master(self.cluster, self.store, "--listen", "127.0.0.1:0",
                                         "--threads", 1, *flags)
        return master, master.wait_event("listening")["address"]

    def test_a_taken_port_is_refused(self):
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            taken.listen()
            port = taken.getsockname()[1]
            self.assert_refused(NETWORK, "gleaner-master",
                                self.master("--listen", f"127.0.0.1:{port}", *self.setup.flags), port)

    def test_what_is_no_volunteer_does_not_disturb_the_run(self):
        master, address = self.listening()
        host, port = address.rsplit(":", 1)
        held = []
        for greeting in (b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", b"\xff" * 4096, b"\x00" * 64,
                         b"", os.urandom(100_000)):
            connection = socket.create_connection((host, int(port)))
            self.addCleanup(connection.close)
            try:
                connection.sendall(greeting)
            except OSError:
                pass  # The master has closed it already.
            held.append(connection)
        volunteer = self.cluster.volunteer(address)
        self.assertEqual(finished(master)["digest"], self.reference["digest"])
        self.assertEqual(volunteer.wait_exit(), 0)

    def test_a_volunteer_waits_for_its_master_and_helps_the_next_one_when_started_again(self):
        address = f"127.0.0.1:{free_port()}"
        # A master that is the same to volunteers: its key and its invites are copied.
        keys = self.cluster.path("keys")
        first = self.setup.start_master(self.cluster, keys, "--listen", address, "--threads", 1)
        first.wait_event("listening")
        volunteer_line = self.cluster.line(address)
        first.signal(signal.SIGTERM)
        self.assertEqual(first.wait_exit(), 0)
        for store in (self.store, self.cluster.path("next")):
            volunteer = self.cluster.volunteer(volunteer_line, once=False)
            volunteer.wait_event("status", lambda e: e["activity"] in ("retrying", "connecting"))
            store.mkdir()
            for name in ("master.key", "access"):
                shutil.copy(keys / name, store / name)
            master = self.setup.start_master(self.cluster, store, "--listen", address, "--threads", 1)
            self.assertEqual(finished(master)["digest"], self.reference["digest"])
            volunteer.wait_event("status", lambda e: e["activity"] == "finished")
            volunteer.signal(signal.SIGTERM)
            self.assertEqual(volunteer.wait_exit(), 0, volunteer.said())

    def test_a_volunteer_says_what_it_does_in_words(self):
        master, address = self.listening()
        volunteer = self.cluster.start("gleaner-volunteer", self.cluster.line(address), "--once",
                                       "--threads", 1)
        finished(master)
        self.assertEqual(volunteer.wait_exit(), 0)
        self.assertRegex(volunteer.said(), re.compile("training", re.IGNORECASE))

    def test_a_master_waits_for_volunteers_and_stops_when_told(self):
        master, _ = self.listening()
        master.wait_event("progress", lambda e: e["stage"] == "waiting" and e["waiting_for"])
        master.signal(signal.SIGTERM)
        self.assertEqual(master.wait_exit(), 0)
        self.assertEqual(master.events()[-1]["event"], "stopped")


class DataSets(CliTest):
    def test_generated_and_split_data_depend_on_the_seed_alone(self):
        made = []
        for number, seed in enumerate((3, 3, 4)):
            path = self.cluster.path(f"synth-{number}.txt")
            self.cluster.gleaner("dataset", "synth", "--train", path, "--points", 300, "--features", 100,
                                 "--labels", 50, "--seed", seed)
            made.append(path.read_bytes())
        self.assertEqual(made[0], made[1])
        self.assertNotEqual(made[0], made[2])
        self.assertEqual(made[0].split(b"\n", 1)[0], b"300 100 50")

    def test_info_counts(self):
        said = self.cluster.gleaner("dataset", "info", self.setup.train)
        for count in ("1,500", "3,000", "2,000"):
            self.assertRegex(said, count.replace(",", ",?"))

    def test_the_debian_set_is_the_same_each_time_and_has_names(self):
        index = subprocess.run("apt-cache dumpavail 2>/dev/null | head -c 1", shell=True, check=False,
                               capture_output=True).stdout
        if not index:
            self.skipTest("apt has no package index here (apt-get update fetches it)")
        folders = [self.cluster.path("debian-1"), self.cluster.path("debian-2")]
        for folder in folders:
            subprocess.run([DEBIAN, folder], check=True, capture_output=True)
        files = sorted(path.name for path in folders[0].iterdir())
        self.assertLessEqual({"train.txt", "test.txt"}, set(files))
        self.assertEqual(files, sorted(path.name for path in folders[1].iterdir()))
        for name in files:
            self.assertEqual((folders[0] / name).read_bytes(), (folders[1] / name).read_bytes(), name)
        points = [int((folders[0] / name).read_bytes().split(maxsplit=1)[0])
                  for name in ("train.txt", "test.txt")]
        self.assertGreater(sum(points), 10_000)
        self.assertGreater(points[0], points[1])


if __name__ == "__main__":
    sys.exit(unittest.main())
