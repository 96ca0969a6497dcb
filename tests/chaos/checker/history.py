# SPDX-License-Identifier: BSL-1.0
"""What stands in a folder of histories, one JSON object a line, as operations and holds. Times are nanoseconds of one clock."""
import json
from bisect import bisect_left, bisect_right
from collections import defaultdict
from pathlib import Path
from typing import NamedTuple

MS = 1_000_000
DRIFT_PER_CENT, LEAST_DRIFT = 1, 2 * MS
UNTOLD = 10 * MS  # a shorter standstill of a process is not in its history
UNANSWERED = 3000 * MS  # for so long a command without an answer may still be on its way


def drift(ttl):
    """So much earlier than Redis the library promises to end a lease."""
    return ttl * DRIFT_PER_CENT // 100 + LEAST_DRIFT


class Fault(NamedTuple):
    begin: int
    end: int
    kind: str
    worker: int  # -1: all


class Intervals:
    """The time that lies in at least one of several intervals."""

    def __init__(self, intervals=()):
        self.begins, self.ends, self.before = [], [], []  # apart, in order; how much lies in those before each
        total = 0
        for begin, end in sorted(intervals):
            if self.ends and begin <= self.ends[-1]:
                total += max(0, end - self.ends[-1])
                self.ends[-1] = max(self.ends[-1], end)
            else:
                self.begins.append(begin)
                self.ends.append(end)
                self.before.append(total)
                total += end - begin

    def __iter__(self):
        return zip(self.begins, self.ends)

    def until(self, t):
        last = bisect_right(self.begins, t) - 1
        return 0 if last < 0 else self.before[last] + min(t, self.ends[last]) - self.begins[last]

    def within(self, begin, end):
        """How much of the time between two instants lies in them."""
        return max(0, self.until(end) - self.until(begin))

    def after(self, begin, allowed):
        """The instant at which `allowed` nanoseconds have passed since `begin` outside of them."""
        outside = begin - self.until(begin) + allowed
        passed = bisect_left(range(len(self.begins)), outside, key=lambda i: self.begins[i] - self.before[i])
        return outside + (0 if not passed else self.before[passed - 1] + self.ends[passed - 1] - self.begins[passed - 1])


class Process:
    """One life of one worker."""

    def __init__(self, name):
        self.name = name
        self.worker = None
        self.killed_at = None
        self.ended = False
        self.status = None  # with which it ended; -1: it did not
        self.stalls = []  # (begin, end): it stood still by its own word, in the order of time
        self.stopped = Intervals()  # the same, or a processor was away
        self.told = {}  # (client, lock) -> when the observer heard of a loss

    def stalled(self, begin, end):
        """For how long it stood still between two instants."""
        return self.stopped.within(begin, end)

    def grace(self, begin, allowed):
        """The instant at which `allowed` nanoseconds have passed since `begin` in which it ran."""
        return self.stopped.after(begin, allowed)


class Operation:
    """A lock(), try_lock(), try_lock_for() or with_lock() of somebody who held nothing."""

    __slots__ = ("process", "line", "client", "lock", "fenced", "ttl", "renewed", "max_hold", "wait", "as_body", "begin",
                 "end", "outcome", "error", "cancelled_at")

    def __init__(self, process, line, event):
        self.process, self.line = process, line
        self.client, self.lock, self.begin = event["client"], event["lock"], event["t"]
        self.fenced, self.ttl, self.renewed = event["fenced"], event["ttl"] * MS, event["renewed"]
        self.max_hold = event["max_hold"] * MS if "max_hold" in event else None
        self.wait = None if event["wait"] < 0 else event["wait"] * MS
        self.as_body = "as_body" in event  # granted to a body, which does not begin if the lock is lost before
        self.end = self.outcome = self.error = self.cancelled_at = None

    def finish(self, event):
        self.end, self.outcome, self.error = event["t"], event["ev"], event.get("error")

    def __str__(self):
        return f"{self.process.name}:{self.line}"


class Extension:
    """A re-entry or a renewal of a hold, until it was answered."""

    __slots__ = ("what", "since", "line", "until", "error")

    def __init__(self, what, since, line):
        self.what, self.since, self.line = what, since, line
        self.until = self.error = None


