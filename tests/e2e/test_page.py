"""The run's page, its API and its metrics beside a master that trains: its
figures are the store's and the master's, and strangers read nothing (test_network.py has crowds of strangers)."""

import http.client
import json
import pathlib
import re
import shutil
import socket
import subprocess
import sys
import time
import unittest

from harness import BIN, ENDLESS, ROOT, RUN_SECONDS, TIME_FACTOR, UNMANNERED, finished
from page_case import OPENAPI, PageCase, Stream, ask, fits, port_address, port_of

DASHBOARDS = ROOT / "master/see/dashboards"


class Page(PageCase):
    def test_every_answer_fits_the_description(self):
        _, port, _ = self.start("--verbose")
        self.wait_run(port, lambda r: r["stage"] == "training", "a run that trains")
        for path, item in OPENAPI["paths"].items():
            if "get" not in item or "serve" in item["get"].get("tags", ()):
                continue
            with self.subTest(path=path):
                status, headers, body = ask(port, path, {"X-Gleaner-Key": self.key})
                self.assertEqual(status, 200, body)
                content = item["get"]["responses"]["200"]["content"]
                kind = headers["Content-Type"].split(";")[0]
                self.assertIn(kind, content)
                if kind == "application/json":
                    fits(json.loads(body), content[kind]["schema"], path)
        for path in ("/", "/page.js", "/page.css", "/icon.svg"):
            self.assertEqual(ask(port, path)[0], 200)

    def test_figures_are_the_stores_and_the_masters(self):
        master, port, helpers = self.start()
        master.wait_event("evaluated")
        run = self.stand_still(port, helpers)
        status = json.loads(self.cluster.gleaner("status", self.store, "--json"))
        for key in ("round", "batch", "epoch", "staleness", "loss", "active", "p_at_1"):
            mine = {**run["progress"], **run["precision"]}[key]
            self.assertAlmostEqual(mine, status["progress"][key], 4) if isinstance(mine, float) \
                else self.assertEqual(mine, status["progress"][key], key)
        shards = self.get(port, "/api/v1/shards")["shards"]
        self.assertEqual([(s["holder"], s["next_batch"], s["version"]) for s in shards],
                         [(s["holder"], s["next_batch"], s["committed_rounds"]) for s in status["shards"]])
        here = self.get(port, "/api/v1/volunteers")["here"]
        self.assertEqual([(v["name"], v["state"], v["shards"]) for v in here],
                         [(v["name"], v["state"], len(v["shards"])) for v in status["volunteers"]])
        self.assertIn(run["wait"]["waits_for"], run["headline"])
        history = self.get(port, "/api/v1/history?points=4000")
        stored = self.cluster.history(self.store)[:len(history["checkpoint"])]
        self.assertEqual(history["checkpoint"], [record["checkpoint"] for record in stored])
        for column, series in history["series"].items():
            self.assertEqual(series["last"], [record[column] for record in stored], column)
        lines = ask(port, "/api/v1/history.csv")[2].splitlines()
        self.assertEqual(len(lines), 1 + len(history["checkpoint"]))
        for helper in helpers:
            helper.go_on()

    def test_a_killed_volunteers_shards_move(self):
        _, port, (first, _, _) = self.start(volunteers=3)

        def holders():
            return [shard["holder"] for shard in self.get(port, "/api/v1/shards")["shards"]]

        self.wait_run(port, lambda _: set(holders()) == {"v1", "v2", "v3"}, "shards at all three")
        first.kill()
        self.wait_run(port, lambda r: r["volunteers_here"] == 2 and set(holders()) == {"v2", "v3"},
                      "shards at the other two")
        self.assertEqual(self.get(port, "/api/v1/volunteers")["gone"][-1]["name"], "v1")
        events = [event["event"]["event"] for event in self.get(port, "/api/v1/events")["events"]]
        self.assertIn("volunteer_left", events)
        self.assertIn('gleaner_volunteers_left_total{run="store",polite="no"} 1', ask(port, "/metrics")[2])

    def test_receipts_are_the_stores(self):
        master, port, helpers = self.start(volunteers=2)
        master.wait_event("evaluated")
        self.stand_still(port, helpers)
        summed = self.get(port, "/api/v1/receipts?count=1000")
        latest = json.loads(ask(port, "/api/v1/receipts?count=1000", {"X-Gleaner-Key": self.key})[2])
        self.assertEqual(summed, {**latest, "receipts": [], "banned": None})
        self.assertEqual(latest["banned"], [])
        self.assertEqual(latest["checked_up_to"], latest["last_round"] + 1)
        self.assertEqual(latest["first_round"], 0)
        stored = json.loads(self.cluster.gleaner("receipts", self.store, "--round", latest["round"], "--json"))
        self.assertEqual([(r["shard"], r["holder"], r["holder_key"], r["auditor"], r["verdict"])
                          for r in latest["receipts"]],
                         [(r["shard"], r["holder_name"], r["holder"], r["auditor_name"], r["verdict"])
                          for r in stored["receipts"]])
        self.assertLessEqual({r["holder"] for r in latest["receipts"]}, {"v1", "v2", "the master"})
        for helper in helpers:
            helper.go_on()

    def test_the_line_is_told_to_the_holder_of_the_pages_key(self):
        master, port, _ = self.start()
        line = master.wait_event("listening")["join"]
        status, _, body = ask(port, "/api/v1/join", {"X-Gleaner-Key": self.key})
        self.assertEqual(status, 200)
        told = json.loads(body)
        self.assertEqual((told["line"], told["command"]), (line, f"gleaner-volunteer {line}"))
        self.assertEqual({len(row) for row in told["qr"]}, {len(told["qr"])})
        self.assertEqual({row[:7] for row in (told["qr"][0], told["qr"][6])}, {"1111111"})  # a corner's mark
        for key in ("", self.key[:-1], self.key[::-1]):
            status, _, body = ask(port, "/api/v1/join", {"X-Gleaner-Key": key})
            self.assertEqual(status, 403)
            self.assertNotIn("://", body)
        everything = "".join(ask(port, path)[2] for path in ("/api/v1/run", "/api/v1/events", "/api/v1/configuration"))
        self.assertNotIn(line, everything)
        self.assertNotIn(self.key, everything)
        open_master = self.setup.start_master(
            self.cluster, self.cluster.path("open"), "--listen", "127.0.0.1:0", "--insecure", "--http", "127.0.0.1:0")
        other = port_of(open_master.wait_event("page")["url"])
        address = open_master.wait_event("listening")["address"]
        told = self.get(other, "/api/v1/join")
        self.assertEqual((told["line"], told["command"]), (address, f"gleaner-volunteer {address} --insecure"))

    def test_addresses_are_told_to_the_holder_of_the_pages_key(self):
        master, port, _ = self.start("--verbose")
        with socket.create_connection(port_address(self.address), 20 * TIME_FACTOR, ("127.0.0.77", 0)) as noise:
            noise.sendall(b"GET / HTTP/1.1\r\n\r\n")
            master.wait_event("log", lambda event: "127.0.0.77" in event["message"])
        self.wait_run(port, lambda r: r["volunteers_here"] == 1, "the volunteer")
        told = json.loads(ask(port, "/api/v1/volunteers", {"X-Gleaner-Key": self.key})[2])
        addresses = [volunteer["address"] for volunteer in told["here"]]
        self.assertEqual(addresses, [master.wait_event("volunteer_joined")["address"]])
        stream = Stream(port)
        stream.wait_for(b"a connection: ")
        everything = stream.text.decode() + "".join(
            ask(port, path)[2] for path, item in OPENAPI["paths"].items()
            if "get" in item and "serve" not in item["get"].get("tags", ()))
        stream.close()
        self.assertIn("v1 joined", everything)
        for address in (*addresses, "127.0.0.77"):
            self.assertNotIn(address, everything)
        # Observers who ask from anywhere get figures alone.
        line = self.cluster.gleaner("invite", "create", self.store, "--role", "observer")
        seen = self.cluster.gleaner("status", re.search(r"gleaner://\S+", line).group(), "--json")
        for secret in ("v1", *addresses):
            self.assertNotIn(f'"{secret}"', seen)

    def test_other_machines_see_what_their_invite_shows(self):
        master = self.setup.with_flag("--epochs", ENDLESS).start_master(
            self.cluster, self.store, "--listen", "127.0.0.1:0", "--http", "0.0.0.0:0", "--threads", 1)
        page = master.wait_event("page")
        port = port_of(page["url"])
        self.assertEqual(page["others"], f"http://ADDRESS:{port}/#INVITE")
        master.wait_event("log", lambda event: "the page is not encrypted" in event["message"])
        self.cluster.volunteer(master.wait_event("listening")["address"])
        master.wait_checkpoint(1)
        elsewhere = {"Host": f"192.0.2.1:{port}"}  # as a reader on another machine calls it

        def invite(*flags):
            line = self.cluster.gleaner("invite", "create", self.store, *flags)
            return re.search(r"gleaner://\S+", line).group()

        def look(line, path, **more):
            key = line.rsplit(".", 1)[-1]
            return ask(port, path, {**elsewhere, "Authorization": f"Bearer {key}"}, **more)

        def wait_for_page(line, status):
            """The page hears of changes once a second."""
            deadline = time.monotonic() + RUN_SECONDS
            while look(line, "/api/v1/run")[0] != status:
                self.assertLess(time.monotonic(), deadline)
                time.sleep(0.05)

        observer = invite("--role", "observer", "--reusable")
        once = invite("--role", "observer")
        admin = invite("--role", "admin", "--reusable")
        wait_for_page(admin, 200)  # and so all of them
        status, headers, body = ask(port, "/api/v1/run", elsewhere)
        self.assertEqual((status, headers["WWW-Authenticate"]), (401, "Bearer"))
        self.assertIn("gleaner invite create", body)
        self.assertEqual(look(page["key"], "/api/v1/run")[0], 401)  # it is for this machine
        self.assertEqual(ask(port, "/api/v1/run", {"X-Gleaner-Key": page["key"]})[0], 200)
        paths = [path for path, item in OPENAPI["paths"].items()
                 if "get" in item and "serve" not in item["get"].get("tags", ())]
        seen = "".join(body for status, _, body in (look(observer, path) for path in paths) if status == 200)
        self.assertIn('"volunteer 1"', seen)
        for secret in ('"v1"', "v1 joined", str(self.store), observer):
            self.assertNotIn(secret, seen)
        self.assertIn('"v1"', look(admin, "/api/v1/volunteers")[2])
        self.assertEqual(look(observer, "/v1/predict", method="POST")[0], 403)
        self.assertEqual(look(observer, "/v1/model")[0], 403)
        self.assertEqual(look(admin, "/v1/model")[0], 200)
        self.assertIn("--reusable", look(once, "/api/v1/run")[2])
        stream = Stream(port, headers={**elsewhere, "X-Gleaner-Key": observer.rsplit(".", 1)[1]})
        stream.wait_for(b"event: run")
        for one in json.loads(self.cluster.gleaner("invite", "list", self.store, "--json"))["invites"]:
            if one["role"] == "observer":
                self.cluster.gleaner("invite", "revoke", one["id"], self.store)
        stream.wait_for(b"\r\n0\r\n\r\n")  # its end
        stream.close()
        wait_for_page(observer, 401)
        self.assertIn("revoked", look(observer, "/api/v1/run")[2])

    def test_strangers_read_nothing_and_change_nothing(self):
        master, port, _ = self.start()
        for headers in ({"Origin": "http://evil.example"}, {"Sec-Fetch-Site": "cross-site"}):
            for path in ("/", "/api/v1/run", "/api/v1/events", "/metrics", "/healthz"):
                status, _, body = ask(port, path, headers)
                self.assertEqual(status, 403)
                self.assertNotIn("batch", body)
        # Under another name, and through a proxy, nobody is on this machine.
        for headers in ({"Host": "evil.example"}, {"Host": f"evil.example:{port}"}, {"X-Forwarded-For": "127.0.0.1"},
                        {"Via": "1.1 proxy"}, {"Forwarded": "for=127.0.0.1"}):
            for path in ("/api/v1/run", "/api/v1/events", "/metrics", "/api/v1/join"):
                status, _, body = ask(port, path, headers)
                self.assertEqual(status, 401)
                self.assertNotIn("batch", body)
        for method in ("POST", "PUT", "DELETE", "PATCH"):
            self.assertEqual(ask(port, "/api/v1/run", method=method)[0], 405)
        status, headers, _ = ask(port, "/api/v1/run", method="OPTIONS")
        self.assertEqual((status, headers["Allow"]), (204, "GET, HEAD, OPTIONS"))
        status, headers, _ = ask(port, "/")
        self.assertEqual(status, 200)
        self.assertIn("default-src 'none'", headers["Content-Security-Policy"])
        self.assertNotIn("unsafe", headers["Content-Security-Policy"])
        self.assertNotIn("Access-Control-Allow-Origin", headers)
        self.assertEqual(ask(port, "/", {"If-None-Match": headers["ETag"]})[0], 304)
        self.assertEqual(ask(port, "/page.js", method="HEAD")[2], "")
        self.assertTrue(master.is_running())

    def test_the_stream_tells_the_end(self):
        master, port, address = self.start_held()
        stream = Stream(port)
        self.cluster.volunteer(address)
        finished(master)
        stream.wait_for(b"\r\n0\r\n")  # the last chunk
        text = stream.text.decode()
        self.assertIn('"stage":"done"', text)
        self.assertTrue('"headline":"Finished' in text, text[-4000:])
        stream.close()

    def test_a_taken_port_and_foreign_addresses(self):
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            taken.listen()
            port = taken.getsockname()[1]
            master = self.setup.start_master(self.cluster, self.store, "--local", 1, "--threads", 1,
                                             "--http", f"127.0.0.1:{port}")
            other = port_of(master.wait_event("page")["url"])
            self.assertNotEqual(other, port)
            finished(master)
        code, program = self.cluster.run(
            "gleaner-master", *self.setup.arguments(self.store, "--local", 1, "--http", "0.0.0.0:8080"))
        self.assertEqual(code, 2)
        self.assertIn("invites take --listen", program.said())
        quiet = self.setup.start_master(self.cluster, self.cluster.path("quiet"), "--local", 1, "--http", "off")
        finished(quiet)
        self.assertEqual(quiet.events("page"), [])

    def test_looking_changes_no_bit(self):
        reference = self.setup.run_local(self.cluster, self.cluster.path("reference"))
        master, port, address = self.start_held()
        stream = Stream(port)
        self.cluster.volunteer(address)
        while master.is_running():
            for path in ("/api/v1/run", "/api/v1/shards", "/api/v1/history", "/metrics"):
                try:
                    ask(port, path)
                except (OSError, http.client.HTTPException):
                    break  # it has ended
        self.assertEqual(finished(master)["digest"], reference["digest"])
        stream.close()


