# SPDX-License-Identifier: BSL-1.0
"""fence_on_servers_test.py FENCE_SQL postgres|mariadb [PROGRAM]: the statements of FENCE_SQL as they stand there, on a private server, in
sessions that write at the same time. Then PROGRAM, which finds the same server. Exit code 77: there is no such server."""
import itertools
import os
import random
import signal
import subprocess
import sys
import threading

import sql_servers
from fence_sql_test import statements_of


class Database:
    """The fence and two accounts, made anew for each case; each session is at the server's default isolation level."""

    def __init__(self, server, statements):
        self.server = server
        self.create, self.check = statements
        self.monitor = server.monitor
        self.used, self.unused = [], []

    def prepare(self):
        for table in "holdfast_fence", "account", "written":
            self.monitor.run(f"DROP TABLE IF EXISTS {table}")
        self.monitor.run(self.create)
        self.monitor.run("CREATE TABLE account (name VARCHAR(9) PRIMARY KEY, amount BIGINT)")
        self.monitor.run("INSERT INTO account VALUES ('ann', 100), ('bob', 100)")
        self.monitor.run("CREATE TABLE written (left_to_ann BIGINT PRIMARY KEY, token BIGINT)")

    def session(self):
        """One that is in no transaction."""
        self.used.append(self.unused.pop() if self.unused else self.server.session())
        return self.used[-1]

    def clean_up(self):
        """Sessions are used again: it takes longer to start one than to try a case."""
        for session in self.used:
            if session.client.poll() is None:
                session.run("ROLLBACK")
                self.unused.append(session)
        self.used = []

    def check_of(self, token, resource="accounts"):
        return self.check.replace(":resource", f"'{resource}'").replace(":token", str(token))

    def passes(self, session, token, resource="accounts"):
        return self.passed(session.run(self.check_of(token, resource)), token)

    def passed(self, rows, token):
        assert rows in ([], [str(token)]), rows
        return rows != []

    def refused_after_reading(self, answer):
        """Without a row or, by MariaDB 11.6 and later, by an error."""
        try:
            return answer() == []
        except sql_servers.Failed as failure:
            return self.server.REPEAT in str(failure)

    def begins_to_check(self, session, token):
        """The check is sent, and waits for the task that has passed."""
        session.send(self.check_of(token))
        self.server.wait_until_blocked(session)

    def amounts(self):
        return [int(a) for a in self.monitor.run("SELECT amount FROM account ORDER BY name")]

    def move(self, session, amount, name):
        session.run(f"UPDATE account SET amount = amount + {amount} WHERE name = '{name}'")

    def seen(self, token):
        """None: the resource has no row yet, and the first to come inserts it."""
        self.clean_up()
        self.prepare()
        if token:
            assert self.passes(self.monitor, token)


def an_older_token_is_refused_and_an_equal_or_newer_one_passes(db):
    session = db.session()
    for token, passes in ((41, True), (41, True), (42, True), (41, False), (42, True), (2**53 - 1, True), (43, False)):
        assert db.passes(session, token) == passes, token


def resources_neither_know_of_each_other_nor_wait(db):
    sessions = {resource: db.session() for resource in ("m", "M", "m ", "l", "n", "µ")}
    for newest in 50, 60:  # without rows, and with them
        for token, (resource, session) in zip(range(newest, 0, -1), sessions.items()):
            session.run("BEGIN")
            assert db.passes(session, token, resource), resource
        for session in sessions.values():
            session.run("COMMIT")


def a_stale_task_of_two_writes_is_done_not_at_all(db):
    older, newer = db.session(), db.session()
    assert db.passes(newer, 42)
    older.run("BEGIN")
    db.move(older, -30, "ann")
    assert not db.passes(older, 41)
    older.run("ROLLBACK")
    assert db.amounts() == [100, 100]


def without_a_transaction_around_it_a_stale_task_is_half_done(db):
    older, newer = db.session(), db.session()
    assert db.passes(older, 41)
    db.move(older, -30, "ann")
    assert db.passes(newer, 42)  # the older holder was paused here
    if db.passes(older, 41):
        db.move(older, 30, "bob")
    assert db.amounts() == [70, 100]


def a_newer_holder_waits_for_the_task_that_has_passed_the_check(db):
    for seen in None, 40, 41:
        db.seen(seen)
        older, newer = db.session(), db.session()
        newer.run("BEGIN")
        older.run("BEGIN")
        assert db.passes(older, 41)
        db.move(older, -30, "ann")
        db.begins_to_check(newer, 42)
        db.move(older, 30, "bob")
        older.run("COMMIT")
        assert db.passed(newer.answer(), 42)
        db.move(newer, 1, "ann")
        newer.run("COMMIT")
        assert db.amounts() == [71, 130]
        assert not db.passes(older, 41)


def a_stale_task_whose_transaction_began_first_waits_and_is_refused(db):
    for seen in None, 40, 41:
        db.seen(seen)
        older, newer = db.session(), db.session()
        older.run("BEGIN")
        older.run("SELECT * FROM account, holdfast_fence")  # from here on MariaDB would show it the past
        db.move(older, -30, "bob")
        newer.run("BEGIN")
        assert db.passes(newer, 42)
        db.move(newer, -10, "ann")
        db.begins_to_check(older, 41)
        newer.run("COMMIT")
        assert db.refused_after_reading(older.answer)
        older.run("ROLLBACK")
        assert db.amounts() == [90, 100]


