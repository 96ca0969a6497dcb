#!/usr/bin/env python3
# SPDX-License-Identifier: BSL-1.0
"""newest_cmake_test.py FOLDER -DNAME=VALUE...: the newest CMake of PyPI configures, builds and installs the library, and
finds it from another project, by check_consumer.cmake with these definitions. It has nothing to warn of.

Fetches CMake into the folder. Exit status 77: it cannot be had."""
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))
from optional_tools import fetch  # noqa: E402


def newest_cmake(folder):
    programs = folder / "python" / "bin"
    if not (programs / "python").exists():
        fetch("a virtual environment", sys.executable, "-m", "venv", str(folder / "python"))
    fetch("cmake from PyPI", str(programs / "python"), "-m", "pip", "install", "--quiet", "--upgrade", "cmake")
    return programs / "cmake"


def main(folder, *definitions):
    cmake = newest_cmake(Path(folder))
    subprocess.run([cmake, "--version"], check=True)
    for way in ("add_subdirectory", "find_package"):
        script = Path(__file__).with_name("check_consumer.cmake")
        done = subprocess.run([cmake, f"-DWAY={way}", *definitions, "-P", script], stderr=subprocess.PIPE, text=True, check=False)
        sys.stderr.write(done.stderr)
        if done.returncode or "CMake Warning" in done.stderr or "CMake Deprecation" in done.stderr:
            sys.exit(f"{way} failed, or CMake warned")


main(*sys.argv[1:])
