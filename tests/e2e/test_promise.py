"""The promise: the trained model is a function of data, configuration and seed alone.

Every run here differs from the reference in its volunteers, their threads and their deaths. Every checkpoint
of every run must have the reference's digest.
"""

import itertools
import pathlib
import re
import resource
import signal
import sys
import time
import unittest

from harness import DATA, IS_LONG, TIME_FACTOR, Setup, faults, finished, simd_levels, small_setup
from promise_matrix import Matrix


class Promise(Matrix):
    """Generated data, all of the matrix."""

    @classmethod
    def make_setup(cls, cluster):
        return small_setup(cluster)

    def test_the_reference_learnt_something(self):
        self.assertGreater(self.rounds, 20)
        self.assertGreater(self.reference["p_at_1"], 0.1)
        self.assertEqual(self.shared.digest(self.shared.path("reference")), self.reference["digest"])

    def test_another_seed_gives_another_model(self):
        event = self.setup.with_flag("--seed", 6).run_local(self.cluster, self.store)
        self.assertNotEqual(event["digest"], self.reference["digest"])

    def test_inside_one_process(self):
        levels = simd_levels()
        if IS_LONG:
            runs = list(itertools.product((1, 2, 3, 7), (1, 2), levels))
        else:
            runs = [(1, 2, ""), (2, 1, "scalar"), (3, 1, ""), (7, 1, "")]
            runs += [(1, 1, level) for level in levels]
        for local, threads, simd in runs:
            with self.subTest(local=local, threads=threads, simd=simd):
                store = self.cluster.path(f"store-{local}-{threads}-{simd}")
                event = self.setup.run_local(self.cluster, store, local, threads, simd)
                self.assertEqual(event["digest"], self.reference["digest"])
                self.assertEqual(event["p_at_5"], self.reference["p_at_5"])

    def test_over_tcp(self):
        levels = simd_levels()
        if IS_LONG:
            runs = list(itertools.product((1, 2, 3, 7), (1, 2), [[level] for level in levels]))
        else:
            runs = [(1, 1, [""]), (2, 2, [""]), (3, 1, levels), (7, 1, [""])]
        for count, threads, simds in runs:
            with self.subTest(volunteers=count, threads=threads, simds=simds):
                self.store = self.cluster.path(f"store-{count}-{threads}-{'-'.join(simds)}")
                self.volunteers = []
                self.finish(self.start_tcp(count, threads=threads, simds=simds))

    def test_the_master_is_killed_and_resumed(self):
        master = self.start_tcp(3, hold=2)
        for checkpoint, then in ((2, 9), (9, None)):
            self.hold_at(master, checkpoint)
            master.kill()
            self.note_store("the master was killed")
            self.go_on()
            master = self.resume(hold=then)
            self.assertGreaterEqual(master.wait_event("started")["checkpoint"], checkpoint)
            self.assertTrue(master.wait_event("started")["resumed"])
        self.finish(master)

    def test_volunteers_that_outlive_the_master_download_nothing_again(self):
        still = ("--balance-hysteresis", 10)  # a move is a download
        master = self.start_tcp(3, *still, hold=3)
        for volunteer in self.volunteers:
            volunteer.wait_event("status", lambda event: event["activity"] == "training")
        self.hold_at(master, 3)
        master.kill()
        self.go_on()
        # Long enough for every volunteer to come back, however busy the machine.
        master = self.resume("--rejoin-grace-ms", 60_000, *still)
        kept = 0
        for index, volunteer in enumerate(self.volunteers):
            back = master.wait_event("log", lambda event: f"v{index + 1} is back" in event["message"])
            found = re.search(r"with (\d+) shards? as of checkpoint (\d+): nothing to download",
                              back["message"])
            self.assertGreaterEqual(int(found.group(2)), 3)
            kept += int(found.group(1))
            said = f"stepped back to checkpoint {found.group(2)} with {found.group(1)} shard"
            volunteer.wait_event("status", lambda event: said in (event["reason"] or ""))
        self.assertEqual(kept, 11)  # all of them
        self.finish(master)
        for volunteer in self.volunteers:
            loading = [event["reason"] for event in volunteer.events("status")
                       if event["activity"] == "loading"]
            self.assertIn("nothing to download", loading[-1], loading)
            # Counted by the volunteer itself: of the first shards it got, and not a byte more.
            counts = [event["downloaded_bytes"] for event in volunteer.events("status")]
            back = next(i for i, event in enumerate(volunteer.events("status"))
                        if "stepped back" in (event["reason"] or ""))
            self.assertEqual(counts[back:], [counts[back - 1]] * len(counts[back:]), counts)

    def test_a_master_with_local_volunteers_is_killed_and_resumed(self):
        master = self.setup.start_master(self.cluster, self.store, "--local", 2, "--threads", 1, hold=3)
        master.wait_checkpoint(3)
        master.kill()
        self.note_store("a master with local volunteers was killed")
        # Who trains the rest may differ: three volunteers over TCP instead of two inside.
        self.finish(self.start_tcp(3))

    def test_a_volunteer_is_killed(self):
        master = self.start_tcp(3, hold=3)
        self.hold_at(master, 3)
        self.note_store("a volunteer was about to be killed")
        killed = self.volunteers.pop()
        killed.kill()
        self.go_on()
        master.wait_event("volunteer_left", lambda event: not event["polite"])
        self.finish(master)

    def test_all_volunteers_are_killed_and_others_come(self):
        master = self.start_tcp(2, hold=4)
        self.hold_at(master, 4)
        for volunteer in self.volunteers:
            volunteer.kill()
        self.volunteers = []
        master.wait_for(lambda: len(master.events("volunteer_left")) == 2, "both have left")
        self.note_store("all volunteers were killed")
        self.add_volunteer(threads=2)
        self.finish(master)

    def test_a_volunteer_falls_silent(self):
        # Frozen for longer than its leases last. Its connection stays open: only silence tells. When
        # it wakes it is refused, knows that it was itself that stood still, and joins again.
        master = self.start_tcp(3, "--heartbeat-ms", 100, silence_ms=1000, hold=3)
        self.hold_at(master, 3)
        silent = self.volunteers[0]
        for volunteer in self.volunteers[1:]:
            volunteer.go_on()
        master.wait_event("volunteer_left", lambda event: event["name"] == "v1")
        silent.go_on()
        silent.wait_said("this volunteer was frozen or suspended for ")
        silent.wait_said("the master has ended its leases (refused: silent for 1 s: its leases have "
                         "ended, connect again to take part): it starts afresh, under leases of a "
                         "later epoch")
        self.assertNotIn("the master has been silent", silent.said())
        self.finish(master)

    def test_wall_clocks_that_leap_years_decide_nothing(self):
        leaping = faults(GLEANER_FAULT_CLOCK="1")
        master = self.setup.start_master(self.cluster, self.store, "--listen", "127.0.0.1:0",
                                         "--threads", 1, environment=leaping)
        self.address = master.wait_event("listening")["address"]
        self.volunteers = [self.cluster.volunteer(self.address, environment=leaping)
                           for _ in range(2)]
        self.finish(master)
        self.assertEqual(master.events("volunteer_left"), [])
        seen = [record["wall_seconds"] for record in self.cluster.history(self.store)]
        self.assertGreater(max(seen) - min(seen), 365 * 86400)  # the clocks did leap

    @staticmethod
    def settled_size(pid):
        """Bytes of the process's address space, once it has stayed the same for half a second: while
        a volunteer makes ready it holds more."""
        sizes = [0]
        while sizes[-5:] != [sizes[-1]] * 5:
            time.sleep(0.1)
            status = pathlib.Path(f"/proc/{pid}/status").read_text(encoding="utf-8")
            sizes.append(int(re.search(r"VmSize:\s+(\d+) kB", status).group(1)) * 1024)
        return sizes[-1]

    def test_a_volunteer_without_the_memory_it_promised_gives_it_up_in_words(self):
        if TIME_FACTOR > 1:
            self.skipTest("sanitizers end a process that gets no memory")
        setup = self.setup.with_flag("--hidden", 2048).with_flag("--epochs", 1)
        master = setup.start_master(self.cluster, self.store, "--listen", "127.0.0.1:0",
                                    "--threads", 1, "--min-volunteers", 2)
        self.address = master.wait_event("listening")["address"]
        # With one arena and a fixed threshold all that it gets counts, and a shard is the first that is
        # larger than its room; otherwise that depends on what it has freed before.
        starved = self.cluster.volunteer(self.address, environment={
            "MALLOC_ARENA_MAX": "1", "MALLOC_MMAP_THRESHOLD_": "131072"})
        master.wait_event("volunteer_joined")
        room = self.settled_size(starved.pid) + (1 << 20)
        resource.prlimit(starved.pid, resource.RLIMIT_AS, (room, room))
        self.add_volunteer()
        starved.wait_said("this machine has less memory than --memory promises")
        self.assertTrue(starved.is_running())
        finished(master)

    def test_a_volunteer_joins_half_way(self):
        master = self.start_tcp(1, hold=3)
        self.hold_at(master, 3)
        joining = self.add_volunteer()
        master.wait_event("volunteer_joined", lambda event: event["volunteers"] == 2)
        self.go_on()
        joining.wait_event("status", lambda event: event["activity"] == "training")
        self.finish(master)

    def test_a_volunteer_leaves_politely(self):
        master = self.start_tcp(2, hold=3)
        self.hold_at(master, 3)
        leaving = self.volunteers.pop()
        leaving.signal(signal.SIGTERM)
        leaving.go_on()
        self.go_on()
        left = master.wait_event("volunteer_left")
        self.assertTrue(left["polite"], left)
        self.assertEqual(leaving.wait_exit(), 0, leaving.said())
        self.finish(master)

    def test_nobody_comes_so_the_master_trains_itself(self):
        master = self.setup.start_master(self.cluster, self.store, "--listen", "127.0.0.1:0",
                                         "--fallback-local", 1, "--silence-ms", 60_000)
        master.wait_event("volunteer_joined", lambda event: event["name"] == "local-1")
        self.assertIn("no volunteer has been here for 1 s", master.said())
        # Somebody comes and stays: the master's own hands over. While that one is paused, the run
        # stands still, so that there is something left to hand over.
        self.address = master.wait_event("listening")["address"]
        volunteer = self.add_volunteer()
        master.wait_event("volunteer_joined", lambda event: event["volunteers"] == 2)
        volunteer.pause()
        left = master.wait_event("volunteer_left", lambda event: event["name"] == "local-1")
        self.assertTrue(left["polite"], left)
        volunteer.go_on()
        self.finish(master)

    def test_the_master_is_stopped_and_resumed(self):
        for number, name in [(signal.SIGINT, "SIGINT"), (signal.SIGTERM, "SIGTERM")]:
            with self.subTest(signal=name):
                self.store = self.cluster.path("store-" + name)
                self.volunteers = []
                master = self.start_tcp(2, hold=3)
                master.wait_checkpoint(3)
                master.signal(number)
                self.assertEqual(master.wait_exit(), 0, master.said()[-2000:])
                self.assertEqual(master.events()[-1]["event"], "stopped")
                self.note_store("the master was stopped with " + name)
                self.finish(self.resume())

    def test_a_stop_that_cannot_finish_the_round_gives_it_up(self):
        master = self.start_tcp(2, "--stop-grace-s", 0, hold=3)
        self.hold_at(master, 3)
        master.signal(signal.SIGINT)
        self.assertEqual(master.wait_exit(), 0, master.said()[-2000:])
        stopped = master.events()[-1]
        self.assertEqual((stopped["event"], stopped["round_finished"]), ("stopped", False))
        self.note_store("the master gave a round up")
        self.go_on()
        self.finish(self.resume())

    def test_a_store_is_read_while_the_master_runs(self):
        master = self.start_tcp(2, hold=1)
        for checkpoint, then in ((1, 5), (5, 11), (11, None)):
            self.hold_at(master, checkpoint, then)
            self.note_store("the master was running")
            self.go_on()
        self.finish(master)

    def test_many_deaths(self):
        """Deaths of everybody in turn, at checkpoints spread over the run."""
        checkpoints = [*range(1, self.rounds - 2, 2 if IS_LONG else 5), None]
        master = self.start_tcp(3, hold=checkpoints[0])
        for turn, (checkpoint, then) in enumerate(zip(checkpoints, checkpoints[1:])):
            self.hold_at(master, checkpoint, then)
            self.note_store(f"turn {turn}")
            victim = self.volunteers.pop(0)
            if turn % 2 == 0:
                victim.kill()
            else:
                master.kill()
                victim.kill()
            self.go_on()
            if turn % 2 == 1:
                master = self.resume(hold=then)
            self.add_volunteer(threads=1 + turn % 2, simd=simd_levels()[turn % len(simd_levels())])
        self.finish(master)


