# SPDX-License-Identifier: BSL-1.0
"""What holds between holdfast and Redisson on one name."""
import signal
import time

from agents import LIMIT, Owner
from places import wait_for
from rows import OURS_FIRST, THEIRS_FIRST, Row, Skipped, ends, renews

ALL = ("mutex", "fenced", "multi")
COUNTED = ("mutex", "fenced")
SHARED = ("write-read", "read-write", "write-write")  # of the holder, and of the waiter
EVERYWHERE = ("one", "sentinel", "cluster", "cluster-both")
ANY_BYTES = ("{", "}", "{}", "}{", "a{b", "a}b", "{a}{b}", "{{a}}", "a{}b", "{a", "a b", "a\nb", "a\r\nb", "\t", "\0", "'\"",
             "\\", "%41", "+", "*", "?[a]", "ü", "日本", "🔒", "\ufeff", "x" * 5000, "redisson_lock__channel:{a}")
ONE_TAG = ("{a}", "a{b}c", "{a}:42", "{a}\0", "ü{日本}🔒", "a b", "a\nb", "x" * 5000)


def wakes(a, b, lock):
    """A reader of Redisson that is about to wait misses the end of a write, and asks again when the TTL ends."""
    held, wanted = lock.sides
    holder, waiter = a.owner(held), b.owner(wanted)
    holder.lock()
    assert b.owner(wanted).try_lock() == "busy"
    waiting = waiter.begin("lock", "-")
    lock.wait_for_waiter()
    assert holder.unlock()
    waiter.granted(waiting)
    assert a.owner(held).try_lock() == "busy"
    assert waiter.unlock()
    lock.wait_until_free()


def any_name(a, b, lock, script=wakes):
    for name in ONE_TAG if lock.place.topology == "cluster" else ANY_BYTES:
        try:
            script(a, b, lock.place.lock(lock.kind, lock.name + name))
        except AssertionError as failure:
            raise AssertionError(f"{name!r}: {failure}") from failure


def counts(a, b, lock):
    held, wanted = lock.sides
    holder = a.owner(held)
    for _ in range(3):
        holder.lock()
    # A read hold of holdfast counts as one, whoever shares it.
    wait_for("a count of 3", lambda: lock.hold_count() == (1 if a.ours and held.kind == "read" else 3))
    for _ in range(2):
        assert holder.unlock()
        assert b.owner(wanted).try_lock() == "busy"
    assert holder.unlock()
    waiter = b.owner(wanted)
    waiter.lock()
    assert waiter.unlock()


def one_order(a, b, lock):
    tokens = []
    for _ in range(25):
        for side in (a, b):
            owner = side.owner(lock)
            tokens.append(owner.lock())
            assert owner.unlock()
    assert tokens == sorted(set(tokens)), tokens


def forced(a, b, lock):
    held, wanted = lock.sides
    holder, waiter = a.owner(held), a.owner(wanted)
    holder.lock()
    waiting = waiter.begin("lock", "-")
    lock.wait_for_waiter()
    assert b.owner(held).force(), "there was a hold"
    waiter.granted(waiting)
    assert not holder.unlock()
    assert b.owner(held).try_lock() == "busy"
    assert waiter.unlock()
    assert not b.owner(held).force(), "there was none"


def held_and_waited_for(agent, other, place):
    """A lock of each kind: [lock, its holder, a waiter, the waiter's future]."""
    holds = []
    for kind in (*ALL, *SHARED):
        lock = place.lock(kind)
        held, wanted = lock.sides
        holder, waiter = Owner(agent, held), other.owner(wanted)
        holder.lock()
        holds.append((lock, holder, waiter, waiter.begin("lock", "-")))
        lock.wait_for_waiter()
    return holds


def killed(a, b, lock):
    with a.victim.alone:
        holds = held_and_waited_for(a.victim, b, lock.place)
        a.victim.kill()
    for _, _, waiter, waiting in holds:
        waiter.granted(waiting)
        assert waiter.unlock()


