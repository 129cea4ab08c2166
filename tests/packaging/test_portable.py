"""The portable program: the same bits from every folder, and a whole run in a root file system with the C
library alone. The program for aarch64 runs under an emulator."""

import re
import shutil
import subprocess
import unittest

from debian_system import copy_checkout, make_root, why_not

from harness import IS_LONG, ROOT, RUN_SECONDS, UNMANNERED, EndToEndTest, finished, small_setup
from test_hardening import check_hardened

BUILD = "tools/packaging/portable/build"
SKIP = why_not() if IS_LONG else "takes minutes: only with GLEANER_LONG"


@unittest.skipIf(SKIP, SKIP)
class Portable(EndToEndTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.folder = ROOT / "build/portable"
        subprocess.run([ROOT / BUILD, cls.folder], check=True)
        cls.program = cls.folder / "gleaner-volunteer"

    def test_it_is_hardened(self):
        check_hardened(self, self.program)

    def test_another_folder_gives_the_same_bits(self):
        copy = copy_checkout(self.cluster.path("a/longer/name/of/a/folder"))
        out = self.cluster.path("out")
        subprocess.run([copy / BUILD, out], check=True)
        self.assertEqual((out / "gleaner-volunteer.sha256").read_text(),
                         (self.folder / "gleaner-volunteer.sha256").read_text())
        self.assertEqual((out / "gleaner-volunteer").read_bytes(), self.program.read_bytes())

    def test_it_trains_where_there_is_nothing_but_the_c_library(self):
        root = self.cluster.path("root")
        make_root(root, "extract", "libc6")
        self.assertFalse(list(root.rglob("libstdc++*")))
        shutil.copy(self.program, root)
        setup = small_setup(self.cluster)
        master = setup.start_master(self.cluster, self.cluster.path("store"), "--listen", "127.0.0.1:0")
        line = master.wait_event("listening")["join"]
        volunteer = self.cluster.start("/gleaner-volunteer", line, "--once", "--log-format", "json", *UNMANNERED,
                                       before=["chroot", str(root)])
        digest = finished(master)["digest"]
        self.assertEqual(volunteer.wait_exit(), 0, volunteer.said())
        self.assertEqual(digest, setup.run_local(self.cluster, self.cluster.path("calm"))["digest"])


class ArchivesForAarch64(unittest.TestCase):
    def test_every_archive_is_of_a_package_that_is_unpacked(self):
        wanted = re.search(r"foreach\(name ([\w ]+)\)\s+find_library",
                           (ROOT / "tools/packaging/portable/CMakeLists.txt").read_text(encoding="utf-8"))[1]
        unpacked = re.search(r"--include=([\w,-]+)", (ROOT / BUILD).read_text(encoding="utf-8"))[1].split(",")
        for name in wanted.split():
            owner = subprocess.run(["dpkg", "--search", f"*/lib{name}.a"], stdout=subprocess.PIPE,
                                   stderr=subprocess.DEVNULL, text=True, check=False).stdout.partition(":")[0]
            with self.subTest(archive=name):
                self.assertIn(owner, unpacked)


EMULATOR = "qemu-aarch64"
SKIP_AARCH64 = ("takes minutes: only with GLEANER_LONG" if not IS_LONG else
                None if shutil.which(EMULATOR) else f"{EMULATOR} missing (Debian: qemu-user)")


@unittest.skipIf(SKIP_AARCH64, SKIP_AARCH64)
class PortableForAarch64(EndToEndTest):
    def test_it_trains_the_same_model_beside_this_machine_s_master(self):
        folder = ROOT / "build/portable-aarch64"
        subprocess.run([ROOT / BUILD, "--arch", "aarch64", folder], check=True)
        program = folder / "gleaner-volunteer"
        check_hardened(self, program)
        setup = small_setup(self.cluster).with_flag("--epochs", 1)
        master = setup.start_master(self.cluster, self.cluster.path("store"), "--listen", "127.0.0.1:0")
        line = master.wait_event("listening")["join"]
        root = ROOT / "build/portable-work-aarch64/root"
        volunteer = self.cluster.start(program, line, "--once", "--log-format", "json", *UNMANNERED,
                                       before=[EMULATOR, "-L", str(root)])
        digest = finished(master, 10 * RUN_SECONDS)["digest"]
        self.assertEqual(volunteer.wait_exit(), 0, volunteer.said())
        self.assertEqual(digest, setup.run_local(self.cluster, self.cluster.path("calm"))["digest"])


if __name__ == "__main__":
    unittest.main()
