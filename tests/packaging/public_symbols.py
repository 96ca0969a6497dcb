#!/usr/bin/env python3
# SPDX-License-Identifier: BSL-1.0
"""public_symbols.py check|write LIBRARY [LIST]: what the shared library defines for programs, beside public_symbols.txt.

A symbol that is gone breaks programs that were linked before. One that is new is a promise. Both must be meant: `write`
makes the list anew. Weak symbols are not listed, because the compiler decides which of them it emits.
Exit status 1: the list differs. 77: there is no nm or c++filt."""
import difflib
import re
import shutil
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))
from optional_tools import skip  # noqa: E402

LIST = Path(__file__).with_name("public_symbols.txt")
HEAD = """# SPDX-License-Identifier: BSL-1.0
# Strong symbols of libholdfast.so, by public_symbols.py write LIBRARY. A line that is removed breaks programs.
"""


def public(nm_lines):
    """One name for the two or three entries of a constructor or a destructor."""
    strong = re.findall(r"^[0-9a-f]+ [TBDR] (\S.*)$", nm_lines, re.M)
    return sorted(name for name in set(strong) if "holdfast" in name)


def symbols_of(library):
    for program in ("nm", "c++filt"):
        if not shutil.which(program):
            skip(f"no {program}: apt-get install binutils")
    lines = subprocess.run(["nm", "--dynamic", "--defined-only", library], capture_output=True, text=True, check=True).stdout
    return public(subprocess.run(["c++filt"], input=lines, capture_output=True, text=True, check=True).stdout)


def difference(listed, found):
    return [line for line in difflib.ndiff(listed, found) if line[0] in "+-"]


def main(verb, library, path=LIST):
    found, path = symbols_of(library), Path(path)
    if not found:
        sys.exit(f"{library} defines nothing for programs")
    if verb == "write":
        path.write_text(HEAD + "".join(f"{name}\n" for name in found), encoding="utf-8")
        return print(f"{len(found)} symbols")
    listed = [line for line in path.read_text(encoding="utf-8").splitlines() if line and not line.startswith("#")]
    changes = difference(listed, found)
    if changes:
        print("\n".join(changes))
        sys.exit(f"If this is meant: python3 {Path(__file__).name} write {library}, and CHANGELOG.md says what programs must do.")
    return print(f"{len(found)} symbols, as listed")


if __name__ == "__main__":
    main(*sys.argv[1:])
