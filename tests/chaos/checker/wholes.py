# SPDX-License-Identifier: BSL-1.0
"""R7: several locks as one. That each of its holds is exclusive, is lost in time, released and gone, the other rules say."""
from .history import MS
from .rules import SIGNAL, known_over, ms


def granted(history):
    """A multi_lock has all or none, and any_of one of those that it was asked for."""
    for hold in history.holds:
        if hold.lock not in hold.of.locks:
            yield "R7", f"{hold} was granted {hold.lock}, and {hold.of} had asked for {hold.of.lock}"
    for whole in history.wholes:
        outcomes = {operation.outcome for operation in whole.operations}
        cut_off = whole.operations[0].process.killed_at is not None and None in outcomes
        if len(outcomes) > 1 and not cut_off:
            yield "R7", f"of {len(whole.operations)} locks that {whole} had asked for it was granted {len(whole.holds)}"


def seen_over(hold):
    """The first instant at which somebody was told so."""
    seen = [t for _, t, held, _ in hold.looks if not held]
    return min(seen + ([hold.lost_at] if hold.lost_at is not None else []), default=None)


def looks(whole, name):
    """It is held while each is, and for as long as each is valid."""
    ends = [end for end in map(seen_over, whole.holds) if end is not None]
    for since, seen, t, valid, held, each, line in whole.looks:
        if held and any(end <= seen for end in ends):
            yield "R7", f"{whole} was held, though one of its holds was over ({name}:{line})"
        elif not held and min(each) > t - since:
            yield "R7", f"{whole} was not held, though each of its holds was ({name}:{line})"
        if valid > min(each):
            yield "R7", f"{whole} was valid for {ms(valid)}, and one of its holds for {ms(min(each))} ({name}:{line})"


def losses(whole, process):
    """It is lost when the first of its holds is."""
    ends = [end for hold in whole.holds for end in (hold.lost_at, known_over(hold)) if end is not None]
    if whole.lost_at is not None:
        if not any(end <= process.grace(whole.lost_at, SIGNAL) for end in ends):
            yield "R7", f"{whole} was lost, and none of its holds was ({process.name}:{whole.lost_line})"
    lost = min((hold.lost_at for hold in whole.holds if hold.lost_at is not None), default=None)
    if lost is None:
        return
    due = process.grace(lost, SIGNAL)
    told = [t for t in (whole.lost_at, whole.holds[0].given_up, process.killed_at) if t is not None]
    if not any(t <= due for t in told):
        yield "R7", f"{whole} was not said to be lost within {ms(SIGNAL)}, though one of its holds was"


def wholes(history, breaks):
    yield from granted(history)
    for whole in history.wholes:
        if whole.holds:
            process = whole.operations[0].process
            yield from looks(whole, process.name)
            yield from losses(whole, process)
