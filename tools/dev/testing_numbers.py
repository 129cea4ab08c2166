#!/usr/bin/env python3
"""Counts what there is to test with and writes the list into tests/README.md, between its two marks.

usage: tools/dev/testing_numbers.py [--check]

--check writes nothing and ends with exit status 1 when the page differs from what is counted.
"""

import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGE = ROOT / "tests/README.md"
BEGIN, END = "<!-- numbers: begin -->\n", "<!-- numbers: end -->\n"


def text(path):
    return (ROOT / path).read_text(encoding="utf-8")


def count(pattern, *globs):
    """Matches of the pattern at line starts, over all files of these globs."""
    files = sorted({path for glob in globs for path in ROOT.glob(glob)})
    return sum(len(re.findall(pattern, path.read_text(encoding="utf-8"), re.MULTILINE)) for path in files)


def only(pattern, path):
    """The one number that the pattern finds in the file."""
    found = re.findall(pattern, text(path))
    if len(found) != 1:
        sys.exit(f"{path}: expected one match of {pattern!r}, found {len(found)}")
    return int(found[0])


def block(path, begin, end):
    return text(path).split(begin, 1)[1].split(end, 1)[0]


def numbers():
    storm = "tests/sim/storm_test.cpp"
    seeds = re.findall(r"^\d+", text("tests/sim/regression_seeds.txt"), re.MULTILINE)
    corpus = [path for path in (ROOT / "tests/fuzz/corpus").rglob("*") if path.is_file()]
    return [
        ("unit test cases in C++", count(r"^TEST_CASE\(", "tests/unit/**/*.cpp")),
        ("property test cases", count(r"^TEST_CASE\(", "tests/property/*.cpp")),
        ("simulation test cases", count(r"^TEST_CASE\(", "tests/sim/**/*.cpp")),
        ("test cases in Python", count(r"^    def test_", "tests/**/*.py")),
        ("encodings with golden bytes", len(text("tests/property/codec_golden.txt").splitlines())),
        ("simulated storms in every check", only(r'"GLEANER_SEEDS", (\d+)', storm)),
        ("simulated storms in `check --long`", only(r"GLEANER_SEEDS=(\d+)", "tools/check")),
        ("seeds that once failed, replayed", len(seeds)),
        ("kinds of simulated faults", len(re.findall(
            r"^  k\w+,", block("tests/sim/fault_plan.hpp", "enum class Fault", "};"), re.MULTILINE))),
        ("rare branches that the storms must reach", block(storm, "{\"branch.", "})").count('",') + 1),
        ("checkers that watch each simulated event", count(r"^class \w+Checker : public",
                                                           "tests/sim/checkers/*.cpp")),
        ("fuzz targets", count(r"^gleaner_fuzz\(", "tests/fuzz/CMakeLists.txt")),
        ("inputs in the fuzz corpus", len(corpus)),
    ]


def main():
    if sys.argv[1:] not in ([], ["--check"]):
        sys.exit(__doc__)
    counted = "".join(f"- {what}: {n:,}\n" for what, n in numbers())
    page = PAGE.read_text(encoding="utf-8")
    wanted = page.split(BEGIN, 1)[0] + BEGIN + counted + END + page.split(END, 1)[1]
    if "--check" not in sys.argv:
        PAGE.write_text(wanted, encoding="utf-8")
    elif page != wanted:
        sys.exit("tests/README.md: its numbers are old; run tools/dev/testing_numbers.py")


if __name__ == "__main__":
    main()
