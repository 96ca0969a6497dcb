#!/usr/bin/env python3
# SPDX-License-Identifier: BSL-1.0
"""beside_all.py FOLDER AGENT SERVERS [--seconds N] [--hold MS] [--pause MS]: one lock, and clients of eight libraries.

One task of each library and one of holdfast share one simple lock on one server. Each holds it for --hold, and pauses
after that for up to twice --pause. This program counts their acquisitions and measures their waits: for N seconds with
`push=off`, then for as long with `push=auto`. FOLDER is that of the interop tests, with a folder for each language.
Exit status 77: a library cannot be had, or there is no Redis server."""
import argparse
import random
import signal
import statistics
import sys
import threading
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "support"))
import libraries  # noqa: E402
from agents import Side  # noqa: E402
from places import Place, Servers  # noqa: E402

LANGUAGES = {"redis-py": "python", "redlock-ng": "python", "pottery": "python", "redlock": "node",
             "@sesamecare-oss/redlock": "node", "redsync": "go", "bsm/redislock": "go", "rslock": "rust"}
NAME = "redlock:contended"  # pottery's names begin so


class Contender(threading.Thread):
    def __init__(self, side, lock, end, hold, pause):
        super().__init__()
        self.side, self.owner, self.end, self.hold, self.pause = side, side.owner(lock), end, hold, pause
        self.waits, self.random = [], random.Random(side.name)

    def run(self):
        while (began := time.monotonic()) < self.end:
            self.owner.lock()
            self.waits.append(time.monotonic() - began)
            time.sleep(self.hold)
            assert self.owner.unlock(), f"{self.side.name} has lost it"
            time.sleep(self.random.uniform(0, 2 * self.pause))


def contend(sides, place, arguments):
    """The waits of each, by its name."""
    lock = place.lock("simple", NAME)
    for side in sides:  # connects
        owner = side.owner(lock)
        owner.lock()
        owner.unlock()
    end = time.monotonic() + arguments.seconds
    contenders = [Contender(side, lock, end, arguments.hold / 1000, arguments.pause / 1000) for side in sides]
    for each in contenders:
        each.start()
    for each in contenders:
        each.join()
    return {each.side.name: each.waits for each in contenders}


def row(name, waits, most):
    times = sorted(1000 * wait for wait in waits)
    return (f"| {name} | {len(times)} | {len(times) / most:.2f} | {statistics.median(times):.0f} "
            f"| {times[len(times) * 99 // 100]:.0f} | {times[-1]:.0f} |")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("agent")
    parser.add_argument("servers")
    parser.add_argument("--seconds", type=int, default=60)
    parser.add_argument("--hold", type=float, default=5)
    parser.add_argument("--pause", type=float, default=20)
    arguments = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # by way of `finally`
    tools = arguments.folder.resolve()
    folder = tools / "of all"
    folder.mkdir(parents=True, exist_ok=True)
    commands = {name: libraries.fetched(name, tools / language).command for name, language in LANGUAGES.items()}
    rig = Servers(arguments.servers, folder / "servers.log")
    ours = Side("holdfast", [arguments.agent], folder, ours=True)
    sides = [ours] + [Side(name, command, folder) for name, command in commands.items()]
    try:
        ports = rig.ask("one")
        for push in ("off", "auto"):
            waits = contend(sides, Place(rig, "push-" + push, "one", ports, "", poll=1_000, push=push), arguments)
            most = max(map(len, waits.values()))
            print(f"\n| push={push} | acquisitions | of the most | wait, ms: p50 | p99 | longest |\n|---|---:|---:|---:|---:|---:|")
            for name, times in sorted(waits.items(), key=lambda one: -len(one[1])):
                print(row(name, times, most), flush=True)
    finally:
        for side in sides:
            side.end()
        rig.end()


if __name__ == "__main__":
    sys.exit(main())
