"""Machines that sleep: a master that stands still until one of its volunteers has given up."""

import sys
import unittest

from harness import StorageTest, finished


class Asleep(StorageTest):
    def test_a_master_wakes_beside_volunteers_that_gave_up(self):
        master = self.setup.start_master(self.cluster, self.store, "--listen", "127.0.0.1:0", "--threads", 1,
                                         "--heartbeat-ms", 100, "--silence-ms", 1000, "--min-volunteers", 2)
        address = master.wait_event("listening")["address"]
        impatient = self.cluster.volunteer(address, "--give-up-s", 2)
        patient = self.cluster.volunteer(address)
        master.wait_checkpoint(1)
        master.pause()
        self.assertNotEqual(impatient.wait_exit(), 0)
        patient.wait_said("the master has been silent")
        master.go_on()
        self.assertEqual(finished(master)["digest"], self.reference["digest"])
        self.assertEqual(patient.wait_exit(), 0, patient.said())


if __name__ == "__main__":
    sys.exit(unittest.main())
