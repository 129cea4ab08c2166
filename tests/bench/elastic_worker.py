#!/usr/bin/env python3
"""One worker of a dense data-parallel run under torchrun, started by under_kills.py. It resumes the newest
checkpoint of the folder and writes checkpoints. The finished model is FOLDER/model.pt; each trained step is a
line of FOLDER/steps.
"""

import argparse
import os
import pathlib

import torch
from torch_compare import Network, Points


def options_of():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("--train", required=True)
    parser.add_argument("--folder", type=pathlib.Path, required=True)
    for name in ("epochs", "batch", "hidden", "save-every"):
        parser.add_argument(f"--{name}", type=int, required=True)
    return parser.parse_args()


def save(state, path):
    """Whole or not at all."""
    torch.save(state, path.with_suffix(".new"))
    os.replace(path.with_suffix(".new"), path)


def main():
    options = options_of()
    torch.set_num_threads(1)
    torch.distributed.init_process_group("gloo")
    rank, workers = torch.distributed.get_rank(), torch.distributed.get_world_size()
    points = Points(options.train, None)
    torch.manual_seed(1)
    network = Network(points, options.hidden)
    adam = torch.optim.Adam(network.parameters(), lr=1e-3)
    checkpoint, step = options.folder / "checkpoint.pt", 0
    if checkpoint.exists():
        kept = torch.load(checkpoint)
        step = kept["step"]
        network.load_state_dict(kept["network"])
        adam.load_state_dict(kept["adam"])
    parallel = torch.nn.parallel.DistributedDataParallel(network)
    steps_an_epoch = len(points.labels) // options.batch
    needed = steps_an_epoch * options.epochs
    (options.folder / "needed").write_text(str(needed))
    while step < needed:
        generator = torch.Generator().manual_seed(step // steps_an_epoch)
        order = torch.randperm(len(points.labels), generator=generator)
        first = step % steps_an_epoch * options.batch
        batch = order[first:first + options.batch][rank::workers].tolist()
        features, values, offsets, targets = points.batch(batch)
        adam.zero_grad(set_to_none=True)
        logits = parallel(features, values, offsets)
        loss = torch.nn.functional.binary_cross_entropy_with_logits(logits, targets, reduction="sum")
        # DistributedDataParallel takes the mean over the workers.
        (loss * workers / options.batch).backward()
        adam.step()
        step += 1
        if rank == 0:
            with open(options.folder / "steps", "a", encoding="ascii") as steps:
                steps.write(f"{step}\n")
            if step % options.save_every == 0:
                save({"step": step, "network": network.state_dict(), "adam": adam.state_dict()}, checkpoint)
    if rank == 0:
        save(network.state_dict(), options.folder / "model.pt")


if __name__ == "__main__":
    main()
