"""Volunteers that are started, asked and ended through a real sshd on loopback."""

import getpass
import os
import shutil
import subprocess
import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "e2e"))

from harness import BIN, EndToEndTest, finished, free_port, small_setup  # noqa: E402

SSHD = shutil.which("sshd", path=os.environ["PATH"] + ":/usr/sbin")


@unittest.skipUnless(SSHD and shutil.which("ssh-keygen"), "sshd is missing (Debian: openssh-server)")
@unittest.skipUnless(os.geteuid() == 0, "only root may run a sshd that admits")
class OverSsh(EndToEndTest):
    def setUp(self):
        super().setUp()
        self.folder = self.cluster.path("ssh")
        self.folder.mkdir()
        self.port = free_port()
        for name in ("host", "user"):
            subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", self.folder / name], check=True)
        shutil.copy(self.folder / "user.pub", self.folder / "authorized_keys")
        os.makedirs("/run/sshd", exist_ok=True)
        self.home = self.folder / "home"
        self.home.mkdir()
        # The remote side works in a folder of the test rather than in this user's home.
        options = {"HostKey": self.folder / "host", "AuthorizedKeysFile": self.folder / "authorized_keys",
                   "StrictModes": "no", "PidFile": "none", "UsePAM": "no", "ListenAddress": f"127.0.0.1:{self.port}",
                   "PermitRootLogin": "prohibit-password",
                   "ForceCommand": f'cd {self.home} && bash -c "$SSH_ORIGINAL_COMMAND"'}
        self.sshd = subprocess.Popen(
            [SSHD, "-D", "-f", "/dev/null", *(f"-o{name}={value}" for name, value in options.items())],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.addCleanup(self.sshd.wait)
        self.addCleanup(self.sshd.terminate)
        tools = self.folder / "bin"
        tools.mkdir()
        ssh = tools / "ssh"
        ssh.write_text(f'#!/bin/bash\nexec {shutil.which("ssh")} -p {self.port} -i {self.folder}/user '
                       f'-o UserKnownHostsFile={self.folder}/known -o StrictHostKeyChecking=accept-new '
                       f'-l {getpass.getuser()} "$@"\n')
        ssh.chmod(0o755)
        self.environment = {**os.environ, "PATH": f"{tools}:{os.environ['PATH']}"}
        # As in every test: a volunteer that gives way to no other test, on any machine.
        self.program = self.folder / "volunteer"
        self.program.write_text(f'#!/bin/bash\ncase "$1" in status|finish) exec {BIN}/gleaner-volunteer "$@" ;; esac\n'
                                f'exec {BIN}/gleaner-volunteer "$@" --when always --nice 10 --battery '
                                '--free-memory 0 --cpu-pressure-max 100 --memory-pressure-max 100 --temperature-max 200\n')
        self.program.chmod(0o755)

    def test_start_status_and_stop(self):
        setup = small_setup(self.cluster).with_flag("--epochs", 30)
        store = self.cluster.path("store")
        master = setup.start_master(self.cluster, store, "--listen", "127.0.0.1:0")
        line = master.wait_event("listening")["join"]
        out = self.cluster.path("lab")
        done = subprocess.run(
            [BIN / "gleaner", "launch", "ssh", line, "--hosts", "localhost,127.0.0.1", "--cores", "1", "--memory", "512M",
             "--program", self.program, "--output", out, "--submit"], env=self.environment, capture_output=True,
            text=True, timeout=120, check=False)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.addCleanup(lambda: self.script("stop"))
        master.wait_for(lambda: len(master.events("volunteer_joined")) == 2, "both joined")
        kept = self.home / ".gleaner/volunteer-1/line"
        self.assertEqual((kept.stat().st_mode & 0o777, kept.read_text().strip()), (0o600, line))
        words = subprocess.run(["ps", "-ww", "-eo", "args"], capture_output=True, text=True, check=True).stdout
        self.assertIn("--line-file line", words)
        self.assertNotIn(line.rsplit(".", 1)[1], words)
        told = self.script("status")
        self.assertEqual(told.returncode, 0, told.stderr)
        self.assertIn("it may always work", told.stdout)
        self.assertEqual(self.script("stop").returncode, 0)
        master.wait_for(lambda: len(master.events("volunteer_left")) == 2, "both left")
        self.assertTrue(all(event["polite"] for event in master.events("volunteer_left")))
        self.assertEqual(self.script("start").returncode, 0)
        finished(master)
        setup.run_local(self.cluster, self.cluster.path("calm"))
        self.assertEqual(self.cluster.digest(store), self.cluster.digest(self.cluster.path("calm")))

    def script(self, verb):
        return subprocess.run(["bash", self.cluster.path("lab") / "volunteers.sh", verb], env=self.environment,
                              capture_output=True, text=True, timeout=120, check=False)


if __name__ == "__main__":
    unittest.main()
