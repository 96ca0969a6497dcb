# SPDX-License-Identifier: BSL-1.0
"""R12: a latch opens once, after exactly the confirmed count-downs, and its waiters are let in."""
from checker_test.story import RuleTest, Story


class Latches(RuleTest):
    def story(self, count=3):
        """A latch that was set, and that worker 1 has seen closed at 30."""
        story = Story()
        self.operations = 100
        self.call(story, 10, 20, "set", count, value=1)
        self.call(story, 25, 30, "count", value=count, worker=1)
        return story

    def call(self, story, begin, end, verb, number=0, value=None, worker=0):
        """`end`: None for a call without an answer. `value`: None for one that failed."""
        self.operations += 1
        file = story.file_of(worker)
        story.add(file, begin, "latch", op=self.operations, latch="latch-1", verb=verb, number=number)
        if end is not None:
            answer = {"error": "not confirmed by Redis"} if value is None else {"value": value}
            story.add(file, end, "latch_answer", op=self.operations, **answer)

    def count_down(self, story, begin, end, number=1, confirmed=True, worker=0):
        self.call(story, begin, end, "count_down", number, 0 if confirmed else None, worker)

    def test_a_latch_opens_after_the_confirmed_calls(self):
        for number, kept in (3, True), (2, False):
            story = self.story()
            self.count_down(story, 40, 50, number)
            self.call(story, 60, 65, "wait", 100, value=1)
            if kept:
                self.keeps(story)
            else:
                self.breaks("R12", story, "saw 0 left, and 1 or more must be: a call counted twice")

    def test_a_confirmed_call_counts(self):
        for left, kept in (1, True), (2, False):
            story = self.story()
            self.count_down(story, 40, 50, 2)
            self.call(story, 60, 65, "count", value=left)
            if kept:
                self.keeps(story)
            else:
                self.breaks("R12", story, "saw 2 left, and 1 at most may be: a confirmed call did not count")

    def test_a_call_that_is_not_confirmed_counts_once_or_not_at_all(self):
        for end in 50, None:
            for left, kept in (3, True), (2, True), (1, False):
                story = self.story()
                self.count_down(story, 40, end, confirmed=False)
                self.call(story, 60, 65, "count", value=left)
                if kept:
                    self.keeps(story)
                else:
                    self.breaks("R12", story, "a call counted twice")

    def test_a_call_that_runs_during_a_look_counts_in_it_or_after_it(self):
        for left in 3, 2:
            story = self.story()
            self.count_down(story, 40, 50)
            self.call(story, 45, 65, "count", value=left)
            self.keeps(story)

    def test_a_short_wait_for_an_open_latch_may_see_nothing(self):
        story = self.story()
        self.count_down(story, 40, 50, 3)
        self.call(story, 60, 65, "count", value=0)
        self.call(story, 70, 90, "wait", 20, value=0)
        self.keeps(story)

    def test_a_look_before_the_set_says_nothing(self):
        story = self.story()
        self.call(story, 5, 9, "count", value=0, worker=2)
        self.keeps(story)

    def test_a_latch_is_set_once(self):
        story = self.story()
        self.call(story, 40, 50, "set", 3, value=1)
        self.breaks("R12", story, "latch-1 was set twice")

    def test_a_caller_waits_for_an_open_latch_until_its_poll(self):
        for end, let_in, kept in (380, 1, True), (380, 0, True), (480, 1, False), (480, 0, False):
            story = self.story()
            story.chatter(1, 600)
            self.count_down(story, 40, 50, 3)
            self.call(story, 60, 65, "count", value=0)
            self.call(story, 35, end, "wait", 1000, value=let_in)
            if kept:
                self.keeps(story)
            else:
                self.breaks("R12", story, "waited, though the latch had been open")

    def test_a_wait_ends_at_its_deadline(self):
        for end, kept in (180, True), (200, False):
            story = self.story()
            self.call(story, 40, end, "wait", 50, value=0)
            if kept:
                self.keeps(story)
            else:
                self.breaks("R12", story, "ended later than its deadline")
