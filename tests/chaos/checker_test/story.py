# SPDX-License-Identifier: BSL-1.0
"""Histories made by hand, and the case of a test that has the checker judge them.

Each rule has a file of tests: for each sentence of the rule a history that keeps it, and the same history with one thing changed
that breaks it."""
import json
import tempfile
import unittest
from pathlib import Path

import check_history
from checker import history as histories

MS = 1_000_000
TTL = 400
LOST = "the lock was lost"


class Story:
    """A history in the making. Times are milliseconds."""

    def __init__(self, campaign="within", servers=1, turns="one"):
        self.files = {}
        self.operations = 0
        self.locks = {}
        self.add("driver", 0, "campaign", name=campaign, servers=servers, seed=1, turns=turns, longest_ttl=600, poll_cap=133)

    @staticmethod
    def file_of(worker):
        """A worker has a number, a peer its name."""
        return worker if isinstance(worker, str) else f"worker-{worker}-1"

    def add(self, file, t, ev, **fields):
        self.files.setdefault(file, []).append({"t": int(t * MS), "ev": ev, **fields})

    def fault(self, begin, end, kind, worker=-1, server=0):
        self.add("driver", begin, "fault", kind=kind, worker=worker, server=server)
        self.add("driver", end, "healed", kind=kind, worker=worker, server=server)

    def failover(self, since, until, told, slots=None):
        """What a primary answered from `since` until `until` may be forgotten; all know of the next one at `told`."""
        where = {} if slots is None else {"slots": slots}
        self.add("driver", told, "may_forget", since=int(since * MS), until=int(until * MS), told=int(told * MS), **where)

    def stolen(self, begin, end, cpu=0):
        self.add("machine", end, "stolen", cpu=cpu, time=int((end - begin) * MS))

    def start(self, worker, t=0):
        self.add(self.file_of(worker), t, "started", worker=worker, life=1)

    def ask(self, begin, worker=0, lock="lock-0", wait=-1, ttl=TTL, renewed=True, client=0, kind="plain", **terms):
        self.operations += 1
        self.locks[self.operations] = lock
        self.add(self.file_of(worker), begin, "acquire", op=self.operations, client=client, lock=lock, kind=kind, ttl=ttl,
                 renewed=renewed, wait=wait, **terms)
        return self.operations

    def ask_all(self, begin, locks, worker=0, **terms):
        """A call of a multi_lock: its operations."""
        first = self.operations + 1
        return [self.ask(begin, worker, lock=lock, whole=first, **terms) for lock in locks]

    def hold_all(self, begin, end, locks, worker=0, asked=None, **terms):
        ops = self.ask_all(begin - 1 if asked is None else asked, locks, worker, **terms)
        for op in ops:
            self.get(op, begin, worker=worker)
            if end is not None:
                self.release(op, end, worker)
        return ops

    def look_all(self, ops, t, held, whole_held, worker=0, valid=0, whole_valid=None):
        """`held`: of each."""
        for op, each_held in zip(ops, held):
            self.look(op, t, each_held, worker, valid if each_held else 0)
        whole_valid = (valid if whole_held else 0) if whole_valid is None else whole_valid
        self.add(self.file_of(worker), t, "look_whole", whole=ops[0], seen=int(t * MS), valid=whole_valid, held=whole_held)

    def lose_whole(self, ops, t, worker=0):
        self.add(self.file_of(worker), t, "lost_whole", whole=ops[0], error=LOST)

    def end_all(self, ops, t, outcome, worker=0, **fields):
        for op in ops:
            self.add(self.file_of(worker), t, outcome, op=op, **fields)

    def get(self, op, t, token=None, worker=0, valid=390, lock=None, hold_id=""):
        fenced = {} if token is None else {"token": token}
        where = {"lock": lock or self.locks[op], "id": hold_id}
        self.add(self.file_of(worker), t, "acquired", op=op, **where, seen=int(t * MS), valid=valid, **fenced)

    def renew(self, op, since, t, worker=0, error=None):
        self.add(self.file_of(worker), since, "renew", hold=op)
        self.end_extension(t, "renew_failed" if error else "renewed", worker, error, hold=op)

    def reenter(self, op, since, t, worker=0, error=None, **fenced):
        self.operations += 1
        self.add(self.file_of(worker), since, "reenter", op=self.operations, hold=op)
        self.end_extension(t, "reenter_failed" if error else "reentered", worker, error, op=self.operations, **fenced)

    def end_extension(self, t, ev, worker, error, **fields):
        if t is not None:
            self.add(self.file_of(worker), t, ev, **fields, **({"error": error} if error else {}))

    def chatter(self, begin, end, worker=0):
        """A worker has answers all the time."""
        for t in range(begin, end, 10):
            self.hold(t, t + 4, worker=worker, lock=f"lock-of-{worker}")

    def force(self, begin, end, worker=0, lock="lock-0"):
        self.operations += 1
        self.add(self.file_of(worker), begin, "force", op=self.operations, lock=lock)
        self.add(self.file_of(worker), end, "forced", op=self.operations, broken=True)

    def witness(self, op, t, valid, ttl, worker=0, asked=None):
        self.add(self.file_of(worker), t, "witness", hold=op, seen=int((t if asked is None else asked) * MS), valid=valid, ttl=ttl)

    def hold(self, begin, end, token=None, worker=0, asked=None, error=None, hold_id="", **terms):
        """Asked for, granted at `begin`, given back at `end`."""
        op = self.ask(begin - 1 if asked is None else asked, worker, **{"kind": "plain" if token is None else "fenced", **terms})
        self.get(op, begin, token, worker, hold_id=hold_id)
        if end is not None:
            self.release(op, end, worker, error)
        return op

    def release(self, op, t, worker=0, error=None):
        self.add(self.file_of(worker), t, "release", hold=op, left=0)
        outcome = {"error": error} if error else {}
        self.add(self.file_of(worker), t + 1, "release_failed" if error else "released", hold=op, left=0, **outcome)

    def look(self, op, t, held, worker=0, valid=0):
        self.add(self.file_of(worker), t, "look", hold=op, seen=int(t * MS), valid=valid, held=held)

    def told_lost(self, t, worker=0, lock="lock-0", hold_id=""):
        where = {"client": 0, "lock": lock, "id": hold_id}
        self.add(self.file_of(worker), t, "told", what="lost", **where, error=LOST)

    def lose(self, op, t, worker=0, lock="lock-0", hold_id=""):
        self.told_lost(t, worker, lock, hold_id)
        self.add(self.file_of(worker), t, "lost", hold=op, error=LOST)

    def write(self, op, t, token, number, worker=0, accepted=True):
        self.add(self.file_of(worker), t, "write", hold=op, token=token, number=number, accepted=accepted)

    def history(self, ended=True, channels=0, connections=0):
        for name in list(self.files):
            if name.startswith(("worker", "peer")) and ended:
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


class RuleTest(unittest.TestCase):
    def keeps(self, story, **end):
        self.assertEqual(story.violations(**end), [])

    def breaks(self, rule, story, words="", **end):
        found = story.violations(**end)
        self.assertTrue(any(r == rule and words in text for r, text in found), found)
