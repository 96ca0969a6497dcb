#!/usr/bin/env python3
# SPDX-License-Identifier: BSL-1.0
"""house.py [--check] [ROOT]: figures of the sources, one line of JSON.

  pairs     file pairs (x.hpp with x.cpp) of src, and the rooms (folders) that they lie in
  knots     sets of file pairs that include each other in a circle
  pronouns  what, which, who, how, its, said, told: so many of 1,000 identifiers of src and include
  comments  full-line comments, in percent of the lines of src/sync/**/*.cpp, where decisions are

With --check it complains of each figure that is out of its bounds: path and text, exit status 1."""
import json
import re
import sys
from pathlib import Path

# A lease refers to its hold, the hold to its leases; both are notified together.
ALLOWED_KNOT = {"sync/hold/hold", "sync/hold/lease_record", "sync/hold/dropped_leases", "sync/hold/set_hold_count"}
PRONOUNS = {"what", "which", "who", "how", "its", "said", "told"}
MOST_PRONOUNS = 3  # of 1,000 identifiers
LEAST_COMMENTS = 12  # percent

KEYWORDS = set("""auto break case catch class const constexpr continue co_await co_return default define delete do else
    endif enum explicit false for friend if ifdef include inline mutable namespace new noexcept nullptr once operator
    override pragma private protected public return static std struct switch template this throw true try typename
    unsigned using virtual void while bool char int""".split())


def sources(folder):
    return sorted(p for p in folder.rglob("*") if p.suffix in (".cpp", ".hpp"))


def pair_of(path, src):
    return path.relative_to(src).with_suffix("").as_posix()


def includes(src):
    """The pairs that each pair includes."""
    files = sources(src)
    graph = {pair_of(path, src): set() for path in files}
    for path in files:
        for name in re.findall(r'^#include "([^"]+)\.[ch]pp"', path.read_text(encoding="utf-8"), re.M):
            if name in graph and name != pair_of(path, src):
                graph[pair_of(path, src)].add(name)
    return graph


def reachable(graph, start):
    found, open_ = set(), [start]
    while open_:
        for name in graph[open_.pop()] - found:
            found.add(name)
            open_.append(name)
    return found


def knots(graph):
    """Each strongly connected set of more than one pair."""
    reach = {name: reachable(graph, name) for name in graph}
    found = {frozenset(other for other in reach[name] if name in reach[other]) for name in graph if name in reach[name]}
    return sorted(sorted(knot) for knot in found)


def without_text(code):
    code = re.sub(r"/\*.*?\*/", "", code, flags=re.S)
    return re.sub(r'//.*|"(?:\\.|[^"\\])*"', "", code)


def pronouns(files):
    """[pronouns, identifiers, {path: pronouns}]"""
    total, places = 0, {}
    for path in files:
        names = re.findall(r"\b[a-z_][a-z_0-9]*\b", without_text(path.read_text(encoding="utf-8")))
        names = [name for name in names if name not in KEYWORDS]
        total += len(names)
        found = [name for name in names if name.rstrip("_") in PRONOUNS]
        if found:
            places[path] = len(found)
    return sum(places.values()), total, places


def comments(files):
    """[full-line comments, lines that are not empty]"""
    lines = [line.strip() for path in files for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]
    return sum(line.startswith("//") for line in lines), len(lines)


def main(arguments):
    check = "--check" in arguments
    root = Path(next((a for a in arguments if not a.startswith("--")), Path(__file__).resolve().parents[2]))
    src = root / "src"
    graph = includes(src)
    tied = knots(graph)
    count, names, places = pronouns(sources(src) + sources(root / "include"))
    full, lines = comments([p for p in sources(src / "sync") if p.suffix == ".cpp"])
    per_mille, percent = round(1000 * count / max(names, 1), 2), round(100 * full / max(lines, 1), 1)
    print(json.dumps({"pairs": len(graph), "rooms": len({name.rpartition("/")[0] for name in graph}), "knots": tied,
                      "pronouns_permille": per_mille, "comments_percent": percent}))
    complaints = [f"a circle of includes: {', '.join(knot)}" for knot in tied if not set(knot) <= ALLOWED_KNOT]
    if per_mille > MOST_PRONOUNS:
        worst = sorted(places.items(), key=lambda item: -item[1])[:10]
        complaints.append(f"{per_mille} of 1,000 identifiers are pronouns, most of them in: "
                          + ", ".join(f"{path.relative_to(root)} ({count})" for path, count in worst))
    if percent < LEAST_COMMENTS:
        complaints.append(f"{percent} % of the lines of src/sync/**/*.cpp are comments, at least {LEAST_COMMENTS} should say why")
    if not graph:
        complaints.append(f"{src}: nothing to check")
    if check:
        print("\n".join(complaints) or "the house is in order")
    return 1 if check and complaints else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