def a_stale_task_is_refused_by_what_was_committed_after_its_first_read(db):
    db.seen(41)
    older, newer = db.session(), db.session()
    older.run("BEGIN")
    assert older.run("SELECT token FROM holdfast_fence") == ["41"]
    assert db.passes(newer, 42)
    assert db.refused_after_reading(lambda: older.run(db.check_of(41)))


def a_newer_task_that_ends_without_its_writes_fences_nobody_off(db):
    def rolled_back(session):
        session.run("ROLLBACK")

    def cut_off(session):
        session.client.kill()
        session.client.wait()

    for seen, end in itertools.product((None, 40), (rolled_back, cut_off)):
        db.seen(seen)
        older, newer = db.session(), db.session()
        newer.run("BEGIN")
        assert db.passes(newer, 42)
        db.move(newer, -10, "ann")
        older.run("BEGIN")
        db.begins_to_check(older, 41)
        end(newer)
        assert db.passed(older.answer(), 41)
        db.move(older, -30, "ann")
        older.run("COMMIT")
        assert db.amounts() == [70, 100]


def a_task_that_stops_within_its_transaction_is_in_the_way_no_longer_than_the_server_lets_it(db):
    older, newer = db.session(), db.session()
    older.run("BEGIN")
    assert db.passes(older, 41)
    db.move(older, -30, "ann")
    older.send(db.server.SHORT_PATIENCE)  # whether its answer comes before the connection is closed does not matter
    newer.run("BEGIN")
    assert db.passes(newer, 42)
    db.move(newer, -10, "ann")
    newer.run("COMMIT")
    assert db.amounts() == [90, 100]
    older.client.kill()
    older.client.wait()


def at_any_other_isolation_level_a_check_that_waited_is_decided_or_repeated(db):
    def again(session, token, level):
        """What the check that has waited says; the second one, if the server asks to repeat the transaction."""
        try:
            return db.passed(session.answer(), token)
        except sql_servers.Failed as failure:
            assert db.server.REPEAT in str(failure), failure
            session.run("ROLLBACK")
            session.run(db.server.BEGIN.format(level))
            return db.passes(session, token)

    for level, seen in itertools.product(db.server.OTHER_LEVELS, (None, 40)):
        for first, second in (41, 42), (42, 41):
            db.seen(seen)
            earlier, later = db.session(), db.session()
            for session in earlier, later:
                session.run(db.server.BEGIN.format(level))
            assert db.passes(earlier, first)
            db.move(earlier, -30, "ann")
            db.begins_to_check(later, second)
            earlier.run("COMMIT")
            assert again(later, second, level) == (second > first), (level, first)


def of_many_at_once_the_writes_that_are_taken_are_in_the_order_of_the_tokens(db):
    workers, tasks = 6, 30
    newest, failures = itertools.count(1), []
    passed = [0] * workers

    def work(index, session):
        chance = random.Random(index)
        try:
            for _ in range(tasks):
                token = max(1, next(newest) - chance.randrange(4))
                session.run("BEGIN")
                if not db.passes(session, token):
                    session.run("ROLLBACK")
                    continue
                db.move(session, -1, "ann")
                session.run(f"INSERT INTO written SELECT amount, {token} FROM account WHERE name = 'ann'")
                db.move(session, 1, "bob")
                session.run("COMMIT")
                passed[index] += 1
        except BaseException as failure:
            failures.append(failure)

    threads = [threading.Thread(target=work, args=(i, db.session())) for i in range(workers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures, failures
    taken = [int(token) for token in db.monitor.run("SELECT token FROM written ORDER BY left_to_ann DESC")]
    assert taken == sorted(taken), taken
    assert len(taken) == sum(passed) > 0
    assert db.amounts() == [100 - len(taken), 100 + len(taken)]
    print(f"  {len(taken)} of {workers * tasks} tasks were taken")


CASES = (
    an_older_token_is_refused_and_an_equal_or_newer_one_passes,
    resources_neither_know_of_each_other_nor_wait,
    a_stale_task_of_two_writes_is_done_not_at_all,
    without_a_transaction_around_it_a_stale_task_is_half_done,
    a_newer_holder_waits_for_the_task_that_has_passed_the_check,
    a_stale_task_whose_transaction_began_first_waits_and_is_refused,
    a_stale_task_is_refused_by_what_was_committed_after_its_first_read,
    a_newer_task_that_ends_without_its_writes_fences_nobody_off,
    a_task_that_stops_within_its_transaction_is_in_the_way_no_longer_than_the_server_lets_it,
    at_any_other_isolation_level_a_check_that_waited_is_decided_or_repeated,
    of_many_at_once_the_writes_that_are_taken_are_in_the_order_of_the_tokens,
)


def main(path, kind, *program):
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # by way of `finally`
    with sql_servers.running(sql_servers.KINDS[kind]) as server:
        print(server.monitor.run("SELECT version()")[0])
        for setting in server.SETTINGS:
            print(setting)
            server.monitor.run(setting)
            db = Database(server, statements_of(path))
            for case in CASES:
                print(case.__name__.replace("_", " "), flush=True)
                db.prepare()
                case(db)
                db.clean_up()
        if program:
            sys.exit(subprocess.run(program, env={**os.environ, **server.environment()}, check=False).returncode)


main(*sys.argv[1:])
