"""The cost of links: the same run over cables of several rates and delays, in one table.

    sudo python3 tests/net/measure.py                                    # a generated set, the default cables
    sudo python3 tests/net/measure.py --train T --test T --links 0/0,100/50 -- --staleness 4

Master and volunteers each have a host of their own (hosts.py) on this machine, whose cores they share. The
columns: examples per second after the first round; bytes per example and volunteer by the kernel's counters
(headers, downloads, commits and heartbeats included); bytes of work units; the commits' fraction of all messages;
the master's accounts over the kernel's count without headers; processor time of all programs; processor time of the
simulated cables; whether the model is the first row's to the bit. Exit status 0: every row has the first row's
model, and accounts are right within 5 %; 1: not so, or a run failed; 77: this machine cannot make such hosts, and why.
"""

import argparse
import json
import os
import pathlib
import resource
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "e2e"))

from harness import BIN, Cluster, Setup, finished  # noqa: E402
from hosts import Hosts, why_not  # noqa: E402

DELAY_LINK = BIN.parent / "tests/delay_link"
PORT = 7070
RUN_SECONDS = 3600
SKIPPED = 77
ACCOUNTS_OFF_MOST = 0.05


def parse_links(text):
    """RATE/ROUND_TRIP,... in Mbit/s (0: unshaped) and ms."""
    links = []
    for item in text.split(","):
        rate, slash, round_trip = item.partition("/")
        if not slash:
            raise argparse.ArgumentTypeError(f"'{item}' is not RATE/ROUND_TRIP, as in 100/50")
        links.append((float(rate), float(round_trip)))
    return links


def options_of(arguments):
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("--train", type=pathlib.Path, help="training file (default: generated)")
    parser.add_argument("--test", type=pathlib.Path, help="held-out file")
    parser.add_argument("--points", type=int, default=20_000, help="of the generated set")
    parser.add_argument("--features", type=int, default=20_000, help="of the generated set")
    parser.add_argument("--labels", type=int, default=50_000, help="of the generated set")
    parser.add_argument("--volunteers", type=int, default=2, help="of one thread each")
    parser.add_argument("--links", type=parse_links, default="0/0,1000/0,100/50,10/50",
                        help="cables as Mbit/s (0: unshaped) / round trip in ms (default %(default)s)")
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("master_flags", nargs="*", metavar="-- FLAGS", help="further flags of gleaner-master")
    options = parser.parse_args(arguments)
    if (options.train is None) != (options.test is None):
        parser.error("--train and --test go together")
    return options


def prepare(cluster, options):
    train, test = options.train, options.test
    if train is None:
        train, test = cluster.path("train.txt"), cluster.path("test.txt")
        cluster.gleaner("dataset", "synth", "--train", train, "--test", test, "--points", options.points,
                        "--test-points", 500, "--features", options.features, "--labels",
                        options.labels, "--seed", 1)
    flags = ["--epochs", options.epochs, "--seed", 1, "--evaluate-every", 0, *options.master_flags]
    return Setup(train.resolve(), test.resolve(), flags)


def number_or_dash(value, width):
    """A round that took no time to speak of has no bytes of units either."""
    return f"{'-' if value is None else round(value):>{width}}"


def processor_seconds():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def watch(master):
    """Follows a run to its last checkpoint: the first and the last checkpoint's events, and when how many batches
    were done."""
    first = last = None
    seen = []
    while master.is_running() and (last is None or last["checkpoint"] < last["rounds"]):
        for event in master.new_events():
            if event["event"] == "progress":
                seen.append((time.monotonic(), event["batch"]))
            elif event["event"] == "checkpoint":
                first, last = first or event, event
        time.sleep(0.005)
    return first, last, seen


def speed_between(seen, begin, end):
    """Batches a second while at least `begin` and less than `end` were done: news of the end come up to a second late.
    Not a number where a run is too short to be seen twice."""
    inside = [(when, batches) for when, batches in seen if begin <= batches < end]
    if len(inside) < 2:
        return float("nan")
    (start, first), (stop, last) = inside[0], inside[-1]
    return (last - first) / (stop - start)


