"""The program `gleaner` on the command line: gleaner_program_test.py GLEANER STORAGE_WRITER."""

import json
import re
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

GLEANER, WRITER = sys.argv[1], sys.argv[2]


def run(*arguments):
    done = subprocess.run([GLEANER, *map(str, arguments)], capture_output=True, text=True, timeout=60)
    return done.returncode, done.stdout, done.stderr


def verbs_below(*verbs):
    """Every verb that does something, as its words."""
    text = run(*verbs, "--help")[1]
    # At the top they stand in groups, between the options and the examples.
    listed = (text.partition("Subcommands:\n")[2].split("\n\n")[0] if verbs else
              text.partition("Options:")[2].partition("\n\n")[2].partition("\nExamples:")[0])
    names = re.findall(r"^  (\S+) ", listed, re.MULTILINE)
    for name in names:
        yield from verbs_below(*verbs, name)
    if verbs and not names:
        yield verbs


class Usage(unittest.TestCase):
    def test_version(self):
        self.assertRegex(run("--version")[1], r"^gleaner \d+\.\d+\.\d+\n$")

    def test_every_verb_has_json_and_its_help_two_examples_and_the_exit_codes(self):
        verbs = list(verbs_below())
        self.assertLessEqual({("status",), ("dataset", "info"), ("plan",)}, set(verbs))
        for verb in [(), *verbs]:
            status, out, err = run(*verb, "--help")
            self.assertEqual((status, err), (0, ""))
            examples = re.findall(r"^  .*gleaner ", out.split("Examples:")[1], re.MULTILINE)
            self.assertGreaterEqual(len(examples), 2, out)
            self.assertIn("Exit status: 0 done", out)
            for line in out.splitlines():
                self.assertLessEqual(len(line), 100, verb)
            # These two write for a shell and for man.
            if verb not in ((), ("completion",)):
                self.assertIn("--json", out, verb)

    def test_usage_errors_are_one_sentence_and_status_2(self):
        for arguments, part in (
            ([], "command"),
            (["chekpoint", "digest", "x"], "chekpoint"),
            (["history"], "store"),
            (["backup"], "subcommand"),
            (["restore", "a"], "store"),
            (["history", "a", "b"], "b"),
            (["history", "a", "--jsn"], "--jsn"),
            (["checkpoint"], "subcommand"),
            (["checkpoint", "digest"], "store"),
            (["plan"], "labels"),
            (["plan", "--labels", "many"], "labels"),
        ):
            status, out, err = run(*arguments)
            self.assertEqual((status, out), (2, ""), arguments)
            self.assertIn(part, err)
            self.assertEqual(err.count("\n"), 1, err)
            self.assertIn("--help", err)

    def test_help_lists_the_verbs_in_groups_and_no_verb_of_earlier_versions(self):
        out = run("--help")[1]
        heads = re.findall(r"^(\S.*):$", out, re.MULTILINE)
        self.assertEqual(heads, ["Options", "Ask a run", "Look into a store", "Check and mend", "Data sets and plans",
                                 "Predict and export", "Admit", "Launch", "This program", "Examples"])
        self.assertNotIn("stats", run("dataset", "--help")[1])
        self.assertNotIn("stats", run("completion", "bash")[1])
        self.assertIn("did you mean 'inspect'?", run("inpsect", "x")[2])

    def test_a_plan_reads_the_shape_of_a_data_set(self):
        with tempfile.TemporaryDirectory() as folder:
            data = Path(folder) / "train.txt"
            run("dataset", "synth", "--train", data, "--points", 500, "--labels", 60, "--features", 90)
            status, out, err = run("plan", "--data", data, "--core-speed", 1000, "--json")
            self.assertEqual((status, err), (0, ""))
            document = json.loads(out)
            self.assertEqual(document["run"]["points"], 500)
            self.assertTrue(document["run"]["shape"].startswith("90 -> "))
            self.assertGreater(document["speed"]["run_seconds"], 0)
            self.assertEqual(run("plan", "--data", data.with_name("none"))[0], 3)
            status, _, err = run("plan", "--labels", 100_000, "--memory", 0.01, "--core-speed", 1000)
            self.assertEqual(status, 2)
            self.assertIn("a volunteer needs", err)

    def test_a_plan_of_what_cannot_be_trained_is_refused_before_anything_is_measured(self):
        for flags, part in ((["--batch", 0], "--batch: Value 0 not in range 1 to 4096"), (["--epochs", 0], "epochs is 0"),
                            (["--epochs", 5, "--round-batches", 3000], "hold 3 epochs of 782")):
            status, out, err = run("plan", "--labels", "1000", *map(str, flags))
            self.assertEqual((status, out), (2, ""), flags)
            self.assertIn(part, err)
            self.assertEqual(err.count("\n"), 1, err)


