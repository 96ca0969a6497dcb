#!/usr/bin/env python3
# SPDX-License-Identifier: BSL-1.0
"""check_docs.py [ROOT]: what the documentation says must be so in the tree.

  quotes    a C++ block stands under `<!-- from docs/examples/... -->` and is a contiguous piece of that file
  tests     a name in “these marks” is a test case of the *_test.cpp that was linked last before it; “some words …
            of it” are those of one test case only
  faults    each row of a table under `<!-- faults -->` names a test, or a row that does, or says why there is none; no
            fault is missing, and none in two rows; such a page names each test once
  promises  each promise of safety.md, a sentence in italics, is in internals/promises.md under the same heading, and no other
            is; each row there names a test
  commands  shell blocks under the same `<!-- run: name -->` are the same on each page
  links     every relative link, and its #heading, exists
  errors    errors.md has every errc, with the text and the conditions that src/base/error.cpp gives it, and no other; and so has
            the comment of each condition in error.hpp
  texts     what internals/errors.md says that bad input is told is in the sources
  defaults  tables under `<!-- defaults -->` have every field of config, and of the structs in it as `sentinel.user`, with
            the default and the range that config.hpp and config.cpp have, in the order of config.hpp
  packages  the README's apt-get lines are those of quickstart.sh
  examples  at most 60 lines, begin with a comment, and end with their output unless they run for ever
  pictures  each docs/pictures/*.svg is what the script of its name prints

Prints each violation as path:line: text. Exit status 1 if there is any."""
import itertools
import re
import subprocess
import sys
import textwrap
from pathlib import Path
from urllib.parse import unquote

# Each fault has a number for good: a row that is deleted is missed.
FAULTS = {str(n) for n in range(1, 81)} | {
    "49a", "49b", "49c", "50a", "51a", "51b", "53a", "54a", "54b", "55a", "58a", "65a", "65b", "71b", "74b"}
UNITS = {"ms": 1, "s": 1000, "min": 60_000, "h": 3_600_000}
LEFT_OUT = r'(?:(?<!\w)|(?!\w))[^"]*(?:(?<!\w)|(?!\w))'  # whole words of a test's name


