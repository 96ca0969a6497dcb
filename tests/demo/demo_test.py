# SPDX-License-Identifier: BSL-1.0
"""demo_test.py PROGRAM CASE: runs the demo and looks at its verdict, and at what it leaves behind.
Exit code 77: no Redis server to run."""
import contextlib
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request

NO_SERVER = 69
SCENES = 5


class Demo:
    """One run, as a session of its own, with a folder of its own for temporary files."""

    def __init__(self, program, folder, *arguments, **environment):
        self.folder = folder
        given = {name: text for name, text in os.environ.items() if name != "HOLDFAST_DEMO_BREAK"}
        self.process = subprocess.Popen(
            [program, *arguments], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True,
            env={**given, "TMPDIR": folder, **environment})
        self.output = ""

    def wait_for(self, text):
        for line in self.process.stdout:
            self.output += line
            if text in line:
                return
        self.fail(f"no line with {text!r}")

    def finish(self, *expected):
        self.output += self.process.communicate(timeout=90)[0]
        if self.process.returncode == NO_SERVER and "skipped: " in self.output:
            print(self.output, end="")
            sys.exit(77)
        if self.process.returncode not in expected:
            self.fail(f"exit status {self.process.returncode}, expected {expected[0]}")

    def signal_all(self, number):
        os.killpg(self.process.pid, number)  # as a terminal does

    def leaves_nothing(self, folder_too=True):
        deadline = time.monotonic() + 5
        while left := processes_of_session(self.process.pid):
            if time.monotonic() > deadline:
                self.fail(f"still running: {left}")
            time.sleep(0.02)
        if folder_too and os.listdir(self.folder):
            self.fail(f"left in TMPDIR: {os.listdir(self.folder)}")

    def fail(self, why):
        with contextlib.suppress(ProcessLookupError):
            self.signal_all(signal.SIGKILL)
        sys.exit(self.output + "\n" + why)


def processes_of_session(session):
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError):
            with open(f"/proc/{pid}/stat", encoding="utf-8") as file:
                name, rest = file.read().rsplit(")", 1)
            state, _, _, its_session = rest.split()[:4]
            if int(its_session) == session and state != "Z":
                found.append(name + ")")
    return found


