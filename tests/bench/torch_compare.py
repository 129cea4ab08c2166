#!/usr/bin/env python3
"""Gleaner beside PyTorch on the same data: the same network, trained dense with Adam.

  torch_compare.py speed --train FILE --bench build/release/tests/train_one_bench [-- FLAGS]
  torch_compare.py precision --train FILE --test FILE --bench ... --epochs 5 [-- FLAGS]
  torch_compare.py tiny --bench ...        a second's work on generated examples

`speed` trains some batches of PyTorch, then an epoch of Gleaner, and prints examples per second of each.
`precision` trains PyTorch for N epochs, then Gleaner until its P@1 reaches PyTorch's last P@1, and prints both
times. FLAGS go to train_one_bench. Both run on one thread and are timed in processor seconds without
evaluation, so that a busy machine hurts neither. PyTorch trains all neurons of every example and Gleaner a
sample: speeds alone do not say what a model costs, so compare `precision`. Without PyTorch (apt-get install
python3-torch) it says so and does nothing.
"""
import argparse
import re
import subprocess
import sys
import tempfile
import time

try:
    import torch
except ImportError:
    print("skipped: this Python has no PyTorch (apt-get install python3-torch, /usr/bin/python3)")
    sys.exit(0)


class Points:
    """Points of a text in the format of the Extreme Classification Repository, of unit length."""

    def __init__(self, path, limit):
        self.offsets, self.features, self.values, self.labels = [0], [], [], []
        with self._open(path) as lines:
            header = next(lines).split()
            self.feature_count, self.label_count = int(header[1]), int(header[2])
            for line in lines:
                labels, _, rest = line.rstrip("\n").partition(" ")
                pairs = [pair.split(":") for pair in rest.split()]
                values = [float(value) for _, value in pairs]
                length = sum(value * value for value in values) ** 0.5 or 1.0
                self.labels.append([int(label) for label in labels.split(",") if label])
                self.features += [int(feature) for feature, _ in pairs]
                self.values += [value / length for value in values]
                self.offsets.append(len(self.features))
                if len(self.labels) == limit:
                    break
        self.features = torch.tensor(self.features)
        self.values = torch.tensor(self.values)
        self.offsets = torch.tensor(self.offsets)

    @staticmethod
    def _open(path):
        if not path.endswith(".zst"):
            return open(path, encoding="utf-8")
        program = subprocess.Popen(["zstdcat", path], stdout=subprocess.PIPE, text=True)
        return program.stdout

    def batch(self, points):
        """Features, values, offsets and dense targets of some points."""
        parts = [torch.arange(self.offsets[p], self.offsets[p + 1]) for p in points]
        picks = torch.cat(parts)
        lengths = torch.tensor([0] + [len(part) for part in parts[:-1]])
        targets = torch.zeros(len(points), self.label_count)
        for row, point in enumerate(points):
            targets[row, self.labels[point]] = 1.0
        return self.features[picks], self.values[picks], lengths.cumsum(0), targets


class Network(torch.nn.Module):
    def __init__(self, points, hidden):
        super().__init__()
        self.rows = torch.nn.EmbeddingBag(points.feature_count, hidden, mode="sum")
        torch.nn.init.normal_(self.rows.weight, std=0.2)
        self.bias = torch.nn.Parameter(torch.zeros(hidden))
        self.output = torch.nn.Linear(hidden, points.label_count)
        torch.nn.init.constant_(self.output.bias, -6.0)  # a label is rare

    def forward(self, features, values, offsets):
        sums = self.rows(features, offsets, per_sample_weights=values)
        return self.output(torch.relu(sums + self.bias))


class Trainer:
    def __init__(self, points, args):
        torch.manual_seed(1)
        self.points, self.batch = points, args.batch
        self.network = Network(points, args.hidden)
        self.adam = torch.optim.Adam(self.network.parameters(), lr=args.rate)
        self.order = torch.randperm(len(points.labels)).tolist()
        self.next = 0

    def step(self):
        picked = self.order[self.next:self.next + self.batch]
        features, values, offsets, targets = self.points.batch(picked)
        self.adam.zero_grad(set_to_none=True)
        logits = self.network(features, values, offsets)
        loss = torch.nn.functional.binary_cross_entropy_with_logits(
            logits, targets, reduction="sum") / len(picked)
        loss.backward()
        self.adam.step()
        self.next += self.batch
        return len(picked)

    def epoch(self):
        self.order = torch.randperm(len(self.points.labels)).tolist()
        self.next = 0
        while self.next < len(self.order):
            self.step()

    @torch.no_grad()
    def precision(self, test):
        hits = 0
        for begin in range(0, len(test.labels), 256):
            points = range(begin, min(begin + 256, len(test.labels)))
            features, values, offsets, _ = test.batch(list(points))
            best = self.network(features, values, offsets).argmax(1).tolist()
            hits += sum(label in test.labels[p] for p, label in zip(points, best))
        return hits / len(test.labels)


