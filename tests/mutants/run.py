#!/usr/bin/env python3
# SPDX-License-Identifier: BSL-1.0
"""run.py [--check] [--only TEXT] [--tools unit,scripts,sim,explore,integration,blocking,kit,history] [--without-assertions]:
plants one bug after the other into a copy of the tree, builds, and shows the tools that catch it: a row of a Markdown
table for each bug, with the words of each tool. What they printed stays in build/mutants/output, or in
output_without_assertions beside it. Exit status 1 if a bug survives all tools, or if a tool fails without any bug.

  --check  only: every bug can still be planted, in exactly one place
  --only   bugs whose name contains the text
  --without-assertions  builds the library without assertions: to see which tool catches the bug then"""
import argparse
import os
import re
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from mutants import MUTANTS

ROOT = Path(__file__).resolve().parents[2]
SCRATCH = ROOT / "build" / "mutants"
WITH_ASSERTIONS, WITHOUT_ASSERTIONS = SCRATCH / "out", SCRATCH / "out_without_assertions"


@dataclass(frozen=True)
class Tool:
    """Catches a bug by failing, also by not ending, but not by having seen too little."""
    targets: tuple  # what is built
    command: tuple  # what is run in the build folder
    limit: int  # seconds
    evidence: str  # a pattern of its first words on what is wrong
    weakness: str = "(?!)"  # a pattern of what it says of a run that had too little to show


# The name of a test that failed, perhaps on several lines, between two rulers.
HEAD_OF_A_TEST = r"-{79}\n(\S.*(?:\n\S.*|\n  .*)*?)\n-{79}\n"

TOOLS = {
    "unit": Tool(("holdfast_unit_tests",), ("tests/holdfast_unit_tests", "--abort"), 120, HEAD_OF_A_TEST),
    "scripts": Tool(("holdfast_sim_tests",), ("tests/sim/holdfast_sim_tests", "--abort", "~the simulated node*"), 120,
                    HEAD_OF_A_TEST),
    "sim": Tool(("holdfast_sim",), ("tests/sim/holdfast_sim", "--seeds", "3000", "--violations", "1"), 300,
                r"(.*holdfast asserts: .*\n.*|seed \d+: VIOLATION .*)", r"((?:never met|unlisted): .*)"),
    "explore": Tool(("holdfast_explore",), ("tests/sim/holdfast_explore", "--violations", "1"), 300,
                    r"(.*holdfast asserts: .*\n.*|VIOLATION .*)"),
    # What no other tool sees: what is done beyond the strand of one client, by a server's ACL, by the kernel.
    "integration": Tool(("holdfast_integration_tests",),
                        ("tests/holdfast_integration_tests", "--abort", "multi_lock*",
                         "~*anywhere*,without PUBLISH*,a release that may not publish*,a TCP connection is kept*"),
                        120, HEAD_OF_A_TEST),
    "blocking": Tool(("holdfast_integration_tests",),
                     ("tests/holdfast_integration_tests", "--abort", "-#",
                      "[#blocking_test],[#blocking_kinds_test],[#blocking_loss_test],[#blocking_end_test],[#blocking_shared_test]"),
                     120, HEAD_OF_A_TEST),
    "kit": Tool(("holdfast_testing_tests",), ("tests/holdfast_testing_tests", "--abort"), 60, HEAD_OF_A_TEST),
    # One campaign within the guarantee, one outside.
    "history": Tool(("holdfast_chaos_worker", "holdfast_chaos_driver"),
                    ("python3", "{tree}/tests/chaos/history_test.py", "--build", "tests/chaos", "--seconds", "220"),
                    700, r"^(R\d+ .*|the driver ended with .*)", r"^(too (?:weak|slow).*)"),
}


def check():
    bad = 0
    for m in MUTANTS:
        found = (ROOT / m.file).read_text(encoding="utf-8").count(m.before)
        if found != 1:
            print(f"{m.file}: {found} places for: {m.name}")
            bad += 1
    print(f"{len(MUTANTS) - bad} of {len(MUTANTS)} bugs can be planted")
    return bad == 0


def copy_tree():
    """Copies the files that differ from those of the last run: a bug that was planted then must be built out again, and
    nothing else."""
    tree = SCRATCH / "tree"

    def copy_if_different(source, target):
        target = Path(target)
        if not target.exists() or target.read_bytes() != Path(source).read_bytes():
            shutil.copyfile(source, target)

    ignore = shutil.ignore_patterns("build", ".git", "__pycache__")
    shutil.copytree(ROOT, tree, ignore=ignore, copy_function=copy_if_different, dirs_exist_ok=True)
    for path in [p for p in tree.rglob("*") if not (ROOT / p.relative_to(tree)).exists()]:
        shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)
    return tree


