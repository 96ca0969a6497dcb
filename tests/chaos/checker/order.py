# SPDX-License-Identifier: BSL-1.0
"""R9: the order in which those are served who wait for one lock in one client. Between clients there is none that could be promised."""
from collections import defaultdict

from .history import MS

GOES_ON = 2000 * MS  # for no longer than that an unlock does which Redis has not confirmed


def order(history, breaks):
    """Who asked first has it first. Who asks once does not wait; any of several, and all of them, wait in several lines at once. An owner
    whose unlock was not confirmed waits for the end of that first, and then stands in line."""
    unconfirmed = defaultdict(list)
    for hold in history.holds:
        unconfirmed[hold.of.key, hold.lock] += [until for _, until, left, error, _ in hold.releases if left == 0 and error]
    lines = defaultdict(list)
    for operation in history.operations:
        where = operation.key, operation.lock
        stands = operation.wait != 0 and operation.whole is None and len(operation.locks) == 1
        delayed = any(until is not None and 0 <= operation.begin - until < GOES_ON for until in unconfirmed[where])
        if operation.outcome == "acquired" and stands and not delayed:
            lines[where].append(operation)
    for served in lines.values():
        served.sort(key=lambda operation: operation.end)
        last = None  # of those that were served: who asked last
        for operation in served:
            if last and last.line > operation.line:
                yield "R9", f"{last} was served before {operation}, which had asked for {operation.lock} of the same client before it"
            else:
                last = operation
