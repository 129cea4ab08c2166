"""The network never hurts the run: strangers on the port, silent or noisy, change nothing."""

import contextlib
import resource
import socket
import sys
import threading
import unittest

from harness import Cluster, EndToEndTest, TIME_FACTOR, finished, small_setup

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


if __name__ == "__main__":
    sys.exit(unittest.main())
