# SPDX-License-Identifier: BSL-1.0
"""R10: the two sides of a shared_mutex. While nothing is wrong, a writer that waits keeps newcomers from reading. Nobody waits for longer
than the holds before it explain.

A call asks for itself when it is the first of its client, and its client does not write. Its wait begins then. L and W are the longest read
and write hold during the wait, and h is a hand-over.

- A writer waits at most 5 ms + L + h: within 5 ms readers of one client join those that are there.
- Each client that writes at that time, or asks before the writer, adds 20 ms + W + L + 2h: its turn, and the readers that follow.
- A reader waits at most 20 ms + W + h for the end of a turn. It may find readers, and a writer that waits for them: that adds L + 2h.

h is 50 ms, as in R6: seven times the need of a busy machine. A wait beside a process that stood still is not judged. A shorter standstill
than 10 ms is not told, and redis-server and the proxies tell none. A client that is called has 20 ms at least, and then others may pass it.
So one wait of a hundred may last longer, and one writer of a hundred may be overtaken. On two cores under a load of 20 none of 880 writers was
overtaken, and no wait lasted for more than 0.75 of the time that it is allowed. With a door that stays open 10 of 250 were overtaken."""
from bisect import bisect_left, bisect_right
from collections import defaultdict
from itertools import accumulate
from typing import NamedTuple

from .history import MS, Intervals
from .liveness import CHANCE, FOREVER, HAND_OVER, ROUND_TRIP, Calls, disturbed, without_order
from .quiet import Quiet
from .rules import by_lock, ms

DOOR = 50 * MS  # after the call of a writer, and after each write, readers may begin
JOINED = 5 * MS  # readers share a hold of their client for so long
STINT = 20 * MS  # writers of a client pass the lock on for so long
ASTRAY = 100  # of so many writers one may be overtaken


class Wait(NamedTuple):
    operation: object
    since: int  # it asked for itself
    allowed: int
    overtaken_by: object  # of a writer: a reader that asked later and began when the door was closed; None: nobody

    @property
    def lasted(self):
        return self.operation.end - self.since

    def __str__(self):
        return f"{self.operation} waited for {ms(self.lasted)}, at most {ms(self.allowed)} are allowed"


class Spans:
    """Those of many that have a part of a time."""

    def __init__(self, spans):
        """Of (begin, end, whatever)."""
        self.spans = sorted(spans, key=lambda span: span[0])
        self.begins = [begin for begin, _, _ in self.spans]
        self.latest = list(accumulate((end for _, end, _ in self.spans), max))

    def during(self, begin, end):
        for i in range(bisect_left(self.begins, end) - 1, -1, -1):
            if self.latest[i] <= begin:
                return
            if self.spans[i][1] > begin:
                yield self.spans[i][2]


class Lock:
    """What happened to one shared_mutex."""

    def __init__(self, calls, lock, holds):
        self.calls, self.lock = calls, lock
        self.operations = sorted(calls.of_lock[lock], key=lambda operation: (operation.begin, operation.line))
        self.since = {}
        free = defaultdict(int)
        for operation in self.operations:
            self.since[id(operation)] = max(operation.begin, free[operation.key])
            free[operation.key] = max(free[operation.key], self.gone(operation), self.written(operation))
        self.held = Spans((*self.taken(hold), hold) for hold in holds)
        self.writing = Spans((self.since[id(operation)], max(self.gone(operation), self.since[id(operation)]), operation.key)
                             for operation in self.operations if operation.kind == "writer" and operation.wait != 0)
        self.reads = [hold for hold in holds if hold.of.reads]
        self.read_begins = [hold.begin for hold in self.reads]
        writes = [(hold.end, self.taken(hold)[1] + DOOR) for hold in holds if not hold.of.reads]
        given_up = [(operation.end - ROUND_TRIP, operation.end + DOOR) for operation in self.operations
                    if operation.kind == "writer" and operation.outcome not in (None, "acquired")]
        self.open = Intervals(writes + given_up)

    @staticmethod
    def taken(hold):
        """When it had the lock. What nobody released in so many words was dropped, or ended with its TTL."""
        return max(hold.of.begin, hold.begin - ROUND_TRIP), hold.end + HAND_OVER if hold.free_at is None else hold.free_at

    @staticmethod
    def gone(operation):
        """When it waited no more."""
        if operation.end is not None:
            return operation.end
        return operation.process.killed_at or FOREVER

    def written(self, operation):
        """Until when a call has led to a hold that bars its client; 0: to none."""
        hold = self.calls.held(operation, self.lock)
        return 0 if hold is None or operation.reads else self.taken(hold)[1]

    def allowed(self, operation):
        since = self.since[id(operation)]
        longest = {True: 0, False: 0}
        writing = []
        for hold in self.held.during(since, operation.end):
            begin, end = self.taken(hold)
            longest[hold.of.reads] = max(longest[hold.of.reads], end - begin)
            if not hold.of.reads and begin <= since and hold.of.key != operation.key:
                writing.append(hold.of.key)
        read, write = longest[True], longest[False]
        if operation.reads:
            return read + STINT + write + 3 * HAND_OVER
        before = {key for key in self.writing.during(since, since + DOOR) if key != operation.key}
        turns = len(set(writing)) + len(before)
        return JOINED + read + HAND_OVER + turns * (STINT + write + read + 2 * HAND_OVER)

    def overtaken_by(self, writer):
        since = self.since[id(writer)]
        first, last = bisect_right(self.read_begins, since + DOOR), bisect_left(self.read_begins, writer.end)
        late = (hold for hold in self.reads[first:last] if hold.of.begin > since)
        return next((hold for hold in late if not self.open.overlap(hold.begin - 1, hold.begin + 1)), None)


def waits_of_sides(history):
    """Each wait for a side in quiet times, by locks."""
    calls = Calls(history)
    quiet = Quiet(disturbed(history) + [stall for process in history.processes for stall in process.stopped])
    waits = defaultdict(list)
    for name, holds in by_lock(history.holds).items():
        if not holds[0].of.of_side or without_order(holds):
            continue
        lock = Lock(calls, name, holds)
        for operation in lock.operations:
            since = lock.since[id(operation)]
            if operation.wait == 0 or operation.end is None or operation.end <= since or not quiet.during(since, operation.end):
                continue
            overtaken_by = None if operation.reads else lock.overtaken_by(operation)
            waits[name].append(Wait(operation, since, lock.allowed(operation), overtaken_by))
    return waits


def sides(history, breaks):
    for lock, waits in waits_of_sides(history).items():
        for kind in "readers", "writers":
            of_kind = [wait for wait in waits if wait.operation.reads == (kind == "readers")]
            slow = [wait for wait in of_kind if wait.lasted > wait.allowed]
            if len(slow) > max(CHANCE, len(of_kind) // 100):
                yield "R10", f"{lock}: {len(slow)} of {len(of_kind)} {kind} waited for longer than the holds before them explain: {slow[0]}"
        writers = [wait for wait in waits if not wait.operation.reads]
        overtaken = [wait for wait in writers if wait.overtaken_by]
        if len(overtaken) > max(2 * CHANCE, len(writers) // ASTRAY):
            one = overtaken[0]
            yield "R10", (f"{lock}: {len(overtaken)} of {len(writers)} writers were overtaken: {one.overtaken_by} began to read "
                          f"{ms(one.overtaken_by.begin - one.since)} after {one.operation} had asked to write")
