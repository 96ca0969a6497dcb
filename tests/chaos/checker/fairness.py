# SPDX-License-Identifier: BSL-1.0
"""R9 of a fair_mutex: first come, first served, over all clients. Nobody who asked 20 ms later is served before one that waits.

A waiter is not judged while its order may have been lost with its place. That is so while something keeps it from its turn, or the queue
away: a fault of its own link, process or server; a standstill of its process, or of its answers, since the next one has its turn after
20 ms; a queue that was deleted, until each has looked again. Its place stands late while its process makes its first connections, or works
off what has piled up in a standstill. Faults of others cost it nothing: they are killed, stopped and cut off.
A client has 16 places; whoever comes when all of them are taken waits in the client first. Beside a peer the order is the peer's."""
from bisect import bisect_left, bisect_right
from collections import defaultdict
from typing import NamedTuple

from .history import MS
from .liveness import FOREVER, ROUND_TRIP, SLACK, deadline
from .order import Unconfirmed, stands_in_line
from .quiet import HARMLESS, RECOVERY, Quiet, silences
from .rules import LOST, by_lock, ms

LATER = 20 * MS  # a call is written down before its place stands
PLACES = 16  # of a client at a lock
SUSPECTED = 20 * MS  # after so long without an answer the next one has the turn
SETTLING = 200 * MS  # a process that has begun, or has stood still, sends its commands late for so long
LOSE_QUEUES = "lose queues"
KEEPING = HARMLESS + ("delete locks",)  # these faults leave each in its place


class Wait(NamedTuple):
    operation: object
    overtaken_by: object  # a hold of one that asked later and was served before; None: nobody


def waited_until(operation):
    """When it waited no more, at the earliest. Whoever was granted the lock and lost it before its body began is no witness."""
    if operation.error == LOST:
        return operation.begin
    ends = (operation.end, deadline(operation), operation.cancelled_at, operation.process.killed_at)
    return min((end for end in ends if end is not None), default=FOREVER)


def queues_anew(history, fault):
    """Until when a fault may keep a place away. Whoever waits looks again within its poll."""
    if fault.kind == LOSE_QUEUES:
        return fault.end + history.campaign["poll_cap"] * MS + SLACK
    return fault.end + RECOVERY


class Disorder:
    """When a process may have lost its places."""

    def __init__(self, history):
        self.history, self.of_process = history, {}
        self.of_all = silences(history, SUSPECTED // 2)  # the turn may have been half over

    def of(self, process):
        if process not in self.of_process:
            history = self.history
            faults = [(fault.begin, queues_anew(history, fault)) for fault in history.faults
                      if fault.kind not in KEEPING and fault.worker in (-1, process.worker)]
            still = [(begin, end + SETTLING) for begin, end in process.stopped]
            if process.started_at is not None:
                still.append((process.started_at, process.started_at + SETTLING))
            still += silences(history, SUSPECTED, process) + self.of_all
            self.of_process[process] = Quiet(faults + still)
        return self.of_process[process]


def ended_behind_its_back(history, lock):
    """When a lock may have been taken from one that had not heard of its grant yet."""
    forced = [(begin, end) for begin, end, which in history.forced if which == lock]
    return Quiet(forced + [(fault.begin, fault.end) for fault in history.faults if fault.kind == "delete locks"])


def with_a_place(operations):
    """Those that wait, and were among the first of their client when they came. `operations` of one lock, in the order of their begins."""
    waiting, placed = defaultdict(list), []
    for operation in operations:
        here = [other for other in waiting[operation.key] if other.end is None or other.end >= operation.begin]
        waiting[operation.key] = here
        if operation.wait == 0:
            continue
        if len(here) < PLACES:
            placed.append(operation)
        here.append(operation)
    return placed


def judged_waits(history):
    """Each wait for a fair_mutex in which another asked 20 ms later, while nothing cost it its place."""
    disorder, unconfirmed = Disorder(history), Unconfirmed(history)
    calls = defaultdict(list)
    for operation in sorted(history.operations, key=lambda operation: operation.begin):
        if operation.fair:
            calls[operation.lock].append(operation)
    for lock, holds in by_lock(hold for hold in history.holds if hold.of.fair).items():
        if any(hold.process.foreign for hold in holds):
            continue
        begins = [hold.begin for hold in holds]
        asked = [operation.begin for operation in calls[lock]]
        broken = ended_behind_its_back(history, lock)
        for operation in with_a_place(calls[lock]):
            late, until = operation.begin + LATER, waited_until(operation)
            known = stands_in_line(operation) and not operation.replicas and not unconfirmed.delays(operation)
            if not known or bisect_left(asked, late) >= bisect_left(asked, until):
                continue
            meanwhile = holds[bisect_right(begins, late):bisect_left(begins, until)]
            later = next((hold for hold in meanwhile if hold.of.begin >= late), None)
            if not disorder.of(operation.process).during(operation.begin, until if later is None else later.begin):
                continue
            if later is None or broken.during(later.begin - ROUND_TRIP, until):
                yield Wait(operation, later)


def fairness(history, breaks):
    for wait in judged_waits(history):
        if wait.overtaken_by:
            operation, hold = wait
            later = ms(hold.of.begin - operation.begin)
            yield "R9", f"{operation.lock}: {hold.of}, which had asked {later} later, was served at {hold.begin} before {operation}"
