#!/usr/bin/env python3
# SPDX-License-Identifier: BSL-1.0
"""check_history.py FOLDER [ACQUISITIONS]: judges what a campaign left in a folder. Knows nothing of the library but what it promises.

Prints what there was and each violation with the lines that show it (file:line). Exit status 1 if there is any, or if the campaign
was too weak to show one: fewer acquisitions than asked for, fewer than a third of them after a wait, no update lost by the counter
that takes no tokens, no hand-over in quiet times, or nothing of what a campaign is there for; or if the machine was too slow to
judge."""
import sys
from collections import Counter

from checker import history as histories
from checker.changes import changed_holds, changes
from checker.elections import elections, judged_observers
from checker.fairness import fairness, judged_waits
from checker.latches import latches, opened_latches
from checker.liveness import hand_overs, liveness, percentile
from checker.machine import slowness, unexplained_stalls
from checker.order import order
from checker.rules import Breaks, by_lock, claims, counts, exclusion, finality, ms, overlaps, reads, releases, residue, signals, sums, tokens
from checker.sides import sides, waits_of_sides
from checker.wholes import wholes

RULES = (exclusion, reads, claims, counts, releases, tokens, signals, finality, liveness, wholes, order, fairness, sides, residue, sums, latches, elections, changes)
SEVERAL = ("of any_of", "of multi_lock", "of a semaphore", "looks at permits", "of readers", "of writers", "readers beside another client's", "of fair locks")
FAIR = ("judged waits of fair locks",)
WAITS = tuple(f"judged waits of {side}s" for side in histories.SIDES)
ELECTION = ("leaders", "leaders seen")
OF_CAMPAIGN = {"within": ("lost updates", "judged changes", "latches opened", "judged observers", *ELECTION, *WAITS, *FAIR, *SEVERAL),
               "outside": ("lost updates", *ELECTION, *FAIR, *SEVERAL),
               "beside": (*SEVERAL, "latches opened", "of peers"),
               "red": ("lost updates", "votes withheld"),
               "sentinel": (*SEVERAL, "failovers", "lost", "stale writes refused"),
               "cluster": (*SEVERAL, "failovers", "slots moved", "lost", "stale writes refused")}
FAILOVERS = ("kill a primary", "stop a primary", "relieve a primary", histories.UNORDERED)
SHOWN = 10  # violations of each rule


def waited(history):
    """How many holds were asked for while the lock was another's."""
    number = 0
    for holds in by_lock(history.holds).values():
        last_end = last_write = 0
        for hold in holds:
            number += (last_write if hold.of.reads else last_end) > hold.of.begin
            last_end = max(last_end, hold.end)
            if not hold.of.reads:
                last_write = max(last_write, hold.end)
    return number


def readers_together(history):
    """Holds of readers that began while a reader of another client held the lock."""
    number = 0
    for holds in by_lock(hold for hold in history.holds if hold.of.reads).values():
        reading = []
        for hold in holds:
            reading = [other for other in reading if other.end > hold.begin]
            number += any(other.of.key != hold.of.key for other in reading)
            reading.append(hold)
    return number


def lost_updates(history):
    """Writes to the counter that wrote what another had written: both had read the same."""
    written = Counter((hold.lock, wrote) for hold in history.holds for wrote, _ in hold.updates)
    return sum(times - 1 for times in written.values())


def forgotten(history):
    """Holds that were lost before their end, and that a failover may have forgotten."""
    breaks = Breaks(history)
    early = (hold for hold in history.holds if hold.lost_at is not None and hold.lost_at < hold.claims_until)
    return sum(any(since <= hold.lost_at for since, _ in breaks.forgotten(hold)) for hold in early)


def times(took):
    took = sorted(took)
    return f"p50 {ms(percentile(took, 50))}, p99 {ms(percentile(took, 99))}" if took else "none"


def waits_that_count(history):
    """Of readers and writers, in quiet times."""
    waits = [wait for of_lock in waits_of_sides(history).values() for wait in of_lock]
    lasted = {side: [wait.lasted for wait in waits if wait.operation.kind == side] for side in histories.SIDES}
    return {
        **{f"judged waits of {side}s": len(took) for side, took in lasted.items()},
        **{f"waits of {side}s": times(took) for side, took in lasted.items()},
        "writers overtaken": sum(wait.overtaken_by is not None for wait in waits),
    }


