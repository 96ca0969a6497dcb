#!/usr/bin/env python3
# SPDX-License-Identifier: BSL-1.0
"""cli_test.py PROGRAM ROOT CASE: the command line on servers of its own, in a pipe and on a terminal. Its output is
compared with the transcripts below. Exit code 77: there is no Redis server to run."""
import contextlib
import json
import os
import re
import resource
import select
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

from rig import ACL, OWNER, Connection, Election, ErrorReply, Failure, Job, Redis, check, plain, wait_until
from schema import complaints

CASES = {}
HOSTILE = "a\nb\x1b[31mc\\d"
SHOWN = "a\\x0ab\\x1b[31mc\\\\d"  # HOSTILE, for people
COLOUR = re.compile(r"\x1b\[[0-9;]*m")


def case(function):
    CASES[function.__name__] = function
    return function


class Place:
    """The program, and a server."""

    def __init__(self, program, root, folder):
        self.program, self.root, self.folder = program, Path(root), folder
        self.jobs, self.servers = [], []
        self.server = self.start_server()
        self.schema = json.loads((self.root / "docs/cli.schema.json").read_text(encoding="utf-8"))

    def start_server(self, *options, **how):
        self.servers.append(Redis(self.folder, *options, **how))
        return self.servers[-1]

    def start(self, *arguments, url=None, **how):
        self.jobs.append(Job(self.program, *arguments, url=url or self.server.url, **how))
        return self.jobs[-1]

    def finish(self, *arguments, status=0, **how):
        job = self.start(*arguments, **how)
        got = job.finish()
        check(got == status, f"{arguments}: exit status {got}, not {status}: {job.output}")
        job.leaves_nobody()
        return job.output

    def transcript(self, arguments, expected, status=0, mask=(), **how):
        """The same in a pipe, on a terminal, and on one without colours."""
        for terminal, environment in ((False, {}), (True, {}), (True, {"NO_COLOR": "1"})):
            text = self.finish(*arguments, status=status, terminal=terminal, environment=environment, **how)
            check(terminal and not environment or not COLOUR.search(text), f"{arguments}: colours where none belong: {text!r}")
            text = plain(COLOUR.sub("", text))
            for pattern, replacement in mask:
                text = re.sub(pattern, replacement, text)
            check(text == expected, f"{arguments}, terminal: {terminal}:\n{text}\ninstead of\n{expected}")

    def lines(self, *arguments, status=0, **how):
        """JSON lines, each as the schema of the subcommand has it."""
        lines = [json.loads(line) for line in self.finish(*arguments, "--json", status=status, **how).splitlines()]
        for line in lines:
            self.fits(arguments[0], line)
        return lines

    def fits(self, subcommand, line):
        found = complaints(line, self.schema["$defs"][subcommand], self.schema)
        check(not found, f"{subcommand}: {line}: {found}")

    def hold(self, name, *options, **how):
        return self.start("hold", name, *options, **how).wait_for("held")

    def has_its_rights(self):
        """Under the rule of `holdfast acl` nothing was refused: some refusals are worked around, and fail nothing."""
        for server in self.servers if ACL else []:
            if server.process.poll() is None:
                # `watch` asks for the pattern of its names first.
                gaps = [gap for gap in server.refusals()
                        if not re.match(r"channel (redisson_lock__channel|holdfast_simple|redisson_sc|redisson_rwlock|holdfast_wake|holdfast_election):\*", gap)]
                check(not gaps, f"refused: {gaps}")

    def close(self):
        for job in self.jobs:
            job.close()
        for server in self.servers:
            if server.process.poll() is None:
                server.kill()


@case
def version(place):
    text = place.finish("version", "--deps")
    check(re.fullmatch(r"holdfast \d+\.\d+\.\d+\nboost \S+\ncli11 \S+\nhiredis \S+\nopenssl .+\ncompiler .+\n", text), text)
    place.transcript(["version"], place.finish("version"))
    check(place.finish("--version") == place.finish("version"), place.finish("--version"))
    place.transcript(["version", "--deps"], text)
    place.lines("version", "--deps")


@case
def free(place):
    place.transcript(["free", "orders:42"], "orders:42 was free\n")
    for terminal in (False, True):
        holder = place.hold("orders:42", "--ttl", "3")
        text = plain(place.finish("free", "orders:42", terminal=terminal))
        check(text == "orders:42 is freed; it was held by OWNER, process PID on HOST (holdfast)\n", text)
        check(holder.finish() == 79, f"the holder goes on: {holder.output}")
    place.server.lock("x")
    check(place.lines("free", "x") == [{"name": "x", "freed": True, "holder": f"{OWNER}:1", "permits": None, "readers": None}],
          "JSON of free")
    holder = place.hold("simple", "--simple")
    place.finish("free", "simple")
    check(not place.server.keys(), "a simple lock was not freed")


@case
def free_refuses_data(place):
    place.server.do("RPUSH", "list", "data")
    place.server.do("HSET", "hash", "a", "1", "b", "2")
    place.server.do("HSET", "counter", "visits", "1")
    place.server.do("SET", "page", "data", "PX", "600000")
    place.server.do("SET", "kept", f"{OWNER}:1")
    before = place.server.keys()
    place.transcript(["free", "list"], "holdfast: list was not freed: it is a list\n", status=65)
    place.finish("free", "hash", status=65)
    place.finish("free", "counter", status=65)
    place.finish("free", "page", status=65)
    place.finish("free", "kept", status=65)
    check(place.server.keys() == before, "data was freed")
    place.finish("free", "page", "--simple")
    check(b"page" not in place.server.keys(), "--simple does not free the lock of another program")


@case
def inspect(place):
    place.transcript(["inspect", "orders:42"], "orders:42 is free\n")
    place.server.do("RPUSH", "list", "data")
    place.transcript(["inspect", "list"], "list is no lock: a list\n", status=65)
    holder = place.hold("orders:42", "--fenced")
    token = place.server.do("GET", "redisson_lock_token:{orders:42}").decode()
    place.transcript(["inspect", "orders:42"], (
        "name  orders:42\nkind  fenced_mutex\nholder  OWNER\nprocess  PID on HOST (holdfast)\ncount  1\nsince  -\nttl  TIME\n"
        "token  TOKEN\nwaiters  0\nnote  -\n"))
    line, = place.lines("inspect", "orders:42")
    check(line["process"]["pid"] == str(holder.pid) and line["process"]["host"] == socket.gethostname(), line)
    check(line["token"] == int(token) and line["state"] == "held" and line["note"] is None, line)
    check(place.lines("inspect", "free one")[0]["state"] == "free", "JSON of a free lock")


@case
def list_(place):
    place.transcript(["list"], "NAME  KIND  COUNT TTL  WAITERS TOKEN  SINCE  PROCESS  HOLDER  NOTE\n")
    place.hold("orders:1")
    place.server.lock("orders:2", count=3)
    place.hold("orders:3", "--simple")
    place.server.do("SET", "page", "data", "PX", "600000")
    place.server.do("HSET", "hash", "a", "1", "b", "2")
    rows = [re.sub(" +", " ", row) for row in sorted(plain(place.finish("list", "orders:*")).splitlines()[1:])]
    check(rows == ["orders:1 mutex 1 TIME 0 - - PID on HOST (holdfast) OWNER -", "orders:2 mutex 3 TIME 0 - - - OWNER -",
                   "orders:3 simple_mutex 1 TIME 0 - - PID on HOST (holdfast) OWNER -"], rows)
    check(len(place.lines("list")) == 3, "data is listed")
    check({line["name"] for line in place.lines("list", "--any-string")} == {"orders:1", "orders:2", "orders:3", "page"}, "")
    check([line["name"] for line in place.lines("list", "*:2")] == ["orders:2"], "a pattern")


@case
def notes(place):
    """Since when and what for: by --note of every kind, until the lock has another holder; escaped on a terminal."""
    for kind in ([], ["--fenced"], ["--simple"]):
        job = place.hold("x", "--note", "order 42, request 7f3a", *kind)
        wait_until(lambda: place.lines("inspect", "x")[0]["note"], "the note is written")
        before = time.time()
        line, = place.lines("list")
        check(line["note"] == "order 42, request 7f3a" and abs(line["since_ms"] / 1000 - before) < 60, line)
        check("INSTANT" in plain(place.finish("list")), "list shows the instant")
        text = plain(COLOUR.sub("", place.finish("inspect", "x", terminal=True)))
        check("since  INSTANT" in text and "order 42, request 7f3a" in text, text)
        check([line["name"] for line in place.lines("list", "--any-string")] == ["x"], "a note is listed as a lock")
        job.signal(signal.SIGTERM)
        job.finish()
        other = place.hold("x", *kind)
        line, = place.lines("list")
        check(line["note"] is None and line["since_ms"] is None, f"the note of the last holder: {line}")
        other.signal(signal.SIGTERM)
        other.finish()
    look = f"until {shlex.quote(place.program)} inspect y | grep -q nightly; do :; done"
    place.finish("run", "y", "--note", "nightly", "--", "sh", "-c", look)
    place.finish("hold", "y", "--note", "x" * 201, status=64)
    place.server.lock("z")
    for note in (b"", b"garbage", b"1750000000000 " + OWNER.encode() + b":1 a\x1b[31m\nb\xff", b"\xff" * 1000):
        place.server.do("SET", "holdfast_note:{z}", note)
        for terminal in (False, True):
            text = place.finish("list", "z", terminal=terminal)
            check("\x1b[31m" not in text and len(text.splitlines()) == 2, repr(text))
    place.server.do("SET", "holdfast_note:{z}", b"1750000000000 " + OWNER.encode() + b":1 a\x1b[31m\nb\xff")
    check("2025-06-15T15:06:40Z" in place.finish("list", "z"), "the instant")
    check("a\\x1b[31m\\x0ab\\xff" in place.finish("list", "z"), "escaped on a terminal")
    line, = place.lines("list", "z")
    check(bytes.fromhex(line["note_hex"]) == b"a\x1b[31m\nb\xff", line)
    place.server.do("SET", "holdfast_note:{z}", f"1750000000000 {OWNER}:1 grün")
    check(place.lines("inspect", "z")[0]["note"] == "grün", "UTF-8 is exact")
    place.server.do("DEL", "holdfast_note:{z}")
    place.server.do("RPUSH", "holdfast_note:{z}", "another type")
    check(place.lines("list", "z")[0]["note"] is None, "another type beside a lock")


@case
def names_of_all_bytes(place):
    place.server.lock(HOSTILE)
    place.server.lock("grün")
    place.server.lock(b"\xff\xfe")
    for terminal in (False, True):
        text = place.finish("list", terminal=terminal)
        check("a\\x0ab\\x1b[31mc\\\\d " in text and "\\xff\\xfe" in text, text)
        check("\x1b[31m" not in text and len(text.splitlines()) == 4, repr(text))
    names = {line.get("name_hex", line["name"]) for line in place.lines("list")}
    check(names == {HOSTILE, "grün", "fffe"}, names)
    check(place.lines("inspect", HOSTILE)[0]["name"] == HOSTILE, "")
    place.server.lock("-x")
    place.finish("free", "--", "-x")
    place.finish("run", HOSTILE, "-n", "--", "true", status=75)


