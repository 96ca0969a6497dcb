# SPDX-License-Identifier: BSL-1.0
"""R1: no two holds of a lock claim to be exclusive at the same time; a claim is no longer than its key lives."""
from checker_test.story import LOST, RuleTest, Story


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
