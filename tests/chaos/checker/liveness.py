# SPDX-License-Identifier: BSL-1.0
"""R6: every call ends in time, and nobody waits for a lock that is free."""
from collections import defaultdict, deque

from .history import MS, Intervals, drift
from .quiet import HARMLESS, RECOVERY, Answers, Quiet, outages, without_vote
from .rules import ANSWER, LOST, SIGNAL, UNCONFIRMED, attempt_time, by_lock, command_time, ms

PLANNED_FAILOVER = "relieve a primary"
TOO_FEW = "not replicated"
WITHOUT_REDIS = ("no answer from Redis", "refused by Redis", "no quorum", TOO_FEW)
ENOUGH = 60 * MS  # for an answer, where nothing is wrong
VOTE = 10 * MS  # one of several servers is waited for at least so long, or a fiftieth of the TTL
SLACK = 200 * MS
ROUND_TRIP = 20 * MS
HAND_OVER = 50 * MS  # of a hundred, ninety-nine take no longer: seven times what a busy machine needs, and less than half a poll
DIVIDED = 2  # times as long where several servers vote: callers who divide them among themselves pause and ask again
FOREVER = 1 << 63
CHANCE = 2  # so few slow ones of a lock say nothing


def deadline(operation):
    """By when it must have ended, not counting the time in which its process stood still; None: it may wait."""
    ends = []
    begun = operation.process.grace(operation.begin, 1)  # it was written down before: a process that is stopped has not called yet
    if operation.wait == 0:
        ends.append(begun + attempt_time(operation))
    elif operation.wait is not None:
        ends.append(begun + operation.wait)
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
    together = operation.whole.operations if operation.whole else [operation]
    told = [t for one in together for t, _ in process.told.get((operation.client, one.lock), [])]
    return operation.as_body and any(since <= t <= process.grace(operation.end, SIGNAL) for t in told)


def calls_end(history, breaks):
    for operation in history.operations:
        process = operation.process
        if process.foreign:
            continue
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
        if hold.process.foreign:
            continue
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