@case
def no_name_moves_the_cursor(place):
    """Names, prefixes, users, URLs and options with line feeds and escape sequences, in each subcommand."""
    def harmless(*arguments, shown=SHOWN, **how):
        for terminal in (False, True):
            text = place.finish(*arguments, terminal=terminal, **how)
            check("\x1b[31mc" not in text and "a\nb" not in text and shown in text, f"{arguments}: {text!r}")

    harmless("inspect", HOSTILE)
    harmless("wait", HOSTILE)
    harmless("hold", HOSTILE, "--for", "0.01")
    harmless("run", HOSTILE, "--ttl", "0.5", "--max-hold", "0.1", "--", "sleep", "60", status=79)
    harmless("run", "x", "--", HOSTILE, status=127)
    harmless("free", HOSTILE)
    place.server.lock(HOSTILE)
    harmless("inspect", HOSTILE)
    harmless("list")
    harmless("watch", "a*", "--for", "0.05", "--every", "0.02")
    harmless("watch", "--for", "0.05", "--every", "0.02")
    for arguments in (["wait", HOSTILE, "-w", "1"], ["hold", HOSTILE, "-n"], ["run", HOSTILE, "-n", "--", "true"]):
        harmless(*arguments, status=75)
    place.fits("hold", held := json.loads(place.finish("hold", HOSTILE, "-n", "--json", status=75)))
    check(held["name"] == HOSTILE, held)
    place.server.do("PERSIST", HOSTILE)
    harmless("doctor", shown="a\\x0ab\\x1b[31mc", status=2)
    place.server.do("DEL", HOSTILE)
    place.server.do("RPUSH", HOSTILE, "data")
    for subcommand in ("inspect", "free"):
        harmless(subcommand, HOSTILE, status=65)
    harmless("acl", "--server-version", "7.0", "--prefix", HOSTILE, shown="a?b?")
    harmless("acl", "--server-version", "7.0", "--rule-for", HOSTILE, shown="--rule-for", status=64)
    harmless("completion", HOSTILE, shown="holdfast: ", status=64)
    harmless("list", "--" + HOSTILE, shown="holdfast: ", status=64)
    harmless("list", "--password-file", HOSTILE, shown="holdfast: ", status=64)
    harmless("list", "--url", "redis://" + HOSTILE, shown="holdfast: ", status=78)
    harmless("list", "--user", HOSTILE, shown="holdfast: ", environment={"HOLDFAST_PASSWORD": "x"}, status=78)
    harmless("doctor", "--check-user", HOSTILE, shown="\\x1b[31mc", status=2)


@case
def a_prefix_is_taken_away(place):
    url = place.server.url + "?key_prefix=app%5B1%5D:"
    place.server.lock("app[1]:x")
    place.server.lock("app1:y")
    check([line["name"] for line in place.lines("list", url=url)] == ["x"], "the prefix is no pattern")
    check(place.lines("inspect", "x", url=url)[0]["state"] == "held", "")


@case
def hold(place):
    for terminal in (False, True):
        job = place.hold("orders:42", terminal=terminal)
        check(plain(job.output) == "orders:42: held, id OWNER\n", job.output)
        job.signal(signal.SIGTERM)
        check(job.finish() == 0 and plain(job.output).endswith("orders:42: released, id OWNER\n"), job.output)
        check(not place.server.keys(), "the lock is left")
    place.transcript(["hold", "orders:42", "--for", "0.01"], "orders:42: held, id OWNER\norders:42: released, id OWNER\n")
    lines = place.lines("hold", "orders:42", "--fenced", "--for", "0.01")
    check([line["event"] for line in lines] == ["held", "released"] and lines[0]["token"] > 0, lines)
    place.server.lock("orders:42")
    place.transcript(["hold", "orders:42", "-n"], "holdfast: orders:42 is busy\n", status=75)
    lost = place.hold("lost", "--ttl", "3")
    place.server.do("DEL", "lost")
    check(lost.finish() == 79, lost.output)


@case
def permits(place):
    """At most K at once, under exactly the rule that `acl --permits` prints."""
    line, = place.lines("acl", "--permits", url=place.server.url + "?key_prefix=app:")
    place.server.do("ACL", "SETUSER", "locker", "reset", "on", ">pw", *line["rules"])
    how = {"url": place.server.url + "?key_prefix=app:", "environment": {"HOLDFAST_USER": "locker", "HOLDFAST_PASSWORD": "pw"}}
    first, second = (place.hold("pool", "--permits", "2", **how) for _ in range(2))
    place.finish("run", "pool", "--permits", "2", "-n", "--", "true", status=75, **how)
    waiter = place.start("run", "pool", "--permits", "2", "--", "sh", "-c", "echo $HOLDFAST_LOCK_KIND", **how)
    wait_until(lambda: b"redisson_sc:{app:pool}" in place.server.do("PUBSUB", "CHANNELS", "*"), "it waits")
    first.signal(signal.SIGTERM)
    check(waiter.finish() == 0 and plain(waiter.output) == "expirable_semaphore\n", waiter.output)
    second.signal(signal.SIGTERM)
    check(first.finish() == 0 and second.finish() == 0, first.output + second.output)
    check(place.server.do("GET", "app:pool") == b"2", "all permits are back")
    check(not place.server.refusals(), place.server.refusals())
    for other in "--simple", "--fenced", "--red":
        place.finish("run", "pool", "--permits", "2", other, "--", "true", status=64)
    place.finish("run", "pool", "--permits", "0", "--", "true", status=64)
    place.finish("run", "pool", "--permits", "2", "--note", "why", "--", "true", status=64)


@case
def several_permits(place):
    """--take: all of them or none, and clear words for numbers that cannot be right."""
    one = place.hold("pool", "--permits", "3", "--take", "1")
    place.finish("run", "pool", "--permits", "3", "--take", "3", "-n", "--", "true", status=75)
    place.finish("run", "pool", "--permits", "3", "--take", "3", "-n", "--", "true", status=75)
    two = place.hold("pool", "--permits", "3", "--take", "2")
    check(place.server.do("ZCARD", "{pool}:timeout") == 3, "all permits are out")
    waiter = place.start("run", "pool", "--permits", "3", "--take", "3", "--", "echo", "has all")
    wait_until(lambda: b"redisson_sc:{pool}" in place.server.do("PUBSUB", "CHANNELS", "*"), "it waits")
    for job in one, two:
        job.signal(signal.SIGTERM)
        check(job.finish() == 0, job.output)
    check(waiter.finish() == 0 and waiter.output == "has all\n", waiter.output)
    check(place.server.do("GET", "pool") == b"3", "all permits are back")
    for arguments, words in ((["--take", "2"], "--take goes with --permits"), (["--permits", "3", "--take", "0"], "100"),
                             (["--permits", "200", "--take", "101"], "100"),
                             (["--permits", "3", "--take", "4"], "--take is at most the number of --permits")):
        for command in ["hold", "pool", *arguments], ["run", "pool", *arguments, "--", "true"]:
            text = place.finish(*command, status=64)
            check(words in text and text.count("\n") == 1, text)
    place.finish("wait", "pool", "--take", "1", status=64)


def permit(place, name, ends, identity):
    """Another program's permit, as the scripts of Redisson take one."""
    below = (name if "{" in name else "{" + name + "}") + ":timeout"
    place.server.do("ZADD", below, ends, identity)


@case
def semaphores(place):
    """list, inspect, wait and free know a semaphore by the permits that are out, and a number without them is no lock."""
    titles = "NAME  KIND  COUNT TTL  WAITERS TOKEN  SINCE  PROCESS  HOLDER  NOTE\n"
    place.server.do("SET", "rsemaphore", "5")
    place.transcript(["list"], titles)
    place.server.do("SET", "holdfast_done:{latch}:uuid:1", "3", "PX", "60000")
    place.transcript(["list", "--any-string"], titles)
    place.transcript(["inspect", "rsemaphore"], "rsemaphore is no lock: a string with a number. A latch, a semaphore without permits out, an "
                     "RSemaphore and a counter look alike\n", status=65)
    check(place.lines("inspect", "rsemaphore", status=65) == [{"name": "rsemaphore", "state": "no lock", "type": "string"}], "JSON")
    place.transcript(["free", "rsemaphore"], "holdfast: rsemaphore was not freed: it is a number; if that is a semaphore, give "
                     "--permits\n", status=65)
    place.finish("free", "rsemaphore", "--simple", status=65)
    place.transcript(["free", "rsemaphore", "--permits", "5"], "rsemaphore was free\n")
    check(place.server.do("GET", "rsemaphore") == b"5", "another's number has changed")
    place.server.do("SET", "text", "5 apples")
    place.server.do("RPUSH", "{list}:timeout", "data")
    place.server.do("SET", "list", "5")
    place.transcript(["list"], titles)

    jobs = [place.hold("pool", "--permits", "3", *take) for take in (["--take", "2"], [])]
    mask = ((r"(?m)^pool  permit .*\n", ""),)
    place.transcript(["list"], titles + "pool  expirable_semaphore 3  TIME  0  -  -  -  -  3 permits, 3 out, 0 left\n", mask=mask)
    rows = [re.sub(" +", " ", row) for row in plain(place.finish("list", "po*")).splitlines() if " permit " in row]
    check(rows == ["pool permit 1 TIME - - - PID on HOST (holdfast) PERMIT -"] * 3, rows)
    place.transcript(["wait", "pool", "--permits", "3", "-w", "1"], "holdfast: pool is busy\n", status=75)
    waiter = place.start("run", "pool", "--permits", "3", "--", "true")
    wait_until(lambda: place.lines("inspect", "pool")[0]["waiters"] == 1, "a waiter is counted")
    permits_ = "".join("permit  PERMIT, ttl TIME, process PID on HOST (holdfast)\n" for _ in range(3))
    place.transcript(["inspect", "pool"], "name  pool\nkind  expirable_semaphore\npermits  3 permits, 3 out, 0 left\nwaiters  1\n" + permits_)
    line, = place.lines("inspect", "pool")
    held = line["permits"]["held"]
    check([one["process"]["pid"] for one in held].count(str(jobs[0].pid)) == 2, held)
    check(line["holder"] is None and line["state"] == "held" and line["count"] == 3, line)
    check({word: line["permits"][word] for word in ("total", "out", "left")} == {"total": 3, "out": 3, "left": 0}, line)
    identities = {re.search(r"id ([0-9a-f-]{18})-[0-9a-f-]+(:\d+)", job.output).expand(r"\1\2") for job in jobs}
    check(identities < {one["holder"] for one in held}, f"{identities}: the begin of lease::id(), in {held}")
    check(0 < held[0]["ttl_ms"] <= 30_000 and line["ttl_ms"] <= held[-1]["ttl_ms"], held)
    jobs[1].signal(signal.SIGTERM)
    check(jobs[1].finish() == 0 and waiter.finish() == 0, waiter.output)
    place.transcript(["wait", "pool", "--permits", "3"], "pool is free\n")
    check("3 permits, 2 out, 1 left" in place.finish("list"), "two are out")

    place.server.do("DEL", "pool")
    check("2 out, the counter is missing: the next acquire makes it" in place.finish("inspect", "pool"), "a lost counter")
    check(place.lines("inspect", "pool")[0]["permits"]["left"] is None, "a lost counter")
    place.transcript(["free", "pool"], "holdfast: pool was not freed: the counter of this semaphore is missing: give its number with "
                     "--permits\n", status=65)
    place.finish("free", "pool", "--permits", "3")
    check(place.server.do("GET", "pool") == b"3", "--permits is the number of a lost counter")


@case
def semaphores_are_freed(place):
    for terminal in (False, True):
        holder = place.hold("pool", "--permits", "3", "--take", "2", "--ttl", "3")
        text = plain(place.finish("free", "pool", terminal=terminal))
        check(text == "pool is freed; a permit was held by PERMIT, process PID on HOST (holdfast)\n" * 2, text)
        check(holder.finish() == 79, f"the holder goes on: {holder.output}")
        check(place.server.do("GET", "pool") == b"3", "all permits are back")
    place.hold("pool", "--permits", "3", "--ttl", "3")
    line, = place.lines("free", "pool")
    check(line["freed"] and line["holder"] is None and line["permits"]["left"] == 2, line)
    check(len(line["permits"]["held"]) == 1, line)


