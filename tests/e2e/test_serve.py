"""A trained model that answers over HTTP, by `gleaner serve` and on the master's page: it answers as
`gleaner predict` does, to the bit, takes new checkpoints, and no request harms it."""

import http.client
import json
import re
import socket
import sys
import time
import unittest

import browser
from harness import ENDLESS, RUN_SECONDS, TIME_FACTOR, EndToEndTest, Setup, small_setup
from page_case import ask, fits, port_of

HOSTILE = "<img src=x onerror=document.title='hacked'>"
PREDICTIONS = {"$ref": "#/components/schemas/Predictions"}


def post(port, request, accept=None, headers=None):
    """(status, body) of one request; `request` is sent as it is where it is text or bytes."""
    body = request if isinstance(request, (str, bytes)) else json.dumps(request)
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60 * TIME_FACTOR)
    try:
        connection.request("POST", "/v1/predict", body,
                           {**({"Accept": accept} if accept else {}), **(headers or {})})
        answer = connection.getresponse()
        return answer.status, answer.read().decode()
    finally:
        connection.close()


class ServeCase(EndToEndTest):
    def serve(self, *arguments, http="127.0.0.1:0"):
        """A server and its port."""
        server = self.cluster.start("gleaner", "serve", *arguments, "--http", http)
        server.wait_for(lambda: "http://" in server.said(), "an address")
        return server, int(re.search(r"http://[\d.]+:(\d+)", server.said()).group(1))

    def most_bytes(self, server):
        """The most memory that the process ever had."""
        with open(f"/proc/{server.pid}/status", encoding="utf-8") as file:
            return 1024 * int(re.search(r"VmHWM:\s+(\d+)", file.read()).group(1))

    def bytes_on_their_way(self, port):
        """Sent to or by the port, and not read yet."""
        total = 0
        with open("/proc/net/tcp", encoding="utf-8") as file:
            for line in file.read().splitlines()[1:]:
                ends, queues = line.split()[1:3], line.split()[4].split(":")
                if any(int(end.split(":")[1], 16) == port for end in ends):
                    total += int(queues[0], 16) + int(queues[1], 16)
        return total

    def texts(self):
        """One label per subject, and one label with a hostile name."""
        return self.cluster.texts("texts", {"fruit": "apple pear plum cherry", "metal": "iron copper zinc silver",
                                            HOSTILE: "evil bad worse worst"})

    def trained_on_texts(self, *flags):
        folder, store = self.texts(), self.cluster.path("store")
        setup = Setup(f"{folder}/train.txt", f"{folder}/test.txt", ["--epochs", 4, "--hidden", 32, *flags])
        setup.run_local(self.cluster, store)
        return folder, store

    def predicted(self, store, text, *flags):
        path = self.cluster.path("points.svm")
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        lines = self.cluster.gleaner("predict", store, "--input", path, "--format", "libsvm", "--first-feature", 0,
                                     "--json", *flags).splitlines()
        return [json.loads(line)["predicted"] for line in lines]


