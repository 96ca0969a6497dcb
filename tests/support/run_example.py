# SPDX-License-Identifier: BSL-1.0
"""run_example.py PROGRAM SOURCE [SERVERS]: runs PROGRAM with the URL of a private Redis server, or of so many, and compares
what it prints with the comment block after `// Output:` at the end of SOURCE, if there is one. Exit code 77: there is no
Redis server to run."""
import difflib
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time


def server_command():
    """Debian's redis-server is redis-check-rdb under another name, and only the latter comes with redis-tools."""
    for name in ("redis-server", "valkey-server"):
        if shutil.which(name):
            return name, shutil.which(name)
    return "redis-server", shutil.which("redis-check-rdb")


def listens(path):
    with socket.socket(socket.AF_UNIX) as probe:
        return probe.connect_ex(path) == 0


def start_server(directory, number):
    name, executable = server_command()
    if not executable:
        print("skipped: no redis-server, valkey-server or redis-check-rdb in PATH")
        sys.exit(77)
    path = os.path.join(directory, f"redis{number}.sock")
    server = subprocess.Popen(
        [name, "--port", "0", "--unixsocket", path, "--save", "", "--appendonly", "no", "--dir", directory],
        executable=executable, stdout=subprocess.DEVNULL)
    deadline = time.monotonic() + 10
    while not listens(path):
        if server.poll() is not None or time.monotonic() > deadline:
            server.kill()
            sys.exit("the Redis server did not start")
        time.sleep(0.01)
    return server, "redis+unix://" + path


def expected_output(source):
    with open(source, encoding="utf-8") as file:
        _, marker, block = file.read().rpartition("\n// Output:\n")
    if not marker:
        return None
    return [line.removeprefix("//").removeprefix("   ") for line in block.splitlines() if line.startswith("//")]


def main(program, source, count="1"):
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # by way of `finally`
    with tempfile.TemporaryDirectory() as directory:
        servers, urls = [], []
        try:
            for number in range(int(count)):
                server, url = start_server(directory, number)
                servers.append(server)
                urls.append(url)
            run = subprocess.run([program, *urls], stdout=subprocess.PIPE, text=True, timeout=100)
        finally:
            for server in servers:
                server.terminate()
                server.wait()
    print(run.stdout, end="")
    expected = expected_output(source)
    if run.returncode != 0:
        sys.exit(f"{program} ended with {run.returncode}")
    if expected is not None and expected != run.stdout.splitlines():
        sys.exit("\n".join(difflib.unified_diff(expected, run.stdout.splitlines(), source, "printed", lineterm="")))


if __name__ == "__main__":
    main(*sys.argv[1:])
