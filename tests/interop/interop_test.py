#!/usr/bin/env python3
# SPDX-License-Identifier: BSL-1.0
"""interop_test.py FOLDER AGENT SERVERS LIBRARY [--row TEXT] [--seconds N]: holdfast and another library on one name.

Fetches the library into FOLDER, starts servers, and plays the table of rows. What its programs log is in there, too.
--row plays those whose sentence has the text. --seconds plays only the stress, for so long. Exit status 77: the library
cannot be had, or there is no Redis server."""
import argparse
import concurrent.futures
import signal
import sys
import threading
import time
import traceback
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "support"))
import libraries  # noqa: E402
from agents import Side  # noqa: E402
from places import Places, Servers  # noqa: E402
from rows import Skipped, cases, stress  # noqa: E402

AT_ONCE = 32  # rows: most of them wait
ROUNDS = 150  # of the stress, for each owner
PHASES = {1: "", 2: "", 3: ", one server dead"}


class Report:
    def __init__(self):
        self.counts, self.printing = {"passed": 0, "failed": 0, "skipped": 0}, threading.Lock()

    def play(self, sentence, script):
        began, result, more = time.monotonic(), "passed", ""
        try:
            more = script() or ""
        except Skipped as reason:
            result, more = "skipped", reason
        except Exception as failure:  # a row that failed in any way
            result = "failed"
            frame = next((f for f in reversed(traceback.extract_tb(failure.__traceback__)) if "rows" in f.filename), None)
            more = f"{failure!r}, at {frame.line}" if frame else repr(failure)
        with self.printing:
            self.counts[result] += 1
            print(f"{result} {time.monotonic() - began:6.2f} s  {sentence}{': ' if more else ''}{more}", flush=True)

    def end(self):
        print(", ".join(f"{count} {result}" for result, count in self.counts.items()))
        return 1 if self.counts["failed"] or not self.counts["passed"] else 0


def play_rows(report, table, text, places, us, them):
    for phase, circumstances in PHASES.items():
        with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
            for case in cases(table, phase, us, them):
                if text in str(case):
                    pool.submit(report.play, str(case) + circumstances,
                                lambda c=case: c.script(*c.sides, places[c.place].lock(c.kind)))


def play_stress(report, library, text, places, us, them, folder, seconds):
    """Each for an equal part of the time; without one for so many rounds.

    Both locks of a multi_lock are in one slot. In two slots Redisson and holdfast may take them in different orders, and
    wait for each other until Redisson's attempt times out."""
    chosen = [(kind, place) for kind, place in library.stress if text in f"stress ({kind}, {place})"]
    for kind, place in chosen:
        rounds, milliseconds = (10**9, 1000 * seconds // len(chosen)) if seconds else (ROUNDS, 300_000)
        report.play(f"{us.name} and {them.name} never hold it at once ({kind}, {place})", lambda: stress(
            us, them, places[place].lock(kind, library.prefix + "{stress}" + kind), folder / f"witness-{kind}-{place}", rounds, milliseconds))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("agent")
    parser.add_argument("servers")
    parser.add_argument("library")
    parser.add_argument("--row", default="")
    parser.add_argument("--seconds", type=int, default=0)
    arguments = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # by way of `finally`
    tools = arguments.folder.resolve()
    library = libraries.fetched(arguments.library, tools)
    folder = tools / ("of " + arguments.library.replace("/", " "))
    folder.mkdir(exist_ok=True)
    rig = Servers(arguments.servers, folder / "servers.log")
    us = Side("holdfast", [arguments.agent], folder, ours=True)
    them = Side(arguments.library, library.command, folder, renews=library.renews, reports=library.reports)
    report = Report()
    places = Places(rig, library.prefix, us)
    try:
        if not arguments.seconds:
            play_rows(report, library.table, arguments.row, places, us, them)
        play_stress(report, library, arguments.row, places, us, them, folder, arguments.seconds)
    finally:
        us.end()
        them.end()
        rig.end()
    return report.end()


if __name__ == "__main__":
    sys.exit(main())
