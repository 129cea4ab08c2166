#!/usr/bin/env python3
"""The same small task under the same kills: Gleaner beside trainers that restart from checkpoints.

  under_kills.py                      generated data, three workers, one of two killed every 15 s, three times
  under_kills.py --train T --test T   other data, in the format of the Extreme Classification Repository
  under_kills.py --only gleaner --epochs 600   one of them, for as long as the others take
  under_kills.py --tiny               seconds, so that it cannot rot; only Gleaner is killed

PyTorch: a dense network of the same shape over DistributedDataParallel and gloo, under `torchrun`, which
restarts the present processes when one goes, from a checkpoint of every --save-every steps. Its first
worker, whose agent is the meeting point, is never killed, nor is Gleaner's master; tools/chaos kills that too. fastText keeps no checkpoints: it trains the same task with one thread and with two, and nobody
kills it.

Every trainer's workers have one thread. The time to the end says how much longer the kills make a trainer's
own calm run; the times of different trainers do not compare, because they train different networks. Work
lost is the trained steps over the needed steps, less one. Needs Debian's python3-torch and fasttext; says
which of them is missing and leaves it out.
"""

import argparse
import hashlib
import pathlib
import random
import shutil
import signal
import statistics
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "e2e"))

from harness import Cluster, Setup, finished, free_port, small_setup  # noqa: E402

PYTHON = "/usr/bin/python3"  # Debian's, which python3-torch is for
WORKERS = 3
BACK_AFTER_SECONDS = 1
LIMIT_SECONDS = 1200


def options_of():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("--train")
    parser.add_argument("--test")
    parser.add_argument("--epochs", type=int, default=60)
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--hidden", type=int, default=64)
    parser.add_argument("--kill-every", type=float, default=15, metavar="SECONDS")
    parser.add_argument("--save-every", type=int, default=50, metavar="STEPS", help="of PyTorch")
    parser.add_argument("--repeats", type=int, default=3, help="runs with kills")
    parser.add_argument("--seed", type=int, default=1, help="of the kills")
    parser.add_argument("--only", choices=("gleaner", "torch", "fasttext"), help="leave the other trainers out")
    parser.add_argument("--tiny", action="store_true")
    return parser.parse_args()


class Kills:
    """When which worker is killed, the same for every trainer: all but the first, which stays."""

    def __init__(self, seed, every):
        self._draw, self._every = random.Random(seed), every
        self.count = 0
        self._begun = time.monotonic()
        self._next = self._begun + every

    def due(self):
        """The worker to kill now, or None."""
        if time.monotonic() < self._next:
            return None
        self._next += self._every
        self.count += 1
        return self._draw.randrange(1, WORKERS)


def sha256(path):
    return hashlib.sha256(pathlib.Path(path).read_bytes()).hexdigest()


def under_kills(kills, is_over, start, kill):
    """Runs until is_over(): start(i) a worker, kill(i) one; returns the seconds. TimeoutError: it takes
    longer than LIMIT_SECONDS."""
    begun = time.monotonic()
    back = {}
    for worker in range(WORKERS):
        start(worker)
    while not is_over():
        now = time.monotonic()
        if now > begun + LIMIT_SECONDS:
            raise TimeoutError
        for worker in [worker for worker, at in back.items() if at <= now]:
            del back[worker]
            start(worker)
        worker = kills.due() if kills else None
        if worker is not None and worker not in back:
            kill(worker)
            back[worker] = now + BACK_AFTER_SECONDS
        time.sleep(0.02)
    return time.monotonic() - begun


def gleaner(cluster, setup, _options, kills, name):
    store = cluster.path(f"gleaner-{name}")
    master = setup.start_master(cluster, store, "--listen", "127.0.0.1:0", "--threads", 1)
    address = master.wait_event("listening")["address"]
    volunteers = {}

    def start(worker):
        volunteers[worker] = cluster.volunteer(address, "--cache", cluster.path(f"cache-{name}-{worker}"))

    seconds = under_kills(kills, lambda: not master.is_running(), start,
                          lambda worker: cluster.forget(volunteers.pop(worker)))
    end = finished(master)
    for volunteer in volunteers.values():
        cluster.forget(volunteer)
    return seconds, end["digest"], None