class Checker:
    def __init__(self, root):
        self.root = root
        self.violations = []
        self.faults = []
        names = ("README.md", "CHANGELOG.md", "CONTRIBUTING.md", "CODE_OF_CONDUCT.md", "SECURITY.md")
        self.pages = [root / name for name in names if (root / name).exists()]
        self.pages += sorted((root / "docs").rglob("*.md"))

    def complain(self, path, line, text):
        self.violations.append(f"{path.relative_to(self.root)}:{line}: {text}")

    def read(self, name):
        path = self.root / name
        return path.read_text(encoding="utf-8") if path.exists() else ""

    def run(self):
        if not self.pages:
            self.violations.append("no documentation found")
        for page in self.pages:
            lines = page.read_text(encoding="utf-8").splitlines()
            self.check_quotes(page, lines)
            prose = without_code(lines)
            self.check_links(page, prose)
            self.check_test_names(page, prose)
            self.check_faults(page, lines)
            self.check_defaults(page, lines)
        self.check_fault_numbers()
        self.check_promises()
        self.check_commands()
        self.check_errors()
        self.check_packages()
        self.check_examples()
        self.check_pictures()
        return self.violations

    # quotes

    def check_quotes(self, page, lines):
        source = None
        number = 0
        while number < len(lines):
            line = lines[number]
            number += 1
            marker = re.fullmatch(r"\s*<!-- from (\S+) -->\s*", line)
            if marker:
                source = (marker[1], number)
                continue
            if line.startswith("```"):
                language = line[3:].strip()
                begin = number
                while number < len(lines) and not lines[number].startswith("```"):
                    number += 1
                block = lines[begin:number]
                number += 1
                if language in ("cpp", "c++"):
                    self.check_block(page, begin, source, block)
                elif source:
                    self.complain(page, source[1], "the marker is not followed by a C++ block")
                source = None
            elif line.strip() and source:
                self.complain(page, source[1], "the marker is not followed by a C++ block")
                source = None

    def check_block(self, page, line, source, block):
        if not source:
            return self.complain(page, line, "a C++ block that quotes no example")
        if not (self.root / source[0]).is_file():
            return self.complain(page, line, f"{source[0]} does not exist")
        text = self.read(source[0]).splitlines()
        pieces = (text[i:i + len(block)] for i in range(len(text) - len(block) + 1))
        if not block or not any(block in (p, textwrap.dedent("\n".join(p)).split("\n")) for p in pieces):
            self.complain(page, line, f"not a piece of {source[0]}")

    # tests

    def check_test_names(self, page, prose):
        file = None
        text = "\n".join(prose)
        for found in re.finditer(r"\[[^\]]*\]\(([^)\s]+)\)|“([^”]*)”", text):
            line = text.count("\n", 0, found.start()) + 1
            if found[1]:
                if found[1].endswith("_test.cpp"):
                    file = (page.parent / found[1]).resolve()
            elif not file:
                self.complain(page, line, "a test without a link to its file")
            elif file.is_file():
                name = re.sub(r"\s*\n\s*", " ", found[2])
                pattern = LEFT_OUT.join(re.escape(part) for part in re.split(r"\s*…\s*", name))
                cases = re.findall(r'TEST_CASE\w*\((?:\s*\w+,)?\s*"' + pattern + '"', file.read_text(encoding="utf-8"))
                if not cases:
                    self.complain(page, line, f'{file.name} has no test "{name}"')
                elif len(cases) > 1 and "…" in name:
                    self.complain(page, line, f'{file.name} has several tests "{name}"')

    # faults

    def check_faults(self, page, lines):
        for start, line in enumerate(lines):
            if line != "<!-- faults -->":
                continue
            rows = list(itertools.takewhile(lambda row: row.startswith("| "), lines[start + 3:]))
            if not rows:
                self.complain(page, start + 1, "no faults")
            for number, row in enumerate(rows, start + 4):
                cells = row.strip("| ").split(" | ")
                numbers = cells[0].split(", ")
                self.faults += numbers
                shown_by = cells[-1]
                if not re.match(r"\[\w+\]\(\S+_test\.cpp\) “|as \d|skipped: \w", shown_by):
                    self.complain(page, number, "a fault without a test, and without a reason")
                for other in re.findall(r"\d+[abc]?", (re.search(r"(?:^|; )as ([^“]*)$", shown_by) or [""] * 2)[1]):
                    if other not in FAULTS or other in numbers:
                        self.complain(page, number, f"as {other}: there is no such row")
        if "<!-- faults -->" in lines:
            named = [(n, name) for n, line in enumerate(lines, 1) for name in re.findall("“([^”]+)”", line)]
            first = {name: n for n, name in reversed(named)}
            for number, name in named:
                if first[name] != number:
                    self.complain(page, number, f'"{name}" is named before, in line {first[name]}')

    def check_fault_numbers(self):
        for number in sorted(FAULTS.symmetric_difference(self.faults)):
            self.violations.append(f"fault {number}: {'has no row' if number in FAULTS else 'is not known'}")
        for number in sorted({n for n in self.faults if self.faults.count(n) > 1}):
            self.violations.append(f"fault {number}: has several rows")

    # promises

    def check_promises(self):
        safety, page = self.root / "docs/guide/safety.md", self.root / "docs/internals/promises.md"
        promised, kept = (promises(self.read(p.relative_to(self.root))) for p in (safety, page))
        if not promised:
            self.violations.append("docs/guide/safety.md: no promise found")
        for here, there, where in ((promised, kept, safety), (kept, promised, page)):
            for heading, promise in here.keys() - there.keys():
                self.complain(where, 1, f'"{promise}" is a promise of one page only, under "{heading}"')
        for section in kept.values():
            rows = re.findall(r"^\| .*", section, re.M)[1:]
            if not rows or not all("“" in row for row in rows):
                self.complain(page, 1, f'"{section.splitlines()[0]}": a promise without a test')

    # commands

    def check_commands(self):
        first = {}
        for page in self.pages:
            text = page.read_text(encoding="utf-8")
            for found in re.finditer(r"<!-- run: ([^>]*) -->\n\n```sh\n(.*?)```", text, re.S):
                where, commands = first.setdefault(found[1], (page, found[2]))
                if commands != found[2]:
                    line = text.count("\n", 0, found.start()) + 1
                    self.complain(page, line, f"\"{found[1]}\" is not as in {where.relative_to(self.root)}")

    # links

    def check_links(self, page, prose):
        for number, line in enumerate(prose, 1):
            for target in re.findall(r"\]\(([^)\s]+)\)", re.sub(r"`[^`]*`", "", line)):
                if re.match(r"[a-z]+:", target):
                    continue
                path, _, heading = target.partition("#")
                file = (page.parent / unquote(path)).resolve() if path else page
                if not file.exists():
                    self.complain(page, number, f"{target} does not exist")
                elif heading and heading not in headings(file):
                    self.complain(page, number, f"{target}: no such heading")

    # errors

    def check_errors(self):
        page = self.root / "docs/guide/errors.md"
        if not page.exists():
            return self.violations.append("docs/guide/errors.md is missing")
        declared = re.search(r"enum class errc \{(.*?)\n\};", self.read("include/holdfast/error.hpp"), re.S)
        codes = re.findall(r"^\s*(\w+)(?: = \d+)?,", declared[1], re.M) if declared else []
        texts = dict(re.findall(r'case errc::(\w+): return "([^"]*)"', self.read("src/base/error.cpp")))
        conditions = {code: re.findall(r"condition::(\w+)", said) for code, said in
                      re.findall(r"case errc::(\w+): return (0|only\([^;]*);", self.read("src/base/error.cpp"))}
        self.check_conditions(codes, conditions)
        lines = page.read_text(encoding="utf-8").splitlines()
        rows, sections = {}, set()
        for number, line in enumerate(lines, 1):
            row = re.match(r"\| \[`(\w+)`\]\(#(\w+)\) \| ([^|]*) \|", line)
            if row:
                rows[row[1]] = (number, row[3], re.findall(r"`(\w+)`", line.split("|")[-2]))
            section = re.match(r"### `(\w+)`$", line)
            if section:
                sections.add(section[1])
        self.check_texts(texts)
        if not codes:
            self.violations.append("include/holdfast/error.hpp: no errc found")
        for code in codes:
            if code not in rows:
                self.complain(page, 1, f"`{code}` is not in the table of all codes")
            elif rows[code][1] != texts.get(code):
                self.complain(page, rows[code][0], f"`{code}` says \"{texts.get(code)}\"")
            if code in rows and rows[code][2] != conditions.get(code):
                self.complain(page, rows[code][0], f"`{code}` belongs to {conditions.get(code)}")
            if code not in sections:
                self.complain(page, 1, f"`{code}` has no section")
        for name in (set(rows) | sections) - set(codes):
            self.complain(page, 1, f"`{name}` is no errc")

    def check_conditions(self, codes, conditions):
        """  misuse,  ///< code, code: …  as src/base/error.cpp has it."""
        header = self.root / "include/holdfast/error.hpp"
        declared = re.search(r"enum class condition \{(.*?)\n\};", self.read("include/holdfast/error.hpp"), re.S)
        text = re.sub(r"\n\s*///<", "", declared[1]) if declared else ""
        found = {name: set(listed.split(", ")) for name, listed in re.findall(r"(\w+)(?: = 1)?, +///< ([\w, ]+):", text)}
        for name in set(found) | {c for of in conditions.values() for c in of}:
            if found.get(name) != {code for code in codes if name in conditions.get(code, [])}:
                self.complain(header, 1, f"condition `{name}` is not what src/base/error.cpp says")

    def check_texts(self, texts):
        page = self.root / "docs/internals/errors.md"
        rows = [(number, row) for number, line in enumerate(self.read("docs/internals/errors.md").splitlines(), 1)
                if (row := re.search(r"\| `(invalid_\w+)` \| `([^`]*)` \|$", line))]
        if not rows:
            self.complain(page, 1, "no text of bad input")
        for number, row in rows:
            self.check_bad_input(page, number, row, texts)

    def check_bad_input(self, page, number, row, texts):
        """| input | `code` | `text with … for values` |: what stands between the values is in the sources."""
        meaning = texts.get(row[1], "?") + ": "
        if not row[2].startswith(meaning):
            return self.complain(page, number, f"a text of {row[1]} begins with \"{meaning}\"")
        sources = "".join(self.read(f"src/{name}.cpp") for name in
                          ("config/url", "config/host", "config/config", "config/deployment", "api/arguments", "redis/login",
                           "redis/tls"))
        strings = [" ".join(string.split()) for string in re.findall(r'"((?:[^"\\]|\\.)*)"', sources)]
        text = row[2].removeprefix(meaning).removeprefix("url: ")
        for phrase in re.split(r"…|\b\d+(?:\.\d+)?(?: (?:ms|s|h)\b)?", text):
            words = phrase.split()
            for _ in range(2):  # a phrase may be put together of two strings
                found = [n for n in range(len(words) + 1) if any(" ".join(words[:n]) in s for s in strings)]
                words = words[max(found):]
            if words:
                self.complain(page, number, f'"{phrase.strip()}" is in no text of the sources')

    # defaults

    def check_defaults(self, page, lines):
        for start, line in enumerate(lines):
            if line.strip() != "<!-- defaults -->":
                continue
            table = {}
            for number, row in enumerate(lines[start + 1:], start + 2):
                if table and not row.startswith("|"):
                    break
                cells = [c.strip() for c in row.strip("|").split("|")]
                if row.startswith("| `"):
                    table[cells[0].strip("`")] = (number, cells[1].strip("`"), cells[2])
            self.compare_defaults(page, start + 1, table)

    def compare_defaults(self, page, line, table):
        defaults = dict(fields_of("config", self.read("include/holdfast/config.hpp")))
        if not defaults:
            return self.complain(page, line, "no defaults found in config.hpp")
        for name in set(defaults) ^ set(table):
            self.complain(page, line, f"`{name}` is in only one of this table and config.hpp")
        order = [name for name in defaults if name in table]
        for name, expected in zip([name for name in table if name in defaults], order):
            if name != expected:
                self.complain(page, table[name][0], f"`{name}` stands where config.hpp has `{expected}`")
                break
        ranges = dict(re.findall(r'check_range\("(\w+)", \w+\.\w+, ([^,]+, [^,)]+)', self.read("src/config/config.cpp")))
        for name in set(defaults) & set(table):
            number, said, allowed = table[name]
            is_time = name in ranges
            if plain(said) != (float(defaults[name]) if is_time or numeric(defaults[name]) else defaults[name]):
                self.complain(page, number, f"the default of `{name}` is {defaults[name]}")
            declared = ranges.get(name, "").replace(" * config.", " ")  # a multiple of another field
            if is_time and [plain(t) for t in allowed.split(";")[0].split(" to ")] != [plain(t) for t in declared.split(", ")]:
                self.complain(page, number, f"the range of `{name}` is {ranges[name]}")

    # packages

    def check_packages(self):
        lists = dict(re.findall(r'^\s+([\w.-]+)\)\s+echo "([^"|]*)\|', self.read("cmake/quickstart.sh"), re.M))
        distro = None
        for number, line in enumerate(self.read("README.md").splitlines(), 1):
            name = re.match(r"# (Debian|Ubuntu) ([\d.]+)", line)
            if name:
                distro = f"{name[1]}-{name[2]}".lower().rstrip(".")
            if line.startswith("apt-get install "):
                if line.split()[2:] != lists.pop(distro, "").split():
                    self.complain(self.root / "README.md", number, f"not what quickstart.sh has for {distro}")
        for name in lists:
            self.complain(self.root / "README.md", 1, f"no apt-get line for {name}")

    # examples

    def check_examples(self):
        examples = sorted((self.root / "docs/examples").glob("[0-9]_*/*.cpp"))
        if not examples:
            self.violations.append("docs/examples: no example found")
        for path in examples:
            lines = path.read_text(encoding="utf-8").splitlines()
            if len(lines) > 60:
                self.complain(path, 61, "more than 60 lines")
            if len(lines) < 2 or not lines[1].startswith("// "):
                self.complain(path, 2, "says not what it shows")
            if not path.stem.endswith(("_server", "_test")) and "// Output:" not in lines:
                self.complain(path, len(lines), "no output to compare")

    # pictures

    def check_pictures(self):
        for path in sorted((self.root / "docs/pictures").glob("*.svg")):
            script = path.with_suffix(".py")
            drawn = subprocess.run([sys.executable, script], stdout=subprocess.PIPE, check=False).stdout
            if path.read_bytes() != drawn:
                self.complain(path, 1, f"not what {script.name} prints")


