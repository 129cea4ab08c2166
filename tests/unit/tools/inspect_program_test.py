"""`gleaner inspect`, `verify` and `repair` on folders: inspect_program_test.py GLEANER AUDIT_WRITER."""

import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

GLEANER, WRITER = sys.argv[1], sys.argv[2]
VIEWS = (["summary"], ["shard", "0"], ["shard", "3"], ["neuron", "5"], ["table", "2"], ["layer"],
         ["history"], ["config"], ["checkpoints"], ["space"], ["volunteers"], ["units"],
         ["traffic"])


def run(*arguments):
    done = subprocess.run([GLEANER, *map(str, arguments)], capture_output=True, text=True,
                          timeout=60)
    return done.returncode, done.stdout, done.stderr


class Stores(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.path = Path(self.folder.name)
        self.store = self.path / "store"
        self.backups = self.path / "backups"
        subprocess.run([WRITER, self.store, "3", self.backups], check=True, timeout=60)

    def files(self, folder):
        return {p.name: (p.stat().st_size, p.stat().st_mtime_ns) for p in folder.iterdir()}

    def verified(self, store):
        status, out, err = run("verify", store, "--json")
        self.assertIn(status, (0, 4), err)
        return status, json.loads(out)

    def digest(self, store):
        return run("checkpoint", "digest", store)[1]


class Inspect(Stores):
    def test_every_view_is_text_of_100_columns_json_and_csv_and_changes_nothing(self):
        before = self.files(self.store)
        for view in VIEWS:
            status, out, err = run("inspect", self.store, *view)
            self.assertEqual((status, err), (0, ""), view)
            for line in out.splitlines():
                self.assertLessEqual(len(line), 100, line)
                self.assertNotIn("\x1b", line)
            status, out, err = run("inspect", self.store, *view, "--json")
            document = json.loads(out)
            self.assertEqual(document["gleaner_json"], 1)
            self.assertEqual(document["verb"], "inspect " + view[0])
            self.assertEqual(run("inspect", self.store, *view, "--csv")[0], 0)
        self.assertEqual(self.files(self.store), before)

    def test_the_views_say_what_is_stored(self):
        document = json.loads(run("inspect", self.store, "--json")[1])
        self.assertEqual(document["progress"]["checkpoint"], 3)
        self.assertEqual(document["precision"]["evaluations"][0]["p_at_1"], 0.5)
        units = json.loads(run("inspect", self.store, "units", "--json")[1])["units"]
        self.assertEqual([(u["name"], u["issued"], u["out"]) for u in units],
                         [("atlas", 12, 1), ("bilbo", 12, 1)])
        table = json.loads(run("inspect", self.store, "table", "0", "--json")[1])
        self.assertEqual(sum(b["buckets"] for b in table["occupancy"]), table["buckets"])
        neuron = json.loads(run("inspect", self.store, "neuron", "5", "--json")[1])
        self.assertEqual(len(neuron["buckets"]), 5)
        self.assertTrue(all(b["neurons"] >= 1 for b in neuron["buckets"]))
        csv = run("inspect", self.store, "history", "--csv")[1].splitlines()
        self.assertEqual(len(csv), 4)
        self.assertEqual(len(csv[0].split(",")), len(csv[1].split(",")))

    def test_a_neuron_is_found_by_name(self):
        names = self.path / "names.txt"
        names.write_text("".join(f"name {i}\n" for i in range(23)))
        _, out, _ = run("inspect", self.store, "neuron", "name 7", "--labels", names, "--json")
        self.assertEqual(json.loads(out)["label"], 7)

    def test_what_is_not_there_is_a_usage_error(self):
        for arguments, part in ((["shard", "9"], "0 to 4"), (["table", "5"], "0 to 4"),
                                (["neuron", "nobody"], "nobody"), (["shard"], "shard"),
                                (["layer", "1"], "nothing"), (["weather"], "weather")):
            status, out, err = run("inspect", self.store, *arguments)
            self.assertEqual((status, out), (2, ""), arguments)
            self.assertIn(part, err)
            self.assertEqual(err.count("\n"), 1, err)


class Verify(Stores):
    def damage(self, name, change):
        """A copy of the store in which `change` was done to the bytes of the file."""
        copy = self.path / "damaged"
        shutil.rmtree(copy, ignore_errors=True)
        shutil.copytree(self.store, copy)
        file = copy / name
        file.write_bytes(change(bytearray(file.read_bytes())))
        return copy

    def test_a_healthy_store_is_whole(self):
        before = self.files(self.store)
        status, document = self.verified(self.store)
        self.assertEqual((status, document["findings_count"]), (0, 0))
        self.assertEqual(self.files(self.store), before)
        self.assertIn("whole", run("verify", self.store)[1])

    def test_a_store_of_another_version_is_not_called_damaged(self):
        other = self.path / "other"
        subprocess.run([WRITER, other, "3", self.path / "other-backups", "99"], check=True,
                       timeout=60)
        status, out, err = run("verify", other)
        self.assertEqual((status, out), (4, ""))
        self.assertIn("the store has version 99, and this program reads version", err)
        self.assertIn("use the version of Gleaner that wrote it", err)
        self.assertNotIn("damaged", err)

    def test_damaged_files_are_found(self):
        tables = sorted(p.name for p in self.store.glob("*.sst"))
        self.assertGreaterEqual(len(tables), 3)
        # Bytes behind the last record of the log were never acknowledged.
        names = tables + ["CURRENT", next(self.store.glob("MANIFEST-*")).name]
        for index, name in enumerate(names):
            changes = {
                "a bit at the front": lambda b: b[:10] + bytes([b[10] ^ 1]) + b[11:],
                "a bit in the middle": lambda b: b[:len(b) // 2] + bytes([b[len(b) // 2] ^ 8]) +
                b[len(b) // 2 + 1:],
                "cut in half": lambda b: b[:len(b) // 2],
                "empty": lambda b: b"",
                "zeros": lambda b: bytes(len(b)),
            }
            # In turn, so that the test stays quick; both files that lead to the others have all.
            if name in tables:
                changes = dict([list(changes.items())[index % len(changes)]])
            for what, change in changes.items():
                with self.subTest(file=name, what=what):
                    copy = self.damage(name, change)
                    status, document = self.verified(copy)
                    self.assertEqual(status, 4)
                    self.assertGreater(document["findings_count"], 0)
            if name in tables[1:]:
                continue
            with self.subTest(file=name, what="gone"):
                copy = self.damage(name, lambda b: b)
                (copy / name).unlink()
                self.assertEqual(run("verify", copy)[0], 4)

    def test_tools_never_crash_on_a_damaged_store(self):
        rng = random.Random(1)
        names = [p.name for p in self.store.iterdir() if p.is_file() and p.name not in ("LOCK", "LOG")]
        for _ in range(12):
            def change(content):
                for _ in range(rng.choice((1, 1, 3, 30))):
                    if content:
                        content[rng.randrange(len(content))] = rng.randrange(256)
                return content[:rng.randrange(len(content) + 1)] if rng.random() < 0.3 else content
            copy = self.damage(rng.choice(names), change)
            for arguments in (["verify", copy], ["inspect", copy], ["inspect", copy, "layer"],
                              ["inspect", copy, "neuron", "3"], ["history", copy]):
                status, _, err = run(*arguments)
                self.assertIn(status, (0, 1, 4), (arguments, err))


class Backups(Stores):
    def test_what_is_verified_and_restored_is_told_to_programs(self):
        status, out, err = run("backup", "verify", self.backups, "--json")
        self.assertEqual((status, err), (0, ""))
        verified = json.loads(out)
        listed = [json.loads(line) for line in run("backup", "list", self.backups, "--json")[1].splitlines()]
        self.assertEqual((verified["gleaner_json"], verified["verb"]), (1, "backup verify"))
        self.assertEqual(verified["intact"], listed)
        again = self.path / "again"
        restored = json.loads(run("restore", self.backups, again, "--json")[1])
        self.assertEqual((restored["verb"], restored["store"]), ("restore", str(again)))
        self.assertEqual((restored["backup"], restored["checkpoint"]),
                         (listed[-1]["backup"], listed[-1]["checkpoint"]))
        digest = json.loads(run("checkpoint", "digest", again, "--json")[1])
        self.assertEqual(digest["digest"] + "\n", self.digest(again))
        self.assertEqual(digest["checkpoint"], listed[-1]["checkpoint"])


    def test_every_verb_that_reads_a_store_reads_a_backup_where_it_lies(self):
        def files():
            return {p: (p.stat().st_size, p.stat().st_mtime_ns) for p in self.backups.rglob("*")}
        before = files()
        restored = self.path / "restored"
        run("restore", self.backups, restored)
        number = json.loads(run("backup", "list", self.backups, "--json")[1].splitlines()[-1])["backup"]
        for words in (self.backups, f"{self.backups}@{number}", os.path.relpath(self.backups)):
            self.assertEqual(run("checkpoint", "digest", words), run("checkpoint", "digest", restored))
            self.assertEqual(self.verified(words)[0], 0)
            for arguments in (["history"], ["inspect", "neuron", "3"], ["inspect", "layer"]):
                verb, *more = arguments
                self.assertEqual(run(verb, words, *more), run(verb, restored, *more))
            self.assertEqual(run("diff", words, restored)[0], 0)
        self.assertEqual(files(), before)
        for words in (f"{self.backups}@{number + 9}", f"{self.backups}@0", f"{self.backups}@x"):
            status, out, err = run("inspect", words)
            self.assertEqual((status, out), (4, ""), err)
            self.assertIn(str(words), err)

    def test_a_damaged_backup_is_found_where_it_lies(self):
        damaged = 0
        for table in sorted((self.backups / "shared_checksum").glob("*.sst")):
            content = bytearray(table.read_bytes())
            content[20] ^= 1
            table.write_bytes(content)
            status, document = self.verified(self.backups)
            self.assertEqual(status, 4)
            damaged += "files" in {f["check"] for f in document["findings"]}
            content[20] ^= 1
            table.write_bytes(content)
        self.assertGreaterEqual(damaged, 1)


class Repair(Stores):
    def test_a_damaged_table_file_is_repaired_beside_the_store(self):
        digest = self.digest(self.store)
        repaired = 0
        for name in sorted(p.name for p in self.store.glob("*.sst"))[-4:]:
            copy = self.path / "damaged"
            shutil.rmtree(copy, ignore_errors=True)
            shutil.copytree(self.store, copy)
            content = bytearray((copy / name).read_bytes())
            content[20] ^= 1
            (copy / name).write_bytes(content)
            before = self.files(copy)
            self.assertEqual(run("verify", copy)[0], 4)
            target = self.path / f"repaired-{name}"
            status, out, err = run("repair", copy, "--from", self.backups, "--to", target, "--json")
            self.assertEqual(self.files(copy), before)
            self.assertEqual(status, 0, err)
            self.assertGreater(len(json.loads(out)["done"]), 0)
            self.assertEqual(self.verified(target)[0], 0)
            self.assertEqual(self.digest(target), digest)
            repaired += 1
        self.assertGreaterEqual(repaired, 3)

    def test_an_existing_target_is_not_touched(self):
        (self.path / "there").mkdir()
        status, _, err = run("repair", self.store, "--from", self.backups, "--to",
                             self.path / "there")
        self.assertEqual(status, 2)
        self.assertIn("exists", err)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
