# SPDX-License-Identifier: BSL-1.0
"""A server pushes the changes that another program makes to a lock that is held for long."""
from bisect import bisect_right
from collections import defaultdict

from .history import MS
from .quiet import HARMLESS, RECOVERY, Answers, Quiet
from .rules import SIGNAL, ms

SETTLED = 100 * MS  # after the first renewal, which asks for pushes


def holds_of(history):
    """Those of each lock, in the order of their begins."""
    of_lock = defaultdict(list)
    for hold in history.kept:
        of_lock[hold.lock].append(hold)
    for holds in of_lock.values():
        holds.sort(key=lambda hold: hold.begin)
    return of_lock


def changed_holds(history):
    """(hold, when it was changed, the line of the change), where the hold was long enough for pushes, and nothing kept them away."""
    of_lock, answers, links = holds_of(history), Answers(history), {}
    for lock, since, until, line in history.changes:
        holds = of_lock[lock]
        last = bisect_right([hold.begin for hold in holds], since) - 1
        if last < 0:
            continue
        hold = holds[last]
        process, asked = hold.process, since - hold.ttl // 3 - SETTLED
        over = min((t for t in (hold.given_up, hold.lost_at) if t is not None), default=until)
        if hold.begin > asked or over < since or (hold.given_up is not None and hold.given_up <= until + SIGNAL):
            continue
        if process.killed_at is not None and process.killed_at <= process.grace(until, SIGNAL):
            continue
        if process not in links:
            links[process] = Quiet([(fault.begin, fault.end + RECOVERY) for fault in history.faults
                                    if fault.kind not in HARMLESS and fault.worker in (-1, process.worker)])
        if links[process].during(asked, until + SIGNAL) and answers.due_of_each(process, asked, until):
            yield hold, until, line


def changes(history, breaks):
    """R13: the holder of a lock knows within 50 ms that another program has deleted it."""
    for hold, changed, line in changed_holds(history):
        if hold.lost_at is None or hold.lost_at > hold.process.grace(changed, SIGNAL):
            late = "never" if hold.lost_at is None else f"{ms(hold.lost_at - changed)} later"
            yield "R13", f"{hold.lock}: {hold} was deleted (changes:{line}), and its holder knew {late}"
