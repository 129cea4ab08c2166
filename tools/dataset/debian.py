#!/usr/bin/env python3
"""Makes a data set of this machine's package index: one example per package that depends on others.
Features are the words of its name, short description, section, tags and maintainer, weighted by
rarity; labels are its dependencies. The same index and seed give the same bytes on every machine.

usage: tools/dataset/debian.py FOLDER [--dump FILE] [--share 0.2] [--seed 1] [--force]

FOLDER gets train.txt, test.txt, labels.txt, features.txt, train.points.txt, test.points.txt and
words.json, as `gleaner dataset convert --text` writes them. FILE is the output of `apt-cache
dumpavail`, plain or gzip. Exit status: 0 done, 1 failure of the system, 2 usage, 3 bad data.
"""

import argparse
import collections
import ctypes
import gzip
import itertools
import json
import math
import os
import pathlib
import re
import subprocess
import sys

TRAIN_PACKAGES_MIN = 2  # that have a word, for it to be a feature
SPLIT = 10  # Purpose::kSplit of common/counter_random.hpp, whose functions stand below
# The weight of a word by its kind, as in common/data/word_model.cpp.
WEIGHTS = {"name": 0.9, "ending": 1, "word": 0.9, "section": 1.4, "tag": 1, "maintainer": 1.15}


def fail(status, sentence):
    print(f"debian.py: {sentence}", file=sys.stderr)
    sys.exit(status)


def lower(text):
    return "".join(chr(ord(c) + 32) if "A" <= c <= "Z" else c for c in text)


def items(text):
    return [item for item in (part.strip(" \t") for part in text.split(",")) if item]


def first_alternatives(text):
    """"libc6:amd64 (>= 2.34) | libc6.1" gives "libc6"; ascending, each once."""
    return sorted({re.split(r"[ \t:(|\[<]", item, maxsplit=1)[0] for item in items(text)})


class Package:
    def __init__(self, fields):
        self.name = fields["Package"]
        self.description = next((value for key, value in fields.items() if value and key != "Description-md5" and
                                 (key == "Description" or key.startswith("Description-"))), "")
        self.section = fields.get("Section", "")
        self.maintainer = fields.get("Maintainer", "").split("<")[0].strip(" \t")
        self.tags = items(fields.get("Tag", ""))
        self.depends = first_alternatives(fields.get("Depends", "") + "," + fields.get("Pre-Depends", ""))
        self.provides = first_alternatives(fields.get("Provides", ""))

    def words(self):
        """Its features, such as "name python3", without their rarity."""
        words = set()
        for part in filter(None, self.name.split("-")):
            words |= {"name " + part, "name " + (part.rstrip("0123456789.+~") or part)}
        if "-" in self.name:
            ending = self.name.rsplit("-", 1)[1]
            words.add("ending " + (ending.rstrip("0123456789.+~") or ending))
        words.update("word " + word for word in re.findall("[a-z0-9+\x80-\xff]+", lower(self.description)))
        words.update("section " + section for section in [self.section] if section)
        words.update("tag " + tag for tag in self.tags)
        words.update("maintainer " + lower(maintainer) for maintainer in [self.maintainer] if maintainer)
        return sorted(words)


def read_packages(lines, source):
    """The first of packages with one name, in the order of names."""
    packages = {}
    fields, key = {}, None
    for number, line in enumerate(itertools.chain(lines, [""]), 1):
        line = line.removesuffix("\n").removesuffix("\r")
        if not line:
            if fields.get("Package"):
                packages.setdefault(fields["Package"], Package(fields))
            fields, key = {}, None
        elif line[0] in " \t" and key:
            fields[key] += " " + line.strip(" \t")
        elif line[0] not in " \t" and line.find(":") > 0:
            key, value = line.split(":", 1)
            fields[key] = value.strip(" \t")
        else:
            fail(3, f"{source}:{number}:1: expected a field as in 'Package: hello'; is this the output of "
                    "'apt-cache dumpavail'?")
    return [packages[name] for name in sorted(packages)]


def open_index(dump):
    """Bytes as characters: so names are sorted as bytes on every machine."""
    if not dump:
        try:
            done = subprocess.run(["apt-cache", "dumpavail"], capture_output=True, check=True,
                                  env={**os.environ, "LC_ALL": "C"})
        except (OSError, subprocess.CalledProcessError) as error:
            fail(1, f"{error}; on Debian, run 'apt-get update' first; elsewhere, name a saved dump with --dump")
        return done.stdout.decode("latin-1").split("\n")
    try:
        content = pathlib.Path(dump).read_bytes()
        if content[:2] == b"\x1f\x8b":
            content = gzip.decompress(content)
        return content.decode("latin-1").split("\n")
    except (OSError, EOFError) as error:
        fail(3, f"{dump}: {error}")


def mix64(x):
    x = (x + 0x9E3779B97F4A7C15) % 2**64
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9 % 2**64
    x = (x ^ (x >> 27)) * 0x94D049BB133111EB % 2**64
    return x ^ (x >> 31)