@case
def semaphores_of_others(place):
    """Permits of Redisson, of hostile bytes, without an end, ended, and more than are shown."""
    seconds, _ = place.server.do("TIME")
    now = int(seconds) * 1000
    place.server.do("SET", "java", "1")
    permit(place, "java", "922337203685477", bytes(range(16)))
    permit(place, "java", now + 600_000, HOSTILE)
    permit(place, "java", now - 1, b"ended")
    line, = place.lines("list")
    check(line["permits"]["left"] == 2 and line["permits"]["total"] == 4 and line["count"] == 2, line)
    check(line["permits"]["held"][1] == {"holder": "000102030405060708090a0b0c0d0e0f", "process": None, "ttl_ms": None}, line)
    check(line["permits"]["held"][0]["holder"] == HOSTILE.encode().hex(), line)
    for terminal in (False, True):
        text = place.finish("inspect", "java", terminal=terminal)
        check("\x1b[31m" not in text and "ttl none" in text and len(text.splitlines()) == 6, repr(text))
    check("has no TTL" not in place.finish("doctor", status=1), "a permit without an end is no lock without a TTL")
    place.server.do("DEL", "java", "{java}:timeout")
    place.server.do("SET", "app[1]:{x}y", "-1")  # set_permits() with a smaller number
    for number in range(120):
        permit(place, "app[1]:{x}y", now + 600_000 + number, number)
    url = place.server.url + "?key_prefix=app%5B1%5D:"
    line, = place.lines("list", url=url)
    check(line["name"] == "{x}y" and line["permits"]["total"] == 119 and line["permits"]["left"] == -1, line)
    check(len(line["permits"]["held"]) == 100 and line["permits"]["held"][0]["holder"] == "30", line)
    check("and 20 more, which end later" in place.finish("inspect", "{x}y", url=url), "more than are shown")
    check("20 more permits were out" in place.finish("free", "{x}y", url=url), "more than are shown")
    check(place.server.do("GET", "app[1]:{x}y") == b"119", "all permits are back")


@case
def readers_and_writers(place):
    """Readers beside each other, a writer alone, under exactly the rule that `acl --shared` prints."""
    url = place.server.url + "?key_prefix=app:"
    line, = place.lines("acl", "--shared", url=url)
    place.server.do("ACL", "SETUSER", "locker", "reset", "on", ">pw", *line["rules"])
    how = {"url": url, "environment": {"HOLDFAST_USER": "locker", "HOLDFAST_PASSWORD": "pw"}}
    first, second = (place.hold("prices", "--shared", **how) for _ in range(2))
    place.finish("run", "prices", "--exclusive", "-n", "--", "true", status=75, **how)
    check(place.finish("wait", "prices", "--shared", **how) == "prices is free\n", "a reader would not wait")
    for words in ([], ["--exclusive"]):
        place.finish("wait", "prices", *words, "-w", "0.5", status=75, **how)
    writer = place.start("run", "prices", "--exclusive", "--", "sh", "-c", "echo $HOLDFAST_LOCK_KIND; cat", stdin=subprocess.PIPE, **how)
    waiting = lambda side: place.server.do("ZCARD", f"holdfast_{side}:{{app:prices}}") == 1
    wait_until(lambda: waiting("queue"), "the writer waits")
    place.finish("run", "prices", "--shared", "-n", "--", "true", status=75, **how)
    reader = place.start("run", "prices", "--shared", "--", "sh", "-c", "echo $HOLDFAST_LOCK_KIND", **how)
    wait_until(lambda: waiting("readers"), "a reader waits behind the writer")
    first.signal(signal.SIGTERM)
    second.signal(signal.SIGTERM)
    check(first.finish() == 0 and second.finish() == 0, first.output + second.output)
    writer.wait_for("shared_mutex\n")
    place.finish("wait", "prices", "--shared", "-w", "0.5", status=75, **how)
    check(not reader.output, "a reader beside a writer")
    writer.process.stdin.close()
    check(writer.finish() == 0, writer.output)
    check(reader.finish() == 0 and reader.output == "shared_mutex_reader\n", reader.output)
    wait_until(lambda: not place.server.keys(), "nothing is left")
    noted = place.hold("prices", "--exclusive", "--note", "new prices")  # as an administrator
    wait_until(lambda: place.lines("inspect", "prices", url=url.split("?")[0])[0]["note"] == "new prices", "a writer's note")
    noted.signal(signal.SIGTERM)
    noted.finish()
    check(not place.server.refusals(), place.server.refusals())
    for other in ["--simple"], ["--fenced"], ["--red"], ["--permits", "2"], ["--exclusive"], ["--note", "why"]:
        place.finish("run", "prices", "--shared", *other, "--", "true", status=64)


@case
def shared(place):
    """list, inspect and JSON of a shared_mutex that is read, and of one that is written."""
    titles = "NAME  KIND  COUNT TTL  WAITERS TOKEN  SINCE  PROCESS  HOLDER  NOTE\n"
    jobs = [place.hold("prices", "--shared") for _ in range(2)]
    mask = ((r"(?m)^prices  reader .*\n", ""),)
    for words in ([], ["--any-string"]):
        place.transcript(["list", *words], titles + "prices  shared_mutex 2  TIME  0  -  -  -  -  2 read holds\n", mask=mask)
    rows = [re.sub(" +", " ", row) for row in plain(place.finish("list", "pr*")).splitlines() if " reader " in row]
    check(rows == ["prices reader 1 TIME - - - PID on HOST (holdfast) OWNER -"] * 2, rows)
    writer = place.start("hold", "prices", "--exclusive")
    wait_until(lambda: place.lines("inspect", "prices")[0]["waiters"] == 1, "a waiter is counted")
    readers = "".join("reader  OWNER, ttl TIME, process PID on HOST (holdfast)\n" for _ in range(2))
    place.transcript(["inspect", "prices"], "name  prices\nkind  shared_mutex\nreaders  2 read holds\nwaiters  1\n" + readers)
    line, = place.lines("inspect", "prices")
    held = line["readers"]["held"]
    check({one["process"]["pid"] for one in held} == {str(job.pid) for job in jobs}, held)
    check(line["holder"] is None and line["permits"] is None and line["count"] == line["readers"]["holds"] == 2, line)
    identities = {re.search(r"id ([0-9a-f-]+:\d+)", job.output)[1] for job in jobs}
    check(identities == {one["holder"] for one in held}, f"{identities}: lease::id(), in {held}")
    check(0 < line["ttl_ms"] <= held[-1]["ttl_ms"] <= 30_000, held)
    for job in jobs:
        job.signal(signal.SIGTERM)
        job.finish()
    writer.wait_for("held")
    wait_until(lambda: place.lines("inspect", "prices")[0]["waiters"] == 0, "it waits no more")
    place.transcript(["list"], titles + "prices  shared_mutex 1  TIME  0  -  -  PID on HOST (holdfast) OWNER  -\n",
                     mask=((r"\) +OWNER", ") OWNER"),))
    place.transcript(["inspect", "prices"], "name  prices\nkind  shared_mutex\nholder  OWNER, writes\nprocess  PID on HOST (holdfast)\n"
                     "count  1\nsince  -\nttl  TIME\ntoken  -\nwaiters  0\nnote  -\n")
    line, = place.lines("list")
    check(line["readers"] is None and line["holder"] == re.search(r"id ([0-9a-f-]+:\d+)", writer.output)[1], line)


@case
def shared_is_freed(place):
    for terminal in (False, True):
        jobs = [place.hold("prices", "--shared", "--ttl", "3") for _ in range(2)]
        text = plain(place.finish("free", "prices", terminal=terminal))
        check(text == "prices is freed; it was read by OWNER, process PID on HOST (holdfast)\n" * 2, text)
        check([job.finish() for job in jobs] == [79, 79], "the readers go on")
        writer = place.hold("prices", "--exclusive", "--ttl", "3")
        text = plain(place.finish("free", "prices", terminal=terminal))
        check(text == "prices is freed; it was held by OWNER, process PID on HOST (holdfast)\n", text)
        check(writer.finish() == 79, f"the holder goes on: {writer.output}")
    reader = place.hold("prices", "--shared", "--ttl", "3")
    line, = place.lines("free", "prices")
    check(line["freed"] and line["holder"] is None and len(line["readers"]["held"]) == 1, line)
    check(reader.finish() == 79, reader.output)


@case
def shared_of_others(place):
    """Readers of Redisson, dead ones, more than are shown, a hash that only looks like one, and a key without a TTL."""
    def read(name, *numbers):
        place.server.do("HSET", name, "mode", "read")
        for number in numbers:
            place.server.do("HSET", name, f"{OWNER}:{number}", "1")
        place.server.do("PEXPIRE", name, "600000")
    read("java", 1, 2)
    place.server.do("SET", f"{{java}}:{OWNER}:2:rwlock_timeout:1", "1", "PX", "600000")
    line, = place.lines("list", "--any-string")
    check([(one["holder"], one["ttl_ms"] > 0) for one in line["readers"]["held"]] == [(f"{OWNER}:1", False), (f"{OWNER}:2", True)], line)
    place.server.do("HSET", "java", HOSTILE, "1")
    check(place.lines("list") == [], "a field that is no reader's")
    place.finish("free", "java", status=65)
    place.server.do("DEL", "java")
    read("app[1]:{x}y", *range(1, 600))
    url = place.server.url + "?key_prefix=app%5B1%5D:"
    line, = place.lines("list", url=url)
    check(line["name"] == "{x}y" and line["count"] == 599 and len(line["readers"]["held"]) == 100, line)
    text = place.finish("inspect", "{x}y", url=url).splitlines()[-1]
    check(text.strip() == "and 499 more", f"more than are shown, in no order: {text}")
    check("499 more read it" in place.finish("free", "{x}y", url=url), "more than are shown")
    read("java", 1, 2)
    url = behind_proxy(place, lambda got: got.replace(f"{OWNER}:2\r".encode(), f"{OWNER}:1\r".encode()))
    line, = place.lines("inspect", "java", url=url)
    check([one["holder"] for one in line["readers"]["held"]] == [f"{OWNER}:1"], f"HSCAN gave a field twice: {line}")
    place.server.do("DEL", "java")
    place.server.do("HSET", "java", "mode", "write", f"{OWNER}:7:write", "2", f"{OWNER}:7", "1")
    line, = place.lines("inspect", "java")
    check((line["holder"], line["count"], line["ttl_ms"]) == (f"{OWNER}:7", 2, None), line)
    check("has no TTL" in place.finish("doctor", status=2), "a writer without a TTL")
    place.finish("free", "java")
    check(not [key for key in place.server.keys() if b"rwlock_timeout" not in key], place.server.keys())


@case
def run(place):
    place.transcript(["run", "x", "--", "echo", "from the command"], "from the command\n")
    place.transcript(["run", "x", "--", "/no/such/command"], "holdfast: x: /no/such/command: No such file or directory\n", status=127)
    place.transcript(["run", "x", "--ttl", "0.5", "--max-hold", "0.1", "--", "sleep", "60"], "holdfast: x: the lock is lost\n", status=79)
    place.server.lock("x")
    place.transcript(["run", "x", "-n", "--", "true"], "holdfast: x: the lock is busy\n", status=75)
    place.fits("run", json.loads(place.finish("run", "x", "-n", "--json", "--", "true", status=75)))
    place.fits("run", json.loads(place.finish("run", "y", "--json", "--", "/no/such/command", status=127)))


