# SPDX-License-Identifier: BSL-1.0
"""A machine that is too slow to judge."""
import unittest

import check_history
from checker.machine import slowness, unexplained_stalls
from checker_test.story import MS, Story


class Machine(unittest.TestCase):
    def stalled(self, length, stopped=0):
        story = Story()
        story.start(0)
        story.add("worker-0-1", 1000 + length, "stall", since=1000 * MS)
        if stopped:
            story.fault(1000, 1000 + stopped, "stop a worker", 0)
        return story.history()

    def test_a_standstill_that_the_nemesis_made_is_explained(self):
        self.assertEqual(list(unexplained_stalls(self.stalled(1900, stopped=1800))), [])

    def test_a_standstill_that_nobody_made_is_told(self):
        (stall, process), = unexplained_stalls(self.stalled(900, stopped=600))
        self.assertEqual((stall, process.name), (300 * MS, "worker-0-1"))

    def test_a_standstill_of_a_machine_that_was_taken_away_is_explained_for_as_long(self):
        for stolen, left in ((900, 0), (500, 400), (0, 900)):
            story = Story()
            story.start(0)
            story.add("worker-0-1", 1900, "stall", since=1000 * MS)
            if stolen:
                story.stolen(1900 - stolen, 1900)
            self.assertEqual([stall for stall, _ in unexplained_stalls(story.history())], [left * MS] if left else [])

    def test_a_run_of_which_hardly_any_time_was_left_is_too_slow_to_judge(self):
        for stolen, slow in ((74_000, False), (76_000, True)):
            story = Story()
            story.start(0)
            story.stolen(100, 100 + stolen)
            self.assertEqual([text[:27] for text in slowness(story.history())], ["a processor was taken away "] if slow else [])

    def test_a_machine_that_is_too_slow_to_judge_is_no_violation_and_no_success(self):
        for length, slow in ((900, False), (1100, True)):
            history = self.stalled(length)
            self.assertEqual(check_history.violations(history), [])
            self.assertEqual(bool(list(slowness(history))), slow)
