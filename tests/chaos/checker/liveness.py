# SPDX-License-Identifier: BSL-1.0
"""R6: every call ends in time, and nobody waits for a lock that is free."""
from bisect import bisect_left
from collections import defaultdict, deque

from .history import MS, drift
from .quiet import HARMLESS, RECOVERY, Answers, Quiet, union
from .rules import ANSWER, LOST, SIGNAL, UNCONFIRMED, by_lock, command_time, ms

WITHOUT_REDIS = ("no answer from Redis", "refused by Redis")
ENOUGH = 60 * MS  # for an answer, where nothing is wrong
SLACK = 200 * MS
ROUND_TRIP = 20 * MS
HAND_OVER = 50 * MS  # of a hundred, ninety-nine take no longer: seven times what a busy machine needs, and less than half a poll
FOREVER = 1 << 63
CHANCE = 2  # so few slow ones of a lock say nothing


def deadline(operation):
    """By when it must have ended, not counting the time in which its process stood still; None: it may wait."""
    ends = []
    if operation.wait == 0:
        ends.append(operation.begin + command_time(operation.ttl))
    elif operation.wait is not None:
        ends.append(operation.begin + operation.wait)
    if operation.cancelled_at is not None:
        ends.append(operation.cancelled_at)
    return min(ends, default=None)


def extension_ends(hold, asked):
    """A re-entry waits for as long as its hold lasts; a renewal has the time of a command."""
    which = f"{hold.lock}: the {asked.what} {hold.process.name}:{asked.line}"
    if asked.until is None:
        if hold.process.killed_at is None:
            yield "R6", f"{which} never ended"
        return
    renewal = asked.what == "renewal"
    if asked.error not in (None, LOST) and not (renewal and asked.error in WITHOUT_REDIS):
        yield "R6", f"{which} failed: {asked.error}"
    if renewal and asked.until > hold.process.grace(asked.since, command_time(hold.ttl) + ANSWER):
        yield "R6", f"{which} took {ms(asked.until - asked.since)}"


def lost_before_begun(operation, breaks):
    """Whether a body had no time to begin: a loss was told, and there may have been one."""
    process = operation.process
    since = operation.begin
    if not any(begin <= operation.end and end >= operation.begin for begin, end in breaks.of(operation.lock)):
        since += operation.ttl - drift(operation.ttl)
    told = process.told.get((operation.client, operation.lock), [])
    return operation.as_body and any(since <= t <= process.grace(operation.end, SIGNAL) for t in told)


def calls_end(history, breaks):
    for operation in history.operations:
        process = operation.process
        if operation.end is None:
            if process.killed_at is None:
                yield "R6", f"{operation.lock}: the call {operation} never ended"
            continue
        expected = operation.error in (None, *WITHOUT_REDIS, "Operation canceled")
        if not expected and not (operation.error == LOST and lost_before_begun(operation, breaks)):
            yield "R6", f"{operation.lock}: the call {operation} failed: {operation.error}"
        due = deadline(operation)
        if due is not None and operation.end > process.grace(due, ANSWER):
            yield "R6", f"{operation.lock}: the call {operation} ended {ms(operation.end - due)} after its deadline"
    for hold in history.holds:
        for since, until, _, _, line in hold.releases:
            limit = hold.process.grace(since, command_time(hold.ttl) + ANSWER)
            if until is None and hold.process.killed_at is None:
                yield "R6", f"{hold.lock}: the release {hold.process.name}:{line} never ended"
            if until is not None and until > limit:
                yield "R6", f"{hold.lock}: the release {hold.process.name}:{line} took {ms(until - since)}"
        for asked in hold.extensions:
            yield from extension_ends(hold, asked)
    for process in history.processes:
        if process.killed_at is None and (not process.ended or process.status):
            yield "R6", f"{process.name} did not end as it should: {process.status}"


def time_given(operation):
    return command_time(operation.ttl) if operation.wait == 0 else operation.wait


