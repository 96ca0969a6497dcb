# SPDX-License-Identifier: BSL-1.0
"""R4: a loss is signalled at once, and only where there is one."""
from checker_test.story import LOST, MS, RuleTest, Story


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
        for call, ask in ("re-entry", lambda story: story.reenter), ("renewal", lambda story: story.renew):
            self.breaks("R4", self.told_lost(ask, 100), f"the {call} worker-0-1:3 was told that it was lost 300.0 ms before the end")
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
