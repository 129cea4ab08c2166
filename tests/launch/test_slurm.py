"""Volunteers and a master as jobs of a real Slurm: preempted, cancelled, queued again, resumed."""

import json
import subprocess
import sys
import time
import unittest

from slurm_site import SlurmSite, why_not

from harness import BIN, IS_LONG, EndToEndTest, finished, free_port, small_setup

NODES = 4


@unittest.skipIf(why_not(), why_not())
class OnSlurm(EndToEndTest):
    def setUp(self):
        super().setUp()
        self.site = SlurmSite(self.cluster.path("slurm"), NODES)
        self.addCleanup(self.site.close)
        # A volunteer gives way to every other program; under test that would be to other tests.
        self.program = self.cluster.path("volunteer")
        self.program.write_text(f'#!/bin/bash\nexec {BIN}/gleaner-volunteer "$@" --nice 10 --keep-shards-s 300 '
                                f'--control {self.cluster.path("control")}-$SLURM_ARRAY_TASK_ID\n')
        self.program.chmod(0o755)

    def launch(self, what, *arguments):
        folder = self.cluster.path(f"jobs-{what.name}")
        done = subprocess.run(
            [BIN / "gleaner", "launch", "slurm", what, "--cores", "1", "--memory", "512M", "--output", folder,
             "--submit", "--json", *map(str, arguments)], env=self.site.environment, capture_output=True, text=True,
            timeout=60, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        return folder

    def launch_volunteers(self, line, volunteers, jobs, time="30m"):
        path = self.cluster.path("line")
        path.write_text(line)
        path.chmod(0o600)
        return self.launch(path, "--volunteers", volunteers, "--jobs", jobs, "--time", time, "--partition", "spot",
                           "--program", self.program)

    def start_master(self, setup, store="store"):
        master = setup.start_master(self.cluster, self.cluster.path(store), "--listen", "127.0.0.1:0")
        line = master.wait_event("listening")["join"]
        return master, line

    def run_with(self, setup, store, volunteers, jobs):
        master, line = self.start_master(setup, store)
        self.launch_volunteers(line, volunteers, jobs)
        return master

    def left(self, master):
        return master.events("volunteer_left")

    def calm_digest(self, setup):
        event = setup.run_local(self.cluster, self.cluster.path("calm"))
        self.assertEqual(event["event"], "finished")
        return self.cluster.digest(self.cluster.path("calm"))


class Volunteers(OnSlurm):
    def test_preempted_and_cancelled_ones_hand_over_and_their_places_are_taken(self):
        setup = small_setup(self.cluster).with_flag("--epochs", 40)
        master, line = self.start_master(setup)
        folder = self.launch_volunteers(line, 2, 3)
        script = (folder / "volunteers.sbatch").read_text()
        secret = line.rsplit(".", 1)[1]
        self.assertNotIn(secret, script)
        self.assertEqual((folder / "line").stat().st_mode & 0o777, 0o600)
        running = self.site.wait(lambda: len(found := self.site.jobs("RUNNING")) == 2 and found, "two run")
        self.assertEqual(len(self.site.jobs("PENDING")), 1)  # the limit of the array
        master.wait_for(lambda: len(master.events("volunteer_joined")) == 2, "both joined")
        words = subprocess.run(["ps", "-ww", "-eo", "args"], capture_output=True, text=True, check=True).stdout
        self.assertIn(str(folder / "line"), words)
        self.assertNotIn(secret, words + self.site.ask("scontrol", "show", "job"))
        # The owner of a node wants it: the volunteer hands over, its job is queued again, and the waiting
        # job takes the place.
        (job, node), (other, _) = sorted(running.items())
        self.site.preempt(node, 3)
        master.wait_for(lambda: len(self.left(master)) == 1, "one left")
        self.assertTrue(self.left(master)[0]["polite"], master.said()[-2000:])
        master.wait_for(lambda: len(master.events("volunteer_joined")) == 3, "the next one joined")
        self.assertIn("Restarts=1", self.site.ask("scontrol", "show", "job", job))
        # One is cancelled: the job that was preempted takes its place.
        self.site.ask("scancel", other)
        master.wait_for(lambda: len(self.left(master)) == 2, "one more left")
        self.assertTrue(self.left(master)[1]["polite"], master.said()[-2000:])
        master.wait_for(lambda: len(master.events("volunteer_joined")) == 4, "the preempted one joined")
        self.assertIn(job, self.site.jobs("RUNNING"))
        finished(master, 240)  # volunteers give way to whatever else runs here
        self.assertEqual(self.cluster.digest(self.cluster.path("store")), self.calm_digest(setup))


@unittest.skipUnless(IS_LONG, "minutes long: GLEANER_LONG=1")
class Long(OnSlurm):
    def test_a_master_that_is_killed_goes_on_in_its_next_job(self):
        setup = small_setup(self.cluster).with_flag("--epochs", 40)
        port = free_port()
        config = self.cluster.path("run.toml")
        store = self.cluster.path("store")
        flags = dict(zip(setup.flags[::2], setup.flags[1::2]))
        config.write_text(
            f'[data]\ntrain = "{setup.train}"\ntest = "{setup.test}"\n[run]\nstore = "{store}"\n[model]\n'
            + "".join(f"{flag[2:].replace('-', '_')} = {value}\n" for flag, value in flags.items())
            + f'[network]\nlisten = "127.0.0.1:{port}"\nhttp = "off"\n[output]\njson = true\n')
        folder = self.launch(config, "--master", "--jobs", 3, "--time", "30m")

        def events(kind):
            lines = "".join(log.read_text() for log in sorted(folder.glob("gleaner-master-*.log"))).splitlines()
            found = [json.loads(line) for line in lines if line.startswith("{")]
            return [event for event in found if event["event"] == kind]

        self.site.wait(lambda: events("listening"), "the master listens")
        self.launch_volunteers(events("listening")[0]["join"], 2, 2)
        self.site.wait(lambda: len(events("checkpoint")) > 3, "checkpoints")
        self.assertEqual(subprocess.run(["fuser", "-k", "-KILL", f"{port}/tcp"], check=False,
                                        capture_output=True).returncode, 0)
        self.site.wait(lambda: len(events("listening")) == 2, "the next job resumes")
        self.site.wait(lambda: events("finished"), "the run is finished", 300)
        self.site.wait(lambda: not self.site.jobs("RUNNING,PENDING", "gleaner-master"), "the last job ends at once")
        self.assertEqual(self.cluster.digest(store), self.calm_digest(setup))

    def test_a_volunteer_hands_over_before_the_end_of_its_time_and_the_next_job_takes_the_place(self):
        setup = small_setup(self.cluster).with_flag("--epochs", 40)
        master, line = self.start_master(setup)
        self.launch_volunteers(line, 1, 3, "3m")
        master.wait_for(lambda: master.events("checkpoint"), "it trains")
        # The run is not over before: the volunteer stands still for most of its time.
        subprocess.run([BIN / "gleaner-volunteer", "snooze", "200s", "--control", self.cluster.path("control-1")], check=True)
        master.wait_for(lambda: self.left(master), "it left", 300)
        self.assertTrue(self.left(master)[0]["polite"], master.said()[-2000:])
        self.assertIn("its time here ends in", master.said())
        finished(master)
        self.assertEqual(len(master.events("volunteer_joined")), 2)
        self.assertEqual(self.cluster.digest(self.cluster.path("store")), self.calm_digest(setup))

    def test_preempting_half_of_the_volunteers_each_minute_keeps_the_speed(self):
        setup = small_setup(self.cluster, points=200_000, flags=("--divergence-factor", 0)).with_flag("--epochs", 10)
        seconds, digests, preempted = {}, {}, 0
        for storm in (False, True):
            store = f"storm-{storm}"
            master = self.run_with(setup, store, NODES, NODES)
            master.wait_for(lambda m=master: len(m.events("volunteer_joined")) >= NODES, "all joined")
            begin = next_storm = time.monotonic()
            next_storm += 5
            while master.is_running():
                if storm and time.monotonic() >= next_storm:
                    next_storm += 60
                    for node in self.site.names[:NODES // 2]:
                        self.site.preempt(node, 5)
                        preempted += 1
                time.sleep(0.2)
            finished(master)
            seconds[storm] = time.monotonic() - begin
            digests[storm] = self.cluster.digest(self.cluster.path(store))
            if storm:
                polite = [event["polite"] for event in self.left(master)]
            self.site.ask("scancel", "--user=root")
            self.site.wait(lambda: not self.site.ask("squeue", "-h"), "no job is left")
        kept = seconds[False] / seconds[True]
        print(f"calm {seconds[False]:.1f} s, preempted {preempted} times {seconds[True]:.1f} s: "
              f"{kept:.0%} of the throughput; hand-overs: {polite}", file=sys.stderr)
        self.assertEqual(digests[False], digests[True])
        self.assertTrue(all(polite), polite)
        self.assertGreaterEqual(kept, 0.7)


if __name__ == "__main__":
    unittest.main()
