#!/usr/bin/env python3
# SPDX-License-Identifier: BSL-1.0
"""house.py accepts a tree in order, and complains of each kind of disorder."""
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

CHECKER = Path(__file__).with_name("house.py")
IN_ORDER = {
    "src/base/clock.hpp": "#pragma once\nint now();\n",
    "src/sync/hold/hold.hpp": '#pragma once\n#include "sync/hold/lease_record.hpp"\n',
    "src/sync/hold/hold.cpp": '#include "sync/hold/hold.hpp"\n// Whose the lock is.\nint held;\n',
    "src/sync/hold/lease_record.hpp": '#pragma once\n#include "sync/hold/hold.hpp"\n',
}


def complaints(changes):
    with tempfile.TemporaryDirectory() as folder:
        for name, text in {**IN_ORDER, **changes}.items():
            path = Path(folder, name)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        done = subprocess.run([sys.executable, CHECKER, "--check", folder], stdout=subprocess.PIPE, text=True, check=False)
        return done.returncode, done.stdout


class House(unittest.TestCase):
    def test_a_tree_in_order_passes(self):
        status, text = complaints({})
        self.assertEqual(status, 0, text)

    def finds(self, words, changes):
        status, text = complaints(changes)
        self.assertEqual(status, 1, text)
        self.assertIn(words, text)

    def test_a_circle_of_includes_is_found(self):
        self.finds("a circle of includes: redis/link, redis/pubsub",
                   {"src/redis/link.cpp": '#include "redis/pubsub.hpp"\n', "src/redis/pubsub.hpp": '#include "redis/link.hpp"\n',
                    "src/redis/link.hpp": "#pragma once\n"})

    def test_a_circle_that_grows_beyond_the_allowed_one_is_found(self):
        self.finds("a circle of includes: sync/hold/hold, sync/hold/lease_record, sync/line/turn",
                   {"src/sync/line/turn.hpp": '#include "sync/hold/hold.hpp"\n',
                    "src/sync/hold/hold.hpp": '#include "sync/hold/lease_record.hpp"\n#include "sync/line/turn.hpp"\n'})

    def test_pronouns_as_names_are_found_and_counted_by_file(self):
        self.finds("src/base/clock.hpp (2)", {"src/base/clock.hpp": "int what, its_name, how_; // which, who\n"})

    def test_pronouns_in_comments_and_texts_are_no_names(self):
        status, text = complaints({"src/base/clock.hpp": '// what and how\nconst char* text = "who said which";\n'})
        self.assertEqual(status, 0, text)

    def test_too_few_comments_are_found(self):
        self.finds("% of the lines of src/sync/**/*.cpp are comments", {"src/sync/name.cpp": "int code;\n" * 30})


if __name__ == "__main__":
    unittest.main()
