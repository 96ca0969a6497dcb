# SPDX-License-Identifier: BSL-1.0
"""Files of histories, as history.py reads them."""
import tempfile
import unittest
from pathlib import Path

from checker import history as histories


class Reading(unittest.TestCase):
    def test_what_a_killed_process_had_begun_to_write_is_left_out(self):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "worker-0-1.jsonl"
            path.write_text('{"t":1,"ev":"started"}\n{"t":2,"ev":"acq', encoding="ascii")
            self.assertEqual(len(list(histories.lines_of(path))), 1)
