# SPDX-License-Identifier: BSL-1.0
"""agent.py redis-py|redlock-ng|pottery: their side of the interop tests. agents.py has the commands. Each task is a
thread."""
import queue
import sys
import threading
import time
import urllib.parse
from pathlib import Path

PAUSE = 0.005  # seconds, between two tries
ENOUGH = 10  # seconds: a busy machine is no outage


class RedisPy:
    def __init__(self, hosts):
        import redis
        self.redis, self.not_held = redis.Redis(*hosts[0], socket_timeout=ENOUGH), redis.exceptions.LockError

    def take(self, name, ttl, waits):
        lock = self.redis.lock(name, timeout=ttl / 1000, sleep=PAUSE)
        return lock if lock.acquire(blocking=waits) else None

    def release(self, lock):
        try:
            lock.release()
        except self.not_held:
            return False
        return True

    def renew(self, lock, ttl):
        return lock.extend(ttl / 1000, replace_ttl=True)


class RedlockNg:
    def __init__(self, hosts):
        import redlock
        urls = [f"redis://{host}:{port}" for host, port in hosts]
        config = redlock.RedlockConfig(masters=urls, socket_timeout=ENOUGH, socket_connect_timeout=ENOUGH)
        self.redlock = redlock.Redlock(config, retry_count=0, retry_delay_min=PAUSE, retry_delay_max=3 * PAUSE)

    def take(self, name, ttl, waits):
        return self.redlock.acquire(name, ttl, blocking=waits)

    def release(self, lock):
        self.redlock.release(lock)
        return True  # it does not say

    def renew(self, lock, ttl):
        return self.redlock.extend(lock, ttl)


class Pottery:
    def __init__(self, hosts):
        import pottery
        import redis

        class Redlock(pottery.Redlock):
            _RETRY_DELAY = 2 * PAUSE

        self.masters = {redis.Redis(*host, socket_timeout=ENOUGH) for host in hosts}
        self.kind, self.not_held = Redlock, (pottery.ReleaseUnlockedLock, pottery.ExtendUnlockedLock)

    def take(self, name, ttl, waits):
        key = name.removeprefix("redlock:")  # pottery's own
        lock = self.kind(key=key, masters=self.masters, auto_release_time=ttl / 1000, num_extensions=1000)
        return lock if lock.acquire(blocking=waits) else None

    def release(self, lock):
        try:
            lock.release()
        except self.not_held:
            return False
        return True

    def renew(self, lock, ttl):
        try:
            lock.extend()
        except self.not_held:
            return False
        return True


class Agent:
    def __init__(self, library):
        self.library = {"redis-py": RedisPy, "redlock-ng": RedlockNg, "pottery": Pottery}[library]
        self.places, self.ttls, self.held, self.printing = {}, {}, {}, threading.Lock()

    def perform(self, task, verb, place, kind, name, *words):
        if verb == "connect":  # kind is the topology, name the hosts
            self.places[place] = self.library([tuple(host.split(":")) for host in name.split(",")])
            self.ttls[place] = int(words[0])
            return "ok"
        locks, key, name = self.places[place], (task, place, name), urllib.parse.unquote(name)
        ttl = self.ttls[place] if not words or words[0] == "-" else int(words[0])
        if verb in ("lock", "try"):
            lock = locks.take(name, ttl, verb == "lock")
            if not lock:
                return "busy"
            self.held[key] = lock
            return "ok"
        if verb == "unlock":
            return "ok" if locks.release(self.held.pop(key)) else "lost"
        if verb == "renew":
            return "ok" if locks.renew(self.held[key], ttl) else "lost"
        assert verb == "stress", "unknown command"
        return self.stress(locks, name, ttl, int(words[1]), int(words[2]) / 1000, Path(urllib.parse.unquote(words[3])))

    @staticmethod
    def stress(locks, name, ttl, rounds, seconds, counter):
        end, done = time.monotonic() + seconds, 0
        while done < rounds and time.monotonic() < end:
            lock = locks.take(name, ttl, True)
            before = int(counter.read_text())
            time.sleep(0.001)
            counter.write_text(str(before + 1))
            locks.release(lock)
            done += 1
        return f"ok {done}"

    def work(self, commands):
        for number, *words in iter(commands.get, None):
            try:
                reply = self.perform(*words)
            except Exception as failure:  # for the test's report
                reply = "error " + repr(failure).replace("\n", " ")
            with self.printing:
                print(number, reply, flush=True)

    def run(self):
        tasks = {}
        for line in sys.stdin:
            words = line.split()
            if words[1] not in tasks:
                tasks[words[1]] = queue.Queue()
                threading.Thread(target=self.work, args=(tasks[words[1]],), daemon=True).start()
            tasks[words[1]].put(words)


if __name__ == "__main__":
    Agent(sys.argv[1]).run()