@case
def keep(place):
    place.transcript(["keep", "x", "--restart", "on-failure", "--", "echo", "works"], "works\n")
    place.transcript(["keep", "x", "--restart", "never", "--", "sh", "-c", "exit 3"],
                     "holdfast: x: the command ended with status 3\n", status=3)
    place.transcript(["keep", "x", "--", "/no/such/command"], "holdfast: x: /no/such/command: No such file or directory\n", status=127)
    place.fits("keep", json.loads(place.finish("keep", "x", "--json", "--restart", "never", "--", "false", status=1)))
    check(not place.server.keys(), "the lock is left")


@case
def keep_runs_a_command_again(place):
    twice = place.start("keep", "x", "--pause", "0.01", "--", "echo", "again").wait_for("again", 2)
    twice.signal(signal.SIGTERM)
    check(twice.finish() in (0, 128 + signal.SIGTERM), twice.output)
    failing = place.start("keep", "x", "--", "sh", "-c", "exit 5").wait_for("status 5", 3)
    failing.signal(signal.SIGTERM)
    check(failing.finish() in (5, 128 + signal.SIGTERM), failing.output)
    check(not place.server.keys(), "the lock is left")


@case
def keep_starts_each_command_with_the_same_signals(place):
    job = place.start("keep", "x", "--pause", "0.01", "--", "grep", "-E", "Sig(Blk|Ign)", "/proc/self/status").wait_for("SigIgn", 3)
    job.signal(signal.SIGTERM)
    job.finish()
    check(len(set(re.findall(r"Sig\w+:\s[0-9a-f]{16}", job.output))) == 2, job.output)


@case
def keep_runs_a_command_on_one_host(place):
    script = ["--ttl", "1", "--", "sh", "-c", "echo works; exec sleep 60"]
    first = place.start("keep", "x", *script).wait_for("works")
    second = place.start("keep", "x", *script)
    wait_until(lambda: place.server.do("PUBSUB", "CHANNELS", "[^_]*"), "the second waits")
    first.signal(signal.SIGTERM)
    check(first.finish() == 128 + signal.SIGTERM, first.output)
    second.wait_for("works")
    # Another has taken the lock by force: the command ends, and begins again when the lock is free.
    place.server.do("DEL", "x")
    place.server.lock("x")
    second.wait_for("the lock is lost")
    wait_until(lambda: len(second.processes()) == 1, "the command has ended")
    place.server.do("DEL", "x")
    second.wait_for("works", 2)
    second.signal(signal.SIGTERM)
    check(second.finish() == 128 + signal.SIGTERM, second.output)
    # A signal ends a worker that waits.
    place.server.lock("x")
    third = place.start("keep", "x", *script)
    wait_until(lambda: place.server.do("PUBSUB", "CHANNELS", "[^_]*"), "the third waits")
    third.signal(signal.SIGUSR1)
    third.signal(signal.SIGINT)
    check(third.finish() == 128 + signal.SIGINT, third.output)


STUBBORN = "trap 'echo heard' TERM; echo ready; while :; do sleep 0.05; done"
PATIENT = "trap 'exit 6' USR1; echo ready; while :; do sleep 0.05; done"


def keep_loses_its_lock(place, script, *options):
    """A worker whose command runs, and whose lock another has taken by force."""
    job = place.start("keep", "x", "--ttl", "1", *options, "--", "sh", "-c", script).wait_for("ready")
    place.server.do("DEL", "x")
    place.server.lock("x")
    return job.wait_for("the lock is lost")


@case
def keep_ends_a_command_whose_lock_is_lost(place):
    for options, heard, told in ((["--grace", "0.2"], 1, 1), (["--on-lost", "kill"], 0, 0)):
        job = keep_loses_its_lock(place, STUBBORN, *options)
        wait_until(lambda: len(job.processes()) == 1, "the command has ended")
        check(job.output.count("ready") == 1, job.output)
        place.server.do("DEL", "x")
        job.wait_for("ready", 2)
        check(job.output.count("heard") == heard and job.output.count("did not end within its grace") == told, job.output)
        job.signal(signal.SIGKILL)
        job.wait()
        job.close()
        place.server.do("DEL", "x")
    never = keep_loses_its_lock(place, STUBBORN, "--restart", "never", "--on-lost", "kill")
    check(never.finish() == 79, never.output)


@case
def keep_warns_of_a_loss(place):
    for restart in "never", "always":
        job = keep_loses_its_lock(place, PATIENT, "--on-lost", "warn", "--restart", restart)
        os.kill(min(pid for pid in job.processes() if pid != job.pid), signal.SIGUSR1)
        job.wait_for("status 6")
        if restart == "always":
            place.server.do("DEL", "x")
            job.wait_for("ready", 2)
            job.signal(signal.SIGTERM)
        check(job.finish() == (6 if restart == "never" else 128 + signal.SIGTERM), job.output)
        place.server.do("DEL", "x")


@case
def keep_lets_its_command_end(place):
    script = "trap 'echo ending; sleep 0.2; exit 0' TERM; echo ready; while :; do sleep 0.05; done"
    first = place.start("keep", "x", "--", "sh", "-c", script).wait_for("ready")
    second = place.start("keep", "x", "--", "sh", "-c", script)
    wait_until(lambda: place.server.do("PUBSUB", "CHANNELS", "[^_]*"), "the second waits")
    first.signal(signal.SIGTERM)
    first.wait_for("ending")
    check("ready" not in second.output, second.output)
    check(first.finish() == 0, first.output)
    second.wait_for("ready")
    second.signal(signal.SIGTERM)
    check(second.finish() == 0, second.output)
    check(first.output.count("ready") == 1 and not place.server.keys(), first.output)


@case
def keep_ends_in_its_pause(place):
    # The eighth failure is followed by a pause of 6.4 s or more. The first pause may be over before the signal comes.
    for options, script, told, times in ((["--pause", "600"], "echo works", "works", 1), ([], "exit 3", "status 3", 8)):
        job = place.start("keep", "x", *options, "--", "sh", "-c", script).wait_for(told, times)
        wait_until(lambda: not place.server.keys(), "the lock is free meanwhile")
        job.signal(signal.SIGTERM)
        check(job.finish() == 128 + signal.SIGTERM, job.output)


@case
def keep_runs_a_command_until_it_succeeds(place):
    counter = Path(place.folder) / "runs"
    script = f"echo x >> {counter}; test $(wc -l < {counter}) -ge 3"
    output = place.finish("keep", "x", "--restart", "on-failure", "--max-backoff", "2", "--", "sh", "-c", script)
    check(counter.read_text(encoding="utf-8") == "x\nx\nx\n", output)
    check(output.count("the command ended with status 1") == 2, output)
    check(not place.server.keys(), "the lock is left")


@case
def wait(place):
    place.transcript(["wait", "orders:42"], "orders:42 is free\n")
    place.server.lock("orders:42")
    place.transcript(["wait", "orders:42", "-w", "1"], "holdfast: orders:42 is busy\n", status=75)
    job = place.start("wait", "orders:42", "--json")
    wait_until(lambda: b"name=holdfast:" in place.server.do("CLIENT", "LIST"), "it asks")
    place.server.do("DEL", "orders:42")
    check(job.finish() == 0, job.output)
    place.fits("wait", json.loads(job.output))
    check(not place.server.keys(), "it has written")


@case
def watch(place):
    for terminal in (False, True):
        job = place.start("watch", "orders:*", "--every", "0.05", terminal=terminal)
        wait_until(lambda: b"cmd=psubscribe" in place.server.do("CLIENT", "LIST"), "it listens")
        wait_until(lambda: b"cmd=scan" in place.server.do("CLIENT", "LIST"), "it has looked once")
        holder = place.hold("orders:1")
        job.wait_for("acquired")
        holder.signal(signal.SIGTERM)
        job.wait_for("released")
        place.server.lock("orders:2")
        job.wait_for("acquired  orders:2")
        place.server.do("DEL", "orders:2")
        job.wait_for("ended     orders:2")
        job.signal(signal.SIGINT)
        check(job.finish() == 128 + signal.SIGINT, job.output)
        lines = plain(job.output).replace("^C", "").splitlines()
        check(lines[0] == "acquired  orders:1  OWNER  PID on HOST (holdfast)", lines)
        check(any(line.startswith("released  orders:1") for line in lines), lines)
        check("acquired  orders:2  OWNER  -" in lines and "ended  orders:2  OWNER  -" in lines, lines)
        wait_until(lambda: place.server.do("CLIENT", "LIST").count(b"\n") == 1, "its connections end")
    check(not place.server.keys() and place.server.do("PUBSUB", "NUMPAT") == 0, "it leaves something")
    place.server.lock("pool-beside")
    job = place.start("watch", "pool*", "--every", "0.02").wait_for("pool-beside")
    first, second = (place.hold("pool", "--permits", "2") for _ in range(2))
    job.wait_for("acquired", 2)
    first.signal(signal.SIGTERM)
    job.wait_for("released")
    place.server.do("ZREM", "{pool}:timeout", place.server.do("ZRANGE", "{pool}:timeout", "0", "0")[0])
    job.wait_for("ended")
    job.signal(signal.SIGTERM)
    job.finish()
    permit_ = "pool  PERMIT  PID on HOST (holdfast)"
    lines = plain(job.output).splitlines()
    check(lines[1:] == [f"acquired  {permit_}"] * 2 + [f"released  {permit_}", f"ended  {permit_}"], lines)
    place.server.do("DEL", "pool", "pool-beside")
    place.hold("pool", "--permits", "2")
    line, = place.lines("watch", "pool", "--for", "0.1", "--every", "0.02")
    check(line["event"] == "held" and line["holder"] == line["permits"]["held"][0]["holder"], line)
    place.finish("free", "pool")
    place.server.do("DEL", "pool")
    reader = place.hold("{p}rices", "--shared")
    job = place.start("watch", "{p}rices", "--every", "30").wait_for("held")
    writer = place.start("hold", "{p}rices", "--exclusive")
    wait_until(lambda: place.server.do("ZCARD", "holdfast_queue:{p}rices") == 1, "the writer waits")
    reader.signal(signal.SIGTERM)  # the writer is told by name
    job.wait_for("released")
    writer.wait_for("held")
    place.server.do("PUBLISH", "redisson_rwlock:{p}rices", "1")
    job.wait_for("acquired")
    writer.signal(signal.SIGTERM)
    job.wait_for("released", 2)
    job.signal(signal.SIGTERM)
    job.finish()
    place.server.lock("one")
    for line in place.lines("watch", "one", "--for", "0.1", "--every", "0.02"):
        check(line["event"] == "held" and line["name"] == "one", line)


