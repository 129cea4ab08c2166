"""A Slurm site on this machine: munge, one controller and several nodes on loopback, in a folder.

Two partitions share the nodes: `spot`, whose jobs are queued again when a job of `owner` wants their
node. Every node has one processor, so it runs one job. Needs root and Debian's slurm-wlm with munge.
"""

import os
import pathlib
import shutil
import signal
import socket
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "e2e"))

from harness import TIME_FACTOR, free_port  # noqa: E402

DAEMONS = ("munged", "slurmctld", "slurmd")
os.environ["PATH"] += ":/usr/sbin"


def why_not():
    """Why there can be no such site here; None where there can."""
    missing = [name for name in (*DAEMONS, "sbatch") if shutil.which(name) is None]
    if missing:
        return f"{', '.join(missing)} missing (Debian: slurm-wlm, munge)"
    return None if os.geteuid() == 0 else "only root may run Slurm's daemons"


CONFIG = """
ClusterName=test
SlurmctldHost=localhost
SlurmctldPort={controller}
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket,cred_expire=5
CredType=cred/munge
SlurmUser=root
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool-%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd-%n.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd-%n.log
SlurmdParameters=config_overrides
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
SchedulerParameters=bf_interval=1,sched_interval=1,batch_sched_delay=0,sched_min_interval=100000
KillWait=30
ReturnToService=2
MpiDefault=none
{nodes}
PartitionName=spot Nodes=ALL Default=YES MaxTime=60 PriorityTier=1 PreemptMode=REQUEUE
PartitionName=owner Nodes=ALL PriorityTier=10 PreemptMode=OFF
"""


class SlurmSite:
    def __init__(self, folder, nodes):
        self.folder = pathlib.Path(folder)
        self.names = [f"n{number + 1}" for number in range(nodes)]
        (self.folder / "state").mkdir(parents=True)
        lines = "\n".join(
            f"NodeName={name} NodeHostname={socket.gethostname()} NodeAddr=127.0.0.1 Port={free_port()} "
            "CPUs=1 RealMemory=2000" for name in self.names)
        config = self.folder / "slurm.conf"
        config.write_text(CONFIG.format(folder=self.folder, controller=free_port(), nodes=lines))
        self.environment = dict(os.environ, SLURM_CONF=str(config))
        key = self.folder / "munge.key"
        key.write_bytes(os.urandom(1024))
        key.chmod(0o600)
        self._daemons = []
        self._start("munged", "--foreground", "--force", f"--key-file={key}",
                    *(f"--{what}={self.folder}/munge.{what}" for what in ("socket",)),
                    f"--log-file={self.folder}/munge.log", f"--pid-file={self.folder}/munge.pid",
                    f"--seed-file={self.folder}/munge.seed")
        self.wait(lambda: (self.folder / "munge.socket").exists(), "munge answers")
        self._start("slurmctld", "-D", "-c")
        for name in self.names:
            self._start("slurmd", "-D", "-N", name)
        self.wait(lambda: self.ask("sinfo", "-h", "-N", "-p", "owner", "-o", "%T").split()
                  == ["idle"] * nodes, "all nodes are idle")

    def _start(self, *command):
        self._daemons.append(subprocess.Popen(
            command, env=self.environment, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL, start_new_session=True))

    def ask(self, *command):
        """What a command of Slurm prints; nothing when it fails, as while the controller starts."""
        return subprocess.run(command, env=self.environment, capture_output=True, text=True,
                              timeout=60 * TIME_FACTOR, check=False).stdout.strip()

    def wait(self, condition, what, seconds=60):
        deadline = time.monotonic() + seconds * TIME_FACTOR
        while not (value := condition()):
            if time.monotonic() > deadline:
                raise AssertionError(f"not within {seconds} s: {what}\n" + self.ask("squeue") + "\n"
                                     + "\n".join(log.read_text(errors="replace")[-1500:]
                                                 for log in sorted(self.folder.glob("slurm*.log"))))
            time.sleep(0.2)
        return value

    def jobs(self, state, name="gleaner-volunteer"):
        """The ids of the jobs in this state, ARRAY_INDEX, with their nodes."""
        listed = self.ask("squeue", "-h", "-r", "-n", name, "-t", state, "-o", "%i %N").splitlines()
        return {words[0]: words[1] if len(words) > 1 else "" for words in map(str.split, listed)}

    def preempt(self, node, seconds):
        """A job of the owner takes the node for a time."""
        self.ask("sbatch", "-p", "owner", "-w", node, "-n1", "--mem=100M", "-t2", "-J", "owner",
                 "-o", "/dev/null", "--wrap", f"sleep {seconds}")

    def close(self):
        self.ask("scancel", "--state=PENDING", "--user=root")
        self.ask("scancel", "--user=root")
        try:
            self.wait(lambda: not self.ask("squeue", "-h"), "all jobs have ended", 45)
        finally:
            for daemon in reversed(self._daemons):
                daemon.send_signal(signal.SIGTERM)
            for daemon in self._daemons:
                try:
                    daemon.wait(10)
                except subprocess.TimeoutExpired:
                    daemon.kill()
                    daemon.wait()
