"""`gleaner serve` suggests subjects to Annif, whose backend `http` speaks as AnnifBackend does here."""

import json
import pathlib
import sys
import unittest
import urllib.error
import urllib.parse
import urllib.request

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from harness import TIME_FACTOR, Setup  # noqa: E402
from page_case import fits  # noqa: E402
from test_serve import ServeCase, post  # noqa: E402

SUBJECTS = {"http://example.org/s1": "apple pear plum cherry", "http://example.org/s2": "iron copper zinc silver"}


class AnnifBackend:
    """It takes subjects of its vocabulary alone, by their URI, and scores above 0; whatever fails is no subject."""

    def __init__(self, endpoint, vocabulary, **parameters):
        self.endpoint, self.vocabulary = endpoint, vocabulary
        self.parameters = {"limit": 100, **parameters}
        self.warnings = []

    def _ask(self, address, data=None):
        request = urllib.request.Request(address, data, {"User-Agent": "Annif/1.4.0", "Accept": "*/*"})
        with urllib.request.urlopen(request, timeout=20 * TIME_FACTOR) as answer:
            return json.loads(answer.read())

    def is_trained(self):
        return self._ask(self.endpoint.replace("/suggest", "")).get("is_trained")

    def suggest(self, text, metadata=()):
        form = {"text": text, **{f"metadata_{key}": value for key, value in metadata},
                **{key: self.parameters[key] for key in ("project", "limit") if key in self.parameters}}
        try:
            answer = self._ask(self.endpoint, urllib.parse.urlencode(form).encode())
        except urllib.error.HTTPError as error:
            self.warnings.append(f"{error.code} {error.read().decode()}")
            return {}
        results = answer["results"] if "results" in answer else answer
        return {hit["uri"]: hit["score"] for hit in results if hit["score"] > 0.0 and hit["uri"] in self.vocabulary}


class Annif(ServeCase):
    def test_an_annif_project_is_suggested_the_labels_of_predict(self):
        folder, store = self.cluster.texts("texts", SUBJECTS), self.cluster.path("store")
        Setup(f"{folder}/train.txt", f"{folder}/test.txt", ["--epochs", 4, "--hidden", 32]).run_local(self.cluster, store)
        server, port = self.serve(store, "--data", folder)
        annif = AnnifBackend(f"http://127.0.0.1:{port}/v1/annif/suggest", SUBJECTS, project="gleaner")
        self.assertIs(annif.is_trained(), True)
        text = "Zinc & copper, 100 % pure:\nnaïve silver"
        subjects = annif.suggest(text, [("title", "metal=ware")])
        self.assertEqual(list(subjects), ["http://example.org/s2", "http://example.org/s1"])
        answer = json.loads(post(port, {"inputs": [{"text": text}], "top": 100})[1])["predictions"][0]
        self.assertEqual(subjects, {one["name"]: one["probability"] for one in answer["predicted"]})
        annif.parameters["limit"] = 1
        self.assertEqual(list(annif.suggest("plum")), ["http://example.org/s1"])
        self.assertEqual(len(annif.suggest("")), 1)
        self.assertEqual(annif.warnings, [])
        annif.parameters["limit"] = "many"
        self.assertEqual(annif.suggest("plum"), {})
        self.assertEqual(annif.warnings, ["400 limit: it must be a number from 1\n"])
        fits(annif._ask(f"http://127.0.0.1:{port}/v1/annif/suggest", b"text=plum"),
             {"$ref": "#/components/schemas/AnnifSuggestions"})
        server.signal(15)
        self.assertEqual(server.wait_exit(), 0)


if __name__ == "__main__":
    unittest.main(argv=sys.argv)
