"""What stands between programs: proxies to the outside, proxies in front of pages, names, policies of browsers."""

import base64
import contextlib
import os
import re
import shutil
import socket
import ssl
import subprocess
import threading
import unittest
import urllib.error
import urllib.request

from browser import Browser, missing
from harness import ENDLESS, IS_LONG, EndToEndTest, finished, free_port, small_setup


def copy(source, target):
    with contextlib.suppress(OSError):
        while piece := source.recv(65536):
            target.sendall(piece)
        target.shutdown(socket.SHUT_WR)


class Proxy(threading.Thread):
    """A proxy for which every name is this machine; `asked` lists what it was asked for."""

    def __init__(self, is_socks, refusal=""):
        super().__init__(daemon=True)
        self.is_socks, self.refusal, self.asked = is_socks, refusal, []
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.start()

    def run(self):
        with contextlib.suppress(OSError):
            while True:
                threading.Thread(target=self.serve, args=(self.listener.accept()[0],), daemon=True).start()

    def serve(self, near):
        stream = near.makefile("rb")
        if self.is_socks:
            stream.read(2 + stream.peek()[1])
            near.sendall(b"\x05\x00")
            size = stream.read(5)[4]
            where = f"{stream.read(size).decode()}:{int.from_bytes(stream.read(2))}"
            answer = b"\x05\x00\x00\x01\x7f\x00\x00\x01\x00\x00"
        else:
            where = stream.readline().split()[1].decode()
            head = b"".join(iter(stream.readline, b"\r\n")).decode()
            answer = b"HTTP/1.1 200 Connection established\r\nVia: test\r\n\r\n"
            if self.refusal:
                return near.sendall(f"HTTP/1.1 {self.refusal}\r\n\r\n".encode())
            where += "".join(re.findall(r"Basic (\S+)", head))
        self.asked.append(where)
        far = socket.create_connection(("127.0.0.1", int(re.search(r":(\d+)", where)[1])))
        near.sendall(answer)
        threading.Thread(target=copy, args=(far, near), daemon=True).start()
        copy(near, far)


class Outwards(EndToEndTest):
    def setUp(self):
        super().setUp()
        self.setup = small_setup(self.cluster, points=1500)

    def test_volunteers_relays_and_tools_go_through_the_proxy_of_the_environment(self):
        for proxy, scheme in ((Proxy(False), "http://someone:secret@"), (Proxy(True), "socks5://")):
            with self.subTest(scheme=scheme):
                master = self.setup.start_master(self.cluster, self.cluster.path(scheme[:4]), "--listen", "127.0.0.1:0",
                                                 "--min-volunteers", 2, hold=2)
                event = master.wait_event("listening")
                port = event["address"].rsplit(":", 1)[1]
                line = event["join"].replace("127.0.0.1", "master.invalid")
                name = "https_proxy" if scheme.startswith("http") else "ALL_PROXY"
                environment = {name: f"{scheme}127.0.0.1:{proxy.port}", "no_proxy": "10.0.0.1,.example.org"}
                volunteer = self.cluster.volunteer(line, environment=environment)
                relay = self.cluster.start("gleaner", "relay", line, "--listen", "127.0.0.1:0", "--dir",
                                           self.cluster.path(f"relay-{scheme[:4]}"), environment=environment)
                relay.wait_for(lambda program=relay: program.out, "its line")
                # The relay is on this machine: no proxy is asked for it.
                behind = self.cluster.volunteer(relay.out[0].split()[1], environment=environment)
                master.wait_checkpoint(2)
                master.let_go()
                finished(master)
                for program in (volunteer, behind):
                    self.assertEqual(program.wait_exit(), 0, program.said())
                self.assertGreaterEqual(len(proxy.asked), 2)
                secret = base64.b64encode(b"someone:secret").decode() if "@" in scheme else ""
                self.assertEqual(set(proxy.asked), {f"master.invalid:{port}{secret}"})

    def test_a_proxy_that_refuses_and_one_that_is_none_are_named(self):
        master = self.setup.start_master(self.cluster, self.cluster.path("store"), "--listen", "127.0.0.1:0", hold=1)
        line = master.wait_event("listening")["join"].replace("127.0.0.1", "master.invalid")
        refusing = Proxy(False, "407 Proxy Authentication Required")
        for environment, words in (
                ({"HTTPS_PROXY": f"http://127.0.0.1:{refusing.port}"}, ["407 Proxy Authentication", str(refusing.port)]),
                ({"https_proxy": f"127.0.0.1:{free_port()}"}, ["its proxy cannot be reached"]),
                ({"all_proxy": "ftp://there"}, ["all_proxy", "socks5://HOST:PORT"]),
                ({"https_proxy": "http://127.0.0.1:1", "no_proxy": "localhost, .invalid"}, ["resolve the name"])):
            with self.subTest(environment=environment):
                code, status = self.cluster.run("gleaner", "status", line, environment=environment)
                self.assertIn(code, (2, 5), status.said())
                for word in words:
                    self.assertIn(word, status.said())


def request(url, headers=(), method="GET", body=None, context=None):
    asked = urllib.request.Request(url, data=body, headers=dict(headers), method=method)
    try:
        with urllib.request.urlopen(asked, context=context) as answer:
            return answer.status, answer.headers, answer.read()
    except urllib.error.HTTPError as error:
        return error.code, error.headers, error.read()


