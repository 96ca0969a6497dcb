#!/usr/bin/env python3
# SPDX-License-Identifier: BSL-1.0
"""serve_test.py PROGRAM CASE [SECONDS]: `holdfast serve` on a server of its own, by a client that speaks HTTP badly where it
should. Exit code 77: there is no Redis server to run."""
import contextlib
import json
import os
import re
import resource
import signal
import socket
import sys
import tempfile
import time
from pathlib import Path

from rig import LIMIT, OWNER, Election, ErrorReply, Failure, Job, Redis, check, wait_until

CASES = {}
OTHER = "89abcdef-0123-8abc-9def-0123456789ab:1"


def case(function):
    CASES[function.__name__] = function
    return function


class Answer:
    def __init__(self, data):
        head, _, self.body = data.partition(b"\r\n\r\n")
        lines = head.decode("latin-1").split("\r\n")
        match = re.fullmatch(r"HTTP/1\.1 (\d{3}) .*", lines[0])
        check(match, f"no answer: {data[:200]!r}")
        self.status = int(match[1])
        self.headers = dict(line.lower().split(": ", 1) for line in lines[1:])

    def json(self):
        return json.loads(self.body)


class Page:
    """A serve that runs."""

    def __init__(self, place, *options, listen="127.0.0.1:0", **how):
        self.job = place.start("serve", "--json", "--listen", listen, *options, **how)
        self.job.wait_for('"event":"serving"')
        line = json.loads(self.job.output.splitlines()[0])
        self.url, self.token = line["url"], line["token"]
        self.port = int(re.search(r":(\d+)/$", self.url)[1])

    def connect(self):
        return socket.create_connection(("127.0.0.1", self.port), timeout=LIMIT)

    def ask(self, path, method="GET", body=b"", host=None, raw=b"", **headers):
        lines = [f"{method} {path} HTTP/1.1", f"Host: {host or f'127.0.0.1:{self.port}'}"]
        lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
        if body:
            lines.append(f"Content-Length: {len(body)}")
        return self.send("\r\n".join(lines).encode() + b"\r\n\r\n" + body + raw)

    def send(self, data):
        with self.connect() as client:
            with contextlib.suppress(BrokenPipeError, ConnectionResetError):
                client.sendall(data)
            got = b""
            while part := client.recv(65536):
                got += part
            return Answer(got)

    def locks(self):
        return {item["lock"]["name"]: item["lock"] for item in self.ask("/api/locks").json()["locks"]}

    def log(self):
        return [item["event"] for item in self.ask("/api/locks").json()["log"]]

    def free(self, name, *holders, token=None, **headers):
        headers = {"Content_Type": "application/json", "X_Holdfast_Token": self.token if token is None else token, **headers}
        return self.ask("/api/free", "POST", json.dumps({"name": name, "holders": holders}).encode(), **headers)

    def memory(self):
        """KiB of this process in memory; 0 under a sanitizer, whose allocator keeps what was freed."""
        if b"__sanitizer_" in Path(self.job.process.args[0]).read_bytes():
            return 0
        with open(f"/proc/{self.job.pid}/status", encoding="utf-8") as file:
            return int(re.search(r"VmRSS:\s+(\d+)", file.read())[1])


class Events:
    """A reader of /api/events."""

    def __init__(self, page):
        self.client = page.connect()
        self.client.sendall(f"GET /api/events HTTP/1.1\r\nHost: localhost:{page.port}\r\n\r\n".encode())
        self.data = b""

    def wait_for(self, text):
        while text.encode() not in self.data:
            part = self.client.recv(65536)
            check(part, f"the events ended without {text}: {self.data[-500:]!r}")
            self.data += part
        return self

    def close(self):
        self.client.close()