class PromiseOnDelicious(Matrix):
    """Real data: 12,920 web pages, 983 tags; one epoch, with the recipe that the data get."""

    @classmethod
    def make_setup(cls, cluster):
        train, test = (DATA / "delicious" / f"{part}.txt.zst" for part in ("train", "test"))
        if not train.is_file() or not test.is_file():
            raise unittest.SkipTest(f"{train.parent} is not there; set GLEANER_DATA to the folder "
                                    "that holds it")
        # Sampled, although 983 labels would be trained whole: scalar arithmetic is slow.
        return Setup(train, test, ["--epochs", 1, "--seed", 1, "--round-batches", 16,
                                   "--sampling", "lsh", "--hash-bits", 3, "--tables", 20,
                                   "--active-cap", 100,
                                   "--cache-dir", cluster.path("cache")])

    def test_inside_one_process(self):
        for local, threads, simd in [(2, 1, "scalar"), (3, 2, "")]:
            with self.subTest(local=local, threads=threads, simd=simd):
                store = self.cluster.path(f"store-{local}-{threads}-{simd}")
                event = self.setup.run_local(self.cluster, store, local, threads, simd)
                self.assertEqual(event["digest"], self.reference["digest"])

    def test_over_tcp_with_deaths(self):
        master = self.start_tcp(3, hold=1)
        self.hold_at(master, 1, then=3)
        self.note_store("a volunteer was about to be killed")
        self.volunteers.pop().kill()
        self.go_on()
        self.hold_at(master, 3)
        master.kill()
        self.note_store("the master was killed")
        self.go_on()
        master = self.resume()
        self.add_volunteer(threads=2)
        self.finish(master)


if __name__ == "__main__":
    sys.exit(unittest.main())
