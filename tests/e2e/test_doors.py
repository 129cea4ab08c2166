"""What stands between programs: proxies to the outside, proxies in front of pages, names, policies of browsers."""

import base64
import contextlib
import os
import pathlib
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

    def __init__(self, is_socks, refusal="", login=""):
        super().__init__(daemon=True)
        self.is_socks, self.refusal, self.login, self.asked = is_socks, refusal, login, []
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
            methods = stream.read(2 + stream.peek()[1])[2:]
            near.sendall(b"\x05\x02" if self.login else b"\x05\x00")
            if self.login:
                if methods != b"\x02":
                    return near.close()
                user = stream.read(stream.read(2)[1])
                is_known = user + b":" + stream.read(stream.read(1)[0]) == self.login.encode()
                near.sendall(b"\x01\x00" if is_known else b"\x01\x01")
                if not is_known:
                    return near.close()
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
        for number, (proxy, scheme) in enumerate((
                (Proxy(False), "http://someone:secret@"), (Proxy(True), "socks5://"),
                (Proxy(True, login="someone:secret"), "socks5h://someone:secret@"))):
            with self.subTest(scheme=scheme):
                master = self.setup.start_master(self.cluster, self.cluster.path(f"store-{number}"), "--listen", "127.0.0.1:0",
                                                 "--min-volunteers", 2, hold=2)
                event = master.wait_event("listening")
                port = event["address"].rsplit(":", 1)[1]
                line = event["join"].replace("127.0.0.1", "master.invalid")
                name = "https_proxy" if scheme.startswith("http") else "ALL_PROXY"
                environment = {name: f"{scheme}127.0.0.1:{proxy.port}", "no_proxy": "10.0.0.1,.example.org"}
                volunteer = self.cluster.volunteer(line, environment=environment)
                relay = self.cluster.start("gleaner", "relay", line, "--listen", "127.0.0.1:0", "--dir",
                                           self.cluster.path(f"relay-{number}"), environment=environment)
                relay.wait_for(lambda program=relay: program.out, "its line")
                # The relay is on this machine: no proxy is asked for it.
                behind = self.cluster.volunteer(relay.out[0].split()[1], environment=environment)
                master.wait_checkpoint(2)
                master.let_go()
                finished(master)
                for program in (volunteer, behind):
                    self.assertEqual(program.wait_exit(), 0, program.said())
                self.assertGreaterEqual(len(proxy.asked), 2)
                secret = base64.b64encode(b"someone:secret").decode() if scheme.startswith("http") else ""
                self.assertEqual(set(proxy.asked), {f"master.invalid:{port}{secret}"})

    def test_a_proxy_that_refuses_and_one_that_is_none_are_named(self):
        master = self.setup.start_master(self.cluster, self.cluster.path("store"), "--listen", "127.0.0.1:0", hold=1)
        line = master.wait_event("listening")["join"].replace("127.0.0.1", "master.invalid")
        refusing = Proxy(False, "407 Proxy Authentication Required")
        with_login = Proxy(True, login="someone:secret")
        for environment, words in (
                ({"HTTPS_PROXY": f"http://127.0.0.1:{refusing.port}"}, ["407 Proxy Authentication", str(refusing.port)]),
                ({"https_proxy": f"127.0.0.1:{free_port()}"}, ["its proxy cannot be reached"]),
                ({"all_proxy": f"socks5://127.0.0.1:{with_login.port}"}, ["socks5://USER:PASSWORD@HOST:PORT"]),
                ({"all_proxy": f"socks5://me:x@127.0.0.1:{with_login.port}"}, ["it refuses the user"]),
                ({"all_proxy": "ftp://there"}, ["all_proxy", "socks5://HOST:PORT"]),
                ({"https_proxy": "http://127.0.0.1:1", "no_proxy": "localhost, .invalid"}, ["resolve the name"])):
            with self.subTest(environment=environment):
                code, status = self.cluster.run("gleaner", "status", line, environment=environment)
                self.assertIn(code, (2, 5), status.said())
                for word in words:
                    self.assertIn(word, status.said())


def why_no_squid():
    if not IS_LONG:
        return "only with GLEANER_LONG"
    return "" if shutil.which("squid") else "squid is missing (Debian package squid)"


@unittest.skipIf(why_no_squid(), why_no_squid())
class BehindSquid(EndToEndTest):
    def test_a_volunteer_trains_through_squid_and_is_told_what_squid_refuses(self):
        setup = small_setup(self.cluster, points=1500)
        master = setup.start_master(self.cluster, self.cluster.path("store"), "--listen", "127.0.0.1:0")
        event = master.wait_event("listening")
        line = event["join"].replace("127.0.0.1", "master.invalid")
        folder, port = self.cluster.path("squid"), free_port()
        folder.mkdir()
        os.chmod(self.cluster.folder, 0o755)
        os.chmod(folder, 0o777)  # squid drops root's rights
        (folder / "hosts").write_text("127.0.0.1 master.invalid\n", encoding="utf-8")
        (folder / "squid.conf").write_text(f"""
http_port 127.0.0.1:{port}
acl master port {event["address"].rsplit(":", 1)[1]}
http_access allow CONNECT master
http_access deny all
hosts_file {folder}/hosts
pid_filename none
cache_log {folder}/cache.log
access_log stdio:{folder}/access.log
cache deny all
netdb_filename none
""", encoding="utf-8")
        squid = subprocess.Popen(["squid", "-N", "-f", folder / "squid.conf"], stderr=subprocess.DEVNULL)
        self.addCleanup(squid.wait)
        self.addCleanup(squid.kill)
        environment = {"https_proxy": f"http://127.0.0.1:{port}"}
        volunteer = self.cluster.volunteer(line, environment=environment)
        finished(master)
        self.assertEqual(volunteer.wait_exit(), 0, volunteer.said())
        self.assertIn("CONNECT master.invalid:", (folder / "access.log").read_text(encoding="utf-8"))
        refused = re.sub(r":\d+/", f":{free_port()}/", line)
        code, status = self.cluster.run("gleaner", "status", refused, environment=environment)
        self.assertEqual(code, 5, status.said())
        self.assertIn("403 Forbidden", status.said())


class Zones(EndToEndTest):
    def test_an_address_of_one_link_is_reached_by_its_zone(self):
        """fe80::1%eth0, at which machines on one cable find each other without a router or a name."""
        found = re.search(r"(?m)^(fe80)([0-9a-f]{12})([0-9a-f]{16}) [0-9a-f]+ [0-9a-f]+ [0-9a-f]+ \S+ +(\S+)$",
                          pathlib.Path("/proc/net/if_inet6").read_text(encoding="utf-8")
                          if pathlib.Path("/proc/net/if_inet6").exists() else "")
        if not found:
            self.skipTest("no interface of this machine has an IPv6 address of its link")
        bits, interface = "".join(found.groups()[:3]), found[4]
        address = ":".join(bits[i:i + 4] for i in range(0, 32, 4))
        setup = small_setup(self.cluster, points=1500)
        master = setup.start_master(self.cluster, self.cluster.path("store"), "--listen", f"[{address}%{interface}]:0")
        event = master.wait_event("listening")
        self.assertIn(f"%{interface}", event["join"])
        volunteer = self.cluster.volunteer(event["join"])
        finished(master)
        self.assertEqual(volunteer.wait_exit(), 0, volunteer.said())


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
