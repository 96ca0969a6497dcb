#!/usr/bin/env python3
# SPDX-License-Identifier: BSL-1.0
"""wire_test.py OLD NEW [--row TEXT]: two versions of holdfast on one name, each with the agent of its own time.

OLD and NEW are folders of cmake/packaging/build_at.sh. Plays the table of wire_rows.py. What the programs log is in these folders.
--row plays those whose sentence has the text. Exit status 77: there is no Redis server."""
import argparse
import socket
import subprocess
import sys
import tempfile
from pathlib import Path
from types import SimpleNamespace

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "support"))
import wire_rows  # noqa: E402
from agents import Side  # noqa: E402
from interop_test import Report, play_rows, play_stress  # noqa: E402
from optional_tools import skip  # noqa: E402
from places import Link, Places, wait_for  # noqa: E402
from run_example import server_command  # noqa: E402

AGENT = Path("tests/interop/interop_agent.cpp")
FIRST_KINDS = ("mutex", "all")  # of every agent


class LocalServers:
    """`one` and `several N` of places.Servers, without a program of this build."""

    def __init__(self):
        self.folder = tempfile.TemporaryDirectory(prefix="holdfast-wire-")
        self.processes = []
        self.name, self.executable = server_command()
        if not self.executable:
            skip("no redis-server, valkey-server or redis-check-rdb in PATH")

    def ask(self, words):
        _, _, count = words.partition(" ")
        return [self.start() for _ in range(int(count or 1))]

    def start(self):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = str(free.getsockname()[1])
        folder = Path(self.folder.name, port)
        folder.mkdir()
        self.processes.append(subprocess.Popen(
            [self.name, "--port", port, "--bind", "127.0.0.1", "--save", "", "--appendonly", "no", "--dir", folder],
            executable=self.executable, stdout=subprocess.DEVNULL))

        def answers():
            try:
                link = Link(port)
            except ConnectionRefusedError:
                return False
            link.close()
            return True
        wait_for("a Redis server", answers)
        return port

    def end(self):
        for process in self.processes:
            process.kill()
            process.wait()
        self.folder.cleanup()


def known(kind, agents):
    """A kind is a word of the agent's source. `read-write` is two of them."""
    return kind in FIRST_KINDS or all(f'"{part}"' in text for part in kind.split("-") for text in agents)


def of_both(agents, report):
    """The table and the stress of what both versions know."""
    kinds = {kind for row in wire_rows.TABLE for kind in row.kinds}
    for kind in sorted(kind for kind in kinds if not known(kind, agents)):
        print(f"skipped: {kind}, which one of the two versions does not know")
        report.counts["skipped"] += 1
    table = [row._replace(kinds=tuple(kind for kind in row.kinds if known(kind, agents))) for row in wire_rows.TABLE]
    return table, [(kind, place) for kind, place in wire_rows.STRESS if known(kind, agents)]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("old", type=Path)
    parser.add_argument("new", type=Path)
    parser.add_argument("--row", default="")
    arguments = parser.parse_args()
    agents = [(root / AGENT).read_text(encoding="utf-8") for root in (arguments.old.parent / "source", HERE.parents[1])]
    report, rig = Report(), LocalServers()
    us = Side("today", [str(arguments.new / "agent")], arguments.new, ours=True)
    them = Side("the last release", [str(arguments.old / "agent")], arguments.old, ours=True)
    places = Places(rig, "", us)
    try:
        table, stress = of_both(agents, report)
        play_rows(report, table, arguments.row, places, us, them)
        play_stress(report, SimpleNamespace(stress=stress, prefix=""), arguments.row, places, us, them, arguments.new, 0)
    finally:
        us.end()
        them.end()
        rig.end()
    return report.end()


if __name__ == "__main__":
    sys.exit(main())