def summary(history):
    outcomes = Counter(operation.outcome or "open" for operation in history.operations)
    writes = [accepted for hold in history.holds for _, _, accepted, _ in hold.writes]
    passed_on = {"in a client": [], "between clients": []}
    for _, where, late in hand_overs(history):
        passed_on[where].append(late)
    stalls = [stall for stall, _ in unexplained_stalls(history)]
    return {
        "events": history.events,
        "processes": len(history.processes),
        "acquisitions": len(history.holds),
        "waited": waited(history),
        "of peers": sum(hold.process.foreign for hold in history.holds),
        "of readers": sum(hold.of.reads for hold in history.holds),
        "of writers": sum(hold.of.kind == "writer" for hold in history.holds),
        "readers beside another client's": readers_together(history),
        "of a semaphore": sum(hold.of.capacity > 1 for hold in history.holds),
        "of fair locks": sum(hold.of.fair for hold in history.holds),
        "judged waits of fair locks": sum(1 for _ in judged_waits(history)),
        "looks at permits": history.looks_at_permits,
        "of any_of": sum(len(hold.of.locks) > 1 for hold in history.holds),
        "of multi_lock": sum(hold.of.whole is not None for hold in history.holds),
        "votes withheld": history.votes_withheld,
        "failovers": sum(fault.kind in FAILOVERS for fault in history.faults),
        "slots moved": history.slots_moved,
        "judged changes": sum(1 for _ in changed_holds(history)),
        "latches opened": len(opened_latches(history)),
        "count-downs": sum(call.verb == "count_down" for call in history.latch_calls),
        "count-downs without an answer": sum(call.verb == "count_down" and call.value is None for call in history.latch_calls),
        "leaders": sum(lead.term is not None for lead in history.campaigns),
        "leaders seen": sum(sight.term > 0 for sight in history.sights),
        "judged observers": sum(1 for _ in judged_observers(history)),
        "reentries": sum(len(hold.reentries) for hold in history.holds),
        "forgotten": forgotten(history),
        "lost": sum(hold.lost_at is not None for hold in history.holds),
        "not acquired": {kind: number for kind, number in sorted(outcomes.items()) if kind != "acquired"},
        "forced": len(history.forced),
        "two holders": sum(hold.of.capacity == 1 for _, _, hold in overlaps(history)),
        "updates": sum(len(hold.updates) for hold in history.holds),
        "lost updates": lost_updates(history),
        "stale writes refused": writes.count(False),
        "keys witnessed": sum(len(hold.witnessed) for hold in history.holds),
        "hand-overs": {where: len(took) for where, took in passed_on.items()},
        **{f"hand-overs {where}": times(took) for where, took in passed_on.items()},
        **waits_that_count(history),
        "stolen from the machine": ms(sum(end - begin for begin, end in history.stolen)),
        "stalls nobody made": f"{len(stalls)}, longest {ms(max(stalls, default=0))}",
        "faults": dict(sorted(Counter(fault.kind for fault in history.faults).items())),
    }


def weaknesses(found, campaign, least):
    if found["acquisitions"] < least:
        yield f"only {found['acquisitions']} of {least} acquisitions"
    if 3 * found["waited"] < found["acquisitions"]:
        yield f"only {found['waited']} of {found['acquisitions']} acquisitions waited"
    for what in OF_CAMPAIGN[campaign]:
        if not found[what]:
            yield f"{what}: none"
    for where, number in found["hand-overs"].items():
        if not number:
            yield f"no hand-over {where} could be judged"


def violations(history):
    breaks = Breaks(history)
    return [violation for rule in RULES for violation in rule(history, breaks)]


def wrongs(history):
    """What is wrong with a history, in lines; none if nothing is."""
    shown = Counter()
    for rule, text in violations(history):
        shown[rule] += 1
        if shown[rule] <= SHOWN:
            yield f"{rule} {text}"
    for rule, number in sorted(shown.items()):
        yield f"{rule} was violated {number} times"


def shortcomings(history, found, least):
    """Why a history that shows nothing wrong proves nothing, in lines; none if it does prove something."""
    for text in weaknesses(found, history.campaign["name"], least):
        yield f"too weak: {text}"
    for text in slowness(history):
        yield f"too slow to judge: {text}"


def main(folder, least=0):
    history = histories.read(folder)
    found = summary(history)
    for what, number in found.items():
        print(f"{what}: {number}")
    wrong = [*wrongs(history), *shortcomings(history, found, int(least))]
    print("\n".join(wrong))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