@unittest.skipUnless(shutil.which("promtool"), "promtool is missing (Debian package prometheus)")
class Metrics(PageCase):
    """By Prometheus' own judge."""

    def promtool(self, *arguments, text=None):
        done = subprocess.run(["promtool", *arguments], input=text, text=True, capture_output=True, check=False)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_metrics_are_clean_and_rules_name_only_what_there_is(self):
        _, port, _ = self.start("--backup", self.cluster.path("backups"), "--backup-every", 0)
        self.wait_run(port, lambda r: r["precision"]["p_at_1"] is not None, "an evaluation")
        # What cannot be told yet is left out, such as the time that remains.
        deadline = time.monotonic() + RUN_SECONDS
        text = ask(port, "/metrics")[2]
        while not re.search("gleaner_remaining_seconds[^$]*gleaner_backup_timestamp_seconds", text) and time.monotonic() < deadline:
            time.sleep(0.2)
            text = ask(port, "/metrics")[2]
        self.promtool("check", "metrics", text=text)
        self.promtool("test", "rules", str(DASHBOARDS / "alerts_test.yml"))
        known = set(re.findall(r"^# TYPE (\w+)", text, re.MULTILINE))
        for file in ("alerts.yml", "grafana.json"):
            used = set(re.findall(r"gleaner_\w+", (DASHBOARDS / file).read_text(encoding="utf-8")))
            self.assertLessEqual(used, known, file)
        run = self.get(port, "/api/v1/run")
        self.assertIn(f'gleaner_batches_planned{{run="store"}} {run["progress"]["batches"]}\n', text)


