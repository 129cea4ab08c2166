"""The input layer at volunteers: it gives the model of the master's own input layer, while volunteers come and
go; examples are fetched once and kept."""

import signal
import sys
import unittest

from harness import small_setup
from promise_matrix import Matrix

LENT = ("--input-layer", "volunteers")


class LentInputLayer(Matrix):
    """The reference holds the input layer in its master."""

    @classmethod
    def make_setup(cls, cluster):
        return small_setup(cluster, flags=["--input-shards", 4])

    def shards_of_the_input_layer(self):
        report = self.cluster.gleaner("status", self.store)
        return [line for line in report.splitlines() if " input " in line]

    def test_one_volunteer_holds_all(self):
        master = self.start_tcp(1, *LENT)
        self.finish(master)

    def test_it_is_shared_among_three_and_status_shows_who_has_it(self):
        master = self.start_tcp(3, *LENT, threads=2, hold=2)
        self.hold_at(master, 2)
        shards = self.shards_of_the_input_layer()
        self.assertEqual(len(shards), 4, shards)
        # On a busy machine a volunteer that seems dead at the start gets no shard.
        self.assertLessEqual({line.split()[3] for line in shards}, {"v1", "v2", "v3"}, shards)
        self.go_on()
        self.finish(master)

    def test_inside_the_master(self):
        self.finish(self.setup.start_master(self.cluster, self.store, "--local", 2, *LENT))

    def test_holders_are_killed_and_leave_and_others_come(self):
        master = self.start_tcp(2, *LENT, hold=3)
        self.hold_at(master, 3, then=9)
        self.volunteers.pop(0).kill()
        self.add_volunteer()
        self.go_on()
        self.hold_at(master, 9)
        self.add_volunteer()
        self.go_on()
        leaver = self.volunteers.pop(0)
        leaver.signal(signal.SIGTERM)
        self.assertEqual(leaver.wait_exit(), 0, leaver.said()[-2000:])
        self.finish(master)

    def test_the_master_is_killed_and_holds_it_itself_and_lends_it_again(self):
        master = self.start_tcp(2, *LENT, hold=4)
        self.hold_at(master, 4)
        master.kill()
        self.note_store("lent, and its master killed")
        self.go_on()
        master = self.resume(hold=10)
        self.hold_at(master, 10)
        master.kill()
        self.note_store("held by the master, and killed")
        self.go_on()
        self.finish(self.resume(*LENT))

    def test_points_are_fetched_once(self):
        cache = self.cluster.path("cache")
        for run in ("first", "second"):
            self.store = self.cluster.path(run)
            master = self.start_tcp(0, *LENT, "--min-volunteers", 1)
            volunteer = self.cluster.volunteer(self.address, "--cache", cache)
            self.finish(master)
            self.assertEqual(volunteer.wait_exit(), 0, volunteer.said()[-2000:])
            files = sorted(cache.glob("*.points"))
            self.assertEqual(len(files), 2)
            sizes = [file.stat().st_size for file in files]
            if run == "first":
                kept = sizes
                # Eight bytes a feature, which every point has some of.
                self.assertGreater(sum(kept), 6500 * 8)
        self.assertEqual(sizes, kept)
        # Damage is noticed, and only what it took is fetched again.
        content = bytearray(files[1].read_bytes())
        content[len(content) // 2] ^= 1
        files[1].write_bytes(content)
        self.store = self.cluster.path("damaged")
        master = self.start_tcp(0, *LENT, "--min-volunteers", 1)
        self.cluster.volunteer(self.address, "--cache", cache)
        self.finish(master)

    def test_without_room_for_points(self):
        master = self.start_tcp(0, *LENT, "--min-volunteers", 1)
        self.cluster.volunteer(self.address, "--cache", self.cluster.path("cache"), "--cache-size", "0")
        self.finish(master)

    def test_over_thin_links(self):
        master = self.start_tcp(0, *LENT, "--min-volunteers", 2)
        for _ in range(2):
            self.cluster.volunteer(self.address, "--limit-up", 20, "--limit-down", 20)
        self.finish(master)


# The base has no tests of its own to be run from here.
def load_tests(loader, _tests, _pattern):
    return loader.loadTestsFromTestCase(LentInputLayer)


if __name__ == "__main__":
    sys.exit(unittest.main())
