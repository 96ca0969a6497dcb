# SPDX-License-Identifier: BSL-1.0
"""A latch opens once, after exactly the count-downs that were confirmed. One that was not confirmed counts once or not at all."""
from bisect import bisect_left, bisect_right
from collections import defaultdict
from itertools import accumulate

from .history import MS, Intervals
from .liveness import disturbed
from .quiet import Answers

ANSWER = 100 * MS  # a call ends no later than this after its deadline
SLACK = 200 * MS  # beyond the poll cap


class Sum:
    """Of the numbers that were added before an instant."""

    def __init__(self, times_and_numbers):
        each = sorted(times_and_numbers)
        self.times = [t for t, _ in each]
        self.sums = [0, *accumulate(number for _, number in each)]

    def before(self, t):
        return self.sums[bisect_left(self.times, t)]

    def until(self, t):
        return self.sums[bisect_right(self.times, t)]


def readings(calls):
    """What a call saw of the count: (call, left). A wait that ends at its deadline may have seen nothing: Redis has answered others."""
    for call in calls:
        if call.verb == "count" and call.value is not None:
            yield call, call.value
        elif call.verb == "wait" and call.value:
            yield call, 0


def counted_once(latch, calls, count, known_set):
    downs = [call for call in calls if call.verb == "count_down"]
    begun = Sum((call.begin, call.number) for call in downs)
    confirmed = Sum((call.end, call.number) for call in downs if call.value is not None)
    for call, left in readings(calls):
        if call.begin < known_set:
            continue
        least, most = max(0, count - begun.until(call.end)), max(0, count - confirmed.before(call.begin))
        if left < least:
            yield "R12", f"{latch}: {call} saw {left} left, and {least} or more must be: a call counted twice"
        if left > most:
            yield "R12", f"{latch}: {call} saw {left} left, and {most} at most may be: a confirmed call did not count"


def late(history, latch, calls, known_set, answers, trouble):
    """A caller waits for an open latch no longer than until its poll."""
    patience = history.campaign["poll_cap"] * MS + SLACK
    seen_open = [call.end for call, left in readings(calls) if left == 0 and call.begin >= known_set]
    if not seen_open:
        return
    opened = min(seen_open)
    for call in calls:
        if call.verb != "wait" or call.end is None:
            continue
        since = max(call.begin, opened)
        quiet = not trouble.overlap(since, call.end) and answers.due_of_each(call.process, since, call.end)
        if quiet and call.process.grace(since, patience) < call.end:
            yield "R12", f"{latch}: {call} waited, though the latch had been open since {opened}"


def outlasting(latch, calls):
    for call in calls:
        if call.verb == "wait" and call.end is not None and call.process.grace(call.begin, call.number * MS + ANSWER) < call.end:
            yield "R12", f"{latch}: {call} ended later than its deadline"


def by_latch(history):
    calls = defaultdict(list)
    for call in history.latch_calls:
        calls[call.latch].append(call)
    return calls


def seen_closed(calls):
    """When one had first seen it closed. Nobody counts before; None: nobody counts."""
    return min((call.end for call, left in readings(calls) if left > 0), default=None)


def opened_latches(history):
    """Those that were seen closed, and open afterwards."""
    opened = []
    for latch, calls in by_latch(history).items():
        closed = seen_closed(calls)
        if closed is not None and any(left == 0 and call.begin >= closed for call, left in readings(calls)):
            opened.append(latch)
    return opened


def latches(history, breaks):
    """R12: a latch opens once, after exactly the confirmed count-downs, and its waiters are let in."""
    answers, trouble = Answers(history), Intervals(disturbed(history))
    for latch, calls in by_latch(history).items():
        yield from outlasting(latch, calls)
        sets = [call for call in calls if call.verb == "set"]
        if sum(call.value == 1 for call in sets) > 1:
            yield "R12", f"{latch} was set twice"
        for call in sets:
            if call.value == 0:
                yield "R12", f"{latch}: {call} found it set, and nobody else sets it"
        known_set = seen_closed(calls)
        if not sets or known_set is None:
            continue
        yield from counted_once(latch, calls, sets[0].number, known_set)
        yield from late(history, latch, calls, known_set, answers, trouble)