def build(tree, out, tools):
    """Whether it compiles, and why not."""
    targets = [t for tool in tools for t in TOOLS[tool].targets]
    command = ["cmake", "--build", str(out), "--target", *targets]
    if not (out / "build.ninja").exists():
        assertions = "OFF" if out == WITHOUT_ASSERTIONS else "ON"
        # No unity build: a bug is one file that is compiled again.
        subprocess.run(["cmake", "--preset", "test", f"-DHOLDFAST_ASSERTIONS={assertions}", "-DCMAKE_UNITY_BUILD=OFF",
                        "-S", str(tree), "-B", str(out)], check=True, cwd=tree, stdout=subprocess.DEVNULL)
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    return done.returncode == 0, done.stdout


def words(pattern, output):
    found = re.search(pattern, output, re.M)
    return " ".join(found[1].split()) if found else None


def run_tool(tree, out, name, about):
    """Whether it failed for what is wrong, and what it says."""
    tool = TOOLS[name]
    kept = SCRATCH / out.name.replace("out", "output", 1) / f"{re.sub(r'[^a-z0-9]+', '_', about)}.{name}"
    kept.parent.mkdir(exist_ok=True)
    command = [word.format(tree=tree) for word in tool.command]
    begun = time.monotonic()
    with open(kept, "w", encoding="utf-8") as output:
        process = subprocess.Popen(command, cwd=out, stdout=output, stderr=subprocess.STDOUT, start_new_session=True)
        try:
            status = process.wait(timeout=tool.limit)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, 9)
            process.wait()
            return True, f"did not end in {tool.limit} s"
    if status == 0:
        return False, f"– ({time.monotonic() - begun:.0f} s)"
    output = kept.read_text(encoding="utf-8", errors="replace")
    if said := words(tool.evidence, output):
        return True, said
    if weak := words(tool.weakness, output):
        return False, f"too weak: {weak}"
    return True, f"ended with {status}"


def run(mutants, out, tools):
    tree = copy_tree()
    works, text = build(tree, out, tools)
    if not works:
        sys.exit("the tree itself does not build:\n" + text[-4000:])
    for tool in tools:
        failed, said = run_tool(tree, out, tool, "no bug")
        weak = said.startswith("too weak")
        print(f"without any bug, {tool}: {'FAILS: ' + said if failed or weak else 'passes'}", flush=True)
        if failed or weak:
            return False
    caught = {tool: 0 for tool in tools}
    survivors = 0
    print("| bug | " + " | ".join(tools) + " |\n|" + "---|" * (len(tools) + 1), flush=True)
    for m in mutants:
        place = tree / m.file
        sound = place.read_text(encoding="utf-8")
        place.write_text(sound.replace(m.before, m.after), encoding="utf-8")
        works, text = build(tree, out, tools)
        if not works:
            print(f"| {m.name} | does not compile |\n{text[-4000:]}", flush=True)
            survivors += 1
            place.write_text(sound, encoding="utf-8")
            continue
        results = {tool: run_tool(tree, out, tool, m.name) for tool in tools}
        for tool, (failed, _) in results.items():
            caught[tool] += failed
        survivors += not any(failed for failed, _ in results.values())
        print(f"| {m.name} | " + " | ".join(said.replace("|", "/") for _, said in results.values()) + " |", flush=True)
        place.write_text(sound, encoding="utf-8")
    total = len(mutants)
    print(", ".join(f"{tool}: {n} of {total}" for tool, n in caught.items()) + f"; survivors: {survivors}")
    return survivors == 0


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--only", default="")
    parser.add_argument("--tools", default=",".join(TOOLS))
    parser.add_argument("--without-assertions", action="store_true")
    given = parser.parse_args()
    if not check():
        sys.exit(1)
    if given.check:
        return
    tools = given.tools.split(",")
    if unknown := [t for t in tools if t not in TOOLS]:
        sys.exit(f"no such tool: {unknown[0]}; there are {', '.join(TOOLS)}")
    out = WITHOUT_ASSERTIONS if given.without_assertions else WITH_ASSERTIONS
    if not run([m for m in MUTANTS if given.only in m.name], out, tools):
        sys.exit(1)


if __name__ == "__main__":
    main()