class Place:
    def __init__(self, program, folder):
        self.program = program
        self.jobs = []
        self.server = Redis(folder)

    def start(self, *arguments, url=None, **how):
        self.jobs.append(Job(self.program, *arguments, url=url or self.server.url, **how))
        return self.jobs[-1]

    def hold(self, name, *options):
        return self.start("hold", name, *options).wait_for("held")

    def close(self):
        for job in self.jobs:
            job.close()
        if self.server.process.poll() is None:
            self.server.kill()


@case
def all_routes(place):
    holder = place.hold("orders:42", "--ttl", "30", "--note", "request 7")
    page = Page(place)
    wait_until(lambda: page.locks().get("orders:42", {}).get("note") == "request 7", "the note is shown")
    lock = page.locks()["orders:42"]
    listed = json.loads(place.start("list", "--json").wait_for("}\n").output.splitlines()[0])
    check(lock.keys() - {"id"} == listed.keys() and lock["holder"] == listed["holder"], f"other than list: {lock} {listed}")
    check(lock["process"]["pid"] == str(holder.pid), lock)
    answer = page.ask("/")
    check(answer.status == 200 and answer.headers["content-type"] == "text/html; charset=utf-8", answer.headers)
    policy = answer.headers["content-security-policy"]
    nonce = re.search(r"script-src 'nonce-([0-9a-f]{32})'", policy)[1]
    check("default-src 'none'" in policy and "unsafe" not in policy, policy)
    check(answer.body.count(f'nonce="{nonce}"'.encode()) == 2 and b"@NONCE@" not in answer.body, "the nonce of the page")
    check(nonce.encode() not in page.ask("/").body, "each page has a nonce of its own")
    check(page.ask("/healthz").body == b"ok\n" and page.ask("/readyz").status == 200, "probes")
    metrics = page.ask("/metrics")
    check(b'holdfast_page_locks{kind="mutex"} 1\n' in metrics.body and b"holdfast_page_redis_up 1\n" in metrics.body, metrics.body)
    server, = page.ask("/api/servers").json()
    check(server["failure"] is None and server["role"] == "master" and server["lag_s"] == 0 and server["findings"], server)
    for path, method, status in (("/nothing", "GET", 404), ("/", "POST", 405), ("/api/free", "GET", 405), ("/../etc/passwd", "GET", 404)):
        check(page.ask(path, method).status == status, f"{method} {path}")
    for path in ("/", "/api/locks", "/metrics", "/nothing"):
        headers = page.ask(path).headers
        check(headers["x-content-type-options"] == "nosniff" and headers["cache-control"] == "no-store"
              and "default-src 'none'" in headers["content-security-policy"] and "set-cookie" not in headers, f"{path}: {headers}")


@case
def locks_come_and_go(place):
    page = Page(place)
    events = Events(page).wait_for("event: hello")
    holder = place.hold("orders:42")
    events.wait_for('"event":"acquired"').wait_for('"name":"orders:42"').wait_for("event: change")
    place.start("hold", "orders:42")
    wait_until(lambda: page.locks()["orders:42"]["waiters"] == 1, "the waiter is counted")
    holder.signal(signal.SIGTERM)
    events.wait_for('"event":"released"')
    place.server.lock("lost")
    wait_until(lambda: "lost" in page.locks(), "the second lock is shown")
    place.server.do("DEL", "lost")
    events.wait_for('"event":"ended"')
    wait_until(lambda: "lost" not in page.locks(), "it is gone")
    check(any(event["event"] == "ended" and event["name"] == "lost" for event in page.log()), page.log())
    events.close()


@case
def a_lead_that_ends_beyond_the_budget_is_no_loss(place):
    """A leader's own message is the first that may not be read. The one about its end tells more."""
    election = Election(place.server)
    term = election.elect(1, "a:1")
    for number in range(1000):
        place.server.lock(f"lock:{number}")
    page = Page(place)
    events = Events(page).wait_for("hello")
    wait_until(lambda: page.locks()["region"]["token"] == term, "the leader is shown")
    for number in range(1000):  # more than may be read now
        place.server.do("PUBLISH", f"redisson_lock__channel:{{lock:{number}}}", "0")
    election.proclaim(1, "a:2")
    election.resign(1)
    wait_until(lambda: "region" not in page.locks(), "it is free")
    ends = [event["event"] for event in page.log() if event.get("name") == "region"][-1:]
    check(ends == ["released"], page.log())
    events.close()


