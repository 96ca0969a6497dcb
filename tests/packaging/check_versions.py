#!/usr/bin/env python3
# SPDX-License-Identifier: BSL-1.0
"""check_versions.py [--root ROOT] [--program PATH]: one version everywhere.

CMakeLists.txt has it. Every other place repeats it: the table PLACES, each `find_package(holdfast X.Y` in the tree, the
manifests of packages, and `holdfast --version` of the program. Prints each place that differs. Exit status 1 if there is any."""
import argparse
import re
import subprocess
import sys
from pathlib import Path

SOURCE = r"^project\(holdfast VERSION (\d+\.\d+\.\d+) "
PLACES = (  # (file, pattern whose group is the version, or its first parts); the first match counts
    ("README.md", r"^`(\d+\.\d+\.\d+)` · "),
    ("CHANGELOG.md", r"^## \[(\d+\.\d+\.\d+)\] - "),
)
FOUND = (  # (glob, pattern): every match; a file may have none
    ("**/*.md", r"find_package\(holdfast (\d+(?:\.\d+)*)"),
    ("**/CMakeLists.txt", r"find_package\(holdfast (\d+(?:\.\d+)*)"),
    ("packaging/**/vcpkg.json", r'^  "version(?:-semver|-string)?": "([^"]*)"'),
    ("packaging/**/conanfile.py", r'^ *version = "([^"]*)"'),
)


def version_of(root):
    found = re.search(SOURCE, (root / "CMakeLists.txt").read_text(encoding="utf-8"), re.M)
    return found[1] if found else sys.exit(f"{root}/CMakeLists.txt has no version")


def differs(version, text):
    """A place may have the first parts alone, as find_package has."""
    return not (version + ".").startswith(text + ".")


def check(root, program):
    version = version_of(root)
    for name, pattern in PLACES:
        found = re.search(pattern, (root / name).read_text(encoding="utf-8"), re.M)
        if not found or found[1] != version:
            yield f"{name}: {found[1] if found else 'no version'}, not {version}"
    for glob, pattern in FOUND:
        for path in root.glob(glob):
            if path.relative_to(root).parts[0] == "build":
                continue
            for found in re.finditer(pattern, path.read_text(encoding="utf-8"), re.M):
                if differs(version, found[1]):
                    yield f"{path.relative_to(root).as_posix()}: {found[0].strip()}: not {version}"
    if program:
        printed = subprocess.run([program, "--version"], capture_output=True, text=True, check=True).stdout
        if printed != f"holdfast {version}\n":
            yield f"{program} --version: {printed.strip()}, not {version}"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--root", type=Path, default=Path(__file__).resolve().parents[2])
    parser.add_argument("--program", default="")
    arguments = parser.parse_args()
    wrong = list(check(arguments.root, arguments.program))
    print("\n".join(wrong) or version_of(arguments.root))
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