class Completion(unittest.TestCase):
    def complete(self, *words):
        """What bash offers for the last of the words."""
        line = " ".join(f"'{word}'" for word in ("gleaner", *words))
        script = (f'eval "$({GLEANER} completion bash)"; COMP_WORDS=({line}); '
                  f"COMP_CWORD={len(words)}; _gleaner; echo ${{COMPREPLY[@]}}")
        done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, timeout=60)
        self.assertEqual(done.stderr, "")
        return done.stdout.split()

    def test_bash_completes_verbs_and_flags_where_they_stand(self):
        self.assertEqual(self.complete("ver"), ["verify"])
        self.assertEqual(self.complete("inspect", "run1", "--cs"), ["--csv"])
        self.assertEqual(self.complete("backup", "l"), ["list"])
        self.assertEqual(self.complete("backup", "verify", "--ba"), ["--backup"])
        self.assertEqual(self.complete("history", "--candidates"), [])
        self.assertEqual(self.complete("inspect", "history", "--la"), ["--labels"])

    def test_every_shell_has_a_script_of_all_verbs(self):
        for shell in ("bash", "zsh", "fish"):
            status, out, _ = run("completion", shell)
            self.assertEqual(status, 0)
            for word in ("evaluate", "repair", "digest"):
                self.assertIn(word, out)


class Stores(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.path = Path(self.folder.name)

    def test_no_store_is_status_4_and_leaves_nothing_behind(self):
        (self.path / "empty").mkdir()
        (self.path / "file").write_text("text")
        for name in ("absent", "empty", "file"):
            for verb in (["checkpoint", "digest"], ["history"]):
                status, out, err = run(*verb, self.path / name)
                self.assertEqual((status, out), (4, ""), err)
                self.assertIn(str(self.path / name), err)
                self.assertIn("--store", err)
                self.assertEqual(err.count("\n"), 1, err)
        self.assertEqual(sorted(p.name for p in self.path.iterdir()), ["empty", "file"])

    def test_digest_and_history_of_a_run(self):
        store = self.path / "store"
        expected = subprocess.run([WRITER, store, "3"], capture_output=True, text=True, check=True,
                                  timeout=60).stdout.splitlines()[-1].split()[1]
        before = {p.name: (p.stat().st_size, p.stat().st_mtime_ns) for p in store.iterdir()}
        self.assertEqual(run("checkpoint", "digest", store), (0, expected + "\n", ""))
        self.assertRegex(expected, "^[0-9a-f]{64}$")
        status, out, err = run("history", store)
        self.assertEqual((status, err), (0, ""))
        self.assertIn("P@1", out)
        self.assertEqual(len(run("history", store, "--json")[1].splitlines()), 3)
        after = {p.name: (p.stat().st_size, p.stat().st_mtime_ns) for p in store.iterdir()}
        self.assertEqual(before, after)

    def test_a_run_is_read_while_it_is_written(self):
        for bulk in ("0", str(1 << 30)):
            store = self.path / ("store" + bulk)
            with subprocess.Popen([WRITER, store, "8", bulk, "step"], stdin=subprocess.PIPE,
                                  stdout=subprocess.PIPE, text=True) as writer:
                digest = writer.stdout.readline().split()[1]
                for _ in range(8):
                    self.assertEqual(run("checkpoint", "digest", store), (0, digest + "\n", ""))
                    # Now the master stages and folds while it is being read.
                    print(".", end="", file=writer.stdin, flush=True)
                    during = [run("checkpoint", "digest", store) for _ in range(3)]
                    before, digest = digest, writer.stdout.readline().split()[1]
                    self.assertNotEqual(before, digest)
                    for status, out, err in during:
                        self.assertEqual((status, err), (0, ""))
                        self.assertIn(out.strip(), (before, digest))
            self.assertEqual(writer.returncode, 0)
            self.assertEqual(run("checkpoint", "digest", store)[1].strip(), digest)

    def test_a_damaged_store_is_status_4_and_named(self):
        store = self.path / "store"
        subprocess.run([WRITER, store, "3"], capture_output=True, check=True, timeout=60)
        for file in store.iterdir():
            if file.suffix not in (".sst", ".log") or file.stat().st_size < 4096:
                continue
            content = bytearray(file.read_bytes())
            for at in range(1000, len(content), 1500):
                content[at] ^= 0x55
            file.write_bytes(content)
        status, out, err = run("checkpoint", "digest", store)
        self.assertEqual((status, out), (4, ""), err)
        self.assertIn(str(store), err)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
