"""What machines do to programs: readers that go, terminals that close, data files that change, file systems
without links, policies of OpenSSL, addresses that are silent."""

import contextlib
import json
import os
import pathlib
import pty
import shutil
import signal
import subprocess
import unittest

from harness import BIN, ENDLESS, IS_LONG, UNMANNERED, EndToEndTest, StorageTest, faults, finished, small_setup

LINKLESS = {"GLEANER_FAULT_LINKS": "1"}


def read_by(reader):
    """Both outputs of a program end at `reader`, which goes when it has seen enough."""
    return ["bash", "-c", f'"$@" 2>&1 | {reader}; exit ${{PIPESTATUS[0]}}', "sh"]


def joined(master):
    return master.wait_event("volunteer_joined")


class GoneReaders(StorageTest):
    def test_a_run_goes_on_when_nobody_reads_what_its_programs_say(self):
        master = self.setup.start_master(self.cluster, self.store, "--listen", "127.0.0.1:0", "--threads", 1,
                                         "--min-volunteers", 2, before=read_by("sed '/listening/q'"))
        line = master.wait_event("listening")["join"]
        relay = self.cluster.start("gleaner", "relay", line, "--listen", "127.0.0.1:0", "--dir",
                                   self.cluster.path("relay"), before=read_by("head -n 1"))
        relay.wait_for(lambda: relay.out, "its line")
        volunteers = [self.cluster.volunteer(one, before=read_by("head -n 1"))
                      for one in (line, relay.out[0].split()[1])]
        for program in (master, relay, *volunteers):
            self.assertEqual(program.wait_exit(), 0, program.said())
        self.assertEqual(self.cluster.digest(self.store), self.reference["digest"])

    def test_closed_outputs_lead_nowhere(self):
        arguments = self.setup.arguments(self.store, "--local", 1)
        code, master = self.cluster.run("gleaner-master", *arguments,
                                        before=["bash", "-c", 'exec "$@" <&- >&- 2>&-', "sh"])
        self.assertEqual(code, 0, master.said())
        self.assertEqual(self.cluster.digest(self.store), self.reference["digest"])

    def test_a_tool_whose_reader_has_read_enough_ends_quietly(self):
        for verb in (["history", self.done], ["inspect", self.done, "--json"], ["checkpoint", "digest", self.done]):
            code, tool = self.cluster.run("gleaner", *verb, before=read_by("true"))
            self.assertEqual((code, tool.said()), (0, ""))


class Hangups(StorageTest):
    def test_a_closed_terminal_is_a_stop(self):
        master, volunteer = self.start("--farewell-s", 5, hold=2)
        master.wait_checkpoint(2)
        volunteer.signal(signal.SIGHUP)
        volunteer.signal(signal.SIGHUP)  # from the system and from the shell
        volunteer.wait_said("handing the shards over")
        master.let_go()
        self.assertEqual(volunteer.wait_exit(), 0, volunteer.said())
        self.assertNotIn("at once", volunteer.said().replace("again to stop at once", ""))
        other = self.cluster.volunteer(master.wait_event("listening")["join"])
        master.wait_event("volunteer_joined", lambda event: event["name"] == "v2")
        relay = self.cluster.start("gleaner", "relay", master.wait_event("listening")["join"], "--listen",
                                   "127.0.0.1:0", "--dir", self.cluster.path("relay"))
        relay.wait_for(lambda: relay.out, "its line")
        relay.signal(signal.SIGHUP)
        self.assertEqual(relay.wait_exit(), 0, relay.said())
        master.signal(signal.SIGHUP)
        self.assertEqual(master.wait_exit(), 0, master.said())
        self.assertTrue(master.events("stopped"), master.said())
        other.close()
        self.finish(self.store)

    def test_a_program_in_a_terminal_that_closes_stops_in_order(self):
        arguments = [str(one) for one in self.setup.arguments(self.store, "--local", 1, "--epochs", ENDLESS)]
        arguments[arguments.index("json")] = "text"
        child, terminal = pty.fork()
        if child == 0:
            os.execv(BIN / "gleaner-master", ["gleaner-master", *arguments])
        said = b""
        while b"checkpoint" not in said and b"round" not in said:
            said += os.read(terminal, 1000)
        os.close(terminal)
        _, status = os.waitpid(child, 0)
        self.assertEqual(os.waitstatus_to_exitcode(status), 0, said.decode(errors="replace"))

    def test_nohup_outlives_the_terminal(self):
        master = self.setup.start_master(self.cluster, self.store, "--local", 1, before=["nohup"], hold=2)
        master.wait_checkpoint(2)
        master.signal(signal.SIGHUP)
        self.assertEqual(finished(master)["digest"], self.reference["digest"])