@case
def watch_of_readers_and_writers(place):
    """A message about a shared_mutex asks its clients to look. It ends no hold that is still there."""
    def look():
        place.server.do("PUBLISH", "redisson_rwlock:{prices}", "1")

    def waits(job, side, number):
        wait_until(lambda: place.server.do("ZCARD", f"holdfast_{side}:{{prices}}") == number, f"{number} in {side}")
        return job

    def holder(job):
        return re.search(r"id (\S+)", job.wait_for("held").output)[1]

    def release(job):
        job.signal(signal.SIGTERM)
        job.finish()

    first = place.hold("prices", "--exclusive")
    job = place.start("watch", "prices", "--every", "30").wait_for("held")
    second = waits(place.start("hold", "prices", "--exclusive"), "queue", 1)
    third = waits(place.start("run", "prices", "--exclusive", "--", "true"), "queue", 2)
    release(first)  # two messages: the second writer is called by name, and the third one learns of it
    job.wait_for("released")
    expected = [("held", holder(first)), ("released", holder(first)), ("acquired", holder(second))]
    look()
    job.wait_for("acquired")
    reader = waits(place.start("hold", "prices", "--shared"), "readers", 1)
    release(third)  # a message for the reader, while the second one writes
    waits(third, "queue", 0)
    release(second)
    expected += [("released", holder(second)), ("acquired", holder(reader))]
    look()
    job.wait_for("acquired", 2)
    release(reader)
    job.wait_for("released", 3)
    look()  # it is free, and nothing is known
    place.server.do("PUBLISH", "redisson_lock__channel:{prices}", "0")  # the same about a mutex
    job.wait_for("released", 4)
    expected += [("released", holder(reader)), ("released",)]
    place.server.do("HSET", "prices", "mode", "write", f"{OWNER}:1:write", "1")
    place.server.do("PEXPIRE", "prices", "600000")
    look()
    job.wait_for("acquired", 3)
    downgrade = (place.root / "src/protocol/shared/downgrade.lua").read_text(encoding="utf-8")
    place.server.do("EVAL", downgrade, 4, "prices", f"{{prices}}:{OWNER}:1:rwlock_timeout:1", "holdfast_readers:{prices}",
                    "holdfast_turn:{prices}", 600000, f"{OWNER}:1", "publish", "redisson_rwlock:{prices}", 200)
    job.wait_for("acquired", 4)
    expected += [(event, f"{OWNER}:1") for event in ("acquired", "released", "acquired")]
    job.signal(signal.SIGTERM)
    job.finish()
    found = [tuple(line.split()[:3:2]) for line in job.output.splitlines() if not line.startswith("waiters")]
    check(found == expected, f"{job.output}\ninstead of\n{expected}")


@case
def served_in_order(place):
    """Jobs run in the order in which they were started, under exactly the rule that `acl --fair` prints. A dead one is skipped."""
    url = place.server.url + "?key_prefix=app:"
    line, = place.lines("acl", "--fair", url=url)
    place.server.do("ACL", "SETUSER", "locker", "reset", "on", ">pw", *line["rules"])
    how = {"url": url, "environment": {"HOLDFAST_USER": "locker", "HOLDFAST_PASSWORD": "pw"}}
    order = Path(place.folder, "order")
    holder = place.hold("seats", "--fair", **how)
    jobs = []
    for number in range(6):
        jobs.append(place.start("run", "seats", "--fair", "--", "sh", "-c", f"echo {number} $HOLDFAST_LOCK_KIND >> {order}", **how))
        wait_until(lambda: place.server.do("LLEN", "redisson_lock_queue:{app:seats}") == len(jobs), f"job {number} stands in the queue")
    place.finish("run", "seats", "--fair", "-n", "--", "true", status=75, **how)
    place.finish("wait", "seats", "--fair", "-w", "0.5", status=75, **how)
    jobs[2].signal(signal.SIGKILL)
    jobs[2].wait()
    jobs[4].signal(signal.SIGTERM)
    check(jobs[4].finish() == 128 + signal.SIGTERM, "a job that was cancelled")
    holder.signal(signal.SIGTERM)
    check(holder.finish() == 0, holder.output)
    check([jobs[number].finish() for number in (0, 1, 3, 5)] == [0] * 4, [job.output for job in jobs])
    check(order.read_text(encoding="utf-8") == "".join(f"{number} fair_mutex\n" for number in (0, 1, 3, 5)), order.read_text(encoding="utf-8"))
    wait_until(lambda: not place.server.keys(), "nothing is left")
    check(not place.server.refusals(), place.server.refusals())
    for other in ["--simple"], ["--fenced"], ["--red"], ["--permits", "2"], ["--shared"], ["--exclusive"]:
        place.finish("run", "seats", "--fair", *other, "--", "true", status=64)


@case
def fair(place):
    """A fair lock is known by its queue. A message to the first in line asks to look, and ends no hold."""
    titles = "NAME  KIND  COUNT TTL  WAITERS TOKEN  SINCE  PROCESS  HOLDER  NOTE\n"

    def look():
        place.server.do("PUBLISH", f"redisson_lock__channel:{{seats}}:{OWNER}:1000000000", "0")

    holder = place.hold("seats", "--fair", "--ttl", "3")
    check(place.lines("list")[0]["kind"] == "mutex", "without a queue it is like a mutex")
    waiters = []
    for number in (1, 2):
        waiters.append(place.start("hold", "seats", "--fair"))
        wait_until(lambda: place.server.do("LLEN", "redisson_lock_queue:{seats}") == number, "a place in the queue")
    place.transcript(["list"], titles + "seats  fair_mutex  1  TIME  2  -  -  PID on HOST (holdfast) OWNER  -\n",
                     mask=((r"\) +OWNER", ") OWNER"),))
    place.transcript(["inspect", "seats"], "name  seats\nkind  fair_mutex\nholder  OWNER\nprocess  PID on HOST (holdfast)\n"
                     "count  1\nsince  -\nttl  TIME\ntoken  -\nwaiters  2\nnote  -\n")
    line, = place.lines("list")
    check((line["kind"], line["waiters"]) == ("fair_mutex", 2), line)
    job = place.start("watch", "seats", "--every", "30").wait_for("held")
    look()
    text = plain(place.finish("free", "seats"))
    check(text == "seats is freed; it was held by OWNER, process PID on HOST (holdfast)\n", text)
    waiters[0].wait_for("held")
    check(holder.finish() == 79, f"the holder goes on: {holder.output}")
    job.wait_for("released")
    look()
    job.wait_for("acquired")
    waiters[0].signal(signal.SIGTERM)
    waiters[0].finish()
    waiters[1].wait_for("held")
    waiters[1].signal(signal.SIGTERM)
    waiters[1].finish()
    job.signal(signal.SIGTERM)
    job.finish()
    events = [line.split()[0] for line in job.output.splitlines() if not line.startswith("waiters")]
    check(events[:3] == ["held", "released", "acquired"], job.output)
    place.server.lock("java")
    place.server.do("SET", "redisson_lock_queue:{java}", "data")
    check(place.lines("inspect", "java")[0]["kind"] == "mutex", "other data beside a lock is no queue")


@case
def elections(place):
    """list and inspect show the leader's value and term. A hash that only looks like an election is no lock."""
    titles = "NAME  KIND  COUNT TTL  WAITERS TOKEN  SINCE  PROCESS  HOLDER  NOTE\n"
    election = Election(place.server)
    term = election.elect(1, HOSTILE)
    place.transcript(["list"], titles + f"region  election  1  TIME  0  TOKEN -  -  OWNER  leader {SHOWN}\n")
    candidate, observer = (election.listen(stem) for stem in ("redisson_lock__channel", "holdfast_election"))
    place.transcript(["inspect", "region"], f"name  region\nkind  election\nleader  {SHOWN}\nholder  OWNER\nprocess  -\ncount  1\n"
                     "since  -\nttl  TIME\ntoken  TOKEN\nwaiters  1\nnote  -\n")
    line, = place.lines("list")
    check((line["kind"], line["leader"], line["token"], line["holder"]) == ("election", HOSTILE, term, f"{OWNER}:1"), line)
    place.server.do("SET", "holdfast_note:{region}", f"1790000000000 {OWNER}:1 why")
    check(f"leader {SHOWN}; why" in place.finish("list") and place.lines("inspect", "region")[0]["note"] == "why", "the leader's note")
    for connection in candidate, observer:
        connection.close()
    place.server.do("DEL", "region")

    election.elect(2, "")
    check(place.finish("list").endswith("leader -\n") and place.lines("list")[0]["leader"] == "", "an empty value")
    place.server.do("DEL", "region")
    for value in (b"x" * 200, b"x" * 65_536, b"\xff" * 201):
        election.elect(3, value)
        line, = place.lines("inspect", "region")
        check(line["kind"] == "election" and bytes.fromhex(line.get("leader_hex", "")) in (b"", value), line)
        check(line["leader"] == value.decode(errors="backslashreplace"), "programs get the whole value")
        shown = value[:200].decode(errors="backslashreplace") + ("…" if len(value) > 200 else "")
        check(f"leader {shown}\n" in place.finish("list"), "people get the first 200 bytes")
        place.server.do("DEL", "region")

    for fields in (["leader", "x", "term", "5", "visits", "1"], ["leader", "x", "term", "five", f"{OWNER}:1", "1"],
                   ["leader", "x", "term", "5", f"{OWNER}:1", "one"], ["leader", "x", "term", "5", f"{OWNER}:1", "1", "more", "1"]):
        place.server.do("HSET", "hash", *fields)
        check(place.lines("list") == [], f"{fields} is no election")
        place.finish("inspect", "hash", status=65)
        place.finish("free", "hash", status=65)
        check(place.server.do("DEL", "hash") == 1, f"{fields}: data was freed")


@case
def elections_are_freed(place):
    """The next candidate and the observers hear of it."""
    election = Election(place.server)
    connections = [election.listen(stem) for stem in ("redisson_lock__channel", "holdfast_election")]
    for terminal in (False, True):
        election.elect(1, "10.0.0.7:443")
        check(connections[1].read()[2] != b"0", "elected")
        text = plain(place.finish("free", "region", terminal=terminal))
        check(text == "region is freed; it was held by OWNER\n", text)
        check(not place.server.do("EXISTS", "region"), "the election still has a leader")
        check([connection.read()[2] for connection in connections] == [b"0", b"0"], "both are told")
    for connection in connections:
        connection.close()
    election.elect(1, "10.0.0.7:443")
    check(place.lines("free", "region") == [{"name": "region", "freed": True, "holder": f"{OWNER}:1", "permits": None, "readers": None}],
          "JSON of free")


@case
def watch_of_elections(place):
    """Each term is a hold of its own. A leader is seen by the observers' message, and a new value as well."""
    election = Election(place.server)
    election.elect(1, "a:1")
    job = place.start("watch", "region", "--every", "30").wait_for("held")
    election.proclaim(1, "a:2")
    job.wait_for("proclaimed")
    election.resign(1)
    job.wait_for("released")
    election.elect(2, "b:1")
    job.wait_for("acquired")
    place.server.do("DEL", "region")  # as the end of its TTL: nobody is told
    election.elect(3, "c:1")
    job.wait_for("acquired", 2)
    place.server.do("MULTI")
    election.resign(3)
    election.elect(3, "c:2")
    place.server.do("EXEC")
    job.wait_for("acquired", 3)
    place.finish("free", "region")
    job.wait_for("released", 3)
    job.signal(signal.SIGTERM)
    job.finish()
    found = [" ".join(line.replace(" -  ", " ").split()) for line in job.output.splitlines() if not line.startswith("waiters")]
    expected = [f"{event} region {OWNER}:{number} {value}" for event, number, value in (
        ("held", 1, "a:1"), ("released", 1, "a:2"), ("acquired", 2, "b:1"), ("ended", 2, "b:1"), ("acquired", 3, "c:1"),
        ("released", 3, "c:1"), ("acquired", 3, "c:2"), ("released", 3, "c:2"))]
    expected.insert(1, "proclaimed region a:2")
    check(found == expected, f"{job.output}\ninstead of\n{expected}")

    election.elect(4, "d:1")
    job = place.start("watch", "--every", "0.02", "--json").wait_for("held")
    place.server.do("HSET", "region", "leader", "d:2")
    job.wait_for("proclaimed")
    job.signal(signal.SIGTERM)
    job.finish()
    lines = [json.loads(line) for line in job.output.splitlines()]
    for line in lines:
        place.fits("watch", line)
    check([(line["event"], line["leader"]) for line in lines] == [("held", "d:1"), ("proclaimed", "d:2")], "a poll sees it as well")


