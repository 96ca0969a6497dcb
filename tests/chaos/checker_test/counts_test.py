# SPDX-License-Identifier: BSL-1.0
"""R2: Redis counts the leases, and a release finds what is still valid."""
from checker_test.story import LOST, MS, RuleTest, Story


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
