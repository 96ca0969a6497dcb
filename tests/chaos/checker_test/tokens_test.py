# SPDX-License-Identifier: BSL-1.0
"""R3: tokens grow, and the resource never goes back."""
from checker_test.story import RuleTest, Story


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
