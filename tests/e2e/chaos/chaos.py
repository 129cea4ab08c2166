"""Trains once in peace and once in a storm, and compares the two models to the bit.

The storm: a master and volunteers as real processes, joined by a proxy that cuts and stalls
connections at random bytes. A volunteer is killed or spawned every 0.1 to 0.5 s, the master is killed
every 5 to 15 s and started again, volunteers are frozen for longer than the master's patience. Then
it is calm until the run is finished. The run must have the calm run's digest, and must never have stood
still for more than 30 s while a volunteer was there. No process or file may be left over, no memory may have
grown.

The seed chooses each fault and its time. Real processes share real time, so the same seed twice gives a
similar storm, not the same one.
The run's length fits the storm: each life of the master has more epochs before it than it can train, which
is legitimate, because a run may be trained further. Environment: as harness.py.
"""

import argparse
import pathlib
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from harness import RUN_SECONDS, Cluster, Setup, finished, small_setup  # noqa: E402
from storm import STANDSTILL_SECONDS_MAX, Storm  # noqa: E402
from throughput import measure_throughput  # noqa: E402

CALM_EPOCHS = 4  # trained first, to learn the speed


def make_setup(cluster, data):
    """The run to train: on generated data, or on a folder with train.txt and test.txt."""
    if data is None:
        return small_setup(cluster, flags=["--evaluate-every", 10])
    parts = []
    for name in ("train", "test"):
        found = sorted(path for path in data.glob(name + ".txt*") if path.suffix in (".txt", ".gz", ".zst"))
        if not found:
            sys.exit(f"chaos: {data} has no {name}.txt, {name}.txt.gz or {name}.txt.zst")
        parts.append(found[0])
    return Setup(*parts, ["--epochs", 1, "--seed", 1, "--round-batches", 16,
                          "--cache-dir", cluster.path("cache")])


def train_in_peace(cluster, setup, epochs, seconds=RUN_SECONDS):
    """Trains up to `epochs` epochs; returns the master's first event and its last, in one."""
    master = setup.with_flag("--epochs", epochs).start_master(cluster, cluster.path("calm"),
                                                              "--local", 1, "--threads", 1)
    end = finished(master, seconds)
    return {**(master.events("started") or [{}])[0], **end}


def storm(options):
    """Returns the rows of the report and the sentences about what does not hold."""
    with Cluster() as cluster:
        setup = make_setup(cluster, options.data)
        calm = train_in_peace(cluster, setup, CALM_EPOCHS)
        run = Storm(cluster, setup, options, calm)
        started = time.monotonic()
        try:
            run.start()
            run.rage()
            at_end = run.standstill.checkpoint
            calmed = time.monotonic()
            event = None if run.has_failed() else run.calm_down()
        finally:
            run.close()
        rows = {"seed": options.seed, "volunteers": len(run.slots),
                "storm": f"{calmed - started:.0f} s", **run.counts,
                "connections": run.proxy.connections, "connections cut": run.proxy.cuts,
                "connections left half open": run.proxy.half_opens,
                "directions stalled": run.proxy.stalls,
                "checkpoints in the storm": at_end,
                "longest standstill": f"{run.standstill.longest:.1f} s (at most "
                                      f"{STANDSTILL_SECONDS_MAX:.0f} s)",
                "longest time without a checkpoint": f"{run.standstill.longest_without_checkpoint:.1f} s",
                **{growth.name: growth for growth in run.growths}}
        if event:
            rows["calm until the end"] = f"{time.monotonic() - calmed:.0f} s"
            rows["checkpoints"], rows["epochs"] = event["checkpoint"], event["epochs"]
            run.look_for_remains()
            expected = train_in_peace(cluster, setup, run.epochs,
                                      RUN_SECONDS + 2 * (calmed - started))["digest"]
            rows["digest, storm"], rows["digest, calm"] = event["digest"], expected
            if event["digest"] != expected:
                run.failures.append("the storm's model is not the calm run's")
        return rows, run.failures


def main():
    parser = argparse.ArgumentParser(prog="chaos", description=__doc__.split("\n\n", maxsplit=1)[0],
                                     epilog="\n".join(__doc__.split("\n\n")[1:]),
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=60, metavar="N", help="of storm (60)")
    parser.add_argument("--seed", type=int, default=1, metavar="S", help="of everything random (1)")
    parser.add_argument("--volunteers", type=int, default=8, metavar="N", help="machines (8)")
    parser.add_argument("--trace", type=pathlib.Path, metavar="FILE",
                        help="volunteers come and go as machines did: lines `seconds,machines`")
    parser.add_argument("--speed", type=float, default=60, metavar="N",
                        help="how many of the trace's seconds pass in one (60)")
    parser.add_argument("--data", type=pathlib.Path, metavar="FOLDER",
                        help="with train.txt and test.txt, plain or compressed (generated data)")
    parser.add_argument("--log", type=argparse.FileType("w"), metavar="FILE",
                        help="write every event of the masters and of the storm there, with its time")
    parser.add_argument("--throughput", action="store_true",
                        help="measure instead what churn costs: examples a second, calm and with "
                             "volunteers that are killed after 60 s and after 10 s on average")
    options = parser.parse_args()
    if options.throughput:
        sys.exit(measure_throughput(options, make_setup))
    rows, failures = storm(options)
    for name, value in rows.items():
        print(f"{name:<42}{value}")
    for failure in failures:
        print("FAILED:", failure)
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