class Hold:
    """What an operation that was granted led to."""

    __slots__ = ("of", "line", "begin", "granted_until", "claims_until", "first_over", "token", "ttl", "renewed", "looks",
                 "lost_at", "lost_line", "reentries", "counts", "renewals", "releases", "given_up", "free_at",
                 "extensions", "again", "updates", "writes", "valid", "fed_at", "witnessed", "afterwards")

    def __init__(self, of, line, event):
        self.of, self.line, self.begin = of, line, event["t"]
        self.granted_until = event["seen"] + event["valid"] * MS  # rounded down: not later than the library says
        self.valid = [(event["valid"] * MS, line)]  # each time that it was asked
        self.witnessed = []  # (claimed until, the key lives until, when, line)
        self.fed_at = event["t"]  # the last time; max_hold counts from here
        self.afterwards = None  # the key's TTL after the last unlock, of a lock that nobody else asks for
        self.claims_until = self.granted_until
        self.first_over = event["t"] + (event["valid"] + 1) * MS  # not earlier; unless it is extended
        self.token, self.ttl, self.renewed = event.get("token"), of.ttl, of.renewed
        self.looks, self.reentries, self.counts, self.renewals, self.releases = [], [], [], [], []
        self.extensions = []  # every re-entry and renewal that was asked for
        self.updates, self.writes = [], []
        self.lost_at = self.lost_line = None
        self.given_up = None  # when its owner began to let go of its last lease, or dropped all
        self.free_at = None  # when Redis confirmed that
        self.again = None

    @property
    def process(self):
        return self.of.process

    @property
    def lock(self):
        return self.of.lock

    @property
    def end(self):
        """Until when it claimed to be exclusive."""
        ends = (self.claims_until, self.given_up, self.lost_at, self.process.killed_at)
        return min(end for end in ends if end is not None)

    @property
    def sent(self):
        """What happened to the lock before did not happen to this hold. Less than a millisecond before Redis was asked for it."""
        return max(self.of.begin, self.granted_until - self.ttl + drift(self.ttl))

    @property
    def over(self):
        """The instant from which it cannot be held any more; None if it is renewed, which may go on."""
        if self.renewed:
            return None if self.of.max_hold is None else self.fed_at + self.of.max_hold + self.ttl
        end = self.first_over
        for answered in sorted([t for _, t, _ in self.renewals] + [t for _, t, _, _ in self.reentries]):
            if answered > self.process.grace(end, UNTOLD):
                break  # what was over before it was answered is not extended
            end = max(end, answered + self.ttl)
        return end

    def ask(self, what, t, line):
        self.extensions.append(Extension(what, t, line))
        return self.extensions[-1]

    def look(self, event, line):
        self.looks.append((event["seen"], event["t"], event["held"], line))
        self.valid.append((event["valid"] * MS, line))
        if event["held"]:
            self.claims_until = max(self.claims_until, event["seen"] + event["valid"] * MS)

    def witness(self, event, line):
        """PTTL counts whole milliseconds, and was answered before it was written down: the key lives no longer than this says."""
        lives_until = event["t"] + (max(event["ttl"], 0) + 1) * MS
        self.valid.append((event["valid"] * MS, line))
        self.witnessed.append((event["seen"] + event["valid"] * MS, lives_until, event["t"], line))

    def __str__(self):
        return f"{self.process.name}:{self.line}"


class History:
    def __init__(self):
        self.campaign, self.end = {}, None
        self.processes, self.operations, self.holds = [], [], []
        self.faults = []
        self.stolen = Intervals()  # a processor was taken away from the machine
        self.forced = []  # (begin, end, lock): force_unlock() may have struck in between
        self.foreign_releases = []  # (lock, refused, line)
        self.unreleased = []  # (key, ttl), when the last worker had ended
        self.residue = []  # (key, ttl), when each had time to end by itself
        self.events = 0

    @property
    def breaks_locks(self):
        return self.campaign.get("name") == "outside"


def lines_of(path):
    """Numbered events. A last line without its end is what a killed process had begun to write."""
    with open(path, encoding="ascii") as file:
        for number, text in enumerate(file, 1):
            if text.endswith("\n"):
                yield number, json.loads(text)