def load_checksum():
    try:
        checksum = ctypes.CDLL("libxxhash.so.0").XXH3_64bits
    except OSError as error:
        fail(1, f"{error}; Debian has it in the package libxxhash0")
    checksum.argtypes, checksum.restype = [ctypes.c_char_p, ctypes.c_size_t], ctypes.c_uint64
    return lambda text: checksum(text, len(text))


def is_test(number, seed, share):
    """For the checksum of a name: a package stays in its part when the index changes."""
    x = mix64(seed ^ SPLIT << 56)
    for word in (number, 0, 0):
        x = mix64(x ^ word)
    return x >> 11 < int(share * 2**53)


def dependencies_of(packages):
    """Of each package, by place. A name that exactly one package provides stands for that package."""
    providers = {}
    for package in packages:
        for name in package.provides:
            providers[name] = name if name in providers else package.name
    providers.update((package.name, package.name) for package in packages)
    return [sorted({providers.get(name, name) for name in package.depends} - {package.name}) for package in packages]


def value_of(word, occurrences, examples):
    """The weight of its kind times the root of its rarity, in thousandths."""
    rarity = math.log((examples + 1) / (occurrences + 1)) + 1
    thousandths = math.floor(WEIGHTS[word.split(" ", 1)[0]] * math.sqrt(rarity) * 1000 + 0.5)
    return f"{thousandths / 1000:.3f}".rstrip("0").rstrip(".")


def make_set(packages, seed, share):
    """The text of every file by its name, and how many examples each part has."""
    dependencies = dependencies_of(packages)
    labels = sorted(set(itertools.chain.from_iterable(dependencies)))
    label_ids = {name: place for place, name in enumerate(labels)}
    parts = {"train": [], "test": []}
    checksum = load_checksum()
    for package, needs in zip(packages, dependencies):
        if needs:
            number = checksum(package.name.encode("latin-1"))
            parts["test" if is_test(number, seed, share) else "train"].append((package, needs))
    counts = collections.Counter(itertools.chain.from_iterable(package.words() for package, _ in parts["train"]))
    features = sorted(word for word, count in counts.items() if count >= TRAIN_PACKAGES_MIN)
    examples = len(parts["train"])
    entries = {word: f" {place}:{value_of(word, counts[word], examples)}" for place, word in enumerate(features)}
    words = {"gleaner_words": 1, "kind": "debian", "points": examples,
             "occurrences": [counts[word] for word in features]}
    files = {"labels.txt": "".join(name + "\n" for name in labels),
             "features.txt": "".join(word + "\n" for word in features),
             "words.json": json.dumps(words, separators=(",", ":")) + "\n"}
    # The training part last: whoever finds it finds the rest.
    for name in ("test", "train"):
        part = parts[name]
        files[name + ".points.txt"] = "".join(f"{p.name}: {p.description}\n" for p, _ in part)
        files[name + ".txt"] = f"{len(part)} {len(features)} {len(labels)}\n" + "".join(
            ",".join(str(label_ids[need]) for need in needs) +
            "".join(entries.get(word, "") for word in package.words()) + "\n" for package, needs in part)
    return files, {name: len(part) for name, part in parts.items()}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--dump", help="saved index to use instead of this machine's")
    parser.add_argument("--share", type=float, default=0.2, help="fraction of the packages for testing")
    parser.add_argument("--seed", type=int, default=1, help="another seed, other parts")
    parser.add_argument("--force", action="store_true", help="replace files that exist")
    flags = parser.parse_args()
    if not 0 < flags.share < 1:
        fail(2, f"--share {flags.share} is not between 0 and 1; 0.2 puts a fifth of the packages into the test part")
    source = flags.dump or "apt-cache dumpavail"
    packages = read_packages(open_index(flags.dump), source)
    files, sizes = make_set(packages, flags.seed, flags.share)
    if not (sizes["train"] and sizes["test"] and files["features.txt"]):
        fail(3, f"{source}: {len(packages)} packages give {sizes['train']} training and {sizes['test']} test examples, "
                "too few for a data set; run 'apt-get update' to fetch the package index")
    try:
        flags.folder.mkdir(parents=True, exist_ok=True)
        for name, text in files.items():
            target = flags.folder / name
            if target.exists() and not flags.force:
                fail(2, f"{target} exists already; name another folder, or give --force")
        for name, text in files.items():
            unfinished = flags.folder / (name + ".tmp")
            unfinished.write_bytes(text.encode("latin-1"))
            unfinished.replace(flags.folder / name)
    except OSError as error:
        fail(1, error)
    print(f"{flags.folder}: {sum(sizes.values()):,} of {len(packages):,} packages depend on others: {sizes['train']:,} "
          f"for training, {sizes['test']:,} for testing; {files['features.txt'].count(chr(10)):,} features, "
          f"{files['labels.txt'].count(chr(10)):,} labels")


if __name__ == "__main__":
    main()
