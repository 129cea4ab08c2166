"""A disk that fills up, or refuses writes, under a run.

The tests of a full disk need a small file system: the script starts itself again in a name space (unshare)
and mounts one there. Where that is not allowed the tests are skipped.
"""

import errno
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import unittest

from harness import StorageTest, faults, finished

MEBIBYTE = 1 << 20
# Set in the name space of our own.
INSIDE = "GLEANER_MAY_MOUNT"


class FullDisk(StorageTest):
    """Disks that fill up in the middle of a run."""

    RESERVE = 16 * MEBIBYTE

    def setUp(self):
        super().setUp()
        if INSIDE not in os.environ:
            self.skipTest("no file system can be mounted here: unshare -rm, or root, is needed")
        self.disk = self.cluster.path("disk")
        self.disk.mkdir()
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=192m,nr_inodes=2000", "tmpfs", self.disk],
                       check=True)
        # After the programs have ended, before the folder is removed.
        self.addCleanup(lambda: subprocess.run(["umount", "-l", self.disk], check=False))
        self.store = self.disk / "store"
        self.ballast = self.disk / "ballast"
        self.names = self.disk / "names"
        self.name_count = 0

    def fill(self):
        """Leaves less free than the reserve. In small steps, since the store may be writing too."""
        with open(self.ballast, "ab", buffering=0) as file:
            while shutil.disk_usage(self.disk).free > self.RESERVE * 3 // 4:
                file.write(bytes(MEBIBYTE // 4))

    def start_and_fill(self, fill, *flags):
        """A run whose disk is filled after its first checkpoint, while nothing moves, until it is
        paused."""
        master, volunteer = self.start("--disk-reserve", self.RESERVE, *flags, hold=1)
        master.wait_checkpoint(1)
        volunteer.pause()
        master.let_go()
        fill()
        volunteer.go_on()

        def is_paused():
            if not master.events("paused"):
                fill()  # the store may have removed files
            return master.events("paused")

        master.wait_for(is_paused, "event paused")
        return master, volunteer

    def fill_names(self):
        """Leaves no room for another file, although there are bytes enough."""
        try:
            self.names.mkdir(exist_ok=True)
            while True:
                (self.names / str(self.name_count)).touch()
                self.name_count += 1
        except OSError:
            return

    def test_training_pauses_while_the_disk_is_full_and_ends_with_the_same_model(self):
        master, volunteer = self.start_and_fill(self.fill)
        paused = master.wait_event("paused")
        self.assertIn(str(self.store), paused["reason"])
        self.assertIn("MiB are needed", paused["reason"])
        master.wait_event("progress", lambda e: "disk space" in (e["waiting_for"] or ""))
        volunteer.wait_said("disk space: ")
        self.assertTrue(master.is_running())
        self.ballast.unlink()
        self.assertGreater(master.wait_event("resumed")["seconds"], 0)
        self.assertEqual(finished(master)["digest"], self.reference["digest"])
        self.assertEqual(volunteer.wait_exit(), 0)

    def test_a_paused_run_is_stopped_and_resumed(self):
        master, volunteer = self.start_and_fill(self.fill, "--stop-grace-s", 10_000)
        master.wait_event("paused")
        master.signal(signal.SIGTERM)
        self.assertEqual(master.wait_exit(), 0, master.said())  # at once, whatever the grace
        self.assertEqual(master.events()[-1]["event"], "stopped")
        checkpoint = master.events()[-1]["checkpoint"]
        self.assertEqual(self.cluster.history(self.store)[-1]["checkpoint"], checkpoint)
        volunteer.close()
        self.ballast.unlink()
        again = self.setup.start_master(self.cluster, self.store, "--local", 1,
                                        "--disk-reserve", self.RESERVE)
        self.assertEqual(finished(again)["digest"], self.reference["digest"])

    def test_a_run_killed_on_a_full_disk_goes_on_when_there_is_room(self):
        master, volunteer = self.start_and_fill(self.fill)
        master.wait_event("paused")
        master.kill()
        volunteer.close()
        again = self.setup.start_master(self.cluster, self.store, "--local", 1,
                                        "--disk-reserve", self.RESERVE)
        again.wait_event("paused")
        self.ballast.unlink()
        again.wait_event("resumed")
        self.assertEqual(finished(again)["digest"], self.reference["digest"])

    def test_room_that_runs_out_within_a_write_costs_no_more_than_the_open_rounds(self):
        master, volunteer = self.start_and_fill(self.fill_names)
        self.assertIn("no room", master.wait_event("paused")["reason"])
        self.assertEqual(len(master.events("started")), 1)
        shutil.rmtree(self.names)
        master.wait_event("resumed")
        # The same process, on the same port: the volunteer is back by itself.
        self.assertEqual(finished(master)["digest"], self.reference["digest"])
        self.assertEqual(len(master.events("started")), 2)
        self.assertEqual(len({e["address"] for e in master.events("listening")}), 1)
        self.assertEqual(volunteer.wait_exit(), 0)

    def test_a_run_whose_store_waits_to_be_opened_again_is_stopped(self):
        master, _ = self.start_and_fill(self.fill_names)
        master.wait_event("paused")
        master.signal(signal.SIGTERM)
        self.assertEqual(master.wait_exit(), 0, master.said())
        self.assertEqual(master.events()[-1]["event"], "stopped")

    def test_a_volunteer_whose_cache_has_no_room_says_what_to_do(self):
        with open(self.ballast, "wb") as file:
            file.write(bytes(shutil.disk_usage(self.disk).free))
        line = "gleaner://127.0.0.1:1/u5zrea2vuu2gekrayclbd44ede.ncqnlpj5sqmlobkv4s3stcxo4c2bqf536y"
        volunteer = self.cluster.volunteer(line, "--cache", self.disk / "cache")
        self.assertEqual(volunteer.wait_exit(), 1, volunteer.said())
        self.assertIn(str(self.disk / "cache"), volunteer.said())
        self.assertIn("choose a --cache folder that can be written", volunteer.said())

    def test_a_disk_without_room_for_backups_is_a_warning(self):
        self.fill()
        store = self.cluster.path("elsewhere")
        master = self.setup.start_master(self.cluster, store, "--local", 1, "--backup",
                                         self.disk / "backups", "--backup-every", 0)
        with open(self.ballast, "ab") as file:
            file.write(bytes(shutil.disk_usage(self.disk).free))
        self.assertEqual(finished(master)["digest"], self.reference["digest"])
        warnings = [e["message"] for e in master.events("log") if e["level"] == "warning"]
        self.assertTrue(any("no backup was made" in text for text in warnings), warnings)


class FailingWrites(StorageTest):
    """Writes that the system refuses in the middle of a run, although there seem to be bytes enough."""

    def start_with(self, number, text):
        """A run whose writes to files with this in their path fail from its first checkpoint on."""
        self.control = self.cluster.path("fault")
        master, volunteer = self.start(environment=faults(GLEANER_FAULT_FILE=str(self.control)),
                                       hold=1)
        master.wait_checkpoint(1)
        volunteer.pause()
        master.let_go()
        self.control.write_text(f"{number} {text}", encoding="utf-8")
        volunteer.go_on()
        return master, volunteer

    def assert_pauses_and_goes_on(self, number, text):
        master, volunteer = self.start_with(number, text)
        self.assertIn("no room", master.wait_event("paused")["reason"])
        self.control.unlink()
        master.wait_event("resumed")
        self.assertEqual(finished(master)["digest"], self.reference["digest"])
        self.assertEqual(volunteer.wait_exit(), 0)

    def test_a_quota_that_is_used_up_is_a_full_disk(self):
        self.assert_pauses_and_goes_on(errno.EDQUOT, f"{self.store}/")

    def test_a_quota_within_the_tables_alone_is_one_too(self):
        self.assert_pauses_and_goes_on(errno.EDQUOT, ".sst")

    def test_tables_without_room_are_a_full_disk(self):
        self.assert_pauses_and_goes_on(errno.ENOSPC, ".sst")

    def test_a_log_without_room_is_a_full_disk(self):
        self.assert_pauses_and_goes_on(errno.ENOSPC, ".log")

    def test_a_disk_that_fails_ends_the_run_and_costs_no_more_than_the_open_rounds(self):
        master, volunteer = self.start_with(errno.EIO, f"{self.store}/")
        self.assert_ended(master, 1, self.store, os.strerror(errno.EIO))
        volunteer.close()
        self.finish(self.store)


def enter_name_space():
    """Starts the script again where it may mount, if the system allows that at all."""
    if INSIDE in os.environ:
        return
    unshare = ["unshare", "--map-root-user", "--mount"]
    probe = subprocess.run([*unshare, "mount", "-t", "tmpfs", "tmpfs", pathlib.Path.cwd().anchor + "mnt"],
                           check=False, capture_output=True) if shutil.which("unshare") else None
    if probe is None or probe.returncode != 0:
        return
    os.environ[INSIDE] = "1"
    os.execvp(unshare[0], [*unshare, sys.executable, *sys.argv])


if __name__ == "__main__":
    enter_name_space()
    sys.exit(unittest.main())
