"""The network never hurts the run: silent and noisy strangers on the port change nothing, and readers of the
page cost nothing."""

import contextlib
import pathlib
import re
import resource
import socket
import sys
import threading
import time
import unittest

from harness import Cluster, EndToEndTest, LATE_SECONDS, TIME_FACTOR, finished, small_setup
from page_case import PageCase, Stream, ask

STRANGERS = 1000
TLS_CLIENT_HELLO = bytes.fromhex("1603010200010001fc0303") + bytes(600)


class Strangers:
    """Connections that do no good, from start() to stop(): each says what `speech` gives, a byte a
    second, and connects again when it is closed."""

    def __init__(self, address, count, speech):
        host, port = address.split(":")
        self._target, self._speech = (host, int(port)), speech
        self._open = []
        self.connected = 0
        self._count = count
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._stopping.set()
        self._thread.join()
        for connection, _ in self._open:
            connection.close()

    def _connect(self):
        connection = socket.socket()
        connection.setblocking(False)
        with contextlib.suppress(OSError):
            connection.connect(self._target)
        self.connected += 1
        return connection, iter(self._speech)

    def _run(self):
        while not self._stopping.is_set():
            while len(self._open) < self._count and not self._stopping.is_set():
                self._open.append(self._connect())
            self._stopping.wait(1)
            self._open = [guest for guest in self._open if self._is_there(*guest)]

    @staticmethod
    def _is_there(connection, speech):
        try:
            byte = next(speech, None)
            if byte is not None:
                connection.send(bytes([byte]))
            if connection.recv(1000):
                return True
        except BlockingIOError:
            return True
        except OSError:
            pass
        connection.close()
        return False


