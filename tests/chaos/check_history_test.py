# SPDX-License-Identifier: BSL-1.0
"""The checker's own tests: for each rule a history by hand that keeps it, and the same history with one thing changed that breaks it."""
import io
import sys
import tempfile
import unittest
from contextlib import redirect_stdout
from pathlib import Path
from unittest import mock

import check_history
import history_test
from checker import history as histories
from checker.liveness import hand_overs
from checker.machine import slowness, unexplained_stalls
from checker.quiet import outages
from story import MS, TTL, Story

LOST = "the lock was lost"


class RuleTest(unittest.TestCase):
    def keeps(self, story, **end):
        self.assertEqual(story.violations(**end), [])

    def breaks(self, rule, story, words="", **end):
        found = story.violations(**end)
        self.assertTrue(any(r == rule and words in text for r, text in found), found)


class Exclusion(RuleTest):
    def two(self, second, campaign="within", error=None):
        story = Story(campaign)
        story.hold(10, 20, token=1, error=error)
        story.hold(second, 40, token=2, worker=1)
        return story

    def test_holders_follow_one_another(self):
        self.keeps(self.two(20.5))

    def test_two_at_the_same_time_are_told_with_both_lines(self):
        self.breaks("R1", self.two(18), "had two holders for 2.0 ms: worker-0-1:2")

    def test_a_validity_that_is_over_is_no_claim(self):
        story = Story()
        story.hold(10, None, token=1, renewed=False)
        story.hold(500, 510, token=2, worker=1)
        self.assertNotIn("R1", dict(story.violations()))

    def test_a_look_that_says_held_is_one(self):
        story = Story()
        op = story.hold(10, None, token=1)
        story.look(op, 380, True, valid=390)
        story.hold(500, 510, token=2, worker=1)
        self.breaks("R1", story, "for 10.0 ms")

    def test_a_loss_ends_a_claim_when_the_observer_hears_of_it(self):
        for second, kept in ((103, True), (101, False)):
            story = Story()
            op = story.hold(10, None)
            story.told_lost(102)
            story.add("worker-0-1", 110, "lost", hold=op, error=LOST)
            story.release(op, 111, error=LOST)
            story.hold(second, 120, worker=1)
            self.assertEqual("R1" not in dict(story.violations()), kept)

    def test_the_dead_claim_nothing(self):
        story = Story()
        story.hold(10, None, token=1)
        story.add("driver", 15, "killed", worker=0, life=1)
        story.hold(350, 360, token=2, worker=1)
        self.keeps(story)

    def test_a_flush_explains_two_holders_for_a_while(self):
        story = self.two(18, "outside", error=LOST)
        story.fault(15, 17, "flush all")
        self.keeps(story)

    def test_a_flush_afterwards_explains_nothing(self):
        story = self.two(18, "outside")
        story.fault(19, 20, "flush all")
        self.breaks("R1", story)

    def test_a_forced_unlock_explains_two_holders_of_its_lock_only(self):
        for lock, kept in (("lock-0", True), ("lock-1", False)):
            story = self.two(18, error=LOST)
            story.force(12, 13, worker=1, lock=lock)
            self.keeps(story) if kept else self.breaks("R1", story)

    def test_a_claim_counts_from_before_the_call(self):
        for asked, kept in ((110, True), (-30, False)):
            story = Story()
            story.get(story.ask(140 + asked, wait=0), 250, token=1)
            story.release(1, 260)
            self.keeps(story) if kept else self.breaks("R1", story, "from its call on, with a TTL of 400.0 ms")

    def test_a_claim_is_the_ttl_less_the_drift(self):
        for valid, kept in ((394, True), (395, False)):
            story = Story()
            story.get(story.ask(9), 10, token=1, valid=valid)
            story.release(1, 60)
            self.keeps(story) if kept else self.breaks("R1", story, "is valid for 395.0 ms, with a TTL of 400.0 ms")
            story = Story()
            op = story.hold(10, 60, token=1)
            story.look(op, 20, True, valid=valid)
            self.keeps(story) if kept else self.breaks("R1", story, "is valid for 395.0 ms, with a TTL of 400.0 ms")

    def witnessed(self, ttl, valid=390, answered=11):
        story = Story("outside")
        op = story.hold(10, 60, token=1)
        story.witness(op, answered, valid, ttl, asked=11)
        return story

    def test_a_key_lives_as_long_as_its_hold_claims(self):
        self.keeps(self.witnessed(389))
        self.breaks("R1", self.witnessed(388), "claims 1.0 ms more than its key lives")
        self.breaks("R1", self.witnessed(-2), "claims 389.0 ms more than its key lives")

    def test_a_witness_that_is_heard_late_may_have_been_asked_late(self):
        self.keeps(self.witnessed(370, answered=31))

    def test_a_key_that_somebody_broke_need_not_live(self):
        story = self.witnessed(-2)
        story.fault(5, 10.5, "flush all")
        self.keeps(story)

    def test_what_was_broken_before_it_was_asked_for_explains_nothing(self):
        for broken, kept in ((14.5, True), (12, False)):
            story = Story("outside")
            story.hold(18, 40, token=1, asked=2, error=LOST)
            story.fault(broken, broken, "flush all")
            story.hold(22, 30, token=2, worker=1)
            self.assertEqual("R1" in dict(story.violations()), not kept)

    def test_plain_locks_are_exclusive_too(self):
        for second, kept in ((20.5, True), (18, False)):
            story = Story()
            story.hold(10, 20)
            story.hold(second, 40, worker=1)
            self.keeps(story) if kept else self.breaks("R1", story, "had two holders")

    def test_an_overlap_that_is_explained_hides_no_other(self):
        for third, kept in ((160.5, True), (150, False)):
            story = Story("outside")
            story.fault(110, 110, "flush all")
            story.hold(100, 490, worker=0, error=LOST)
            story.hold(120, 160, worker=1)
            story.hold(third, 200, worker=2)
            self.keeps(story) if kept else self.breaks("R1", story, "for 10.0 ms: worker-1-1:2 was sure of it")

    def test_the_one_that_was_broken_may_have_heard_of_its_grant_last(self):
        for tokens, kept in (((2, 1), True), ((1, 2), False)):
            story = Story()
            story.hold(18, 40, token=tokens[0])
            op = story.ask(2, worker=1, kind="fenced")
            story.get(op, 19, token=tokens[1], worker=1, valid=380)
            story.release(op, 30, worker=1, error=LOST)
            story.force(12, 13, worker=1)
            self.keeps(story) if kept else self.breaks("R1", story)


