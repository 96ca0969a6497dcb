# SPDX-License-Identifier: BSL-1.0
"""What stands in a folder of histories, one JSON object a line, as operations and holds. Times are nanoseconds of one clock."""
import json
from binascii import crc_hqx
from bisect import bisect_left, bisect_right
from collections import defaultdict
from pathlib import Path
from typing import NamedTuple

MS = 1_000_000
DRIFT_PER_CENT, LEAST_DRIFT = 1, 2 * MS
UNTOLD = 10 * MS  # a shorter standstill of a process is not in its history
UNORDERED = "a failover that nobody ordered"
UNANSWERED = 3000 * MS  # for so long a command without an answer may still be on its way
SIDES = ("reader", "writer")  # of a shared_mutex


def slot_of(lock):
    """In a cluster. None of the names has braces."""
    return crc_hqx(lock.encode(), 0) % 16384


def drift(ttl):
    """So much earlier than Redis the library promises to end a lease."""
    return ttl * DRIFT_PER_CENT // 100 + LEAST_DRIFT


class Fault(NamedTuple):
    begin: int
    end: int
    kind: str
    worker: int  # -1: all
    server: int  # -1: all


class Failover(NamedTuple):
    """What a primary had answered from `since` on may not have reached the one that replaced it, at `until` it answered no more, and
    at `told` every client that follows could know of the other one."""
    since: int
    until: int
    told: int
    slots: list  # (from, to), of the locks that it had; None: of all

    def concerns(self, lock):
        slot = slot_of(lock)
        return self.slots is None or any(begin <= slot <= end for begin, end in self.slots)


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

    def overlap(self, begin, end):
        """Those that have a part of that time."""
        first, last = bisect_right(self.ends, begin), bisect_left(self.begins, end)
        return list(zip(self.begins[first:last], self.ends[first:last]))

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
    """One life of one worker, or a peer: a process that writes Redisson's locks. What the library promises is not asked of a peer; its holds
    count as all others."""

    def __init__(self, name):
        self.name = name
        self.foreign = name.startswith("peer-")
        self.worker = None
        self.started_at = None
        self.killed_at = None
        self.ended = False
        self.status = None  # with which it ended; -1: it did not
        self.stalls = []  # (begin, end): it stood still by its own word, in the order of time
        self.stopped = Intervals()  # the same, or a processor was away
        self.told = {}  # (client, lock) -> when the observer heard of a loss, and of which hold
        self.turns = {}  # by the owner field: the first hold of each
        self.passed = set()  # ids of holds that the next waiter of the client had without asking Redis

    def stalled(self, begin, end):
        """For how long it stood still between two instants."""
        return self.stopped.within(begin, end)

    def grace(self, begin, allowed):
        """The instant at which `allowed` nanoseconds have passed since `begin` in which it ran."""
        return self.stopped.after(begin, allowed)


class Operation:
    """A lock(), try_lock(), try_lock_for() or with_lock() of somebody who held nothing: of a lock, of any of several, or, as one of
    the operations of a whole, of a multi_lock."""

    __slots__ = ("process", "line", "client", "lock", "locks", "kind", "whole", "ttl", "renewed", "max_hold", "wait", "as_body", "replicas", "permits", "capacity",
                 "begin", "end", "outcome", "error", "cancelled_at")

    def __init__(self, process, line, event, whole=None):
        self.process, self.line, self.whole = process, line, whole
        self.client, self.lock, self.begin = event["client"], event["lock"], event["t"]
        self.locks = self.lock.split(" ")  # several: any of them
        self.kind, self.ttl, self.renewed = event["kind"], event["ttl"] * MS, event["renewed"]
        self.max_hold = event["max_hold"] * MS if "max_hold" in event else None
        self.wait = None if event["wait"] < 0 else event["wait"] * MS
        self.replicas = event.get("replicas", 0)  # so many must have the grant: all that can be elected, or 0
        self.permits, self.capacity = event.get("permits", 1), event.get("of", 1)  # of a semaphore
        self.as_body = "as_body" in event  # granted to a body, which does not begin if the lock is lost before
        self.end = self.outcome = self.error = self.cancelled_at = None

    @property
    def fenced(self):
        return self.kind == "fenced"

    @property
    def fair(self):
        """All that wait for the lock stand in one line."""
        return self.kind == "fair"

    @property
    def reads(self):
        """Readers hold a lock together."""
        return self.kind == "reader"

    @property
    def of_side(self):
        return self.kind in SIDES

    @property
    def key(self):
        """Of its client."""
        return self.process.name, self.client

    def finish(self, event):
        self.end, self.outcome, self.error = event["t"], event["ev"], event.get("error")

    def __str__(self):
        return f"{self.process.name}:{self.line}"


