"""A store whose writer is killed with SIGKILL, again and again: kill_test.py STORAGE_WRITER.

Each life of the writer is killed after a number of checkpoints and a few more instructions, which
lands anywhere: while staging, folding, opening. The store must then hold a checkpoint of the calm run,
never an older one than was reported."""

import os
import random
import signal
import subprocess
import sys
import tempfile
import unittest

WRITER = sys.argv[1]
LAST = 8
SEED = int(os.environ.get("GLEANER_SEED", "1"))


def calm(folder, bulk):
    done = subprocess.run([WRITER, folder, str(LAST), bulk], capture_output=True, text=True,
                          check=True, timeout=120)
    return dict(line.split() for line in done.stdout.splitlines())


class Killed(unittest.TestCase):
    def check_bulk(self, bulk):
        chance = random.Random(SEED)
        with tempfile.TemporaryDirectory() as folder:
            expected = calm(os.path.join(folder, "calm"), bulk)
            self.assertEqual(len(expected), LAST + 1)
            store = os.path.join(folder, "store")
            reported, lives, killed = 0, 0, 0
            while reported < LAST:
                lives += 1
                last_words = chance.randrange(2)
                self.assertLess(lives, 200, f"GLEANER_SEED={SEED}")
                with subprocess.Popen([WRITER, store, str(LAST), bulk, "step"], stdin=subprocess.PIPE,
                                      stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as writer:
                    # It makes the next checkpoint at each line sent to it. Spinning for a random while
                    # puts the kill in the middle of something.
                    for number, line in enumerate(writer.stdout):
                        checkpoint, digest = line.split()
                        self.assertEqual(digest, expected[checkpoint], f"GLEANER_SEED={SEED}")
                        self.assertGreaterEqual(int(checkpoint), reported)
                        reported = int(checkpoint)
                        if reported == LAST:
                            break
                        writer.stdin.write("\n")
                        writer.stdin.flush()
                        if number == last_words:
                            for _ in range(chance.randrange(100000)):
                                pass
                            writer.send_signal(signal.SIGKILL)
                            killed += 1
                            break
                    rest = writer.stdout.read()
                    for line in rest.splitlines():
                        checkpoint, digest = line.split()
                        self.assertEqual(digest, expected[checkpoint])
                        reported = int(checkpoint)
                    status = writer.wait(timeout=60)
                    self.assertIn(status, (0, -signal.SIGKILL), writer.stderr.read())
            self.assertGreater(killed, 2)

    def test_through_the_log(self):
        self.check_bulk(str(1 << 30))

    def test_past_the_log(self):
        self.check_bulk("0")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
