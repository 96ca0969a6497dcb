# SPDX-License-Identifier: BSL-1.0
"""What must be true of every history. Each rule yields violations: (rule, what is wrong, in words, with the lines that show it)."""
from collections import defaultdict

from .history import MS, UNTOLD, drift
from .quiet import Answers

SIGNAL = 50 * MS  # a loss is signalled no later than this
ANSWER = 100 * MS  # a call ends no later than this after its deadline
COMMAND_TIMEOUT = 500 * MS
LOST, UNCONFIRMED = "the lock was lost", "not confirmed by Redis"
NO_KEY = -2  # PTTL's word for it
LAG = 50 * MS  # by so much a replica of this machine may be behind
# For so long after all sentinels, or all nodes, name another primary a client may ask the old one, and not know of a
# loss: sentinels tell it, nodes are asked once a second. Behind sentinels
# owners were told within 18 ms; the two losses in a cluster were told after 58 and 657 ms.
FOLLOWED = {"sentinel": 100 * MS, "cluster": 1100 * MS}
BREAKING = ("flush all", "restart the server empty", "restart the server with old data", "delete locks")


def ms(duration):
    return f"{duration / MS:.1f} ms"


def by_lock(things):
    grouped = defaultdict(list)
    for thing in things:
        grouped[thing.lock].append(thing)
    return grouped


class Breaks:
    """When somebody other than its holder ended a lock, with the right to do so."""

    def __init__(self, history):
        self.two_are_possible = history.two_are_possible
        self.failovers = history.failovers
        self.followed = FOLLOWED.get(history.campaign["name"])
        self.of_all = [(fault.begin, fault.end) for fault in history.faults if fault.kind in BREAKING]
        self.of_one = defaultdict(list)
        for begin, end, lock in history.forced:
            self.of_one[lock].append((begin, end))

    def of(self, lock):
        return self.of_all + self.of_one.get(lock, [])

    def explain(self, hold, begin, end):
        """Whether `hold` may have been broken before `begin`, and had not to know before `end`: the next renewal finds out."""
        to_know = hold.ttl + hold.ttl // 3
        known = self.of(hold.lock) if self.two_are_possible else self.of_one.get(hold.lock, [])
        broken = any(hold.sent <= until and since <= begin and end <= until + to_know for since, until in known)
        return broken or any(since <= begin and end <= known_by for since, known_by in self.forgotten(hold))

    def touch(self, hold, until):
        broken = any(hold.sent <= end and begin <= until for begin, end in self.of(hold.lock))
        return broken or any(since <= until <= known_by + SIGNAL for since, known_by in self.forgotten(hold))

    def forgotten(self, hold):
        """(since, until): a failover may have forgotten the hold, or how long it lasts, and it had not to know that before.

        What all that can be elected had acknowledged is not forgotten. What is, was answered by the old primary: before it ended, or
        before its clients had to leave it. What it had granted in time is there as long as that says."""
        for failover in () if hold.of.replicas else self.failovers:
            known_by = hold.process.grace(failover.told, self.followed)
            last = min(failover.until, known_by)
            if hold.sent <= last and failover.concerns(hold.lock):
                in_time = failover.since - LAG
                yield max(in_time, hold.claimed_before(in_time)), min(known_by, last + hold.ttl)


def granted_first(last, hold):
    """Either may have heard of its grant first: the tokens say whose came first, where there are any."""
    return (last, hold) if None in (last.token, hold.token) else (min(last, hold, key=lambda one: one.token),)


def overlaps(history):
    """Each hold that began while others of its lock claimed to be held, which are not readers as it is: (lock, those others, the hold)."""
    for lock, holds in by_lock(history.holds).items():
        claiming = []
        for hold in holds:
            claiming = [other for other in claiming if other.end > hold.begin]
            others = [other for other in claiming if not (other.of.reads and hold.of.reads)]
            if others and hold.end > hold.begin:
                yield lock, others, hold
            claiming.append(hold)


