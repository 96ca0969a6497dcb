# SPDX-License-Identifier: BSL-1.0
"""What holds between holdfast and a library whose lock is one string key, on one server or on a majority of several."""
import time

from rows import OURS_FIRST, THEIRS_FIRST, Row, ends, renews


def waits(a, b, lock):
    holder, waiter = a.owner(lock), b.owner(lock)
    holder.lock()
    assert b.owner(lock).try_lock() == "busy"
    waiting = waiter.begin("lock", "-")
    time.sleep(0.3)  # nothing says that it waits
    assert not waiting.done()
    assert holder.unlock()
    waiter.granted(waiting)
    assert a.owner(lock).try_lock() == "busy"
    assert waiter.unlock()
    lock.wait_until_free()


def forced(a, b, lock):
    holder, breaker = a.owner(lock), b.owner(lock)
    holder.lock()
    assert breaker.force(), "there was a hold"
    breaker.lock()
    assert a.finds_out(holder.unlock())
    assert a.owner(lock).try_lock() == "busy", "a late unlock freed the lock of another"
    assert breaker.unlock()


def server_dies(a, b, lock):
    """All locks live through one death."""
    holds = []
    for first, second in ((a, b), (b, a)):
        each = lock.place.lock(lock.kind)
        holder, waiter = first.owner(each), second.owner(each)
        holder.lock()
        each.wait_until_everywhere()  # before a waiter may get in between
        holds.append((holder, waiter, waiter.begin("lock", "-"), second.owner(each)))
    assert lock.place.rig.ask("kill", lock.place.ports[0]) == ["ok"]
    for holder, waiter, waiting, another in holds:
        assert another.try_lock() == "busy"
        assert not waiting.done()
        assert holder.unlock()
        waiter.granted(waiting)
        assert waiter.unlock()


STAYS = "{a} keeps the lock over three TTLs, and {b} stays outside"
WAITS = "{b} waits while {a} holds, and gets the lock after the release"
ENDS = "{b} gets the lock when {a}'s lease ends, and a late unlock leaves it there"
FORCED = "{b} breaks the hold of {a} by force"
ONE = [
    Row(STAYS, renews, ("simple",), ("quick",)),
    Row(WAITS, waits, ("simple",), ("one",)),
    Row(ENDS, ends, ("simple",), ("one",)),
    Row(FORCED, forced, ("simple",), ("one",), THEIRS_FIRST),
]
# Phase 3 is after a server has died.
SEVERAL = [
    Row(STAYS, renews, ("red",), ("three-quick", "five-quick"), phases=(1, 3)),
    Row(WAITS, waits, ("red",), ("three", "five"), phases=(1, 3)),
    Row(ENDS, ends, ("red",), ("three", "five"), phases=(1, 3)),
    Row(FORCED, forced, ("red",), ("three", "five"), THEIRS_FIRST, (1, 3)),
    Row("a server dies, and each lock stays with its holder, {a} or {b}", server_dies, ("red",), ("three", "five"),
        OURS_FIRST, (2,)),
]
STRESS_ONE = [("simple", "one")]
STRESS_SEVERAL = [("red", "three"), ("red", "five")]  # one server of each is dead by then