def paused(a, b, lock):
    with a.victim.alone:
        holds = held_and_waited_for(a.victim, b, lock.place)
        a.victim.signal(signal.SIGSTOP)
        try:
            for _, _, waiter, waiting in holds:
                waiter.granted(waiting)
        finally:
            a.victim.signal(signal.SIGCONT)
        assert not any(holder.unlock() for _, holder, _, _ in holds)
    for each, _, waiter, _ in holds:
        assert a.owner(each.sides[0]).try_lock() == "busy", "a late unlock freed the lock of another"
        assert waiter.unlock()
        each.wait_until_free()


def asks_again(a, b, lock):
    """A spin lock neither publishes nor subscribes, and a fair lock has channels of its own."""
    holder, waiter = a.owner(lock), b.owner(lock)
    holder.lock()
    waiting = waiter.begin("lock", "-")
    time.sleep(0.2)
    assert not waiting.done()
    assert holder.unlock()
    waiter.granted(waiting)
    assert waiter.unlock()


def other_messages(a, b, lock):
    if not isinstance(lock.place.ask("PUBSUB", "SHARDNUMSUB")[0], list):
        raise Skipped("this server has no sharded messages")
    held, wanted = lock.sides
    holder, waiter = a.owner(held), b.owner(wanted)
    holder.lock()
    waiting = waiter.begin("lock", "-")
    lock.wait_for_waiter()
    assert lock.waiters("NUMSUB" if b.ours else "SHARDNUMSUB") > 0
    assert lock.waiters("SHARDNUMSUB" if b.ours else "NUMSUB") == 0
    assert holder.unlock()
    waiter.granted(waiting)
    assert waiter.unlock()


def data(b, lock):
    """What Redisson's object of this name has."""
    return b.owner(lock).ask("look")


def other_kind_keeps_out(a, b, lock):
    """The hash of another kind is waited for, and left alone."""
    holder, other = a.owner(lock), b.owner(lock.of("mutex"))
    assert holder.try_lock() == "ok"
    assert other.try_lock() == "busy"
    assert other.ask("holder") == "corrupt" and other.ask("force") == "corrupt"
    assert b.owner(lock.place.lock("simple", lock.name)).ask("try", "-") == "corrupt"
    waiting = other.begin("lock", "-")
    assert holder.unlock()
    other.granted(waiting)
    assert other.unlock()


def other_kind_comes_in(a, b, lock):
    """The hash has no field `mode`: it is free for Redisson's read-write lock."""
    holder, other = a.owner(lock.of("mutex")), b.owner(lock)
    holder.lock()
    assert other.try_lock() == "ok", "the names of a mutex and of a read-write lock do not exclude each other"
    wait_for("a renewal that finds the other's field", lambda: all(len(fields) == 4 for fields in
                                                                   lock.place.ask("HGETALL", lock.name)))
    assert not holder.unlock()
    assert other.unlock()
    lock.wait_until_free()


def mutex_keeps_out(a, b, lock):
    """A shared mutex waits for the hash of a mutex, and a mutex for that of a shared mutex. No message tells of it."""
    holder, other = a.owner(lock.of("mutex")), b.owner(lock)
    holder.lock()
    assert other.try_lock() == "busy"
    waiting = other.begin("lock", "-")
    lock.wait_for_waiter()
    assert holder.unlock()
    other.granted(waiting)
    assert holder.try_lock() == "busy"
    assert other.unlock()
    lock.wait_until_free()


def writer_reads(a, b, lock):
    """An owner that writes may read as well. The write ends last."""
    write, read = lock.sides
    writer, reader = a.owner(write), b.owner(read)
    writer.lock()
    writer.at(read).lock()
    waiting = reader.begin("lock", "-")
    lock.wait_for_waiter()
    assert b.owner(write).try_lock() == "busy"
    assert writer.at(read).unlock()
    assert b.owner(read).try_lock() == "busy", "the end of the read ended the write"
    assert writer.unlock()
    reader.granted(waiting)
    assert reader.unlock()
    lock.wait_until_free()


def writer_goes_on_reading(a, b, lock):
    """Redisson's downgrade: the writer reads, and ends its write first. No message tells of it."""
    write, read = lock.sides
    writer, reader = a.owner(write), b.owner(read)
    writer.lock()
    writer.at(read).lock()
    waiting = reader.begin("lock", "-")
    lock.wait_for_waiter()
    assert writer.unlock()
    reader.granted(waiting)
    assert b.owner(write).try_lock() == "busy"
    assert writer.at(read).unlock()
    assert a.owner(write).try_lock() == "busy", "the end of one read ended the other"
    assert reader.unlock()
    lock.wait_until_free()