class Kept:
    """A hold of a lock that nobody else asks for."""

    __slots__ = ("process", "line", "lock", "ttl", "begin", "given_up", "lost_at")

    def __init__(self, process, line, event):
        self.process, self.line, self.begin = process, line, event["t"]
        self.lock, self.ttl = event["lock"], event["ttl"] * MS
        self.given_up = self.lost_at = None

    def __str__(self):
        return f"{self.process.name}:{self.line}"


class LatchCall:
    """A call of a latch. `value`: of a set, whether it has set; of a wait, whether it was let in; of a count, the count. A count-down that was
    confirmed has one."""

    __slots__ = ("process", "line", "latch", "verb", "number", "begin", "end", "value")

    def __init__(self, process, line, event):
        self.process, self.line, self.begin = process, line, event["t"]
        self.latch, self.verb, self.number = event["latch"], event["verb"], event["number"]
        self.end = self.value = None

    def finish(self, event):
        self.end, self.value = event["t"], event.get("value")

    def __str__(self):
        return f"{self.process.name}:{self.line}"


class Campaign:
    """A call to lead the election, and the lead that came of it. `term`: None if it did not lead, or did not live to know it."""

    __slots__ = ("process", "line", "value", "begin", "term", "elected_at", "proclaimed", "proclaim_begun", "proclaim_confirmed",
                 "resign_begun", "resign_confirmed")

    def __init__(self, process, line, event):
        self.process, self.line, self.begin, self.value = process, line, event["t"], event["value"]
        self.term = self.elected_at = self.proclaimed = self.proclaim_begun = self.proclaim_confirmed = None
        self.resign_begun = self.resign_confirmed = None

    def add(self, event):
        kind, t = event["ev"], event["t"]
        if kind == "elected":
            self.term, self.elected_at = event["term"], t
        elif kind == "proclaim":
            self.proclaimed, self.proclaim_begun = event["value"], t
        elif kind == "proclaimed":
            self.proclaim_confirmed = t
        elif kind == "resign":
            self.resign_begun = t
        elif kind == "resigned":
            self.resign_confirmed = t

    def __str__(self):
        return f"{self.process.name}:{self.line}"


class Sight:
    """A call of an observer. `term`: 0 if nobody led; `end`: None if the call was given no leader and no end of one."""

    __slots__ = ("process", "line", "begin", "end", "term", "value")

    def __init__(self, process, line, event):
        self.process, self.line, self.begin = process, line, event["t"]
        self.end, self.term, self.value = None, 0, None

    def finish(self, event):
        self.end, self.term, self.value = event["t"], event["term"], event.get("value")

    def __str__(self):
        return f"{self.process.name}:{self.line}"


class Whole:
    """A call of a multi_lock: an operation for each of its locks, and a hold for each that was granted."""

    __slots__ = ("operations", "holds", "looks", "lost_at", "lost_line", "by_slot")

    def __init__(self):
        self.operations, self.holds = [], []
        self.by_slot = False  # those of several slots are not taken by one script
        self.looks = []  # (since when each hold was looked at, seen, t, valid, held, for how long each was valid, line)
        self.lost_at = self.lost_line = None

    @property
    def scripts(self):
        """By so many they are taken: one for those of a kind, and of a slot."""
        return len({(operation.kind, self.by_slot and slot_of(operation.lock)) for operation in self.operations})

    def look(self, event, line):
        each = [hold.valid[-1][0] for hold in self.holds]
        self.looks.append((self.holds[0].looks[-1][0], event["seen"], event["t"], event["valid"] * MS, event["held"], each, line))

    def __str__(self):
        return str(self.operations[0])


