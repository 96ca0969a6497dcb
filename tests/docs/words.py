#!/usr/bin/env python3
# SPDX-License-Identifier: BSL-1.0
"""words.py [--check | --not-yet] [ROOT]: can the documents be read?

  words     so many of a page, its code blocks among them, and of the guide and the internals in all: within the budget
  median    the words of the middle sentence of a page
  long      sentences that are longer than any may be
  bookish   words of books and translations, for which there is a plain one
  headings  that are not followed by a sentence: a reader who jumps there should be told what to do

Prints the pages and the sentences that are worst, ten of each kind. With --check, exit status 1 if a figure is over its
limit, or over that in NOT_YET for a page that is still to be shortened. --not-yet prints NOT_YET as it is today."""
import re
import statistics
import sys
from pathlib import Path

BUDGETS = {  # words
    "CODE_OF_CONDUCT.md": 150,
    "README.md": 1300,
    "SECURITY.md": 380,
    "CONTRIBUTING.md": 1000,
    "docs/benchmarks.md": 3230,
    "docs/cli.md": 1060,
    "docs/comparison.md": 1500,
    "docs/demo.md": 900,
    "docs/quickstart.md": 700,
    "docs/guide/cancellation.md": 900,
    "docs/guide/compatibility.md": 400,
    "docs/guide/completion_tokens.md": 350,
    "docs/guide/errors.md": 1310,
    "docs/guide/fencing.md": 600,
    "docs/guide/from_redis_plus_plus.md": 500,
    "docs/guide/from_redisson.md": 1050,
    "docs/guide/from_set_nx_px.md": 400,
    "docs/guide/in_order.md": 570,
    "docs/guide/incident.md": 800,
    "docs/guide/install.md": 400,
    "docs/guide/lease.md": 1200,
    "docs/guide/metrics.md": 940,
    "docs/guide/one_leader.md": 500,
    "docs/guide/opentelemetry.md": 400,
    "docs/guide/page.md": 450,
    "docs/guide/operating.md": 1020,
    "docs/guide/other_frameworks.md": 500,
    "docs/guide/plain_threads.md": 1000,
    "docs/guide/platforms.md": 300,
    "docs/guide/readers_and_writers.md": 700,
    "docs/guide/red_lock.md": 600,
    "docs/guide/safety.md": 1700,
    "docs/guide/settings.md": 460,
    "docs/guide/start_together.md": 420,
    "docs/guide/testing.md": 1000,
    "docs/guide/topologies.md": 900,
    "docs/guide/upgrading.md": 600,
    "docs/guide/which_lock.md": 1200,
    "docs/guide/workers.md": 700,
    "docs/guide/wrong_ways.md": 700,
    "docs/internals/adding_a_kind.md": 350,
    "docs/internals/blocking.md": 250,
    "docs/internals/connections.md": 370,
    "docs/internals/design.md": 1290,
    "docs/internals/election.md": 220,
    "docs/internals/errors.md": 370,
    "docs/internals/exploration.md": 500,
    "docs/internals/fair_lock.md": 490,
    "docs/internals/history_test.md": 900,
    "docs/internals/latch.md": 420,
    "docs/internals/leases.md": 240,
    "docs/internals/profile.md": 560,
    "docs/internals/model.md": 320,
    "docs/internals/permits.md": 430,
    "docs/internals/promises.md": 640,
    "docs/internals/proof.md": 1510,
    "docs/internals/protocol.md": 1890,
    "docs/internals/pushes.md": 590,
    "docs/internals/release.md": 360,
    "docs/internals/shared_lock.md": 420,
    "docs/internals/simple_lock.md": 490,
    "docs/internals/taking_turns.md": 250,
    "docs/internals/test_kit.md": 100,
    "docs/internals/topologies.md": 510,
    "docs/internals/tour.md": 380,
}
OTHER_PAGES = 1500  # a page that needs more is two pages
# 18,000, and the pages that need one of their own: 700 for readers and writers, 400 for start together, 700 for
# workers, 500 for one leader, 450 for the page that shows the locks, 570 for order, 300 for all of Redisson's types,
# 400 for compatibility, 400 for installing. The internals: 360 for release,
# 490 for the fair lock, 320 for the model, 490 for the search of small worlds.
GROUPS = {"the guide": (22_640, r"docs/(guide/.*|quickstart)\.md"), "the internals": (15_200, r"docs/internals/.*\.md")}
LONGEST = 40  # words of a sentence
MEDIAN = 16
BOOKISH = ("as ever", "at the latest", "besides", "but for", "by far the most", "for ever", "in vain", "lest", "of which",
           "so long")

