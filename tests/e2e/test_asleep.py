"""Machines that sleep: a master until one of its volunteers has given up, a volunteer until the end."""

import signal
import sys
import unittest

from harness import StorageTest, finished
from test_lending import Lending, eventually


class Asleep(StorageTest):
    def test_a_master_wakes_beside_volunteers_that_gave_up(self):
        master = self.setup.start_master(self.cluster, self.store, "--listen", "127.0.0.1:0", "--threads", 1,
                                         "--heartbeat-ms", 100, "--silence-ms", 1000, "--min-volunteers", 2, hold=1)
        address = master.wait_event("listening")["address"]
        impatient = self.cluster.volunteer(address, "--give-up-s", 2)
        patient = self.cluster.volunteer(address)
        master.wait_checkpoint(1)
        master.pause()
        master.let_go()
        self.assertNotEqual(impatient.wait_exit(), 0)
        patient.wait_said("the master has been silent")
        master.go_on()
        self.assertEqual(finished(master)["digest"], self.reference["digest"])
        self.assertEqual(patient.wait_exit(), 0, patient.said())


class AsleepAtTheEnd(Lending):
    def test_one_that_was_lost_when_the_run_ended_is_told(self):
        self.give_master("--farewell-s", 600, "--heartbeat-ms", 300, "--silence-ms", 1500)
        master, (lost, _), (socket, _) = self.start(volunteers=2, once=False, hold=1)
        master.wait_checkpoint(1)
        lost.pause()
        master.let_go()
        master.wait_event("log", lambda event: "for 1 lost volunteer" in event["message"])
        lost.signal(signal.SIGCONT)
        eventually(lambda: self.status(socket)["sentence"].startswith("finished: thank you, "), "thanks")
        self.assert_same_model(master)


if __name__ == "__main__":
    sys.exit(unittest.main())