@case
def watch_outlives_its_server(place):
    for terminal, options, away, back in ((False, ["--json"], '"event":"unreachable"', '"event":"connected"'),
                                          (True, [], "unreachable  ", "connected\n")):
        place.server.lock("before")
        job = place.start("watch", "--every", "0.05", *options, terminal=terminal).wait_for("before")
        place.server.do("CLIENT", "KILL", "SKIPME", "yes")
        job.wait_for(away).wait_for(back)
        place.server.process.send_signal(signal.SIGSTOP)
        job.wait_for(away, 2)
        place.server.process.send_signal(signal.SIGCONT)
        job.wait_for(back, 2)
        place.server.kill()
        job.wait_for(away, 3)
        place.server = place.start_server(path=place.server.path)
        job.wait_for(back, 3)
        place.server.lock(f"x of {terminal}")
        job.wait_for("acquired")
        job.signal(signal.SIGTERM)
        job.finish()
        check(job.output.count(away) == 3, f"an outage is told once: {job.output}")
        for line in [] if terminal else job.output.splitlines():
            place.fits("watch", json.loads(line))


@case
def nobody_answers(place):
    for arguments in (["list"], ["inspect", "x"], ["free", "x"], ["wait", "x"], ["hold", "x", "-n"], ["watch"], ["acl"]):
        for terminal in (False, True):
            text = place.finish(*arguments, url="redis+unix:///no/such/socket", status=69, terminal=terminal)
            check(text.startswith("holdfast: ") and text.count("\n") == 1, text)
    place.finish("doctor", url="redis+unix:///no/such/socket", status=2)


@case
def wrong_command_lines(place):
    for arguments in ([], ["no-such"], ["list", "--no-such"], ["inspect"], ["run", "x"], ["keep", "x"], ["keep", "x", "--restart", "no", "--", "a"],
                      ["keep", "x", "-n", "--", "a"], ["keep", "x", "--permits", "3", "--take", "2", "--", "a"],
                      ["keep", "x", "--max-backoff", "1", "--", "a"], ["run", "x", "--on-lost", "no", "--", "a"],
                      ["hold", "x", "-w", "soon"], ["hold", "x", "--ttl", "0.001"], ["run", "x", "--fenced", "--simple", "--", "a"],
                      ["hold", "x", "--red"], ["hold", "x", "-n", "-w", "1"], ["inspect", ""], ["completion", "csh"]):
        text = place.finish(*arguments, status=64)
        check(text.startswith("holdfast: ") and text.count("\n") == 1, text)
    for arguments, text in ((["fre"], "there is no subcommand 'fre'"), (["run", "x", "ls"], "run needs a command behind --"),
                            (["run"], "run needs a command behind --")):
        check(text in place.finish(*arguments, status=64), arguments)
    place.finish("list", url="http://x", status=78)


@case
def passwords_stay_secret(place):
    place.server.do("CONFIG", "SET", "requirepass", "top-secret")
    file = os.path.join(place.folder, "password")
    Path(file).write_text("top-secret\n", encoding="utf-8")
    place.finish("list", "--password-file", file)
    place.finish("list", environment={"HOLDFAST_PASSWORD": "top-secret"})
    texts = [place.finish("list", "--url", "redis://:top-secret@localhost", status=64),
             place.finish("list", "x", "redis://u:top-secret@localhost", status=64),
             place.finish("redis://u:top-secret@localhost", status=64),
             place.finish("list", "--no-such=redis://u:top-secret\\\x1b@localhost", status=64),
             place.finish("list", "--no-such=redis://u:top-secret@localhost", status=64),
             place.finish("list", status=77),
             place.finish("list", environment={"HOLDFAST_PASSWORD": "top-secret-2"}, status=77),
             place.finish("list", environment={"HOLDFAST_URL": "redis://u:top-secret@no such host"}, status=78)]
    commands = [["list"], ["inspect", "x"], ["watch"], ["free", "x"], ["wait", "x"], ["hold", "x", "-n"], ["doctor"], ["acl"],
                ["run", "x", "-n", "--", "true"]]
    urls = ["redis://u:top-secret@127.0.0.1:1", "redis+unix://u:top-secret@/no/such/socket", "redis+cluster://u:top-secret@127.0.0.1:1",
            "redis+sentinel://u:top-secret@127.0.0.1:1/m?sentinel_password=top-secret", "redis://u:top-secret@host:port",
            place.server.url.replace("://", "://u:top-secret-2@")]
    for command in commands:
        for url in urls:
            job = place.start(*command, environment={"HOLDFAST_URL": url})
            check(job.finish() in (2, 69, 77, 78), f"{command}: {job.output}")
            texts.append(job.output)
    for text in texts:
        check("top-secret" not in text, text)
    job = place.hold("x", environment={"HOLDFAST_PASSWORD": "top-secret"})
    check("top-secret" not in Path(f"/proc/{job.pid}/cmdline").read_text(encoding="utf-8"), "it is in the process list")


@case
def output_that_cannot_be_written(place):
    for arguments in (["list"], ["version"]):
        job = place.start(*arguments)
        job.finish()
        with open("/dev/full", "w", encoding="utf-8") as full:
            done = subprocess.run([place.program, *arguments], stdout=full, stderr=subprocess.PIPE, check=False,
                                  env={**os.environ, "HOLDFAST_URL": place.server.url})
        check(done.returncode == 74, f"{arguments}: {done}")


@case
def a_long_list_needs_little_memory(place):
    count = 100_000
    place.server.do("EVAL", "for i = 1, ARGV[1] do local k = 'lock:' .. i redis.call('hset', k, ARGV[2] .. ':' .. i, 1) "
                            "redis.call('pexpire', k, 600000) end", "0", count, OWNER)
    begin = time.monotonic()
    environment = {**os.environ, "HOLDFAST_URL": place.server.url}
    with subprocess.Popen([place.program, "list", "--json"], stdout=subprocess.PIPE, env=environment) as process:
        lines = sum(1 for _ in process.stdout)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = status
    took = time.monotonic() - begin
    check(status == 0 and lines >= count, f"{lines} lines, status {status}")
    sanitized = b"__sanitizer_" in Path(place.program).read_bytes()  # its allocator keeps what was freed
    check(sanitized or usage.ru_maxrss < 50 * 1024, f"{usage.ru_maxrss} KiB")
    bare = bare_scan(place.server)
    print(f"{count} locks in {took:.2f} s, {usage.ru_maxrss // 1024} MiB; the same commands alone: {bare:.2f} s")


def bare_scan(server):
    """The seconds that the server needs for the same commands, without a reader of their answers."""
    begin, cursor = time.monotonic(), b"0"
    while True:
        cursor, keys = server.do("SCAN", cursor, "MATCH", "*", "COUNT", "500")
        for commands in ([("TYPE", key) for key in keys],
                         [command for key in keys for command in (
                             ("HSCAN", key, "0", "COUNT", "2"), ("PTTL", key), ("GETRANGE", b"holdfast_note:{" + key + b"}", "0", "511"),
                             ("PUBSUB", "NUMSUB", b"redisson_lock__channel:{" + key + b"}"),
                             ("GET", b"redisson_lock_token:{" + key + b"}"))]):
            text = b"".join(b"*%d\r\n" % len(command) + b"".join(
                b"$%d\r\n%s\r\n" % (len(word), word)
                for word in (word if isinstance(word, bytes) else word.encode() for word in command)) for command in commands)
            server.connection.socket.sendall(text + b"*2\r\n$4\r\nECHO\r\n$8\r\nthe-end!\r\n")
            tail = b""
            while not tail.endswith(b"the-end!\r\n"):
                tail = tail[-16:] + server.connection.socket.recv(1 << 20)
        if cursor == b"0":
            return time.monotonic() - begin


@case
def all_primaries_of_a_red_lock(place):
    servers = [place.server, place.start_server(), place.start_server()]
    for server in servers:
        run_id = re.search(r"run_id:(\w+)", server.do("INFO", "server").decode())[1]
        server.do("SET", "holdfast:redlock", f"{run_id} 60000")
    urls = " ".join(server.url for server in servers)
    job = place.hold("orders:42", "--red", "--note", "why", url=urls)
    wait_until(lambda: place.lines("inspect", "orders:42", url=urls)[0]["note"] == "why", "the note")
    servers[2].do("DEL", "orders:42")
    servers[1].lock("other")
    found = {line["name"]: (line["kind"], line["votes"], line["primaries"]) for line in place.lines("list", url=urls)}
    check(found["other"] == ("red_lock", 1, 3) and found["orders:42"][2] == 3, found)
    check(len(place.lines("list", "orders:*", url=urls)) == 1, "a lock is listed once")
    check(place.lines("inspect", "orders:42", url=urls)[0]["state"] == "held", "")
    servers[0].kill()
    check(len(place.lines("list", "orders:*", url=urls)) <= 1, "a majority is enough")
    job.signal(signal.SIGTERM)
    check(job.finish() == 0, job.output)
    text = place.finish("run", "x", "--red", "--", "sh", "-c", "echo $HOLDFAST_LOCK_KIND", url=urls)
    check(text == "red_lock\n", text)


def free_ports(count):
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in sockets]


@case
def all_primaries_of_a_cluster(place):
    ports = free_ports(6)
    nodes = [place.start_server("--port", str(ports[i]), "--cluster-port", str(ports[i + 3]), "--cluster-enabled", "yes",
                                "--cluster-config-file", f"nodes{i}.conf", service="redis+cluster://localhost") for i in range(3)]
    for i, node in enumerate(nodes):
        node.do("CLUSTER", "ADDSLOTSRANGE", i * 5462, min(16383, i * 5462 + 5461))
        node.do("CLUSTER", "SET-CONFIG-EPOCH", i + 1)
        nodes[0].do("CLUSTER", "MEET", "127.0.0.1", ports[i], ports[i + 3])
    wait_until(lambda: all(b"cluster_state:ok" in node.do("CLUSTER", "INFO") and
                           b"cluster_known_nodes:3" in node.do("CLUSTER", "INFO") for node in nodes), "the cluster is ready")
    url = f"redis+cluster://127.0.0.1:{ports[1]}"
    names = [f"orders:{i}" for i in range(12)]
    holders = [place.hold(name, url=url) for name in names]
    check(sum(bool(node.keys()) for node in nodes) == 3, "each node has a lock")
    found = place.lines("list", url=url)
    check(sorted(line["name"] for line in found) == sorted(names), found)
    check({line["process"]["pid"] for line in found} == {str(job.pid) for job in holders}, found)
    for name in names[:4]:
        check(place.lines("inspect", name, url=url)[0]["state"] == "held", name)
    place.finish("free", names[0], url=url)
    check(place.lines("inspect", names[0], url=url)[0]["state"] == "free", "")
    text = place.finish("doctor", url=url, status=1)
    check("state ok, 16384 slots served" in text and "FAIL" not in text, text)


@case
def a_server_with_tls(place):
    if not shutil.which("openssl"):
        print("skipped: no openssl in PATH")
        sys.exit(77)
    key, certificate = (os.path.join(place.folder, name) for name in ("key.pem", "certificate.pem"))
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "1",
                    "-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", key, "-out", certificate],
                   capture_output=True, check=True)
    port, = free_ports(1)
    place.start_server("--tls-port", str(port), "--tls-cert-file", certificate, "--tls-key-file", key,
                       "--tls-ca-cert-file", certificate, "--tls-auth-clients", "no")
    url = f"rediss://127.0.0.1:{port}?ca_file={certificate}"
    holder = place.hold("orders:42", url=url)
    check(place.lines("inspect", "orders:42", url=url)[0]["process"]["pid"] == str(holder.pid), "inspect over TLS")
    check(len(place.lines("list", url=url)) == 1, "list over TLS")
    place.finish("free", "orders:42", url=url)
    place.finish("watch", "--for", "0.05", "--every", "0.01", url=url)
    check("FAIL" not in place.finish("doctor", url=url, status=1), "doctor over TLS")
    place.finish("list", url=f"rediss://127.0.0.1:{port}", status=78)