class Network(EndToEndTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
        cls.shared = Cluster()
        cls.addClassCleanup(cls.shared.close)
        cls.setup = small_setup(cls.shared).with_flag("--epochs", 6)
        cls.reference = cls.setup.run_local(cls.shared, cls.shared.path("reference"))

    def start_master(self, *flags):
        master = self.setup.start_master(self.cluster, self.cluster.path("store"), "--listen",
                                         "127.0.0.1:0", "--threads", 1, *flags)
        return master, master.wait_event("listening")["address"]

    def warnings(self, master):
        return [event["message"] for event in master.events("log") if event["level"] == "warning"]

    def test_a_thousand_strangers_do_not_keep_a_run_from_its_model(self):
        for name, speech in (("silent", b""), ("a byte a second", b"\x40\0\0\0" + bytes(1000))):
            with self.subTest(strangers=name), Cluster() as cluster:
                self.cluster = cluster
                master, address = self.start_master("--join-timeout-ms", 3000)
                with Strangers(address, STRANGERS, speech) as strangers:
                    master.wait_for(lambda: self.warnings(master), "a warning about strangers")
                    self.assertGreaterEqual(strangers.connected, 32)
                    volunteers = [self.cluster.volunteer(address) for _ in range(2)]
                    event = finished(master)
                self.assertEqual(event["digest"], self.reference["digest"])
                for volunteer in volunteers:
                    self.assertEqual(volunteer.wait_exit(), 0, volunteer.said()[-2000:])
                self.assertEqual(len(master.events("volunteer_joined")), 2)
                said = self.warnings(master)
                self.assertLess(len(said), 10, said[:20])
                self.assertTrue(any("too many connections of its address" in line for line in said),
                                said)

    def test_a_whole_frame_of_nonsense_ends_its_connection_with_a_sentence(self):
        _, address = self.start_master("--join-timeout-ms", 600_000, "--insecure")
        host, port = address.split(":")
        # 64 bytes, with the size and the checksum that they should have.
        frame = bytes.fromhex("400000004f0c3388") + b"\xff" * 64
        with socket.create_connection((host, int(port)), 20 * TIME_FACTOR) as connection:
            connection.sendall(frame)
            said = b""
            while piece := connection.recv(1000):
                said += piece
        self.assertGreater(len(said), 8)

    def test_other_protocols_are_refused_and_said_once(self):
        master, address = self.start_master()
        host, port = address.split(":")
        for speech in (b"GET / HTTP/1.1\r\nHost: gleaner\r\n\r\n", TLS_CLIENT_HELLO, b"\xff" * 1000):
            for _ in range(20):
                with socket.create_connection((host, int(port)), 10 * TIME_FACTOR) as connection:
                    connection.sendall(speech)
                    said = b""
                    with contextlib.suppress(ConnectionResetError):
                        while piece := connection.recv(1000):
                            said += piece
                    self.assertLessEqual(len(said), 7)  # a TLS alert
        volunteer = self.cluster.volunteer(address)
        self.assertEqual(finished(master)["digest"], self.reference["digest"])
        self.assertEqual(volunteer.wait_exit(), 0)
        said = self.warnings(master)
        self.assertLessEqual(len(said), 6, said)
        self.assertTrue(any("it does not encrypt" in line for line in said), said)


def memory_kib(pid):
    status = pathlib.Path(f"/proc/{pid}/status").read_text(encoding="utf-8")
    return int(re.search(r"VmRSS:\s+(\d+) kB", status).group(1))


class PageCrowd(PageCase):
    def test_readers_of_every_kind_cost_the_master_nothing(self):
        master, port, _ = self.start("--verbose")
        resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
        quick = Stream(port)
        quick.wait_for(b"event: run")
        before = memory_kib(master.pid)
        streams, stop = [], threading.Event()
        try:
            for i in range(1000):  # half of them never read; from many addresses, since each has a limit
                streams.append(Stream(port, f"127.0.1.{1 + i % 20}"))
            for stream in streams[::2]:
                stream.wait_for(b"event: run", 60 * TIME_FACTOR)
            endless = [socket.create_connection(("127.0.0.1", port)) for _ in range(10)]
            for one in endless:
                one.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\nX-Endless: ")

            def drip():
                while not stop.wait(0.05):
                    for one in endless:
                        try:
                            one.sendall(b"x" * 200)
                        except OSError:
                            pass  # closed: the header is too long

            dripper = threading.Thread(target=drip)
            dripper.start()
            done = self.get(port, "/api/v1/run")["progress"]["round"]
            self.wait_run(port, lambda r: r["progress"]["round"] >= done + 5, "five rounds more")
            quick.text = b""
            quick.wait_for(b"event: run")
            grown = memory_kib(master.pid) - before
            self.assertLess(grown, 96 * 1024, "KiB more for 1,000 readers")
            metrics = ask(port, "/metrics")[2]
            self.assertGreater(float(re.search(r"gleaner_http_streams\{.*\} (\d+)", metrics).group(1)), 990)
        finally:
            stop.set()
            for stream in [quick, *streams]:
                stream.close()
        dripper.join()
        for one in endless:
            one.close()

    def test_requests_without_end_hold_nobody_up(self):
        _, port, _ = self.start()
        resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
        endless, stop, began = [], threading.Event(), time.monotonic()
        for _ in range(600):
            endless.append(socket.create_connection(("127.0.0.1", port), 20 * TIME_FACTOR))
            endless[-1].sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\nX-Endless: ")

        def drip():
            while not stop.wait(3):
                for one in endless:
                    try:
                        one.sendall(b"x")
                    except OSError:
                        pass  # closed

        dripper = threading.Thread(target=drip)
        dripper.start()
        try:
            for source in ("127.0.0.1", "127.0.0.9"):  # the address with all these connections, and another one
                asked = time.monotonic()
                self.assertEqual(self.ask_from(source, port), (200, "ok\n"))
                self.assertLess(time.monotonic() - asked, LATE_SECONDS)
            status, headers, body = ask(port, "/api/v1/run")
            self.assertEqual((status, headers["Retry-After"], headers["Connection"]), (503, "1", "close"), body)
            for one in endless:  # each request ends, however its bytes come
                one.settimeout(max(0.1, began + 25 + LATE_SECONDS - time.monotonic()))
                try:
                    self.assertEqual(one.recv(1), b"")
                except ConnectionError:
                    pass
            self.get(port, "/api/v1/run")
        finally:
            stop.set()
            dripper.join()
            for one in endless:
                one.close()


if __name__ == "__main__":
    sys.exit(unittest.main())