def torch(cluster, setup, options, kills, name):
    folder = cluster.path(f"torch-{name}")
    folder.mkdir()
    port, agents = free_port(), {}

    def start(worker):
        log = open(folder / f"agent-{worker}.log", "ab")
        agents[worker] = subprocess.Popen(
            [PYTHON, "-m", "torch.distributed.run", f"--nnodes=1:{WORKERS}", "--nproc_per_node=1",
             "--rdzv_backend=c10d", f"--rdzv_endpoint=127.0.0.1:{port}", "--rdzv_id=run", "--max_restarts=10000",
             # Debian's PyTorch does not find the default of these, 0, under its Python.
             "--monitor_interval=0.2", "--redirects=1", "--tee=2", f"--log_dir={folder / 'logs'}",
             f"--rdzv_conf=is_host={int(worker == 0)},last_call_timeout=1,join_timeout=600",
             str(HERE / "elastic_worker.py"), "--train", str(setup.train), "--folder", str(folder),
             "--epochs", str(options.epochs), "--batch", str(options.batch), "--hidden", str(options.hidden),
             "--save-every", str(options.save_every)],
            stdout=log, stderr=log, start_new_session=True)
        log.close()

    def kill(worker):
        # The agent and the process that it started, as when a machine goes.
        processes = subprocess.run(["pgrep", "-P", str(agents[worker].pid)], capture_output=True, text=True,
                                   check=False).stdout.split()
        subprocess.run(["kill", "-KILL", str(agents[worker].pid), *processes], check=False,
                       stderr=subprocess.DEVNULL)
        agents.pop(worker).wait()

    model = folder / "model.pt"
    try:
        def is_over():
            if model.exists():
                return True
            # An agent gives up when another goes while they meet; then somebody starts it again.
            for worker in [worker for worker, agent in agents.items() if agent.poll() is not None]:
                kill(worker)
                start(worker)
            return False

        seconds = under_kills(kills, is_over, start, kill)
    finally:
        for worker in list(agents):
            kill(worker)
    trained = sum(1 for _ in open(folder / "steps", encoding="ascii"))
    needed = int((folder / "needed").read_text())
    return seconds, sha256(model), trained / needed - 1


def fasttext(cluster, setup, options, threads, name):
    text, model = cluster.path("fasttext.txt"), cluster.path(f"fasttext-{name}")
    with open(setup.train, encoding="utf-8") as lines, open(text, "w", encoding="utf-8") as words:
        next(lines)
        for line in lines:
            labels, _, rest = line.rstrip("\n").partition(" ")
            words.write(" ".join(f"__label__{label}" for label in labels.split(",") if label) + " "
                        + " ".join("f" + pair.partition(":")[0] for pair in rest.split()) + "\n")
    begun = time.monotonic()
    subprocess.run(["fasttext", "supervised", "-input", text, "-output", model, "-dim", str(options.hidden),
                    "-epoch", str(options.epochs), "-loss", "ova", "-thread", str(threads)], check=True,
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return time.monotonic() - begun, sha256(f"{model}.bin"), None


def row(name, runs, calm):
    seconds = statistics.median(run[0] for run in runs)
    lost = [run[2] for run in runs if run[2] is not None]
    print(f"| {name} | {len(runs)} | {len({run[1] for run in runs})} | {seconds:.1f} s | {seconds / calm:.2f} | "
          f"{f'{statistics.median(lost):.2f}' if lost else 'not counted'} |", flush=True)


def measure(name, train, cluster, setup, options, repeats):
    calm = train(cluster, setup, options, None, "calm")
    row(f"{name}, calm", [calm], calm[0])
    runs, killed = [], 0
    for repeat in range(repeats):
        kills = Kills(options.seed + repeat, options.kill_every)
        try:
            runs.append(train(cluster, setup, options, kills, f"kills-{repeat}"))
        except TimeoutError:
            print(f"| {name}, {kills.count} kills | 1 | none | more than {LIMIT_SECONDS} s | | |", flush=True)
        killed += kills.count
    if runs:
        row(f"{name}, {killed} kills", runs, calm[0])
    return {run[1] for run in [calm, *runs]}


def main():
    options = options_of()
    if options.tiny:
        options.epochs, options.repeats, options.kill_every = 2, 1, 1
    with Cluster() as cluster:
        setup = Setup(options.train, options.test, []) if options.train else small_setup(cluster)
        flags = ["--epochs", options.epochs, "--seed", 5, "--hidden", options.hidden, "--batch-examples", options.batch]
        setup = Setup(setup.train, setup.test, flags)
        print("| trainer | runs | different models | time | over calm | work lost |\n|---|---|---|---|---|---|")
        digests = set()
        if options.only in (None, "gleaner"):
            digests = measure("Gleaner", gleaner, cluster, setup, options, options.repeats)
        if options.only in (None, "torch"):
            if subprocess.run([PYTHON, "-c", "import torch"], capture_output=True, check=False).returncode == 0:
                measure("PyTorch", torch, cluster, setup, options, 0 if options.tiny else options.repeats)
            else:
                print("left out: Debian's Python has no PyTorch: install python3-torch")
        if options.only in (None, "fasttext"):
            if shutil.which("fasttext"):
                runs = [fasttext(cluster, setup, options, threads, f"{threads}-{run}")
                        for threads in (1, 2) for run in range(2)]
                row("fastText, one thread and two, nobody killed", runs, runs[0][0])
            else:
                print("left out: no fastText: install fasttext")
    return 0 if len(digests) <= 1 else 1


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    sys.exit(main())
