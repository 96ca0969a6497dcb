# SPDX-License-Identifier: BSL-1.0
"""Servers of a test, and the locks on them."""
import itertools
import socket
import subprocess
import threading
import time

from optional_tools import skip

LIMIT = 120  # seconds: for what must come, on however busy a machine


def wait_for(event, condition):
    end = time.monotonic() + LIMIT
    while not (found := condition()):
        assert time.monotonic() < end, f"never: {event}"
        time.sleep(0.01)
    return found


class Link:
    """A connection that shares nothing with the libraries."""

    def __init__(self, port):
        self.socket = socket.create_connection(("127.0.0.1", int(port)), timeout=LIMIT)
        self.file = self.socket.makefile("rb")

    def __call__(self, *words):
        packed = [word if isinstance(word, bytes) else str(word).encode() for word in words]
        self.socket.sendall(b"*%d\r\n" % len(packed) + b"".join(b"$%d\r\n%s\r\n" % (len(w), w) for w in packed))
        return self.read()

    def read(self):
        line = self.file.readline()
        kind, rest = line[:1], line[1:].rstrip()
        if kind in (b"+", b"-"):
            return rest.decode()
        if kind == b":":
            return int(rest)
        if kind == b"$":
            return None if rest == b"-1" else self.file.read(int(rest) + 2)[:-2]
        assert kind == b"*", f"Redis answers {line!r}"
        return [self.read() for _ in range(int(rest))]

    def close(self):
        self.file.close()
        self.socket.close()


class Servers:
    """The program that starts them. They end with it."""

    def __init__(self, program, log):
        self.one_at_a_time = threading.Lock()
        self.process = subprocess.Popen([program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                        stderr=open(log, "a", encoding="utf-8"))
        if not self.process.stdout.readline():
            skip("no Redis server")

    def ask(self, *words):
        with self.one_at_a_time:
            self.process.stdin.write(" ".join(map(str, words)) + "\n")
            self.process.stdin.flush()
            reply = self.process.stdout.readline().split()
        assert reply and reply != ["error"], f"no servers for {words}"
        return reply

    def end(self):
        self.process.stdin.close()
        self.process.wait()


class Place:
    """Where locks live, and the terms on which an agent's client uses it."""

    def __init__(self, rig, name, topology, ports, prefix, ttl=30_000, poll=60_000, pubsub="auto",
                 push="auto"):
        self.rig, self.name, self.topology, self.ports, self.prefix = rig, name, topology, ports, prefix
        self.ttl, self.poll, self.pubsub, self.push = ttl, poll, pubsub, push
        self.numbers = itertools.count(1)

    def terms(self):
        hosts = ",".join(f"127.0.0.1:{port}" for port in self.ports)
        return self.topology, hosts, self.ttl, self.poll, self.pubsub, self.push

    def lock(self, kind, name=None):
        return Lock(self, kind, name or f"{self.prefix}{self.name}:{next(self.numbers)}")

    def servers(self):
        """The ports of the servers that may have the lock."""
        if self.topology != "sentinel":
            return self.ports
        sentinel = Link(self.ports[0])
        primary = sentinel("SENTINEL", "GET-MASTER-ADDR-BY-NAME", "mymaster")[1]
        sentinel.close()
        return [primary.decode()]

    def ask(self, *words):
        """The answers of all servers that live."""
        replies = []
        for port in self.servers():
            try:
                link = Link(port)
            except ConnectionRefusedError:
                continue
            replies.append(link(*words))
            link.close()
        return replies


class Places:
    """All of them, on servers that are started when a row first needs them."""
    SHORT = {"ttl": 6_000, "poll": 1_000}
    SERVERS = {"one": "one", "quick": "one", "sentinel": "sentinel", "cluster": "cluster", "cluster-both": "cluster",
               "cluster-classic": "cluster", "three": "several 3", "three-quick": "several 3", "five": "several 5",
               "five-quick": "several 5"}
    TERMS = {"quick": SHORT, "three-quick": SHORT, "five-quick": SHORT, "cluster-both": {"pubsub": "both"},
             "cluster-classic": {"pubsub": "classic", **SHORT}}

    def __init__(self, rig, prefix, us):
        self.rig, self.prefix, self.us = rig, prefix, us  # prefix: of each name
        self.known, self.ports, self.one_at_a_time = {}, {}, threading.Lock()

    def __getitem__(self, name):
        with self.one_at_a_time:
            if name not in self.known:
                self.known[name] = self.make(name, self.SERVERS[name])
            return self.known[name]

    def make(self, name, servers):
        first = servers not in self.ports
        if first:
            self.ports[servers] = self.rig.ask(servers)
        topology = servers.split()[0]
        place = Place(self.rig, name, topology, self.ports[servers], self.prefix, **self.TERMS.get(name, {}))
        if first and topology == "several":
            assert self.us.owner(place.lock("red")).ask("initialise") == "ok", "the servers are new"
        return place


class Lock:
    """A name of one kind, as both sides use it. The kind `read-write` is of two: the holder's lock and the waiter's."""
    STEMS = {"permit": "redisson_sc:", "permits": "redisson_sc:", "read": "redisson_rwlock:", "write": "redisson_rwlock:"}

    def __init__(self, place, kind, name):
        self.place, self.kind, self.name = place, kind, name
        self.keys = [name + ":1", name + ":2"] if kind == "multi" else [name]
        self.is_semaphore = kind in ("permit", "permits")

    def of(self, kind):
        return Lock(self.place, kind, self.name)

    @property
    def sides(self):
        """The holder's lock, and the waiter's."""
        held, _, wanted = self.kind.partition("-")
        return self.of(held), self.of(wanted or held)

    def waiters(self, verb):
        """How many clients subscribe: NUMSUB counts SUBSCRIBE, SHARDNUMSUB counts SSUBSCRIBE."""
        stem = self.STEMS.get(self.kind.partition("-")[0], "redisson_lock__channel:")
        channels = [stem + (key if "{" in key else "{" + key + "}") for key in self.keys]
        if self.kind == "countdown":
            channels = ["redisson_countdownlatch__channel__{" + self.name + "}"]
        replies = [reply for channel in channels for reply in self.place.ask("PUBSUB", verb, channel)]
        return sum(reply[1] for reply in replies if isinstance(reply, list))

    def wait_for_waiter(self):
        wait_for("a waiter that subscribes", lambda: self.waiters("NUMSUB") + self.waiters("SHARDNUMSUB"))

    def hold_count(self):
        """The sum of all counts in the hash."""
        replies = self.place.ask("HVALS", self.keys[0])
        return sum(int(value) for reply in replies if isinstance(reply, list) for value in reply if value.isdigit())

    def permits(self):
        """How many of a semaphore are left, and how many are out."""
        out = (self.name if "{" in self.name else "{" + self.name + "}") + ":timeout"
        left = max(int(reply) for reply in self.place.ask("GET", self.name) if isinstance(reply, bytes))
        return left, max(reply for reply in self.place.ask("ZCARD", out) if isinstance(reply, int))

    def free(self):
        if self.is_semaphore:
            return self.permits()[1] == 0
        return not any(reply == 1 for key in self.keys for reply in self.place.ask("EXISTS", key))

    def wait_until_everywhere(self):
        """A majority makes a holder, whose commands for the other servers may still be on their way."""
        def has_all():
            values = set(self.place.ask("GET", self.keys[0]))
            return len(values) == 1 and None not in values
        wait_for("a hold at each server", has_all)

    def wait_until_free(self):
        wait_for("a key that is gone", self.free)
