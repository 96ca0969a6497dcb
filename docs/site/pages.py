#!/usr/bin/env python3
# SPDX-License-Identifier: BSL-1.0
"""pages.py OUT: the documents of this tree as MkDocs wants them.

A page keeps its place, so that links between pages stay as they are. A link to a header goes to its page in the
reference. Another file that a page links to becomes a page itself, with its text to read and to copy: the site needs no
server and no repository beside it."""
import os
import re
import shutil
import sys
from pathlib import Path
from urllib.parse import unquote

ROOT = Path(__file__).resolve().parents[2]
PICTURES = {".svg", ".png"}
LANGUAGES = {".cpp": "cpp", ".hpp": "cpp", ".py": "python", ".sh": "sh", ".lua": "lua", ".sql": "sql", ".json": "json",
             ".yml": "yaml", ".cmake": "cmake", ".md": "markdown"}
LINK = re.compile(r"(`+[^`]*`+)|(\]\()([^)\s#]+)(#[^)\s]*)?\)")
LONGEST = 2000  # lines of a file that is shown


class Site:
    def __init__(self, out):
        self.out = out
        self.files = []  # linked by a page, and no pages
        self.headers = {path.relative_to(out / "reference").as_posix() for path in (out / "reference").rglob("*.md")}

    def write(self, path, text):
        (self.out / path).parent.mkdir(parents=True, exist_ok=True)
        (self.out / path).write_text(text, encoding="utf-8")

    def run(self):
        names = ("README.md", "CHANGELOG.md", "CONTRIBUTING.md", "CODE_OF_CONDUCT.md", "SECURITY.md")
        pages = [ROOT / name for name in names if (ROOT / name).is_file()]
        for path in [*pages, *sorted((ROOT / "docs").rglob("*.md"))]:
            self.add_page(path.relative_to(ROOT).as_posix(), path.read_text(encoding="utf-8"))
        for name in self.files:  # grows meanwhile
            self.add_file(name)

    def add_page(self, name, text):
        found, in_code = [], False
        for line in without_comments(text).splitlines():
            fence = re.match(r"\s*```", line)
            if not fence and not in_code:
                line = self.with_links(name, line)
                if needs_a_line_before(found, line):
                    found.append("")
                line = in_deeper_lists(line)
            elif fence and not in_code and found and found[-1].strip():
                found.append("")
            in_code ^= bool(fence)
            found.append(line)
        front = "---\nhide: [navigation]\n---\n" if name == "README.md" else ""
        self.write(name, front + "\n".join(found) + "\n")

    def with_links(self, page, line):
        def linked(found):
            if found[1] or re.match(r"[a-z]+:", found[3]):
                return found[0]
            target = os.path.normpath(os.path.join(os.path.dirname(page), unquote(found[3])))
            to, heading = self.place_of(target), found[4] or ""
            path = os.path.relpath(to, os.path.dirname(page) or ".")
            return f"{found[2]}{path}{heading if to == target else ''})"
        if line.startswith("|"):  # in a table, Python's Markdown takes a pipe in code as it is
            line = re.sub(r"`[^`]*`", lambda code: code[0].replace("\\|", "|"), line)
        return LINK.sub(linked, line)

    def place_of(self, name):
        path = ROOT / name
        if path.suffix == ".md" and path.is_file():
            return name
        if path.is_dir() and (path / "README.md").is_file() and name.startswith("docs/"):
            return f"{name}/README.md"
        header = re.fullmatch(r"(?:src/otel/)?include/holdfast/(.*)\.hpp", name)
        if header and f"{header[1]}.md" in self.headers:
            return f"reference/{header[1]}.md"
        if name.startswith("include/holdfast") and path.is_dir():
            return "reference/index.md"
        if name not in self.files:
            self.files.append(name)
        return name if path.suffix in PICTURES else f"{name.rstrip('/')}.md"

    def add_file(self, name):
        path = ROOT / name
        if path.suffix in PICTURES:
            (self.out / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, self.out / name)
            return
        # The reader who searches wants a guide, a function or an example; not each test that uses it.
        front = "" if name.startswith("docs/examples/") else "search:\n  exclude: true\n"
        lines = ["---", f"title: {path.name}", f"{front}hide: [toc]", "---", f"# {path.name}", "", f"`{name}`", ""]
        if path.is_dir():
            for entry in sorted(path.iterdir()):
                label = f"`{entry.name}{'/' if entry.is_dir() else ''}`"
                to = entry.relative_to(ROOT).as_posix()
                known = entry.suffix not in PICTURES and (to in self.files or entry.suffix == ".md")
                to = os.path.relpath(self.place_of(to), os.path.dirname(name) or ".") if known else ""
                lines.append(f"- [{label}]({to})" if known else f"- {label}")
        elif path.is_file():
            text = path.read_text(encoding="utf-8").splitlines()
            text = text[:LONGEST] + (["…"] if len(text) > LONGEST else [])
            lines += [f"````{LANGUAGES.get(path.suffix, 'text')}", *text, "````"]
        else:
            sys.exit(f"{name} is linked and does not exist")
        self.write(f"{name.rstrip('/')}.md", "\n".join(lines) + "\n")


def without_comments(text):
    """Markers like `from docs/examples/…` are for the tests."""
    return re.sub(r"^[ \t]*<!--.*?-->[ \t]*\n", "", text, flags=re.M | re.S)


def needs_a_line_before(before, line):
    """GitHub begins a list or a table without an empty line before it, Python's Markdown does not."""
    if not before or not before[-1].strip():
        return False
    item, last_item = (re.match(r"\s*(?:[-*]|\d+\.)\s", text) for text in (line, before[-1]))
    if item and not last_item and not before[-1].startswith(" "):
        return True
    return line.startswith("|") and not before[-1].startswith("|")


def in_deeper_lists(line):
    """An inner list is indented by 2 or 3 for GitHub, by 4 here."""
    inner = re.match(r" {1,3}(?=(?:[-*]|\d+\.)\s)", line)
    return "    " + line[inner.end():] if inner else line


if __name__ == "__main__":
    Site(Path(sys.argv[1])).run()
