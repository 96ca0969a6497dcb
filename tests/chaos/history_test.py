#!/usr/bin/env python3
# SPDX-License-Identifier: BSL-1.0
"""history_test.py --build FOLDER [--campaign within|outside|red|sentinel|cluster|beside|both|all] [--seed S] [--seconds N] [--acquisitions N] [--keep FOLDER]

Runs campaigns one after the other, each with a seed of its own and at most two minutes long, until N seconds are over, and judges
each history by check_history. Ends at the first that shows something wrong and keeps its history. A round that was too slow or too weak
proves nothing: it is not counted, and another follows with the next seed, three at most. Prints seeds, operations and faults by kind.
Exit status 0: no violation; 77: there is no Redis server."""
import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter

import check_history
from checker import history as histories

CAMPAIGNS = ("within", "outside", "red", "sentinel", "cluster", "beside")
LONGEST_ROUND = 120
SKIPPED = 77
TOO_SLOW, MOST_UNCOUNTED = 75, 3
MEMORY, ROOM = "/dev/shm", 1 << 30


def folder_of_histories(kept):
    """Where a worker that writes a line does not wait for a disk, if nobody wants to keep it."""
    if kept or not os.access(MEMORY, os.W_OK):
        return kept
    there = os.statvfs(MEMORY)
    return MEMORY if there.f_bavail * there.f_frsize >= ROOM else None


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", required=True, help="where holdfast_chaos_driver, holdfast_chaos_worker and holdfast_chaos_peer are")
    parser.add_argument("--campaign", choices=(*CAMPAIGNS, "both", "all"), default="both",
                        help="with faults that a lock must survive; with others, too; of a lock of several servers; with failovers that sentinels "
                             "make; in a cluster; beside processes that write Redisson's locks and never rest; the first two or all in turn")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--seconds", type=int, default=60)
    parser.add_argument("--acquisitions", type=int, default=0, help="of each round; it goes on for them as long as there are more")
    parser.add_argument("--keep", help="keeps all histories, in this folder")
    return parser.parse_args()


def run_campaign(build, campaign, folder, seed, seconds, acquisitions):
    driver = [os.path.join(build, "holdfast_chaos_driver")]
    for program in ("worker", "peer"):
        driver += ["--" + program, os.path.join(build, "holdfast_chaos_" + program)]
    command = driver + ["--folder", folder, "--campaign", campaign, "--seed", str(seed), "--seconds", str(seconds)]
    status = subprocess.run(command + ["--sections", str(acquisitions)], check=False).returncode
    if status not in (0, SKIPPED, TOO_SLOW):
        print(f"the driver ended with {status}")
        for name in sorted(os.listdir(folder)):
            if name.endswith(".log"):
                print(open(os.path.join(folder, name), encoding="utf-8").read(), end="")
    return status


def add_up(total, found):
    for what, number in found.items():
        if isinstance(number, dict):
            total.setdefault(what, Counter()).update(number)
        elif isinstance(number, int):
            total[what] = total.get(what, 0) + number


def print_found(found):
    for what, number in found.items():
        if isinstance(number, dict):
            number = ", ".join(f"{kind} {times}" for kind, times in sorted(number.items()))
        print(f"  {what}: {number}")
    sys.stdout.flush()


def judge(folder, status, acquisitions):
    """What was found in the history of a round, what is wrong with it, and why it proves nothing."""
    if status == TOO_SLOW:
        return {}, [], ["too slow: the cluster replaced a node by itself"]
    history = histories.read(folder)
    found = check_history.summary(history)
    return found, list(check_history.wrongs(history)), list(check_history.shortcomings(history, found, acquisitions))


def main():
    given = parse()
    start, seed, total = time.monotonic(), given.seed, {}
    counted = uncounted = 0
    campaigns = {"both": CAMPAIGNS[:2], "all": CAMPAIGNS}.get(given.campaign, (given.campaign,))
    while counted == 0 or time.monotonic() - start < given.seconds:
        campaign = campaigns[(seed - given.seed) % len(campaigns)]
        folder = tempfile.mkdtemp(prefix="holdfast-chaos-", dir=folder_of_histories(given.keep))
        status = run_campaign(given.build, campaign, folder, seed, min(LONGEST_ROUND, given.seconds), given.acquisitions)
        if status == SKIPPED:
            shutil.rmtree(folder)
            return SKIPPED
        found, wrong, shortcomings = judge(folder, status, given.acquisitions)
        failed = status not in (0, TOO_SLOW) or wrong or (shortcomings and uncounted == MOST_UNCOUNTED)
        lines = [f"campaign {campaign}, seed {seed}: {'failed' if failed else 'not counted' if shortcomings else 'passed'}", *wrong, *shortcomings]
        print("\n".join(lines))
        print_found(found)
        if failed:
            print("\n".join([*lines, f"the histories are in {folder}"]))  # again: a log may be cut at either end
            return 1
        if not given.keep:
            shutil.rmtree(folder)
        if shortcomings:
            uncounted += 1
        else:
            add_up(total, found)
            counted += 1
        seed += 1
    print(f"no violation: seeds {given.seed} to {seed - 1}, {time.monotonic() - start:.0f} s")
    print_found(total)
    return 0


if __name__ == "__main__":
    sys.exit(main())