class ChangedData(EndToEndTest):
    def setUp(self):
        super().setUp()
        text = small_setup(self.cluster, points=3000)
        self.packed = self.cluster.path("packed.gleaner")
        self.cluster.gleaner("dataset", "convert", text.train, "--output", self.packed)
        text.train = self.packed
        self.setup = text
        self.reference = text.run_local(self.cluster, self.cluster.path("reference"))["digest"]
        self.store = self.cluster.path("store")

    def change_at_checkpoint(self, change, *flags):
        master = self.setup.start_master(self.cluster, self.store, "--threads", 1, *flags, hold=2)
        volunteer = None
        if "--listen" in flags:
            volunteer = self.cluster.volunteer(master.wait_event("listening")["join"])
        master.wait_checkpoint(2)
        change()
        code = master.wait_exit()
        if volunteer:
            volunteer.close()
        return code, master.said()

    def test_a_file_that_is_cut_short_or_overwritten_ends_the_run_in_a_sentence(self):
        whole = self.packed.read_bytes()
        for name, bytes_now in [("cut", whole[:4096]), ("empty", b""), ("zeros", bytes(len(whole))),
                                ("one bit", whole[:5000] + bytes([whole[5000] ^ 1]) + whole[5001:])]:
            for flags in (["--local", 1], ["--listen", "127.0.0.1:0"]):
                with self.subTest(name=name, flags=flags[0]):
                    shutil.rmtree(self.store, ignore_errors=True)
                    self.packed.write_bytes(whole)
                    code, said = self.change_at_checkpoint(lambda now=bytes_now: self.packed.write_bytes(now), *flags)
                    self.assertEqual(code, 3, said)
                    self.assertIn(str(self.packed), said)
                    self.assertIn("once it is whole again, the same command goes on", said)
                    self.packed.write_bytes(whole)
                    self.assertEqual(self.setup.run_local(self.cluster, self.store)["digest"], self.reference)

    def test_another_mode_or_another_name_is_no_other_content(self):
        def touch():
            self.packed.chmod(0o600)
            os.utime(self.packed)
            os.rename(self.packed, self.cluster.path("elsewhere"))

        code, said = self.change_at_checkpoint(touch, "--local", 1)
        self.assertEqual(code, 0, said)
        self.assertEqual(self.cluster.digest(self.store), self.reference)


