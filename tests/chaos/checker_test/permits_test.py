# SPDX-License-Identifier: BSL-1.0
"""A semaphore: R1 by its number of permits, R11 by their sum, and no order between those who have some at once."""
from checker_test.story import RuleTest, Story


class Permits(RuleTest):
    def held(self, story, begin, end, permits=1, worker=0, **terms):
        return story.hold(begin, end, worker=worker, kind="permits", permits=permits, of=3, lock="permits-8", **terms)

    def test_as_many_as_there_are_may_be_held_at_once(self):
        for third, kept in (1, True), (2, False):
            story = Story()
            self.held(story, 10, 100)
            self.held(story, 20, 90, worker=1)
            self.held(story, 30, 80, permits=third, worker=2)
            self.assertEqual("R1" not in dict(story.violations()), kept)

    def test_too_many_are_told_with_all_who_have_some(self):
        story = Story()
        self.held(story, 10, 100, permits=2)
        self.held(story, 20, 90, permits=2, worker=1)
        self.breaks("R1", story, "permits-8: 4 of 3 permits were held when worker-1-1:2 began, by worker-0-1:2 too")

    def test_a_permit_that_came_back_is_held_no_more(self):
        story = Story()
        self.held(story, 10, 20, permits=3)
        self.held(story, 20.5, 40, permits=3, worker=1)
        self.keeps(story)

    def test_who_gives_back_after_another_was_granted_has_not_released_the_other(self):
        story = Story()
        self.held(story, 10, 100)
        self.held(story, 20, 40, worker=1)
        self.keeps(story)

    def test_the_sum_is_the_number_of_permits(self):
        for wrong in (True, False):
            story = Story()
            story.add("permits", 50, "looks", number=7)
            if wrong:
                story.add("permits", 20, "sum", left=2, out=2)
                self.breaks("R11", story, "2 permits were left, and 2 out (permits:1)")
            else:
                self.keeps(story)
