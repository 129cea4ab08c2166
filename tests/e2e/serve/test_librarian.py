"""A librarian's week: a vocabulary and documents, a model that serves, a new subject, a night's documents and a
retired subject. All are matched by name, and suggestions have the names that people know."""

import json
import pathlib
import sys
import unittest
import urllib.parse
import urllib.request

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from harness import TIME_FACTOR, Setup, finished  # noqa: E402
from test_serve import ServeCase  # noqa: E402

BASE = "http://example.org/"
WORDS = {"fruit": "apple pear plum cherry", "metal": "iron copper zinc silver", "cloth": "wool linen silk cotton"}
# Glass is on no document.
VOCABULARY = "".join(f"<{BASE}{name}>\t{title}\t{notation}\n" for name, title, notation in (
    ("fruit", "Fruit and orchards", "1.1"), ("metal", "Metals", "2"), ("cloth", "Cloth", ""),
    ("glass", "Glass bottles", "4")))
FLAGS = ["--epochs", 3, "--hidden", 0, "--output-shards", 2]


class Librarian(ServeCase):
    def write(self, name, text):
        with open(self.cluster.path(name), "w", encoding="utf-8") as file:
            file.write(text)
        return self.cluster.path(name)

    def converted(self, name, subjects, vocabulary):
        """A data set of 60 documents per subject."""
        rows = [f"{words.split()[i % 4]} {words.split()[i // 4 % 4]} thing{i % 30},{BASE}{subject}\n"
                for i in range(60) for subject, words in subjects.items()]
        source = self.write(f"{name}.csv", "body,tags\n" + "".join(rows))
        folder = self.cluster.path(name)
        self.cluster.gleaner("dataset", "convert", source, "--text", "body", "--tags", "tags", "--share", 0.2,
                             "--label-texts", self.write(f"{name}.tsv", vocabulary), "--output", folder)
        return folder

    def suggested(self, port, text, limit=100):
        form = urllib.parse.urlencode({"text": text, "limit": limit}).encode()
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/v1/annif/suggest", form,
                                    timeout=20 * TIME_FACTOR) as answer:
            return {hit["uri"].removeprefix(BASE): hit for hit in json.loads(answer.read())["results"]}

    def wait_for_next(self, server, count):
        server.wait_for(lambda: server.said().count("answers from now on") == count, "the next model")

    def numbers(self, model):
        path = self.write("question.txt", "apple iron wool glass boat\n")
        line = self.cluster.gleaner("predict", model, "--text", model, "--input", path, "--top", 10, "--json")
        return {one["name"].removeprefix(BASE): one["label"] for one in json.loads(line)["predicted"]}

    def test_a_week(self):
        monday, run = self.converted("monday", WORDS, VOCABULARY), self.cluster.path("run")
        Setup(f"{monday}/train.txt", f"{monday}/test.txt", FLAGS).run_local(self.cluster, run)
        model = self.cluster.path("model.safetensors")
        self.cluster.gleaner("export", run, "--data", monday, "--to", model)
        server, port = self.serve(model, "--data", model)

        hits = self.suggested(port, "a pear")
        self.assertEqual(next(iter(hits)), "fruit")
        self.assertEqual((hits["fruit"]["label"], hits["fruit"]["notation"]), ("Fruit and orchards", "1.1"))
        self.assertEqual((hits["cloth"]["label"], hits["cloth"]["notation"]), ("Cloth", None))
        # No document has the subject, nor one of its words.
        self.assertEqual(next(iter(self.suggested(port, "old bottles"))), "glass")
        before = self.numbers(model)

        # Tuesday: a subject that nobody has used yet.
        said = json.loads(self.cluster.gleaner(
            "labels", model, "--add", self.write("new.tsv", f"<{BASE}boats>\tZinc boats\t5\n"), "--json"))
        self.assertEqual((said["added"], said["labels"]), (1, 5))
        self.wait_for_next(server, 1)
        self.assertEqual(next(iter(self.suggested(port, "a pear"))), "fruit")
        self.assertIn("boats", self.suggested(port, "zinc"))
        self.assertEqual({name: self.numbers(model)[name] for name in before}, before)

        # A night's documents shift all numbers: "apples" is a new subject before the others.
        tuesday = self.converted("tuesday", {"apples": "braeburn gala fuji idared", "boats": "kayak canoe ketch yawl",
                                             **WORDS},
                                 VOCABULARY + f"<{BASE}boats>\tZinc boats\t5\n")
        second = self.cluster.path("second")
        master = self.cluster.start("gleaner", "import", model, *Setup(
            f"{tuesday}/train.txt", f"{tuesday}/test.txt", FLAGS).arguments(second, "--local", 1, "--threads", 1))
        self.assertGreater(finished(master)["p_at_1"], 0.9)
        self.cluster.gleaner("export", second, "--data", tuesday, "--to", model, "--force")
        self.wait_for_next(server, 2)
        for text, subject in (("kayak", "boats"), ("gala", "apples"), ("pear", "fruit"), ("bottles", "glass")):
            self.assertEqual(next(iter(self.suggested(port, text))), subject)

        # Wednesday: metals are retired.
        before = self.numbers(model)
        said = json.loads(self.cluster.gleaner(
            "labels", model, "--retire", self.write("old.txt", f"<{BASE}metal>\nnever-there\n"), "--json"))
        self.assertEqual((said["retired"], said["unknown"], said["labels"]), (1, 1, 6))
        self.wait_for_next(server, 3)
        self.assertNotIn("metal", self.suggested(port, "iron silver copper"))
        before.pop("metal")
        self.assertEqual(self.numbers(model), before)

    def annif_client(self, port, path, body, **query):
        """As annif-client asks: JSON, options in the query; returns (status, answer)."""
        address = f"http://127.0.0.1:{port}/v1/projects/{path}" + (f"?{urllib.parse.urlencode(query)}" if query else "")
        data = json.dumps(body).encode() if body is not None else None
        request = urllib.request.Request(address, data, {"Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=20 * TIME_FACTOR) as answer:
            text = answer.read()
            return answer.status, json.loads(text) if text else None

    def test_clients_of_annif_ask_and_teach(self):
        folder, run = self.converted("set", WORDS, VOCABULARY), self.cluster.path("run")
        Setup(f"{folder}/train.txt", f"{folder}/test.txt", FLAGS).run_local(self.cluster, run)
        learned = self.cluster.path("learned.jsonl")
        _, port = self.serve(run, "--data", folder, "--learn-to", learned)
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/v1/projects", timeout=20 * TIME_FACTOR) as answer:
            self.assertEqual([one["is_trained"] for one in json.loads(answer.read())["projects"]], [True])
        self.assertEqual(self.annif_client(port, "yso-en", None)[1]["project_id"], "yso-en")
        status, batch = self.annif_client(port, "yso-en/suggest-batch", {"documents": [
            {"text": "a pear", "document_id": "d1"}, {"text": "zinc"}]}, limit=2)
        self.assertEqual([(one["document_id"], len(one["results"]), one["results"][0]["label"]) for one in batch],
                         [("d1", 2, "Fruit and orchards"), (None, 2, "Metals")])
        form = urllib.parse.urlencode({"text": "a pear", "limit": 2}).encode()
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/v1/projects/yso-en/suggest", form,
                                    timeout=20 * TIME_FACTOR) as answer:
            self.assertEqual(json.loads(answer.read())["results"], batch[0]["results"])
        documents = [{"text": f"kayak, {i} \"oars\"\nof wood", "subjects": [{"uri": f"{BASE}boats", "label": "Boats"}]}
                     for i in range(5)]
        self.assertEqual(self.annif_client(port, "yso-en/learn", documents), (204, None))
        said = json.loads(self.cluster.gleaner("dataset", "convert", learned, "--text", "text", "--tags", "tags",
                                               "--output", self.cluster.path("night"), "--json"))
        self.assertEqual((said["labels"], said["written"][0]["points"]), (1, 5))

    def test_label_texts_in_every_form(self):
        source = self.write("set.csv", "body,tags\npear thing,fruit\niron thing,metal\n")
        folder = pathlib.Path(self.cluster.path("set"))

        def converted(name, text):
            return self.cluster.run("gleaner", "dataset", "convert", source, "--text", "body", "--tags", "tags",
                                    "--min-count", 1, "--force", "--output", folder,
                                    "--label-texts", self.write(name, text))
        for name, text in (
                ("list.tsv", "<glass>\tOld bottles\nmetal\tAlloys\n"),
                ("names.csv", "id,name\nglass,Old bottles\n\"metal\",\"Alloys\"\n"),
                ("both.tsv", "name\turi\ttext\nOld bottles\tglass\told\nAlloys\tmetal\tbottles\n"),
                ("lines.jsonl", '{"label": "glass", "name": "Old bottles"}\n{"label": "metal", "name": "Alloys"}\n')):
            code, program = converted(name, text)
            self.assertEqual(code, 0, program.said())
            names = [(folder / file).read_text(encoding="utf-8").split("\n")[:-1]
                     for file in ("labels.txt", "label_titles.txt", "features.txt")]
            self.assertEqual(names, [["fruit", "glass", "metal"], ["\t", "Old bottles\t", "Alloys\t"],
                                     ["alloys", "bottles", "iron", "old", "pear", "thing"]], name)
            texts = (folder / "label_texts.txt").read_text(encoding="utf-8").split("\n")
            self.assertEqual(texts[0], f"{4 if name == 'both.tsv' else 2} 6 3")
        for name, text, sentence in (("a.tsv", "glass\n", "a.tsv:1:1: expected an id, a tab and a name"),
                                     ("b.tsv", "glass\tBottles\n\tNobody\n", "b.tsv:2:1: expected an id"),
                                     ("c.csv", "id,text\nglass,\n", "c.csv: record 1: expected words of label 'glass'"),
                                     ("d.tsv", "", "d.tsv: expected labels with their words"),
                                     ("e.rdf", "<?xml version='1.0'?>", "e.rdf: RDF/XML is not read here: rapper")):
            code, program = converted(name, text)
            self.assertEqual(code, 3, program.said())
            self.assertIn(sentence, program.said())

    def test_a_thesaurus_in_skos(self):
        turtle = self.write("thesaurus.ttl", f'''@prefix skos: <http://www.w3.org/2004/02/skos/core#> .
@prefix owl: <http://www.w3.org/2002/07/owl#> .
@base <{BASE}> .
<fruit> a skos:Concept ; skos:prefLabel "Fruit and orchards"@en, "Obst"@de ; skos:notation "1.1" .
<metal> a skos:Concept ; skos:prefLabel "Metals"@en ; skos:altLabel "Alloys"@en, "Legierungen"@de .
<cloth> a skos:Concept ; skos:prefLabel "Cloth"@en ; owl:deprecated true .
<glass> a skos:Concept ; skos:prefLabel "Glas"@de .
''')
        source = self.write("set.csv", "body,tags\n" + "".join(
            f"{words.split()[i % 4]} thing{i % 3},{BASE}{name}\n" for i in range(20) for name, words in WORDS.items()))
        folder = pathlib.Path(self.cluster.path("set"))
        convert = ["dataset", "convert", source, "--text", "body", "--tags", "tags", "--label-texts", turtle, "--force",
                   "--output", folder]
        for flags, titles in (([], ["Fruit and orchards\t1.1", "Glas\t", "Metals\t"]),
                              (["--language", "de"], ["Obst\t1.1", "Glas\t", "Metals\t"])):
            self.cluster.gleaner(*convert, *flags)
            names = [(folder / name).read_text(encoding="utf-8").splitlines()
                     for name in ("labels.txt", "label_titles.txt", "features.txt")]
            self.assertEqual(names[:2], [[f"{BASE}{name}" for name in ("fruit", "glass", "metal")], titles])
            self.assertEqual("legierungen" in names[2], bool(flags))
            self.assertEqual("alloys" in names[2], not flags)
        for text, sentence in (("@prefix skos: <http://a#> .\n<a> a skos:Concept ; skos:prefLabel \"Cut", ".ttl:2:"),
                               ("<a> <b> <c> .", "expected concepts of SKOS")):
            turtle = self.write("cut.ttl", text)
            code, program = self.cluster.run("gleaner", *convert[:8], turtle, *convert[9:])
            self.assertEqual(code, 3, program.said())
            self.assertIn(sentence, program.said())

    def test_other_label_texts_are_another_run(self):
        folder, run = self.converted("set", WORDS, VOCABULARY), self.cluster.path("run")
        setup = Setup(f"{folder}/train.txt", f"{folder}/test.txt", FLAGS)
        setup.run_local(self.cluster, run)
        path = pathlib.Path(folder) / "label_texts.txt"
        text = path.read_text(encoding="utf-8").splitlines(keepends=True)
        path.write_text("".join([text[0].replace("4 ", "3 ", 1), *text[1:-1]]), encoding="utf-8")
        master = setup.start_master(self.cluster, run, "--local", 1)
        self.assertNotEqual(master.wait_exit(), 0)
        self.assertIn("label_texts_fingerprint is ", master.said())


if __name__ == "__main__":
    unittest.main()