def writer_downgrades(a, b, lock):
    """Our downgrade(): the write lease becomes a read lease, and waiting readers are told."""
    write, read = lock.sides
    writer, reader = a.owner(write), b.owner(read)
    writer.lock()
    waiting = reader.begin("lock", "-")
    lock.wait_for_waiter()
    assert writer.ask("downgrade") == "ok"
    reader.granted(waiting)
    assert b.owner(write).try_lock() == "busy"
    assert writer.unlock()
    assert b.owner(write).try_lock() == "busy", "the end of one read ended the other"
    assert reader.unlock()
    lock.wait_until_free()


def reads_on(a, b, lock):
    """Two readers at once. The end of one leaves the lock to the other."""
    read, write = lock.sides
    reader, other = a.owner(read), b.owner(read)
    reader.lock()
    other.lock()
    assert other.unlock()
    for side in (a, b):
        assert side.owner(write).try_lock() == "busy", "the end of one read ended the other"
    waiter = b.owner(write)
    waiting = waiter.begin("lock", "-")
    lock.wait_for_waiter()
    assert reader.unlock(), "the end of one read ended the other"
    waiter.granted(waiting)
    assert waiter.unlock()
    lock.wait_until_free()


def reads_on_under_any_name(a, b, lock):
    any_name(a, b, lock, reads_on)


def reads_on_after_death(a, b, lock):
    """A reader that was killed keeps nobody out for longer than its lease, once the reader beside it has ended."""
    read, write = lock.sides
    with a.victim.alone:
        Owner(a.victim, read).lock()
        reader, waiter = b.owner(read), b.owner(write)
        reader.lock()
        a.victim.kill()
    waiting = waiter.begin("lock", "-")
    end = time.monotonic() + 2 * lock.place.ttl / 1000
    while time.monotonic() < end:
        assert not waiting.done(), "the writer got a lock that is read"
        time.sleep(lock.place.ttl / 6000)
    assert reader.unlock()
    waiter.granted(waiting)
    assert waiter.unlock()
    lock.wait_until_free()


def data_is_left_alone(a, b, lock):
    a.owner(lock).ask("use")
    before, other, simple = data(a, lock), b.owner(lock), b.owner(lock.place.lock("simple", lock.name))
    assert [other.ask("try", "-"), other.ask("lock", "-"), other.ask("holder"), other.ask("force"),
            simple.ask("try", "-"), simple.ask("lock", "-")] == ["corrupt"] * 6
    assert data(a, lock) == before and not before.startswith("error")


def data_is_refused(a, b, lock):
    holder = a.owner(lock)
    holder.lock()
    reply = b.owner(lock).ask("use")
    assert reply == "no" if lock.kind == "latch" else "WRONGTYPE" in reply, reply
    assert "WRONGTYPE" in data(b, lock)
    assert holder.unlock()
    lock.wait_until_free()


def data_ends_the_lease(a, b, lock):
    holder = a.owner(lock)
    holder.lock()
    assert b.owner(lock).ask("use") == "ok"
    if lock.kind == "map":
        wait_for("a renewal that finds the data", lambda: lock.place.ask("HLEN", lock.name) == [1])
        assert lock.place.ask("PTTL", lock.name)[0] > 0, "the map has our TTL"
    assert holder.ask("unlock") in ("lost", "corrupt"), "a renewal finds out, or the unlock"
    assert data(b, lock) == "data"


def failover(a, b, lock):
    holds = held_and_waited_for(a.agent, b, lock.place) + held_and_waited_for(b.agent, a, lock.place)
    assert lock.place.rig.ask("failover") == ["ok"]
    for each, holder, waiter, waiting in holds:
        assert Owner(waiter.agent, waiter.target).try_lock() == "busy"
        assert not waiting.done()
        each.wait_for_waiter()
        assert holder.unlock()
        waiter.granted(waiting)
        assert waiter.unlock()


