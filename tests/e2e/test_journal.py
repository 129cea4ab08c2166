"""Under systemd, entries of the journal have the members of events as fields."""

import os
import socket
import struct
import subprocess
import sys
import unittest

from harness import BIN, UNMANNERED, EndToEndTest, small_setup

# A private /run, in which the folder $1 has the journal's socket, as far as these programs see.
PRIVATE = ("mount -t tmpfs tmpfs /run && mkdir -p /run/systemd/journal && "
           "mount --bind \"$1\" /run/systemd/journal && shift && exec \"$@\"")
CAN_HIDE_RUN = subprocess.run(["unshare", "--mount", "sh", "-c", "mount -t tmpfs tmpfs /run"],
                              capture_output=True, check=False).returncode == 0


def fields_of(entry):
    """Of a datagram: lines NAME=value, or NAME, the value's size in eight bytes and the value."""
    fields = {}
    while entry:
        line, _, entry = entry.partition(b"\n")
        name, has_value, value = line.partition(b"=")
        if not has_value:
            size = struct.unpack("<Q", entry[:8])[0]
            value, entry = entry[8:8 + size], entry[8 + size + 1:]
        fields[name.decode()] = value.decode()
    return fields


@unittest.skipUnless(CAN_HIDE_RUN, "it takes the right to mount")
class Journal(EndToEndTest):
    def setUp(self):
        super().setUp()
        self.folder = self.cluster.path("journal")
        os.mkdir(self.folder)
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.addCleanup(self.socket.close)
        self.socket.bind(f"{self.folder}/socket")
        self.socket.settimeout(1)

    def entries(self, program, *arguments):
        """What the program sends until it ends, and what it prints."""
        printed = self.cluster.path("printed")
        with open(printed, "wb") as out:
            file = os.fstat(out.fileno())
            environment = {**os.environ, "JOURNAL_STREAM": f"{file.st_dev}:{file.st_ino}"}
            with subprocess.Popen(
                    ["unshare", "--mount", "sh", "-c", PRIVATE, "sh", self.folder, f"{BIN}/{program}",
                     *map(str, arguments)], stdout=out, stderr=out, env=environment) as process:
                entries = []
                while True:
                    has_ended = process.poll() is not None
                    try:
                        entries.append(fields_of(self.socket.recv(1 << 20)))
                    except TimeoutError:
                        if has_ended:
                            break
        with open(printed, encoding="utf-8") as text:
            return entries, text.read()

    def test_a_run_makes_entries_with_fields(self):
        setup = small_setup(self.cluster)
        entries, printed = self.entries(
            "gleaner-master", "--train", setup.train, "--test", setup.test, "--store",
            self.cluster.path("store"), "--local", 1, "--http", "off", *setup.flags)
        self.assertEqual(printed, "")
        self.assertEqual({entry["SYSLOG_IDENTIFIER"] for entry in entries}, {"gleaner-master"})
        kinds = [entry["GLEANER_EVENT"] for entry in entries]
        self.assertLessEqual({"started", "progress", "checkpoint", "evaluated"}, set(kinds))
        last = entries[-1]
        self.assertEqual((last["GLEANER_EVENT"], last["PRIORITY"]), ("finished", "5"))
        self.assertIn(last["GLEANER_DIGEST"], last["MESSAGE"])
        self.assertIn("\n", last["MESSAGE"])
        self.assertTrue(0 <= float(last["GLEANER_P_AT_1"]) <= 1)

    def test_a_volunteer_says_why_it_waits(self):
        entries, printed = self.entries(
            "gleaner-volunteer", "127.0.0.1:1", "--insecure", "--give-up-s", 1, *UNMANNERED)
        self.assertIn("gleaner-volunteer", printed)  # the last word is an error for whoever started it
        self.assertIn("retrying", [entry.get("GLEANER_ACTIVITY") for entry in entries])
        self.assertEqual({entry["SYSLOG_IDENTIFIER"] for entry in entries}, {"gleaner-volunteer"})

    def test_json_that_is_asked_for_stays_text(self):
        entries, printed = self.entries(
            "gleaner-volunteer", "127.0.0.1:1", "--insecure", "--give-up-s", 1, "--log-format", "json",
            *UNMANNERED)
        self.assertEqual(entries, [])
        self.assertIn('{"event":"status"', printed)


if __name__ == "__main__":
    sys.exit(unittest.main())
