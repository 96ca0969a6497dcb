# SPDX-License-Identifier: BSL-1.0
"""When nothing was wrong that could keep an answer of Redis from a process."""
from .history import MS

RECOVERY = 1500 * MS  # the longest pauses before the next attempt to connect and to lock, together
HARMLESS = ("flush scripts", "foreign release", "false messages")
COMMANDS_PASS = HARMLESS + ("lose messages", "kill subscribers", "flush all", "delete locks")


def answers_missed(history, process, begin, end):
    """Whether a command that this process sent in between may have had no answer, or a copy of it may have run later."""
    return any(fault.begin <= end and begin <= fault.end + RECOVERY and fault.worker in (-1, process.worker)
               for fault in history.faults if fault.kind not in COMMANDS_PASS)
