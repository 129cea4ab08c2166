"""The container image: its programs train without root, and its health check reports it. Where podman can run
containers podman runs it; elsewhere the test unpacks the layer and runs the programs as the image says."""

import json
import shutil
import subprocess
import tarfile
import time
import unittest

from debian_system import why_not

from harness import IS_LONG, ROOT, TIME_FACTOR, UNMANNERED, EndToEndTest, finished, small_setup

SKIP = why_not() if IS_LONG else "takes minutes: only with GLEANER_LONG"


def output_of(*command):
    return subprocess.run(list(map(str, command)), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
                          check=False)


@unittest.skipIf(SKIP, SKIP)
class Image(EndToEndTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.out = ROOT / "build/oci"
        subprocess.run([ROOT / "tools/packaging/oci/build", cls.out], check=True)
        cls.archive = cls.out / "gleaner-image.tar"

    def unpack(self):
        """The layer as a folder, and what the image says of running it."""
        with tarfile.open(self.archive) as archive:
            manifest = json.load(archive.extractfile("manifest.json"))[0]
            config = json.load(archive.extractfile(manifest["Config"]))["config"]
            archive.extract(manifest["Layers"][0], self.cluster.folder)
        root = self.cluster.path("root")
        root.mkdir()
        subprocess.run(["tar", "--extract", "--numeric-owner", f"--file={self.cluster.path(manifest['Layers'][0])}",
                        f"--directory={root}"], check=True)
        return root, config

    def podman_runs(self, tag):
        return output_of("podman", "run", "--rm", "--network=host", tag, "gleaner-volunteer", "--version").returncode == 0

    def test_it_trains_without_root_and_its_health_is_known(self):
        root, config = self.unpack()
        self.assertEqual(config["User"], "65534:65534")
        self.assertFalse((root / "usr/bin/sh").exists() or (root / "bin/sh").exists())
        setup = small_setup(self.cluster).with_flag("--epochs", 20)
        master = setup.start_master(self.cluster, self.cluster.path("store"), "--listen", "127.0.0.1:0")
        line = master.wait_event("listening")["join"]
        tag = self.load()
        flags = ["--once", *map(str, UNMANNERED)]
        if tag and self.podman_runs(tag):
            inside = ["podman", "exec", "gleaner-test"]
            command = ["podman", "run", "--rm", "--name=gleaner-test", "--network=host", f"--env=GLEANER_MASTER={line}",
                       tag, *config["Cmd"], *flags]
        else:
            enter = [shutil.which("chroot"), f"--userspec={config['User']}", str(root)]
            inside = ["env", "-i", *config["Env"], *enter]
            command = ["env", "-i", f"GLEANER_MASTER={line}", *config["Env"], *enter, *config["Cmd"], *flags]
        volunteer = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        self.addCleanup(volunteer.wait)
        self.addCleanup(volunteer.kill)
        check = config["Healthcheck"]["Test"]
        self.assertEqual(check[0], "CMD")
        deadline = time.monotonic() + 60 * TIME_FACTOR
        while output_of(*inside, *check[1:]).returncode != 0:
            self.assertLess(time.monotonic(), deadline, "the volunteer never was healthy")
            self.assertIsNone(volunteer.poll(), "the volunteer ended")
            time.sleep(0.2)
        digest = finished(master)["digest"]
        self.assertEqual(volunteer.wait(60 * TIME_FACTOR), 0)
        self.assertNotEqual(output_of(*inside, *check[1:]).returncode, 0)
        self.assertEqual(digest, setup.run_local(self.cluster, self.cluster.path("calm"))["digest"])

    def load(self):
        """The image's name, once podman has it with its health check; None where there is no podman."""
        try:
            loaded = output_of("podman", "load", f"--input={self.archive}")
        except FileNotFoundError:
            return None
        if loaded.returncode != 0:
            return None
        tag = loaded.stdout.split()[-1]
        self.addCleanup(output_of, "podman", "image", "rm", "--force", tag)
        inspected = json.loads(output_of("podman", "image", "inspect", tag).stdout)[0]
        self.assertEqual(inspected["Healthcheck"]["Test"], ["CMD", "gleaner-volunteer", "status"])
        return tag


if __name__ == "__main__":
    unittest.main()