def read_worker(history, path):
    process = Process(path.stem)
    history.processes.append(process)
    operations, holds, reentries, renewals, forced = {}, {}, {}, {}, {}
    for line, event in lines_of(path):
        history.events += 1
        kind, t = event["ev"], event["t"]
        if kind == "started":
            process.worker = event["worker"]
        elif kind == "acquire":
            operations[event["op"]] = operation = Operation(process, line, event)
            history.operations.append(operation)
        elif kind in ("busy", "failed", "cancelled"):
            operations.pop(event["op"]).finish(event)
        elif kind == "acquired":
            operation = operations.pop(event["op"])
            operation.finish(event)
            holds[event["op"]] = hold = Hold(operation, line, event)
            history.holds.append(hold)
        elif kind == "cancel":
            operations[event["op"]].cancelled_at = t
        elif kind == "look":
            holds[event["hold"]].look(event, line)
        elif kind == "witness":
            holds[event["hold"]].witness(event, line)
        elif kind == "fed":
            holds[event["hold"]].fed_at = t
        elif kind == "afterwards":
            holds[event["hold"]].afterwards = (event["ttl"], line)
        elif kind == "lost":
            hold = holds[event["hold"]]
            hold.lost_at, hold.lost_line = t, line
        elif kind == "reenter":
            hold = holds[event["hold"]]
            reentries[event["op"]] = hold, hold.ask("re-entry", t, line)
        elif kind == "reentered":
            hold, asked = reentries.pop(event["op"])
            asked.until = t
            hold.reentries.append((asked.since, t, event.get("token"), line))
        elif kind == "reenter_failed":
            _, asked = reentries.pop(event["op"])
            asked.until, asked.error = t, event["error"]
        elif kind == "count":
            holds[event["hold"]].counts.append((event["since"], t, event["want"], event["got"], line))
        elif kind == "renew":
            renewals[event["hold"]] = holds[event["hold"]].ask("renewal", t, line)
        elif kind == "renewed":
            asked = renewals.pop(event["hold"])
            asked.until = t
            holds[event["hold"]].renewals.append((asked.since, t, line))
        elif kind == "renew_failed":
            asked = renewals.pop(event["hold"])
            asked.until, asked.error = t, event["error"]
        elif kind == "update":
            holds[event["hold"]].updates.append((event["wrote"], line))
        elif kind == "write":
            holds[event["hold"]].writes.append((event["number"], event["token"], event["accepted"], line))
        elif kind in ("release", "drop"):
            hold = holds[event["hold"]]
            if event.get("left", 0) == 0:
                hold.given_up = t
            if kind == "release":
                hold.releases.append([t, None, event["left"], None, line])
        elif kind in ("released", "release_failed"):
            hold = holds[event["hold"]]
            hold.releases[-1][1], hold.releases[-1][3] = t, event.get("error")
            if kind == "released" and event["left"] == 0:
                hold.free_at = t
        elif kind == "unlocked_again":
            holds[event["hold"]].again = (event["error"], line)
        elif kind == "force":
            forced[event["op"]] = (t, event["lock"])
        elif kind == "forced":
            since, lock = forced.pop(event["op"])
            history.forced.append((since, t, lock))
        elif kind == "force_failed":
            since, lock = forced.pop(event["op"])
            history.forced.append((since, t + UNANSWERED, lock))
        elif kind == "stall":
            process.stalls.append((event["since"], t))
        elif kind == "told":
            if event["what"] == "lost":
                process.told.setdefault((event["client"], event["lock"]), []).append(t)
        elif kind == "ended":
            process.ended = True
    history.forced += [(since, since + UNANSWERED, lock) for since, lock in forced.values()]


def read_driver(history, path):
    begun, killed, statuses = defaultdict(list), {}, {}
    for line, event in lines_of(path):
        kind, t = event["ev"], event["t"]
        if kind == "campaign":
            history.campaign = event
        elif kind == "fault":
            begun[event["kind"], event["worker"]].append(t)
        elif kind == "healed":
            since = begun[event["kind"], event["worker"]].pop()
            history.faults.append(Fault(since, t, event["kind"], event["worker"]))
        elif kind == "killed":
            killed[name_of(event)] = t
        elif kind == "ended":
            statuses[name_of(event)] = event["status"]
        elif kind == "foreign_release":
            history.foreign_releases.append((event["lock"], event["refused"], line))
        elif kind == "unreleased":
            history.unreleased.append((event["key"], event["ttl"]))
        elif kind == "residue":
            history.residue.append((event["key"], event["ttl"]))
        elif kind == "end":
            history.end = event
    for process in history.processes:
        process.killed_at = killed.get(process.name)
        process.status = statuses.get(process.name)


def read_machine(history, path):
    """A processor that came back had been away for as long. What it had to run, and the timers that were set on it, waited."""
    if path.exists():
        history.stolen = Intervals((event["t"] - event["time"], event["t"]) for _, event in lines_of(path))
    for process in history.processes:
        process.stopped = Intervals(process.stalls + list(history.stolen))


def name_of(event):
    return f"worker-{event['worker']}-{event['life']}"


def read(folder):
    history = History()
    for path in sorted(Path(folder).glob("worker-*.jsonl")):
        read_worker(history, path)
    read_driver(history, Path(folder) / "driver.jsonl")
    read_machine(history, Path(folder) / "machine.jsonl")
    history.holds.sort(key=lambda hold: hold.begin)
    return history
