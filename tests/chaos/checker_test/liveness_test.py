# SPDX-License-Identifier: BSL-1.0
"""R6: each call ends in time, and nobody waits for a lock that is free."""
from checker.liveness import hand_overs
from checker_test.story import LOST, MS, TTL, RuleTest, Story


class Liveness(RuleTest):
    def waiter(self, granted, fault=None, **terms):
        story = Story()
        story.hold(10, 5000, token=1)
        story.files["worker-0-1"].append({"t": 4999 * MS, "ev": "look", "hold": 1, "seen": 4999 * MS, "valid": 390, "held": True})
        if fault:
            story.fault(*fault)
        story.hold(granted, granted + 10, token=2, worker=1, asked=100, **terms)
        return story

    def test_a_waiter_gets_what_is_free(self):
        self.keeps(self.waiter(5010))

    def test_a_waiter_of_a_free_lock_is_told(self):
        self.breaks("R6", self.waiter(5700), "waited for 679.0 ms while nobody had it")

    def test_a_waiter_looks_as_often_whatever_its_own_ttl_is(self):
        for ttl in 100, 600:
            for granted, kept in (5350, True), (5360, False):
                found = self.waiter(granted, ttl=ttl).violations()
                self.assertEqual(any("while nobody had it" in text for _, text in found), not kept, found)

    def test_a_fault_excuses_it_for_a_while(self):
        self.keeps(self.waiter(5700, fault=(4500, 4600, "cut", 1)))
        self.breaks("R6", self.waiter(5700, fault=(1000, 1100, "cut", 1)))

    def test_a_planned_failover_leaves_no_lock_that_nobody_holds(self):
        self.keeps(self.waiter(5700, fault=(3500, 3600, "kill a primary")))
        self.keeps(self.waiter(5700, fault=(4500, 4600, "relieve a primary")))
        self.breaks("R6", self.waiter(5700, fault=(3500, 3600, "relieve a primary")))

    def handed_over(self, took, waiter_asked=90, waiter=1, times=1, **stall):
        """So many times, from one worker to another."""
        story = Story()
        for i in range(times):
            at = 10_000 * i
            op = story.hold(at + 10, at + 5000, token=2 * i + 1)
            story.look(op, at + 4999, True, valid=390)
            granted = at + 5001 + took
            story.hold(granted, granted + 100, token=2 * i + 2, worker=waiter, asked=at + waiter_asked, client=1)
            if stall:
                story.add(f"worker-{waiter}-1", granted, "stall", since=int((granted - stall["stalled"]) * MS))
        return story

    def test_a_lock_is_handed_over_at_once(self):
        self.keeps(self.handed_over(49, times=3))
        self.keeps(self.handed_over(51, times=2))
        self.breaks("R6", self.handed_over(51, times=3), "3 of 3 hand-overs took more than 50.0 ms")

    def test_a_process_that_stood_still_took_it_later(self):
        self.keeps(self.handed_over(80, times=3, stalled=40))

    def test_who_came_at_the_last_moment_was_handed_nothing(self):
        self.keeps(self.handed_over(80, times=3, waiter_asked=4990))

    def test_a_hand_over_within_a_client_is_told_from_others(self):
        for waiter, client, where in (0, 0, "in a client"), (0, 1, "between clients"), (1, 0, "between clients"):
            story = Story()
            story.hold(10, 5000, token=1)
            story.hold(5002, 5100, token=2, worker=waiter, client=client, asked=90)
            self.assertEqual(list(hand_overs(story.history())), [("lock-0", where, 1 * MS)])

    def test_hand_overs_while_something_is_wrong_are_not_judged(self):
        story = self.handed_over(80)
        story.fault(4000, 4100, "cut", 1)
        self.assertEqual(list(hand_overs(story.history())), [])
        story = self.handed_over(80)
        story.add("worker-1-1", 5010, "force", op=99, lock="lock-0")
        story.add("worker-1-1", 5011, "forced", op=99, broken=False)
        self.assertEqual(list(hand_overs(story.history())), [])

    def test_a_call_ends_by_its_deadline(self):
        for end, kept in ((190, True), (210, False)):
            story = Story()
            op = story.ask(10, wait=90)
            story.add("worker-0-1", end, "busy", op=op)
            self.keeps(story) if kept else self.breaks("R6", story, "after its deadline")

    def test_a_call_that_was_kept_from_beginning_has_its_time_from_then_on(self):
        for since, end, kept in ((5, 590, True), (5, 610, False), (11, 590, False)):
            story = Story()
            op = story.ask(10, wait=90)
            story.add("worker-0-1", 400, "stall", since=since * MS)
            story.add("worker-0-1", end, "busy", op=op)
            self.keeps(story) if kept else self.breaks("R6", story, "after its deadline")

    def test_a_cancelled_call_ends_at_once(self):
        for end, kept in ((150, True), (170, False)):
            story = Story()
            op = story.ask(10)
            story.add("worker-0-1", 60, "cancel", op=op)
            story.add("worker-0-1", end, "cancelled", op=op, error="Operation canceled")
            self.keeps(story) if kept else self.breaks("R6", story, "after its deadline")

    def test_a_call_that_never_ended_is_told_unless_its_process_was_killed(self):
        for killed in (True, False):
            story = Story()
            story.ask(10)
            if killed:
                story.add("driver", 20, "killed", worker=0, life=1)
            self.keeps(story) if killed else self.breaks("R6", story, "never ended")

    def test_a_body_that_never_began_has_lost_its_lock_and_the_observer_heard_of_it(self):
        for lost_at, told, as_body, broken, kept in ((405, True, True, False, True), (300, True, True, False, False),
                                                     (300, True, True, True, True), (405, False, True, False, False),
                                                     (405, True, False, False, False)):
            story = Story("outside")
            op = story.ask(10, **({"as_body": True} if as_body else {}))
            if told:
                story.told_lost(lost_at)
            if broken:
                story.fault(200, 210, "flush all")
            story.add("worker-0-1", lost_at + 2, "failed", op=op, error=LOST)
            self.keeps(story) if kept else self.breaks("R6", story, "failed: the lock was lost")

    def test_a_release_ends_within_the_command_timeout(self):
        for took, kept in ((170, True), (200, False)):
            story = Story()
            op = story.hold(10, None, token=1)
            story.add("worker-0-1", 20, "release", hold=op, left=0)
            story.add("worker-0-1", 20 + took, "released", hold=op, left=0)
            self.keeps(story) if kept else self.breaks("R6", story, "took 200.0 ms")

    def test_a_reentry_ends_with_its_hold_and_a_renewal_within_the_command_timeout(self):
        for took, kept in ((170, True), (200, False)):
            story = Story()
            story.renew(story.hold(10, 400, token=1), 20, 20 + took)
            self.keeps(story) if kept else self.breaks("R6", story, "the renewal worker-0-1:3 took 200.0 ms")
        for ask, call in ("reenter", "re-entry"), ("renew", "renewal"):
            story = Story()
            getattr(story, ask)(story.hold(10, 400, token=1), 20, None)
            self.breaks("R6", story, f"the {call} worker-0-1:3 never ended")
            story.add("driver", 30, "killed", worker=0, life=1)
            self.keeps(story)

    def test_a_reentry_or_a_renewal_fails_for_want_of_redis_or_of_a_hold_alone(self):
        for error, kept in (("no answer from Redis", True), ("the lease holds nothing", False)):
            story = Story()
            story.fault(15, 20, "cut", 0)
            story.renew(story.hold(10, 60, token=1), 20, 30, error=error)
            self.keeps(story) if kept else self.breaks("R6", story, "the renewal worker-0-1:3 failed: the lease holds nothing")
        story = Story()
        story.fault(15, 20, "cut", 0)
        story.reenter(story.hold(10, 60, token=1), 20, 30, error="no answer from Redis")
        self.breaks("R6", story, "the re-entry worker-0-1:3 failed: no answer from Redis")

    def unanswered(self, call, fault=None, stall=None, until=1000):
        story = Story()
        story.start(0)
        story.chatter(5, until)
        call(story)
        if fault:
            story.fault(*fault)
        if stall:
            story.add("worker-9-1", stall[1], "stall", since=stall[0] * MS)
        return story

    def fail(self, wait, took, ttl=TTL):
        def call(story):
            op = story.ask(400, wait=wait, ttl=ttl)
            story.add("worker-0-1", 400 + took, "failed", op=op, error="no answer from Redis")

        return call

    def test_a_call_that_found_no_answer_was_kept_from_it(self):
        for wait, took, words in (0, 1, ""), (0, 80, ""), (60, 60, ""), (60, 59, "time left"), (-1, 500, "time left"):
            words = words or "nothing was wrong"
            self.breaks("R6", self.unanswered(self.fail(wait, took)), words)
        for wait, took in (0, 80), (60, 60):
            self.keeps(self.unanswered(self.fail(wait, took), fault=(300, 350, "cut", 0)))
            self.breaks("R6", self.unanswered(self.fail(wait, took), fault=(300, 350, "cut", 1)), "nothing was wrong")
            self.keeps(self.unanswered(self.fail(wait, took), stall=(410, 420)))
            self.keeps(self.unanswered(self.fail(wait, took), until=420))

    def test_who_gives_an_answer_little_time_may_miss_it(self):
        self.keeps(self.unanswered(self.fail(59, 59)))
        self.keeps(self.unanswered(self.fail(0, 40, ttl=200)))

    def test_a_release_or_a_renewal_that_found_no_answer_was_kept_from_it(self):
        release = lambda story: story.release(story.hold(400, None), 450, error="not confirmed by Redis")
        renew = lambda story: story.renew(story.hold(400, 500), 420, 450, error="no answer from Redis")
        for call in release, renew:
            self.breaks("R6", self.unanswered(call), "found no answer, and nothing was wrong")
            self.keeps(self.unanswered(call, fault=(300, 350, "cut", 0)))

    def test_a_reentry_takes_its_time_only_if_something_is_wrong(self):
        reenter = lambda story: story.reenter(story.hold(400, 700), 420, 610)
        self.breaks("R6", self.unanswered(reenter), "took 190.0 ms, and nothing was wrong")
        self.keeps(self.unanswered(reenter, fault=(300, 350, "cut", 0)))

    def tried(self, first_ends, waiter=None):
        story = Story()
        story.hold(10, first_ends, worker=1)
        if waiter:
            story.add("worker-2-1", 310, "busy", op=story.ask(290, worker=2, wait=20))
        story.add("worker-0-1", 301, "busy", op=story.ask(300, wait=0))
        return story

    def test_a_try_finds_a_lock_busy_only_if_somebody_may_have_it(self):
        self.keeps(self.tried(299.5))
        self.breaks("R6", self.tried(290), "the call worker-0-1:1 found it busy, and nobody had it")

    def test_a_try_is_refused_while_another_call_of_its_client_waits(self):
        for client, kept in (0, True), (1, False):
            story = Story()
            story.hold(10, 290, worker=1)
            first = story.ask(298, wait=0, client=client)
            story.add("worker-0-1", 300.5, "busy", op=story.ask(300, wait=0))
            story.hold(301.5, 400, worker=1, asked=301)
            story.add("worker-0-1", 302, "busy", op=first)
            self.keeps(story) if kept else self.breaks("R6", story, "found it busy, and nobody had it")
        self.keeps(self.tried(290, waiter=True))

    def test_a_worker_that_did_not_end_is_told(self):
        story = Story()
        story.hold(10, 20, token=1)
        self.breaks("R6", story, "did not end", ended=False)

    def test_a_worker_that_crashed_at_its_end_is_told(self):
        for status in (0, 139):
            story = Story()
            story.hold(10, 20, token=1)
            story.add("driver", 95_000, "ended", worker=0, life=1, status=status)
            self.breaks("R6", story, "did not end as it should: 139") if status else self.keeps(story)
