"""The Debian packages from a user's view: two commands to the first trained examples, an upgrade in the middle of
a run, removing, purging. The model is a calm run's."""

import json
import pathlib
import re
import shutil
import subprocess
import time
import unittest

from debian_system import DebianSystem, make_root, why_not

from harness import IS_LONG, ROOT, TIME_FACTOR, Cluster, EndToEndTest, free_port, small_setup

UNITS = ROOT / "tools/packaging/debian"
MASTER, VOLUNTEER = "gleaner-master.service", "gleaner-volunteer.service"
NAMES = ("gleaner-master", "gleaner-volunteer", "gleaner", "python3-gleaner", "gleaner-doc")
STORE = "/var/lib/gleaner-master/run"
SKIP = why_not() if IS_LONG else "takes minutes: only with GLEANER_LONG"
# The machine under test is busy with tests, and its owner may sit at it.
ALWAYS = "[Service]\nEnvironment=GLEANER_MACHINE_ROOT=/nowhere\n"


def with_version(package, version, folder):
    """The package with another version."""
    unpacked = pathlib.Path(folder) / "unpacked"
    subprocess.run(["dpkg-deb", "--raw-extract", package, unpacked], check=True)
    control = unpacked / "DEBIAN/control"
    control.write_text(re.sub(r"(?m)^Version: .*", f"Version: {version}", control.read_text()))
    target = pathlib.Path(folder) / f"{package.name.split('_')[0]}_{version}.deb"
    subprocess.run(["dpkg-deb", "--root-owner-group", "--build", unpacked, target], check=True, capture_output=True)
    shutil.rmtree(unpacked)
    return target