@case
def the_primary_that_sentinels_name(place):
    port, *ports = free_ports(4)
    primary = place.start_server("--port", str(port), "--appendonly", "yes")
    for number, own in enumerate(ports):
        file = Path(place.folder, f"sentinel{number}.conf")
        file.write_text(f"sentinel myid {'abc'[number] * 40}\nsentinel monitor mymaster 127.0.0.1 {port} 2\n"
                        "sentinel down-after-milliseconds mymaster 5000\n" +
                        ("sentinel auth-user mymaster rig\nsentinel auth-pass mymaster rig\n"
                         "sentinel sentinel-user rig\nsentinel sentinel-pass rig\n" if ACL else ""), encoding="utf-8")
        place.start_server("--port", str(own), "--sentinel", configuration=str(file), service="redis+sentinel://localhost/mymaster")
    sentinels = place.servers[-3:]
    for one, own, letter in zip(sentinels, ports, "abc"):
        for other in sentinels:
            if other is not one:
                other.do("PUBLISH", "__sentinel__:hello",
                         f"127.0.0.1,{own},{letter * 40},0,mymaster,127.0.0.1,{port},0")
    hosts = ",".join(f"127.0.0.1:{own}" for own in ports)
    url = f"redis+sentinel://{hosts}/mymaster"
    holder = place.hold("orders:42", url=url)
    check(place.lines("inspect", "orders:42", url=url)[0]["process"]["pid"] == str(holder.pid), "inspect by sentinels")
    check([line["name"] for line in place.lines("list", url=url)] == ["orders:42"], "list by sentinels")
    text = place.finish("doctor", url=url)
    check(text.count("3 sentinels, quorum 2") == 3 and "down-after-milliseconds 5000: a lease outlives it" in text, text)
    sentinels[0].do("SENTINEL", "SET", "mymaster", "down-after-milliseconds", "30000")
    text = place.finish("doctor", url=url, status=1)
    check("a TTL of 30000 ms may end during a failover" in text, text)
    sentinels[0].kill()
    text = place.finish("doctor", url=url, status=1)
    check("WARN sentinel" in text, text)
    place.finish("list", url=f"redis+sentinel://{hosts}/another", status=78)


@case
def doctor(place):
    text = plain(place.finish("doctor", status=1))
    check("WARN persistence" in text and "FAIL" not in text, text)
    server = place.server
    server.do("CONFIG", "SET", "appendonly", "yes")
    for terminal in (False, True):
        text = COLOUR.sub("", place.finish("doctor", terminal=terminal))
        check(all(line.startswith("OK ") for line in text.splitlines()), text)
        for word in ("version", "eviction", "persistence", "clock", "round trip", "messages", "permissions", "a lock", "locks"):
            check(f"OK   {word}" in text, f"no {word} in {text}")
    version_ = re.search(r"redis_version:(\S+)", server.do("INFO", "server").decode())[1]
    place.transcript(["doctor"], (
        f"OK  version  {version_}  [URL]\nOK  eviction  noeviction  [URL]\nOK  memory  1 MiB used, no limit  [URL]\n"
        "OK  evicted keys  none  [URL]\nOK  persistence  append-only file  [URL]\n"
        "OK  writes  loaded, and its disk accepts them  [URL]\nOK  replicas  none  [URL]\n"
        "OK  round trip  TIME in the middle, TIME at most; a command may take TIME  [URL]\n"
        "OK  clock  TIME before ours  [URL]\nOK  pub/sub buffer 32768 KiB  [URL]\nOK  messages  arrive  [URL]\n"
        "OK  permissions  default has all of a mutex  [URL]\n"
        "OK  idle  not tried: --idle 60 waits for a minute, then asks again  [URL]\n"
        "OK  a lock  was taken, renewed and freed\nOK  locks  each has a TTL, and a name for any topology\n"), mask=(
            ("behind ours", "before ours"), (r"\b[12] MiB", "1 MiB")))
    check(all(line["verdict"] == "OK" for line in place.lines("doctor")), "JSON of doctor")
    server.do("CONFIG", "SET", "maxmemory-policy", "allkeys-lru", "maxmemory", "100mb")
    text = place.finish("doctor", status=2)
    check("FAIL eviction" in text and "fix: redis-cli CONFIG SET maxmemory-policy noeviction" in text, text)
    server.do("CONFIG", "SET", "maxmemory-policy", "noeviction")
    server.lock("kept")
    server.do("PERSIST", "kept")
    text = place.finish("doctor", status=2)
    check("'kept' has no TTL" in text and "fix: holdfast free -- 'kept'" in text, text)
    place.finish("free", "kept")
    server.do("ACL", "SETUSER", "locker", "on", ">pw", "~*", "&*", "+@all", "-hincrby", "-hset")
    text = place.finish("doctor", "--check-user", "locker", status=2)
    check("locker lacks +hset" in text and "fix: redis-cli ACL SETUSER locker +hset" in text, text)
    text = place.finish("doctor", environment={"HOLDFAST_USER": "locker", "HOLDFAST_PASSWORD": "pw"}, status=2)
    check("FAIL a lock" in text and "hset" in text, text)
    check("a connection survives" in place.finish("doctor", "--idle", "0.05"), "")
    check(server.keys() == [], "doctor leaves something")


@case
def a_proxy_that_forgets_idle_connections(place):
    url = behind_proxy(place, last=b"$7\r\ntimeout\r\n$1\r\n0")  # doctor asks for the server's timeout before it is silent
    text = place.finish("doctor", "--idle", "0.05", url=url, status=1)
    check("WARN idle" in text and "FAIL" not in text and "set health_check_interval below it" in text, text)


@case
def a_standstill_of_its_own_is_no_silence_of_the_server(place):
    for arguments in (["list"], ["hold", "x", "--for", "0.01"]):
        url = behind_proxy(place, change=Standstill(place, 3))
        place.finish(*arguments, url=url + "?connect_timeout=1000&command_timeout=1000")


class Standstill:
    """Holds back the first bytes: the next job stands still for longer than it may wait, and goes on before they do."""

    def __init__(self, place, seconds):
        self.place, self.seconds, self.began, self.is_over = place, seconds, len(place.jobs), False

    def __call__(self, got):
        if not self.is_over:
            self.is_over = True
            wait_until(lambda: len(self.place.jobs) > self.began, "the job begins")
            pid = self.place.jobs[self.began].pid
            wait_until(lambda: state_of(pid) == "S", "it waits")
            os.kill(pid, signal.SIGSTOP)
            wait_until(lambda: state_of(pid) == "T", "it stands still")
            end = time.monotonic() + self.seconds
            wait_until(lambda: time.monotonic() > end, "it would have given up")
            os.kill(pid, signal.SIGCONT)
            wait_until(lambda: state_of(pid) in ("S", "Z", ""), "it goes on, or ends")
        return got


def state_of(pid):
    """Of a process; one that is gone has none."""
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace").rsplit(")", 1)[1].split()[0]
    return ""


def behind_proxy(place, change=lambda got: got, last=None):
    """The URL of a proxy. It passes on the bytes that `change` returns, and forgets a connection after `last`."""
    path = os.path.join(place.folder, f"proxy{len(place.jobs)}.sock")
    listener = socket.socket(socket.AF_UNIX)  # the thread has it until the end
    listener.bind(path)
    listener.listen()
    threading.Thread(target=pass_on, args=(listener, place.server.path, change, last), daemon=True).start()
    return "redis+unix://" + path


def pass_on(listener, path, change, last):
    other_side = {}

    def end(side):
        for one in (side, other_side.pop(side)):
            other_side.pop(one, None)
            one.close()

    while True:
        for ready in select.select([listener, *other_side], [], [])[0]:
            if ready is listener:
                client, server = listener.accept()[0], socket.socket(socket.AF_UNIX)
                server.connect(path)
                other_side[client], other_side[server] = server, client
            elif ready in other_side:
                try:
                    got = change(ready.recv(65536))
                    other_side[ready].sendall(got)
                except OSError:
                    got = b""
                if not got or last and last in got:
                    end(ready)


@case
def acl_is_enough(place):
    """The subcommands, and so the library's client, under exactly the rule that is printed."""
    text = place.finish("acl", "--server-version", "7.0", "--prefix", "app:")
    check(text.startswith("redis-cli ACL SETUSER locker on '>PASSWORD' resetkeys '~app:*' resetchannels "
                          "'&redisson_lock__channel:{app:*' '&__redis__:invalidate' -@all +eval "), text)
    version_ = re.search(r"redis_version:(\S+)", place.server.do("INFO", "server").decode())[1]
    url = place.server.url + "?key_prefix=app:"
    login = {"HOLDFAST_USER": "locker", "HOLDFAST_PASSWORD": "pw"}
    for kinds in ([], ["--fenced"], ["--simple"], ["--notes"]):
        line, = place.lines("acl", *kinds, url=url)
        check(line == place.lines("acl", *kinds, "--server-version", version_, "--prefix", "app:")[0], "the server is asked")
        place.server.do("ACL", "SETUSER", "locker", "reset", "on", ">pw", *line["rules"])
        how = {"url": url, "environment": login}
        if kinds == ["--notes"]:
            job = place.hold("noted", "--note", "why", **how)
            wait_until(lambda: place.lines("inspect", "noted", url=url)[0]["note"] == "why", "a note under this rule")
            job.signal(signal.SIGTERM)
            job.finish()
            kinds = []
        place.finish("run", "x", *kinds, "--", "true", **how)
        holder = place.hold("x", *kinds, "--ttl", "3", **how)
        place.finish("run", "x", "-n", *kinds, "--", "true", status=75, **how)
        waiter = place.start("run", "x", *kinds, "--", "true", **how)
        place.finish("free", "x", *(kinds if kinds == ["--simple"] else []), **how)
        check(waiter.finish() == 0 and holder.finish() == 79, waiter.output + holder.output)
        check("OK   a lock" in place.finish("doctor", status=1, **how), "connect() finds a gap")
        place.finish("run", "y", *kinds, "--", "true", status=77, url=place.server.url, environment=login)
        needed = [rule for rule in line["rules"] if rule in ("+eval", "+evalsha", "+hset", "+hdel", "+pexpire")]
        check(len(needed) == 5, line)
    place.finish("list", status=77, url=url, environment=login)
    line, = place.lines("acl", "--operator", url=url)
    place.server.do("ACL", "SETUSER", "locker", "reset", "on", ">pw", *line["rules"])
    for arguments in (["list"], ["inspect", "x"], ["watch", "--for", "0.01"]):
        place.finish(*arguments, url=url, environment=login)
    check("OK   permissions" in place.finish("doctor", url=url, environment=login, status=1), "doctor as an operator")
    line, = place.lines("acl", "--server-version", "6.0", url=url)
    check(not [rule for rule in line["rules"] if rule.startswith("&")], "Redis 6.0 has no channels in its rules")
    line, = place.lines("acl", "--server-version", "7.2", url="redis+cluster://localhost")
    check("+spublish" in line["rules"] and "+cluster|slots" in line["rules"], line)
    servers, sentinels = place.lines("acl", "--server-version", "7.2", url="redis+sentinel://localhost/mymaster")
    check((servers["at"], sentinels["at"]) == ("servers", "sentinels"), sentinels)
    place.finish("acl", "--server-version", "5.0", status=64)


