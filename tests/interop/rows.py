# SPDX-License-Identifier: BSL-1.0
"""The shape of a table of rows, and scripts that more than one table has.

A row is a sentence about two sides {a} and {b}, and a script of both: a function of a, b and a lock. It is played for
each kind and place, and with the sides changed over unless it says otherwise."""
import concurrent.futures
import itertools
import time
from typing import Callable, NamedTuple

from agents import encoded

BOTH, OURS_FIRST, THEIRS_FIRST = "both", "ours first", "theirs first"


class Skipped(Exception):
    """This row cannot be played here."""


class Row(NamedTuple):
    sentence: str
    script: Callable
    kinds: tuple
    places: tuple
    ways: str = BOTH
    phases: tuple = (1,)  # rows of one phase are played side by side


class Case(NamedTuple):
    sentence: str
    script: Callable
    sides: tuple
    kind: str
    place: str

    def __str__(self):
        return f"{self.sentence} ({self.kind}, {self.place})"


def cases(table, phase, us, them):
    for row in table:
        ways = {BOTH: ((us, them), (them, us)), OURS_FIRST: ((us, them),), THEIRS_FIRST: ((them, us),)}[row.ways]
        for sides, kind, place in itertools.product(ways, row.kinds, row.places) if phase in row.phases else ():
            yield Case(row.sentence.format(a=sides[0].name, b=sides[1].name), row.script, sides, kind, place)


def renews(a, b, lock):
    """The place's TTL is short. It is long enough for a machine that stands still for two seconds."""
    held, wanted = lock.sides
    holder, waiter = a.owner(held), b.owner(wanted)
    holder.lock()
    end = time.monotonic() + 3 * lock.place.ttl / 1000
    waiting = waiter.begin("lock", "-")
    while time.monotonic() < end:
        assert not waiting.done(), "the waiter got a lock that is held"
        time.sleep(lock.place.ttl / 3000)
        if not a.renews:
            assert holder.renew(lock.place.ttl) == "ok"
    assert holder.unlock()
    waiter.granted(waiting)
    assert waiter.unlock()


def ends(a, b, lock):
    lease = 3_000
    held, wanted = lock.sides
    holder, waiter = a.owner(held), b.owner(wanted)
    began = time.monotonic()
    holder.lock(lease)
    waiter.granted(waiter.begin("lock", "-"))
    assert time.monotonic() - began > 0.95 * lease / 1000, "the lease was cut"
    assert a.finds_out(holder.unlock()), "an unlock after the lease is no success"
    assert a.owner(held).try_lock() == "busy", "a late unlock freed the lock of another"
    assert waiter.unlock()
    lock.wait_until_free()


def stress(a, b, lock, witness, rounds, milliseconds):
    """Owners of both sides count up a number in a file. Returns how often each did.

    Two of each side; one where votes are cast, since several owners of a library split the votes among themselves.
    Readers beside them see the number unchanged while they hold."""
    tokens_file = witness.with_name(witness.name + ".tokens")
    tokens_file.unlink(missing_ok=True)
    witness.write_text("0", encoding="utf-8")
    sides = (a, b) if lock.kind == "red" else (a, a, b, b)
    owners = [side.owner(lock.sides[0]) for side in sides]
    if lock.kind == "write-read":
        owners += [side.owner(lock.sides[1]) for side in sides]
    lasting = [owner.begin("stress", "-", rounds, milliseconds, encoded(witness)) for owner in owners]
    for each in concurrent.futures.as_completed(lasting, milliseconds / 1000 + 120):  # one that fails may keep the lock
        assert each.result().startswith("ok "), each.result()
    done = [int(each.result().removeprefix("ok ")) for each in lasting]
    counted, total = int(witness.read_text(encoding="utf-8")), sum(done[:len(sides)])
    assert counted == total, f"two held it at once: {counted} of {total}"
    if lock.kind == "fenced":
        tokens = [int(line) for line in tokens_file.read_text(encoding="utf-8").split()]
        assert tokens == sorted(set(tokens)) and len(tokens) == total, "a token came twice, or late"
    lock.wait_until_free()
    return done