class Server:
    """A Redis server as users have it: TCP, a password, foreign keys in the database."""

    def __init__(self, folder):
        name = shutil.which("redis-server") or shutil.which("valkey-server") or shutil.which("redis-check-rdb")
        if not name:
            print("skipped: no redis-server, valkey-server or redis-check-rdb in PATH")
            sys.exit(77)
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        # Debian's redis-server is redis-check-rdb under another name.
        self.process = subprocess.Popen(
            ["redis-server", "--port", str(self.port), "--bind", "127.0.0.1", "--save", "", "--dir", folder,
             "--requirepass", "a b@c"],
            executable=name, stdout=subprocess.DEVNULL)
        self.connection = self.connect()
        self.call("AUTH", "a b@c")
        self.call("SELECT", "3")
        self.url = f"redis://:a%20b%40c@localhost:{self.port}/3"

    def connect(self):
        deadline = time.monotonic() + 10
        while True:
            try:
                return socket.create_connection(("127.0.0.1", self.port), timeout=10)
            except OSError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.02)

    def call(self, *words):
        self.connection.sendall(
            b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%s\r\n" % (len(word), word.encode()) for word in words))
        return self.connection.recv(65536).decode()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()


def serve_of(program):
    """The command line of the same build."""
    path = os.path.join(os.path.dirname(program), "../../src/cli/holdfast")
    if not os.path.exists(path):
        print("skipped: no command line: it needs CLI11 and Boost.JSON")
        sys.exit(77)
    return path


def verdicts(output):
    return re.findall(r"^ +(ok|FAILED): ", output, re.MULTILINE)


def passes(program, folder):
    demo = Demo(program, folder)
    demo.finish(0)
    if verdicts(demo.output) != ["ok"] * (SCENES + 1) or "All scenes are ok" not in demo.output:
        demo.fail("not every scene has its verdict")
    if "\x1b" in demo.output:
        demo.fail("colours without a terminal")
    demo.leaves_nothing()
    return demo


def lives_through_a_failover(program, folder):
    demo = Demo(program, folder, "--scene", "failover")
    demo.finish(0)
    if verdicts(demo.output) != ["ok", "ok"] or "The scene is ok" not in demo.output:
        demo.fail("the scene has no verdict, or another one was played")
    steps = ("is the primary", "finds the lock held", "with SIGKILL", "observer: suspended", "observer: primary_changed",
             "observer: restored", "releases the lock", "without gap or repetition")
    found = [demo.output.find(step) for step in steps]
    if found != sorted(found) or found[0] < 0 or "after the death of the other" not in demo.output:
        demo.fail(f"not in the order of {steps}")
    demo.leaves_nothing()
    demo = Demo(program, folder, "--scene", "failover")
    demo.wait_for("with SIGKILL")
    begun = time.monotonic()
    demo.signal_all(signal.SIGINT)
    demo.finish(128 + signal.SIGINT)
    if time.monotonic() - begun > 5 or "FAILED" in demo.output:
        demo.fail("an interruption takes no 5 s, and is no failure")
    demo.leaves_nothing()
    return demo


def finds_a_broken_owner_check(program, folder):
    demo = Demo(program, folder, HOLDFAST_DEMO_BREAK="owner-check")
    demo.finish(1)
    if verdicts(demo.output) != ["FAILED"] + ["ok"] * SCENES:
        demo.fail("expected the first scene to fail, and only that")
    for needed in ("expected one task inside at a time", "expected every number written once", "1 scene FAILED"):
        if needed not in demo.output:
            demo.fail(f"no {needed!r}")
    demo.leaves_nothing()
    return demo


def refuses_wrong_arguments(program, folder):
    for arguments, environment, status in (
            (["--help"], {}, 0), (["--nonsense"], {}, 64), (["--url"], {}, 64), (["extra"], {}, 64),
            ([], {"HOLDFAST_DEMO_BREAK": "nonsense"}, 64), (["--worker"], {}, 64),
            (["--scene"], {}, 64), (["--scene", "nonsense"], {}, 64), (["--page"], {}, 64), (["--page", "nonsense"], {}, 64),
            (["--scene", "failover", "--url", "redis://localhost"], {}, 64), (["--url", "redis+sentinel://h/m"], {}, 64),
            (["--url", "nonsense"], {}, 64), (["--url", "rediss://localhost"], {}, 64),
            (["--url", "redis+unix:///nowhere/at/all"], {}, 1)):
        demo = Demo(program, folder, *arguments, **environment)
        demo.finish(status)
        if not demo.output:
            demo.fail(f"says nothing for {arguments}")
        demo.leaves_nothing()
    return demo


def interrupted(program, folder):
    for number, scene in ((signal.SIGINT, "BREAKS"), (signal.SIGTERM, "renewed"), (signal.SIGINT, "cuts A off")):
        demo = Demo(program, folder, HOLDFAST_DEMO_BREAK="owner-check" if scene == "BREAKS" else "")
        demo.wait_for(scene)
        begun = time.monotonic()
        demo.signal_all(number)
        demo.finish(128 + number)
        if time.monotonic() - begun > 5:
            demo.fail("took more than 5 s to end")
        if scene != "BREAKS" and "FAILED" in demo.output:
            demo.fail("an interruption is no failure")
        demo.leaves_nothing()
    demo = Demo(program, folder)
    demo.wait_for("renewed")
    demo.process.kill()
    demo.finish(-signal.SIGKILL)
    demo.leaves_nothing(folder_too=False)
    return demo


def uses_a_given_server(program, folder):
    with tempfile.TemporaryDirectory() as data, Server(data) as server:
        server.call("SET", "foreign", "1")
        demo = Demo(program, folder, "--url", server.url)
        demo.wait_for("renewed")
        if server.call("DBSIZE") != ":2\r\n":
            demo.fail("expected two keys while a lock is held")
        demo.process.send_signal(signal.SIGTERM)
        demo.finish(128 + signal.SIGTERM)
        if server.call("KEYS", "*") != "*1\r\n$7\r\nforeign\r\n":
            demo.fail("its key is left, or a foreign one is gone: " + server.call("KEYS", "*"))
        demo = Demo(program, folder, "--url", server.url)
        demo.finish(0)
        if server.call("KEYS", "*") != "*1\r\n$7\r\nforeign\r\n":
            demo.fail("its key is left, or a foreign one is gone: " + server.call("KEYS", "*"))
        if "a b@c" in demo.output or "a%20b" in demo.output:
            demo.fail("shows the password")
    demo.leaves_nothing()
    return demo


def shows_the_page(program, folder):
    demo = Demo(program, folder, "--page", serve_of(program), "--scene", "renewal")
    demo.wait_for("The page: ")
    url = re.search(r"The page: (\S+)", demo.output)[1]
    deadline = time.monotonic() + 60
    while '"lock":{"name"' not in (text := fetch(url + "api/locks")):
        if time.monotonic() > deadline:
            demo.fail(f"no lock is shown: {text}")
    for _ in range(2):  # the scene is played again
        demo.wait_for("ok: held for")
    demo.signal_all(signal.SIGINT)
    demo.finish(128 + signal.SIGINT)
    demo.leaves_nothing()
    return demo


def fetch(url):
    with urllib.request.urlopen(url, timeout=60) as answer:
        return answer.read().decode()


CASES = {case.__name__: case for case in (
    passes, lives_through_a_failover, finds_a_broken_owner_check, refuses_wrong_arguments, interrupted, uses_a_given_server,
    shows_the_page)}

if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    with tempfile.TemporaryDirectory() as temporary:
        print(CASES[sys.argv[2]](sys.argv[1], temporary).output, end="")
