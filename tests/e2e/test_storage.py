"""Stores that are damaged or used twice, and backups of them."""

import json
import os
import shutil
import signal
import sys
import unittest

from harness import StorageTest, faults, finished

BAD_STORE = 4


class Damage(StorageTest):
    """Stores whose files are not what was written; the real master's sentences."""

    REMEDY = ("restore it from a backup", "empty folder")

    def setUp(self):
        super().setUp()
        # In the middle of the run, so that a master reads and writes it.
        master, volunteer = self.start(hold=2)
        master.wait_checkpoint(2)
        volunteer.pause()
        master.kill()
        volunteer.close()

    def files(self, pattern, size_min=1):
        found = sorted(path for path in self.store.glob(pattern) if path.stat().st_size >= size_min)
        self.assertTrue(found, f"no {pattern} in {[p.name for p in self.store.iterdir()]}")
        return found

    def refuse(self, *pieces):
        master = self.setup.start_master(self.cluster, self.store, "--local", 1)
        self.assert_ended(master, BAD_STORE, self.store, *pieces)
        return master

    @staticmethod
    def flip(path, at):
        content = bytearray(path.read_bytes())
        content[at] ^= 0x10
        path.write_bytes(content)

    def test_a_table_cut_short_or_gone_is_named(self):
        largest = max(self.files("*.sst"), key=lambda path: path.stat().st_size)
        content = largest.read_bytes()
        largest.write_bytes(content[:len(content) // 2])
        self.refuse(largest.stem, *self.REMEDY)
        largest.unlink()
        self.refuse(largest.stem, *self.REMEDY)
        largest.write_bytes(content)
        self.finish(self.store)

    def test_a_flipped_bit_in_a_table_is_named_and_never_trained_on(self):
        for path in self.files("*.sst", 100_000):
            content = path.read_bytes()
            self.flip(path, len(content) // 3)
            master = self.setup.start_master(self.cluster, self.store, "--local", 1)
            if master.wait_exit() != 0:
                self.assert_ended(master, BAD_STORE, path.name, self.store, *self.REMEDY)
                path.write_bytes(content)
                self.finish(self.store)
                return
            self.assertEqual(master.events()[-1]["digest"], self.reference["digest"])
        self.fail("no table was read")

    def test_a_manifest_or_its_pointer_that_is_damaged_is_refused(self):
        for name, change in (("MANIFEST-*", lambda c: c[:20] + bytes([c[20] ^ 0x10]) + c[21:]),
                             ("CURRENT", lambda c: c[:len(c) // 2]),
                             ("CURRENT", lambda c: b"")):
            path = self.files(name)[-1]
            content = path.read_bytes()
            path.write_bytes(change(content))
            self.refuse(*self.REMEDY)
            path.write_bytes(content)
        self.finish(self.store)

    def test_a_manifest_that_is_gone_is_refused(self):
        self.files("MANIFEST-*")[-1].unlink()
        self.refuse(*self.REMEDY)

    def test_damage_in_the_middle_of_the_log_is_refused_and_a_torn_end_is_not(self):
        log = max(self.files("*.log"), key=lambda path: path.stat().st_size)
        content = log.read_bytes()
        self.assertGreater(len(content), 100_000)
        self.flip(log, len(content) // 2)
        self.refuse(*self.REMEDY)
        log.write_bytes(content[:-1000])
        self.finish(self.store)


class Refusals(StorageTest):
    def test_a_second_master_is_refused_and_says_which_folder_is_in_use(self):
        first, _ = self.start()
        second = self.setup.start_master(self.cluster, self.store, "--local", 1)
        self.assert_ended(second, BAD_STORE,
                          f"another gleaner-master is using the store {self.store}", "stop it first")
        self.assertEqual(finished(first)["digest"], self.reference["digest"])


class Limits(StorageTest):
    """Limits of the system for one user (ulimit): each ends in a sentence, and the store is whole."""

    def assert_in_words(self, master):
        code = master.wait_exit()
        self.assertGreaterEqual(code, 0, master.said())  # no signal
        self.assertNotRegex(master.said(), r"(?i)terminate called|core dumped|check failed")
        return code

    def test_a_file_that_may_grow_no_further(self):
        master = self.setup.start_master(self.cluster, self.store, "--local", 1, "--threads", 1,
                                         before=["prlimit", "--fsize=400000"])
        self.assertNotEqual(self.assert_in_words(master), 0)
        self.assertIn("File too large", master.said())
        self.finish(self.store)

    def test_a_thread_that_cannot_be_started(self):
        failed = 0
        for threads in range(24):
            master = self.setup.start_master(self.cluster, self.store, "--local", 1, "--threads", 3,
                                             environment=faults(GLEANER_FAULT_THREADS=str(threads)))
            if self.assert_in_words(master) != 0:
                failed += 1
                self.assertRegex(master.said(), "threads|it could not go on|temporarily unavailable")
        self.assertGreater(failed, 3)
        self.finish(self.store)


class Backups(StorageTest):
    def setUp(self):
        super().setUp()
        self.backups = self.cluster.path("backups")
        self.restored = self.cluster.path("restored")

    def flags(self, every=0, keep=3):
        return ["--backup", self.backups, "--backup-every", every, "--backup-keep", keep]

    def listed(self):
        lines = self.cluster.gleaner("backup", "list", self.backups, "--json").splitlines()
        return [json.loads(line) for line in lines]

    def back_up(self, **others):
        """A finished run with backups."""
        master = self.setup.start_master(self.cluster, self.store, "--local", 1,
                                         *self.flags(**others))
        event = finished(master)
        self.assertEqual(event["digest"], self.reference["digest"])
        self.assertEqual([e for e in master.events("log") if e["level"] != "info"], [])
        return master.events("backup")

    def test_backups_are_made_kept_verified_and_restored(self):
        events = self.back_up(keep=2)
        self.assertGreaterEqual(len(events), 2)
        self.assertEqual(events[-1]["checkpoint"], self.reference["checkpoint"])
        self.assertEqual([e["kept"] for e in events], [1] + [2] * (len(events) - 1))
        listed = self.listed()
        self.assertEqual([(b["backup"], b["checkpoint"]) for b in listed],
                         [(e["backup"], e["checkpoint"]) for e in events[-2:]])
        self.assertEqual(self.cluster.gleaner("backup", "verify", self.backups).count("intact"), 2)
        self.cluster.gleaner("restore", self.backups, self.restored)
        self.assertEqual(self.cluster.digest(self.restored), self.reference["digest"])
        self.assertFalse((self.store / "snapshot").exists())

    def test_a_restored_run_trains_on_to_the_same_model(self):
        self.back_up(keep=100)
        for backup in self.listed()[:2]:
            self.cluster.gleaner("restore", self.backups, self.restored, "--backup", backup["backup"],
                                 "--force")
            self.assertEqual(self.cluster.history(self.restored)[-1]["checkpoint"],
                             backup["checkpoint"])
            self.assertLess(backup["checkpoint"], self.reference["checkpoint"])
            # What another run has at this checkpoint.
            other = self.cluster.path(f"other-{backup['backup']}")
            master, volunteer = self.start(store=other, hold=backup["checkpoint"])
            master.wait_checkpoint(backup["checkpoint"])
            master.kill()
            volunteer.close()
            if self.cluster.history(other)[-1]["checkpoint"] == backup["checkpoint"]:
                self.assertEqual(self.cluster.digest(self.restored), self.cluster.digest(other))
            self.finish(self.restored)

    def test_a_master_that_is_killed_while_it_copies_leaves_whole_backups(self):
        for _ in range(3):
            master = self.setup.start_master(self.cluster, self.store, "--local", 1, *self.flags())
            master.wait_event("backup")
            master.kill()
        for backup in self.listed():
            self.cluster.gleaner("backup", "verify", self.backups, "--backup", backup["backup"])
        self.assertGreaterEqual(len(self.listed()), 1)
        self.assertEqual(self.back_up()[-1]["checkpoint"], self.reference["checkpoint"])

    def test_a_backup_that_cannot_be_written_is_a_warning(self):
        self.backups.write_text("not a folder", encoding="utf-8")
        master = self.setup.start_master(self.cluster, self.store, "--local", 1, *self.flags())
        self.assertEqual(finished(master)["digest"], self.reference["digest"])
        warning = next(e for e in master.events("log") if e["level"] == "warning")
        self.assertIn("no backup was made", warning["message"])
        self.assertIn(str(self.backups), warning["message"])

    def stop_while_copying(self, when):
        """Stops a master whose copy stands still; returns it when it has ended."""
        control = self.cluster.path("fault")
        master, volunteer = self.start(*self.flags(),
                                       environment=faults(GLEANER_FAULT_FILE=str(control)), hold=1)
        master.wait_checkpoint(1)
        volunteer.pause()
        master.let_go()
        master.wait_event("backup")
        count = len(master.events("backup"))
        control.write_text(f"0 {self.backups}/", encoding="utf-8")
        volunteer.go_on()
        master.wait_checkpoint(when)
        master.wait_for(lambda: (self.store / "snapshot").exists(), "a copy under way")
        if when == self.reference["checkpoint"]:
            self.assertEqual(volunteer.wait_exit(), 0)  # the run is over
            master.signal(signal.SIGTERM)
            master.wait_said("the last backup is given up")
        else:
            master.signal(signal.SIGTERM)
            volunteer.wait_said("the master is shutting down")
        control.unlink()
        self.assertEqual(master.wait_exit(), 0, master.said())
        volunteer.close()
        self.assertLessEqual(len(master.events("backup")), count + 2)
        self.assertFalse((self.store / "snapshot").exists())
        self.assertEqual(self.cluster.gleaner("backup", "verify", self.backups).count("intact"),
                         len(self.listed()))
        return master

    def test_a_stop_while_a_backup_is_copied_gives_it_up_and_keeps_the_others(self):
        self.assertEqual(self.stop_while_copying(3).events()[-1]["event"], "stopped")
        self.assertEqual(self.back_up()[-1]["checkpoint"], self.reference["checkpoint"])

    def test_a_stop_while_the_last_backup_is_copied_gives_it_up(self):
        master = self.stop_while_copying(self.reference["checkpoint"])
        self.assertEqual(master.events()[-1]["digest"], self.reference["digest"])
        # The backup that was given up is not there.
        self.assertLessEqual({backup["backup"] for backup in self.listed()},
                             {event["backup"] for event in master.events("backup")})

    def kill_restore(self, *flags):
        """Kills gleaner restore within its writing."""
        control = self.cluster.path("fault")
        control.write_text(f"0 {self.restored}.restoring/", encoding="utf-8")
        restore = self.cluster.start("gleaner", "restore", self.backups, self.restored, *flags,
                                     environment=faults(GLEANER_FAULT_FILE=str(control)))
        beside = self.cluster.path("restored.restoring")
        while not beside.exists():
            self.assertTrue(restore.is_running(), restore.said())
            os.sched_yield()
        restore.kill()
        control.unlink()

    def test_a_restore_that_was_killed_is_recognised_and_made_again(self):
        self.back_up()
        self.kill_restore()
        master = self.setup.start_master(self.cluster, self.restored, "--local", 1)
        self.assert_ended(master, BAD_STORE, f"a gleaner restore into {self.restored} has not finished",
                          "run it again")
        self.assertFalse(self.restored.exists())
        for path in (self.restored, f"{self.restored}.restoring"):
            code, program = self.cluster.run("gleaner", "checkpoint", "digest", path)
            self.assertEqual(code, BAD_STORE, program.said())
            self.assertIn("gleaner restore", program.said())
        self.cluster.gleaner("restore", self.backups, self.restored)
        self.assertEqual(self.cluster.digest(self.restored), self.reference["digest"])
        self.assertEqual([p.name for p in self.cluster.folder.glob("restored*")], ["restored"])

    def test_a_restore_that_was_killed_leaves_the_store_that_it_was_to_replace(self):
        self.back_up()
        shutil.copytree(self.done, self.restored)
        self.kill_restore("--force")
        self.assertEqual(self.cluster.digest(self.restored), self.reference["digest"])
        # Between its two renames: the place is empty, and both stores are beside it.
        self.restored.rename(f"{self.restored}.replaced")
        master = self.setup.start_master(self.cluster, self.restored, "--local", 1)
        self.assert_ended(master, BAD_STORE, f"the store that was there is {self.restored}.replaced")
        self.cluster.gleaner("restore", self.backups, self.restored)
        self.assertEqual([p.name for p in self.cluster.folder.glob("restored*")], ["restored"])

    def test_backups_of_different_runs_are_not_mixed(self):
        self.back_up()
        before = self.listed()
        other = self.setup.with_flag("--seed", 6)
        master = other.start_master(self.cluster, self.cluster.path("other"), "--local", 1,
                                    *self.flags())
        finished(master)
        self.assertIn("another run", master.said())
        self.assertEqual(self.listed(), before)

    def test_a_damaged_backup_is_found_and_not_restored(self):
        self.back_up(keep=1)
        largest = max((path for path in self.backups.rglob("*") if path.is_file()),
                      key=lambda path: path.stat().st_size)
        content = bytearray(largest.read_bytes())
        content[len(content) // 2] ^= 1
        largest.write_bytes(content)
        for arguments in (["backup", "verify", self.backups], ["restore", self.backups, self.restored]):
            code, program = self.cluster.run("gleaner", *arguments)
            self.assertEqual(code, BAD_STORE, program.said())
            self.assertIn("damaged", program.said())
        self.assertEqual([p.name for p in self.cluster.folder.glob("restored*")], [])

    def test_a_store_is_only_replaced_when_that_is_asked_for_and_nobody_uses_it(self):
        self.back_up()
        before = self.cluster.digest(self.done)
        code, program = self.cluster.run("gleaner", "restore", self.backups, self.done)
        self.assertEqual(code, 2, program.said())
        self.assertIn("--force", program.said())
        self.assertEqual(self.cluster.digest(self.done), before)
        used = self.cluster.path("used")
        master = self.setup.start_master(self.cluster, used, "--listen", "127.0.0.1:0")
        master.wait_event("listening")
        code, program = self.cluster.run("gleaner", "restore", self.backups, used, "--force")
        self.assertEqual(code, BAD_STORE, program.said())
        self.assertIn("stop it first", program.said())
        self.assertTrue(master.is_running())
        master.signal(signal.SIGTERM)
        self.assertEqual(master.wait_exit(), 0)
        self.cluster.gleaner("restore", self.backups, used, "--force")
        self.assertEqual(self.cluster.digest(used), self.reference["digest"])

    def test_what_is_no_backup_is_refused(self):
        for arguments in (["backup", "list", self.backups], ["restore", self.backups, self.restored]):
            code, program = self.cluster.run("gleaner", *arguments)
            self.assertEqual(code, BAD_STORE, program.said())
            self.assertIn("--backup", program.said())
        self.back_up()
        code, program = self.cluster.run("gleaner", "restore", self.backups, self.restored, "--backup",
                                         99)
        self.assertEqual(code, BAD_STORE, program.said())
        self.assertIn("backup list", program.said())


if __name__ == "__main__":
    sys.exit(unittest.main())