@case
def releases_beyond_the_budget_are_no_losses(place):
    """More messages than may be read at once: the next poll finds their locks free, and knows why."""
    names = [f"lock:{number}" for number in range(1000)]
    for name in names:
        place.server.lock(name)
    page = Page(place)
    release = "redis.call('del', KEYS[1]) redis.call('publish', 'redisson_lock__channel:{' .. KEYS[1] .. '}', '0')"
    for name in names:
        place.server.do("EVAL", release, "1", name)
    wait_until(lambda: not page.locks(), "all are free")
    ends = [event["event"] for event in page.log() if event["event"] != "held"]
    check(ends == ["released"] * 200, f"not released: {set(ends)}")


@case
def hosts_and_origins(place):
    page = Page(place, "--allow-free")
    own = f"127.0.0.1:{page.port}"
    for host in (own, f"localhost:{page.port}", f"LOCALHOST:{page.port}", f"[::1]:{page.port}"):
        check(page.ask("/", host=host).status == 200, host)
    for host in ("evil.example", f"evil.example:{page.port}", "127.0.0.1", "127.0.0.1:1", f"127.0.0.1:{page.port}.evil.example", f"{own}, {own}"):
        for path in ("/", "/api/locks", "/api/events", "/metrics", "/healthz", "/nothing"):
            check(page.ask(path, host=host).status == 403, f"{host} {path}")
    check(page.send(b"GET / HTTP/1.0\r\n\r\n").status == 400, "no Host")
    check(page.send(f"GET / HTTP/1.1\r\nHost: {own}\r\nHost: evil.example\r\n\r\n".encode()).status == 400, "two Hosts")
    for origin, status in ((f"http://{own}", 200), ("http://evil.example", 403), ("null", 403), (f"https://{own}", 403),
                           (f"http://localhost:{page.port}", 403)):
        check(page.ask("/api/locks", Origin=origin).status == status, origin)
    place.server.lock("x")
    check(page.free("x", f"{OWNER}:1", Origin="http://evil.example").status == 403, "free from another site")
    check(place.server.keys() == [b"x"], "it was freed")


@case
def a_proxy_is_in_front(place):
    job = place.start("serve", "--listen", "0.0.0.0:0")
    check(job.finish() == 64 and "--behind-proxy" in job.output, job.output)
    page = Page(place, "--behind-proxy", "locks.example", listen="0.0.0.0:0")
    check(page.ask("/", host="locks.example", Origin="https://locks.example").status == 200, "the name of the proxy")
    check(page.ask("/", host="evil.example", Origin="https://evil.example").status == 403, "a name that leads here by rebinding")
    check(page.ask("/", host="locks.example", Origin="https://evil.example").status == 403, "another site")
    for text in ("8787", "127.0.0.1:", "127.0.0.1:65536", "redis.example:80", "::1:80", "[127.0.0.1]:80"):
        job = place.start("serve", "--listen", text)
        check(job.finish() == 64 and "--listen is" in job.output, f"{text}: {job.output}")


