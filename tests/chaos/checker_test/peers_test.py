# SPDX-License-Identifier: BSL-1.0
"""Peers write Redisson's locks: their holds exclude ours and are excluded by them. The library promises them nothing else."""
from checker_test.story import RuleTest, Story

PEER = "peer-0"


class Peers(RuleTest):
    def test_a_peer_and_a_worker_do_not_hold_a_lock_at_the_same_time(self):
        for second, kept in ((20.5, True), (18, False)):
            for one, other in ((PEER, 0), (0, PEER)):
                story = Story("beside")
                story.hold(10, 20, worker=one)
                story.hold(second, 40, worker=other)
                self.assertEqual("R1" not in dict(story.violations()), kept)

    def test_a_peer_that_held_in_time_is_not_told_of_a_loss(self):
        story = Story("beside")
        story.hold(10, 20, worker=PEER, error="the lock was lost")
        self.breaks("R2", story, "was said to be lost at its release")

    def test_a_call_of_a_peer_may_fail_and_may_take_long(self):
        for worker, kept in ((PEER, True), (0, False)):
            story = Story("beside")
            failed = story.ask(10, worker)
            story.add(story.file_of(worker), 20, "failed", op=failed, error="no answer from Redis")
            slow = story.ask(30, worker)
            story.get(slow, 900, worker=worker)
            story.release(slow, 901, worker)
            self.assertEqual("R6" not in dict(story.violations()), kept)

    def test_a_release_of_a_peer_wakes_a_worker_that_waits(self):
        def handed_over(after):
            story = Story("beside")
            for begin in range(0, 1000, 200):
                waiter = story.ask(begin + 1)
                story.hold(begin + 2, begin + 40, worker=PEER)
                story.get(waiter, begin + 41 + after)
                story.release(waiter, begin + 42 + after)
            return story

        self.keeps(handed_over(5))
        self.breaks("R6", handed_over(70), "5 of 5 hand-overs took more than 50.0 ms")

    def test_nobody_is_owed_turns_beside_a_peer(self):
        for peer, kept in ((True, True), (False, False)):
            story = Story("beside", turns="all")
            waiter = story.ask(20)
            for turn in range(9):
                story.hold(50 + 10 * turn, 52 + 10 * turn, client=1, hold_id=f"u:{turn}")
            if peer:
                story.hold(145, 146, worker=PEER, hold_id="p:1")
            story.get(waiter, 150)
            story.release(waiter, 151)
            self.assertEqual("R9" not in dict(story.violations()), kept)
