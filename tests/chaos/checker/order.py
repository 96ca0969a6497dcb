# SPDX-License-Identifier: BSL-1.0
"""R9: the order in which those are served who wait for one lock in one client. Between clients there is none that could be promised."""
from collections import defaultdict


def order(history, breaks):
    """Who asked first has it first. Who asks once does not wait; any of several, and all of them, wait in several lines at once."""
    lines = defaultdict(list)
    for operation in history.operations:
        if operation.outcome == "acquired" and operation.wait != 0 and operation.whole is None and len(operation.locks) == 1:
            lines[operation.key, operation.lock].append(operation)
    for served in lines.values():
        served.sort(key=lambda operation: operation.end)
        last = None  # of those that were served: who asked last
        for operation in served:
            if last and last.line > operation.line:
                yield "R9", f"{last} was served before {operation}, which had asked for {operation.lock} of the same client before it"
            else:
                last = operation
