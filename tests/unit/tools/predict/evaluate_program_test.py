"""`gleaner evaluate` on the command line: evaluate_program_test.py GLEANER GLEANER_MASTER."""

import csv
import json
import math
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


def train(train_file, store, *arguments):
    subprocess.run([MASTER, "--train", train_file, "--store", store, "--local", "1", "--threads", "1",
                    "--http", "", "--quiet", *map(str, arguments)],
                   check=True, capture_output=True, timeout=SECONDS)


def labels_of(path):
    """The true labels of each example of an XC file."""
    rows = []
    for line in path.read_text().splitlines()[1:]:
        first = line.split(" ")[0]
        rows.append([int(label) for label in first.split(",")] if first and ":" not in first else [])
    return rows


class Evaluate(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.path = Path(folder.name)
        cls.train, cls.test = cls.path / "train.txt", cls.path / "test.txt"
        status, _, err = run("dataset", "synth", "--train", cls.train, "--test", cls.test, "--points",
                             900, "--test-points", 300, "--features", 80, "--labels", 50, "--noise", 0.5)
        assert status == 0, err
        cls.store, cls.other, cls.blind = cls.path / "store", cls.path / "other", cls.path / "blind"
        train(cls.train, cls.store, "--test", cls.test, "--epochs", 3)
        train(cls.train, cls.other, "--test", cls.test, "--epochs", 1, "--seed", 2)
        train(cls.train, cls.blind, "--epochs", 3)
        cls.truth = labels_of(cls.test)
        cls.counts = [0] * 50
        for row in labels_of(cls.train):
            for label in row:
                cls.counts[label] += 1

    def evaluate(self, *arguments):
        status, out, err = run("evaluate", *arguments, "--json")
        self.assertEqual((status, err), (0, ""))
        return json.loads(out)

    def assert_refused(self, expected, arguments, *pieces):
        status, out, err = run("evaluate", *arguments)
        self.assertEqual((status, out), (expected, ""), err)
        self.assertEqual(err.count("\n"), 1, err)
        for piece in pieces:
            self.assertIn(str(piece), err)

    def scores(self, *arguments):
        path = self.path / "scores.txt"
        report = self.evaluate(self.store, "--scores", path, *arguments)
        rows = []
        for line in path.read_text().splitlines()[1:]:
            rows.append([(int(label), float(score)) for label, score in
                         (entry.split(":") for entry in line.split())])
        return report, rows

    def test_without_data_it_is_the_runs_own_test_file(self):
        def figures(report):
            del report["ways"][0]["examples_per_second"]
            return report
        self.assertEqual(figures(self.evaluate(self.store)),
                         figures(self.evaluate(self.store, "--data", self.test)))
        folder = self.path / "folder"
        folder.mkdir()
        (folder / "test.txt").write_text(self.test.read_text())
        self.assertEqual(figures(self.evaluate(self.store, "--data", folder))["evaluated"], 300)
        self.assert_refused(3, [self.blind], self.blind, "without a test file", "--data")

    def test_a_changed_or_lost_test_file_is_refused(self):
        own, store = self.path / "own.txt", self.path / "own"
        own.write_text(self.test.read_text())
        train(self.train, store, "--test", own, "--epochs", 1)
        own.write_text(self.test.read_text().replace(":1", ":2", 1))
        self.assert_refused(3, [store], own, "has changed")
        own.unlink()
        self.assert_refused(3, [store], own, "--data")

    def test_figures_are_those_of_scikit_learn(self):
        try:
            import numpy as np
            from sklearn import metrics
        except ImportError:
            self.skipTest("needs scikit-learn (python3-sklearn)")
        report, rows = self.scores("--top", 50, "--propensity", "0.6,2.6")
        true, score = np.zeros((300, 50), int), np.zeros((300, 50))
        for i, (labels, ranked) in enumerate(zip(self.truth, rows)):
            true[i, labels] = 1
            for label, probability in ranked:
                score[i, label] = probability
        way = report["ways"][0]
        for k in 3, 5:
            self.assertAlmostEqual(way[f"ndcg_at_{k}"], metrics.ndcg_score(true, score, k=k), 6)
        order = np.argsort(-score, axis=1, kind="stable")
        inverse = 1 + (math.log(900) - 1) * 3.6 ** 0.6 * (np.array(self.counts) + 2.6) ** -0.6
        for k in 1, 3, 5:
            hits = np.take_along_axis(true, order[:, :k], 1)
            self.assertAlmostEqual(way[f"p_at_{k}"], hits.mean(), 6)
            best = sum(np.sort(inverse * row)[::-1][:k].sum() for row in true)
            self.assertAlmostEqual(way[f"psp_at_{k}"], (hits * inverse[order[:, :k]]).sum() / best, 6)
        of = {row["mean_over"].split()[-1].strip("()"): row for row in report["f1"]}
        chosen, judged = slice(0, None, 2), slice(1, None, 2)
        for average, key in (("micro", "micro"), ("macro", "macro"), ("samples", "examples")):
            def f1(part, threshold):
                seen = np.flatnonzero(true[part].any(axis=0)) if average == "macro" else None
                return metrics.f1_score(true[part], score[part] >= threshold, average=average,
                                        labels=seen, zero_division=0)
            threshold = of[key]["threshold"]
            self.assertAlmostEqual(of[key]["f1"], f1(judged, threshold), 6)
            best = max(f1(chosen, other) for other in np.unique(score[chosen])[::7])
            self.assertGreaterEqual(f1(chosen, threshold), best - 1e-9)
        answers = np.take_along_axis(score, order[:, :5], 1).ravel()
        right = np.take_along_axis(true, order[:, :5], 1).ravel()
        bins = np.minimum((answers * 15).astype(int), 14)
        error = sum(abs((answers - right)[bins == b].sum()) for b in range(15)) / len(answers)
        self.assertAlmostEqual(report["calibration_error"], error, 6)

    def test_per_label_report_is_that_of_scikit_learn(self):
        try:
            import numpy as np
            from sklearn import metrics
        except ImportError:
            self.skipTest("needs scikit-learn (python3-sklearn)")
        path = self.path / "labels.csv"
        report, rows = self.scores("--per-label", path, "--top", 50)
        true, score = np.zeros((300, 50), int), np.zeros((300, 50))
        for i, (labels, ranked) in enumerate(zip(self.truth, rows)):
            true[i, labels] = 1
            for label, probability in ranked:
                score[i, label] = probability
        predicted = score >= report["f1"][0]["threshold"]
        precision, recall, f1, support = metrics.precision_recall_fscore_support(true, predicted, zero_division=0)
        with open(path, newline="") as file:
            found = list(csv.DictReader(file))
        self.assertEqual({int(row["label"]) for row in found},
                         set(np.flatnonzero(true.any(axis=0) | predicted.any(axis=0))))
        for row in found:
            label = int(row["label"])
            self.assertEqual((int(row["true"]), int(row["predicted"])), (support[label], predicted[:, label].sum()))
            self.assertEqual(int(row["training_examples"]), self.counts[label])
            for name, expected in (("precision", precision), ("recall", recall), ("f1", f1)):
                self.assertAlmostEqual(float(row[name] or 0), expected[label], 6)

    def test_all_forms_of_scores_say_the_same(self):
        _, rows = self.scores("--top", 7)
        trec, npz = self.path / "scores.run", self.path / "scores.npz"
        self.evaluate(self.store, "--top", 7, "--scores", trec)
        lines = [line.split() for line in trec.read_text().splitlines()]
        self.assertEqual([(int(e), int(label), int(rank), float(score)) for e, _, label, rank, score, _ in lines],
                         [(e, label, rank + 1, score) for e, row in enumerate(rows)
                          for rank, (label, score) in enumerate(row)])
        self.evaluate(self.store, "--top", 7, "--scores", npz)
        try:
            import numpy as np
        except ImportError:
            self.skipTest("needs NumPy (python3-numpy)")
        found = np.load(npz)
        self.assertEqual(found["shape"].tolist(), [300, 50])
        self.assertEqual(found["indptr"].tolist(), [7 * i for i in range(301)])
        self.assertEqual(found["indices"].tolist(), [label for row in rows for label, _ in row])
        np.testing.assert_allclose(found["data"], [score for row in rows for _, score in row], rtol=1e-11)

    def test_filtered_pairs_are_no_answers(self):
        _, rows = self.scores()
        pairs = self.path / "filter.txt"
        pairs.write_text("".join(f"{i} {row[0][0]}\n" for i, row in enumerate(rows) if i % 3 == 0))
        report, filtered = self.scores("--filter", pairs)
        for i, row in enumerate(rows):
            self.assertEqual(filtered[i], row[1:] if i % 3 == 0 else row)
        hits = sum(row[0][0] in labels for row, labels in zip(filtered, self.truth) if labels)
        self.assertAlmostEqual(report["ways"][0]["p_at_1"], hits / report["evaluated"], 9)
        pairs.write_text("0 1\n5 x\n")
        self.assert_refused(3, [self.store, "--filter", pairs], f"{pairs}:2:", "'5 x'")
        self.assert_refused(2, [self.store, "--propensity", "0.5"], "--propensity", "amazon")

    def test_two_models_are_compared_on_the_same_examples(self):
        same = self.evaluate(self.store, self.store)["difference"]
        self.assertEqual({(row["value"], row["low"], row["high"]) for row in same}, {(0, 0, 0)})
        report = self.evaluate(self.store, self.other)
        second = self.evaluate(self.other)["ways"][0]
        for row in report["difference"]:
            self.assertAlmostEqual(row["first"], report["ways"][0][row["figure"]], 9)
            self.assertAlmostEqual(row["second"], second[row["figure"]], 9)
            self.assertLessEqual(row["low"], row["value"])
            self.assertLessEqual(row["value"], row["high"])
        # An interval of paired differences is no wider than the interval of one model here.
        for row, own in zip(report["difference"], report["intervals"]):
            self.assertAlmostEqual(own["value"], row["first"], 9)
            self.assertLess(own["low"], own["high"])
        self.assertEqual(report["intervals"], self.evaluate(self.store)["intervals"])

    def test_probabilities_are_calibrated_where_the_run_has_test_examples(self):
        report = self.evaluate(self.store)
        self.assertLess(report["calibration_error"], report["calibration_error_of_logits"])
        self.assertLess(report["calibration_error"], 0.05)
        last = json.loads(run("history", self.store, "--json")[1].splitlines()[-1])
        self.assertGreater(last["calibration_slope"], 0)
        self.assertAlmostEqual(last["ndcg_at_5"], report["ways"][0]["ndcg_at_5"], 6)
        model = self.path / "model.safetensors"
        self.assertEqual(run("export", self.store, "--to", model)[0], 0)
        asked = ["--input", self.test, "--json"]
        self.assertEqual(run("predict", model, *asked), run("predict", self.store, *asked))
        for line in run("predict", self.store, *asked)[1].splitlines():
            for answer in json.loads(line)["predicted"]:
                logit = last["calibration_slope"] * answer["logit"] + last["calibration_offset"]
                self.assertAlmostEqual(answer["probability"], 1 / (1 + math.exp(-logit)), 4)
        for line in run("predict", self.blind, *asked)[1].splitlines():
            for answer in json.loads(line)["predicted"]:
                self.assertAlmostEqual(answer["probability"], 1 / (1 + math.exp(-answer["logit"])), 5)
        self.assertIn("not calibrated", run("predict", self.blind, "--input", self.test)[1].splitlines()[0])

    def test_texts_with_tags_are_read_as_convert_reads_them(self):
        words = ["owl", "cat", "dog", "fly", "cow"]
        rows = [(words[i % 5] + f" {words[(i * 3 + 1) % 5]} number{i % 7}", words[i % 5]) for i in range(200)]
        def table(name, rows):
            path = self.path / name
            path.write_text("id,text,tags\n" + "".join(f'n{i},"{text}","{tag}"\n'
                                                       for i, (text, tag) in enumerate(rows)))
            return path
        folder = self.path / "posts"
        status, _, err = run("dataset", "convert", table("posts.csv", rows), "--text", "text", "--tags", "tags",
                             "--output", folder)
        self.assertEqual(status, 0, err)
        store = self.path / "texts"
        train(folder / "train.txt", store, "--epochs", 2)
        new = table("new.csv", rows[:60] + [("owl", "unheard of")])
        as_file = self.path / "new.txt"
        status, _, err = run("dataset", "convert", new, "--vocabulary", folder, "--output", as_file)
        self.assertEqual(status, 0, err)
        of_table, of_file = self.evaluate(store, "--data", new), self.evaluate(store, "--data", as_file)
        self.assertEqual(of_table["evaluated"], 60)
        self.assertEqual(of_table["intervals"], of_file["intervals"])


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
