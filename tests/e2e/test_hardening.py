"""The ELF files of the programs have the protections that turn a memory error into an exit."""

import re
import subprocess
import unittest

from harness import BIN

PROGRAMS = ["gleaner", "gleaner-master", "gleaner-volunteer"]
# endbr64, where indirect calls may land.
LANDING = bytes.fromhex("f30f1efa")
# What readelf says of a hardened program.
SIGNS = {
    "its addresses are drawn at random": r"Type: +DYN .*Position-Independent",
    "no stack holds code": r"GNU_STACK .* RW +0x",
    "no segment can be both written and run": re.compile(r"\A(?!.*LOAD .* RWE ).*\Z", re.DOTALL),
    "tables of addresses are read-only": r"GNU_RELRO",
    "all functions are bound at the start": r"FLAGS_1\).*\bNOW\b",
    "stacks are guarded": r"__stack_chk_fail",
    "sizes of copies are checked": r"__(memcpy|memset|memmove|snprintf|read|vsnprintf)_chk",
}


def check_hardened(test, program):
    told = subprocess.run(["readelf", "--wide", "--file-header", "--program-headers", "--dynamic",
                           "--dyn-syms", program], check=True, capture_output=True, text=True).stdout
    for what, sign in SIGNS.items():
        with test.subTest(program=program.name, what=what):
            test.assertRegex(told, sign)
    if "X86-64" in told:
        with test.subTest(program=program.name, what="indirect calls land at marks"):
            test.assertGreater(program.read_bytes().count(LANDING), 500)


class Hardening(unittest.TestCase):
    def test_every_program(self):
        for program in PROGRAMS:
            check_hardened(self, BIN / program)


if __name__ == "__main__":
    unittest.main()
