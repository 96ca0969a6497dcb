# SPDX-License-Identifier: BSL-1.0
"""Histories made by hand, for the tests of the checker."""
import json
import tempfile
from pathlib import Path

import check_history
from checker import history as histories

MS = 1_000_000
TTL = 400


class Story:
    """A history in the making. Times are milliseconds."""

    def __init__(self, campaign="within"):
        self.files = {}
        self.operations = 0
        self.add("driver", 0, "campaign", name=campaign, seed=1, longest_ttl=600, poll_cap=133)

    def add(self, file, t, ev, **fields):
        self.files.setdefault(file, []).append({"t": int(t * MS), "ev": ev, **fields})

    def fault(self, begin, end, kind, worker=-1):
        self.add("driver", begin, "fault", kind=kind, worker=worker)
        self.add("driver", end, "healed", kind=kind, worker=worker)

    def stolen(self, begin, end, cpu=0):
        self.add("machine", end, "stolen", cpu=cpu, time=int((end - begin) * MS))

    def start(self, worker):
        self.add(f"worker-{worker}-1", 0, "started", worker=worker, life=1)

    def ask(self, begin, worker=0, lock="lock-0", wait=-1, ttl=TTL, renewed=True, client=0, fenced=False, **terms):
        self.operations += 1
        self.add(f"worker-{worker}-1", begin, "acquire", op=self.operations, client=client, lock=lock, fenced=fenced, ttl=ttl,
                 renewed=renewed, wait=wait, **terms)
        return self.operations

    def get(self, op, t, token=None, worker=0, valid=390):
        fenced = {} if token is None else {"token": token}
        self.add(f"worker-{worker}-1", t, "acquired", op=op, seen=int(t * MS), valid=valid, **fenced)

    def renew(self, op, since, t, worker=0, error=None):
        self.add(f"worker-{worker}-1", since, "renew", hold=op)
        self.end_extension(t, "renew_failed" if error else "renewed", worker, error, hold=op)

    def reenter(self, op, since, t, worker=0, error=None, **fenced):
        self.operations += 1
        self.add(f"worker-{worker}-1", since, "reenter", op=self.operations, hold=op)
        self.end_extension(t, "reenter_failed" if error else "reentered", worker, error, op=self.operations, **fenced)

    def end_extension(self, t, ev, worker, error, **fields):
        if t is not None:
            self.add(f"worker-{worker}-1", t, ev, **fields, **({"error": error} if error else {}))

    def chatter(self, begin, end):
        """Worker 0 has answers all the time."""
        for t in range(begin, end, 10):
            self.hold(t, t + 4, lock="lock-of-0")

    def force(self, begin, end, worker=0, lock="lock-0"):
        self.operations += 1
        self.add(f"worker-{worker}-1", begin, "force", op=self.operations, lock=lock)
        self.add(f"worker-{worker}-1", end, "forced", op=self.operations, broken=True)

    def witness(self, op, t, valid, ttl, worker=0, asked=None):
        self.add(f"worker-{worker}-1", t, "witness", hold=op, seen=int((t if asked is None else asked) * MS), valid=valid, ttl=ttl)

    def hold(self, begin, end, token=None, worker=0, asked=None, error=None, **terms):
        """Asked for, granted at `begin`, given back at `end`."""
        op = self.ask(begin - 1 if asked is None else asked, worker, **{"fenced": token is not None, **terms})
        self.get(op, begin, token, worker)
        if end is not None:
            self.release(op, end, worker, error)
        return op

    def release(self, op, t, worker=0, error=None):
        self.add(f"worker-{worker}-1", t, "release", hold=op, left=0)
        outcome = {"error": error} if error else {}
        self.add(f"worker-{worker}-1", t + 1, "release_failed" if error else "released", hold=op, left=0, **outcome)

    def look(self, op, t, held, worker=0, valid=0):
        self.add(f"worker-{worker}-1", t, "look", hold=op, seen=int(t * MS), valid=valid, held=held)

    def told_lost(self, t, worker=0, lock="lock-0"):
        self.add(f"worker-{worker}-1", t, "told", what="lost", client=0, lock=lock, error="the lock was lost")

    def lose(self, op, t, worker=0, lock="lock-0"):
        self.told_lost(t, worker, lock)
        self.add(f"worker-{worker}-1", t, "lost", hold=op, error="the lock was lost")

    def write(self, op, t, token, number, worker=0, accepted=True):
        self.add(f"worker-{worker}-1", t, "write", hold=op, token=token, number=number, accepted=accepted)

    def history(self, ended=True, channels=0, connections=1):
        for name in list(self.files):
            if name.startswith("worker") and ended:
                self.add(name, 90_000, "ended")
        self.add("driver", 100_000, "end", channels=channels, connections=connections)
        with tempfile.TemporaryDirectory() as folder:
            for name, events in self.files.items():
                events.sort(key=lambda event: event["t"])
                text = "".join(json.dumps(event) + "\n" for event in events)
                (Path(folder) / f"{name}.jsonl").write_text(text, encoding="ascii")
            return histories.read(folder)

    def violations(self, **end):
        return check_history.violations(self.history(**end))
