#!/usr/bin/env python3
# SPDX-License-Identifier: BSL-1.0
"""check_docs_test.py [ROOT]: the tree passes check_docs, and each single falsehood in a copy of it is found."""
import shutil
import sys
import tempfile
from pathlib import Path

sys.dont_write_bytecode = True
from check_docs import Checker  # noqa: E402

# what is changed: file, from, to (the first one only; None: its line is deleted) | a piece of the violation that must
# be told
FALSEHOODS = [
    ("docs/guide/operating.md", "<!-- run: who waits -->", "<!-- run: who holds -->", "is not as in"),
    ("README.md", "waits its turn; renewed", "waits its turn, renewed", "not a piece of"),
    ("README.md", "<!-- from docs/examples/1_tutorial/1_hello_lock.cpp -->\n", "", "quotes no example"),
    ("README.md", "1_tutorial/1_hello_lock.cpp -->", "1_tutorial/1_hello.cpp -->", "does not exist"),
    ("README.md", "docs/guide/safety.md)", "docs/guide/safe.md)", "does not exist"),
    ("README.md", "libboost1.81-dev libhiredis-dev", "libboost1.83-dev libhiredis-dev", "not what quickstart.sh"),
    ("docs/quickstart.md", "README.md#install", "README.md#installation", "no such heading"),
    ("docs/internals/promises.md", "“names of any bytes meet", "“names of all bytes meet", "has no test"),
    ("docs/internals/promises.md", "(../../tests/integration/mutex_test.cpp)", "(mutex.cpp)", "without a link"),
    ("docs/internals/promises.md", "| what to do about a forgotten lock |", None, "a promise without a test"),
    ("docs/guide/safety.md", "nobody else holds the lock.*", "somebody holds the lock.*", "a promise of one page only"),
    ("docs/guide/safety.md", "## 3. Only the owner unlocks", "## 3. Only owners unlock", "a promise of one page only"),
    ("docs/internals/faults.md", "| skipped: the TTL does the rest |", "| skipped: |", "a fault without a test"),
    ("docs/internals/faults.md", "“… idle connection …”", "“… idle connexion …”", "has no test"),
    ("docs/internals/faults.md", "“… idle connection …”", "“… connection …”", "has several tests"),
    ("docs/internals/faults.md", "| 41, 42 | a key of", None, "fault 42: has no row"),
    ("docs/internals/faults.md", "| as 49a and 54b |", "| as 81 |", "as 81: there is no such row"),
    ("docs/internals/faults.md", "| as 49a and 54b |", "| as 25 |", "as 25: there is no such row"),
    ("docs/internals/faults.md", "| as 49a and 54b |",
     "| [outage](../../tests/integration/outage_test.cpp) “… never answers …” |", "is named before"),
    ("docs/internals/faults.md", "| 41, 42 | a key of", "| 41, 40 | a key of", "fault 40: has several rows"),
    ("docs/internals/faults.md", "| 71, 71b | ", "| 71, 71c | ", "fault 71c: is not known"),
    ("docs/guide/errors.md", "| the lock was lost |", "| the lock is lost |", "`lost` says"),
    ("docs/guide/errors.md", "| yes, with less in flight | `retry_later` |", "| yes, with less in flight | `misuse` |", "`overloaded` belongs"),
    ("src/base/error.cpp", "errc::closed: return only(condition::no_longer_held)", "errc::closed: return only(condition::setup)", "`closed` belongs"),
    ("include/holdfast/error.hpp", "///< not_held, invalid_name,", "///< invalid_name,", "condition `misuse` is not"),
    ("docs/guide/errors.md", "### `overloaded`", "### overloaded", "`overloaded` has no section"),
    ("include/holdfast/error.hpp", "  not_held, ", "  forgotten,\n  not_held, ", "`forgotten` is not in the table"),
    ("src/api/arguments.cpp", "the name is empty", "there is no name", "in no text of the sources"),
    ("docs/guide/settings.md", "| `ttl` | 30 s |", "| `ttl` | 20 s |", "the default of `ttl`"),
    ("include/holdfast/config.hpp", "drift = 0.01", "drift = 0.02", "the default of `drift`"),
    ("include/holdfast/config.hpp", "milliseconds poll_cap{5'000}", "milliseconds poll_limit{5'000}", "in only one of"),
    ("docs/guide/settings.md", "| `client_name` |", "| `connect_timeout` | 2 s | 10 ms to 60 s |\n| `client_name` |",
     "`connect_timeout` stands where config.hpp has `client_name`"),
    ("docs/guide/settings.md", "| `quiet` |", None, "`quiet` is in only one of"),
    ("docs/guide/settings.md", "| `sentinel.tls` |", None, "`sentinel.tls` is in only one of"),
    ("include/holdfast/config.hpp", "  bool strict = false;", "  bool strict = false;\n  bool patient = false;",
     "`sentinel.patient` is in only one of"),
    ("include/holdfast/config.hpp", "  bool strict = false;", "  bool strict = true;", "the default of `sentinel.strict`"),
    ("include/holdfast/config.hpp", "  sentinel_config sentinel{};\n  cluster_config cluster{};\n",
     "  cluster_config cluster{};\n  sentinel_config sentinel{};\n",
     "`sentinel.user` stands where config.hpp has `cluster.pubsub`"),
    ("docs/guide/settings.md", "| `red_lock.longest_ttl` |", "| `red_lock.delayed_restart` | true | |\n| `red_lock.longest_ttl` |",
     "`red_lock.delayed_restart` stands where config.hpp has `red_lock.longest_ttl`"),
    ("docs/guide/settings.md", "| 2 ttl to 87600 h;", "| 3 ttl to 87600 h;", "the range of `token_ttl`"),
    ("src/config/config.cpp", "config.poll_cap, 50ms, 60s", "config.poll_cap, 20ms, 60s", "the range of `poll_cap`"),
    ("docs/pictures/lease.svg", "suspended at 30 s", "suspended at 31 s", "not what lease.py prints"),
    ("docs/examples/2_recipes/lottery.cpp", "// Output:", "// Prints:", "no output to compare"),
    ("docs/examples/2_recipes/lottery.cpp", "// Output:\n", "// Output:\n" + "//\n" * 30, "more than 60 lines"),
]