@case
def acl(place):
    service = ("redis-cli ACL SETUSER locker on '>PASSWORD' resetkeys '~app:*' resetchannels '&redisson_lock__channel:{app:*' "
               "'&__redis__:invalidate' -@all +eval +evalsha +exists +hexists +hget +hset +hdel +hlen +hgetall +pttl +pexpire +del +publish +subscribe "
               "+unsubscribe +ping '+client|setname' '+client|id' '+client|kill' +info +role '+client|tracking' '+client|caching'\n")
    sentinels = ("redis-cli ACL SETUSER watcher on '>PASSWORD' resetchannels '&+switch-master' -@all '+sentinel|master' "
                 "'+sentinel|get-master-addr-by-name' '+sentinel|sentinels' '+sentinel|myid' +subscribe +ping +info "
                 "+role '+client|setname' '+client|id' '+client|kill'\n")
    place.transcript(["acl", "--server-version", "7.0", "--prefix", "app:"], service)
    place.transcript(["acl", "--server-version", "7.0", "--prefix", "app:"], service + sentinels,
                     url="redis+sentinel://localhost/mymaster")


@case
def acl_is_that_of_the_page(place):
    """docs/guide/operating.md has the same rules."""
    page = (place.root / "docs/guide/operating.md").read_text(encoding="utf-8")
    blocks = dict(re.findall(r"<!-- run: (acl.*?) -->\n\n```sh\nredis-cli ACL SETUSER \S+ (.*?)\n```", page))

    def rules(*names):
        return {word for name in names for word in shlex.split(blocks[name]) if word != "on" and not word.startswith(">")}

    plain_, fenced, simple = "acl", "acl of a fenced_mutex", "acl of a simple_mutex"
    one, red = "redis://localhost/1", "redis://a/1 redis://b/1 redis://c/1"  # in database 0 there is no SELECT
    for names, more, options, url in (
            ((plain_,), set(), [], one), ((plain_, fenced), set(), ["--fenced"], one), ((plain_, simple), set(), ["--simple"], one),
            ((plain_, "acl of notes"), set(), ["--notes"], one), ((plain_, "acl of notes"), set(), [], one + "?notes=on"),
            ((plain_,), {"+get", "+set", "~holdfast:redlock*"}, [], red),
            ((plain_, "acl of a cluster"), {"+select"}, [], "redis+cluster://localhost"),
            ((plain_, "acl of min_replicas"), set(), [], one + "?min_replicas=1"),
            ((plain_, simple), {"&redisson_lock__channel:app:*", "&holdfast_simple:app:*"}, ["--simple", "--braces"], one)):
        line, = place.lines("acl", "--prefix", "app:", "--server-version", "7.0", *options, url=url)
        found = set(line["rules"]) | ({"+select"} if "cluster" in url else set())
        check(found == rules(*names) | more, f"{options}, {url}: {found ^ (rules(*names) | more)}")
    sentinels = place.lines("acl", "--server-version", "7.0", url="redis+sentinel://localhost/mymaster")[1]
    check(set(sentinels["rules"]) == rules("acl of a sentinel"), sentinels)


@case
def help_and_manual_say_the_same(place):
    manual = place.finish("man")
    place.transcript(["man"], plain(manual))
    place.transcript(["--help"], plain(place.finish("--help")))
    text = re.sub(r"\s+", " ", manual.replace("\\-", "-").replace("\\e", "\\").replace("\n.br\n", "\n"))
    subcommands = re.findall(r"^\.SS holdfast (\S+)$", manual, re.M)
    check({"run", "hold", "wait", "free", "list", "inspect", "watch", "doctor", "acl", "version", "completion"} <=
          set(subcommands), subcommands)
    for subcommand in subcommands:
        usage = place.finish(subcommand, "--help")
        place.transcript([subcommand, "--help"], plain(usage))
        described = re.findall(r"^  (\S.*?)(?: {2,}|\n {10,})(\S.*(?:\n {10,}\S.*)*)", usage, re.M)
        check(described, usage)
        for option, description in described:
            words = re.sub(r"\s+", " ", description)
            check(words.split("REQUIRED ")[-1] in text, f"{subcommand} {option}: {words!r} is not in the manual")
    overview = place.finish("--help")
    for subcommand in subcommands:
        check(re.search(rf"^  {subcommand} ", overview, re.M), f"{subcommand} is not in --help")
    check("79" in overview and "the lock was lost" in overview, overview)
    if shutil.which("man"):
        done = subprocess.run(["man", "--warnings", "-l", "-"], input=manual, capture_output=True, text=True, check=False)
        check(not done.stderr, done.stderr)


def completion_file(place, shell):
    script = place.finish("completion", shell)
    place.transcript(["completion", shell], plain(script))
    check("inspect" in script and "fenced" in script, script)
    file = Path(place.folder, "completion")
    file.write_text(script, encoding="utf-8")
    if not shutil.which(shell):
        print(f"skipped: no {shell}")
        sys.exit(77)
    done = subprocess.run([shell, "-n", str(file)], capture_output=True, text=True, check=False)
    check(not done.returncode and not done.stderr, done.stderr)
    return file


@case
def completions_of_bash(place):
    file = completion_file(place, "bash")
    for line, word, expected in (("holdfast in", 1, "inspect"), ("holdfast run --fen", 2, "--fenced"),
                                 ("holdfast completion z", 2, "zsh")):
        done = subprocess.run(["bash", "-c", f"""source {file}
COMP_WORDS=({line}); COMP_CWORD={word}; _holdfast; printf '%s\\n' "${{COMPREPLY[@]}}" """],
                              capture_output=True, text=True, check=False)
        check(done.stdout.split() == [expected] and not done.stderr, f"{line}: {done}")
    completes(place, ["bash", "--norc", "-i"], f"source {file}")


def completes(place, shell, preparation):
    """A word of a command line, on a terminal."""
    folder = Path(place.folder, "bin")
    folder.mkdir()
    (folder / "holdfast").symlink_to(Path(place.program).resolve())
    job = Job(*shell, terminal=True, url=place.server.url, environment={
        "PS1": "", "HISTFILE": "", "INPUTRC": "/dev/null", "TERM": "dumb", "PATH": f"{folder}:{os.environ['PATH']}"})
    place.jobs.append(job)
    job.type(preparation + "; echo prepare$((0))d\n")
    job.wait_for("prepare0d\n")
    job.type("holdfast insp\tsome-lock\n")
    job.wait_for("some-lock is free\n")
    job.type("exit\n")
    job.finish()


@case
def completions_of_zsh(place):
    file = completion_file(place, "zsh")
    functions = Path(place.folder, "functions")
    functions.mkdir()
    file.rename(functions / "_holdfast")
    completes(place, ["zsh", "-f", "-i"], f"fpath=({functions} $fpath); autoload -U compinit; compinit -u -D")


@case
def completions_of_fish(place):
    file = completion_file(place, "fish")
    done = subprocess.run(["fish", "--no-config", "-c", f"source {file}; complete -C 'holdfast insp'"], capture_output=True,
                          text=True, check=False)
    check(done.stdout.split()[:1] == ["inspect"] and not done.stderr, done)


@case
def examples_of_the_page(place):
    """Each block of docs/cli.md that begins with a subcommand is accepted, and each option in it exists."""
    page = (place.root / "docs/cli.md").read_text(encoding="utf-8")
    commands = re.findall(r"^(?:\S*=\S+ )*holdfast ((?:run|hold|wait|list|inspect|watch|free|doctor|acl|version|completion)\b.*)$",
                          page, re.M)
    check(len(commands) > 10, "the page has no commands")
    for command in commands:
        subcommand, *rest = re.split(r" -- |[#|]", command)[0].split()
        usage = place.finish(subcommand, "--help")
        for word in rest:
            if word.startswith("-"):
                check(re.search(rf"(^|[\s,]){re.escape(word.split('=')[0])}\b", usage), f"{command}: no {word} in\n{usage}")


@case
def cron_systemd_and_kubernetes(place):
    """The lines of docs/cli.md, as far as a test can be cron, systemd or a kubelet."""
    page = (place.root / "docs/cli.md").read_text(encoding="utf-8")
    cron = re.search(r"^\*/5 \* \* \* \*  (.*)$", page, re.M)[1].replace("redis://redis.example", place.server.url)
    unit = re.search(r"^ExecStart=(.*)$", page, re.M)[1].replace("/usr/bin/holdfast", "holdfast")
    pod = " ".join(f"'{word}'" for word in json.loads(re.search(r"^command: (.*)$", page, re.M)[1]))
    folder = Path(place.folder, "bin")
    folder.mkdir()
    (folder / "holdfast").symlink_to(Path(place.program).resolve())
    nothing = Path("/bin/true").resolve()
    for line in (cron, unit, pod):
        line = re.sub(r"(?<=[ '])/(usr/local/bin|app)/\w+", str(nothing), line)
        check(str(nothing) in line, line)
        done = subprocess.run(["/bin/sh", "-c", line], capture_output=True, text=True, check=False,
                              env={"PATH": f"{folder}:/usr/bin:/bin", "HOLDFAST_URL": place.server.url})
        check(done.returncode == 0, f"{line}: {done}")
    place.server.lock("report")
    done = subprocess.run(["/bin/sh", "-c", cron], capture_output=True, text=True, check=False, env={"PATH": f"{folder}:/usr/bin:/bin"})
    check(done.returncode == 75, f"{cron}: {done}")


@case
def an_operator_frees_a_stuck_lock(place):
    """Four incidents, by the commands that `holdfast --help` gives for them."""
    steps = re.search(r"^When a lock is stuck:\n((?:  .*\n)+)", place.finish("--help"), re.M)[1]
    check(re.findall(r"^  holdfast (\w+)", steps, re.M) == ["list", "inspect", "free", "doctor"], steps)

    stopped = place.hold("orders:42", "--ttl", "600")
    stopped.signal(signal.SIGSTOP)
    line, = place.lines("inspect", "orders:42")
    check(line["process"]["pid"] == str(stopped.pid), line)
    place.finish("free", "orders:42")
    place.finish("run", "orders:42", "-n", "--", "true")
    stopped.signal(signal.SIGCONT)

    hung = place.start("run", "report", "--ttl", "3", "--grace", "0.1", "--", "sh", "-c",
                       "trap '' TERM; echo hangs; while :; do sleep 0.05; done").wait_for("hangs")
    line, = place.lines("inspect", "report")
    check(line["process"]["pid"] == str(hung.pid), line)
    place.finish("free", "report")
    check(hung.finish() == 79, hung.output)
    hung.leaves_nobody()
    place.finish("run", "report", "-n", "--", "true")

    place.server.lock("import")
    place.server.do("PERSIST", "import")
    text = place.finish("run", "import", "-n", "--", "true", status=65)
    check("has no TTL" in text and text.endswith(" (see holdfast inspect)\n"), text)
    check(re.search(r"^ttl +none$", place.finish("inspect", "import"), re.M), "no TTL")
    check("TTL none" in place.finish("inspect", "--help"), "the help is silent")
    place.finish("free", "import")
    place.finish("run", "import", "-n", "--", "true")

    stopped = place.hold("billing", "--ttl", "600")
    stopped.signal(signal.SIGSTOP)
    place.server.do("CONFIG", "SET", "maxmemory", "1")
    text = place.finish("run", "other", "-n", "--", "true", status=69)
    check("OOM" in text and text.endswith(" (see holdfast doctor)\n"), text)
    check("FAIL memory" in place.finish("doctor", status=2), "doctor")
    place.finish("free", "billing")
    check(place.lines("list") == [], "a lock is left")
    stopped.signal(signal.SIGCONT)


def main():
    program, root, name = sys.argv[1:]
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    with tempfile.TemporaryDirectory(prefix="holdfast-cli-") as folder:
        place = Place(program, root, folder)
        try:
            CASES[name](place)
            place.has_its_rights()
        except (Failure, ErrorReply) as failure:
            sys.exit(f"{name}: {failure}")
        finally:
            place.close()


if __name__ == "__main__":
    main()