class Extension:
    """A re-entry or a renewal of a hold, until it was answered."""

    __slots__ = ("what", "since", "line", "until", "error")

    def __init__(self, what, since, line):
        self.what, self.since, self.line = what, since, line
        self.until = self.error = None


class Hold:
    """What an operation that was granted led to."""

    __slots__ = ("of", "lock", "id", "line", "begin", "granted_until", "claims_until", "first_over", "token", "ttl", "renewed", "claims", "looks",
                 "lost_at", "lost_line", "reentries", "counts", "renewals", "releases", "given_up", "free_at",
                 "extensions", "perhaps", "again", "turn_of", "updates", "compared", "writes", "valid", "fed_at", "witnessed", "afterwards")

    def __init__(self, of, line, event):
        self.of, self.line, self.begin = of, line, event["t"]
        self.lock, self.id = event["lock"], event["id"]
        self.granted_until = event["seen"] + event["valid"] * MS  # rounded down: not later than the library says
        self.valid = [(event["valid"] * MS, line)]  # each time that it was asked
        self.witnessed = []  # (claimed until, the key lives until, when, line)
        self.fed_at = event["t"]  # the last time; max_hold counts from here
        self.afterwards = None  # the key's TTL after the last unlock, of a lock that nobody else asks for
        self.claims_until = self.granted_until
        self.first_over = event["t"] + (event["valid"] + 1) * MS  # not earlier; unless it is extended
        self.token, self.ttl, self.renewed = event.get("token"), of.ttl, of.renewed
        self.claims = []  # (when it looked, until when it was sure)
        self.looks, self.reentries, self.counts, self.renewals, self.releases = [], [], [], [], []
        self.extensions = []  # every re-entry and renewal that was asked for
        self.perhaps = []  # when a renewal failed that was one of several: this one may have been confirmed
        self.updates, self.writes = [], []
        self.compared = []  # of a reader: the counter at both ends of its section, and when it looked last
        self.lost_at = self.lost_line = None
        self.given_up = None  # when its owner began to let go of its last lease, or dropped all
        self.free_at = None  # when Redis confirmed that
        self.again = None
        first = of.process.turns.setdefault(self.id.split("/")[0], self)
        self.turn_of = None if first is self else first  # the hold that Redis granted, from which this one was passed on

    @property
    def process(self):
        return self.of.process

    @property
    def whole(self):
        """With what it is held and lost as one."""
        return self.of.whole.holds if self.of.whole else [self]

    @property
    def passed_on(self):
        return self.id in self.process.passed

    def claimed_before(self, t):
        """Until when it was granted by what had been answered before; 0: nothing had."""
        if self.begin >= t:
            return 0
        return max([self.granted_until] + [until for seen, until in self.claims if seen < t])

    @property
    def told(self):
        """When the observer heard that it was lost: it has no other hold's id, also where one was forced and the next is of the same client.

        Where the process stood still for longer than it was granted, that is before its caller heard of the grant."""
        heard = self.process.told.get((self.of.client, self.lock), [])
        return [t for t, which in heard if which == self.id and self.of.begin <= t]

    @property
    def told_at(self):
        """When the observer heard of its loss: at once, and whoever asks is told so from then on. The signal may be on its way for longer."""
        if self.lost_at is None:
            return None
        return next((t for t in self.told if t <= self.lost_at), None)

    @property
    def end(self):
        """Until when it claimed to be exclusive."""
        ends = (self.claims_until, self.given_up, self.lost_at, self.told_at, self.process.killed_at)
        return min(end for end in ends if end is not None)

    @property
    def sent(self):
        """What happened to the lock before did not happen to this hold. Less than a millisecond before Redis was asked for it; what was
        passed on may have been broken before anybody wanted it, and so may what a reader shares."""
        if self.turn_of:
            return self.turn_of.sent
        asked = self.granted_until - self.ttl + drift(self.ttl)
        return asked if "/" in self.id or self.of.reads else max(self.of.begin, asked)

    @property
    def over(self):
        """The instant from which it cannot be held any more; None if it is renewed, which may go on."""
        if self.renewed:
            return None if self.of.max_hold is None else self.fed_at + self.of.max_hold + self.ttl
        end = self.first_over
        for answered in sorted([t for _, t, _ in self.renewals] + [t for _, t, _, _ in self.reentries] + self.perhaps):
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
            self.claims.append((event["seen"], event["seen"] + event["valid"] * MS))
            self.claims_until = max(self.claims_until, self.claims[-1][1])

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
        self.wholes = []
        self.kept, self.changes = [], []  # (lock, since when another program changed it, until when, line)
        self.latch_calls = []
        self.campaigns, self.sights = [], []  # of the election
        self.faults = []
        self.stolen = Intervals()  # a processor was taken away from the machine
        self.forced = []  # (begin, end, lock): force_unlock() may have struck in between
        self.foreign_releases = []  # (lock, refused, line)
        self.unreleased = []  # (key, ttl, clients that have a place there), when the last worker had ended
        self.wrong_sums, self.looks_at_permits = [], 0  # (permits left, permits out, line); how often somebody looked
        self.residue = []  # the same, when each had time to end by itself
        self.failovers = []  # those that may forget something
        self.slots_moved = 0
        self.votes_withheld = 0  # times that a client heard of a server that was restarted, emptied or new
        self.events = 0

    @property
    def servers(self):
        """So many vote on each lock."""
        return self.campaign["servers"]

    @property
    def two_are_possible(self):
        """A lock that was broken may be had by two, until the first one finds out."""
        return self.campaign["name"] == "outside"

    @property
    def longest_ttl(self):
        return self.campaign["longest_ttl"] * MS


