# SPDX-License-Identifier: BSL-1.0
"""The exit status of history_test.py, by how its rounds end."""
import io
import itertools
import sys
import unittest
from contextlib import redirect_stdout
from unittest import mock

import check_history
import history_test


class Rounds(unittest.TestCase):
    def exit_status(self, *of_drivers, wrong=(), shortcomings=()):
        """Of a campaign whose drivers end so, and whose history breaks these rules and has these shortcomings."""
        arguments = ["history_test.py", "--build", "none", "--campaign", "cluster", "--seconds", "0"]
        with (mock.patch.object(history_test, "run_campaign", side_effect=of_drivers), mock.patch.object(sys, "argv", arguments),
              mock.patch.object(history_test.histories, "read"), mock.patch.object(check_history, "summary", return_value={}),
              mock.patch.object(check_history, "wrongs", return_value=wrong),
              mock.patch.object(check_history, "shortcomings", side_effect=shortcomings or itertools.repeat(())), redirect_stdout(io.StringIO())):
            return history_test.main()

    def test_a_round_on_a_machine_that_is_too_slow_is_replaced_three_times_at_most(self):
        slow = history_test.TOO_SLOW
        self.assertEqual(self.exit_status(0), 0)
        self.assertEqual(self.exit_status(slow, slow, slow, 0), 0)
        self.assertEqual(self.exit_status(slow, slow, slow, slow), 1)

    def test_a_round_that_is_too_weak_is_replaced_three_times_at_most(self):
        weak = ["too weak: of peers: none"]
        self.assertEqual(self.exit_status(0, 0, 0, 0, shortcomings=(weak, weak, weak, ())), 0)
        self.assertEqual(self.exit_status(0, 0, 0, 0, shortcomings=(weak, weak, weak, weak)), 1)

    def test_a_violation_fails_at_once_also_in_a_round_that_is_too_weak(self):
        self.assertEqual(self.exit_status(0, wrong=["R1 two holders"]), 1)
        self.assertEqual(self.exit_status(0, wrong=["R1 two holders"], shortcomings=(["too weak: of peers: none"],)), 1)

    def test_a_driver_that_fails_or_finds_no_server_is_told(self):
        self.assertEqual(self.exit_status(1), 1)
        self.assertEqual(self.exit_status(history_test.SKIPPED), history_test.SKIPPED)