@unittest.skipIf(SKIP, SKIP)
class Debian(EndToEndTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.shared = Cluster()
        cls.addClassCleanup(cls.shared.close)
        cls.folder = cls.shared.path("packages")
        subprocess.run([ROOT / "tools/packaging/build-packages", cls.folder], check=True, capture_output=True)
        cls.packages = {name: next(cls.folder.glob(f"{name}_*.deb")) for name in NAMES}
        cls.original = cls.shared.path("original")
        make_root(cls.original, "minbase", "systemd", "systemd-sysv", "dbus")
        # Long enough for an upgrade in its middle.
        cls.setup = small_setup(cls.shared).with_flag("--epochs", 40)

    def boot(self, name):
        system = DebianSystem(self.original, self.cluster.path(name))
        self.addCleanup(system.close)
        folder = system.path("/srv/gleaner")
        folder.mkdir(mode=0o755)
        for file in (*self.packages.values(), self.setup.train, self.setup.test):
            shutil.copy(file, folder)
        return system

    def install(self, system, *names):
        return system.run("apt-get", "install", "--yes", "--no-install-recommends",
                          *(f"/srv/gleaner/{self.packages[name].name}" for name in names))

    def start_master(self, system):
        """Installs the master, configures it as its file says, and returns the line to join by."""
        self.install(system, "gleaner-master", "gleaner")
        config = system.path("/etc/gleaner/gleaner-master.toml")
        config.write_text(system.run(
            "gleaner-master", "--config", "/etc/gleaner/gleaner-master.toml", "--print-config",
            "--train", "/srv/gleaner/train.txt", "--test", "/srv/gleaner/test.txt", "--listen",
            f"127.0.0.1:{free_port()}", "--http", "off", "--log-format", "json", *self.setup.flags))
        system.run("systemctl", "enable", "--now", MASTER)
        return system.wait(lambda: self.last(system, "listening"), "the master listens")["join"]

    def last(self, system, kind):
        """The last event of this kind that the master printed."""
        lines = [line for line in system.journal(MASTER).splitlines() if line.startswith("{")]
        return next((event for event in map(json.loads, reversed(lines)) if event["event"] == kind), None)

    def drop_in(self, system):
        folder = system.path(f"/etc/systemd/system/{VOLUNTEER}.d")
        folder.mkdir(parents=True)
        (folder / "test.conf").write_text(ALWAYS)

    def examples(self, system):
        """How many examples the volunteer has trained, as its owner sees it; None before it answers."""
        status = system.run("gleaner-volunteer", "status", "--json", may_fail=True)
        return json.loads(status)["today"]["examples"] if status.startswith("{") else None

    def traces(self, system):
        """Every file whose name says whose it is, apart from what the test itself put there."""
        found = system.run("find", "/", "-xdev", "-name", "*gleaner*", "-not", "-path", "/srv/*")
        return sorted(found.splitlines())

    def upgrade(self, system, name):
        """To a later version, while the service runs: it starts again, and keeps its configuration."""
        unit, config = f"{name}.service", system.path(f"/etc/gleaner/{name}.toml")
        before = system.show(unit, "MainPID"), config.read_text()
        package = with_version(self.packages[name], "99", system.path("/srv/gleaner"))
        system.run("apt-get", "install", "--yes", "--no-install-recommends", f"/srv/gleaner/{package.name}")
        after = system.show(unit, "MainPID"), config.read_text()
        self.assertNotIn(after[0], (before[0], "0"))
        self.assertEqual(after[1], before[1])

    def remove_and_purge(self, system, *names):
        """Removing ends the services and keeps what people made; purging leaves nothing but runs."""
        kept = {path for path in self.traces(system) if path.startswith(("/etc/gleaner/", "/var/lib/private/"))}
        system.run("apt-get", "remove", "--yes", *names)
        self.assertEqual(system.run("find", "/proc", "-maxdepth", 2, "-name", "exe", "-lname", "*gleaner*",
                                    may_fail=True), "")
        left = self.traces(system)
        self.assertLessEqual(kept, set(left))
        self.assertFalse([path for path in left if path.startswith(("/usr", "/lib"))])
        system.run("apt-get", "purge", "--yes", *names)
        self.assertEqual([path for path in self.traces(system)
                          if not re.match("/var/lib/(private/)?gleaner-master", path)], [])
        if "gleaner-master" in names:
            self.assertTrue(system.path("/var/lib/private/gleaner-master/run").is_dir())
        system.run("systemctl", "daemon-reload")
        self.assertEqual(system.run("systemctl", "list-units", "--all", "--no-legend", "gleaner*").strip(), "")

    def test_lintian_finds_nothing(self):
        changes = next(self.folder.glob("*.changes"))
        done = subprocess.run(["lintian", "--allow-root", "--fail-on", "error,warning", changes],
                              capture_output=True, text=True, check=False)
        self.assertEqual((done.returncode, done.stdout), (0, ""))

    def test_services_see_little_of_the_machine(self):
        for unit in (MASTER, VOLUNTEER, "gleaner-serve@.service"):
            done = subprocess.run(
                ["systemd-analyze", "security", "--offline=true", "--no-pager", "--threshold=20", UNITS / unit],
                capture_output=True, text=True, check=False)
            self.assertIn("Overall exposure level", done.stdout)
            self.assertEqual(done.returncode, 0, done.stdout[-400:])

    def test_two_commands_an_upgrade_and_nothing_left(self):
        host, guest = self.boot("host"), self.boot("guest")
        line = self.start_master(host)
        self.drop_in(guest)

        # Two commands, and a minute at most, on a system that had none of the libraries.
        started = time.monotonic()
        self.install(guest, "gleaner-volunteer")
        said = guest.run("gleaner-volunteer", "join", line)
        guest.wait(lambda: self.examples(guest), "the volunteer trains")
        took = time.monotonic() - started
        print(f"from apt-get install to the first trained examples: {took:.1f} s")
        self.assertLess(took, 60 * TIME_FACTOR)
        self.assertIn("sudo gleaner-volunteer status", said)

        # The invite is a secret to all but root and the service.
        kept = guest.path("/etc/gleaner/volunteer.line")
        self.assertEqual((kept.stat().st_mode & 0o777, kept.stat().st_uid), (0o600, 0))
        service = f"/proc/{guest.show(VOLUNTEER, 'MainPID')}"
        self.assertNotEqual(guest.run("stat", "--format=%u", service).strip(), "0")
        words = guest.run("cat", f"{service}/cmdline", f"{service}/environ")
        self.assertIn("--line-file", words)
        self.assertNotIn(line.rsplit(".", 1)[1], words)

        # In the middle of the run, which goes on to the model of a calm one.
        self.upgrade(guest, "gleaner-volunteer")
        self.upgrade(host, "gleaner-master")
        self.assertIsNone(self.last(host, "finished"))
        finished = host.wait(lambda: self.last(host, "finished"), "the run finishes", 120)
        calm = self.setup.run_local(self.cluster, self.cluster.path("calm"))
        self.assertEqual(finished["digest"], calm["digest"])
        self.assertEqual(self.cluster.digest(host.path("/var/lib/private/gleaner-master/run")), calm["digest"])

        shutil.rmtree(guest.path(f"/etc/systemd/system/{VOLUNTEER}.d"))
        self.remove_and_purge(guest, "gleaner-volunteer")
        self.remove_and_purge(host, "gleaner-master", "gleaner")

    def test_a_killed_volunteer_comes_back_and_a_useless_line_is_not_tried_again(self):
        system = self.boot("system")
        line = self.start_master(system)
        self.install(system, "gleaner-volunteer")
        self.drop_in(system)
        system.run("gleaner-volunteer", "join", text=line + "\n")  # pasted, so that no shell remembers it
        system.wait(lambda: self.examples(system), "the volunteer trains")
        system.run("systemctl", "kill", "--signal=KILL", VOLUNTEER)
        system.wait(lambda: system.show(VOLUNTEER, "NRestarts") == "1", "systemd starts it again")
        system.wait(lambda: self.examples(system), "it trains again")

        refused = system.run("gleaner-volunteer", "join", "gleaner://nowhere", may_fail=True)
        self.assertIn("gleaner-volunteer: ", refused)
        kept = system.path("/etc/gleaner/volunteer.line")
        self.assertEqual(kept.read_text(), line + "\n")
        kept.write_text("gleaner://nowhere\n")
        system.run("systemctl", "restart", VOLUNTEER)
        system.wait(lambda: system.show(VOLUNTEER, "ActiveState") == "failed", "it gives up")
        self.assertEqual((system.show(VOLUNTEER, "ExecMainStatus"), system.show(VOLUNTEER, "NRestarts")), ("2", "0"))

        # The Python package trains with the installed master.
        self.install(system, "python3-gleaner")
        texts = "['a owl', 'a bee'] * 20, [['flies'], ['stings']] * 20"
        said = system.run("python3", "-c", "import gleaner; model = gleaner.Gleaner(epochs=2, progress=False);"
                          f"print(model.fit({texts}).predict(['an owl'])[0][0][0])")
        self.assertEqual(said.strip(), "flies")

        # Every manual page and completion is where man and shells look.
        self.install(system, "gleaner-doc")
        for page in ("man1/gleaner.1", "man1/gleaner-master.1", "man1/gleaner-volunteer.1",
                     "man5/gleaner-master.toml.5", "man5/gleaner-volunteer.toml.5"):
            self.assertTrue(system.path(f"/usr/share/man/{page}.gz").exists(), page)
        self.assertTrue(system.path("/usr/share/bash-completion/completions/gleaner").exists())
        self.assertTrue(system.path("/usr/share/doc/gleaner-doc/README.md").exists())


if __name__ == "__main__":
    unittest.main()
