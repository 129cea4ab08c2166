"""The files and refusals of `gleaner launch`; the systems' own parsers read the files where there are any."""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "e2e"))

from harness import BIN, TIME_FACTOR  # noqa: E402

SECRET = "ncqnlpj5sqmlobkv4s3stcxo4c2bqf536y"
LINE = f"gleaner://h:7070/u5zrea2vuu2gekrayclbd44ede.{SECRET}"
CONFIG = '[data]\ntrain = "/data/train.txt"\n\n[run]\nstore = "/var/lib/gleaner/run"\n[network]\nlisten = "0.0.0.0:7171"\n'
TARGETS = {"slurm": [], "kubernetes": ["--image", "site/gleaner:1"], "condor": [], "systemd": [],
           "ssh": ["--hosts", "alpha,beta"]}
MASTERS = ("slurm", "kubernetes", "systemd")


def documents(text):
    """The documents of a YAML stream by kind."""
    try:
        import yaml
    except ImportError as error:
        raise unittest.SkipTest("Debian's python3-yaml is missing") from error
    return {document["kind"]: document for document in yaml.safe_load_all(text)}


def leaves(value, path=()):
    """Every scalar of a document, with the names that lead to it."""
    if isinstance(value, (dict, list)):
        items = value.items() if isinstance(value, dict) else enumerate(value)
        for name, item in items:
            yield from leaves(item, (*path, name))
    else:
        yield path, value


