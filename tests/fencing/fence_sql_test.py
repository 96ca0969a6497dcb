# SPDX-License-Identifier: BSL-1.0
"""fence_sql_test.py FENCE_SQL CASE: the statements of fence.sql as they stand there, on SQLite, one case at a time."""
import os
import re
import sqlite3
import sys
import tempfile


class Database:
    """Connections to one file, with the fence and two accounts."""

    def __init__(self, script, folder):
        self.script = script
        self.create, self.check = statements_of(script)
        self.path = os.path.join(folder, "accounts.db")
        setup = self.connect()
        setup.execute(self.create)
        setup.execute("CREATE TABLE account (name TEXT PRIMARY KEY, amount INTEGER)")
        setup.execute("INSERT INTO account VALUES ('ann', 100), ('bob', 100)")

    def connect(self):
        return sqlite3.connect(self.path, timeout=0, isolation_level=None)

    def passes(self, connection, token, resource="accounts"):
        return connection.execute(self.check, {"resource": resource, "token": token}).fetchone() is not None

    def amounts(self):
        return dict(self.connect().execute("SELECT name, amount FROM account"))

    def move(self, connection, amount, name):
        connection.execute("UPDATE account SET amount = amount + ? WHERE name = ?", (amount, name))


def statements_of(path):
    """What creates the table, and the check."""
    with open(path, encoding="utf-8") as file:
        text = "".join(line for line in file if not line.lstrip().startswith("--"))
    create, check = text.strip().rstrip(";").split(";", 1)
    return create, check.strip()


def an_older_token_is_refused_and_an_equal_or_newer_one_passes(db):
    c = db.connect()
    for token, passes in ((41, True), (41, True), (42, True), (41, False), (42, True), (2**53 - 1, True), (43, False)):
        assert db.passes(c, token) == passes, token


def resources_do_not_know_of_each_other(db):
    c = db.connect()
    assert db.passes(c, 42, "a")
    assert db.passes(c, 41, "b")
    assert not db.passes(c, 41, "a")


def a_stale_task_of_two_writes_is_done_not_at_all(db):
    older, newer = db.connect(), db.connect()
    assert db.passes(newer, 42)
    older.execute("BEGIN IMMEDIATE")
    db.move(older, -30, "ann")
    assert not db.passes(older, 41)
    older.execute("ROLLBACK")
    assert db.amounts() == {"ann": 100, "bob": 100}


def without_a_transaction_around_it_a_stale_task_is_half_done(db):
    older, newer = db.connect(), db.connect()
    assert db.passes(older, 41)
    db.move(older, -30, "ann")
    assert db.passes(newer, 42)  # the older holder was paused here
    if db.passes(older, 41):
        db.move(older, 30, "bob")
    assert db.amounts() == {"ann": 70, "bob": 100}


def a_newer_holder_waits_for_the_task_that_has_passed_the_check(db):
    older, newer = db.connect(), db.connect()
    older.execute("BEGIN IMMEDIATE")
    assert db.passes(older, 41)
    db.move(older, -30, "ann")
    try:
        newer.execute("BEGIN IMMEDIATE")
        raise AssertionError("the newer holder did not wait")
    except sqlite3.OperationalError as busy:
        assert "locked" in str(busy)
    db.move(older, 30, "bob")
    older.execute("COMMIT")
    newer.execute("BEGIN IMMEDIATE")
    assert db.passes(newer, 42)
    newer.execute("COMMIT")
    assert db.amounts() == {"ann": 70, "bob": 130}


def the_check_in_cpp_is_the_same(db):
    with open(os.path.join(os.path.dirname(db.script), "fenced_transaction.hpp"), encoding="utf-8") as file:
        literals = re.search(r"check =\s*((?:\"[^\"]*\"\s*)+);", file.read())[1]
    check = " ".join(db.check.replace(":resource", "$1").replace(":token", "$2").split()).rstrip(";")
    assert "".join(re.findall(r'"([^"]*)"', literals)) == check


def main(path, case):
    with tempfile.TemporaryDirectory() as folder:
        globals()[case](Database(path, folder))


if __name__ == "__main__":
    main(*sys.argv[1:])
