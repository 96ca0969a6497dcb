# SPDX-License-Identifier: BSL-1.0
"""Intervals of time, as history.py adds them up."""
import unittest

from checker import history as histories


class Time(unittest.TestCase):
    intervals = histories.Intervals([(30, 40), (10, 20), (15, 22), (40, 45)])

    def test_what_overlaps_or_touches_counts_once(self):
        self.assertEqual(list(self.intervals), [(10, 22), (30, 45)])
        self.assertEqual(self.intervals.within(0, 100), 27)
        self.assertEqual(self.intervals.within(12, 31), 11)
        self.assertEqual(self.intervals.within(22, 30), 0)

    def test_an_instant_after_so_much_time_outside(self):
        for begin, allowed, instant in ((0, 10, 10), (0, 11, 23), (0, 18, 30), (0, 19, 46), (15, 1, 23), (50, 5, 55), (30, 0, 30)):
            self.assertEqual(self.intervals.after(begin, allowed), instant, (begin, allowed))
        self.assertEqual(histories.Intervals().after(5, 6), 11)
