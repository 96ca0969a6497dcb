# SPDX-License-Identifier: BSL-1.0
"""Servers, terminals and processes for the tests of the command line."""
import contextlib
import fcntl
import json
import os
import pty
import re
import select
import shutil
import signal
import socket
import subprocess
import sys
import termios
import time
import uuid
from pathlib import Path

LIMIT = 60  # seconds: nothing takes that long; a test waits for what it expects, and fails after this
MARK = "HOLDFAST_TEST_MARK"
ACL = os.environ.get("HOLDFAST_TEST_ACL")  # holdfast: clients have the rights that its `acl --operator` prints, and no more
OWNER = "0123abcd-0123-8abc-9def-0123456789ab"  # nobody's uuid


class Failure(Exception):
    pass


def check(holds, text):
    if not holds:
        raise Failure(text)


def wait_until(condition, text):
    """The first true value of the condition."""
    deadline = time.monotonic() + LIMIT
    while not (value := condition()):
        check(time.monotonic() < deadline, f"not in {LIMIT} s: {text}")
        time.sleep(0.005)
    return value


def server_command():
    """Debian's redis-server is redis-check-rdb under another name, and only the latter comes with redis-tools."""
    for name in ("redis-server", "valkey-server"):
        if shutil.which(name):
            return name, shutil.which(name)
    return "redis-server", shutil.which("redis-check-rdb")


class ErrorReply(Exception):
    pass


