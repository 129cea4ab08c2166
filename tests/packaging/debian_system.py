"""A Debian 12 system in a folder: made by mmdebstrap, booted by systemd-nspawn, with this machine's
network. Needs root, and an apt whose sources hold Debian 12.
"""

import os
import pathlib
import shutil
import signal
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "e2e"))

from harness import ROOT, TIME_FACTOR  # noqa: E402

SUITE = "bookworm"


def sources():
    """The lines of sources.list from which this machine's apt takes packages of Debian 12."""
    if shutil.which("apt-get") is None:
        return []
    listed = subprocess.run(
        ["apt-get", "indextargets", "--format", "$(REPO_URI) $(RELEASE) $(COMPONENT)",
         "Created-By: Packages", "Origin: Debian"], capture_output=True, text=True, check=False).stdout
    places = [line.split() for line in listed.splitlines()]
    return sorted({f"deb {uri} {suite} {component}" for uri, suite, component in places
                   if suite.split("-")[0] == SUITE and component == "main"})


def why_not():
    """Why there can be no such system here; None where there can."""
    missing = [name for name in ("mmdebstrap", "systemd-nspawn", "nsenter") if shutil.which(name) is None]
    if missing:
        return f"{', '.join(missing)} missing (Debian: mmdebstrap, systemd-container, util-linux)"
    if os.geteuid() != 0:
        return "only root may boot a system in a folder"
    return None if sources() else f"no source of this machine's apt holds Debian's {SUITE} (apt-get update?)"


def make_root(folder, variant, *packages):
    """A root file system of one of mmdebstrap's variants with these packages; apt, where it is among
    them, works in it."""
    subprocess.run(
        ["mmdebstrap", "--quiet", f"--variant={variant}", f"--include={','.join(packages)}",
         "--skip=cleanup/apt/lists", SUITE, folder, *sources()], check=True, timeout=600 * TIME_FACTOR)


def copy_checkout(folder):
    """The files that git keeps, as they are here, in a folder that is made."""
    folder.mkdir(parents=True)
    files = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, stdout=subprocess.PIPE, check=True).stdout
    packed = subprocess.run(["tar", "--null", "--files-from=-", "--create"], cwd=ROOT, input=files,
                            stdout=subprocess.PIPE, check=True).stdout
    subprocess.run(["tar", "--extract"], cwd=folder, input=packed, check=True)
    return folder


class DebianSystem:
    """A booted copy of a system that make_root made. The original stays as it is."""

    def __init__(self, original, folder):
        self.folder = pathlib.Path(folder)
        subprocess.run(["cp", "--archive", "--reflink=auto", original, folder], check=True)
        self._log = open(f"{folder}.log", "wb")
        # Nothing outside learns of the system, and it needs no service of this machine.
        self._nspawn = subprocess.Popen(
            ["systemd-nspawn", "--quiet", "--register=no", "--keep-unit", "--console=pipe", "--boot",
             f"--directory={folder}"], stdin=subprocess.DEVNULL, stdout=self._log, stderr=subprocess.STDOUT,
            start_new_session=True)
        self._init = None
        try:
            self._init = int(self.wait(self._first_child, "the system starts"))
            self.wait(lambda: self.run("systemctl", "is-system-running", may_fail=True).strip()
                      in ("running", "degraded"), "the system has booted")
        except BaseException:
            self.close()
            raise

    def _first_child(self):
        """The system's init; while it starts, nspawn has a child that is not yet one."""
        pid = self._nspawn.pid
        children = pathlib.Path(f"/proc/{pid}/task/{pid}/children")
        if not children.exists():
            raise AssertionError("systemd-nspawn ended:\n" + self.log())
        found = children.read_text(encoding="utf-8").split()
        name = pathlib.Path(f"/proc/{found[0]}/comm") if found else None
        return found[0] if name and name.exists() and name.read_text(encoding="utf-8").strip() == "systemd" else None

    def log(self):
        self._log.flush()
        return pathlib.Path(self._log.name).read_text(encoding="utf-8", errors="replace")[-4000:]

    def path(self, path):
        """The place of a file of the system, seen from outside."""
        return self.folder / str(path).lstrip("/")

    def run(self, *command, may_fail=False, text=None, seconds=120):
        """What a command says that runs as root in the system."""
        done = subprocess.run(
            ["nsenter", f"--target={self._init}", "--mount", "--uts", "--ipc", "--pid", "--cgroup", "--root", "--wd=/",
             "env", "-i", "PATH=/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL=C.UTF-8",
             "DEBIAN_FRONTEND=noninteractive", *map(str, command)],
            input=text or "", stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace",
            timeout=seconds * TIME_FACTOR, check=False)
        if done.returncode != 0 and not may_fail:
            raise AssertionError(f"{' '.join(map(str, command))}\nexit code {done.returncode}:\n{done.stdout[-4000:]}")
        return done.stdout

    def show(self, unit, what):
        """A property of a unit."""
        return self.run("systemctl", "show", "--value", f"--property={what}", unit).strip()

    def journal(self, unit):
        return self.run("journalctl", "--no-pager", "--output=cat", f"--unit={unit}", may_fail=True)

    def wait(self, condition, what, seconds=60):
        deadline = time.monotonic() + seconds * TIME_FACTOR
        while not (value := condition()):
            if time.monotonic() > deadline:
                said = self.journal("gleaner-*")[-4000:] if self._init else ""
                raise AssertionError(f"not within {seconds} s: {what}\n{self.log()}\n{said}")
            time.sleep(0.2)
        return value

    def close(self):
        if self._init and self._nspawn.poll() is None:
            os.kill(self._init, signal.SIGRTMIN + 4)  # systemd powers off
        try:
            self._nspawn.wait(30 * TIME_FACTOR)
        except subprocess.TimeoutExpired:
            self._nspawn.kill()
            self._nspawn.wait()
        self._log.close()
        shutil.rmtree(self.folder, ignore_errors=True)
