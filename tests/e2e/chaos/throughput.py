"""The cost of churn: examples per second with volunteers that are killed and replaced, against calm."""

import random
import statistics
import time

from harness import Cluster

LIVES = (None, 60, 10)  # mean seconds of a volunteer's life; None: nobody is killed
REPEATS = 3             # interleaved, so that whatever else the machine does befalls all alike
TICK_SECONDS = 0.02


def examples_per_second(cluster, setup, options, life, draw):
    """Over options.seconds from the first checkpoint that all volunteers trained."""
    store = cluster.path(f"throughput-{draw.random()}")
    master = setup.with_flag("--epochs", 100_000).start_master(
        cluster, store, "--listen", "127.0.0.1:0", "--threads", 1, "--evaluate-every", 0,
        "--min-volunteers", options.volunteers)
    started = master.wait_event("started")
    address = master.wait_event("listening")["address"]
    volunteers = [cluster.volunteer(address) for _ in range(options.volunteers)]
    first = master.wait_event("checkpoint")
    begun = time.monotonic()
    last, reached, kills = first, begun, 0
    death = begun + draw.expovariate(options.volunteers / life) if life else float("inf")
    while time.monotonic() < begun + options.seconds:
        if time.monotonic() >= death:
            victim = draw.randrange(len(volunteers))
            cluster.forget(volunteers[victim])
            volunteers[victim] = cluster.volunteer(address)
            death += draw.expovariate(options.volunteers / life)
            kills += 1
        for event in master.new_events():
            if event["event"] == "checkpoint":
                last, reached = event, time.monotonic()
        time.sleep(TICK_SECONDS)
    for program in (master, *volunteers):
        cluster.forget(program)
    examples = (last["batches"] - first["batches"]) * started["batch_examples"]
    return examples / (reached - begun) if reached > begun else 0.0, kills


def measure_throughput(options, make_setup):
    """Prints a line a run and the ratios; returns the exit status."""
    draw = random.Random(options.seed)
    speeds = {life: [] for life in LIVES}
    with Cluster() as cluster:
        setup = make_setup(cluster, options.data)
        for _ in range(REPEATS):
            for life in LIVES:
                speed, kills = examples_per_second(cluster, setup, options, life, draw)
                speeds[life].append(speed)
                name = f"mean life {life} s" if life else "calm"
                print(f"{name:<20}{speed:10.0f} examples/s  {kills:4} killed", flush=True)
    calm = statistics.median(speeds[None])
    for life in LIVES[1:]:
        share = statistics.median(speeds[life]) / calm
        print(f"mean life {life} s: {100 * share:.0f} % of calm (medians of {REPEATS})")
    return 0