def without_code(lines):
    """The lines, those of code blocks empty."""
    result, inside = [], False
    for line in lines:
        fence = line.startswith("```")
        result.append("" if fence or inside else line)
        inside ^= fence
    return result


def headings(path):
    """The anchors of a page, made as GitHub makes them."""
    anchors = set()
    for line in without_code(path.read_text(encoding="utf-8").splitlines()):
        heading = re.match(r"#+ (.*)", line)
        if heading:
            anchors.add(re.sub(r"[^\w\- ]", "", heading[1].lower()).strip().replace(" ", "-"))
    return anchors


def promises(text):
    """{(heading, promise): text from the heading on}; a promise is a sentence in italics."""
    sections = re.split(r"^## ", text, flags=re.M)
    return {(section.splitlines()[0], " ".join(promise.split())): section for section in sections
            for promise in re.findall(r"(?<!\*)\*([^*|]+\.)\*(?!\*)", section)}


def fields_of(struct, header):
    """(name, default) of each field, in order; those of a field that is a struct of the same header as `field.name`."""
    body = re.search(rf"^struct {re.escape(struct)} \{{(.*?)^\}};", header, re.S | re.M)
    for kind, name, value in re.findall(r"^  ([\w:<>, ()&]+) (\w+)(?: = |\{)([^;}]*)\}?;", body[1], re.M) if body else []:
        inner = [(f"{name}.{field}", default) for field, default in fields_of(kind, header)]
        yield from inner or [(name, re.sub(r"^\w+::", "", value.strip('"').replace("'", "")))]


def numeric(text):
    return re.fullmatch(r"\d+(\.\d+)?", text) is not None


def plain(text):
    """A duration in milliseconds, another number as it is, anything else as text: "2 s", 2s, 0.01, "localhost"."""
    found = re.fullmatch(r"([\d.]+) ?(ms|s|min|h)?", text.replace("'", ""))
    return float(found[1]) * UNITS.get(found[2], 1) if found else text


def main():
    root = Path(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).parents[2]).resolve()
    violations = Checker(root).run()
    print("\n".join(violations) or "the documentation agrees with the tree")
    sys.exit(1 if violations else 0)


if __name__ == "__main__":
    main()
