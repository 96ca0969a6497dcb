# SPDX-License-Identifier: BSL-1.0
"""What holds between holdfast and Redisson on one name. A row is a sentence about {a} and {b}, and a script of both."""

KINDS = ("mutex", "fenced", "multi")


def wakes(a, b, lock):
    holder, waiter = a.owner(lock), b.owner(lock)
    holder.lock()
    assert b.owner(lock).try_lock() == "busy"
    waiting = waiter.begin("lock", "-")
    lock.wait_for_waiter()
    assert holder.unlock()
    assert waiting.result(60).startswith("ok")
    assert a.owner(lock).try_lock() == "busy"
    assert waiter.unlock()
    lock.wait_until_free()


ROWS = [
    ("{b} waits while {a} holds, and the release wakes it", wakes, KINDS, ("one",)),
]
