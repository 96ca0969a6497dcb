#!/usr/bin/env python3
# SPDX-License-Identifier: BSL-1.0
"""public_symbols_test.py COMPILER: a symbol that is gone, and one that is new, are found. Exit status 77: no nm."""
import subprocess
import sys
import tempfile
from pathlib import Path

SCRIPT = Path(__file__).with_name("public_symbols.py")
SOURCE = """namespace holdfast {
struct lock { lock(); void begin(); };
lock::lock() {}
void lock::begin() {}
inline int weak() { return 1; }
int (*user)() = weak;
__attribute__((visibility("hidden"))) void secret() {}
}
namespace other { void leak() {} }
"""


def main(compiler):
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        source, library, listed = folder / "a.cpp", folder / "a.so", folder / "symbols.txt"

        def build(text):
            source.write_text(text, encoding="utf-8")
            subprocess.run([compiler, "-shared", "-fPIC", "-o", library, source], check=True)

        def run(verb):
            done = subprocess.run([sys.executable, SCRIPT, verb, library, listed], capture_output=True, text=True)
            if done.returncode == 77:
                print(done.stdout)
                sys.exit(77)
            return done

        build(SOURCE)
        assert run("write").returncode == 0
        names = [line for line in listed.read_text(encoding="utf-8").splitlines() if not line.startswith("#")]
        assert names == ["holdfast::lock::begin()", "holdfast::lock::lock()", "holdfast::user"], names
        assert run("check").returncode == 0
        build(SOURCE.replace("begin()", "begin(int)"))
        changed = run("check")
        assert changed.returncode == 1 and changed.stdout.split("\n")[:2] == [
            "- holdfast::lock::begin()", "+ holdfast::lock::begin(int)"], changed
        build("int nothing;\n")
        assert run("check").returncode == 1, "a library without symbols is no library of ours"


main(*sys.argv[1:])