class Inwards(EndToEndTest):
    def setUp(self):
        super().setUp()
        setup = small_setup(self.cluster, points=1500)
        self.store = self.cluster.path("store")
        setup.run_local(self.cluster, self.store)
        self.token = self.cluster.path("token")

    def serve(self, *flags):
        server = self.cluster.start("gleaner", "serve", self.store, "--http", "127.0.0.1:0", "--json", *flags)
        server.wait_for(lambda: server.out, "its address")
        return re.search(r'"url":"([^"]+)"', server.out[0])[1]

    def test_a_token_is_read_however_its_header_is_written(self):
        url = self.serve("--token-file", self.token)
        token = self.token.read_text().strip()
        for shown in (f"Bearer {token}", f"bearer  {token}", f"BEARER\t{token} "):
            self.assertEqual(request(f"{url}/v1/model", {"Authorization": shown})[0], 200, shown)
        for shown in (f"Bearer{token}", f"Basic {token}", "Bearer ", token):
            self.assertEqual(request(f"{url}/v1/model", {"Authorization": shown})[0], 401, shown)

    def test_pages_of_other_origins_may_ask_a_model_that_is_for_all_or_takes_a_token(self):
        question = b'{"inputs":[{"features":[1]}]}'
        foreign = {"Origin": "https://app.example", "Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "cors"}
        url = self.serve("--public")
        status, headers, _ = request(f"{url}/v1/predict", foreign, "OPTIONS")
        self.assertEqual((status, headers["Allow"]), (204, "POST, OPTIONS"))
        self.assertIn("Authorization", headers["Access-Control-Allow-Headers"])
        status, headers, _ = request(f"{url}/v1/predict", foreign, "POST", question)
        self.assertEqual((status, headers["Access-Control-Allow-Origin"]), (200, "*"))
        own = self.serve()
        self.assertEqual(request(f"{own}/v1/predict", foreign, "POST", question)[0], 403)
        self.assertIsNone(request(f"{own}/v1/predict", foreign, "OPTIONS")[1]["Access-Control-Allow-Origin"])
        self.assertEqual(request(f"{own}/v1/predict", method="PUT", body=b"")[1]["Allow"], "POST, OPTIONS")

    def test_behind_a_proxy_with_tls_a_page_of_the_same_origin_asks(self):
        url = self.serve("--public")
        question = b'{"inputs":[{"features":[1]}]}'
        for headers in ({"Host": "name.example", "Origin": "https://name.example"},
                        {"Origin": "https://name.example", "Sec-Fetch-Site": "same-origin"}):
            self.assertEqual(request(f"{url}/v1/predict", headers, "POST", question)[0], 200, headers)


def why_no_nginx():
    if not IS_LONG:
        return "only with GLEANER_LONG"
    return missing() or ("" if shutil.which("nginx") and shutil.which("openssl") else
                         "nginx or openssl is missing (Debian packages nginx-light, openssl)")


@unittest.skipIf(why_no_nginx(), why_no_nginx())
class BehindNginx(EndToEndTest):
    def test_a_browser_sees_and_asks_the_run_under_a_path_with_tls(self):
        setup = small_setup(self.cluster, points=3000)
        http, https = free_port(), free_port()
        master = setup.start_master(self.cluster, self.cluster.path("store"), "--local", 1, "--epochs", ENDLESS,
                                    "--listen", "127.0.0.1:0", "--http", f"127.0.0.1:{http}")
        master.wait_checkpoint(2)
        folder = self.cluster.path("nginx")
        folder.mkdir()
        subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost",
                        "-keyout", folder / "key", "-out", folder / "certificate"], check=True, capture_output=True)
        (folder / "nginx.conf").write_text(f"""
daemon off; pid {folder}/pid; error_log {folder}/error.log; events {{}}
http {{
  access_log {folder}/access.log; client_body_temp_path {folder}/body; proxy_temp_path {folder}/proxy;
  fastcgi_temp_path {folder}/f; uwsgi_temp_path {folder}/u; scgi_temp_path {folder}/s;
  upstream run {{ server 127.0.0.1:{http}; keepalive 4; }}
  server {{
    listen 127.0.0.1:{https} ssl; ssl_certificate {folder}/certificate; ssl_certificate_key {folder}/key;
    location /gleaner/ {{
      proxy_pass http://run/; proxy_http_version 1.1; proxy_set_header Connection ""; proxy_buffering off;
      proxy_set_header Host $host; proxy_set_header X-Forwarded-For $remote_addr;
    }}
  }}
}}
""", encoding="utf-8")
        nginx = subprocess.Popen(["nginx", "-c", folder / "nginx.conf", "-e", folder / "error.log"])
        self.addCleanup(nginx.wait)
        self.addCleanup(nginx.terminate)
        base = f"https://localhost:{https}/gleaner"
        context = ssl._create_unverified_context()
        while True:
            with contextlib.suppress(urllib.error.URLError):
                status = request(f"{base}/api/v1/run", context=context)[0]
                break
        self.assertEqual(status, 401)  # whoever comes through a proxy is not on this machine
        invite = self.cluster.gleaner("invite", "create", self.cluster.path("store"), "--role", "admin", "--reusable").split()[-1]
        window = Browser()
        self.addCleanup(window.close)
        window.open(f"{base}/#{invite}")
        window.wait("return document.querySelector('#headline').textContent.includes('rain')", "the run")
        window.wait("return document.querySelectorAll('#volunteers tr').length > 1", "its volunteers")
        window.wait("return document.querySelectorAll('#charts svg path, #charts canvas').length > 0", "its charts")
        window.wait("return /^[^<]+$/.test(document.querySelector('#checked').textContent)", "its receipts")
        window.wait("return document.querySelectorAll('#predict select').length > 0", "the box for questions")
        self.assertEqual([line for line in window.console() if "404" in line["message"]], [])
        shot = os.environ.get("GLEANER_SHOT")
        if shot:
            window.screenshot(shot)


if __name__ == "__main__":
    unittest.main()
