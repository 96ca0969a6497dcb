# SPDX-License-Identifier: BSL-1.0
"""When nothing was wrong that could keep an answer of Redis from a process."""
from bisect import bisect_right

from .history import MS

RECOVERY = 1500 * MS  # the longest pauses before the next attempt to connect and to lock, together
HARMLESS = ("flush scripts", "foreign release", "false messages", "kill a sentinel")
FORGETTING = ("restart the server with its data", "restart the server empty", "restart the server with old data", "flush all")
COMMANDS_PASS = HARMLESS + ("lose messages", "kill subscribers", "delete locks", "lose queues")
SILENCE = 20 * MS  # for so long one connection may be silent before it is given up; somebody has an answer every other millisecond

SILENCE_OF_ONE = 40 * MS  # of all clients of a process


def union(intervals):
    joined = []
    for begin, end in sorted(intervals):
        if joined and begin <= joined[-1][1]:
            joined[-1][1] = max(joined[-1][1], end)
        else:
            joined.append([begin, end])
    return joined


class Quiet:
    """When nothing is wrong."""

    def __init__(self, trouble):
        self.trouble = union(trouble)
        self.begins = [begin for begin, _ in self.trouble]

    def during(self, begin, end):
        last = bisect_right(self.begins, end) - 1
        return last < 0 or self.trouble[last][1] < begin


def outages(history, troubles):
    """When too few servers were left, of (when, when it was over, which server; -1: all)."""
    changes = []
    for server in range(history.servers):
        for begin, end in union((begin, end) for begin, end, which in troubles if which in (-1, server)):
            changes += [(begin, 1), (end, -1)]
    most, bad, since = (history.servers - 1) // 2, 0, None
    for t, change in sorted(changes):
        bad += change
        if bad > most and since is None:
            since = t
        elif bad <= most and since is not None:
            yield since, t
            since = None


def without_vote(history, fault):
    """One of several servers that may have forgotten something does not vote for so long."""
    return history.longest_ttl if history.servers > 1 and fault.kind in FORGETTING else 0


def faults_of(history, process):
    """(begin, end, server)"""
    passing = COMMANDS_PASS + (("flush all",) if history.servers == 1 else ())
    return [(fault.begin, fault.end + RECOVERY + without_vote(history, fault), fault.server) for fault in history.faults
            if fault.kind not in passing and fault.worker in (-1, process.worker)]


def silences(history, longest, process=None):
    """When nobody had an answer: Redis stood still, or the whole machine; or no client of a process: its proxy did, which tells nobody.
    Readers share a hold without one."""
    answers = [t for hold in history.holds if process in (None, hold.process) and not hold.of.reads for t in [hold.begin] + [until for _, until, *_ in hold.releases if until is not None]]
    answers.sort()
    ends = [history.end["t"]] if history.end else []
    return [(a, b) for a, b in zip([0] + answers, answers + ends) if b - a > longest]


class Answers:
    """Whether a process had no reason to miss an answer: of a majority of the servers; or of each, since a hold may be that of a bare
    majority, which one server can end."""

    def __init__(self, history):
        self.history = history
        self.standstills = silences(history, SILENCE) + [stall for process in history.processes for stall in process.stalls]
        self.quiet = {}

    def due(self, process, begin, end):
        return self.of(process)[0].during(begin - SILENCE, end)

    def due_of_each(self, process, begin, end):
        return self.of(process)[1].during(begin - SILENCE, end)

    def of(self, process):
        if process not in self.quiet:
            faults = faults_of(self.history, process)
            still = self.standstills + silences(self.history, SILENCE_OF_ONE, process)
            self.quiet[process] = Quiet(list(outages(self.history, faults)) + still), Quiet([(begin, end) for begin, end, _ in faults] + still)
        return self.quiet[process]