def gleaner(args, *flags):
    """Runs train_one_bench; yields (examples, processor seconds, P@1) of each epoch."""
    command = [args.bench, "--train", args.train, "--batch-examples", str(args.batch), "--hidden",
               str(args.hidden), *flags, *args.flags]
    program = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    points = None
    for line in program.stdout:
        head = re.match(r"(\d+) examples", line)
        points = int(head[1]) if head else points
        spent = re.search(r"([\d.]+) us of CPU", line)
        if spent:
            reached = re.search(r"P@1 ([\d.]+)", line)
            yield points, points * float(spent[1]) * 1e-6, float(reached[1]) if reached else 0.0
    if program.wait() != 0:
        sys.exit(f"{' '.join(command)} failed")


def median(values):
    return sorted(values)[len(values) // 2]


def speed(args):
    points = Points(args.train, args.points)
    trainer = Trainer(points, args)
    trainer.step()
    dense, sampled = [], []
    for _ in range(args.rounds):
        if trainer.next + args.batches * args.batch > len(trainer.order):
            trainer.next = 0
        start = time.process_time()
        examples = sum(trainer.step() for _ in range(args.batches))
        dense.append(examples / (time.process_time() - start))
        for count, seconds, _ in gleaner(args, "--test", args.test or args.train, "--epochs", "1",
                                         "--eval-points", "1"):
            sampled.append(count / seconds)
    print(f"{points.label_count} labels, H = {args.hidden}, batches of {args.batch}, one thread: "
          f"PyTorch {median(dense):.1f} ({min(dense):.1f} to {max(dense):.1f}), Gleaner "
          f"{median(sampled):.0f} ({min(sampled):.0f} to {max(sampled):.0f}) examples a processor "
          f"second: {median(sampled) / median(dense):.1f} x")


def precision(args):
    points, test = Points(args.train, None), Points(args.test, None)
    trainer = Trainer(points, args)
    seconds, reached = 0.0, 0.0
    for epoch in range(args.epochs):
        start = time.process_time()
        trainer.epoch()
        seconds += time.process_time() - start
        reached = trainer.precision(test)
        print(f"PyTorch, epoch {epoch + 1}: P@1 {reached:.4f} after {seconds:.1f} s", flush=True)
    spent = 0.0
    for epoch, (_, cost, got) in enumerate(gleaner(args, "--test", args.test)):
        spent += cost
        print(f"Gleaner, epoch {epoch + 1}: P@1 {got:.4f} after {spent:.1f} s", flush=True)
        if got >= reached:
            print(f"PyTorch's P@1 of {reached:.4f} after 1/{seconds / spent:.1f} of its time")
            return
    print(f"PyTorch's P@1 of {reached:.4f} was not reached")


def tiny(args):
    with tempfile.TemporaryDirectory() as folder:
        args.train = args.test = f"{folder}/points.txt"
        with open(args.train, "w", encoding="utf-8") as file:
            file.write("64 20 10\n")
            for point in range(64):
                file.write(f"{point % 10} {point % 10}:1 {10 + point % 7}:0.5\n")
        args.batch, args.hidden, args.rounds, args.batches, args.epochs = 16, 16, 1, 1, 1
        speed(args)
        precision(args)


def main():
    flags = sys.argv[sys.argv.index("--") + 1:] if "--" in sys.argv else []
    own = sys.argv[1:len(sys.argv) - len(flags) - 1] if "--" in sys.argv else sys.argv[1:]
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["speed", "precision", "tiny"])
    parser.add_argument("--train")
    parser.add_argument("--test")
    parser.add_argument("--bench", required=True, help="the program train_one_bench")
    parser.add_argument("--hidden", type=int, default=128)
    parser.add_argument("--batch", type=int, default=128)
    parser.add_argument("--rate", type=float, default=3e-3, help="Adam's")
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--batches", type=int, default=5, help="of PyTorch a round")
    parser.add_argument("--points", type=int, default=4096, help="that PyTorch reads for `speed`")
    args = parser.parse_args(own)
    args.flags = flags
    torch.set_num_threads(1)
    {"speed": speed, "precision": precision, "tiny": tiny}[args.what](args)


if __name__ == "__main__":
    main()