def failed_calls(history, answers):
    """A lock() waits for an answer, a try_lock_for() until its deadline."""
    for operation in history.operations:
        if operation.error not in WITHOUT_REDIS:
            continue
        failed = f"{operation.lock}: the call {operation} failed: {operation.error}, after {ms(operation.end - operation.begin)}"
        if operation.wait is None or (operation.wait and operation.end < operation.begin + operation.wait):
            yield "R6", f"{failed}, and it had time left"
        elif time_given(operation) >= ENOUGH and answers.due(operation.process, operation.begin, operation.end):
            yield "R6", f"{failed}, and nothing was wrong"


def failed_changes(history, answers):
    for hold in history.holds:
        if command_time(hold.ttl) < ENOUGH:
            continue
        calls = [("release", since, until, line) for since, until, _, error, line in hold.releases if error == UNCONFIRMED]
        calls += [(asked.what, asked.since, asked.until, asked.line) for asked in hold.extensions if asked.error in WITHOUT_REDIS]
        for what, since, until, line in calls:
            if answers.due(hold.process, since, until):
                yield "R6", f"{hold.lock}: the {what} {hold.process.name}:{line} found no answer, and nothing was wrong"
        for asked in hold.extensions:  # a re-entry tries again, but not for long
            since, until = asked.since, asked.until
            if until is not None and until - since > command_time(hold.ttl) + ANSWER and answers.due(hold.process, since, until):
                yield "R6", f"{hold.lock}: the {asked.what} {hold.process.name}:{asked.line} took {ms(until - since)}, and nothing was wrong"


def failures(history):
    """Only what keeps an answer away excuses who says that there was none."""
    answers = Answers(history)
    yield from failed_calls(history, answers)
    yield from failed_changes(history, answers)


def disturbed(history, longest_ttl):
    """When something was wrong, or had been so lately that its traces may be left."""
    return [(fault.begin, fault.end + longest_ttl + RECOVERY) for fault in history.faults if fault.kind not in HARMLESS]


def taken(operation, hold, longest_ttl):
    """When the lock may have been taken on the server because of an operation, in quiet times; None: never."""
    if hold is not None:
        begin = max(operation.begin, hold.begin - ROUND_TRIP)
        return begin, hold.free_at if hold.free_at is not None else hold.end + longest_ttl
    if operation.wait == 0 and operation.cancelled_at is None:
        return None  # it was told that another has it
    return operation.end - ROUND_TRIP, operation.end + ROUND_TRIP  # what was granted too late is given back


def free_stretches(busy):
    joined = union(busy)
    return [(a[1], b[0]) for a, b in zip(joined, joined[1:])]


def may_have(operation, hold, longest_ttl):
    """When the lock may have been taken because of an operation, however late its answers were; None: never."""
    if hold is not None:
        return operation.begin, hold.free_at if hold.free_at is not None else hold.end + longest_ttl
    if operation.outcome == "busy" and operation.wait == 0 and operation.cancelled_at is None:
        return None
    return operation.begin, FOREVER if operation.end is None else operation.end + longest_ttl


def waits_here(operation, operations):
    """Another call of the same client was there first: a try_lock() is refused at once, whatever becomes of that one."""
    return any(other is not operation and other.process is operation.process and other.client == operation.client
               and other.begin <= operation.begin and (other.end is None or other.end >= operation.begin) for other in operations)


def tries(history):
    """A try_lock() finds a lock busy only if somebody may have it, or waits for it in the same client."""
    longest_ttl = history.campaign.get("longest_ttl", 0) * MS
    trouble = disturbed(history, longest_ttl)
    hold_of = {id(hold.of): hold for hold in history.holds}
    for lock, operations in by_lock(history.operations).items():
        held = [interval for o in operations if (interval := may_have(o, hold_of.get(id(o)), longest_ttl))]
        free = Quiet(held + trouble + [(begin, end + longest_ttl) for begin, end, name in history.forced if name == lock])
        for operation in operations:
            busy = operation.wait == 0 and operation.outcome == "busy"
            if busy and free.during(operation.begin, operation.end) and not waits_here(operation, operations):
                yield "R6", f"{lock}: the call {operation} found it busy, and nobody had it"