def permits_of_both(a, b, lock):
    """Three permits: what is left and what is out are three all the time."""
    sides = [a.owner(lock), b.owner(lock)]
    for side in (0, 1, 0):
        assert sides[side].try_lock() == "ok"
    assert lock.permits() == (0, 3)
    assert [side.try_lock() for side in sides] == ["busy", "busy"]
    waiter = b.owner(lock)
    waiting = waiter.begin("lock", "-")
    lock.wait_for_waiter()
    assert sides[0].unlock()
    waiter.granted(waiting)
    assert lock.permits() == (0, 3)
    for owner in (sides[0], sides[1], waiter):
        assert owner.unlock()
    assert lock.permits() == (3, 0)


def serves_in_order(a, b, lock):
    """One queue of both sides: each gets the lock in the order in which it came."""
    holder, waiting = a.owner(lock), []
    holder.lock()
    for place, side in enumerate((b, a, b, a), 1):
        owner = side.owner(lock)
        waiting.append((owner, owner.begin("lock", "-")))
        wait_for("a place in the queue", lambda: lock.place.ask("LLEN", f"redisson_lock_queue:{{{lock.name}}}") == [place])
    assert holder.unlock()
    for number, (owner, granted) in enumerate(waiting, 1):
        owner.granted(granted)
        assert not any(later.done() for _, later in waiting[number:]), "a later one was served before"
        assert owner.unlock()
    lock.wait_until_free()


def opens_for_both(a, b, lock):
    """The first to set a latch sets it. Its waiters of both sides wait for the last count of either."""
    counter, other = a.owner(lock), b.owner(lock)
    assert [counter.ask("set", 3), other.ask("set", 5)] == ["yes", "no"]
    waiting = [side.owner(lock).begin("wait") for side in (a, b)]
    wait_for("a waiter of each side", lambda: lock.waiters("NUMSUB") + lock.waiters("SHARDNUMSUB") >= 2)
    assert [counter.ask("down"), other.ask("down")] == ["ok", "ok"]
    assert [counter.ask("left"), other.ask("left")] == ["1", "1"]
    assert not any(each.done() for each in waiting)
    assert counter.ask("down") == "ok"
    assert [each.result(LIMIT) for each in waiting] == ["ok", "ok"]
    assert [counter.ask("left"), other.ask("left"), other.ask("down"), other.ask("left")] == ["0", "0", "ok", "0"]
    lock.wait_until_free()


def opens_under_any_name(a, b, lock):
    any_name(a, b, lock, opens_for_both)


def counts_each_once(a, b, lock):
    """Many count down at once, on both sides."""
    each = 60
    assert a.owner(lock).ask("set", 2 * each + 1) == "yes"
    waiting = [side.owner(lock).begin("wait") for side in (a, b)]
    counted = [side.owner(lock).begin("down") for side in (a, b) for _ in range(each)]
    assert {each.result(LIMIT) for each in counted} == {"ok"}
    assert b.owner(lock).ask("left") == "1"
    assert not any(each.done() for each in waiting)
    assert b.owner(lock).ask("down") == "ok"
    assert [each.result(LIMIT) for each in waiting] == ["ok", "ok"]
    lock.wait_until_free()


