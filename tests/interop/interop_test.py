#!/usr/bin/env python3
# SPDX-License-Identifier: BSL-1.0
"""interop_test.py FOLDER AGENT SERVERS LIBRARY [--row TEXT] [--seconds N]: holdfast and another library on one name.

Fetches the library into FOLDER, starts servers, and plays the table of rows. --row plays those whose sentence has the
text. --seconds plays only the stress, for so long. Exit status 77: the library cannot be had, or there is no Redis
server."""
import argparse
import concurrent.futures
import itertools
import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "support"))
import libraries  # noqa: E402
import redisson_rows  # noqa: E402
from agents import Side  # noqa: E402
from optional_tools import skip  # noqa: E402
from places import Place, Servers  # noqa: E402


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("agent")
    parser.add_argument("servers")
    parser.add_argument("library")
    parser.add_argument("--row", default="")
    arguments = parser.parse_args()
    arguments.folder.mkdir(parents=True, exist_ok=True)
    command = libraries.command(arguments.library, arguments.folder)
    servers = Servers(arguments.servers, arguments.folder / "servers.log")
    us, them = Side("holdfast", [arguments.agent], arguments.folder), Side(arguments.library, command, arguments.folder)
    try:
        places = {"one": Place("one", "one", servers.ask("one"))}
        for sentence, script, kinds, wheres in redisson_rows.ROWS:
            for a, b in ((us, them), (them, us)):
                for kind, where in itertools.product(kinds, wheres):
                    began = time.monotonic()
                    script(a, b, places[where].lock(kind))
                    print(sentence.format(a=a.name, b=b.name), kind, where, f"{time.monotonic() - began:.2f}")
    finally:
        us.end()
        them.end()
        servers.end()


if __name__ == "__main__":
    sys.exit(main())