class ProgramForOthers(PageCase):
    """The volunteer's program, for machines that have none."""

    def test_it_arrives_whole_joins_and_trains(self):
        original = BIN / "gleaner-volunteer"
        master = self.setup.start_master(self.cluster, self.store, "--listen", "127.0.0.1:0", "--http", "127.0.0.1:0",
                                         "--serve-program", original)
        line = master.wait_event("listening")["join"]
        told = master.wait_event("page")["program"]
        program = self.cluster.path("fetched")
        program.mkdir()
        subprocess.run(["curl", "-sS", "--fail", "--output", program / "gleaner-volunteer", told["url"]], check=True)
        subprocess.run(["sha256sum", "-c"], input=f"{told['sha256']}  gleaner-volunteer\n", text=True, check=True,
                       cwd=program, stdout=subprocess.DEVNULL)
        self.assertEqual((program / "gleaner-volunteer").read_bytes(), original.read_bytes())
        port = int(told["url"].split(":")[2].split("/")[0])
        self.assertEqual(self.get(port, "/api/v1/run")["program"], told)
        status, headers, sums = ask(port, "/gleaner-volunteer.sha256")
        self.assertEqual((status, sums), (200, f"{told['sha256']}  gleaner-volunteer\n"))
        status, headers, body = ask(port, "/gleaner-volunteer", method="HEAD")
        self.assertEqual((status, body), (200, ""))
        self.assertEqual(headers["Content-Type"], "application/octet-stream")
        self.assertEqual(int(headers["Content-Length"]), original.stat().st_size)
        known = ask(port, "/gleaner-volunteer", {"If-None-Match": headers["ETag"]})
        self.assertEqual(known[0], 304)
        (program / "gleaner-volunteer").chmod(0o755)
        volunteer = self.cluster.start(program / "gleaner-volunteer", line, "--once", "--log-format", "json", *UNMANNERED)
        calm = self.setup.run_local(self.cluster, self.cluster.path("calm"))
        self.assertEqual(finished(master)["digest"], calm["digest"])
        self.assertEqual(volunteer.wait_exit(), 0, volunteer.said())

    def test_what_is_no_volunteer_s_program_is_refused(self):
        for path in (BIN / "gleaner-master", ROOT / "README.md", ROOT / "nothing"):
            code, master = self.cluster.run("gleaner-master", *self.setup.arguments(
                self.store, "--local", 1, "--http", "127.0.0.1:0", "--serve-program", path))
            self.assertEqual(code, 2, master.said())
            self.assertIn(f"network.serve_program: {path} ", master.said())


if __name__ == "__main__":
    sys.exit(unittest.main())
