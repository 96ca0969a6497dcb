# SPDX-License-Identifier: BSL-1.0
"""R9: the order in which those are served who wait for one lock: in one client, and, where all clients take turns, between clients. A
fair_mutex has fairness.py besides."""
from bisect import bisect_right
from collections import Counter, defaultdict

from .history import MS
from .liveness import ROUND_TRIP, Calls, Obstacles, disturbed
from .quiet import Quiet
from .rules import by_lock

GOES_ON = 2000 * MS  # for no longer than that an unlock does which Redis has not confirmed
MOST_TURNS = 8  # of one client while another waits: nobody keeps the order, so that it is no more than likely; 5 were seen


class Unconfirmed:
    """When unlocks ended that Redis had not confirmed. Their owner waits for the end of that first, and then stands in line."""

    def __init__(self, history):
        self.ends = defaultdict(list)
        for hold in history.holds:
            self.ends[hold.of.key, hold.lock] += [until for _, until, left, error, _ in hold.releases if left == 0 and error]

    def delays(self, operation):
        ends = self.ends.get((operation.key, operation.lock), [])
        return any(until is not None and 0 <= operation.begin - until < GOES_ON for until in ends)


def in_client(history, breaks):
    """Who asked first has it first. Who asks once does not wait; any of several, and all of them, wait in several lines at once."""
    unconfirmed, lines = Unconfirmed(history), defaultdict(list)
    for operation in history.operations:
        if operation.outcome == "acquired" and stands_in_line(operation) and not unconfirmed.delays(operation):
            lines[operation.key, operation.lock].append(operation)
    for served in lines.values():
        served.sort(key=lambda operation: operation.end)
        last = None  # of those that were served: who asked last
        for operation in served:
            if last and last.line > operation.line:
                yield "R9", f"{last} was served before {operation}, which had asked for {operation.lock} of the same client before it"
            else:
                last = operation


def stands_in_line(operation):
    return operation.wait != 0 and operation.whole is None and len(operation.locks) == 1


def turns_meanwhile(operation, holds, begins):
    """How many turns each other client has had while this one waited, since its own last one: the most at a time."""
    turns, seen, most = Counter(), set(), Counter()
    first, last = bisect_right(begins, operation.begin + ROUND_TRIP), bisect_right(begins, operation.end)
    for hold in holds[first:last]:
        whose = hold.of.key
        if whose == operation.key:
            turns.clear()
        elif (turn := (whose, id(hold.turn_of or hold))) not in seen:
            seen.add(turn)
            turns[whose] += 1
            most[whose] = max(most[whose], turns[whose])
    return most


def between_clients(history, breaks):
    """While nothing is wrong, who waits is not overtaken for long. A client that stood still has not heard whose turn it is."""
    if history.campaign.get("turns") != "all" or history.servers > 1:
        return
    calls, obstacles = Calls(history), Obstacles(history)
    trouble = disturbed(history) + [stall for process in history.processes for stall in process.stopped]
    for lock, holds in by_lock(history.holds).items():
        if any(hold.process.foreign or hold.of.capacity > 1 or hold.of.of_side or hold.of.fair for hold in holds):
            continue  # a peer takes no turns, several may have permits at once, sides have R10, and fair ones stand in one line
        begins = [hold.begin for hold in holds]
        quiet = Quiet(trouble + calls.forced[lock] + obstacles.anywhere(lock))
        for operation in calls.of_lock[lock]:
            waited = stands_in_line(operation) and operation.end is not None
            if not waited or not quiet.during(operation.begin, operation.end):
                continue
            most = turns_meanwhile(operation, holds, begins)
            if not most or not Quiet(obstacles.of(operation, lock)).during(operation.begin, operation.end):
                continue
            (other, turns), = most.most_common(1)
            if turns > MOST_TURNS:
                whose = " client ".join(map(str, other))
                yield "R9", f"{lock}: while {operation} waited, {whose} had {turns} turns"


def order(history, breaks):
    yield from in_client(history, breaks)
    yield from between_clients(history, breaks)