class Connection:
    """As much of RESP2 as the tests need."""

    def __init__(self, path):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.settimeout(LIMIT)
        self.socket.connect(path)
        self.file = self.socket.makefile("rb")

    def do(self, *words):
        words = [word if isinstance(word, bytes) else str(word).encode() for word in words]
        self.socket.sendall(b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%s\r\n" % (len(word), word) for word in words))
        return self.read()

    def read(self):
        line = self.file.readline()
        check(line, "the server closed the connection")
        kind, rest = line[:1], line[1:-2]
        if kind == b"-":
            raise ErrorReply(rest.decode())
        if kind == b":":
            return int(rest)
        if kind == b"$":
            return None if int(rest) < 0 else self.file.read(int(rest) + 2)[:-2]
        if kind == b"*":
            return None if int(rest) < 0 else [self.read() for _ in range(int(rest))]
        return rest.decode()

    def close(self):
        self.file.close()
        self.socket.close()


class Redis:
    """A server on a unix socket. `service`: the URL of a service with such a server; `path`: that of another, which has ended."""

    def __init__(self, folder, *options, configuration=None, service="redis://localhost", path=None):
        name, executable = server_command()
        if not executable:
            print("skipped: no redis-server, valkey-server or redis-check-rdb in PATH")
            sys.exit(77)
        self.path = path or os.path.join(folder, f"{uuid.uuid4().hex[:8]}.sock")
        self.url = "redis+unix://" + self.path
        settings = [configuration] if configuration else ["--port", "0", "--save", "", "--appendonly", "no"]
        self.process = subprocess.Popen([name, *settings, "--unixsocket", self.path, "--dir", folder, *options],
                                        executable=executable, stdout=subprocess.DEVNULL)
        self.connection = None
        wait_until(self.answers, "the server starts")
        if ACL:
            self.restrict(service, bool(configuration))

    def answers(self):
        with contextlib.suppress(OSError):
            self.connection = Connection(self.path)
            return True
        check(self.process.poll() is None, "the server did not start")
        return False

    def do(self, *words):
        return self.connection.do(*words)

    def restrict(self, service, of_sentinel):
        """The rights of an operator, by `holdfast acl`."""
        version = re.search(r"redis_version:(\S+)", self.do("INFO", "server").decode())[1]
        text = subprocess.check_output([ACL, "acl", "--json", "--operator", "--fenced", "--simple", "--fair", "--permits", "--shared", "--election", "--notes", "--braces",
                                        "--server-version", version, "--url", service])
        self.allow(json.loads(text.splitlines()[of_sentinel])["rules"])

    def allow(self, rules):
        """The rules are those of the default user, so of all but this connection."""
        self.do("ACL", "SETUSER", "rig", "on", ">rig", "~*", "&*", "+@all")
        self.do("AUTH", "rig", "rig")
        self.do("ACL", "SETUSER", "default", "reset", "on", "nopass", *rules)
        self.do("ACL", "LOG", "RESET")

    def refusals(self):
        """What the default user was refused for a missing right."""
        entries = [dict(zip(entry[::2], entry[1::2])) for entry in self.do("ACL", "LOG")]
        return [" ".join(entry[word].decode() for word in (b"reason", b"object", b"context")) for entry in entries
                if entry[b"username"] == b"default" and entry[b"reason"] != b"auth"]

    def keys(self):
        return sorted(self.do("KEYS", "*"))

    def lock(self, name, owner=f"{OWNER}:1", count=1, ttl=600_000):
        self.do("HSET", name, owner, count)
        self.do("PEXPIRE", name, ttl)

    def kill(self):
        if self.connection:
            self.connection.close()
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()


class Job:
    """The command line under test, in a session of its own: in pipes, or on a terminal."""

    def __init__(self, program, *arguments, url=None, terminal=False, environment=None, stdin=subprocess.DEVNULL, **how):
        self.mark = uuid.uuid4().hex
        given = {name: text for name, text in os.environ.items() if not name.startswith("HOLDFAST_") and name != "NO_COLOR"}
        if url:
            given["HOLDFAST_URL"] = url
        given.update(environment or {})
        given[MARK] = self.mark
        self.terminal = None
        self.output = ""
        if terminal:
            self.terminal, inner = pty.openpty()

            def take_terminal():
                fcntl.ioctl(0, termios.TIOCSCTTY, 0)

            self.process = subprocess.Popen([program, *arguments], stdin=inner, stdout=inner, stderr=inner, env=given,
                                            start_new_session=True, preexec_fn=take_terminal, **how)
            os.close(inner)
        else:
            self.process = subprocess.Popen([program, *arguments], stdin=stdin, stdout=subprocess.PIPE,
                                            stderr=subprocess.STDOUT, env=given, start_new_session=True, **how)

    @property
    def pid(self):
        return self.process.pid

    def descriptor(self):
        return self.terminal if self.terminal is not None else self.process.stdout.fileno()

    def read_some(self, deadline):
        """False: the output has ended."""
        check(select.select([self.descriptor()], [], [], max(0, deadline - time.monotonic()))[0],
              f"no output in {LIMIT} s after: {self.output}")
        try:
            got = os.read(self.descriptor(), 65536)
        except OSError:  # a terminal without a process
            got = b""
        self.output = (self.output + got.decode(errors="replace")).replace("\r\n", "\n")  # two reads may part them
        return bool(got)

    def wait_for(self, text, times=1):
        deadline = time.monotonic() + LIMIT
        while self.output.count(text) < times:
            check(self.read_some(deadline), f"no {text!r} in: {self.output}")
        return self

    def type(self, text):
        os.write(self.terminal, text.encode())

    def signal(self, number):
        os.kill(self.pid, number)

    def finish(self):
        """The exit status, as a shell has it."""
        deadline = time.monotonic() + LIMIT
        while self.read_some(deadline):
            pass
        return self.wait()

    def wait(self):
        status = self.process.wait(timeout=LIMIT)
        return status if status >= 0 else 128 - status

    def processes(self):
        """Those that the job has started, and that live."""
        found = []
        for pid in filter(str.isdigit, os.listdir("/proc")):
            with contextlib.suppress(OSError):
                with open(f"/proc/{pid}/environ", "rb") as file:
                    if f"{MARK}={self.mark}".encode() not in file.read():
                        continue
                with open(f"/proc/{pid}/stat", encoding="utf-8") as file:
                    if file.read().rsplit(")", 1)[1].split()[0] != "Z":
                        found.append(int(pid))
        return found

    def leaves_nobody(self):
        wait_until(lambda: not self.processes(), f"all processes of the job end; output: {self.output}")

    def close(self):
        for pid in self.processes():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self.process.wait()
        if self.terminal is not None:
            os.close(self.terminal)
        else:
            self.process.stdout.close()


def plain(text):
    """Without what differs from run to run."""
    text = re.sub(r"[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}(:\d+)?(/\d+)?", "OWNER", text)
    text = re.sub(r"\b[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}:\d+", "PERMIT", text)
    text = re.sub(r"\b\d+ on [\w.-]+", "PID on HOST", text)
    text = re.sub(r"\b\d+(\.\d+)? (s|ms|min|h)( \d+ (s|min))?\b", "TIME", text)
    text = re.sub(r"\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", "INSTANT", text)
    text = re.sub(r"redis\+unix://\S+?\.sock", "URL", text)
    text = re.sub(r"\b1[5-9]\d{14}\b", "TOKEN", text)
    return re.sub(r" {2,}", "  ", text)


class Election:
    """The election "region", by the library's own scripts."""

    def __init__(self, server):
        self.folder, self.server = Path(__file__).resolve().parents[2] / "src/protocol/election", server

    def run(self, script, keys, *words):
        text = (self.folder / f"{script}.lua").read_text(encoding="utf-8")
        return self.server.do("EVAL", text, len(keys), *keys, *words)

    def elect(self, number, value, name="region"):
        """The term."""
        return self.run("campaign", [name, f"redisson_lock_token:{{{name}}}"], 50_000, f"{OWNER}:{number}", value, "publish",
                        f"holdfast_election:{{{name}}}")[0]

    def proclaim(self, number, value):
        self.run("proclaim", ["region"], f"{OWNER}:{number}", value, "publish", "holdfast_election:{region}")

    def resign(self, number):
        self.run("resign", ["region"], "publish", "redisson_lock__channel:{region}", "holdfast_election:{region}", f"{OWNER}:{number}")

    def listen(self, stem):
        connection = Connection(self.server.path)
        connection.do("SUBSCRIBE", f"{stem}:{{region}}")
        return connection