# What is over its limit today. Only less of it is accepted; an entry that is no longer needed is named, and can go.
NOT_YET = {
}

ABBREVIATIONS = {"e.g.", "i.e.", "etc.", "vs.", "cf.", "approx.", "resp.", "incl."}
ITEM = re.compile(r"^\s*(?:[-*+]|\d+[.)])\s+")


class Page:
    def __init__(self, name, text):
        self.name = name
        text = re.sub(r"<!--.*?-->", lambda found: "\n" * found[0].count("\n"), text, flags=re.S)
        self.words = count(text)
        self.lines = text.splitlines()
        self.sentences = []  # (line, text)
        self.bookish = []
        self.headings = []
        self.read()
        lengths = [count(sentence) for _, sentence in self.sentences]
        self.median = statistics.median(lengths) if lengths else 0
        self.long = [(line, text) for line, text in self.sentences if count(text) > LONGEST]

    def read(self):
        block, heading = [], None  # lines of a paragraph or an item; a heading without a sentence until now
        in_code = False

        def end_block():
            if block and not block[0][1].startswith("Tests:"):  # a list of names
                self.sentences += sentences(block)
            block.clear()

        for number, line in enumerate(self.lines, 1):
            line = re.sub(r"^\s*>\s?", "", line)  # a box is prose
            fence = re.match(r"\s*(```|~~~)", line)
            title = not in_code and re.match(r"#+\s+(.*)", line)
            kind = ("code" if fence or in_code else "title" if title else "table" if line.lstrip().startswith("|") else
                    "blank" if not line.strip() or line.lstrip().startswith("<") else "item" if ITEM.match(line) else "text")
            in_code ^= bool(fence)
            if kind in ("table", "text", "item", "title"):
                self.find_bookish(number, line)
            if kind != "text":
                end_block()
            if kind in ("text", "item"):
                block.append((number, ITEM.sub("", line)))
            if kind == "title":
                if heading:
                    self.headings.append(heading)
                heading = (number, title[1])
            elif kind != "blank" and heading:
                if kind != "text":
                    self.headings.append(heading)
                heading = None
        end_block()
        if heading:
            self.headings.append(heading)

    def find_bookish(self, number, line):
        rest = self.lines[number].lstrip() if number < len(self.lines) else ""  # a phrase may go over the end of its line
        for phrase in BOOKISH:
            for found in re.finditer(rf"\b{phrase}\b", plain(line + " " + " ".join(rest.split()[:len(phrase.split()) - 1])),
                                     re.I):
                self.bookish.append((number, found[0]))

    def figures(self):
        return {"words": self.words, "median": self.median, "long": len(self.long), "bookish": len(self.bookish),
                "headings": len(self.headings)}

    def limits(self):
        return {"words": BUDGETS.get(self.name, OTHER_PAGES), "median": MEDIAN, "long": 0, "bookish": 0, "headings": 0}


def count(text):
    """Words: what stands between spaces and has a letter or a digit."""
    return sum(bool(re.search(r"[^\W_]", word)) for word in text.replace("|", " ").split())


def plain(text):
    """Without links and emphasis; a piece of code and the name of a test are one word each."""
    text = re.sub(r"!\[[^\]]*\]\([^)]*\)", "", text)
    text = re.sub(r"``.+?``|`[^`]*`", "Code", text, flags=re.S)
    text = re.sub(r"“[^”]*”", "Name", text)  # of a test
    text = re.sub(r"\[([^\]]*)\](?:\([^)]*\)|\[[^\]]*\])", r"\1", text)
    return re.sub(r"\*|(?<!\w)_+|_+(?!\w)|<[^>]+>", "", text)


