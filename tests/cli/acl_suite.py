#!/usr/bin/env python3
# SPDX-License-Identifier: BSL-1.0
"""acl_suite.py HOLDFAST INTEGRATION_TESTS [--all | --least]: the rule that `holdfast acl` prints, enough and not too much.

Without an option: a selection of the integration tests and of the command line's, under exactly that rule. The servers'
default user has it, so each client of a test does; the rigs log in as another user. A test fails, too, if the server
refused a command and the library worked around it.

--all: all of them. --least: each word of each rule is taken away, one at a time, until a command is refused.
Exit code 77: there is no Redis server to run."""
import os
import re
import subprocess
import sys
from pathlib import Path

from least import judge
from rig import server_command

HERE = Path(__file__).resolve().parent
# Catch2's names: each kind, and each topology, in about half a minute.
SELECTION = [
    "every kind: one owner at a time*", "every kind: the questions are answered", "every kind: a lease with a TTL of its own*",
    "every kind: a key that has lost its TTL gets it back*", "every kind: a stranger's hold is waited for",
    "every kind: a release is told*", "every kind: force_unlock breaks the hold*", "every kind: an owner that holds re-enters*",
    "every kind: with_lock runs the body*", "every kind: scripts that the server forgets*",
    "every kind: a lock without a TTL*", "every kind: a lock that another one joins*",
    "a grant with min_replicas is on the replica when it is told", "locks of every kind are had*",
    "a slot that has moved is followed*",
]
EXPECTED = {"command config|get (toplevel)",  # of a client in a cluster: it shows passwords, and is in no rule of a service
            "channel __sentinel__:hello (toplevel)",  # of a sentinel that a test tells of its primary anew, without a login
            "command pexpireat (multi)"}  # of a primary: Redis 7.0 checks a replica's stream against the default user
CASES = ["free", "inspect", "list_", "hold", "semaphores", "shared", "wait", "watch", "doctor", "all_primaries_of_a_red_lock",
         "all_primaries_of_a_cluster", "the_primary_that_sentinels_name"]


class Suite:
    def __init__(self, program, tests):
        self.program, self.tests, self.failed = program, tests, 0

    def output_of(self, command, without=""):
        """The exit status, the output, and the refusals in it."""
        environment = {**os.environ, "HOLDFAST_TEST_ACL": self.program, "HOLDFAST_TEST_ACL_WITHOUT": without}
        done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              errors="replace", check=False)
        refused = set(re.findall(r"^refused by the ACL: (.*)", done.stdout, re.M))
        return done.returncode, done.stdout, sorted(refused - EXPECTED)

    def run(self, title, command):
        status, output, refused = self.output_of(command)
        for reason in re.findall(r"^skipped: .*", output, re.M):
            print(f"{title}: {reason}", flush=True)
        good = status in (0, 77) and not refused
        print(f"{title}: {'passed' if good else 'FAILED'}", flush=True)
        if not good:
            self.failed += 1
            print(output[-20_000:], *refused, sep="\n", flush=True)

    def integration(self, names):
        if not Path(self.tests).exists():
            print("skipped: the integration tests are not built")
        else:
            self.run("integration", [self.tests, *([",".join(names)] if names else [])])

    def command_line(self, names):
        for name in names:
            self.run(f"cli: {name}", [sys.executable, str(HERE / "cli_test.py"), self.program, str(HERE.parent.parent), name])

    def refused_without(self, word, names):
        """What the integration tests of these names are refused, or that one fails."""
        status, output, refused = self.output_of([self.tests, "--abort", ",".join(names)], word)
        failed = re.search(r"^  (every kind.*|[a-z].*)$", output, re.M)
        if refused:
            return refused[0]
        return f"a test fails: {failed[1] if failed else output[-200:]}" if status not in (0, 77) else None


def all_cases():
    text = (HERE / "cli_test.py").read_text(encoding="utf-8")
    return re.findall(r"^@case\ndef (\w+)", text, re.M)


def main():
    program, tests, *options = sys.argv[1:]
    if not server_command()[1]:
        print("skipped: no redis-server, valkey-server or redis-check-rdb in PATH")
        sys.exit(77)
    suite = Suite(program, tests)
    if options == ["--least"]:
        suite.failed = judge(suite)
    else:
        suite.integration([] if options == ["--all"] else SELECTION)
        suite.command_line(all_cases() if options == ["--all"] else CASES)
    sys.exit(bool(suite.failed))


if __name__ == "__main__":
    main()