@case
def holds_are_broken_with_the_token_alone(place):
    place.server.lock("x")
    reader = Page(place)
    check(reader.token is None and reader.free("x", f"{OWNER}:1", token="").status == 403, "without --allow-free")
    page = Page(place, "--allow-free")
    check(re.fullmatch("[0-9a-f]{32}", page.token) and page.token.encode() not in page.ask("/").body, "the token is on the page")
    for token in ("", "0" * 32, page.token[:-1], page.token + "0"):
        check(page.free("x", f"{OWNER}:1", token=token).status == 403, f"the token {token!r}")
    check(page.free("x", f"{OWNER}:1", Content_Type="text/plain").status == 415, "a form of another site")
    check(page.free("x", OTHER).status == 409 and page.free("x").status == 409, "a holder that was not shown")
    check(place.server.keys() == [b"x"], "it was freed")
    answer = page.free("x", f"{OWNER}:1")
    check(answer.status == 200 and answer.json() == {"freed": True, "text": ""}, answer.body)
    check(place.server.keys() == [], "it is held")
    check(page.free("x", f"{OWNER}:1").status == 409, "a second time")
    check([event["event"] for event in page.log() if "freed" in event["event"]] == ["not freed", "not freed", "freed", "not freed"], page.log())
    for body in (b"", b"x", b"[]", b"{}", b'{"name":"x"}', b'{"name":1,"holders":[]}', b'{"name":"x","holders":[1]}', b'{"name":"","holders":[]}',
                 b'{"name_hex":"f","holders":[]}', b"[" * 4000):
        check(page.ask("/api/free", "POST", body, Content_Type="application/json", X_Holdfast_Token=page.token).status == 400, body)
    place.server.lock(b"\xff\x00<b>")
    answer = page.ask("/api/free", "POST", json.dumps({"name_hex": "ff003c623e", "holders": [f"{OWNER}:1"]}).encode(),
                      Content_Type="application/json", X_Holdfast_Token=page.token)
    check(answer.status == 200 and place.server.keys() == [], answer.body)
    place.server.do("RPUSH", "list", "data")
    check(page.free("list", "").status == 409 and place.server.keys() == [b"list"], "data was freed")


@case
def requests_are_bounded(place):
    page = Page(place, "--allow-free")
    before = page.memory()
    huge = b"x" * 1_000_000
    check(page.send(b"GET /" + huge + b" HTTP/1.1\r\n\r\n").status == 431, "a long target")
    check(page.ask("/", Padding=huge.decode()).status == 431, "a long header")
    check(page.ask("/api/free", "POST", huge, Content_Type="application/json", X_Holdfast_Token=page.token).status == 413, "a long body")
    check(page.ask("/", body=huge).status == 413, "a body of a GET")
    check(page.send(b"\x16\x03\x01\x02\x00\x01\x00" * 10).status == 400, "TLS to a port without")
    check(page.memory() - before < 16 * 1024, f"{page.memory() - before} KiB more")
    check(page.ask("/healthz").status == 200, "it goes on")


@case
def slow_clients_are_dropped(place):
    page = Page(place)
    begin = time.monotonic()
    with page.connect() as slow, page.connect() as silent:
        slow.sendall(b"GET / HTTP/1.1\r\n")
        ended = 0
        while time.monotonic() < begin + LIMIT and not ended:
            with contextlib.suppress(OSError):
                slow.sendall(b"A: b\r\n")
            slow.settimeout(0.2)
            with contextlib.suppress(TimeoutError):
                slow.recv(4096)
                ended = time.monotonic()
        check(ended and ended - begin < LIMIT / 2, "a client that sends a line at a time keeps its connection")
        silent.settimeout(LIMIT)
        check(silent.recv(4096)[:12] in (b"", b"HTTP/1.1 408"), "a client that sends nothing keeps its connection")
    check(page.ask("/healthz").status == 200, "others are answered")