def train_over(cluster, setup, rate, round_trip_ms, options, number):
    """One run; returns its row."""
    store = cluster.path(f"store-{number}")
    with Hosts(DELAY_LINK) as hosts:
        home = hosts.add(rate)
        away = [hosts.add(rate, round_trip_ms / 2) for _ in range(options.volunteers)]
        master = setup.start_master(
            cluster, store, "--listen", f"{hosts.address(home)}:{PORT}", "--threads", 1,
            "--min-volunteers", options.volunteers, before=hosts.on(home))
        started = master.wait_event("started")
        master.wait_event("listening")
        volunteers = [cluster.volunteer(f"{hosts.address(home)}:{PORT}", before=hosts.on(host))
                      for host in away]
        first, last, seen = watch(master)
        end = finished(master, RUN_SECONDS)
        for volunteer in volunteers:
            volunteer.wait_exit()
        counted = [hosts.bytes_on_the_wire(host) for host in away]
        messages = sum(sum(hosts.bytes_of_messages(host)) for host in away)
        cables = hosts.cable_seconds()
    accounts = json.loads(cluster.gleaner("inspect", store, "traffic", "--json"))
    examples = started["points"] * started["epochs"]
    return {
        "rate": rate, "round_trip": round_trip_ms, "digest": end["digest"],
        "speed": speed_between(seen, first["batches"], last["batches"]) * started["batch_examples"],
        "down": sum(c[0] for c in counted) / examples / len(counted),
        "up": sum(c[1] for c in counted) / examples / len(counted),
        "unit_down": last["bytes_down"], "unit_up": last["bytes_up"],
        "commits": accounts["commit_share"],
        "accounts": sum(entry["bytes"] for entry in accounts["traffic"]) / messages,
        "p_at_1": end["p_at_1"], "staleness": started["staleness"], "cables": cables,
    }


def main(arguments):
    options = options_of(arguments)
    reason = why_not()
    if reason is not None:
        print(f"skipped: {reason}")
        return SKIPPED
    if not DELAY_LINK.is_file():
        print(f"{DELAY_LINK} does not exist: build it, or set GLEANER_BIN", file=sys.stderr)
        return 1
    rows = []
    with Cluster() as cluster:
        setup = prepare(cluster, options)
        print(f"{'link':<24}{'examples/s':>11}{'share':>8}{'B down':>9}{'B up':>9}{'units':>13}"
              f"{'commits':>9}{'accounts':>10}{'CPU s':>8}{'cables':>8}{'P@1':>8}  model", flush=True)
        for number, (rate, round_trip) in enumerate(options.links):
            before = processor_seconds()
            row = train_over(cluster, setup, rate, round_trip, options, number)
            rows.append(row)
            link = f"{rate:g} Mbit/s, " if rate else "unshaped, "
            same = row["digest"] == rows[0]["digest"]
            print(f"{link + f'{round_trip:g} ms':<24}{row['speed']:>11,.0f}"
                  f"{row['speed'] / rows[0]['speed']:>8.2f}{row['down']:>9.0f}{row['up']:>9.0f}"
                  f"{number_or_dash(row['unit_down'], 7)} {number_or_dash(row['unit_up'], 5)}"
                  f"{100 * row['commits']:>7.1f} %{row['accounts']:>10.3f}"
                  f"{processor_seconds() - before:>8.1f}{row['cables']:>8.1f}{row['p_at_1']:>8.4f}"
                  f"  {row['digest'][:16]}{'' if same else ' DIFFERS'}", flush=True)
    print(f"lag {rows[0]['staleness']} batches; B down, B up: on the wire, an example and volunteer; units: of "
          f"work units alone; {os.cpu_count()} cores for all")
    is_right = all(row["digest"] == rows[0]["digest"] and abs(row["accounts"] - 1) <= ACCOUNTS_OFF_MOST
                   for row in rows)
    return 0 if is_right else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
