# SPDX-License-Identifier: BSL-1.0
"""http_server_test.py PROGRAM CASE: the HTTP server of the recipes, under a client that counts its answers.
Exit code 77: no Redis server to run."""
import collections
import contextlib
import http.client
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir, "support"))
from run_example import server_command  # noqa: E402

ANSWER_WITHIN = 3.0  # seconds: what http_server.cpp promises
PATIENCE = 60.0  # for what must come, on however busy a machine
KEY = "locks:/orders/"


def wait_for(what, condition):
    end = time.monotonic() + PATIENCE
    while not (found := condition()):
        if time.monotonic() > end:
            raise AssertionError(f"never: {what}")
        time.sleep(0.002)
    return found


class Redis:
    """A private server that loses nothing when it is killed."""

    def __init__(self, folder):
        self.folder, self.path = folder, os.path.join(folder, "redis.sock")
        self.name, self.executable = server_command()
        if not self.executable:
            print("skipped: no redis-server, valkey-server or redis-check-rdb in PATH")
            sys.exit(77)
        self.start()

    def start(self):
        self.process = subprocess.Popen(
            [self.name, "--port", "0", "--unixsocket", self.path, "--save", "", "--appendonly", "yes", "--appendfsync",
             "always", "--dir", self.folder], executable=self.executable, stdout=subprocess.DEVNULL)
        wait_for("the Redis server answers", self.answers)

    def kill(self):
        self.process.kill()
        self.process.wait()

    def answers(self):
        try:
            return self.ask("PING") == "PONG"
        except (OSError, AssertionError):  # not there, or LOADING
            return False

    def ask(self, *words):
        """A command and its answer: text, a number, or a list of them."""
        with socket.socket(socket.AF_UNIX) as link:
            link.settimeout(PATIENCE)
            link.connect(self.path)
            link.sendall(b"*%d\r\n" % len(words) +
                         b"".join(b"$%d\r\n%s\r\n" % (len(word), word) for word in map(str.encode, words)))
            return self.read(link.makefile("rb"))

    def read(self, file):
        line = file.readline().decode().rstrip()
        kind, rest = line[:1], line[1:]
        if kind == "+":
            return rest
        if kind == ":":
            return int(rest)
        if kind == "$":
            return file.read(int(rest) + 2)[:-2].decode()
        assert kind == "*", f"Redis says {line!r}"
        return [self.read(file) for _ in range(int(rest))]

    def count(self, order):
        """How often the one who holds the order's lock is in it; 0 when nobody does."""
        return sum(map(int, self.ask("HVALS", KEY + order)))


class Answer:
    def __init__(self, order, port):
        self.order = order
        self.began = time.monotonic()
        link = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
        link.request("POST", "/orders/" + order)
        response = link.getresponse()
        self.status, self.text = response.status, response.read().decode().strip()
        link.close()
        self.ended = time.monotonic()

    def __repr__(self):
        return f"{self.order}: {self.status} {self.text!r} after {self.ended - self.began:.2f} s"


class Server:
    """The program, and all that it answered."""

    running = []

    def __init__(self, program, redis, settings=""):
        self.process = subprocess.Popen([program, f"redis+unix://{redis.path}{settings}", "0"],
                                        stdout=subprocess.PIPE, text=True)
        self.running.append(self.process)
        self.lines, self.answers, self.unanswered = [], [], []
        self.reader = threading.Thread(target=self.read_lines)
        self.reader.start()
        self.port = int(self.line("listening on ").split()[-1])

    def read_lines(self):
        for line in self.process.stdout:
            self.lines.append(line.rstrip())

    def line(self, begin):
        return wait_for(begin, lambda: next((one for one in list(self.lines) if one.startswith(begin)), None))

    def post(self, order):
        try:
            answer = Answer(order, self.port)
        except Exception as failed:
            self.unanswered.append(f"{order}: {failed!r}")
            raise
        self.answers.append(answer)
        return answer

    def start(self, work, *arguments):
        thread = threading.Thread(target=work, args=arguments)
        thread.start()
        return thread

    def terminate(self):
        self.process.send_signal(signal.SIGTERM)
        self.line("draining")

    def end(self):
        """After terminate(): what is true at the end of every case."""
        status = self.process.wait(PATIENCE)
        self.reader.join()
        assert status == 0, f"it ended with {status}"
        assert not self.unanswered, f"without an answer: {self.unanswered}"
        late = [a for a in self.answers if a.ended - a.began > ANSWER_WITHIN]
        assert not late, f"late: {late}"

    def done(self):
        """Orders that were shipped, and answers that say so."""
        begin = "shipped /orders/"
        shipped = collections.Counter(one.removeprefix(begin) for one in self.lines if one.startswith(begin))
        return shipped, collections.Counter(a.order for a in self.answers if a.status == 200)