@case
def readers_that_never_read_cost_a_constant(place):
    page = Page(place)
    before = page.memory()
    readers, refused = [], 0
    for _ in range(1000):
        reader = Events(page)
        reader.client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        part = reader.client.recv(4096)
        if part.startswith(b"HTTP/1.1 503"):
            refused += 1
            reader.close()
        else:
            check(part.startswith(b"HTTP/1.1 200"), part)
            readers.append(reader)
    check(len(readers) == 256 and refused == 744, f"{len(readers)} readers, {refused} refused")
    fresh = place.server
    for turn in range(4):  # each time all locks have another holder
        for number in range(1000):
            fresh.lock(f"lock:{number}", f"{OWNER}:{turn + 1}")
            if turn:
                fresh.do("HDEL", f"lock:{number}", f"{OWNER}:{turn}")
        wait_until(lambda turn=turn: page.locks().get("lock:999", {}).get("holder") == f"{OWNER}:{turn + 1}", "the change is read")
    print(f"256 readers that never read: {page.memory() - before} KiB")
    check(page.memory() - before < 64 * 1024, f"{page.memory() - before} KiB more")
    check(page.ask("/healthz").status == 200, "others are answered")
    for reader in readers:
        reader.close()
    events = wait_until(lambda: reopened(page), "a place is free again")
    events.close()


def reopened(page):
    events = Events(page)
    if events.client.recv(4096).startswith(b"HTTP/1.1 200"):
        return events
    events.close()
    return None


@case
def two_at_one_port(place):
    page = Page(place)
    second = place.start("serve", "--listen", f"127.0.0.1:{page.port}")
    check(second.finish() == 71 and second.output == f"holdfast: 127.0.0.1:{page.port} cannot be opened: Address already in use (see --listen)\n",
          second.output)
    check(page.ask("/healthz").status == 200, "the first goes on")
    events = Events(page).wait_for("hello")
    with page.connect() as open_client:
        open_client.sendall(b"GET / HTTP/1.1\r\n")
        page.job.signal(signal.SIGTERM)
        check(page.job.finish() == 0, page.job.output)
    while events.client.recv(65536):
        pass
    Page(place, listen=f"127.0.0.1:{page.port}")


@case
def redis_goes_away(place):
    job = place.start("serve", "--listen", "127.0.0.1:0", url="redis+unix:///nowhere/redis.sock")
    check(job.finish() == 69, f"{job.output}")
    page = Page(place)
    events = Events(page).wait_for("hello")
    path = place.server.path
    place.server.kill()
    events.wait_for('"event":"unreachable"')
    check(page.ask("/readyz").status == 503 and page.ask("/healthz").status == 200, "probes")
    check(b"holdfast_page_redis_up 0" in page.ask("/metrics").body, "metrics")
    check(page.ask("/api/locks").json()["away"] is True, "the page is told")
    place.server = Redis(place.folder, path=path)
    events.wait_for('"event":"connected"')
    wait_until(lambda: page.ask("/readyz").status == 200, "ready again")


@case
def the_rights_of_an_operator_are_enough(place):
    version = re.search(r"redis_version:(\S+)", place.server.do("INFO", "server").decode())[1]
    rule = place.start("acl", "--json", "--operator", "--fenced", "--simple", "--permits", "--shared", "--notes", "--server-version", version)
    check(rule.finish() == 0, rule.output)
    place.server.lock("x")
    place.server.lock("y")
    place.server.allow(json.loads(rule.output.splitlines()[0])["rules"])
    page = Page(place, "--allow-free")
    events = Events(page).wait_for("hello")
    check(page.ask("/api/servers").json()[0]["failure"] is None, "servers")
    check(page.free("x", f"{OWNER}:1").status == 200, "free")
    events.wait_for('"event":"freed"')
    wait_until(lambda: page.locks().keys() == {"y"}, "the locks are read")
    # The patterns of all names are tried first, as watch does.
    gaps = [gap for gap in place.server.refusals() if not re.match(r"channel \w+:\*", gap)]
    check(not gaps, gaps)


def main():
    program, name = sys.argv[1:3]
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(max(soft, 4096), hard), hard))
    with tempfile.TemporaryDirectory(prefix="holdfast-serve-") as folder:
        place = Place(program, folder)
        place.folder = folder
        try:
            CASES[name](place)
        except (Failure, ErrorReply) as failure:
            sys.exit(f"{name}: {failure}")
        finally:
            place.close()


if __name__ == "__main__":
    main()
