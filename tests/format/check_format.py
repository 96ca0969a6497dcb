#!/usr/bin/env python3
# SPDX-License-Identifier: BSL-1.0
"""check_format.py lines|clang-format [ROOT]: how the sources look.

  lines         no line of C++ or Lua, and no comment of another language, is longer than 120 columns
  clang-format  clang-format 16 would change nothing; another version formats otherwise, so without that one it is
                skipped (exit status 77)

Prints each violation as path:line: text. Exit status 1 if there is any."""
import re
import shutil
import subprocess
import sys
from pathlib import Path

COLUMNS = 120
FOLDERS = ("include", "src", "tests", "docs", "cmake")
CXX = {".hpp", ".cpp"}
EVERY_LINE = CXX | {".lua"}
COMMENTS = {".py", ".cmake", ".sh", ".txt"}


def files_of(root, suffixes):
    found = [p for folder in FOLDERS for p in sorted((root / folder).rglob("*")) if p.suffix in suffixes and p.is_file()]
    if not found:
        sys.exit(f"no sources found in {root}")
    return found


def long_lines(root):
    for path in files_of(root, EVERY_LINE | COMMENTS):
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            if len(line) > COLUMNS and (path.suffix in EVERY_LINE or re.match(r"\s*#", line)):
                yield f"{path.relative_to(root)}:{number}: {len(line)} columns"


def clang_format(root):
    for program in ("clang-format-16", "clang-format"):
        if shutil.which(program):
            said = subprocess.run([program, "--version"], capture_output=True, text=True, check=True).stdout
            if "version 16." in said:
                break
    else:
        print("skipped: no clang-format 16")
        sys.exit(77)
    run = subprocess.run([program, "--style=file", "--dry-run", "-Werror", *map(str, files_of(root, CXX))],
                         capture_output=True, text=True)
    if run.returncode:
        yield from (line for line in run.stderr.splitlines() if ": error: " in line)


def main():
    check = {"lines": long_lines, "clang-format": clang_format}[sys.argv[1]]
    root = Path(sys.argv[2] if len(sys.argv) > 2 else Path(__file__).resolve().parents[2])
    violations = list(check(root))
    print("\n".join(violations) or "as they should look")
    sys.exit(bool(violations))


if __name__ == "__main__":
    main()
