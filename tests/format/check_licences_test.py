#!/usr/bin/env python3
# SPDX-License-Identifier: BSL-1.0
"""check_licences_test.py: a file without a licence is found, and the line for it is named."""
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
from check_licences import LINE  # noqa: E402

TREE = {
    "LICENSE": "text\n",
    "LICENSES/BSL-1.0.txt": "text\n",
    "REUSE.toml": (HERE.parents[1] / "REUSE.toml").read_text(encoding="utf-8"),
    "src/a.cpp": f"// {LINE}\n",
    "docs/a.png": "a picture",
    "tests/fuzz/corpus/url/plain": "redis://host",
    "build/test/a.cpp": "",
}


def check(files):
    with tempfile.TemporaryDirectory() as scratch:
        root = Path(scratch)
        for name, text in files.items():
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_text(text, encoding="utf-8")
        return subprocess.run([sys.executable, HERE / "check_licences.py", "names", root], capture_output=True, text=True)


def main():
    fine = check(TREE)
    assert fine.returncode == 0, fine
    for name, line in (("src/b.hpp", f"// {LINE}"), ("src/b.lua", f"-- {LINE}"), ("docs/b.md", f"<!-- {LINE} -->"),
                       ("cmake/b.sh", f"# {LINE}"), (".gitignore", f"# {LINE}")):
        found = check(TREE | {name: "\n" * 8 + line})  # too far down
        assert found.returncode == 1 and f"{name} names no licence: add `{line}" in found.stdout, found
    found = check(TREE | {"LICENSES/BSL-1.0.txt": "another text\n"})
    assert found.returncode == 1 and "differs" in found.stdout, found


main()
