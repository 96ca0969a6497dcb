# SPDX-License-Identifier: BSL-1.0
"""What holds between two versions of holdfast on one name. A kind that one of them does not know is left out.

A new kind gets its rows here: one that holds, waits and wakes, one that renews, one that ends, one that is forced."""
import simple_rows
from redisson_rows import (counts, counts_each_once, forced, killed, one_order, opens_for_both, paused, permits_of_both, reads_on,
                           serves_in_order, wakes, writer_downgrades)
from rows import OURS_FIRST, Row, ends, renews

HASH = ("mutex", "fenced")
TOLD = (*HASH, "multi", "permit", "leader")  # their waiters are woken by a message
SHARED = ("write-read", "read-write", "write-write")  # of the holder, and of the waiter
TABLE = [
    Row("{a} renews over three TTLs, and {b} stays outside", renews, (*TOLD, "simple", "in_order", *SHARED), ("quick",)),
    Row("{a} renews over three TTLs, and {b} stays outside", renews, ("red",), ("three-quick",)),
    Row("{b} waits while {a} holds, and the release wakes it", wakes, (*TOLD, *SHARED), ("one",)),
    Row("{b} waits while {a} holds, and gets the lock after the release", simple_rows.waits, ("simple",), ("one",)),
    Row("{b} waits while {a} holds, and gets the lock after the release", simple_rows.waits, ("red",), ("three",)),
    Row("{a} locks again what it holds, and {b} stays outside until the last unlock", counts, (*HASH, *SHARED), ("one",)),
    Row("{b} gets the lock when {a}'s lease ends, and {a}'s unlock says so", ends, (*TOLD, "simple", "in_order", *SHARED), ("one",)),
    Row("{b} gets the lock when {a}'s lease ends, and {a}'s unlock says so", ends, ("red",), ("three",)),
    Row("{b} breaks the hold of {a} by force, which wakes {a}'s waiter", forced, (*HASH, *SHARED), ("one",)),
    Row("{b} breaks the hold of {a} by force", simple_rows.forced, ("simple", "leader", "in_order"), ("one",)),
    Row("{b} breaks the hold of {a} by force", simple_rows.forced, ("red",), ("three",)),
    Row("{b} gets the lock of a process of {a} that was killed", killed, ("all",), ("quick",)),
    Row("a process of {a} that was paused beyond its lease leaves the lock to {b}", paused, ("all",), ("quick",)),
    Row("tokens grow in one order over {a} and {b}", one_order, ("fenced", "leader"), ("one",), OURS_FIRST),
    Row("{a} reads on when a reader of {b} has ended", reads_on, ("read-write",), ("one",)),
    Row("{a} downgrades its write, and {b} reads beside it", writer_downgrades, ("write-read",), ("one",)),
    Row("{a} and {b} stand in one queue", serves_in_order, ("in_order",), ("one",)),
    Row("{a} and {b} share three permits", permits_of_both, ("permits",), ("one",)),
    Row("{a} counts the last of a latch down, and lets in who waits of {a} and {b}", opens_for_both, ("countdown",), ("one",)),
    Row("each count of many callers of {a} and {b} counts once", counts_each_once, ("countdown",), ("one",), OURS_FIRST),
]
# Two owners of each version pass the lock on among themselves, and to those of the other version.
STRESS = [(kind, "one") for kind in (*HASH, "multi", "simple", "permit", "leader", "in_order", "write-read")] + [("red", "three")]