def exclusion(history, breaks):
    """R1: no two holds of one lock claim to be exclusive at the same time, and those of a semaphore have no more permits than there are.
    What explains one pair explains no other."""
    for lock, others, hold in overlaps(history):
        def explained(other):
            return any(breaks.explain(one, hold.begin, min(other.end, hold.end)) for one in granted_first(other, hold))

        wrong = [other for other in others if not explained(other)]
        if hold.of.capacity > 1:
            taken = hold.of.permits + sum(other.of.permits for other in wrong)
            if taken > hold.of.capacity:
                yield "R1", f"{lock}: {taken} of {hold.of.capacity} permits were held when {hold} began, by {', '.join(map(str, wrong))} too"
            continue
        for other in wrong:
            both = f"{other} was sure of it until {other.end}, {hold} from {hold.begin}"
            yield "R1", f"{lock} had two holders for {ms(min(other.end, hold.end) - hold.begin)}: {both}"


def wrote_late(writer, since, until):
    """Whether a writer may have written to the counter in that time, when it had lost the lock: nobody keeps it from that. A process that is
    stopped tells later, or never."""
    told = [t for _, t in writer.updates] + [t for t in (writer.process.killed_at,) if t is not None]
    return any(t > writer.end and since <= t and writer.begin <= until for t in told)


def reads(history, breaks):
    """R1: the counter is the same at both ends of a reader's section."""
    for lock, holds in by_lock(history.holds).items():
        writers = [hold for hold in holds if hold.of.kind == "writer"]
        for hold in holds:
            for first, last, t, line in hold.compared:
                if first == last or t >= hold.end or any(wrote_late(writer, hold.begin, t) for writer in writers):
                    continue
                meanwhile = [writer for writer in writers if writer.begin < t and writer.end > hold.begin]
                if not any(breaks.explain(one, max(hold.begin, writer.begin), min(t, writer.end)) for writer in meanwhile for one in (hold, writer)):
                    yield "R1", f"{lock}: {hold} read {first}, and {last} at the end of its section ({hold.process.name}:{line})"


def sums(history, breaks):
    """R11: the permits that are left and those that are out are always as many as there are."""
    for left, out, line in history.wrong_sums:
        yield "R11", f"{left} permits were left, and {out} out (permits:{line})"


