# SPDX-License-Identifier: BSL-1.0
"""The exit status of history_test.py, by how its rounds end."""
import io
import sys
import unittest
from contextlib import redirect_stdout
from unittest import mock

import check_history
import history_test


class Rounds(unittest.TestCase):
    def exit_status(self, *of_drivers):
        """Of a campaign whose drivers end so, and leave no history that breaks a rule."""
        arguments = ["history_test.py", "--build", "none", "--campaign", "cluster", "--seconds", "0"]
        with (mock.patch.object(history_test, "run_campaign", side_effect=of_drivers), mock.patch.object(sys, "argv", arguments),
              mock.patch.object(history_test.histories, "read"), mock.patch.object(check_history, "summary", return_value={}),
              mock.patch.object(check_history, "report", return_value=[]), redirect_stdout(io.StringIO())):
            return history_test.main()

    def test_a_round_on_a_machine_that_is_too_slow_is_replaced_three_times_at_most(self):
        slow = history_test.TOO_SLOW
        self.assertEqual(self.exit_status(0), 0)
        self.assertEqual(self.exit_status(slow, slow, slow, 0), 0)
        self.assertEqual(self.exit_status(slow, slow, slow, slow), 1)

    def test_a_driver_that_fails_or_finds_no_server_is_told(self):
        self.assertEqual(self.exit_status(1), 1)
        self.assertEqual(self.exit_status(history_test.SKIPPED), history_test.SKIPPED)