class WithoutLinks(EndToEndTest):
    def test_everything_works_on_a_file_system_without_links_and_modes(self):
        setup = small_setup(self.cluster, points=1500)
        reference = setup.run_local(self.cluster, self.cluster.path("reference"))["digest"]
        store, environment = self.cluster.path("store"), faults(**LINKLESS)
        for _ in range(2):  # what the first start has made, the second one reads
            master = setup.start_master(self.cluster, store, "--listen", "127.0.0.1:0", "--threads", 1,
                                        environment=environment)
            volunteer = self.cluster.volunteer(master.wait_event("listening")["join"], "--cache",
                                               self.cluster.path("cache"), environment=environment)
            joined(master)
            master.signal(signal.SIGTERM)
            self.assertEqual(master.wait_exit(), 0, master.said())
            volunteer.close()
        backups = self.cluster.path("backups")
        finished(setup.start_master(self.cluster, store, "--local", 1, "--backup", backups, environment=environment))
        self.assertEqual(self.cluster.digest(store), reference)
        self.assertIn("intact", self.cluster.gleaner("backup", "verify", backups))
        for verb in (["dataset", "convert", setup.train, "--output", self.cluster.path("packed")],
                     ["checkpoint", "keep", store, "best"],
                     ["invite", "create", store],
                     ["export", store, "--to", self.cluster.path("model.safetensors")]):
            code, tool = self.cluster.run("gleaner", *verb, environment=environment)
            self.assertEqual(code, 0, tool.said())
        self.assertEqual(self.cluster.digest(store), reference)
        code, again = self.cluster.run("gleaner", "dataset", "convert", setup.train, "--output",
                                       self.cluster.path("packed"), environment=environment)
        self.assertEqual(code, 2, again.said())
        self.assertIn("exists already", again.said())


@unittest.skipUnless(IS_LONG and os.geteuid() == 0 and shutil.which("mkfs.vfat"),
                     "mounting vfat takes root, mkfs.vfat (Debian package dosfstools) and GLEANER_LONG")
class OnVfat(EndToEndTest):
    def test_a_run_a_cache_a_backup_and_a_resume_work_on_a_stick(self):
        setup = small_setup(self.cluster, points=1500)
        reference = setup.run_local(self.cluster, self.cluster.path("reference"))["digest"]
        image, stick = self.cluster.path("image"), self.cluster.path("stick")
        stick.mkdir()
        with image.open("wb") as file:
            file.truncate(512 << 20)
        subprocess.run(["mkfs.vfat", "-F", "32", image], check=True, capture_output=True)
        mounted = subprocess.run(["mount", "-o", "loop", image, stick], capture_output=True, text=True, check=False)
        if mounted.returncode:
            self.skipTest("vfat cannot be mounted here: " + mounted.stderr.strip())
        self.addCleanup(subprocess.run, ["umount", "-l", stick], check=True)
        store = stick / "store"
        for ends in (False, True):
            master = setup.start_master(self.cluster, store, "--listen", "127.0.0.1:0", "--backup", stick / "backups",
                                        hold=None if ends else 1)
            self.cluster.volunteer(master.wait_event("listening")["join"], "--cache", stick / "cache")
            if not ends:
                master.wait_checkpoint(1)
                master.kill()
        finished(master)
        self.assertEqual(self.cluster.digest(store), reference)
        self.assertIn("intact", self.cluster.gleaner("backup", "verify", stick / "backups"))


def quota_of_one_processor():
    """The file of a new control group that may use one processor, into which a process writes itself; None
    where no group can be made."""
    name = f"gleaner-e2e-{os.getpid()}"
    for group, limits in ((pathlib.Path("/sys/fs/cgroup/cpu") / name,
                           {"cpu.cfs_period_us": "100000", "cpu.cfs_quota_us": "100000"}),
                          (pathlib.Path("/sys/fs/cgroup") / name, {"cpu.max": "100000 100000"})):
        with contextlib.suppress(OSError):
            group.mkdir()
            try:
                for file, text in limits.items():
                    (group / file).write_text(text, encoding="utf-8")
                return group / "cgroup.procs"
            except OSError:
                group.rmdir()
    return None


@unittest.skipUnless(IS_LONG and os.geteuid() == 0 and (os.cpu_count() or 1) > 1,
                     "a control group takes root, GLEANER_LONG, and two processors to show a quota of one")
