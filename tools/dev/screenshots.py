#!/usr/bin/env python3
"""Makes the documents' pictures of the run's page: a run on this machine's package index, with the owner's
volunteers and two strangers, one of whom is killed. Needs a release build, Chromium and apt's package lists.

usage: screenshots.py [--output FOLDER] [--format webp|png]
"""

import argparse
import base64
import json
import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/e2e"))
import browser  # noqa: E402
from harness import Cluster  # noqa: E402


def start_run(cluster):
    """Trains until there is something to see; returns the address of the page."""
    subprocess.run([ROOT / "tools/dataset/debian.py", cluster.path("data")], check=True)
    master = cluster.start("gleaner-master", "--train", "data/train.txt", "--test", "data/test.txt", "--store", "packages",
                           "--listen", "127.0.0.1:0", "--http", "127.0.0.1:0", "--epochs", 20, "--output-shards", 48,
                           "--threads", 1, "--min-volunteers", 5, "--log-format", "json")
    address = master.wait_event("listening")["address"]
    lines = [address] * 3 + [json.loads(cluster.gleaner("invite", "create", "packages", "--json"))["address"]
                             for _ in range(3)]
    names = ["attic", "kitchen", "lab-3", "office-2", "laptop", "garden"]
    volunteers = [cluster.volunteer(line, "--name", name) for line, name in zip(lines[:5], names)]
    master.wait_event("evaluated", lambda event: event["epoch"] >= 3, 1800)
    volunteers[-1].kill()
    cluster.volunteer(lines[5], "--name", names[5])
    master.wait_event("evaluated", lambda event: event["epoch"] >= 6, 1800)
    page = master.wait_event("page")
    return f"{page['url']}/#{page['key']}"


def ready_window(address, **setup):
    """A window with the whole page, and an answered question in its box."""
    window = browser.Browser(**setup)
    window.open(address)
    window.wait("return document.querySelectorAll('#receipts tbody tr').length > 0"
                " && document.querySelectorAll('#volunteers tbody tr').length > 4", "all of the page")
    names = pathlib.Path("data/test.points.txt").read_text(encoding="utf-8").splitlines()
    package = next(i for i, name in enumerate(names) if name.startswith("python3-"))
    window.run("document.querySelector('#predict-text').value = arguments[0];"
               "document.querySelector('#predict-kind').value = 'example';"
               "document.querySelector('#predict-form').requestSubmit()", str(package))
    window.wait("return document.querySelectorAll('#predict-answer tbody tr').length > 2", "labels")
    return window


def take(window, path, first, last):
    """The picture of all from the element `first` to the element `last`."""
    top, bottom, width = window.run(
        "const place = (selector) => document.querySelector(selector).getBoundingClientRect();"
        "return [place(arguments[0]).top + scrollY, place(arguments[1]).bottom + scrollY,"
        "        document.documentElement.clientWidth]", first, last)
    shot = window.devtools("Page.captureScreenshot", format=path.suffix[1:], captureBeyondViewport=True,
                           **({"quality": 75} if path.suffix == ".webp" else {}),
                           clip={"x": 0, "y": max(0, top - 12), "width": width, "height": bottom - top + 24, "scale": 1})
    path.write_bytes(base64.b64decode(shot["data"]))
    print(f"{path}: {path.stat().st_size / 1000:.0f} KB")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", type=pathlib.Path, default=ROOT / "master/see/screenshots")
    parser.add_argument("--format", choices=("webp", "png"), default="webp")
    options = parser.parse_args()
    output = options.output.resolve()
    output.mkdir(parents=True, exist_ok=True)
    pictures = [("light", {"size": (1280, 900)}, "header", "[aria-labelledby=shards-title]"),
                ("dark", {"size": (1280, 900), "dark": True}, "#volunteers-title", "#predict"),
                ("phone", {"size": (390, 844), "pixel_ratio": 1.5}, "header", "#charts .chart")]
    with Cluster() as cluster:
        os.chdir(cluster.folder)  # the page shows the store's path
        address = start_run(cluster)
        for name, setup, first, last in pictures:
            window = ready_window(address, **setup)
            try:
                take(window, output / f"{name}.{options.format}", first, last)
            finally:
                window.close()


if __name__ == "__main__":
    main()
