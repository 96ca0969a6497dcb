#!/usr/bin/env python3
# SPDX-License-Identifier: BSL-1.0
"""other_languages_test.py PEER FOLDER redis-py|redlock: a simple_mutex and a lock of another library keep each other out.

Fetches the library into the folder. Exit status 77: it cannot be had, or there is no Redis server."""
import shutil
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))
from optional_tools import fetch, skip  # noqa: E402

HERE = Path(__file__).resolve().parent
ROUNDS = 150
LIMIT = 120


def redis_py(folder):
    python = folder / "python" / "bin" / "python"
    if not python.exists():
        fetch("a virtual environment", sys.executable, "-m", "venv", str(folder / "python"))
    fetch("redis from PyPI", str(python), "-m", "pip", "install", "--quiet", "redis>=5")
    return [str(python), str(HERE / "redis_py.py")]


def redlock(folder):
    if not shutil.which("npm") or not shutil.which("node"):
        skip("no node, or no npm")
    place = folder / "node"
    place.mkdir(parents=True, exist_ok=True)
    fetch("redlock from npm", "npm", "install", "--silent", "--no-audit", "--no-fund", "redlock@5.0.0-beta.2", "ioredis@5",
          cwd=place)
    shutil.copy(HERE / "redlock.js", place)
    return ["node", str(place / "redlock.js")]


def main(peer, folder, library):
    other = {"redis-py": redis_py, "redlock": redlock}[library](Path(folder))
    ours = subprocess.Popen([peer, str(ROUNDS)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        socket = ours.stdout.readline().strip()
        if not socket.startswith("/"):
            skip(socket)
        theirs = subprocess.run([*other, socket, str(ROUNDS)], timeout=LIMIT, check=False)
        counter, _ = ours.communicate(timeout=LIMIT)
    finally:
        ours.kill()
    print(f"{library}: {counter.strip()} of {2 * ROUNDS}")
    return 0 if theirs.returncode == 0 and ours.returncode == 0 and counter.strip() == str(2 * ROUNDS) else 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
