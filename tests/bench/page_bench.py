#!/usr/bin/env python3
"""What the run's page costs a browser with a given number of volunteers, while the view changes every second:
milliseconds for each step of scrolling through the table, rows that exist, the part of the time in which the
page's thread is busy while nobody scrolls, and the memory of the page's JavaScript.

usage: page_bench.py [--volunteers N] [--shards N] [--seconds S]
       page_bench.py --tiny
"""

import argparse
import pathlib
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "e2e"))
import browser  # noqa: E402
from harness import BIN  # noqa: E402

# From top to bottom in 200 steps, each until the rows there are in place and laid out.
SCROLL = """
const box = document.querySelector('#volunteers');
const times = [];
const step = async (i) => {
  const begin = performance.now();
  box.scrollTop = i / 200 * (box.scrollHeight - box.clientHeight);
  box.dispatchEvent(new Event('scroll'));
  box.getBoundingClientRect();
  times.push(performance.now() - begin);
  await new Promise(requestAnimationFrame);
};
return (async () => { for (let i = 0; i <= 200; ++i) await step(i); times.sort((a, b) => a - b);
  return [times[100], times[200], document.querySelectorAll('#volunteers tbody tr').length,
          [...document.querySelectorAll('#volunteers td button')].at(-1).textContent]; })();
"""


def metrics(window):
    return {metric["name"]: metric["value"] for metric in window.devtools("Performance.getMetrics")["metrics"]}


def measure(volunteers, shards, seconds):
    program = subprocess.Popen([str(BIN.parent / "tests/page_view"), str(volunteers), str(shards)],
                               stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    window = browser.Browser()
    try:
        window.open(program.stdout.readline().strip())
        window.wait("return document.querySelectorAll('#volunteers tbody tr').length > 2", "rows")
        window.devtools("Performance.enable")
        before = metrics(window)
        time.sleep(seconds)
        after = metrics(window)
        busy = (after["TaskDuration"] - before["TaskDuration"]) / (after["Timestamp"] - before["Timestamp"])
        middle, worst, rows, last = window.run(SCROLL)
        window.devtools("HeapProfiler.collectGarbage")
        heap = metrics(window)["JSHeapUsedSize"]
        if not last.startswith("volunteer-"):
            raise AssertionError(f"the end of the table shows {last!r}")
        print(f"{volunteers} volunteers, {shards} shards: scrolling {middle:.1f} ms per step, {worst:.1f} at most; "
              f"{rows} rows exist; busy {100 * busy:.1f} % of the time; {heap / 2**20:.1f} MiB of JavaScript")
        return rows
    finally:
        window.close()
        program.stdin.close()
        program.wait()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--volunteers", type=int, default=10_000)
    parser.add_argument("--shards", type=int, default=512)
    parser.add_argument("--seconds", type=float, default=15)
    parser.add_argument("--tiny", action="store_true", help="a small one, to see that all of it works")
    options = parser.parse_args()
    if browser.missing():
        print(f"skipped: {browser.missing()}")
        return 0
    if options.tiny:
        options.volunteers, options.seconds = 1000, 2
    rows = measure(options.volunteers, options.shards, options.seconds)
    return 0 if rows < 100 else 1


if __name__ == "__main__":
    sys.exit(main())