class Quota(EndToEndTest):
    def test_a_container_of_one_processor_lends_one_thread(self):
        procs = quota_of_one_processor()
        if procs is None:
            self.skipTest("no control group with a quota can be made here")
        self.addCleanup(procs.parent.rmdir)
        setup = small_setup(self.cluster, points=1500)
        inside = ("sh", "-c", f"echo $$ > {procs} && exec \"$@\"", "sh")
        master = setup.start_master(self.cluster, self.cluster.path("store"), "--listen", "127.0.0.1:0", "--epochs", ENDLESS)
        line = master.wait_event("listening")["join"]
        volunteers = [self.cluster.start("gleaner-volunteer", line, "--name", name, "--when", "always", "--control",
                                         self.cluster.path(name), before=before)
                      for name, before in (("inside", inside), ("outside", ()))]
        master.wait_for(lambda: len(master.events("volunteer_joined")) == 2, "both")
        threads = {event["name"]: event["threads"] for event in master.events("volunteer_joined")}
        self.assertEqual(threads, {"inside": 1, "outside": len(os.sched_getaffinity(0))})
        for program in volunteers:
            program.close()


class Repairs(StorageTest):
    def test_repair_finds_the_backup_that_has_what_is_lost(self):
        backups = self.cluster.path("backups")
        for setup in (self.setup.with_flag("--epochs", 1), self.setup):
            finished(setup.start_master(self.cluster, self.store, "--local", 1, "--backup", backups))
        listed = self.cluster.gleaner("backup", "list", backups, "--json").splitlines()
        numbers = {json.loads(line)["checkpoint"]: json.loads(line)["backup"] for line in listed}
        damaged, early = self.cluster.path("damaged"), sorted(numbers)[0]
        self.assertGreater(len(numbers), 1)
        self.cluster.gleaner("restore", f"{backups}@{numbers[early]}", damaged)
        digest = self.cluster.digest(damaged)
        table = max(damaged.glob("*.sst"), key=lambda file: file.stat().st_size)
        text = bytearray(table.read_bytes())
        text[len(text) // 3] ^= 1
        table.write_bytes(text)
        repaired = self.cluster.path("repaired")
        for source in (backups, f"{backups}@{numbers[early]}"):
            shutil.rmtree(repaired, ignore_errors=True)
            self.cluster.gleaner("repair", damaged, "--from", source, "--to", repaired)
            self.assertEqual(self.cluster.digest(repaired), digest)


class Policies(EndToEndTest):
    def test_a_policy_of_openssl_is_named_with_what_it_refuses(self):
        setup = small_setup(self.cluster, points=200)
        settings = self.cluster.path("openssl.cnf")
        base = "openssl_conf = all\n[all]\n"
        ssl = base + "ssl_conf = ssl\n[ssl]\nsystem_default = policy\n[policy]\n"
        policies = {
            "FIPS": base + "alg_section = algorithms\n[algorithms]\ndefault_properties = fips=yes\n",
            "Ed25519": ssl + "CipherString = DEFAULT:@SECLEVEL=5\n",
        }
        for name, text in policies.items():
            settings.write_text(text, encoding="utf-8")
            for program in (["gleaner-master", *setup.arguments(self.cluster.path("s"), "--listen", "127.0.0.1:0")],
                            ["gleaner-volunteer", "127.0.0.1:1", "--insecure", "--cache", self.cluster.path("c")]):
                with self.subTest(policy=name, program=program[0]):
                    code, ended = self.cluster.run(*program, environment={"OPENSSL_CONF": str(settings)})
                    self.assertEqual(code, 1, ended.said())
                    self.assertRegex(ended.said(), f"{name}.*{settings}|{settings}.*{name}")
                    self.assertNotIn("internal error", ended.said())
        settings.write_text(ssl + "Groups = P-256\nMinProtocol = TLSv1.2\nSignatureAlgorithms = ECDSA+SHA256\n",
                            encoding="utf-8")
        master = setup.start_master(self.cluster, self.cluster.path("t"), "--listen", "127.0.0.1:0",
                                    environment={"OPENSSL_CONF": str(settings)})
        self.cluster.volunteer(master.wait_event("listening")["join"],
                               environment={"OPENSSL_CONF": str(settings)})
        finished(master)


class NamedVolunteers(EndToEndTest):
    """Two volunteers of one user. Neither reaches a master, and both can be asked."""

    def start(self, name, environment):
        cache = self.cluster.path(name)
        volunteer = self.cluster.start("gleaner-volunteer", "127.0.0.1:1", "--insecure", "--cache", cache, "--name", name,
                                       *UNMANNERED, environment=environment)
        volunteer.wait_said("cannot reach")
        return volunteer

    def ask(self, *words, environment):
        code, verb = self.cluster.run("gleaner-volunteer", *words, "--json", environment=environment)
        self.assertEqual(code, 0, verb.said())
        return json.loads(verb.out[0])["name"]

    def test_each_answers_by_what_it_was_started_with(self):
        runtime = self.cluster.path("runtime")
        runtime.mkdir(mode=0o700)
        for environment in ({"XDG_RUNTIME_DIR": str(runtime)}, {"XDG_RUNTIME_DIR": ""}):
            with self.subTest(environment=environment):
                first, second = (self.start(name, environment) for name in ("first", "second"))
                for name in ("second", "first"):
                    for other in ({"XDG_RUNTIME_DIR": ""}, environment):
                        words = ("pause", "--cache", self.cluster.path(name))
                        self.assertEqual(self.ask(*words, environment=other), name)
                self.assertEqual(self.ask("status", environment=environment), "first")
                code, nobody = self.cluster.run("gleaner-volunteer", "pause", "--cache", self.cluster.path("third"),
                                                environment=environment)
                self.assertEqual(code, 1, nobody.said())
                for volunteer in (first, second):
                    volunteer.signal(signal.SIGTERM)
                    self.assertEqual(volunteer.wait_exit(), 0, volunteer.said())

    def test_words_that_are_no_verbs_are_answered_with_the_verb(self):
        for words, meant in ((["pause", "1h"], "snooze 1h"), (["stop"], "finish"), (["limit", "2"], "set")):
            code, verb = self.cluster.run("gleaner-volunteer", *words)
            self.assertEqual(code, 2, verb.said())
            self.assertIn(meant, verb.said())


def why_no_hosts():
    """Why this machine makes no network namespace, or None."""
    if os.geteuid() != 0:
        return "making network namespaces takes root"
    if not shutil.which("ip"):
        return "ip is not installed (package iproute2)"
    return None


@unittest.skipUnless(IS_LONG and why_no_hosts() is None, why_no_hosts() or "only with GLEANER_LONG")
class SilentAddress(EndToEndTest):
    """A host of which the name `master.test` has an IPv6 address that nobody answers at, before its IPv4 one."""

    def setUp(self):
        super().setUp()
        self.host = f"gl{os.getpid()}silent"
        names = pathlib.Path("/etc/netns") / self.host
        names.mkdir(parents=True)
        self.addCleanup(shutil.rmtree, names)
        (names / "hosts").write_text("2001:db8::1 master.test\n127.0.0.1 master.test\n", encoding="utf-8")
        self.ip("netns", "add", self.host)
        self.addCleanup(self.ip, "netns", "del", self.host)
        for words in (["link", "set", "lo", "up"], ["link", "add", "silent0", "type", "veth", "peer", "name", "far0"],
                      ["link", "set", "silent0", "up"], ["link", "set", "far0", "up"],
                      ["address", "add", "2001:db8::2/64", "dev", "silent0", "nodad"],
                      ["neighbour", "add", "2001:db8::1", "lladdr", "02:00:00:00:00:01", "dev", "silent0"]):
            self.ip("-n", self.host, *words)

    @staticmethod
    def ip(*words):
        subprocess.run(["ip", *words], check=True)

    def test_the_other_address_is_reached_at_once(self):
        setup = small_setup(self.cluster, points=1500)
        before = ["ip", "netns", "exec", self.host]
        master = setup.start_master(self.cluster, self.cluster.path("store"), "--listen", "127.0.0.1:7070",
                                    "--advertise", "master.test", "--min-volunteers", 2, "--epochs", ENDLESS,
                                    before=before)
        line = master.wait_event("listening")["join"]
        self.assertIn("master.test", line)
        patient = ("--connect-timeout-ms", 600_000)  # longer than this test waits
        first = self.cluster.volunteer(line, *patient, before=before)
        relay = self.cluster.start("gleaner", "relay", line, "--listen", "127.0.0.1:7071", "--dir",
                                   self.cluster.path("relay"), before=before)
        relay.wait_for(lambda: relay.out, "its line")
        second = self.cluster.volunteer(relay.out[0].split()[1], *patient, before=before)
        master.wait_checkpoint(2)
        code, status = self.cluster.run("gleaner", "status", line, before=before)
        self.assertEqual(code, 0, status.said())
        joined = [event["name"] for event in master.events("volunteer_joined")]
        self.assertEqual(sorted(joined), ["v1", "v2"])
        for program in (first, second, master):
            program.signal(signal.SIGTERM)
            self.assertEqual(program.wait_exit(), 0, program.said())


@unittest.skipUnless(IS_LONG and os.geteuid() == 0 and shutil.which("ip"),
                     "network namespaces take root, ip (Debian package iproute2) and GLEANER_LONG")
class LargePackets(EndToEndTest):
    """Two hosts whose cable silently drops packets above 1,280 bytes, as tunnels do."""

    def setUp(self):
        super().setUp()
        self.hosts = [f"gl{os.getpid()}{name}" for name in ("hub", "near", "far")]
        for host in self.hosts:
            self.ip("netns", "add", host)
            self.addCleanup(self.ip, "netns", "del", host)
        hub, *ends = self.hosts
        self.ip("-n", hub, "link", "add", "br0", "up", "type", "bridge")
        for number, host in enumerate(ends, 1):
            self.ip("-n", hub, "link", "add", f"port{number}", "mtu", "1280", "type", "veth", "peer", "name", "eth0",
                    "mtu", "1500", "netns", host)
            # Segments leave one by one, as they pass a cable.
            self.ip("-n", host, "link", "set", "eth0", "gso_max_segs", "1", "up")
            self.ip("-n", host, "address", "add", f"10.78.0.{number}/24", "dev", "eth0")
            self.ip("-n", hub, "link", "set", f"port{number}", "master", "br0", "up")

    @staticmethod
    def ip(*words):
        subprocess.run(["ip", *words], check=True)

    def test_a_volunteer_names_them_and_trains_with_smaller_ones(self):
        setup = small_setup(self.cluster, points=1500)
        near, far = (["ip", "netns", "exec", host] for host in self.hosts[1:])
        master = setup.start_master(self.cluster, self.cluster.path("store"), "--listen", "10.78.0.1:7070", "--silence-ms",
                                    3000, before=near)
        line = master.wait_event("listening")["join"]
        volunteer = self.cluster.volunteer(line, before=far)
        volunteer.wait_said("large packets may be lost on the way")
        self.ip("-n", self.hosts[2], "link", "set", "eth0", "mtu", "1280")
        finished(master)
        self.assertEqual(volunteer.wait_exit(), 0, volunteer.said())


@unittest.skipUnless(IS_LONG and os.geteuid() == 0, "mounting a small file system takes root, and GLEANER_LONG")
class NoInodes(EndToEndTest):
    def test_what_runs_out_is_named(self):
        setup = small_setup(self.cluster, points=500)
        folder = self.cluster.path("small")
        folder.mkdir()
        subprocess.run(["mount", "-t", "tmpfs", "-o", "nr_inodes=200,size=64m", "tmpfs", folder], check=True)
        self.addCleanup(subprocess.run, ["umount", "-l", folder], check=True)
        with contextlib.suppress(OSError):
            for number in range(1000):
                (folder / str(number)).touch()
        code, convert = self.cluster.run("gleaner", "dataset", "convert", setup.train, "--output", folder / "packed")
        self.assertEqual(code, 1, convert.said())
        self.assertIn("inodes", convert.said())


if __name__ == "__main__":
    unittest.main()
