#!/usr/bin/env python3
"""Gleaner beside dense data-parallel training over the same links, the same network and batch.

    sudo python3 tests/net/against_torch.py                     # 670,091 labels, 1 Gbit/s and 100 Mbit/s
    sudo python3 tests/net/against_torch.py --links 1000/0

PyTorch's DistributedDataParallel with gloo and Adam, two processes, against a master and two volunteers, every
process of one thread on a host of its own (hosts.py), on this machine's cores. Both read the same generated
examples. PyTorch trains all neurons of every example and Gleaner a sample, and no accuracy is measured: the
figures compare moved and computed data, not the cost of a model. Bytes are the kernel's counts for a worker's
host. Exit status 77: this machine cannot make such hosts or has no PyTorch (apt-get install python3-torch), and
says so.
"""

import argparse
import importlib.util
import pathlib
import subprocess
import sys

from hosts import Hosts, why_not
from measure import DELAY_LINK, SKIPPED, parse_links, prepare, train_over

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "e2e"))

from harness import Cluster  # noqa: E402

WORKER = pathlib.Path(__file__).resolve().parent / "torch_worker.py"
PYTHON = "/usr/bin/python3"  # Debian's, which python3-torch is for
PROCESSES = 2


def options_of():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("--labels", type=int, default=670_091)
    parser.add_argument("--features", type=int, default=135_909)
    parser.add_argument("--points", type=int, default=280_000)
    parser.add_argument("--batch", type=int, default=256)
    parser.add_argument("--steps", type=int, default=3, help="of PyTorch that are timed")
    parser.add_argument("--links", type=parse_links, default="1000/0,100/0",
                        help="cables as Mbit/s (0: unshaped) / round trip in ms (default %(default)s)")
    parser.add_argument("--staleness", type=int, default=8)
    return parser.parse_args()


def has_torch():
    probe = subprocess.run([PYTHON, "-c", "import torch"], capture_output=True, check=False)
    return probe.returncode == 0


def torch_over(train, rate, round_trip_ms, options):
    """Examples a second of all processes, and bytes an example of one of them both ways."""
    with Hosts(DELAY_LINK) as hosts:
        away = [hosts.add(rate, round_trip_ms / 2) for _ in range(PROCESSES)]
        workers = [subprocess.Popen(
            [*hosts.on(host), PYTHON, str(WORKER), "--train", str(train), "--rank", str(rank), "--processes",
             str(PROCESSES), "--meet", f"{hosts.address(away[0])}:29500", "--batch", str(options.batch),
             "--steps", str(options.steps)], stdout=subprocess.PIPE, text=True)
            for rank, host in enumerate(away)]
        speeds = [worker.communicate()[0] for worker in workers]
        if any(worker.returncode != 0 for worker in workers):
            raise RuntimeError("a process of PyTorch failed")
        counted = hosts.bytes_on_the_wire(away[0])
    # The parameters, which the first process sends once, are among the bytes.
    return float(speeds[0]), sum(counted) / ((options.steps + 1) * options.batch)


def main():
    options = options_of()
    reason = why_not() or (None if has_torch() else "Debian's Python has no PyTorch: install python3-torch")
    if reason is not None:
        print(f"skipped: {reason}")
        return SKIPPED
    options.train = options.test = None
    options.volunteers, options.epochs = PROCESSES, 1
    # Four rounds, as many as the recipe would make of these points; the first is not timed.
    options.master_flags = ["--batch-examples", options.batch, "--staleness", options.staleness,
                            "--round-batches", options.points // options.batch // 4 + 1]
    with Cluster() as cluster:
        setup = prepare(cluster, options)
        print(f"{'link':<24}{'PyTorch/s':>11}{'B an example':>14}{'Gleaner/s':>11}{'B an example':>14}{'ratio':>8}",
              flush=True)
        for number, (rate, round_trip) in enumerate(options.links):
            dense, dense_bytes = torch_over(setup.train, rate, round_trip, options)
            row = train_over(cluster, setup, rate, round_trip, options, number)
            link = f"{rate:g} Mbit/s, " if rate else "unshaped, "
            print(f"{link + f'{round_trip:g} ms':<24}{dense:>11.1f}{dense_bytes:>14,.0f}{row['speed']:>11,.0f}"
                  f"{row['down'] + row['up']:>14,.0f}{row['speed'] / dense:>8.0f}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