class Serve(ServeCase):
    def test_answers_are_those_of_predict_to_the_bit(self):
        setup, store = small_setup(self.cluster, flags=("--sampling", "lsh")), self.cluster.path("store")
        setup.run_local(self.cluster, store)
        with open(setup.test, encoding="utf-8") as file:
            points = [line.split()[1:] for line in file.read().splitlines()[1:101]]
        points = [[pair for pair in point if ":" in pair] for point in points]
        inputs = [{"features": [int(pair.split(":")[0]) for pair in point],
                   "values": [float(pair.split(":")[1]) for pair in point]} for point in points]
        text = "".join("0 " + " ".join(point) + "\n" for point in points)
        exact = self.predicted(store, text)
        # Nobody knows the true labels of features alone.
        for labels in exact:
            for label in labels:
                del label["is_true"]
        _, port = self.serve(store, "--tables", 40, "--threads", 2)
        ways = {True: exact, False: None}
        ways[False] = [[{key: value for key, value in label.items() if key != "is_true"} for label in labels]
                       for labels in self.predicted(store, text, "--tables", 40)]
        self.assertNotEqual(ways[True], ways[False])
        for is_exact, expected in ways.items():
            status, body = post(port, {"inputs": inputs, "exact": is_exact})
            self.assertEqual(status, 200, body)
            answer = json.loads(body)
            fits(answer, PREDICTIONS)
            self.assertEqual(answer["way"], "exact" if is_exact else "tables")
            self.assertEqual([one["predicted"] for one in answer["predictions"]], expected)
            status, lines = post(port, {"inputs": inputs, "exact": is_exact}, "application/x-ndjson")
            self.assertEqual([json.loads(line) for line in lines.splitlines()], answer["predictions"])

    def test_texts_and_test_examples(self):
        folder, store = self.trained_on_texts()
        _, port = self.serve(store, "--data", folder)
        said = "copper and silver"
        source = self.cluster.path("question.txt")
        with open(source, "w", encoding="utf-8") as file:
            file.write(said + "\n")
        line = self.cluster.gleaner("predict", store, "--text", folder, "--input", source, "--json", "--why")
        self.assertEqual(post(port, {"inputs": [{"text": said}]}, "application/x-ndjson"), (200, line.strip() + "\n"))
        self.assertEqual(json.loads(line)["predicted"][0]["name"], "metal")
        answer = json.loads(post(port, {"inputs": [{"example": 0}], "top": 1})[1])["predictions"][0]
        self.assertEqual(answer["point"], 0)
        self.assertTrue(answer["predicted"][0]["is_true"])
        likely = {"inputs": [{"example": answer["name"]}], "top": 3, "threshold": 0.5}
        by_name = json.loads(post(port, likely)[1])["predictions"][0]
        self.assertTrue(all(label["probability"] >= 0.5 for label in by_name["predicted"]), by_name)
        self.assertEqual(by_name["name"], answer["name"])
        status, _, body = ask(port, "/metrics")
        self.assertEqual(status, 200)
        self.assertIn("gleaner_predict_request_seconds_count 3", body)
        model = json.loads(ask(port, "/v1/model")[2])
        fits(model, {"$ref": "#/components/schemas/Model"})
        self.assertEqual((model["requests"], model["examples"], model["reads_texts"]), (3, 3, True))

    def test_bad_requests_name_the_field(self):
        folder, store = self.trained_on_texts()
        server, port = self.serve(store, "--data", folder)
        deep = "[" * 500_000
        for request, field in [
                ("", "body"), ("no JSON", "body"), (b"\xff\xfe", "body"), (deep, "body"), ("[]", "body"), ({}, "inputs"),
                ({"inputs": []}, "inputs"), ({"inputs": [{"text": "a"}] * 1025}, "inputs"),
                ({"inputs": [{"text": "a"}] * 1000, "top": 21}, "inputs"),
                ({"inputs": [{"text": "a"}], "other": 1}, "body"), ({"inputs": [{"text": "a"}], "top": 101}, "top"),
                ({"inputs": [{"text": "a"}], "top": -1}, "top"), ({"inputs": [{"text": "a"}], "exact": False}, "exact"),
                ({"inputs": [7]}, "inputs[0]"), ({"inputs": [{"text": "a"}, {}]}, "inputs[1]"),
                ({"inputs": [{"text": "a", "example": 1}]}, "inputs[0]"), ({"inputs": [{"text": 1}]}, "inputs[0].text"),
                ({"inputs": [{"example": 1 << 40}]}, "inputs[0].example"),
                ({"inputs": [{"example": "nobody"}]}, "inputs[0].example"),
                ({"inputs": [{"features": [1 << 33]}]}, "inputs[0].features[0]"),
                ({"inputs": [{"features": [1, 1]}]}, "inputs[0].features"),
                ('{"inputs": [{"features": [1], "values": [1e39]}]}', "inputs[0].values[0]"),
                ({"inputs": [{"features": [1], "values": []}]}, "inputs[0].values")]:
            with self.subTest(request=str(request)[:60]):
                status, body = post(port, request)
                self.assertEqual((status, body.split(": ")[0]), (400, field), body)
        self.assertEqual(post(port, b"x" * ((1 << 20) + 1))[0], 413)
        self.assertEqual(post(port, "{}", headers={"Origin": "http://other.example"})[0], 403)
        self.assertEqual(ask(port, "/v1/predict")[:1] + (ask(port, "/v1/predict")[1]["Allow"],), (405, "POST"))
        self.assertEqual(ask(port, "/v1/model", method="POST")[0], 405)
        self.assertEqual(post(port, {"inputs": [{"text": "iron"}]})[0], 200)
        server.signal(15)
        self.assertEqual(server.wait_exit(), 0)

    def test_whoever_sends_half_or_reads_nothing_holds_nobody_up(self):
        folder, store = self.trained_on_texts()
        server, port = self.serve(store, "--data", folder)
        body = json.dumps({"inputs": [{"text": "iron " * 150}] * 1000, "top": 3}).encode()
        head = b"POST /v1/predict HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n" % len(body)
        readers = []
        for i in range(60):
            reader = socket.create_connection(("127.0.0.1", port))
            self.addCleanup(reader.close)
            reader.settimeout(20 * TIME_FACTOR)
            reader.sendall(head + (body[:len(body) // 2] if i % 2 else body))
            readers.append(reader)
        deadline = time.monotonic() + 30 * TIME_FACTOR
        while post(port, {"inputs": [{"text": "iron"}]})[0] != 200:
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.2)
        server.signal(15)
        self.assertEqual(server.wait_exit(), 0)

    def test_bodies_without_end_are_bounded_together(self):
        folder, store = self.trained_on_texts()
        server, port = self.serve(store, "--data", folder)
        begin = self.most_bytes(server)
        body = b"x" * 1_000_000
        head = b"POST /v1/predict HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n" % len(body)
        senders = []
        for _ in range(100):  # 100 MB, of which 64 MiB are held
            sender = socket.create_connection(("127.0.0.1", port))
            self.addCleanup(sender.close)
            sender.settimeout(20 * TIME_FACTOR)
            sender.sendall(head + body[:-1])
            senders.append(sender)
        deadline = time.monotonic() + RUN_SECONDS
        while self.bytes_on_their_way(port) > 0:
            self.assertLess(time.monotonic(), deadline, "the server reads nothing")
            time.sleep(0.1)
        said = []
        for sender in senders:
            sender.sendall(body[-1:])
            said.append(int(sender.recv(1000).split()[1]))
        self.assertEqual(set(said), {400, 503})
        self.assertLess(self.most_bytes(server) - begin, 200e6)  # a string takes up to twice its bytes
        self.assertEqual(post(port, {"inputs": [{"text": "iron"}]})[0], 200)

    def test_it_goes_on_with_new_checkpoints_of_a_run_that_trains(self):
        folder, store = self.texts(), self.cluster.path("store")
        setup = Setup(f"{folder}/train.txt", f"{folder}/test.txt",
                      ["--epochs", ENDLESS, "--hidden", 32, "--round-batches", 2, "--batch-examples", 64])
        master = setup.start_master(self.cluster, store, "--local", 1, "--threads", 1, "--http", "127.0.0.1:0")
        page = port_of(master.wait_event("page")["url"])
        master.wait_checkpoint(2)
        _, port = self.serve(store, "--data", folder)
        question = {"inputs": [{"text": "copper"}], "top": 2}
        first = json.loads(post(port, question)[1])
        deadline = time.monotonic() + RUN_SECONDS
        while json.loads(post(port, question)[1])["checkpoint"] <= first["checkpoint"]:
            self.assertLess(time.monotonic(), deadline, "it never went on")
            time.sleep(0.1)
        status, body = post(page, question)  # the master's own page
        self.assertEqual(status, 200, body)
        fits(json.loads(body), PREDICTIONS)
        self.assertGreaterEqual(json.loads(body)["checkpoint"], first["checkpoint"])
        status, body = post(page, {"inputs": question["inputs"] * 17})
        self.assertEqual((status, body.split(":")[0]), (400, "inputs"))
        master.signal(15)
        master.wait_exit()

    def test_histories_of_several_stores_are_compared(self):
        setup, stores = small_setup(self.cluster), [self.cluster.path(name) for name in ("short", "long")]
        for epochs, store in zip((2, 4), stores):
            setup.with_flag("--epochs", epochs).run_local(self.cluster, store)
        _, port = self.serve(*stores)
        status, _, body = ask(port, "/api/v1/histories")
        self.assertEqual(status, 200)
        told = json.loads(body)
        fits(told, {"$ref": "#/components/schemas/Histories"})
        self.assertEqual([run["name"] for run in told["runs"]], [str(store) for store in stores])
        for run, store, epochs in zip(told["runs"], stores, (2, 4)):
            records = self.cluster.history(store)
            self.assertEqual(run["checkpoint"], [record["checkpoint"] for record in records])
            self.assertEqual(run["series"]["loss"]["last"], [record["loss"] for record in records])
            self.assertEqual(run["batches"][-1], epochs * run["batches_per_epoch"])
        self.assertEqual(self.cluster.run("gleaner", "serve", stores[0], "/nowhere")[0], 4)

    def test_a_model_file_answers_and_strange_flags_are_refused(self):
        folder, store = self.trained_on_texts()
        model = self.cluster.path("model.safetensors")
        self.cluster.gleaner("export", store, "--to", model)
        server, port = self.serve(model, "--data", folder, "--json")
        said = json.loads(server.out[0])
        self.assertEqual((said["verb"], said["url"]), ("serve", f"http://127.0.0.1:{port}"))
        _, stored = self.serve(store, "--data", folder)
        question = {"inputs": [{"text": "copper and iron"}]}
        self.assertEqual(json.loads(post(port, question)[1])["predictions"],
                         json.loads(post(stored, question)[1])["predictions"])
        for arguments, code in ((("--http", "0.0.0.0:0"), 2), (("--data", "/nowhere"), 3), (("--tables", 5, "--exact"), 2)):
            self.assertEqual(self.cluster.run("gleaner", "serve", store, *arguments)[0], code, arguments)
        self.assertEqual(self.cluster.run("gleaner", "serve", "/nowhere")[0], 4)


@unittest.skipIf(browser.missing(), browser.missing())
class ServePage(ServeCase):
    def test_the_box_answers_and_hostile_names_are_text(self):
        folder, store = self.trained_on_texts()
        _, port = self.serve(store, "--data", folder)
        window = browser.Browser(size=(390, 844), dark=True)
        self.addCleanup(window.close)
        window.open(f"http://127.0.0.1:{port}/")
        asking = ("document.querySelector('#predict-text').value = arguments[0];"
                  "document.querySelector('#predict-kind').value = arguments[1];"
                  "document.querySelector('#predict-form').requestSubmit()")
        window.run(asking, f"evil worst {HOSTILE}", "text")
        window.wait("return document.querySelectorAll('#predict-answer tbody tr').length === 3", "labels")
        self.assertEqual(window.text("#predict-answer tbody tr th"), HOSTILE)
        self.assertEqual(window.text("#predict-answer h3"), f"evil worst {HOSTILE}")
        self.assertEqual(window.run("return document.querySelectorAll('img, iframe, object').length"), 0)
        self.assertNotEqual(window.run("return document.title"), "hacked")
        self.assertLessEqual(window.run("return document.documentElement.scrollWidth"), 390)
        window.run(asking, "0", "example")
        window.wait("return document.querySelector('#predict-answer').textContent.includes('✓ true')", "a true label")
        self.assertEqual(window.console(), [])
        window.run(asking, "nobody", "example")
        window.wait("return document.querySelector('#predict-answer').textContent.includes('no test example')", "why not")

    def test_charts_of_several_runs_are_saved_as_picture_and_table(self):
        setup, stores = small_setup(self.cluster), [self.cluster.path(name) for name in ("short", "long")]
        for epochs, store in zip((2, 4), stores):
            setup.with_flag("--epochs", epochs).run_local(self.cluster, store)
        _, port = self.serve(*stores)
        window = browser.Browser()
        self.addCleanup(window.close)
        window.open(f"http://127.0.0.1:{port}/")
        window.wait("return document.querySelectorAll('#compare .chart').length === 4", "charts")
        self.assertIn("short", window.text("#compare .chart h3"))
        window.run("window.saved = []; const make = URL.createObjectURL.bind(URL);"
                   "URL.createObjectURL = (blob) => { blob.arrayBuffer().then((b) => saved.push("
                   "[blob.type, blob.size, new TextDecoder().decode(b.slice(0, 60))])); return make(blob); };"
                   "document.querySelectorAll('#compare .chart:first-child .saves button').forEach((b) => b.click())")
        window.wait("return saved.length === 2", "two files")
        (_, size, picture), (_, _, table) = sorted(window.run("return saved"))
        self.assertEqual(picture[1:4], "PNG")
        self.assertGreater(size, 2000)
        self.assertTrue(table.startswith('run,checkpoint,batches,epoch,wall_seconds,loss\n"short",1,'), table)
        window.run("const axis = document.querySelector('#compare-axis'); axis.value = 'hour';"
                   "axis.dispatchEvent(new Event('change'))")
        self.assertIn("over the hours", window.run(
            "return document.querySelector('#compare canvas').getAttribute('aria-label')"))
        self.assertEqual(window.console(), [])


if __name__ == "__main__":
    unittest.main(argv=sys.argv)
