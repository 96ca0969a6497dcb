#!/usr/bin/env python3
# SPDX-License-Identifier: BSL-1.0
"""check_versions_test.py: a place with another version is found."""
import subprocess
import sys
import tempfile
from pathlib import Path

SCRIPT = Path(__file__).with_name("check_versions.py")
TREE = {
    "CMakeLists.txt": 'project(holdfast VERSION 1.2.3 DESCRIPTION "")\n',
    "README.md": "# holdfast\n\n`1.2.3` · Linux\n\nfind_package(holdfast 1.2 REQUIRED)\n",
    "CHANGELOG.md": "# Changelog\n\n## [1.2.3] - unreleased\n\n## [1.2.2] - 2026-01-01\n",
    "packaging/vcpkg/vcpkg.json": '{\n  "version": "1.2.3"\n}\n',
    "packaging/conan/conanfile.py": '    version = "1.2.3"\n',
    "build/old/README.md": "find_package(holdfast 0.1)\n",
}


def check(files, printed="holdfast 1.2.3"):
    with tempfile.TemporaryDirectory() as scratch:
        root = Path(scratch)
        for name, text in files.items():
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_text(text, encoding="utf-8")
        program = root / "program"
        program.write_text(f"#!/bin/sh\necho {printed}\n", encoding="utf-8")
        program.chmod(0o755)
        return subprocess.run([sys.executable, SCRIPT, "--root", root, "--program", program], capture_output=True, text=True)


def main():
    fine = check(TREE)
    assert fine.returncode == 0 and fine.stdout == "1.2.3\n", fine
    for name in TREE:
        if name not in ("CMakeLists.txt", "build/old/README.md"):
            found = check(TREE | {name: TREE[name].replace("1.2", "1.1", 1)})
            assert found.returncode == 1 and name in found.stdout, (name, found)
    found = check(TREE, "holdfast 1.2.2")
    assert found.returncode == 1 and "--version" in found.stdout, found


main()
