"""The programs carry what turns a memory error into an end: read from their ELF files."""

import platform
import re
import subprocess
import unittest

from harness import BIN

PROGRAMS = ["gleaner", "gleaner-master", "gleaner-volunteer"]
# endbr64, where indirect calls may land.
LANDING = bytes.fromhex("f30f1efa")


class Hardening(unittest.TestCase):
    def check(self, what, program, told, pattern):
        with self.subTest(program=program, what=what):
            self.assertRegex(told, pattern)

    def test_every_program(self):
        for program in PROGRAMS:
            told = subprocess.run(["readelf", "--wide", "--file-header", "--program-headers", "--dynamic",
                                   "--dyn-syms", BIN / program],
                                  check=True, capture_output=True, text=True).stdout
            self.check("its addresses are drawn at random", program, told, r"Type: +DYN .*Position-Independent")
            self.check("no stack holds code", program, told, r"GNU_STACK .* RW +0x")
            self.check("no segment can be both written and run", program, told,
                       re.compile(r"\A(?!.*LOAD .* RWE ).*\Z", re.DOTALL))
            self.check("tables of addresses are read-only", program, told, r"GNU_RELRO")
            self.check("all functions are bound at the start", program, told, r"FLAGS_1\).*\bNOW\b")
            self.check("stacks are guarded", program, told, r"__stack_chk_fail")
            self.check("sizes of copies are checked", program, told, r"__(memcpy|memset|memmove|snprintf|read|vsnprintf)_chk")
            if platform.machine() == "x86_64":
                marks = (BIN / program).read_bytes().count(LANDING)
                with self.subTest(program=program, what="indirect calls land at marks"):
                    self.assertGreater(marks, 500)


if __name__ == "__main__":
    unittest.main()
