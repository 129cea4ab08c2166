"""`gleaner predict` on the command line: predict_program_test.py GLEANER GLEANER_MASTER."""

import csv
import json
import re
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

GLEANER, MASTER = sys.argv[1], sys.argv[2]
SECONDS = 120


def run(*arguments, given=""):
    done = subprocess.run([GLEANER, *map(str, arguments)], input=given, capture_output=True,
                          text=True, timeout=SECONDS)
    return done.returncode, done.stdout, done.stderr


class Predict(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.path = Path(folder.name)
        cls.store, cls.test = cls.path / "store", cls.path / "test.txt"
        train = cls.path / "train.txt"
        status, _, err = run("dataset", "synth", "--train", train, "--test", cls.test, "--points",
                             600, "--test-points", 100, "--features", 80, "--labels", 50)
        assert status == 0, err
        subprocess.run([MASTER, "--train", train, "--test", cls.test, "--store", cls.store,
                        "--local", "1", "--threads", "1", "--epochs", "1", "--quiet"],
                       check=True, capture_output=True, timeout=SECONDS)

    def assert_refused(self, expected, arguments, *pieces, given=""):
        status, out, err = run("predict", *arguments, given=given)
        self.assertEqual((status, out), (expected, ""), err)
        self.assertEqual(err.count("\n"), 1, err)
        for piece in pieces:
            self.assertIn(str(piece), err)

    def test_help_has_two_examples_and_the_exit_codes(self):
        status, out, err = run("predict", "--help")
        self.assertEqual((status, err), (0, ""))
        examples = re.findall(r"^  gleaner predict ", out.split("Examples:")[1], re.MULTILINE)
        self.assertGreaterEqual(len(examples), 2)
        self.assertIn("Exit status: 0 done", out)

    def test_errors_have_the_status_of_their_cause(self):
        self.assert_refused(2, [self.store], "--data", "--input")
        self.assert_refused(2, [self.store, "--input", "a", "--data", "b"], "excludes")
        self.assert_refused(2, [self.store, "--input", self.test, "--top", 0], "--top")
        self.assert_refused(2, [self.store, "a text", "--input", self.test], "texts", "--input")
        self.assert_refused(3, [self.store, "a text"], self.store, "words.json")
        self.assert_refused(3, [self.store, "--input", self.path / "none"], self.path / "none")
        self.assert_refused(3, [self.store, "--data", self.path], "labels.txt is missing")
        self.assert_refused(3, [self.store, "--input", self.test, "--labels", self.path / "none"],
                            self.path / "none")
        self.assert_refused(3, [self.store, "--input", "-"], "standard input:2:3", 80,
                            given="0 1:1\n0 81:1\n")
        self.assert_refused(3, [self.store, "--input", "-"], "standard input:1:1", "empty")
        self.assert_refused(4, [self.path / "none", "--input", self.test], self.path / "none")
        self.assert_refused(4, [self.path, "--input", self.test], self.path, "not a store")

    def test_standard_input_says_what_the_file_says(self):
        status, from_file, err = run("predict", self.store, "--input", self.test, "--json")
        self.assertEqual((status, err), (0, ""))
        self.assertEqual(len(from_file.splitlines()), 100)
        given = self.test.read_text()
        self.assertEqual(run("predict", self.store, "--input", "-", "--json", given=given),
                         (0, from_file, ""))
        # The same points without their header.
        headless = given.split("\n", 1)[1]
        self.assertEqual(run("predict", self.store, "--input", "-", "--json", "--format", "libsvm",
                             "--first-feature", 0, given=headless), (0, from_file, ""))

    def test_a_line_is_answered_while_the_input_goes_on(self):
        with subprocess.Popen([GLEANER, "predict", self.store, "--input", "-", "--json"],
                              stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
            for number in range(3):
                process.stdin.write(f"{number} {number + 1}:1\n")
                process.stdin.flush()
                self.assertEqual(json.loads(process.stdout.readline())["point"], number)
            process.stdin.close()
            self.assertEqual(process.stdout.read(), "")
            self.assertEqual(process.wait(SECONDS), 0)


class Texts(unittest.TestCase):
    """A person with texts and tags: from CSV to predictions for new lines."""

    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.path = Path(folder.name)
        cls.store, cls.set = cls.path / "store", cls.path / "set"
        animals = ["cat", "dog", "cow", "owl", "bee"]
        posts = cls.path / "posts.csv"
        posts.write_text("text,tags\n" + "".join(
            f'"the {animals[i % 5]} number {i % 13}, ""really""","about {animals[i % 5]};all"\n'
            for i in range(600)))
        status, _, err = run("dataset", "convert", posts, "--text", "text", "--tags", "tags",
                             "--tag-separator", ";", "--share", 0.2, "--output", cls.set)
        assert status == 0, err
        subprocess.run([MASTER, "--train", cls.set / "train.txt", "--test", cls.set / "test.txt",
                        "--store", cls.store, "--local", "1", "--threads", "1", "--epochs", "20",
                        "--quiet"], check=True, capture_output=True, timeout=SECONDS)

    def test_lines_of_text_are_answered_by_name(self):
        lines = "An OWL at night\nthe bee\n"
        status, out, err = run("predict", self.store, "--text", self.set, "--json", "--why", given=lines)
        self.assertEqual((status, err), (0, ""))
        first, second = map(json.loads, out.splitlines())
        self.assertEqual((first["point"], first["name"]), (0, "An OWL at night"))
        self.assertEqual([feature["name"] for feature in first["features"]], ["owl"])
        for answer, animal in ((first, "owl"), (second, "bee")):
            self.assertEqual({label["name"] for label in answer["predicted"][:2]},
                             {f"about {animal}", "all"})
        path = self.path / "lines.txt"
        path.write_text(lines)
        self.assertEqual(run("predict", self.store, "--text", self.set, "--json", "--why", "--input", path),
                         (0, out, ""))
        status, text, err = run("predict", self.store, "--text", self.set, given=lines)
        self.assertEqual((status, err), (0, ""))
        self.assertIn("An OWL at night\n", text)
        self.assertIn("about owl", text)

    def test_records_of_a_table_are_answered_record_by_record(self):
        texts = ["An OWL\nat night", 'the "bee"; here']
        table = self.path / "new.csv"
        table.write_text('id;text\n7;"An OWL\nat night"\n8;"the ""bee""; here"\n')
        rows = self.path / "new.jsonl"
        rows.write_text("".join(json.dumps({"text": text}) + "\n" for text in texts))
        answers = []
        for path in (table, rows):
            status, out, err = run("predict", self.store, "--text", self.set, "--json", "--input", path)
            self.assertEqual((status, err), (0, ""))
            answers.append(out)
        self.assertEqual(*answers)
        first, second = map(json.loads, answers[0].splitlines())
        self.assertEqual((first["name"], second["name"]), ("An OWL at night", 'the "bee"; here'))
        for answer, animal in ((first, "owl"), (second, "bee")):
            self.assertIn(f"about {animal}", {label["name"] for label in answer["predicted"][:2]})
        table.write_text("id,body\n7,owl\n")
        status, _, err = run("predict", self.store, "--text", self.set, "--input", table)
        self.assertEqual(status, 3, err)
        self.assertIn("new.csv:1:1: expected a column 'text', found id, body", err)

    def test_texts_on_the_command_line_need_no_data(self):
        status, out, err = run("predict", self.store, "An OWL at night", "the bee", "--json")
        self.assertEqual((status, err), (0, ""))
        lines = "An OWL at night\nthe bee\n"
        self.assertEqual(out, run("predict", self.store, "--text", self.set, "--json", given=lines)[1])

    def test_a_table_is_read_without_naming_the_words(self):
        table = self.path / "ids.csv"
        table.write_text('isbn,text\n"7,1","An OWL\nat night"\n8,the bee\n')
        status, out, err = run("predict", self.store, "--input", table, "--id", "isbn", "--csv", "--top", 2)
        self.assertEqual((status, err), (0, ""))
        rows = list(csv.DictReader(out.splitlines()))
        self.assertEqual([row["name"] for row in rows], ["7,1", "7,1", "8", "8"])
        self.assertEqual({row["label_name"] for row in rows[:2]}, {"about owl", "all"})
        self.assertEqual({row["is_true"] for row in rows}, {""})
        tsv = run("predict", self.store, "--data", table, "--id", "isbn", "--tsv", "--top", 2)[1]
        self.assertEqual([line.split("\t") for line in tsv.splitlines()], list(csv.reader(out.splitlines())))
        # Truth is known where the table has tags.
        table.write_text('text,tags\nAn OWL,about owl;all\nthe bee,about cat\n')
        rows = [json.loads(line) for line in run("predict", self.store, "--input", table, "--json")[1].splitlines()]
        self.assertEqual([row["missed"] for row in rows][0], [])
        self.assertEqual([label["name"] for label in rows[1]["missed"]] or
                         [p["name"] for p in rows[1]["predicted"] if p["is_true"]], ["about cat"])

    def test_a_folder_is_its_test_file(self):
        self.assertEqual(run("predict", self.store, "--input", self.set, "--json"),
                         run("predict", self.store, "--input", self.set / "test.txt", "--json"))

    def test_a_threshold_leaves_out_what_is_less_likely(self):
        for line in run("predict", self.store, "--input", self.set, "--json", "--threshold", 0.5)[1].splitlines():
            shown = json.loads(line)["predicted"]
            self.assertTrue(all(label["probability"] >= 0.5 for label in shown), shown)
            everything = json.loads(run("predict", self.store, json.loads(line)["name"], "--json", "--top", 100)[1])
            self.assertEqual([label["label"] for label in shown],
                             [label["label"] for label in everything["predicted"] if label["probability"] >= 0.5])
            break

    def test_a_text_says_what_its_point_of_the_test_part_says(self):
        _, points, _ = run("predict", self.store, "--input", self.set / "test.txt", "--json")
        texts = (self.set / "test.points.txt").read_text()
        _, lines, _ = run("predict", self.store, "--text", self.set, "--json", given=texts)
        points = [json.loads(line) for line in points.splitlines()]
        lines = [json.loads(line) for line in lines.splitlines()]
        self.assertGreater(len(points), 80)
        self.assertEqual(len(points), len(lines))
        for point, line in zip(points, lines):
            self.assertEqual([label["logit"] for label in point["predicted"]],
                             [label["logit"] for label in line["predicted"]])

    def test_a_line_is_answered_while_more_are_written(self):
        with subprocess.Popen([GLEANER, "predict", self.store, "--text", self.set, "--json"],
                              stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
            for number in range(3):
                process.stdin.write(f"the cat, {number}\n")
                process.stdin.flush()
                self.assertEqual(json.loads(process.stdout.readline())["point"], number)
            process.stdin.close()
            self.assertEqual(process.wait(SECONDS), 0)

    def test_folders_that_do_not_fit_are_refused(self):
        for arguments, expected, piece in (
            (["--text", self.path], 3, "words.json is missing"),
            (["--text", self.set, "--examples", 1], 2, "--examples"),
            (["--text", self.set, "--data", self.set], 2, "excludes"),
        ):
            status, out, err = run("predict", self.store, *arguments)
            self.assertEqual((status, out), (expected, ""), err)
            self.assertIn(piece, err)
        other = self.path / "other"
        (self.path / "few.csv").write_text("text,tags\na b,x\na b,y\n")
        run("dataset", "convert", self.path / "few.csv", "--text", "text", "--tags", "tags",
            "--output", other)
        status, _, err = run("predict", self.store, "--text", other)
        self.assertEqual(status, 3)
        self.assertIn("is not the features.txt with which the model was trained", err)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
