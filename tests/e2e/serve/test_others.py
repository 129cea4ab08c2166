"""`gleaner serve` for other machines: access, the limit of waiting requests, and the exchange of its model."""

import base64
import concurrent.futures
import http.client
import json
import pathlib
import re
import signal
import sys
import threading
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from harness import ROOT, TIME_FACTOR, Setup  # noqa: E402
from page_case import ask  # noqa: E402
from test_serve import ServeCase, post  # noqa: E402


class ServeOthers(ServeCase):
    def test_other_machines_show_the_token(self):
        folder, store = self.trained_on_texts()
        code, program = self.cluster.run("gleaner", "serve", store, "--http", "0.0.0.0:0")
        self.assertEqual((code, len(program.said().splitlines())), (2, 1), program.said())
        for flag in ("--token-file", "--public"):
            self.assertIn(flag, program.said())
        file = self.cluster.path("token")
        server, port = self.serve(store, "--data", folder, "--token-file", file, http="0.0.0.0:0")
        self.assertEqual(file.stat().st_mode & 0o777, 0o600)
        token, question = file.read_text(encoding="utf-8").strip(), {"inputs": [{"text": "iron"}]}
        self.assertNotIn(token, server.said())
        for path, status in (("/healthz", 200), ("/", 200), ("/v1/model", 401), ("/metrics", 401),
                             ("/api/v1/histories", 401), ("/nothing", 401)):
            self.assertEqual(ask(port, path)[0], status, path)
        self.assertEqual(ask(port, "/v1/model")[1]["WWW-Authenticate"], "Bearer")
        basic = base64.b64encode(f"annif:{token}".encode()).decode()
        for headers, status in (({}, 401), ({"Authorization": f"Bearer {token}x"}, 401), ({"X-Gleaner-Key": token}, 200),
                                ({"Authorization": f"Bearer {token}"}, 200), ({"Authorization": f"Basic {basic}"}, 200)):
            self.assertEqual(post(port, question, headers=headers)[0], status, headers)
        bearer = {"Authorization": f"Bearer {token}"}
        self.assertEqual(ask(port, "/v1/model", {**bearer, "Host": "gleaner.example"})[0], 200)
        # A page of another origin may ask with the token, which it must know.
        foreign = {"Origin": "http://app.example"}
        self.assertEqual(post(port, question, headers={**bearer, **foreign})[0], 200)
        self.assertEqual(post(port, question, headers=foreign)[0], 401)
        file.write_text("another-token-of-ones-own\n", encoding="utf-8")
        server.signal(signal.SIGHUP)
        server.wait_for(lambda: post(port, question, headers=bearer)[0] == 401, "the earlier token's end")
        self.assertEqual(post(port, question, headers={"Authorization": "Bearer another-token-of-ones-own"})[0], 200)
        _, open_port = self.serve(store, "--data", folder, "--public", http="0.0.0.0:0")
        self.assertEqual(post(open_port, question, headers={"Host": "gleaner.example"})[0], 200)

    def test_requests_wait_up_to_the_queue_and_are_told_when_to_come_back_beyond(self):
        folder, store = self.trained_on_texts()
        _, port = self.serve(store, "--data", folder)
        with concurrent.futures.ThreadPoolExecutor(64) as pool:
            answers = list(pool.map(lambda _: post(port, {"inputs": [{"text": "iron"}]})[0], range(1280)))
        self.assertEqual(set(answers), {200})
        _, port = self.serve(store, "--data", folder, "--queue", 2)
        heavy = json.dumps({"inputs": [{"text": "iron " * 150}] * 1000}).encode()

        def ask_much(_):
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60 * TIME_FACTOR)
            connection.request("POST", "/v1/predict", heavy)
            answer = connection.getresponse()
            return answer.status, answer.headers["Retry-After"], answer.read() and connection.close()

        with concurrent.futures.ThreadPoolExecutor(16) as pool:
            asked = [pool.submit(ask_much, i) for i in range(64)]
            self.assertEqual(ask(port, "/healthz")[0], 200)
            answers = [one.result()[:2] for one in asked]
        self.assertEqual({status for status, _ in answers}, {200, 503})
        for status, seconds in answers:
            self.assertTrue(1 <= int(seconds) <= 60 if status == 503 else seconds is None, (status, seconds))

    def test_the_model_is_exchanged_without_a_dropped_request(self):
        folder, store = self.trained_on_texts()
        later = self.cluster.path("later")
        Setup(f"{folder}/train.txt", f"{folder}/test.txt", ["--epochs", 5, "--hidden", 32]).run_local(self.cluster, later)
        model, other = self.cluster.path("model.safetensors"), self.cluster.path("other.safetensors")
        self.cluster.gleaner("export", store, "--to", model, "--data", folder)
        self.cluster.gleaner("export", later, "--to", other, "--data", folder)
        server, port = self.serve(model, "--data", model)
        question, stop = {"inputs": [{"text": "copper"}] * 50}, threading.Event()
        before = post(port, question)[1]

        def ask_on():
            told = []
            while not stop.is_set():
                told.append(post(port, question))
            return told

        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            askers = [pool.submit(ask_on) for _ in range(4)]
            try:
                other.rename(model)
                server.signal(signal.SIGHUP)
                server.wait_for(lambda: post(port, question)[1] != before, "another model")
            finally:
                stop.set()
            told = [one for asker in askers for one in asker.result()]
        self.assertEqual({status for status, _ in told}, {200})
        self.assertLessEqual({body for _, body in told}, {before, post(port, question)[1]})
        self.cluster.path("bad").write_bytes(b"no model")
        self.cluster.path("bad").rename(model)
        server.signal(signal.SIGHUP)
        server.wait_for(lambda: "goes on answering" in server.said(), "why not")
        self.assertEqual(post(port, question)[0], 200)
        server.signal(signal.SIGTERM)
        self.assertEqual(server.wait_exit(), 0)

    def test_the_service_runs_and_reloads_as_its_unit_says(self):
        folder, store = self.trained_on_texts()
        unit = (ROOT / "tools/packaging/debian/gleaner-serve@.service").read_text(encoding="utf-8")
        lines = dict(re.findall(r"(?m)^(ExecStart|ExecReload|ConditionPathExists|EnvironmentFile)=(.+)$", unit))
        self.assertEqual(lines["ConditionPathExists"], lines["EnvironmentFile"])
        self.assertEqual(lines["ExecReload"], "/bin/sh -c 'kill -HUP $MAINPID'")
        token = self.cluster.path("token")
        words = lines["ExecStart"].replace("$SERVE_FLAGS", f"--data {folder} --http 0.0.0.0:0 --token-file {token}").split()
        self.assertEqual(words[:2], ["/usr/bin/gleaner", "serve"])
        server = self.cluster.start("gleaner", *(str(store) if word == "${MODEL}" else word for word in words[1:]))
        server.wait_for(lambda: "http://" in server.said(), "an address")
        server.signal(signal.SIGHUP)
        server.wait_for(lambda: "the model in use is the newest" in server.said(), "a look")
        server.signal(signal.SIGTERM)
        self.assertEqual(server.wait_exit(), 0)


if __name__ == "__main__":
    unittest.main(argv=sys.argv)
