"""Volunteers with one wrong bit in a constant of a kernel: in a file, in memory, by a compiler. The bit is
flipped in a copy of the real program."""

import collections
import re
import shutil
import subprocess
import unittest

from harness import BIN, UNMANNERED, EndToEndTest, finished, simd_levels, small_setup

KERNEL, TESTED = "curves_kernel", "logistic"  # as compiled; as the self-test names it
# A constant that only these use belongs to the loss alone: the last two have its inlined body.
OWNERS = (KERNEL, "exp_of_negative", "log_of_one_plus", "pair_deltas", "train_rows_kernel")
FUNCTION = re.compile(r"^[0-9a-f]+ <(.+)>:$")
CONSTANT = re.compile(r"^ +[0-9a-f]+:\t(\w+) .*\(%rip\).*# ([0-9a-f]+) ")
BYTES = {"movsd": 8, "movss": 4, "vbroadcastss": 4, "vfmadd213ps": 4, "vfmadd231ps": 4}  # the first of many


def constants(program):
    """Where the kernel's constants lie in memory, as (address, bytes) of each level. A level is told by its
    registers."""
    text = subprocess.run(["objdump", "--disassemble", "--no-show-raw-insn", program], stdout=subprocess.PIPE,
                          check=True, text=True).stdout
    users, sizes = collections.defaultdict(set), {}
    for function in text.split("\n\n"):
        lines = function.splitlines()
        name = FUNCTION.match(lines[0]) if lines else None
        if not name:
            continue
        level = "avx512" if "%zmm" in function else "avx2" if "%ymm" in function else "scalar"
        for line in lines[1:]:
            found = CONSTANT.match(line)
            if not found:
                continue
            owner = next((owner for owner in OWNERS if owner in name[1]), None)
            users[found[2]].add((owner, level))
            if owner in OWNERS[:3] and found[1] in BYTES:
                sizes[found[2]] = BYTES[found[1]]
    places = collections.defaultdict(list)
    for address, size in sizes.items():
        owners, levels = zip(*users[address])
        if None not in owners and len(set(levels)) == 1:
            # A constant of a polynomial is part of every result; others may bound what seldom occurs.
            first = 0 if set(owners) & set(OWNERS[1:3]) else len(places[levels[0]])
            places[levels[0]].insert(first, (int(address, 16), size))
    return places


def offset_in_file(program, address):
    """Where in an ELF file an address of its constants lies."""
    text = subprocess.run(["readelf", "--section-headers", "--wide", program], stdout=subprocess.PIPE, check=True,
                          text=True).stdout
    start, offset = (int(word, 16) for word in re.search(r" \.rodata +PROGBITS +(\w+) +(\w+) ", text).groups())
    return address - start + offset


@unittest.skipUnless(shutil.which("objdump") and "avx2" in simd_levels(), "objdump, or a processor with AVX2, missing")
class WrongBits(EndToEndTest):
    def damaged(self, *levels):
        """A copy of the volunteer's program that has one wrong bit at these levels."""
        original = BIN / "gleaner-volunteer"
        copy = self.cluster.path("gleaner-volunteer")
        places = constants(original)
        content = bytearray(original.read_bytes())
        for level in levels:
            address, size = places[level][0]
            content[offset_in_file(original, address) + size - 2] ^= 1
        copy.write_bytes(content)
        copy.chmod(0o755)
        return copy

    def wrong_digests(self, program):
        """What its self-test says: {level: {kernel: (it gives, it has to give)}}."""
        code, run = self.cluster.run(program, "--self-test")
        self.assertEqual(code, 1, run.said())
        wrong, level = collections.defaultdict(dict), None
        for line in run.out:
            words = line.split()
            if not line.startswith(" "):
                level = words[0]
            elif "wrong:" in words:
                wrong[level][words[0]] = (words[1], words[-1])
        return wrong

    def setUp(self):
        super().setUp()
        self.setup = small_setup(self.cluster, points=2000)
        self.master = self.setup.start_master(self.cluster, self.cluster.path("store"), "--listen", "127.0.0.1:0")

    def join(self, program, simd=None):
        return self.cluster.start(program, self.master.wait_event("listening")["join"], "--threads", 1, "--once",
                                  "--control", self.cluster.path("control"), *UNMANNERED, simd=simd)

    def test_a_wrong_bit_in_the_best_level_makes_it_take_the_next(self):
        best, next_best = simd_levels()[-1], simd_levels()[-2]
        program = self.damaged(best)
        self.assertEqual({best}, set(self.wrong_digests(program)))
        volunteer = self.join(program)
        self.assertEqual(finished(self.master)["digest"],
                         self.setup.run_local(self.cluster, self.cluster.path("calm"))["digest"])
        self.assertEqual(volunteer.wait_exit(), 0, volunteer.said())
        self.assertIn(f"the instruction set {best} gives wrong results here (kernel {TESTED} gives", volunteer.said())
        self.assertNotIn(f"the instruction set {next_best}", volunteer.said())

    def test_a_wrong_bit_in_each_level_makes_it_refuse_itself(self):
        program = self.damaged(*simd_levels())
        self.assertEqual(set(simd_levels()), set(self.wrong_digests(program)))
        volunteer = self.join(program)
        self.assertEqual(volunteer.wait_exit(), 1)
        self.assertIn("this program computes other bits on this machine than everywhere else (kernel "
                      f"{TESTED} gives", volunteer.said())

    def test_a_master_refuses_one_that_believes_itself(self):
        # What it expects is damaged as well, so that its own test finds nothing.
        program = self.damaged("scalar")
        content = program.read_bytes()
        for given, right in self.wrong_digests(program)["scalar"].values():
            wanted = int(right, 16).to_bytes(8, "little")
            self.assertEqual(content.count(wanted), 1)
            content = content.replace(wanted, int(given, 16).to_bytes(8, "little"))
        program.write_bytes(content)
        volunteer = self.join(program, simd="scalar")
        self.assertEqual(volunteer.wait_exit(), 5, volunteer.said())
        self.assertIn(f"the master refused: the kernel {TESTED} gives", volunteer.said())
        self.assertTrue(self.master.is_running())


if __name__ == "__main__":
    unittest.main()