class Launch(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        self.line = self.folder / "my-line"
        self.line.write_text(LINE + "\n")
        self.line.chmod(0o600)
        self.config = self.folder / "run.toml"
        self.config.write_text(CONFIG)

    def launch(self, *arguments, environment=None):
        return subprocess.run([BIN / "gleaner", "launch", *map(str, arguments)], capture_output=True, text=True,
                              cwd=self.folder, timeout=60, check=False, env={**os.environ, **(environment or {})})

    def text(self, target, *arguments):
        done = self.launch(target, *arguments, *TARGETS[target])
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        return done.stdout

    def document(self, *arguments):
        return json.loads(self.text(*arguments, "--json"))


class Secrets(Launch):
    def test_the_invite_is_in_secret_files_alone(self):
        for target in TARGETS:
            with self.subTest(target):
                self.assertNotIn(SECRET, self.text(target, self.line))
                out = self.folder / target
                told = self.document(target, LINE, "--output", out)
                self.assertNotIn(SECRET, json.dumps(told))
                holders = {path.name for path in out.iterdir() if SECRET in path.read_text()}
                self.assertEqual(holders, {"secret.yaml" if target == "kubernetes" else "line"})
                for name in holders:
                    self.assertEqual((out / name).stat().st_mode & 0o777, 0o600)
                    self.assertIsNone(told["files"][name])

    def test_a_line_without_a_folder_for_it_is_refused(self):
        done = self.launch("slurm", LINE)
        self.assertEqual((done.returncode, done.stdout), (2, ""))
        self.assertIn("--output DIR", done.stderr)
        self.assertNotIn(SECRET, done.stderr)

    def test_a_line_that_everybody_may_read_is_refused(self):
        self.line.chmod(0o644)
        done = self.launch("slurm", self.line)
        self.assertEqual(done.returncode, 1)
        self.assertIn("chmod 600", done.stderr)


class Usage(Launch):
    def test_what_cannot_be_is_refused_with_a_remedy(self):
        for arguments, part in (
            (("slurm", self.line, "--volunteers", 4, "--jobs", 3, "--time", "1h"), "must not be below"),
            (("slurm", self.line, "--jobs", 3), "--jobs needs --time"),
            (("systemd", self.line, "--jobs", 3), "--jobs has no meaning"),
            (("slurm", self.line, "--time", "2m"), "3m or more"),
            (("slurm", self.line, "--memory", "255M"), "256M or more"),
            (("slurm", self.line, "--memory", "lots"), "such as 8G"),
            (("slurm", self.line, "--partition", "a b"), "letters, digits"),
            (("slurm", self.line, "--program", "x;y"), "letters, digits"),
            (("slurm", self.line, "--hosts", "a"), "--hosts is for ssh"),
            (("slurm", self.line, "--submit"), "--submit needs --output"),
            (("ssh", self.line), "give --hosts"),
            (("ssh", self.line, "--hosts=-oProxyCommand=x"), "letters, digits"),
            (("kubernetes", self.line), "give --image"),
            (("ssh", self.config, "--master", "--hosts", "a"), "volunteers only"),
            (("slurm", self.config, "--master", "--volunteers", 2), "one master"),
            (("slurm", self.config, "--master", "--hosts", "a,b"), "runs on one"),
            (("slurm", self.line, "--master"), "my-line"),
            (("cron", self.line), "cron"),
        ):
            done = self.launch(*arguments)
            self.assertEqual((done.returncode, done.stdout), (2, ""), arguments)
            self.assertIn(part, done.stderr, arguments)

    def test_a_master_without_a_port_is_refused(self):
        self.config.write_text(CONFIG.replace("0.0.0.0:7171", "0.0.0.0:0"))
        done = self.launch("slurm", self.config, "--master")
        self.assertEqual(done.returncode, 2)
        self.assertIn("network.listen", done.stderr)

    def test_commands_that_submit_run_in_the_folder_and_their_failure_is_told(self):
        tools = self.folder / "bin"
        tools.mkdir()
        sbatch = tools / "sbatch"
        sbatch.write_text('#!/bin/sh\necho "$@" in $(pwd)\ntest -f line && exit ${STATUS}\n')
        sbatch.chmod(0o755)
        for status in (0, 3):
            environment = {"PATH": f"{tools}:{os.environ['PATH']}", "STATUS": str(status)}
            done = self.launch("slurm", self.line, "--output", "out", "--submit", environment=environment)
            self.assertIn(f"volunteers.sbatch in {self.folder.resolve()}/out", done.stdout)
            self.assertEqual(done.returncode, 1 if status else 0)
            self.assertEqual("status 3" in done.stderr, status == 3)
        done = self.launch("slurm", self.line, "--output", "out", "--submit", environment={"PATH": "/nowhere"})
        self.assertEqual(done.returncode, 1)
        self.assertIn("sbatch cannot be started", done.stderr)


class Files(Launch):
    def test_slurm(self):
        text = self.text("slurm", self.line, "--volunteers", 8, "--jobs", 48, "--cores", 4, "--memory", "8G",
                         "--time", "4h", "--partition", "spot", "--program", "/opt/gleaner-volunteer")
        words = dict(re.findall(r"^#SBATCH --([a-z-]+)=(\S+)$", text, re.MULTILINE))
        for name, value in {"array": "1-48%8", "cpus-per-task": "4", "mem": "8192M", "time": "240", "partition": "spot"}.items():
            self.assertEqual(words[name], value)
        self.assertIn("#SBATCH --requeue\n", text)
        self.assertTrue(text.endswith(f"exec /opt/gleaner-volunteer --line-file {self.line.resolve()} --once --give-up-s "
                                      "300 --leave-grace-s 20 --threads 4 --memory 4G --until "
                                      '"$(squeue -h -j "${SLURM_ARRAY_JOB_ID}_$SLURM_ARRAY_TASK_ID" -o %e)"\n'), text)
        master = self.text("slurm", self.config, "--master", "--jobs", 5, "--time", "1d", "--hosts", "big")
        self.assertIn("--array=1-5%1\n", master)
        self.assertIn("--signal=B:TERM@60\n", master)
        self.assertIn("--nodelist=big\n", master)
        for script in (text, master):
            subprocess.run(["bash", "-n"], input=script, text=True, check=True)

    def test_condor(self):
        text = self.text("condor", self.line, "--volunteers", 4, "--jobs", 40, "--time", "2h", "--memory", "3G")
        submit = dict(re.findall(r"^(\w+) = (.*)$", text, re.MULTILINE))
        for name, value in {"universe": "vanilla", "should_transfer_files": "YES", "kill_sig": "SIGTERM",
                            "transfer_input_files": str(self.line.resolve()), "request_memory": "3072M",
                            "max_materialize": "4"}.items():
            self.assertEqual(submit[name], value)
        self.assertIn("--line-file my-line ", submit["arguments"])  # as it is called after the transfer
        self.assertTrue(submit["arguments"].endswith(' --until 7200s"'), submit["arguments"])
        self.assertIn("> 7200", submit["periodic_remove"])
        self.assertTrue(text.endswith("queue 40\n"))
        if shutil.which("condor_submit"):
            done = subprocess.run(["condor_submit", "-dry-run", "-", "-"], input=text, text=True, check=False,
                                  capture_output=True)
            self.assertEqual(done.returncode, 0, done.stderr)

    @unittest.skipUnless(shutil.which("systemd-analyze"), "systemd-analyze is missing (Debian: systemd)")
    def test_systemd(self):
        self.document("systemd", self.line, "--output", "units", "--volunteers", 2, "--time", "8h")
        self.document("systemd", self.config, "--master", "--output", "units")
        volunteers = (self.folder / "units/gleaner-volunteer@.service").read_text()
        self.assertIn(" --until 28800s\n", volunteers)
        self.assertIn("RuntimeMaxSec=28800\n", volunteers)
        self.assertEqual(re.findall("ProtectHome=.*", volunteers), ["ProtectHome=read-only"])
        self.assertNotIn("Restart=", volunteers)  # it would begin again after its time
        self.assertIn(f"LoadCredential=line:{self.folder.resolve()}/units/line\n", volunteers)
        self.assertIn("Restart=on-failure\n", (self.folder / "units/gleaner-master.service").read_text())
        units = sorted((self.folder / "units").glob("*.service"))
        self.assertEqual(len(units), 2)
        for unit in units:
            done = subprocess.run(["systemd-analyze", "verify", unit], capture_output=True, text=True, check=False)
            self.assertEqual((done.returncode, done.stderr), (0, ""))
        done = subprocess.run(["systemd-analyze", "security", "--offline=yes", "--no-pager", "--threshold=20", units[1]],
                              capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stdout[-300:] + done.stderr)

    def test_systemd_shows_a_program_in_a_temporary_folder_to_its_service(self):
        unit = self.text("systemd", self.line, "--program", "/tmp/try/gleaner-volunteer")
        self.assertEqual(unit.count("ProtectHome="), 1)
        self.assertIn("BindReadOnlyPaths=/tmp/try/gleaner-volunteer\n", unit)

    def test_ssh(self):
        text = self.text("ssh", self.line, "--volunteers", 3, "--time", "2h")
        subprocess.run(["bash", "-n"], input=text, text=True, check=True)
        self.assertIn(" --once --until 7200s >", text)
        self.assertIn("  alpha 1\n  beta 2\n  alpha 3\n", text)
        (self.folder / "hosts").write_text("gamma\ndelta\n")
        self.assertIn("  gamma 1\n  delta 2\n)", self.launch("ssh", self.line, "--hosts", "hosts").stdout)


class Kubernetes(Launch):
    def test_volunteers(self):
        files = self.document("kubernetes", self.line, "--output", "k8s", "--volunteers", 20, "--cores", 4)["files"]
        found = documents(files["volunteers.yaml"])
        self.assertEqual(set(found), {"Deployment", "PodDisruptionBudget"})
        spec = found["Deployment"]["spec"]
        pod = spec["template"]["spec"]
        container = pod["containers"][0]
        self.assertEqual(spec["replicas"], 20)
        self.assertEqual(pod["terminationGracePeriodSeconds"], 15)
        self.assertEqual(container["resources"]["limits"], {"cpu": "4", "memory": "4096Mi"})
        self.assertEqual(container["env"], [{"name": "GLEANER_LINE_FILE", "value": "/run/secrets/gleaner/line"},
                                            {"name": "RUNTIME_DIRECTORY", "value": "/run/gleaner"}])
        self.check_probes(container)
        # A volunteer accepts a file that its group may read, and the group is the pod's.
        self.assertEqual(pod["volumes"][1]["secret"], {"secretName": "gleaner-line", "defaultMode": 0o440})
        self.assertEqual(pod["securityContext"]["fsGroup"], 65534)
        labels = spec["selector"]["matchLabels"]
        self.assertEqual(spec["template"]["metadata"]["labels"], labels)
        self.assertEqual(found["PodDisruptionBudget"]["spec"],
                         {"maxUnavailable": "50%", "selector": {"matchLabels": labels}})
        secret = documents((self.folder / "k8s/secret.yaml").read_text())["Secret"]
        self.assertEqual(secret["stringData"], {"line": LINE})
        self.check_with_kubectl(files["volunteers.yaml"], "Deployment")

    def check_probes(self, container):
        """Runs what the probes run, where a volunteer runs as the container has it and where none does."""
        (command,) = {tuple(container[kind]["exec"]["command"]) for kind in ("livenessProbe", "readinessProbe")}
        self.assertIn("/run/gleaner", [mount["mountPath"] for mount in container["volumeMounts"]])
        self.assertEqual(command[0], container["command"][0])
        environment = {"PATH": f"{BIN}:{os.environ['PATH']}", "RUNTIME_DIRECTORY": str(self.folder / "run"),
                       "GLEANER_LINE_FILE": str(self.line)}

        def probe():
            return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60, check=False)

        self.assertEqual(probe().returncode, 1)
        volunteer = subprocess.Popen([*container["command"], *container["args"]], env=environment,
                                     stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
        self.addCleanup(volunteer.wait)
        self.addCleanup(volunteer.kill)
        deadline = time.monotonic() + 60 * TIME_FACTOR
        while probe().returncode != 0:
            self.assertLess(time.monotonic(), deadline, probe().stderr)
            time.sleep(0.1)

    def test_master(self):
        text = self.text("kubernetes", self.config, "--master", "--data-claim", "posts")
        found = documents(text)
        self.assertEqual(set(found), {"ConfigMap", "Service", "StatefulSet"})
        self.assertEqual(found["ConfigMap"]["data"]["master.toml"], CONFIG)
        self.assertEqual(found["Service"]["spec"]["ports"][0]["port"], 7171)
        spec = found["StatefulSet"]["spec"]
        pod = spec["template"]["spec"]
        self.assertEqual(spec["serviceName"], found["Service"]["metadata"]["name"])
        mounts = {mount["name"]: mount["mountPath"] for mount in pod["containers"][0]["volumeMounts"]}
        self.assertEqual(mounts, {"store": "/var/lib/gleaner", "config": "/etc/gleaner", "data": "/data"})
        self.assertEqual(spec["volumeClaimTemplates"][0]["metadata"]["name"], "store")
        self.assertEqual(spec["volumeClaimTemplates"][0]["spec"]["resources"]["requests"], {"storage": "20480Mi"})
        self.assertEqual(pod["volumes"][1]["persistentVolumeClaim"]["claimName"], "posts")
        self.check_with_kubectl(text, "StatefulSet")

    def check_with_kubectl(self, text, kind):
        """kubectl reads the file into its own types without a cluster. It drops what it does not know, so
        that all that was written must be in what it prints."""
        if shutil.which("kubectl") is None:
            return
        (part,) = (part for part in text.split("---\n") if f"kind: {kind}\n" in part)
        done = subprocess.run(["kubectl", "set", "env", "--local", "-f", "-", "-o", "yaml", "ADDED=1"], input=part,
                              capture_output=True, text=True, check=False, env={**os.environ, "KUBECONFIG": "/dev/null"})
        self.assertEqual(done.returncode, 0, done.stderr)
        read = dict(leaves(documents(done.stdout)[kind]))
        for path, value in leaves(documents(text)[kind]):
            if path[-1] in ("memory", "storage"):
                self.assertIn(path, read)  # 4096Mi is printed as 4Gi
            else:
                self.assertEqual(read.get(path), value, path)


if __name__ == "__main__":
    unittest.main()
