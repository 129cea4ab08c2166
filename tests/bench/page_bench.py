#!/usr/bin/env python3
"""The cost of the run's page in a browser, by the number of volunteers, while the view changes every second:
milliseconds per step of scrolling through the table, rows that exist, the busy fraction of the page's thread
without scrolling, and the memory of the page's JavaScript. With --week: that memory after a week of a run's
news, sent in minutes; it must stay below 80 MB.

usage: page_bench.py [--volunteers N] [--shards N] [--seconds S]
       page_bench.py --week    (two hours of news, unless GLEANER_LONG is set)
       page_bench.py --tiny
"""

import argparse
import contextlib
import pathlib
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "e2e"))
import browser  # noqa: E402
from harness import BIN, IS_LONG, TIME_FACTOR  # noqa: E402

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


@contextlib.contextmanager
def page_of(*arguments):
    """A window, and the address of the page of an invented run."""
    window = browser.Browser()
    program = subprocess.Popen([str(BIN.parent / "tests/page_view"), *map(str, arguments)],
                               stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        yield window, program.stdout.readline().strip()
    finally:
        window.close()
        program.stdin.close()
        program.wait()


def heap_bytes(window):
    window.devtools("HeapProfiler.collectGarbage")
    return metrics(window)["JSHeapUsedSize"]


def measure(volunteers, shards, seconds):
    with page_of(volunteers, shards) as (window, address):
        window.open(address)
        window.wait("return document.querySelectorAll('#volunteers tbody tr').length > 2", "rows")
        window.devtools("Performance.enable")
        before = metrics(window)
        time.sleep(seconds)
        after = metrics(window)
        busy = (after["TaskDuration"] - before["TaskDuration"]) / (after["Timestamp"] - before["Timestamp"])
        middle, worst, rows, last = window.run(SCROLL)
        heap = heap_bytes(window)
        if not last.startswith("volunteer-"):
            raise AssertionError(f"the end of the table shows {last!r}")
        print(f"{volunteers} volunteers, {shards} shards: scrolling {middle:.1f} ms per step, {worst:.1f} at most; "
              f"{rows} rows exist; busy {100 * busy:.1f} % of the time; {heap / 2**20:.1f} MiB of JavaScript")
        return rows


# Counts the events that come, in the page itself.
COUNT_EVENTS = """
window.eventsCome = 0;
const parse = JSON.parse;
JSON.parse = (text) => {
  const made = parse(text);
  if (made?.event && made.text) ++window.eventsCome;
  return made;
};
"""


def measure_week():
    """Whether the memory stays below the limit."""
    minutes, parts = (7 * 24 * 60 if IS_LONG else 120), 4
    events = 12 * minutes
    with page_of(64, 64, minutes, 20) as (window, address):
        window.devtools("Page.addScriptToEvaluateOnNewDocument", source=COUNT_EVENTS)
        window.open(address)
        window.devtools("Performance.enable")
        heaps = []
        for part in range(1, parts + 1):
            window.wait(f"return Number(document.querySelector('#events li')?.textContent.match(/event (\\d+):/)?.[1])"
                        f" >= {events * part // parts}", f"{part} of {parts} parts", 900 * TIME_FACTOR)
            heaps.append(heap_bytes(window))
        come = window.run("return window.eventsCome")
        nodes = metrics(window)["Nodes"]
        shown = ", ".join(f"{heap / 1e6:.1f}" for heap in heaps)
        print(f"{minutes} minutes of a run: {come} of {events} events came; {shown} MB of JavaScript after each "
              f"quarter, {nodes:.0f} nodes")
        return come >= 0.99 * events and max(heaps) < 80e6


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--volunteers", type=int, default=10_000)
    parser.add_argument("--shards", type=int, default=512)
    parser.add_argument("--seconds", type=float, default=15)
    parser.add_argument("--week", action="store_true", help="a week of news, told in minutes")
    parser.add_argument("--tiny", action="store_true", help="a small one, to see that all of it works")
    options = parser.parse_args()
    if browser.missing():
        print(f"skipped: {browser.missing()}")
        return 0
    if options.week:
        return 0 if measure_week() else 1
    if options.tiny:
        options.volunteers, options.seconds = 1000, 2
    rows = measure(options.volunteers, options.shards, options.seconds)
    return 0 if rows < 100 else 1


if __name__ == "__main__":
    sys.exit(main())
