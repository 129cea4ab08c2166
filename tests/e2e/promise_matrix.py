"""Runs under faults that must give the reference's model, checkpoint for checkpoint."""

import unittest

from harness import Cluster, EndToEndTest, finished, free_address


class DigestBook:
    """What digest each checkpoint had in whichever run showed it first."""

    def __init__(self):
        self._known = {}

    def note(self, test, checkpoint, digest, who):
        test.assertRegex(digest, r"^[0-9a-f]{64}$")
        first_digest, first_who = self._known.setdefault(checkpoint, (digest, who))
        test.assertEqual(digest, first_digest,
                         f"checkpoint {checkpoint} of '{who}' differs from that of '{first_who}'")

    def __len__(self):
        return len(self._known)


class Matrix(EndToEndTest):
    """The runs, over one data set and configuration. A subclass says which."""

    @classmethod
    def make_setup(cls, cluster):
        raise NotImplementedError

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        if cls is Matrix:
            raise unittest.SkipTest("the base of the matrices")
        cls.shared = Cluster()
        cls.addClassCleanup(cls.shared.close)
        cls.setup = cls.make_setup(cls.shared)
        cls.book = DigestBook()
        cls.reference = cls.setup.run_local(cls.shared, cls.shared.path("reference"))
        cls.rounds = cls.reference["checkpoint"]

    def setUp(self):
        super().setUp()
        self.store = self.cluster.path("store")
        self.volunteers = []

    # ---- Steps of a run ----

    def start_tcp(self, count, *flags, threads=1, simds=("",), silence_ms=60_000, hold=None):
        """A master and `count` volunteers on loopback; returns the master."""
        master = self.setup.start_master(
            self.cluster, self.store, "--listen", free_address(), "--threads", 1,
            "--min-volunteers", count, "--silence-ms", silence_ms, *flags, hold=hold)
        self.address = master.wait_event("listening")["address"]
        for index in range(count):
            self.add_volunteer(threads=threads, simd=simds[index % len(simds)])
        return master

    def add_volunteer(self, threads=1, simd=""):
        self.volunteers.append(self.cluster.volunteer(self.address, threads=threads, simd=simd))
        return self.volunteers[-1]

    def resume(self, *flags, hold=None):
        """The same command again, on the port that the volunteers know."""
        return self.setup.start_master(self.cluster, self.store, "--listen", self.address,
                                       "--threads", 1, *flags, hold=hold)

    def hold_at(self, master, checkpoint, then=None):
        """Pauses every volunteer at the checkpoint, for which the master was started with `hold`: the run stands
        still in its middle. `then` is the next checkpoint at which it is to be held."""
        master.wait_checkpoint(checkpoint)
        for volunteer in self.volunteers:
            volunteer.pause()
        master.let_go(then)
        self.assertTrue(master.is_running(), master.said()[-2000:])
        self.assertEqual(master.events("finished"), [], "the run was over before it could be held")

    def note_store(self, who):
        """Enters the store's last checkpoint in the book; the run must be in its middle."""
        # A master at work may add a checkpoint between the two readings; then they are made again.
        checkpoint, after = None, -1
        while checkpoint != after:
            checkpoint = self.last_checkpoint()
            digest = self.cluster.digest(self.store)
            after = self.last_checkpoint()
        self.assertLess(checkpoint, self.rounds)
        self.book.note(self, checkpoint, digest, who)

    def last_checkpoint(self):
        records = self.cluster.history(self.store)
        self.assertTrue(records, "the store has no checkpoint yet")
        return records[-1]["checkpoint"]

    def finish(self, master, volunteers_exit=True):
        """Waits for the end; the model must be the reference's, and so must its quality be."""
        event = finished(master)
        self.assertEqual(event["digest"], self.reference["digest"])
        self.assertEqual(self.cluster.digest(self.store), self.reference["digest"])
        for key in ("p_at_1", "p_at_3", "p_at_5", "psp_at_1", "psp_at_3", "psp_at_5", "epochs",
                    "checkpoint", "evaluated"):
            self.assertEqual(event[key], self.reference[key], key)
        if volunteers_exit:
            for volunteer in self.volunteers:
                self.assertEqual(volunteer.wait_exit(), 0, volunteer.said()[-2000:])

    def go_on(self):
        for volunteer in self.volunteers:
            volunteer.go_on()
