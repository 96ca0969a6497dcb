# SPDX-License-Identifier: BSL-1.0
"""R13: the holder of a lock knows within 50 ms that another program has deleted it."""
from checker_test.story import RuleTest, Story


class Changes(RuleTest):
    def changed(self, lost=1010, begin=0, changed=1000, **ends):
        """A hold of worker 0 that another program deletes."""
        story = Story()
        story.start(0)
        story.chatter(0, 2000)
        file = story.file_of(0)
        story.add(file, begin, "kept", op=10_000, lock="kept-0-0", ttl=600)
        story.add("changes", changed, "changed", lock="kept-0-0", since=int((changed - 1) * 1_000_000))
        if lost is not None:
            story.add(file, lost, "kept_lost", op=10_000)
        for event, t in ends.items():
            story.add(file, t, event, op=10_000)
        return story

    def test_a_holder_knows_within_50_ms(self):
        self.keeps(self.changed(lost=1050))
        self.breaks("R13", self.changed(lost=1051), "its holder knew 51.0 ms later")
        self.breaks("R13", self.changed(lost=None), "its holder knew never")

    def test_a_hold_is_tracked_after_its_first_renewal(self):
        self.keeps(self.changed(lost=1100, begin=701))
        self.breaks("R13", self.changed(lost=1100, begin=698), "its holder knew")

    def test_a_link_that_was_down_pushes_nothing(self):
        story = self.changed(lost=1100)
        story.fault(900, 905, "kill subscribers")
        self.keeps(story)
        story = self.changed(lost=1100)
        story.fault(900, 905, "lose messages", worker=1)
        self.breaks("R13", story, "its holder knew")

    def test_a_hold_that_was_given_up_is_told_nothing(self):
        self.keeps(self.changed(lost=None, kept_no_longer=1040))
        self.breaks("R13", self.changed(lost=None, kept_no_longer=1060), "its holder knew never")