def command_time(ttl):
    return min(COMMAND_TIMEOUT, ttl // 5)


def attempt_time(operation):
    """For how long a try waits: a multi_lock sends one script after the other, and raises what it has at the end. Its
    replicas have as long for each as the server."""
    scripts = operation.whole.scripts if operation.whole else 1
    commands = (scripts if scripts == 1 else scripts + 1) * (2 if operation.replicas else 1)
    return command_time(operation.ttl) * commands


def claims(history, breaks):
    """R1: nobody claims more than Redis has granted: its TTL, less the drift, from when it was written, and while the key lives."""
    for hold in history.holds:
        most = hold.ttl - drift(hold.ttl)
        for valid, line in hold.valid:
            if valid > most:
                yield "R1", f"{hold.lock}: {hold} is valid for {ms(valid)}, with a TTL of {ms(hold.ttl)} ({hold.process.name}:{line})"
        for claimed, lives_until, t, line in hold.witnessed:
            if lives_until < claimed and not breaks.touch(hold, t):
                longer = ms(claimed - lives_until)
                yield "R1", f"{hold.lock}: {hold} claims {longer} more than its key lives ({hold.process.name}:{line})"
        # What was granted at the first attempt ends a TTL after it was written; a connection is not waited for longer
        # than a command may take.
        if hold.of.wait != 0:
            continue
        waited = attempt_time(hold.of) + hold.process.stalled(hold.of.begin, hold.begin)
        end = hold.of.begin + waited + hold.ttl + UNTOLD
        if hold.granted_until > end:
            claimed = hold.granted_until - hold.of.begin
            yield "R1", f"{hold.lock}: {hold} claims {ms(claimed)} from its call on, with a TTL of {ms(hold.ttl)}"


def granted_before(one, other):
    """Certainly, in Redis."""
    if None in (one.token, other.token):
        return one.begin < other.sent
    return one.token < other.token


def releases(history, breaks):
    """R2: nobody releases what another has had since. A second copy of a release finds what the first one left: it may say so. Who
    passes a hold on does not ask Redis; the next one is told of its loss."""
    answers = Answers(history)
    for lock, holds in by_lock(history.holds).items():
        for i, hold in enumerate(holds):
            if hold.free_at is None or hold.passed_on or hold.of.capacity > 1 or hold.of.reads:
                continue
            for j in range(i + 1, len(holds)):
                other = holds[j]
                if other.begin >= hold.given_up:
                    break
                calls = (hold.of.begin, hold.begin), (hold.given_up, hold.free_at)
                sent_once = all(answers.due_of_each(hold.process, *call) for call in calls)
                if sent_once and granted_before(hold, other):
                    yield "R2", f"{lock}: {hold} was released, though {other} had had it since"
                    break


def untimely(hold, t, breaks):
    """Whether it was not to be lost: it was valid by what it had heard, and nobody broke it."""
    return t < hold.claims_until and not breaks.touch(hold, t)


def counted(history, want, got):
    """What a majority of several servers has at least may be less than what three have whose two have not answered."""
    return 1 <= got <= want if history.servers > 1 else got == want


def counts(history, breaks):
    """R2: the count in Redis is the number of leases, a round trip later; only the owner releases, and once. A count that found no answer
    is told with the next."""
    answers = Answers(history)
    for hold in history.holds:
        for since, until, want, got, line in hold.counts:
            told = until <= hold.end and not breaks.touch(hold, until) and answers.due_of_each(hold.process, hold.begin, until)
            if not counted(history, want, got) and told:
                yield "R2", f"{hold.lock} is counted {got} times in Redis, held {want} times ({hold.process.name}:{line})"
        for since, until, left, error, line in hold.releases:
            if until is None or error is None:
                continue
            if error == LOST and all(untimely(one, until, breaks) for one in hold.whole):
                early = f"{ms(hold.claims_until - until)} before the end of its validity, and nobody broke it"
                yield "R2", f"{hold.lock} was said to be lost at its release, {early} ({hold.process.name}:{line})"
            if error not in (LOST, UNCONFIRMED):
                yield "R2", f"{hold.lock} could not be released: {error} ({hold.process.name}:{line})"
        if hold.again and hold.again[0] != "the lease holds nothing":
            yield "R2", f"a second unlock of {hold.lock} was answered: {hold.again[0]} ({hold.process.name}:{hold.again[1]})"
        if hold.afterwards and hold.afterwards[0] != NO_KEY:
            left = f"its key is there for {hold.afterwards[0]} ms more"
            yield "R2", f"{hold.lock} was released, and {left} ({hold.process.name}:{hold.afterwards[1]})"
    for lock, refused, line in history.foreign_releases:
        if not refused:
            yield "R2", f"{lock} was released by a stranger (driver:{line})"


def tokens(history, breaks):
    """R3: tokens grow from holder to holder, stay the same on re-entry, and the resource never goes back."""
    accepted = []
    for lock, holds in by_lock(history.holds).items():
        last, owners = None, {}
        for hold in holds:
            if hold.token is None:
                if hold.of.fenced:
                    yield "R3", f"{lock}: {hold} was granted without a token"
                continue
            if (other := owners.setdefault(hold.token, hold)) is not hold:
                yield "R3", f"{lock}: {other} and {hold} have the same token {hold.token}"
            for _, _, token, line in hold.reentries:
                if token != hold.token:
                    yield "R3", f"{lock}: the token {token} of a re-entry is not its hold's, {hold.token} ({hold.process.name}:{line})"
            accepted += [(number, lock, token, hold, line) for number, token, ok, line in hold.writes if ok]
            if hold.end <= hold.begin:
                continue  # its process stood still until it was over: it heard of it too late to be in order
            # Of two that were granted at once because one was broken, or is forgotten, either may hear of it first.
            forgotten = last and hold.sent <= last.end and any(breaks.forgotten(last))
            if last and hold.token < last.token and not forgotten and not breaks.touch(hold, last.begin):
                yield "R3", f"{lock}: the token {hold.token} of {hold} is not above {last.token} of {last}"
            if last is None or hold.token > last.token:
                last = hold
    highest = {}
    for number, lock, token, hold, line in sorted(accepted, key=lambda write: write[0]):
        before = highest.get(lock, (0, None))
        if token < before[0]:
            yield "R3", f"{lock}: the resource took token {token} after {before[0]} of {before[1]} ({hold.process.name}:{line})"
        else:
            highest[lock] = (token, hold)


def known_over(hold):
    """The first instant at which the hold was certainly not valid any more, as far as anybody saw."""
    seen = [t for _, t, held, _ in hold.looks if not held]
    return min(seen + ([hold.over] if hold.over is not None else []), default=None)


def signals(history, breaks):
    """R4: a loss is signalled in time, to the holder and to the observer, and only if there is one."""
    for hold in history.holds:
        process = hold.process
        over = known_over(hold)
        if hold.lost_at is not None:
            if not any(t <= process.grace(hold.lost_at, SIGNAL) for t in hold.told):
                yield "R4", f"{hold.lock}: the observer did not hear of the loss of {hold}"
            if untimely(hold, hold.lost_at, breaks):
                early = f"{ms(hold.claims_until - hold.lost_at)} before the end of its validity, and nobody broke it"
                yield "R4", f"{hold.lock}: {hold} was lost {early} ({process.name}:{hold.lost_line})"
        for asked in hold.extensions:
            if asked.error == LOST and all(untimely(one, asked.until, breaks) for one in hold.whole):
                early = f"{ms(hold.claims_until - asked.until)} before the end of its validity, and nobody broke it"
                yield "R4", f"{hold.lock}: the {asked.what} {process.name}:{asked.line} was told that it was lost {early}"
        if over is None:
            continue
        due = process.grace(over, SIGNAL)
        gone = [t for t in (hold.given_up, process.killed_at) if t is not None]
        if (gone and min(gone) <= due) or (hold.lost_at is not None and hold.lost_at <= due):
            continue
        if hold.lost_at is None:
            yield "R4", f"{hold.lock}: {hold} was over at {over}, and its loss was never signalled"
        else:
            late = f"{ms(hold.lost_at - over)} after its end"
            yield "R4", f"{hold.lock}: the loss of {hold} was signalled {late} ({process.name}:{hold.lost_line})"


def finality(history, breaks):
    """R5: what is over stays over: held() is false, no renewal or re-entry is confirmed, whenever it began, and no unlock succeeds.

    An answer, and the signal of a loss, are written down in the order in which the library gave them: one thread, first in, first out.
    Only an end that no one was told of, by the clock, may lie before an answer that was on its way."""
    for hold in history.holds:
        seen_over = [t for _, t, held, _ in hold.looks if not held] + [t for t in (hold.lost_at,) if t is not None]
        end = min(seen_over + [t for t in (hold.over,) if t is not None], default=None)
        if end is None:
            continue
        known = min(end, hold.told_at or end)
        for seen, _, held, line in hold.looks:
            if held and seen > known:
                yield "R5", f"{hold.lock}: {hold} was held {ms(seen - known)} after its end ({hold.process.name}:{line})"
        confirmed_by = min(seen_over + [hold.process.grace(t, UNTOLD) for t in (hold.over,) if t is not None])
        confirmed = [("renewed", t, line) for _, t, line in hold.renewals] + [("re-entered", t, line) for _, t, _, line in hold.reentries]
        for what, t, line in confirmed:
            if t > confirmed_by:
                yield "R5", f"{hold.lock}: {hold} was {what} {ms(t - end)} after its end ({hold.process.name}:{line})"
        for since, until, _, error, line in hold.releases:
            if since > end and until is not None and error is None:
                yield "R5", f"{hold.lock}: {hold} was released {ms(since - end)} after its end ({hold.process.name}:{line})"


def are_of_the_killed(history, members):
    """Whether a key has places of clients that waited alone, and each was killed meanwhile: a place ends by itself, after 30 s."""
    killed = {hold.id.split(":")[0] for hold in history.holds if hold.process.killed_at is not None}
    return bool(members) and killed.issuperset(members)


def residue(history, breaks):
    """R8: afterwards nothing is left on the server."""
    if history.end is None:
        yield "R8", "the campaign did not come to its end"
        return
    # All was quiet for longer than any TTL when the workers were told to end: only one that did not end so leaves a
    # key.
    if all(process.killed_at is not None or process.status == 0 for process in history.processes):
        for key, ttl, members in history.unreleased:
            if not are_of_the_killed(history, members):
                yield "R8", f"the key {key} was left by workers that had ended, with a TTL of {ttl} ms"
    for key, ttl, members in history.residue:
        if not are_of_the_killed(history, members):
            yield "R8", f"the key {key} is left, with a TTL of {ttl} ms"
    if history.end["channels"]:
        yield "R8", f"{history.end['channels']} channels still have subscribers"
    if history.end["connections"]:
        yield "R8", f"{history.end['connections']} connections of clients are left"