def time_given(history, operation):
    if operation.wait != 0:
        return operation.wait
    return command_time(operation.ttl) if history.servers == 1 else max(VOTE, operation.ttl // 50)


def failed_calls(history, answers):
    """A lock() waits for an answer, a try_lock_for() until its deadline."""
    for operation in history.operations:
        if operation.error not in WITHOUT_REDIS or operation.process.foreign:
            continue
        failed = f"{operation.lock}: the call {operation} failed: {operation.error}, after {ms(operation.end - operation.begin)}"
        if operation.wait is None or (operation.wait and operation.end < operation.begin + operation.wait):
            yield "R6", f"{failed}, and it had time left"
        elif operation.error == TOO_FEW and operation.wait:
            continue  # it may have been granted just before its deadline
        elif time_given(history, operation) >= ENOUGH and answers.due(operation.process, operation.begin, operation.end):
            yield "R6", f"{failed}, and nothing was wrong"


def failed_changes(history, answers):
    for hold in history.holds:
        if command_time(hold.ttl) < ENOUGH or hold.process.foreign:
            continue
        calls = [("release", since, until, line) for since, until, _, error, line in hold.releases if error == UNCONFIRMED]
        calls += [(asked.what, asked.since, asked.until, asked.line) for asked in hold.extensions if asked.error in WITHOUT_REDIS]
        for what, since, until, line in calls:
            if answers.due_of_each(hold.process, since, until):
                yield "R6", f"{hold.lock}: the {what} {hold.process.name}:{line} found no answer, and nothing was wrong"
        for asked in hold.extensions:  # a re-entry tries again, but not for long
            since, until = asked.since, asked.until
            if until is not None and until - since > command_time(hold.ttl) + ANSWER and answers.due_of_each(hold.process, since, until):
                yield "R6", f"{hold.lock}: the {asked.what} {hold.process.name}:{asked.line} took {ms(until - since)}, and nothing was wrong"


def failures(history):
    """Only what keeps an answer away excuses who says that there was none."""
    answers = Answers(history)
    yield from failed_calls(history, answers)
    yield from failed_changes(history, answers)


def leftover(history, fault):
    """For so long after a fault a lock may be kept that nobody holds. A planned failover leaves none: what the old primary has answered
    is released once more."""
    return 0 if fault.kind == PLANNED_FAILOVER else history.longest_ttl


def traces(history):
    """When something was wrong, or had been so lately that its traces may be left, and at which server."""
    return [(fault.begin, fault.end + leftover(history, fault) + RECOVERY + without_vote(history, fault), fault.server)
            for fault in history.faults if fault.kind not in HARMLESS]


def disturbed(history):
    return list(outages(history, traces(history)))


class Calls:
    """Who asked for which lock, and what came of it."""

    def __init__(self, history):
        self.longest_ttl = history.longest_ttl
        self.hold_of = {id(hold.of): hold for hold in history.holds}
        self.of_lock = defaultdict(list)  # each operation at each of the locks that it asked for
        self.forced = defaultdict(list)  # what was forced may be left to its TTL
        for operation in history.operations:
            for lock in operation.locks:
                self.of_lock[lock].append(operation)
        for begin, end, lock in history.forced:
            self.forced[lock].append((begin, end + self.longest_ttl))

    def held(self, operation, lock):
        hold = self.hold_of.get(id(operation))
        return hold if hold and hold.lock == lock else None

    def was_refused(self, operation):
        """It was told that another has it, so it took nothing; a multi_lock that takes several scripts may have taken the first."""
        several_scripts = operation.whole and operation.whole.scripts > 1
        return operation.wait == 0 and operation.cancelled_at is None and operation.outcome != "acquired" and not several_scripts

    def taken(self, operation, lock):
        """When the lock may have been taken on the server because of an operation, in quiet times; None: never."""
        hold = self.held(operation, lock)
        if hold is not None:
            begin = max(operation.begin, hold.begin - ROUND_TRIP)
            return begin, hold.free_at if hold.free_at is not None else hold.end + self.longest_ttl
        if self.was_refused(operation):
            return None
        if operation.error == LOST:
            return operation.begin, operation.end + ROUND_TRIP  # it had it, and its body did not begin
        return operation.end - ROUND_TRIP, operation.end + ROUND_TRIP  # what was granted too late, or besides, is given back

    def may_have(self, operation, lock):
        """When the lock may have been taken because of an operation, however late its answers were; None: never."""
        hold = self.held(operation, lock)
        if hold is not None:
            return operation.begin, hold.free_at if hold.free_at is not None else hold.end + self.longest_ttl
        if operation.outcome == "busy" and self.was_refused(operation):
            return None
        return operation.begin, FOREVER if operation.end is None else operation.end + self.longest_ttl


class Obstacles:
    """When a multi_lock stood in the way of others at a lock: it keeps its turn in its client while it waits for the next lock; one
    that takes several scripts keeps what it has got by the first."""

    def __init__(self, history):
        self.in_client, self.for_all = defaultdict(list), defaultdict(list)
        for whole in history.wholes:
            for operation in whole.operations:
                pending = operation.begin, (FOREVER if operation.end is None else operation.end), whole
                self.in_client[operation.lock, operation.key].append(pending)
                if whole.scripts > 1:
                    self.for_all[operation.lock].append(pending)

    def anywhere(self, lock):
        return [(begin, end) for begin, end, _ in self.for_all.get(lock, [])]

    def of(self, operation, lock):
        theirs = self.in_client.get((lock, operation.key), []) + self.for_all.get(lock, [])
        return [(begin, end) for begin, end, whole in theirs if whole is not operation.whole]


def waits_here(operation, operations):
    """Another call of the same client was there first: a try_lock() is refused at once, whatever becomes of that one."""
    return any(other is not operation and other.key == operation.key
               and other.begin <= operation.begin and (other.end is None or other.end >= operation.begin) for other in operations)


def tries(history):
    """A try_lock() finds a lock busy only if somebody may have it, or waits for it in the same client. One of any_of finds all so, one
    of a multi_lock one of them."""
    calls = Calls(history)
    trouble = disturbed(history)
    free = {}
    for lock, operations in calls.of_lock.items():
        held = [interval for o in operations if (interval := calls.may_have(o, lock))]
        free[lock] = Quiet(held + trouble + calls.forced[lock])

    def was_free(operation, lock):
        return free[lock].during(operation.begin, operation.end) and not waits_here(operation, calls.of_lock[lock])

    for operation in history.operations:
        if operation.wait != 0 or operation.outcome != "busy":
            continue
        together = operation.whole.operations if operation.whole else [operation]
        if operation is not together[0]:
            continue
        if operation.whole:
            in_vain = all(was_free(one, one.lock) for one in together)
        else:
            in_vain = any(was_free(operation, lock) for lock in operation.locks)
        if in_vain:
            yield "R6", f"{operation.lock}: the call {operation} found it busy, and nobody had it"


def gaps(begin, end, taken):
    """What is left of that time."""
    for since, until in Intervals(taken):
        if since > begin:
            yield begin, min(since, end)
        begin = max(begin, until)
        if begin >= end:
            return
    yield begin, end


def waits(history):
    """A stretch in which the lock was free, nothing was wrong, and somebody waited all the time: for one, for any of several, or for all
    of several."""
    calls, obstacles = Calls(history), Obstacles(history)
    patience = history.campaign["poll_cap"] * MS + SLACK
    trouble = Intervals(disturbed(history))
    unordered = {lock for lock, holds in by_lock(history.holds).items() if without_order(holds)}
    busy = {}
    for lock, operations in calls.of_lock.items():
        taken = [calls.taken(o, lock) for o in operations if o.end is not None]
        busy[lock] = Intervals([interval for interval in taken if interval] + calls.forced[lock])

    def longest_vain(operation, operations_and_locks):
        begin, end = operation.begin, operation.end
        taken = trouble.overlap(begin, end) + [interval for _, lock in operations_and_locks for interval in busy[lock].overlap(begin, end)]
        for obstructed in (False, True):  # most are out of the question without
            if obstructed:
                taken += [interval for one, lock in operations_and_locks for interval in obstacles.of(one, lock)]
            vain = [(until - since - operation.process.stalled(since, until), since, until) for since, until in gaps(begin, end, taken)]
            longest = max(vain, default=(0, begin, begin))
            if longest[0] <= patience:
                return None
        return longest

    for operation in history.operations:
        if operation.wait == 0 or operation.end is None or operation.end - operation.begin <= patience or operation.process.foreign:
            continue
        if operation.lock in unordered:
            continue
        if operation.whole:
            together = operation.whole.operations
            wanted = [[(one, one.lock) for one in together]] if operation is together[0] else []
        else:
            wanted = [[(operation, lock)] for lock in operation.locks]
        for each in wanted:
            vain = longest_vain(operation, each)
            if vain:
                names = " and ".join(lock for _, lock in each)
                yield "R6", f"{names}: {operation} waited for {ms(vain[2] - vain[1])} while nobody had it, from {vain[1]} to {vain[2]}"


def without_order(holds):
    """Redisson's readers and writers do not wait for their turn: beside them nobody is served in time."""
    return any(hold.process.foreign and hold.of.of_side for hold in holds)


def to_whom(hold, waiting):
    """In the client that released a lock the next goes on by itself; others have to hear of it by a message."""
    here = any(o.process is hold.process and o.client == hold.of.client for o in waiting)
    return "in a client" if here else "between clients"


def hand_overs(history):
    """How long it took from a release to the next grant, in quiet times, while somebody waited all the time who could have had it:
    (lock, to whom, how long)."""
    calls, obstacles = Calls(history), Obstacles(history)
    trouble = [(begin, end) for begin, end, _ in traces(history)]
    for lock, holds in by_lock(history.holds).items():
        if without_order(holds):
            continue
        quiet = Quiet(trouble + calls.forced[lock] + obstacles.anywhere(lock))
        waited = (o for o in calls.of_lock[lock] if o.wait != 0 and o.end is not None and not o.whole and not o.process.foreign)
        to_come = deque(sorted(waited, key=lambda o: o.begin))
        waiting, ways = [], {}
        for hold, after in zip(holds, holds[1:]):
            several = hold.of.capacity > 1 or hold.of.reads
            if hold.free_at is None or after.process.foreign or several or not quiet.during(hold.begin, after.begin):
                continue
            while to_come and to_come[0].begin < hold.given_up - ROUND_TRIP:
                waiting.append(to_come.popleft())
            waiting = [o for o in waiting if o.end >= hold.given_up]
            patient = [o for o in waiting if o.end >= max(hold.free_at, after.begin)]
            for o in patient:
                if o.key not in ways:
                    ways[o.key] = Quiet(obstacles.of(o, lock))
            patient = [o for o in patient if ways[o.key].during(hold.given_up, after.begin)]
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
    allowed = HAND_OVER if history.servers == 1 else DIVIDED * HAND_OVER
    for lock, took in of_lock.items():
        slow = sum(late > allowed for late in took)
        if slow > max(CHANCE, len(took) // 100):
            yield "R6", f"{lock}: {slow} of {len(took)} hand-overs took more than {ms(allowed)}, while somebody waited and nothing was wrong"


def liveness(history, breaks):
    yield from calls_end(history, breaks)
    yield from failures(history)
    yield from tries(history)
    yield from waits(history)
    yield from passes_on(history)