class Counts(RuleTest):
    def count(self, got):
        story = Story()
        story.chatter(1, 60)
        op = story.hold(10, 40, token=1)
        story.reenter(op, 11, 12, token=1)
        story.add("worker-0-1", 14, "count", hold=op, since=13 * MS, want=2, got=got)
        return story

    def test_redis_counts_the_leases(self):
        self.keeps(self.count(2))

    def test_a_count_too_many_is_told(self):
        self.breaks("R2", self.count(3), "counted 3 times in Redis, held 2 times")

    def test_a_count_that_had_no_answer_is_told_with_the_next(self):
        story = self.count(3)
        story.fault(11, 12, "cut")
        self.keeps(story)

    def test_a_second_unlock_finds_nothing(self):
        for answer, kept in (("the lease holds nothing", True), ("none", False)):
            story = Story()
            op = story.hold(10, 20, token=1)
            story.add("worker-0-1", 22, "unlocked_again", hold=op, error=answer)
            self.keeps(story) if kept else self.breaks("R2", story, "a second unlock")

    def test_after_the_last_unlock_the_key_is_gone(self):
        for ttl, kept in ((-2, True), (380, False)):
            story = Story()
            story.add("worker-0-1", 22, "afterwards", hold=story.hold(10, 20, token=1), ttl=ttl)
            self.keeps(story) if kept else self.breaks("R2", story, "its key is there for 380 ms more")

    def test_strangers_release_nothing(self):
        for refused in (True, False):
            story = Story()
            story.add("driver", 10, "foreign_release", lock="lock-0", refused=refused)
            self.keeps(story) if refused else self.breaks("R2", story, "by a stranger")

    def test_a_release_finds_what_is_still_valid(self):
        for t, kept in ((500, True), (20, False)):
            story = Story()
            op = story.hold(10, None, token=1, renewed=False)
            if kept:
                story.lose(op, 402)
            story.release(op, t, error=LOST)
            self.keeps(story) if kept else self.breaks("R2", story, "before the end of its validity")

    def released_late(self, second=120, release=180, broken=110, fault=None, tokens=(None, None)):
        story = Story("outside")
        story.start(0)
        story.start(1)
        story.chatter(5, 200)
        op = story.hold(100, None, token=tokens[0], asked=90)
        story.fault(broken, broken, "delete locks")
        story.hold(second, 200, worker=1, asked=90, token=tokens[1])
        story.release(op, release)
        if fault:
            story.fault(*fault)
        return story

    def test_what_another_has_had_since_cannot_be_released(self):
        self.breaks("R2", self.released_late(), "was released, though worker-1-1:3 had had it since")

    def test_what_was_passed_on_was_not_asked_about(self):
        story = Story("outside")
        op = story.hold(100, None, asked=90, hold_id="a:1")
        story.fault(110, 110, "delete locks")
        story.hold(120, 200, worker=1, asked=90)
        story.add("worker-0-1", 180, "told", what="passed", client=0, lock="lock-0", id="a:1")
        story.release(op, 180)
        self.assertNotIn("R2", dict(story.violations()))
        self.keeps(self.released_late(release=119))

    def test_what_was_passed_on_may_have_been_broken_before_the_next_wanted_it(self):
        for hold_id, kept in ("a:1/1", True), ("a:2", False):
            story = Story()
            first = story.hold(100, None, token=1, asked=90, hold_id="a:1")
            story.force(98, 101, worker=2)
            story.hold(102, 150, token=3, worker=1, asked=90)
            story.add("worker-0-1", 110, "told", what="passed", client=0, lock="lock-0", id="a:1")
            story.release(first, 110)
            heir = story.ask(105, kind="fenced")
            story.get(heir, 111, token=2, valid=379, hold_id=hold_id)
            story.release(heir, 112)
            self.assertEqual("R1" not in dict(story.violations()), kept)

    def test_who_had_it_first_is_told_by_the_tokens_or_by_the_times(self):
        at_once = {"broken": 99.5, "second": 103}
        self.keeps(self.released_late(**at_once))
        self.breaks("R2", self.released_late(**at_once, tokens=(1, 2)), "had had it since")
        self.keeps(self.released_late(**at_once, tokens=(2, 1)))

    def test_a_release_that_may_have_been_sent_twice_may_have_been_done_by_the_first_copy(self):
        for worker, kept in ((0, True), (1, False)):
            story = self.released_late(fault=(170, 175, "cut before a reply", worker))
            self.keeps(story) if kept else self.breaks("R2", story, "had had it since")
        self.keeps(self.released_late(fault=(20, 50, "pause everything")))
        self.breaks("R2", self.released_late(fault=(170, 175, "lose messages", 0)), "had had it since")
        story = self.released_late()
        story.add("worker-9-1", 185, "stall", since=160 * MS)
        self.keeps(story)


class Tokens(RuleTest):
    def two(self, first, second):
        story = Story()
        story.write(story.hold(10, 20, token=first), 15, first, 1)
        story.write(story.hold(30, 40, token=second, worker=1), 35, second, 2, worker=1)
        return story

    def test_tokens_grow(self):
        self.keeps(self.two(1, 2))

    def test_a_token_that_falls_or_stays_is_told(self):
        self.breaks("R3", self.two(2, 1), "is not above")
        self.breaks("R3", self.two(2, 2), "the same token")

    def test_who_asks_for_a_token_gets_one(self):
        for kind, kept in (("plain", True), ("fenced", False)):
            story = Story()
            story.hold(10, 20, kind=kind)
            self.keeps(story) if kept else self.breaks("R3", story, "was granted without a token")

    def test_a_reentry_has_the_token_of_its_hold(self):
        for token in (7, 8):
            story = Story()
            op = story.hold(10, 40, token=7)
            story.reenter(op, 11, 12, token=token)
            self.keeps(story) if token == 7 else self.breaks("R3", story, "of a re-entry")

    def test_the_resource_never_goes_back(self):
        for number, kept in ((1, True), (3, False)):
            story = Story()
            late = story.hold(10, 20, token=1)
            story.write(story.hold(30, 40, token=2, worker=1), 35, 2, 2, worker=1)
            story.write(late, 36, 1, number)
            self.keeps(story) if kept else self.breaks("R3", story, "the resource took token 1 after 2")


