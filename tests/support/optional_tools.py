# SPDX-License-Identifier: BSL-1.0
"""Tools that a test needs and may not find: it fetches them, or is skipped."""
import subprocess
import sys

FETCH = 120  # seconds
SKIPPED = 77


def skip(reason):
    print(f"skipped: {reason}")
    sys.exit(SKIPPED)


def run(*command, limit=FETCH, **how):
    return subprocess.run(command, timeout=limit, capture_output=True, text=True, check=False, **how)


def fetch(what, *command, **how):
    """`limit` in seconds, and what subprocess.run() takes."""
    try:
        done = run(*command, **how)
    except (OSError, subprocess.TimeoutExpired) as failure:
        skip(f"{what} cannot be fetched: {failure}")
    if done.returncode:
        skip(f"{what} cannot be fetched: {(done.stderr or done.stdout).strip().splitlines()[-1:]}")