def sentences(block):
    """[(line, sentence)] of a paragraph; its lines are joined, each word remembers its line."""
    text = plain("\n".join(line for _, line in block))
    first, found, current = block[0][0], [], []
    for row, line in enumerate(text.split("\n")):
        for word in line.split():
            current.append((first + row, word))
            if re.search(r"[.!?][\"'”’)\]]*$", word) and word.lower().lstrip("(") not in ABBREVIATIONS:
                found.append(current)
                current = []
    found.append(current)
    return [(words[0][0], " ".join(word for _, word in words)) for words in found if count(" ".join(w for _, w in words))]


def pages_of(root):
    names = [*(root / name for name in ("README.md", "CONTRIBUTING.md", "CODE_OF_CONDUCT.md", "SECURITY.md")),
             *sorted((root / "docs").rglob("*.md"))]
    return [Page(p.relative_to(root).as_posix(), p.read_text(encoding="utf-8")) for p in names
            if p.is_file() and "examples" not in p.relative_to(root).parts]


def all_figures(pages):
    """{"PAGE WHAT": (figure, limit)}"""
    found = {f"{page.name} {what}": (figure, page.limits()[what]) for page in pages for what, figure in page.figures().items()}
    for group, (limit, pattern) in GROUPS.items():
        found[f"{group} words"] = (sum(p.words for p in pages if re.fullmatch(pattern, p.name)), limit)
    return found


def worst(title, rows):
    rows = list(rows)
    if rows:
        print(f"{title} ({len(rows)} in all):" if len(rows) > 10 else f"{title}:")
        print("".join(f"  {row}\n" for row in rows[:10]), end="")


def report(pages, figures):
    for group, (limit, _) in GROUPS.items():
        print(f"{group}: {figures[f'{group} words'][0]} of {limit} words")
    over = sorted((p for p in pages if p.words > p.limits()["words"]), key=lambda p: p.limits()["words"] - p.words)
    worst("pages over their budget", (f"{p.name}: {p.words} of {p.limits()['words']} words" for p in over))
    slow = sorted((p for p in pages if p.median > MEDIAN), key=lambda p: -p.median)
    worst(f"pages whose median sentence has more than {MEDIAN} words", (f"{p.name}: {p.median:g}" for p in slow))
    long = sorted(((count(text), f"{p.name}:{line}", text) for p in pages for line, text in p.long), reverse=True)
    worst(f"sentences of more than {LONGEST} words", (f"{place}: {n}: {text[:90]}…" for n, place, text in long))
    worst("bookish words", (f"{p.name}:{line}: {text}" for p in pages for line, text in p.bookish))
    worst("headings without a first sentence", (f"{p.name}:{line}: {text}" for p in pages for line, text in p.headings))


def complaints(figures):
    for key, (figure, limit) in figures.items():
        if figure > max(limit, NOT_YET.get(key, 0)):
            yield f"{key}: {figure:g}, at most {NOT_YET.get(key, limit)}"


def can_go(figures):
    return [key for key in NOT_YET if key not in figures or figures[key][0] <= figures[key][1]]


def main(arguments):
    root = Path(next((a for a in arguments if not a.startswith("--")), Path(__file__).resolve().parents[2]))
    pages = pages_of(root)
    figures = all_figures(pages)
    if "--not-yet" in arguments:
        print("".join(f'    "{key}": {figure:g},\n' for key, (figure, limit) in figures.items() if figure > limit), end="")
        return 0
    report(pages, figures)
    if "--check" not in arguments:
        return 0
    found = list(complaints(figures)) if pages else [f"{root}: nothing to check"]
    for key in can_go(figures):
        print(f"no longer needed in NOT_YET: {key}")
    print("\n".join(found) or "the documents can be read")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
