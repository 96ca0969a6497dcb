# SPDX-License-Identifier: BSL-1.0
"""When nothing was wrong that could keep an answer of Redis from a process."""
from bisect import bisect_right

from .history import MS

RECOVERY = 1500 * MS  # the longest pauses before the next attempt to connect and to lock, together
HARMLESS = ("flush scripts", "foreign release", "false messages")
COMMANDS_PASS = HARMLESS + ("lose messages", "kill subscribers", "flush all", "delete locks")
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


def faults_of(history, process):
    return [(fault.begin, fault.end + RECOVERY) for fault in history.faults
            if fault.kind not in COMMANDS_PASS and fault.worker in (-1, process.worker)]


def silences(history, longest, process=None):
    """When nobody had an answer: Redis stood still, or the whole machine; or no client of a process: its proxy did, which tells nobody."""
    answers = [t for hold in history.holds if process in (None, hold.process) for t in [hold.begin] + [until for _, until, *_ in hold.releases if until is not None]]
    answers.sort()
    ends = [history.end["t"]] if history.end else []
    return [(a, b) for a, b in zip([0] + answers, answers + ends) if b - a > longest]


class Answers:
    """Whether a process had no reason to miss an answer."""

    def __init__(self, history):
        self.history = history
        self.standstills = silences(history, SILENCE) + [stall for process in history.processes for stall in process.stalls]
        self.quiet = {}

    def due(self, process, begin, end):
        if process not in self.quiet:
            self.quiet[process] = Quiet(faults_of(self.history, process) + self.standstills + silences(self.history, SILENCE_OF_ONE, process))
        return self.quiet[process].during(begin - SILENCE, end)