def waits(history):
    """A stretch in which the lock was free, nothing was wrong, and somebody waited all the time."""
    longest_ttl = history.campaign.get("longest_ttl", 0) * MS
    poll_cap = history.campaign.get("poll_cap", 0) * MS
    trouble = disturbed(history, longest_ttl)
    hold_of = {id(hold.of): hold for hold in history.holds}
    for lock, operations in by_lock(history.operations).items():
        busy = [taken(o, hold_of.get(id(o)), longest_ttl) for o in operations if o.end is not None]
        busy = [interval for interval in busy if interval]
        busy += [(begin, end + longest_ttl) for begin, end, name in history.forced if name == lock]
        free = free_stretches(busy + trouble)
        if not free:
            continue
        ends = [end for _, end in free]
        for operation in operations:
            if operation.wait == 0 or operation.end is None:
                continue
            patience = poll_cap + SLACK
            for begin, end in free[bisect_left(ends, operation.begin):]:
                if begin >= operation.end:
                    break
                since, until = max(begin, operation.begin), min(end, operation.end)
                if until - since > patience + operation.process.stalled(since, until):
                    yield "R6", f"{lock}: {operation} waited for {ms(until - since)} while nobody had it, from {since} to {until}"


def to_whom(hold, waiting):
    """In the client that released a lock the next goes on by itself; others have to hear of it by a message."""
    here = any(o.process is hold.process and o.client == hold.of.client for o in waiting)
    return "in a client" if here else "between clients"


def hand_overs(history):
    """How long it took from a release to the next grant, in quiet times, while somebody waited all the time: (lock, to whom, how long)."""
    longest_ttl = history.campaign.get("longest_ttl", 0) * MS
    trouble = disturbed(history, longest_ttl)
    operations = by_lock(history.operations)
    for lock, holds in by_lock(history.holds).items():
        quiet = Quiet(trouble + [(begin, end + longest_ttl) for begin, end, name in history.forced if name == lock])
        to_come = deque(sorted((o for o in operations[lock] if o.wait != 0 and o.end is not None), key=lambda o: o.begin))
        waiting = []
        for hold, after in zip(holds, holds[1:]):
            if hold.free_at is None or not quiet.during(hold.begin, after.begin):
                continue
            while to_come and to_come[0].begin < hold.given_up - ROUND_TRIP:
                waiting.append(to_come.popleft())
            waiting = [o for o in waiting if o.end >= hold.given_up]
            patient = [o for o in waiting if o.end >= max(hold.free_at, after.begin)]
            if patient:
                late = after.begin - hold.free_at - after.process.stalled(hold.free_at, after.begin)
                yield lock, to_whom(hold, patient), max(0, late)


def percentile(sorted_values, hundredth):
    return sorted_values[min(len(sorted_values) - 1, len(sorted_values) * hundredth // 100)]


def passes_on(history):
    # Apart for each lock: where many come and go, newcomers take at once what those who wait were not told of.
    of_lock = defaultdict(list)
    for lock, _, late in hand_overs(history):
        of_lock[lock].append(late)
    for lock, took in of_lock.items():
        slow = sum(late > HAND_OVER for late in took)
        if slow > max(CHANCE, len(took) // 100):
            yield "R6", f"{lock}: {slow} of {len(took)} hand-overs took more than {ms(HAND_OVER)}, while somebody waited and nothing was wrong"


def liveness(history, breaks):
    yield from calls_end(history, breaks)
    yield from failures(history)
    yield from tries(history)
    yield from waits(history)
    yield from passes_on(history)
