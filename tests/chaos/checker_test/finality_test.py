# SPDX-License-Identifier: BSL-1.0
"""R5: what is over stays over."""
from checker_test.story import LOST, MS, RuleTest, Story


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
        for hold_id, kept in (("another", True), ("this", False)):
            story = Story()
            op = story.hold(10, None, hold_id="this")
            story.force(90, 91, worker=1)
            story.look(op, 103, True, valid=300)
            story.told_lost(102, hold_id=hold_id)
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
