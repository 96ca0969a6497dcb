# SPDX-License-Identifier: BSL-1.0
"""Whether the machine was fast enough to judge what it ran: processes that stood still, and nobody had stopped them."""
from .history import MS, Intervals
from .rules import ms

WORTH_TELLING = 200 * MS
EXCUSED = 1000 * MS
MOST_STOLEN = 3 / 4  # of a run; what is left of it would show too little


def unexplained_stalls(history):
    """(how long, process), for as long as the nemesis did not stop it itself, nor the machine was taken away from it."""
    for process in history.processes:
        stopped = [(fault.begin, fault.end) for fault in history.faults if fault.kind == "stop a worker" and fault.worker == process.worker]
        explained = Intervals(stopped + list(history.stolen))
        for begin, end in process.stalls:
            unexplained = end - begin - explained.within(begin, end)
            if unexplained > WORTH_TELLING:
                yield unexplained, process


def slowness(history):
    """A standstill that is excused must not hide a library that blocks, nor may a run pass in which hardly any time was judged."""
    for stall, process in unexplained_stalls(history):
        if stall > EXCUSED:
            yield f"{process.name} stood still for {ms(stall)}, and nobody had stopped it"
    if history.end:
        begin, end = history.campaign["t"], history.end["t"]
        stolen = history.stolen.within(begin, end)
        if stolen > MOST_STOLEN * (end - begin):
            yield f"a processor was taken away for {ms(stolen)} of {ms(end - begin)}"
