#!/usr/bin/env python3
# SPDX-License-Identifier: BSL-1.0
"""readme_test.py PREFIX LIBDIR COMPILER: does what a new user does with the README that is installed under PREFIX: copies
its first program, the first block with a main(), to app.cpp, compiles it by the line that the README gives for a build without
CMake, and runs it. It must end by itself, and print what the example prints that it is a copy of. Exit code 77: there is no pkg-config or no Redis."""
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path


def found(pattern, text, what):
    match = re.search(pattern, text, re.M)
    if not match:
        sys.exit(f"the README has no {what}")
    return match


def main(prefix, libdir, compiler):
    if not shutil.which("pkg-config"):
        print("skipped: no pkg-config")
        sys.exit(77)
    prefix = Path(prefix).resolve()
    docs = prefix / "share/doc/holdfast"
    readme = (docs / "README.md").read_text(encoding="utf-8")
    example, program = found(r"^<!-- from (\S+) -->\n```cpp\n((?:(?!```).*\n)*?int main\((?:.*\n)*?)```$", readme, "program").groups()
    command = found(r"^g\+\+ (.* app\.cpp .*)$", readme, "line that compiles app.cpp")[1]
    environment = {**os.environ, "PKG_CONFIG_PATH": str(prefix / libdir / "pkgconfig")}
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "app.cpp").write_text(program, encoding="utf-8")
        print(f"{compiler} {command}", flush=True)
        subprocess.run(f"'{compiler}' {command}", shell=True, check=True, cwd=folder, env=environment)
        run_example = Path(__file__).parents[1] / "support/run_example.py"
        sys.exit(subprocess.run([sys.executable, run_example, Path(folder, "app"), docs / example], check=False).returncode)


main(*sys.argv[1:])