READ_WRITE = ("read", "write")
DATA = ("semaphore", "latch", "bucket", "map")
TABLE = [
    Row("{a} renews over three TTLs, and {b} stays outside", renews, ALL, ("quick",)),
    Row("{b} waits while {a} holds, and the release wakes it", wakes, ALL, EVERYWHERE),
    Row("{a} renews a permit, and {b} waits for it", renews, ("permit",), ("quick",)),
    Row("{b} waits for a permit of {a}, and its release wakes it", wakes, ("permit",), ("one", "cluster")),
    Row("{b} gets the permit of {a} when its lease ends, and {a}'s release says so", ends, ("permit",), ("one",)),
    Row("{a} renews its side over three TTLs, and {b} waits for the other", renews, SHARED, ("quick",)),
    Row("{a} reads on when a reader of {b} has ended", reads_on, ("read-write",), EVERYWHERE),
    Row("{b} reads on beside a reader of {a} that was killed, and then the lock is free", reads_on_after_death, ("read-write",),
        ("quick",)),
    Row("{b} waits while {a} has its side, and the release wakes it", wakes, SHARED, EVERYWHERE),
    Row("{a} locks its side again, and {b} stays outside until the last unlock", counts, SHARED, ("one", "cluster")),
    Row("{a} reads what it writes, and {b} stays outside until the write ends", writer_reads, ("write-read",), ("one", "cluster")),
    Row("{a} goes on reading when its write ends, and {b} reads beside it", writer_goes_on_reading, ("write-read",),
        ("one", "cluster"), THEIRS_FIRST),
    Row("{a} downgrades its write, and {b} reads beside it", writer_downgrades, ("write-read",), ("one", "cluster"), OURS_FIRST),
    Row("{b} gets its side when {a}'s lease ends, and {a}'s unlock says so", ends, SHARED, ("one",)),
    Row("{b} breaks the hold of {a}'s side by force, which wakes {a}'s waiter", forced, SHARED, EVERYWHERE),
    Row("a name of any bytes is one read-write lock for {a} and {b}", any_name, SHARED[:2], ("one", "cluster")),
    Row("under a name of any bytes {a} reads on when a reader of {b} has ended", reads_on_under_any_name, ("read-write",),
        ("one", "cluster")),
    Row("{a} renews its turn, and {b} waits for it", renews, ("in_order",), ("quick",)),
    Row("{b} gets the turn of {a} when its lease ends, and {a}'s unlock says so", ends, ("in_order",), ("one",)),
    Row("{a} and {b} stand in one queue", serves_in_order, ("in_order",), ("one",)),
    Row("{a} and {b} share three permits", permits_of_both, ("permits",), ("one", "cluster")),
    Row("{a} counts the last of a latch down, and lets in who waits of {a} and {b}", opens_for_both, ("countdown",), EVERYWHERE),
    Row("a name of any bytes is one latch for {a} and {b}", opens_under_any_name, ("countdown",), ("one",), OURS_FIRST),
    Row("each count of many callers of {a} and {b} counts once", counts_each_once, ("countdown",), ("one", "cluster"), OURS_FIRST),
    Row("{a} locks again what it holds, and {b} stays outside until the last unlock", counts, COUNTED, ("one", "cluster")),
    Row("{b} gets the lock when {a}'s lease ends, and {a}'s unlock says so", ends, ALL, ("one",)),
    Row("{b} breaks the hold of {a} by force, which wakes {a}'s waiter", forced, COUNTED, EVERYWHERE),
    Row("{b} gets the lock of a process of {a} that was killed", killed, ("all",), ("quick",)),
    Row("a process of {a} that was paused beyond its lease leaves the lock to {b}", paused, ("all",), ("quick",)),
    Row("tokens grow in one order over {a} and {b}", one_order, ("fenced",), ("one", "sentinel", "cluster"), OURS_FIRST),
    Row("a name of any bytes is one lock for {a} and {b}", any_name, COUNTED, ("one", "cluster")),
    Row("{b} waits for {a} without a message", asks_again, ("spin", "fair"), ("quick",)),
    Row("with classic messages {a} does not wake {b}, which asks again", other_messages, (*COUNTED, *SHARED),
        ("cluster-classic",)),
    Row("a mutex of {b} waits for a read-write lock of {a}", other_kind_keeps_out, READ_WRITE, ("quick",), THEIRS_FIRST),
    Row("a read-write lock of {b} ends a lease of {a}", other_kind_comes_in, READ_WRITE, ("quick",), OURS_FIRST),
    Row("a shared mutex of {b} waits for a mutex of {a}", mutex_keeps_out, READ_WRITE, ("quick",), THEIRS_FIRST),
    Row("a mutex of {b} leaves data of {a} alone", data_is_left_alone, DATA, ("quick",), THEIRS_FIRST),
    Row("a lease of {a} keeps out data of {b}", data_is_refused, ("semaphore", "latch"), ("quick",), OURS_FIRST),
    Row("data of {b} ends a lease of {a}", data_ends_the_lease, ("bucket", "map"), ("quick",), OURS_FIRST),
    Row("a failover leaves each lock to its holder, of {a} or of {b}", failover, ("all",), ("sentinel",), OURS_FIRST, (2,)),
]
STRESS = [(kind, place) for kind in (*ALL, "permit", "write-read") for place in ("one", "cluster")]