def a_busy_order_is_409_and_a_nested_call_re_enters(redis, program):
    server = Server(program, redis)
    redis.ask("HSET", KEY + "busy", "somebody:1", "1")
    redis.ask("PEXPIRE", KEY + "busy", "60000")
    assert server.post("busy").status == 409
    redis.ask("DEL", KEY + "busy")
    seen = set()
    while 2 not in seen:
        request = server.start(server.post, "busy")
        while request.is_alive():
            seen.add(redis.count("busy"))
        assert server.answers[-1].status == 200, server.answers
        assert len(server.answers) < 50, f"counts seen: {seen}"
    server.terminate()
    server.end()
    shipped, answered = server.done()
    assert shipped == answered
    assert redis.ask("KEYS", "*") == []


def a_lost_lock_cancels_the_work_and_is_500(redis, program):
    server = Server(program, redis, "?ttl=300")  # renewed every 100 ms; the work takes 600 ms
    deleted = 0
    for order in map(str, range(50)):  # on a busy machine we may come too late for one
        request = server.start(server.post, order)
        while request.is_alive() and not deleted:
            deleted = redis.ask("DEL", KEY + order)
        request.join()
        if deleted:
            break
    assert server.answers[-1].status == 500, server.answers
    assert f"shipped /orders/{order}" not in server.lines
    server.terminate()
    server.end()
    assert redis.ask("KEYS", "*") == []


def sigterm_finishes_what_was_begun_and_leaves_no_key(redis, program):
    server = Server(program, redis)
    begun, granted = [], set()
    while len(granted) < 4:  # on a busy machine not all may be under way together
        if not any(request.is_alive() for request in begun):
            begun, granted = [server.start(server.post, order) for order in "1234"], set()
        # Its nested call is counted: the program knows of its grant. A key alone is there before the answer is.
        granted = {order for order in "1234" if redis.count(order) == 2 or order in granted and redis.count(order)}
    server.terminate()
    with contextlib.suppress(ConnectionError):  # on a busy machine the work may be done, and the door closed
        assert Answer("5", server.port).status == 503
    for request in begun:
        request.join()
    server.end()
    assert {a.status for a in server.answers[-4:]} == {200}, server.answers
    shipped, answered = server.done()
    assert shipped == answered, server.answers
    assert redis.ask("KEYS", "*") == []


def no_answer_is_lost_while_redis_is_killed_for_6_s(redis, program):
    server = Server(program, redis)
    killed_at, back_at = [], []

    def client(order):
        while not (back_at and server.post(order).status == 200):
            if not back_at:
                server.post(order)

    clients = [server.start(client, str(i // 2)) for i in range(12)]  # two for each of six orders
    wait_for("a nested call is over, and its order nearly shipped", lambda: redis.count("0") == 2)
    wait_for("a nested call is over, and its order nearly shipped", lambda: redis.count("0") != 2)
    redis.kill()
    killed_at = time.monotonic()
    time.sleep(6)
    redis.start()
    back_at.append(time.monotonic())
    for one in clients:
        one.join()
    server.terminate()
    server.end()
    by_status = collections.Counter(a.status for a in server.answers)
    print(dict(by_status))
    assert set(by_status) == {200, 409, 503}, server.answers
    shipped, answered = server.done()
    assert shipped == answered, f"shipped {shipped}, answered so {answered}"
    outlived = [a for a in server.answers if a.status == 200 and a.began < killed_at < a.ended]
    assert outlived, "no order was under way when Redis was killed"
    assert redis.ask("KEYS", "*") == []


def main(program, case):
    with tempfile.TemporaryDirectory() as folder:
        redis = Redis(folder)
        try:
            globals()[case](redis, program)
        finally:
            for process in [redis.process, *Server.running]:
                process.kill()
                process.wait()


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # by way of `finally`
    main(*sys.argv[1:])
