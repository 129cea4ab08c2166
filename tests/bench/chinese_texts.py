#!/usr/bin/env python3
"""Chinese from raw text: the network's P@1 beside that of the nearest label centroid.

usage: tests/bench/chinese_texts.py PAGES     # a folder of pages in HTML
       tests/bench/chinese_texts.py --tiny    # generated sentences

A paragraph of a page is an example, and the page is its label. PAGES may be the content of Debian's package
libreoffice-help-zh-cn: 1,108 pages of 11,671 and 2,868 paragraphs. The exit status is 1 unless the network is
better. Programs come from GLEANER_BIN.
"""

import collections
import csv
import html.parser
import json
import os
import pathlib
import random
import re
import subprocess
import sys
import tempfile

BIN = pathlib.Path(os.environ.get("GLEANER_BIN", "build/release/bin"))
BLOCKS = {"p", "h1", "h2", "h3", "td", "li"}
CHARACTERS_MIN, PARAGRAPHS_MIN = 6, 4


class Paragraphs(html.parser.HTMLParser):
    """Paragraphs of a page, without markup."""

    def __init__(self):
        super().__init__()
        self.found, self.open = [], None

    def handle_starttag(self, tag, attrs):
        if tag in BLOCKS:
            self.end()
            self.open = []

    def handle_endtag(self, tag):
        if tag in BLOCKS:
            self.end()

    def handle_data(self, data):
        if self.open is not None:
            self.open.append(data)

    def end(self):
        text = " ".join("".join(self.open or []).split())
        if len(re.findall(r"[\u4e00-\u9fff]", text)) >= CHARACTERS_MIN:
            self.found.append(text)
        self.open = None


def paragraphs_of(folder):
    """(paragraph, page) of all pages that have enough paragraphs which occur nowhere else."""
    found = []
    for path in sorted(pathlib.Path(folder).rglob("*.html")):
        page = Paragraphs()
        page.feed(path.read_text(encoding="utf-8"))
        page.end()
        found += [(text, str(path.relative_to(folder))) for text in page.found]
    times = collections.Counter(text for text, _ in found)
    found = [(text, page) for text, page in found if times[text] == 1]
    sizes = collections.Counter(page for _, page in found)
    return [(text, page) for text, page in found if sizes[page] >= PARAGRAPHS_MIN]


def generated():
    """Sentences without spaces: two words of a topic among words of all. Common topics share words."""
    draw = random.Random(1)
    characters = [chr(0x4e00 + 7 * i) for i in range(600)]
    words = ["".join(draw.choices(characters, k=2)) for _ in range(300)]
    topics = [draw.sample(words, 8) for _ in range(60)]
    made = []
    for _ in range(3000):
        topic = min(draw.randrange(60), draw.randrange(60))
        said = draw.sample(topics[topic], 2) + draw.sample(words, 4)
        draw.shuffle(said)
        made.append(("".join(said) + "。", f"话题{topic}"))
    return made


def run(name, *arguments):
    done = subprocess.run([BIN / name, *map(str, arguments)], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"{name} {arguments}: {done.stderr}")
    return done.stdout


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    examples = generated() if sys.argv[1] == "--tiny" else paragraphs_of(sys.argv[1])
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        with open(folder / "texts.csv", "w", encoding="utf-8", newline="") as file:
            csv.writer(file).writerows([("text", "page"), *examples])
        print(run("gleaner", "dataset", "convert", folder / "texts.csv", "--text", "text", "--tags", "page",
                  "--words", "icu,characters:1-2", "--share", 0.2, "--output", folder / "set"))
        said = run("gleaner-master", "--train", folder / "set/train.txt", "--test", folder / "set/test.txt",
                   "--store", folder / "run", "--local", 1, "--threads", 2, "--evaluate-sample", "all",
                   "--http", "off", "--log-format", "json")
    end = json.loads(said.splitlines()[-1])
    print(f"P@1 {end['p_at_1']:.3f}  P@3 {end['p_at_3']:.3f}  P@5 {end['p_at_5']:.3f} in {end['seconds']:.0f} s; "
          f"nearest label centroid: P@1 {end['centroid_p_at_1']:.3f}")
    sys.exit(0 if end["compared_p_at_1"] > end["centroid_p_at_1"] else 1)


if __name__ == "__main__":
    main()