def copy(root, to):
    for name in ("README.md", "CHANGELOG.md", "CONTRIBUTING.md", "CODE_OF_CONDUCT.md", "SECURITY.md", "LICENSE"):
        shutil.copy(root / name, to / name)
    for name in ("docs", "include", "src", "cmake", "tests"):
        shutil.copytree(root / name, to / name, ignore=shutil.ignore_patterns("__pycache__"))


def falsified(text, old, new):
    if new is not None:
        return text.replace(old, new, 1)
    line = next(line for line in text.splitlines(keepends=True) if old in line)
    return text.replace(line, "", 1)


def main():
    root = Path(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).parents[2]).resolve()
    failures = Checker(root).run()
    with tempfile.TemporaryDirectory() as folder:
        tree = Path(folder).resolve()
        copy(root, tree)
        for name, old, new, expected in FALSEHOODS:
            path = tree / name
            text = path.read_text(encoding="utf-8")
            if old not in text:
                failures.append(f"{name} does not have {old!r}: correct this test")
                continue
            path.write_text(falsified(text, old, new), encoding="utf-8")
            found = Checker(tree).run()
            path.write_text(text, encoding="utf-8")
            if not any(expected in violation for violation in found):
                failures.append(f"{name}: {old!r} as {str(new)[:60]!r} is not found; told was {found}")
    print("\n".join(failures) or f"{len(FALSEHOODS)} falsehoods are found")
    sys.exit(1 if failures else 0)


main()