def lines_of(path):
    """Numbered events. A last line without its end is what a killed process had begun to write."""
    with open(path, encoding="ascii") as file:
        for number, text in enumerate(file, 1):
            if text.endswith("\n"):
                yield number, json.loads(text)


def read_worker(history, path):
    process = Process(path.stem)
    history.processes.append(process)
    operations, holds, reentries, renewals, forced, kept, latch_calls = {}, {}, {}, {}, {}, {}, {}
    campaigns, sights = {}, {}
    wholes = defaultdict(Whole)
    for line, event in lines_of(path):
        history.events += 1
        kind, t = event["ev"], event["t"]
        if kind == "started":
            process.worker, process.started_at = event["worker"], t
        elif kind == "acquire":
            whole = wholes[event["whole"]] if "whole" in event else None
            operations[event["op"]] = operation = Operation(process, line, event, whole)
            history.operations.append(operation)
            if whole:
                whole.operations.append(operation)
        elif kind in ("busy", "failed", "cancelled"):
            operations.pop(event["op"]).finish(event)
        elif kind == "acquired":
            operation = operations.pop(event["op"])
            operation.finish(event)
            holds[event["op"]] = hold = Hold(operation, line, event)
            history.holds.append(hold)
            if operation.whole:
                operation.whole.holds.append(hold)
        elif kind == "kept":
            kept[event["op"]] = Kept(process, line, event)
        elif kind == "kept_lost":
            kept[event["op"]].lost_at = t
        elif kind == "kept_no_longer":
            kept[event["op"]].given_up = t
        elif kind == "latch":
            latch_calls[event["op"]] = call = LatchCall(process, line, event)
            history.latch_calls.append(call)
        elif kind == "latch_answer":
            latch_calls.pop(event["op"]).finish(event)
        elif kind == "campaign":
            campaigns[event["op"]] = Campaign(process, line, event)
        elif kind in ("elected", "proclaim", "proclaimed", "resign", "resigned"):
            campaigns[event["op"]].add(event)
        elif kind == "observe":
            sights[event["op"]] = Sight(process, line, event)
        elif kind == "observed":
            sights[event["op"]].finish(event)
        elif kind == "cancel":
            operations[event["op"]].cancelled_at = t
        elif kind == "look":
            holds[event["hold"]].look(event, line)
        elif kind == "look_whole":
            wholes[event["whole"]].look(event, line)
        elif kind == "lost_whole":
            wholes[event["whole"]].lost_at, wholes[event["whole"]].lost_line = t, line
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
            if holds[event["hold"]].of.whole:
                holds[event["hold"]].perhaps.append(t)
        elif kind == "update":
            holds[event["hold"]].updates.append((event["wrote"], t))
        elif kind == "read":
            holds[event["hold"]].compared.append((event["first"], event["last"], t, line))
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
            history.votes_withheld += event["what"] == "vote_withheld"
            if event["what"] == "lost":
                process.told.setdefault((event["client"], event["lock"]), []).append((t, event["id"]))
            elif event["what"] == "passed":
                process.passed.add(event["id"])
        elif kind == "ended":
            process.ended = True
    share_ttls([hold for hold in holds.values() if hold.of.reads])
    history.wholes += wholes.values()
    history.kept += kept.values()
    history.campaigns += campaigns.values()
    history.sights += sights.values()
    history.forced += [(since, since + UNANSWERED, lock) for since, lock in forced.values()]


