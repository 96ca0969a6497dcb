#!/usr/bin/env python3
# SPDX-License-Identifier: BSL-1.0
"""check_format_test.py: what does not look as it should is found. Exit code 77: no clang-format 16."""
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
GOOD = "// A comment.\nint answer() { return 42; }\n"


def check(kind, files):
    with tempfile.TemporaryDirectory() as scratch:
        root = Path(scratch)
        shutil.copy(HERE.parents[1] / ".clang-format", root)
        for name, text in files.items():
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_text(text, encoding="utf-8")
        return subprocess.run([sys.executable, HERE / "check_format.py", kind, root], capture_output=True, text=True)


def main():
    long = "x" * 121
    fine = {"src/a.cpp": GOOD, "cmake/a.cmake": f"set(a {long})\n", "src/b.lua": "-- " + "ü" * 117 + "\n"}
    assert check("lines", fine).returncode == 0
    for name, text, line in (("src/a.cpp", GOOD + f"// {long}\n", 3), ("src/b.lua", f"-- {long}\n", 1),
                             ("cmake/a.cmake", f"\n  # {long}\n", 2), ("tests/a.py", f"# {long}\n", 1)):
        found = check("lines", fine | {name: text})
        assert found.returncode == 1 and f"{name}:{line}: " in found.stdout, found
    assert check("lines", {}).returncode not in (0, 77), "an empty tree passes"

    formatted = check("clang-format", fine)
    if formatted.returncode == 77:
        print(formatted.stdout)
        sys.exit(77)
    assert formatted.returncode == 0, formatted
    found = check("clang-format", {"src/a.cpp": GOOD + "int  twice(){return 2;}\n"})
    assert found.returncode == 1 and "a.cpp:3:" in found.stdout, found


main()
