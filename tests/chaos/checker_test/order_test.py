# SPDX-License-Identifier: BSL-1.0
"""R9: waiters of one client are served in their order, and no client overtakes another for long."""
from checker_test.story import RuleTest, Story


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