def share_ttls(readers):
    """Readers that share a hold have one id. Its TTL is the longest of theirs."""
    longest = defaultdict(int)
    for hold in readers:
        longest[hold.id] = max(longest[hold.id], hold.ttl)
    for hold in readers:
        hold.ttl = longest[hold.id]


def read_driver(history, path):
    begun, killed, statuses = defaultdict(list), {}, {}
    for line, event in lines_of(path):
        kind, t = event["ev"], event["t"]
        if kind == "campaign":
            history.campaign = event
        elif kind == "fault":
            begun[event["kind"], event["worker"], event["server"]].append(t)
        elif kind == "healed":
            whom = event["kind"], event["worker"], event["server"]
            history.faults.append(Fault(begun[whom].pop(), t, *whom))
        elif kind == "may_forget":
            slots = [tuple(map(int, part.split("-"))) for part in event["slots"].split()] if "slots" in event else None
            history.failovers.append(Failover(event["since"], event["until"], event["told"], slots))
        elif kind == "unordered":
            history.faults.append(Fault(event["since"], t, UNORDERED, -1, 0))
        elif kind == "moved":
            history.slots_moved += 1
        elif kind == "killed":
            killed[name_of(event)] = t
        elif kind == "ended":
            statuses[name_of(event)] = event["status"]
        elif kind == "peer_ended":
            statuses[f"peer-{event['peer']}"] = event["status"]
        elif kind == "foreign_release":
            history.foreign_releases.append((event["lock"], event["refused"], line))
        elif kind == "unreleased":
            history.unreleased.append((event["key"], event["ttl"], event.get("places", "").split()))
        elif kind == "residue":
            history.residue.append((event["key"], event["ttl"], event.get("places", "").split()))
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


def read_permits(history, path):
    for line, event in lines_of(path) if path.exists() else ():
        if event["ev"] == "sum":
            history.wrong_sums.append((event["left"], event["out"], line))
        else:
            history.looks_at_permits = event["number"]


def read_changes(history, path):
    for line, event in lines_of(path) if path.exists() else ():
        history.changes.append((event["lock"], event["since"], event["t"], line))


def name_of(event):
    return f"worker-{event['worker']}-{event['life']}"


def read(folder):
    history = History()
    for path in sorted(Path(folder).glob("*-*.jsonl")):
        read_worker(history, path)
    read_driver(history, Path(folder) / "driver.jsonl")
    read_machine(history, Path(folder) / "machine.jsonl")
    read_permits(history, Path(folder) / "permits.jsonl")
    read_changes(history, Path(folder) / "changes.jsonl")
    if history.servers > 1:  # a copy of it may be on its way to a minority of them
        history.forced = [(begin, max(end, begin + UNANSWERED), lock) for begin, end, lock in history.forced]
    for whole in history.wholes:
        whole.by_slot = history.campaign["name"] == "cluster"
    history.holds.sort(key=lambda hold: hold.begin)
    return history
