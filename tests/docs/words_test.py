#!/usr/bin/env python3
# SPDX-License-Identifier: BSL-1.0
"""words.py accepts pages that can be read, and complains of each kind that cannot."""
import contextlib
import io
import sys
import tempfile
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
import words

PLAIN = """# Locks

Take a lock with `lock()`, e.g. in a coroutine. Keep the lease!

| a table | has no sentences |
|---|---|
| for ever | of that size |

## Release

<!-- from docs/examples/hello.cpp -->
Call `unlock()`.

- An item is a sentence
- and so is the next

```sh
sleep # besides, code is read as code: """ + "word " * 100 + """
```
"""


def check(text, name="docs/guide/lease.md", not_yet=None, arguments=("--check",)):
    with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(io.StringIO()) as said:
        path = Path(folder, name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        before, words.NOT_YET = words.NOT_YET, not_yet or {}
        try:
            status = words.main([*arguments, folder])
        finally:
            words.NOT_YET = before
    return status, said.getvalue()


def page(text):
    return words.Page("docs/guide/lease.md", text)


class Words(unittest.TestCase):
    def finds(self, complaint, text, name="docs/guide/lease.md"):
        status, said = check(text, name)
        self.assertEqual(status, 1, said)
        self.assertIn(complaint, said)

    def test_a_page_that_can_be_read_passes(self):
        status, said = check(PLAIN.replace("for ever", "indefinitely"))
        self.assertEqual(status, 0, said)

    def test_words_have_a_letter_or_a_digit_and_pipes_separate(self):
        self.assertEqual(words.count("| a | 2 | - | — |b|c| -> `x` |"), 5)

    def test_code_counts_in_the_budget_and_markers_do_not(self):
        self.assertEqual(page("<!-- from a.cpp -->\n```cpp\nint x = 1;\n```\ntext\n").words, 5)

    def test_sentences_end_where_they_end(self):
        found = [text for _, text in page(PLAIN).sentences]
        self.assertEqual(found, ["Take a lock with Code, e.g. in a coroutine.", "Keep the lease!", "Call Code.",
                                 "An item is a sentence", "and so is the next"])

    def test_a_sentence_knows_its_line(self):
        self.assertEqual([line for line, _ in page("One\ntwo. Three\nfour. Five.\n").sentences], [1, 2, 3])

    def test_links_code_and_names_of_tests_are_short(self):
        found = page("See [the `lock()` page](a/b/c.md), **bold** `a b c d` and “a test of many words”.\n").sentences
        self.assertEqual(found, [(1, "See the Code page, bold Code and Name.")])

    def test_a_list_of_tests_is_no_sentence(self):
        self.assertEqual(page("Tests: [a_test.cpp](a_test.cpp) “one”,\n“two”\n").sentences, [])

    def test_a_page_over_its_budget_is_found(self):
        self.finds("README.md words: 1301, at most 1300", "one two.\n\n" * 650 + "three.\n", "README.md")

    def test_a_page_without_a_budget_of_its_own_has_that_of_others(self):
        self.finds("docs/internals/new.md words: 1501, at most 1500", "word.\n\n" * 1501, "docs/internals/new.md")

    def test_groups_are_counted_in_all(self):
        limit, _ = words.GROUPS["the guide"]
        self.finds(f"the guide words: {limit + 1}, at most {limit}", "word.\n\n" * (limit + 1))

    def test_a_sentence_that_is_too_long_is_found(self):
        self.finds("docs/guide/lease.md long: 1, at most 0", "Short. " * 9 + "word " * 41 + ".\n")

    def test_sentences_that_are_too_long_as_a_rule_are_found(self):
        self.finds("docs/guide/lease.md median: 17, at most 16", ("word " * 16 + "end. ") * 3)

    def test_bookish_words_are_found_in_prose_and_tables(self):
        self.finds("docs/guide/lease.md:7: for ever", PLAIN)

    def test_bookish_words_are_found_over_the_end_of_a_line(self):
        self.assertEqual(page("It waits for\never. But\nnot for everyone.\n").bookish, [(1, "for ever")])

    def test_a_heading_without_a_sentence_is_found(self):
        for follows in ("- an item\n", "```sh\nls\n```\n", "| table |\n", "## Next\n\nText.\n", ""):
            found = page(f"# Title\n\nText.\n\n## Bare\n\n{follows}").headings
            self.assertEqual(found, [(5, "Bare")], follows)

    def test_a_comment_in_code_is_no_heading(self):
        self.assertEqual(page("# Title\n\nText.\n\n```sh\n# comment\n```\n").headings, [])

    def test_a_page_that_is_to_be_shortened_may_only_get_shorter(self):
        text = "word " * 41 + ".\n"
        self.assertEqual(check(text, not_yet={"docs/guide/lease.md long": 1, "docs/guide/lease.md median": 41})[0], 0)
        self.assertEqual(check(text + "\n" + text, not_yet={"docs/guide/lease.md long": 1,
                                                            "docs/guide/lease.md median": 41})[0], 1)

    def test_what_has_been_shortened_is_named(self):
        status, said = check("Short.\n", not_yet={"docs/guide/lease.md long": 1, "docs/guide/gone.md words": 2000})
        self.assertEqual(status, 0, said)
        self.assertIn("no longer needed in NOT_YET: docs/guide/lease.md long", said)
        self.assertIn("no longer needed in NOT_YET: docs/guide/gone.md words", said)

    def test_today_is_printed_as_it_goes_into_the_script(self):
        self.assertEqual(check("word " * 41 + ".\n", arguments=("--not-yet",))[1],
                         '    "docs/guide/lease.md median": 41,\n    "docs/guide/lease.md long": 1,\n')

    def test_without_check_it_only_prints(self):
        status, said = check("word " * 41 + ".\n", arguments=())
        self.assertEqual(status, 0)
        self.assertIn("docs/guide/lease.md:1: 41: word word", said)

    def test_no_page_is_an_error(self):
        self.assertEqual(check("", name="elsewhere.md")[0], 1)


if __name__ == "__main__":
    unittest.main()
