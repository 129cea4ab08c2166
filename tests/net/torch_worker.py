#!/usr/bin/env python3
"""One process of a dense data-parallel run, started by against_torch.py: Gleaner's network, DistributedDataParallel
over gloo, Adam. Prints the examples per second of all processes, and its own bytes.
"""

import argparse
import os
import pathlib
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "bench"))

import torch  # noqa: E402
from torch_compare import Network, Points  # noqa: E402


def options_of():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("--train", required=True)
    parser.add_argument("--rank", type=int, required=True)
    parser.add_argument("--processes", type=int, required=True)
    parser.add_argument("--meet", required=True, help="HOST:PORT of the first process")
    parser.add_argument("--batch", type=int, default=256, help="of all processes together")
    parser.add_argument("--hidden", type=int, default=128)
    parser.add_argument("--steps", type=int, default=3, help="timed steps, after an untimed first step")
    return parser.parse_args()


def main():
    options = options_of()
    os.environ["GLOO_SOCKET_IFNAME"] = "eth0"
    torch.set_num_threads(1)
    torch.distributed.init_process_group("gloo", init_method=f"tcp://{options.meet}", rank=options.rank,
                                         world_size=options.processes)
    share = options.batch // options.processes
    points = Points(options.train, (options.steps + 1) * options.batch)
    torch.manual_seed(1)
    network = torch.nn.parallel.DistributedDataParallel(Network(points, options.hidden))
    adam = torch.optim.Adam(network.parameters(), lr=1e-3)
    begun = 0.0
    for step in range(options.steps + 1):
        if step == 1:
            torch.distributed.barrier()
            begun = time.monotonic()
        first = step * options.batch + options.rank * share
        features, values, offsets, targets = points.batch(list(range(first, first + share)))
        adam.zero_grad(set_to_none=True)
        logits = network(features, values, offsets)
        loss = torch.nn.functional.binary_cross_entropy_with_logits(logits, targets, reduction="sum")
        (loss / share).backward()
        adam.step()
    torch.distributed.barrier()
    print(options.steps * options.batch / (time.monotonic() - begun), flush=True)


if __name__ == "__main__":
    main()