class Signals(RuleTest):
    def lost(self, at, stalled=0):
        story = Story()
        op = story.hold(10, None, token=1, renewed=False)
        story.look(op, 405, False)
        if stalled:
            story.add("worker-0-1", 405 + stalled, "stall", since=405 * MS)
        story.lose(op, at)
        story.release(op, at + 1, error=LOST)
        return story

    def test_a_loss_is_signalled_at_once(self):
        self.keeps(self.lost(440))

    def test_a_second_later_is_too_late(self):
        self.breaks("R4", self.lost(1402), "was signalled 1001.0 ms after its end")

    def test_a_process_that_stood_still_has_more_time(self):
        self.keeps(self.lost(1402, stalled=990))

    def test_a_process_whose_machine_was_taken_away_has_more_time(self):
        for stolen, kept in ((990, True), (900, False)):
            story = self.lost(1402)
            story.stolen(405, 405 + stolen // 2)
            story.stolen(405 + stolen // 2 - 50, 405 + stolen, cpu=1)
            self.keeps(story) if kept else self.breaks("R4", story)

    def held_too_long(self, fed, lost):
        story = Story()
        op = story.hold(10, None, token=1, max_hold=100)
        if fed:
            story.add("worker-0-1", fed, "fed", hold=op)
        story.lose(op, lost)
        story.release(op, lost + 1, error=LOST)
        return story

    def test_who_shows_no_progress_is_not_renewed(self):
        self.keeps(self.held_too_long(None, 555))
        self.breaks("R4", self.held_too_long(None, 565), "was signalled 55.0 ms after its end")

    def test_who_shows_progress_is_renewed(self):
        self.keeps(self.held_too_long(60, 605))

    def test_a_loss_that_nobody_hears_of_is_told(self):
        story = Story()
        op = story.hold(10, None, token=1)
        story.look(op, 405, False)
        story.release(op, 2000, error=LOST)
        self.breaks("R4", story, "never signalled")

    def test_the_observer_hears_of_it_too(self):
        story = self.lost(440)
        story.files["worker-0-1"] = [event for event in story.files["worker-0-1"] if event["ev"] != "told"]
        self.breaks("R4", story, "the observer did not hear")

    def test_the_observer_may_hear_of_a_loss_before_the_caller_hears_of_the_grant(self):
        for told, kept in ((1100, True), (5, False)):
            story = Story()
            op = story.ask(10, renewed=False)
            story.fault(20, 1100, "stop a worker", worker=0)
            story.told_lost(told)
            story.get(op, 1101, valid=0)
            story.add("worker-0-1", 1102, "lost", hold=op, error=LOST)
            story.release(op, 1103, error=LOST)
            self.keeps(story) if kept else self.breaks("R4", story, "the observer did not hear")

    def test_what_is_valid_is_lost_only_if_somebody_broke_it(self):
        for campaign, kept in (("outside", True), ("within", False)):
            story = Story(campaign)
            op = story.hold(10, None, token=1)
            if kept:
                story.fault(20, 21, "delete locks")
            story.lose(op, 100)
            story.release(op, 101, error=LOST)
            self.keeps(story) if kept else self.breaks("R4", story, "and nobody broke it")

    def told_lost(self, ask, at, broken=False):
        story = Story("outside")
        op = story.hold(10, None, token=1, renewed=False)
        if broken:
            story.fault(20, 21, "delete locks")
        ask(story)(op, at - 1, at, error=LOST)
        story.lose(op, at if broken else 401)
        story.release(op, max(at, 401) + 1, error=LOST)
        return story

    def test_a_reentry_or_a_renewal_is_told_of_a_loss_only_if_there_is_one(self):
        for what, ask in ("re-entry", lambda story: story.reenter), ("renewal", lambda story: story.renew):
            self.breaks("R4", self.told_lost(ask, 100), f"the {what} worker-0-1:3 was told that it was lost 300.0 ms before the end")
            self.keeps(self.told_lost(ask, 401))
            self.keeps(self.told_lost(ask, 100, broken=True))

    def test_what_was_broken_during_the_wait_was_anothers(self):
        for granted, kept in ((130, True), (5000, False)):
            story = Story()
            op = story.ask(100)
            story.force(126.5, 127)
            story.get(op, granted)
            story.lose(op, granted + 10)
            story.release(op, granted + 20, error=LOST)
            self.keeps(story) if kept else self.breaks("R4", story, "and nobody broke it")
            self.keeps(story) if kept else self.breaks("R2", story, "and nobody broke it")


class Finality(RuleTest):
    def after_loss(self, change):
        story = Story()
        op = story.hold(10, None, token=1, renewed=False)
        story.look(op, 405, False)
        story.lose(op, 406)
        change(story, op)
        story.release(op, 500, error=LOST)
        return story

    def test_what_is_over_stays_over(self):
        self.keeps(self.after_loss(lambda story, op: story.look(op, 420, False)))

    def test_held_after_the_end_is_told(self):
        self.breaks("R5", self.after_loss(lambda story, op: story.look(op, 420, True)), "was held 19.0 ms after its end")

    def test_held_after_the_observer_heard_of_the_loss_is_told(self):
        for looked, kept in ((99, True), (103, False)):
            story = Story()
            op = story.hold(10, None)
            story.force(90, 91, worker=1)
            story.look(op, looked, True, valid=300)
            story.told_lost(102)
            story.add("worker-0-1", 110, "lost", hold=op, error=LOST)
            story.release(op, 111, error=LOST)
            self.keeps(story) if kept else self.breaks("R5", story, "was held 1.0 ms after its end")

    def test_the_loss_of_another_hold_of_the_same_client_ends_nothing(self):
        for which, kept in (("another", True), ("this", False)):
            story = Story()
            op = story.hold(10, None, hold_id="this")
            story.force(90, 91, worker=1)
            story.look(op, 103, True, valid=300)
            story.told_lost(102, hold_id=which)
            story.lose(op, 110, hold_id="this")
            story.release(op, 111, error=LOST)
            self.keeps(story) if kept else self.breaks("R5", story, "was held 1.0 ms after its end")

    def test_renewed_after_the_end_is_told(self):
        renew = lambda story, op: story.renew(op, 420, 421)
        self.breaks("R5", self.after_loss(renew), "was renewed")

    def reenter(self, asked, answered):
        return lambda story, op: story.reenter(op, asked, answered, token=1)

    def test_entered_again_after_the_end_is_told(self):
        self.breaks("R5", self.after_loss(self.reenter(420, 421)), "was re-entered")

    def test_what_began_before_the_end_and_is_confirmed_after_it_is_told(self):
        self.breaks("R5", self.after_loss(self.reenter(395, 408)), "was re-entered 3.0 ms after its end")
        renew = lambda story, op: story.renew(op, 395, 408)
        self.breaks("R5", self.after_loss(renew), "was renewed 3.0 ms after its end")

    def test_an_unlock_after_the_end_does_not_succeed(self):
        story = Story()
        op = story.hold(10, None, token=1, renewed=False)
        story.lose(op, 402)
        story.release(op, 500)
        self.breaks("R5", story, "was released 99.0 ms after its end")

    def silent_end(self, confirmed, stalled=0):
        story = Story()
        op = story.hold(10, None, token=1, renewed=False)
        story.renew(op, 390, confirmed)
        if stalled:
            story.add("worker-0-1", confirmed + 1, "stall", since=(confirmed - stalled) * MS)
        story.release(op, confirmed + 3)
        return story

    def test_an_answer_that_was_on_its_way_at_an_end_that_nobody_told_is_no_confirmation_after_it(self):
        self.keeps(self.silent_end(410))
        self.breaks("R5", self.silent_end(430), "was renewed 29.0 ms after its end")
        self.keeps(self.silent_end(430, stalled=29))

    def test_what_is_confirmed_after_the_end_does_not_move_it(self):
        self.breaks("R4", self.silent_end(460), "its loss was never signalled")


class Order(RuleTest):
    def queue(self, first, second, **of_first):
        """Two who wait for the same lock in one client, and when they are served."""
        story = Story()
        story.hold(10, 50)
        one = story.ask(20, **of_first)
        other = story.ask(30)
        for op, t in sorted([(one, first), (other, second)], key=lambda each: each[1]):
            story.get(op, t)
            story.release(op, t + 5)
        return story

    def test_who_asked_first_is_served_first(self):
        self.keeps(self.queue(52, 60))
        self.breaks("R9", self.queue(60, 52), "worker-0-1:4 was served before worker-0-1:3")

    def test_an_owner_whose_unlock_was_not_confirmed_waits_for_its_end_first(self):
        for asked, kept in (60, True), (2100, False):
            story = Story()
            story.hold(10, 50, error="not confirmed by Redis")
            one = story.ask(asked)
            other = story.ask(asked + 5)
            story.get(other, asked + 20)
            story.release(other, asked + 22)
            story.get(one, asked + 30)
            story.release(one, asked + 32)
            self.assertEqual("R9" not in dict(story.violations()), kept)

    def overtaken(self, times, turns="all", own_turn=None, **waits):
        """A waiter of client 0 and, meanwhile, so many turns of client 1, each of two holds."""
        story = Story(turns=turns)
        waiter = story.ask(20, **waits)
        for turn in range(times):
            for passed in range(2):
                story.hold(50 + 10 * turn + 4 * passed, 52 + 10 * turn + 4 * passed, client=1, hold_id=f"u:{turn}" + f"/{passed}" * passed)
        if own_turn is not None:
            story.hold(own_turn, own_turn + 1)
        story.get(waiter, 55 + 10 * times)
        story.release(waiter, 56 + 10 * times)
        return story

    def test_who_waits_is_not_overtaken_for_long_where_all_take_turns(self):
        self.keeps(self.overtaken(8))
        self.breaks("R9", self.overtaken(9), "lock-0: while worker-0-1:1 waited, worker-0-1 client 1 had 9 turns")
        self.keeps(self.overtaken(9, turns="one"))
        self.assertNotIn("R9", dict(self.overtaken(9, wait=0).violations()))

    def test_own_turns_and_faults_begin_the_count_of_the_others_anew(self):
        self.assertFalse([text for rule, text in self.overtaken(9, own_turn=97).violations() if "turns" in text])
        story = self.overtaken(9)
        story.fault(10, 20, "cut")
        self.keeps(story)

    def test_who_asks_once_and_another_client_stand_in_no_line(self):
        self.keeps(self.queue(60, 52, client=1))
        story = Story()
        story.hold(10, 50)
        once = story.ask(20, wait=0)
        other = story.ask(21)
        story.get(other, 52)
        story.release(other, 54)
        story.get(once, 60)
        story.release(once, 62)
        self.assertNotIn("R9", dict(story.violations()))


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
        for ask, what in ("reenter", "re-entry"), ("renew", "renewal"):
            story = Story()
            getattr(story, ask)(story.hold(10, 400, token=1), 20, None)
            self.breaks("R6", story, f"the {what} worker-0-1:3 never ended")
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


class SeveralAsOne(RuleTest):
    BOTH = ("lock-0", "lock-1")

    def test_any_of_has_one_of_those_that_it_asked_for(self):
        for lock, kept in (("lock-1", True), ("lock-2", False)):
            story = Story()
            op = story.ask(9, lock="lock-0 lock-1")
            story.get(op, 10, lock=lock)
            story.release(op, 20)
            self.keeps(story) if kept else self.breaks("R7", story, "was granted lock-2")

    def test_what_any_of_has_is_exclusive(self):
        for second, kept in ((20.5, True), (18, False)):
            story = Story()
            op = story.ask(9, lock="lock-0 lock-1")
            story.get(op, 10, lock="lock-1")
            story.release(op, 20)
            story.hold(second, 40, lock="lock-1", worker=1)
            self.keeps(story) if kept else self.breaks("R1", story, "lock-1 had two holders")

    def test_any_of_that_is_granted_what_its_owner_holds_has_entered_it_again(self):
        for lock, kept in (("lock-1", True), ("lock-0", False)):
            story = Story()
            story.hold(10, 40, lock="lock-0")
            op = story.ask(19, lock="lock-0 lock-1", wait=0)
            story.get(op, 20, lock=lock)
            story.release(op, 30)
            self.keeps(story) if kept else self.breaks("R1", story, "lock-0 had two holders")

    def test_a_multi_lock_has_all_or_none(self):
        for missing, killed, kept in ((False, False, True), (True, False, False), (True, True, True)):
            story = Story()
            ops = story.ask_all(9, self.BOTH)
            for op in ops[:1] if missing else ops:
                story.get(op, 10)
                if not killed:
                    story.release(op, 20)
            if killed:
                story.add("driver", 10, "killed", worker=0, life=1)
            self.keeps(story) if kept else self.breaks("R7", story, "of 2 locks that worker-0-1:1 had asked for it was granted 1")

    def test_each_hold_of_a_multi_lock_is_exclusive(self):
        for second, kept in ((21.5, True), (18, False)):
            story = Story()
            story.hold_all(10, 20, self.BOTH)
            story.hold(second, 40, worker=1, lock="lock-1")
            self.keeps(story) if kept else self.breaks("R1", story, "lock-1 had two holders")

    def looked_at(self, held, whole_held, valid=300, whole_valid=None):
        story = Story()
        ops = story.hold_all(10, None, self.BOTH, renewed=False)
        story.look_all(ops, 100, held, whole_held, valid=valid, whole_valid=whole_valid)
        for op in ops:
            story.release(op, 101, error=None if all(held) else LOST)
        return story

    def test_a_multi_lease_is_held_while_each_of_its_holds_is(self):
        self.keeps(self.looked_at((True, True), True))
        self.breaks("R7", self.looked_at((True, False), True), "was held, though one of its holds was over")
        self.breaks("R7", self.looked_at((True, True), False), "was not held, though each of its holds was")
        self.breaks("R7", self.looked_at((True, True), True, whole_valid=301), "was valid for 301.0 ms, and one of its holds for 300.0 ms")

    def lost(self, first=405, whole=None, released=700):
        story = Story()
        ops = story.hold_all(10, None, self.BOTH)
        if first:
            story.told_lost(first, lock="lock-1")
            story.add("worker-0-1", first, "lost", hold=ops[1], error=LOST)
        if whole:
            story.lose_whole(ops, whole)
        for op in ops:
            story.release(op, released, error=LOST)
        return story

    def test_a_multi_lease_is_lost_with_the_first_of_its_holds(self):
        self.keeps(self.lost(whole=450))
        self.breaks("R7", self.lost(whole=460), "was not said to be lost within 50.0 ms")
        self.breaks("R7", self.lost(), "was not said to be lost within 50.0 ms")
        self.keeps(self.lost(released=440))
        self.breaks("R7", self.lost(first=None, whole=450), "was lost, and none of its holds was")

    def test_the_release_of_a_multi_lock_is_told_of_a_loss_if_one_of_its_holds_may_be_lost(self):
        for brief, kept in ((True, True), (False, False)):
            story = Story()
            ops = story.ask_all(9, self.BOTH)
            story.get(ops[0], 10)
            story.get(ops[1], 10, valid=90 if brief else 390)
            story.lose_whole(ops, 101)
            for op in ops:
                story.release(op, 102, error=LOST)
            found = [text for rule, text in story.violations() if rule == "R2"]
            self.assertEqual(bool(found), not kept, found)

    def test_a_renewal_of_a_multi_lock_is_told_of_a_loss_if_one_of_its_holds_may_be_lost(self):
        for brief, kept in ((True, True), (False, False)):
            story = Story()
            ops = story.ask_all(9, self.BOTH)
            story.get(ops[0], 10)
            story.get(ops[1], 10, valid=90 if brief else 390)
            for op in ops:
                story.renew(op, 110, 111, error=LOST)
                story.release(op, 112, error=LOST)
            found = [text for rule, text in story.violations() if rule == "R4"]
            self.assertEqual(bool(found), not kept, found)

    def test_the_release_of_a_multi_lock_does_not_succeed_after_the_end_of_one_of_its_holds(self):
        story = self.lost(whole=406)
        for events in story.files.values():
            for event in events:
                if event["ev"] == "release_failed":
                    event["ev"] = "released"
                    del event["error"]
        self.breaks("R5", story, "lock-1: worker-0-1:4 was released")

    def tried(self, ends, locks, whole):
        story = Story()
        for lock, end in zip(("lock-0", "lock-1"), ends):
            story.hold(10, end, worker=1, lock=lock)
        if whole:
            story.end_all(story.ask_all(300, locks, wait=0), 301, "busy")
        else:
            story.add("worker-0-1", 301, "busy", op=story.ask(300, wait=0, lock=" ".join(locks)))
        return story

    def test_a_try_of_a_multi_lock_finds_one_busy_and_one_of_any_of_finds_all_so(self):
        self.keeps(self.tried((299.5, 299.5), self.BOTH, whole=True))
        self.keeps(self.tried((290, 299.5), self.BOTH, whole=True))
        self.breaks("R6", self.tried((290, 290), self.BOTH, whole=True), "found it busy, and nobody had it")
        self.keeps(self.tried((299.5, 299.5), self.BOTH, whole=False))
        self.breaks("R6", self.tried((290, 299.5), self.BOTH, whole=False), "found it busy, and nobody had it")

    def test_a_try_of_a_multi_lock_of_several_kinds_has_the_time_of_a_command_for_each_and_of_a_renewal(self):
        for kinds, took, kept in ((1, 170, True), (1, 190, False), (2, 330, True), (2, 350, False)):
            story = Story()
            ops = story.ask_all(10, ("lock-0",), wait=0)
            ops.append(story.ask(10, lock="lock-1", whole=ops[0], wait=0, kind="plain" if kinds == 1 else "simple"))
            story.fault(10, 20, "cut", 0)
            story.end_all(ops, 10 + took, "failed", error="no answer from Redis")
            self.keeps(story) if kept else self.breaks("R6", story, "after its deadline")

    def waited(self, call, frees):
        """Both locks are taken for five seconds, and `frees` of them is free for the last one."""
        story = Story()
        for lock in self.BOTH:
            story.hold(10, 4000 if lock in frees else 5000, lock=lock, worker=1)
            story.look(story.operations, 3999 if lock in frees else 4999, True, worker=1, valid=390)
        call(story)
        return story

    def test_a_multi_lock_waits_while_one_is_not_free_and_not_while_all_are(self):
        wait = lambda story: story.hold_all(5010, 5020, self.BOTH, asked=100)
        self.keeps(self.waited(wait, ()))
        self.keeps(self.waited(wait, ("lock-0",)))
        self.breaks("R6", self.waited(wait, self.BOTH), "lock-0 and lock-1: worker-0-1:1 waited for")

    def test_any_of_waits_while_none_is_free(self):
        def wait(story):
            op = story.ask(100, lock="lock-0 lock-1")
            story.get(op, 5010, lock="lock-1")
            story.release(op, 5020)
        self.keeps(self.waited(wait, ()))
        self.breaks("R6", self.waited(wait, ("lock-0",)), "lock-0: worker-0-1:1 waited for")

    def behind(self, client, kinds):
        def wait(story):
            ops = story.ask_all(90, ("lock-0",))
            ops.append(story.ask(90, lock="lock-1", whole=ops[0], kind="plain" if kinds == 1 else "simple"))
            story.hold(5020, 5030, lock="lock-0", asked=100, client=client)
            for op in ops:
                story.get(op, 5010)
                story.release(op, 5015)
        return self.waited(wait, ("lock-0",))

    def test_who_stands_behind_a_multi_lock_waits_with_it(self):
        self.keeps(self.behind(client=0, kinds=1))
        self.breaks("R6", self.behind(client=1, kinds=1), "lock-0: worker-0-1:3 waited for")
        self.keeps(self.behind(client=1, kinds=2))

    def test_a_lock_is_not_handed_over_to_a_multi_lock_nor_to_who_stands_behind_one(self):
        for client, kinds, judged in ((1, 1, True), (0, 1, False), (1, 2, False)):
            story = Story()
            story.hold(10, 5000, worker=1)
            ops = story.ask_all(90, ("lock-0",))
            ops.append(story.ask(90, lock="lock-1", whole=ops[0], kind="plain" if kinds == 1 else "simple"))
            story.hold(5002, 5100, asked=90, client=client)
            story.end_all(ops, 6000, "cancelled", error="Operation canceled")
            self.assertEqual(bool(list(hand_overs(story.history()))), judged, (client, kinds))

    def test_a_body_of_a_multi_lock_that_never_began_has_lost_one_of_its_locks(self):
        for lock, kept in (("lock-1", True), ("lock-2", False)):
            story = Story()
            ops = story.ask_all(10, self.BOTH, as_body=True)
            story.told_lost(405, lock=lock)
            story.end_all(ops, 407, "failed", error=LOST)
            self.keeps(story) if kept else self.breaks("R6", story, "failed: the lock was lost")


class SeveralServers(RuleTest):
    def test_nothing_that_a_server_forgets_explains_two_holders(self):
        for kind in "flush all", "restart the server empty", "restart the server with old data":
            story = Story("red", servers=5)
            story.hold(10, 20, error=LOST)
            for server in range(5):
                story.fault(15, 17, kind, server=server)
            story.hold(18, 40, worker=1)
            self.breaks("R1", story, "had two holders for 2.0 ms")

    def test_a_forced_unlock_does(self):
        story = Story("red", servers=5)
        story.hold(10, 20, error=LOST)
        story.force(12, 13, worker=1)
        story.hold(18, 40, worker=1)
        self.keeps(story)

    def test_a_copy_of_one_may_strike_later(self):
        for servers, lost, kept in ((5, 3005, True), (5, 3065, False), (1, 3005, False)):
            story = Story("red", servers)
            story.force(8, 9, worker=1)
            op = story.hold(lost - 50, None)
            story.lose(op, lost)
            story.release(op, lost + 1, error=LOST)
            self.assertEqual("R4" not in dict(story.violations()), kept)

    def test_what_is_valid_is_lost_only_if_a_server_may_have_forgotten_it(self):
        for kind, kept in (("flush all", True), ("restart the server with old data", True), ("restart the server with its data", False)):
            story = Story("red", servers=5)
            op = story.hold(10, None)
            story.fault(20, 50, kind, server=3)
            story.lose(op, 100)
            story.release(op, 101, error=LOST)
            self.keeps(story) if kept else self.breaks("R4", story, "and nobody broke it")

    def test_a_majority_may_know_of_fewer_leases_but_of_one(self):
        for got, kept in ((2, True), (1, True), (0, False), (3, False)):
            story = Story("red", servers=5)
            story.chatter(1, 60)
            op = story.hold(10, 40)
            story.reenter(op, 11, 12)
            story.add("worker-0-1", 14, "count", hold=op, since=13 * MS, want=2, got=got)
            self.keeps(story) if kept else self.breaks("R2", story, f"counted {got} times in Redis, held 2 times")

    def unanswered(self, servers, kind="cut", worker=0, at=400):
        story = Story("red", servers=5)
        story.start(0)
        story.chatter(5, at + 500)
        op = story.ask(at, wait=60)
        story.add("worker-0-1", at + 60, "failed", op=op, error="no quorum")
        for server in servers:
            story.fault(300, 350, kind, worker, server)
        return story

    def test_a_call_that_found_no_quorum_was_kept_from_a_majority(self):
        self.keeps(self.unanswered((0, 2, 4)))
        self.keeps(self.unanswered((-1,), "stop a worker"))
        self.breaks("R6", self.unanswered((0, 2)), "failed: no quorum, after 60.0 ms, and nothing was wrong")
        self.breaks("R6", self.unanswered((0, 2, 4), worker=1), "failed: no quorum, after 60.0 ms, and nothing was wrong")

    def test_a_try_gives_a_server_little_time_for_its_vote(self):
        for servers, wait, kept in ((5, 0, True), (5, 60, False), (1, 0, False)):
            story = Story("red", servers)
            story.start(0)
            story.chatter(5, 1000)
            op = story.ask(400, wait=wait)
            story.add("worker-0-1", 400 + max(wait, 10.5), "failed", op=op, error="no quorum")
            self.keeps(story) if kept else self.breaks("R6", story, "failed: no quorum")

    def test_servers_that_may_have_forgotten_something_do_not_vote_for_the_longest_ttl(self):
        for kind, at, kept in (("cut", 1860, True), ("cut", 2000, False), ("flush all", 2000, True), ("flush all", 2600, False)):
            story = self.unanswered((0, 2, 4), kind, worker=-1, at=at)
            self.keeps(story) if kept else self.breaks("R6", story, "and nothing was wrong")

    def test_a_release_or_a_renewal_may_miss_the_one_server_that_made_the_majority(self):
        for servers in (0,), (0, 2), ():
            story = Story("red", servers=5)
            story.start(0)
            story.chatter(5, 1000)
            op = story.hold(400, None)
            story.renew(op, 420, 430, error="no quorum")
            story.release(op, 450, error="not confirmed by Redis")
            for server in servers:
                story.fault(390, 395, "cut", 0, server)
            self.keeps(story) if servers else self.breaks("R6", story, "found no answer, and nothing was wrong")

    def free(self, servers, granted=5700):
        story = Story("red", servers=5)
        op = story.hold(10, 5000)
        story.look(op, 4999, True, valid=390)
        for server in servers:
            story.fault(4500, 4600, "stop the server", server=server)
        story.hold(granted, granted + 10, worker=1, asked=100)
        return story

    def test_a_waiter_gets_what_is_free_though_a_minority_is_silent(self):
        self.keeps(self.free((1, 2, 3)))
        self.breaks("R6", self.free((1, 2)), "waited for 679.0 ms while nobody had it")
        self.keeps(self.free((1, 2), granted=5300))

    def test_hand_overs_are_judged_while_nothing_is_wrong_and_take_no_longer_than_callers_pause(self):
        for took, kept in ((99, True), (101, False)):
            story = Story("red", servers=5)
            for i in range(3):
                at = 10_000 * i
                op = story.hold(at + 10, at + 5000)
                story.look(op, at + 4999, True, valid=390)
                story.hold(at + 5001 + took, at + 5200 + took, worker=1, asked=at + 90)
            self.keeps(story) if kept else self.breaks("R6", story, "3 of 3 hand-overs took more than 100.0 ms")
        self.assertEqual(list(hand_overs(self.free((1,)).history())), [])
        self.assertEqual(len(list(hand_overs(self.free(()).history()))), 1)

    def test_too_few_are_left_while_more_than_a_minority_is_in_trouble(self):
        history = Story("red", servers=3).history()
        self.assertEqual(list(outages(history, [(10, 30, 0), (20, 40, 0), (50, 60, 1)])), [])
        self.assertEqual(list(outages(history, [(10, 30, 0), (20, 40, 2), (25, 60, 0)])), [(20, 40)])
        self.assertEqual(list(outages(history, [(10, 30, -1), (30, 40, 1), (35, 50, 2)])), [(10, 30), (35, 40)])
        self.assertEqual(list(outages(Story().history(), [(10, 30, 0), (20, 40, -1)])), [(10, 40)])


class Failovers(RuleTest):
    """A primary dies at 1000, and all know of the next one at 3000."""

    def two(self, begin=980, other=2900, end=3090, campaign="sentinel", slots=None, **terms):
        story = Story(campaign)
        story.failover(1000, 1005, 3000, slots)
        op = story.ask(begin - 1, ttl=3000, **terms)
        story.get(op, begin, valid=2960)
        story.release(op, end, error=LOST)
        story.hold(other, 3300, worker=1)
        return story

    def overlaps(self, story, rule="R1"):
        return rule in dict(story.violations())

    def test_what_did_not_reach_the_next_primary_explains_two_holders(self):
        self.keeps(self.two())

    def test_what_had_reached_it_does_not(self):
        self.breaks("R1", self.two(begin=940), "had two holders for 190.0 ms")

    def test_what_was_granted_after_the_end_of_the_old_primary_was_granted_by_the_next(self):
        story = self.two(begin=1050)
        self.assertTrue(self.overlaps(story))

    def test_without_a_failover_that_may_forget_nothing_does(self):
        for kind in ("relieve a primary", "move slots"):
            story = Story("cluster")
            story.fault(15, 17, kind)
            story.hold(10, 20, token=1, error=LOST)
            story.hold(18, 40, token=2, worker=1)
            self.breaks("R1", story)

    def test_who_has_the_lock_hears_of_the_next_primary_in_time(self):
        for end, kept in ((3099, True), (3110, False)):
            self.assertEqual(self.overlaps(self.two(end=end, other=2950)), not kept)

    def test_who_stood_still_hears_of_it_later(self):
        story = self.two(end=3150)
        story.add("worker-0-1", 3140, "stall", since=3050 * MS)
        self.keeps(story)

    def test_the_old_primary_grants_until_its_clients_had_to_leave_it(self):
        for until, asked, kept in ((1005, 2000, False), (9000, 2000, True), (9000, 3101, False)):
            story = Story("sentinel")
            story.failover(1000, until, 3000)
            op = story.ask(asked - 1, ttl=3000)
            story.get(op, asked, valid=2968)
            story.release(op, asked + 40, error=LOST)
            story.hold(asked + 20, asked + 60, worker=1)
            self.assertEqual(self.overlaps(story), not kept)

    def test_a_renewal_that_is_forgotten_leaves_what_was_granted_before(self):
        for other, kept in ((1901, True), (1890, False)):
            story = Story("sentinel")
            story.failover(1000, 1005, 2000)
            op = story.ask(99, ttl=2000)
            story.get(op, 100, valid=1800)
            story.look(op, 980, True, valid=1970)
            story.release(op, 2100, error=LOST)
            story.hold(other, 2200, worker=1)
            self.assertEqual(self.overlaps(story), not kept)

    def test_what_all_that_may_be_elected_had_acknowledged_is_not_forgotten(self):
        self.breaks("R1", self.two(replicas=2))

    def test_a_shard_forgets_nothing_of_the_others(self):
        slot = histories.slot_of("lock-0")
        for begin, end, kept in ((0, slot, True), (slot + 1, 16383, False)):
            story = self.two(campaign="cluster", slots=f"{begin}-{end}")
            self.assertEqual(self.overlaps(story), not kept)

    def test_nodes_of_a_cluster_are_asked_once_a_second(self):
        for end, kept in ((4099, True), (4110, False)):
            story = Story("cluster")
            story.failover(1000, 9000, 3000)
            op = story.ask(1999, ttl=3000)
            story.get(op, 2000, valid=2960)
            story.release(op, end, error=LOST)
            story.hold(4000, 4200, worker=1)
            self.assertEqual(self.overlaps(story), not kept)

    def test_slots_are_those_of_redis(self):
        self.assertEqual(histories.slot_of("foo"), 12182)

    def test_a_loss_is_told_in_time_if_a_failover_made_it(self):
        for t, kept in ((3149, True), (3160, False)):
            story = Story("sentinel")
            story.failover(1000, 1005, 3000)
            op = story.ask(979, ttl=3000)
            story.get(op, 980, valid=2960)
            story.lose(op, t)
            story.release(op, t + 1, error=LOST)
            self.assertEqual(self.overlaps(story, "R4"), not kept)

    def test_of_two_that_were_granted_by_two_primaries_either_may_hear_of_it_first(self):
        for until, kept in ((9000, True), (1005, False)):
            story = Story("sentinel")
            story.failover(1000, until, 3000)
            new = story.ask(3010, worker=1, kind="fenced", ttl=2000)
            old = story.ask(3020, kind="fenced", ttl=2000)
            story.get(old, 3030, token=2, valid=1968)
            story.release(old, 3060, error=LOST)
            story.get(new, 3050, token=1, worker=1, valid=1940)
            story.release(new, 3070, worker=1)
            self.assertEqual(self.overlaps(story, "R3"), not kept)

    def test_a_failover_that_nobody_ordered_is_a_fault(self):
        story = Story("sentinel")
        story.add("driver", 3000, "unordered", since=1000 * MS)
        self.assertEqual([fault[:2] for fault in story.history().faults], [(1000 * MS, 3000 * MS)])

    def test_a_grant_that_replicas_must_have_takes_twice_as_long(self):
        for replicas, kept in ((2, True), (0, False)):
            story = Story("sentinel")
            op = story.ask(10, wait=0, replicas=replicas)
            story.add("worker-0-1", 200, "failed", op=op, error="not replicated")
            story.fault(10, 200, "kill a primary")
            self.keeps(story) if kept else self.breaks("R6", story, "after its deadline")

    def test_too_few_replicas_are_a_fault(self):
        for wait, kept in ((0, False), (100, True)):
            story = Story("sentinel")
            story.start(0)
            story.chatter(5, 1200)
            op = story.ask(100, wait=wait, replicas=2)
            story.add("worker-0-1", 200, "failed", op=op, error="not replicated")
            self.keeps(story) if kept else self.breaks("R6", story, "and nothing was wrong")

    def test_a_multi_lock_of_several_slots_takes_a_script_for_each(self):
        for campaign, took, kept in (("cluster", 330, True), ("sentinel", 330, False), ("cluster", 350, False)):
            story = Story(campaign)
            ops = story.ask_all(10, ("lock-0", "lock-1"), wait=0)
            story.end_all(ops, 10 + took, "busy")
            self.assertEqual(self.overlaps(story, "R6"), not kept)


class Residue(RuleTest):
    def test_a_key_that_is_left_is_told(self):
        story = Story()
        story.add("driver", 99_000, "residue", key="lock-0", ttl=-1)
        self.breaks("R8", story, "with a TTL of -1 ms")

    def test_a_key_that_is_left_to_its_ttl_is_told_unless_a_worker_did_not_end(self):
        for status, kept in ((0, False), (-1, True)):
            story = Story()
            story.hold(10, 20, token=1)
            story.add("driver", 95_000, "ended", worker=0, life=1, status=status)
            story.add("driver", 95_001, "unreleased", key="lock-0", ttl=300)
            found = [text for rule, text in story.violations() if rule == "R8"]
            self.assertEqual(found, [] if kept else ["the key lock-0 was left by workers that had ended, with a TTL of 300 ms"])

    def test_a_subscriber_or_a_connection_that_is_left_is_told(self):
        self.keeps(Story())
        self.breaks("R8", Story(), "subscribers", channels=1)
        self.breaks("R8", Story(), "connections", connections=1)


class Time(unittest.TestCase):
    intervals = histories.Intervals([(30, 40), (10, 20), (15, 22), (40, 45)])

    def test_what_overlaps_or_touches_counts_once(self):
        self.assertEqual(list(self.intervals), [(10, 22), (30, 45)])
        self.assertEqual(self.intervals.within(0, 100), 27)
        self.assertEqual(self.intervals.within(12, 31), 11)
        self.assertEqual(self.intervals.within(22, 30), 0)

    def test_an_instant_after_so_much_time_outside(self):
        for begin, allowed, instant in ((0, 10, 10), (0, 11, 23), (0, 18, 30), (0, 19, 46), (15, 1, 23), (50, 5, 55), (30, 0, 30)):
            self.assertEqual(self.intervals.after(begin, allowed), instant, (begin, allowed))
        self.assertEqual(histories.Intervals().after(5, 6), 11)


class Machine(unittest.TestCase):
    def stalled(self, length, stopped=0):
        story = Story()
        story.start(0)
        story.add("worker-0-1", 1000 + length, "stall", since=1000 * MS)
        if stopped:
            story.fault(1000, 1000 + stopped, "stop a worker", 0)
        return story.history()

    def test_a_standstill_that_the_nemesis_made_is_explained(self):
        self.assertEqual(list(unexplained_stalls(self.stalled(1900, stopped=1800))), [])

    def test_a_standstill_that_nobody_made_is_told(self):
        (stall, process), = unexplained_stalls(self.stalled(900, stopped=600))
        self.assertEqual((stall, process.name), (300 * MS, "worker-0-1"))

    def test_a_standstill_of_a_machine_that_was_taken_away_is_explained_for_as_long(self):
        for stolen, left in ((900, 0), (500, 400), (0, 900)):
            story = Story()
            story.start(0)
            story.add("worker-0-1", 1900, "stall", since=1000 * MS)
            if stolen:
                story.stolen(1900 - stolen, 1900)
            self.assertEqual([stall for stall, _ in unexplained_stalls(story.history())], [left * MS] if left else [])

    def test_a_run_of_which_hardly_any_time_was_left_is_too_slow_to_judge(self):
        for stolen, slow in ((74_000, False), (76_000, True)):
            story = Story()
            story.start(0)
            story.stolen(100, 100 + stolen)
            self.assertEqual([text[:27] for text in slowness(story.history())], ["a processor was taken away "] if slow else [])

    def test_a_machine_that_is_too_slow_to_judge_is_no_violation_and_no_success(self):
        for length, slow in ((900, False), (1100, True)):
            history = self.stalled(length)
            self.assertEqual(check_history.violations(history), [])
            self.assertEqual(bool(list(slowness(history))), slow)


class Strength(unittest.TestCase):
    found = {"acquisitions": 100, "waited": 34, "of any_of": 1, "of multi_lock": 1, "votes withheld": 1, "lost updates": 1,
             "hand-overs": {"in a client": 1, "between clients": 1}}

    def weaknesses(self, campaign="within", least=0, **weak):
        return len(list(check_history.weaknesses({**self.found, **weak}, campaign, least)))

    def test_a_campaign_that_could_show_something_is_strong(self):
        self.assertEqual(self.weaknesses(least=100), 0)

    def test_too_few_acquisitions_or_waits_or_no_lost_update_is_weak(self):
        self.assertEqual(self.weaknesses(least=101), 1)
        for weak in {"waited": 33}, {"lost updates": 0}, {"hand-overs": {"between clients": 0}}:
            self.assertEqual(self.weaknesses(**weak), 1)

    def test_a_campaign_without_what_it_is_there_for_is_weak(self):
        for campaign in "within", "outside", "red":
            of_several = 0 if campaign == "red" else 1
            self.assertEqual(self.weaknesses(campaign, **{"lost updates": 0}), 1)
            self.assertEqual(self.weaknesses(campaign, **{"of any_of": 0}), of_several)
            self.assertEqual(self.weaknesses(campaign, **{"of multi_lock": 0}), of_several)
            self.assertEqual(self.weaknesses(campaign, **{"votes withheld": 0}), 1 - of_several)


class Reading(unittest.TestCase):
    def test_what_a_killed_process_had_begun_to_write_is_left_out(self):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "worker-0-1.jsonl"
            path.write_text('{"t":1,"ev":"started"}\n{"t":2,"ev":"acq', encoding="ascii")
            self.assertEqual(len(list(histories.lines_of(path))), 1)


class Rounds(unittest.TestCase):
    def exit_status(self, *of_drivers):
        """Of a campaign whose drivers end so, and leave no history that breaks a rule."""
        arguments = ["history_test.py", "--build", "none", "--campaign", "cluster", "--seconds", "0"]
        with (mock.patch.object(history_test, "run_campaign", side_effect=of_drivers), mock.patch.object(sys, "argv", arguments),
              mock.patch.object(history_test.histories, "read"), mock.patch.object(check_history, "summary", return_value={}),
              mock.patch.object(check_history, "report", return_value=[]), redirect_stdout(io.StringIO())):
            return history_test.main()

    def test_a_round_on_a_machine_that_is_too_slow_is_replaced_three_times_at_most(self):
        slow = history_test.TOO_SLOW
        self.assertEqual(self.exit_status(0), 0)
        self.assertEqual(self.exit_status(slow, slow, slow, 0), 0)
        self.assertEqual(self.exit_status(slow, slow, slow, slow), 1)

    def test_a_driver_that_fails_or_finds_no_server_is_told(self):
        self.assertEqual(self.exit_status(1), 1)
        self.assertEqual(self.exit_status(history_test.SKIPPED), history_test.SKIPPED)


if __name__ == "__main__":
    unittest.main()
