#!/usr/bin/env python3
# SPDX-License-Identifier: BSL-1.0
"""run.py [--check] [--only TEXT] [--tools unit,sim,history]: plants one bug after the other into a copy of the tree, builds, and shows what
catches it. Exit status 1 if a bug survives all tools, or if a tool fails without any bug.

  --check  only: every bug can still be planted, in exactly one place
  --only   bugs whose name contains the text"""
import argparse
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

from mutants import MUTANTS

ROOT = Path(__file__).resolve().parents[2]
SCRATCH = ROOT / "build" / "mutants"

# Each tool: what is built, and what is run in the build folder. It catches a bug by failing, also by not ending.
TOOLS = {
    "unit": (["holdfast_unit_tests"], ["tests/holdfast_unit_tests", "--abort"], 120),
    "sim": (["holdfast_sim"], ["tests/sim/holdfast_sim", "--seeds", "3000"], 300),
    "history": (["holdfast_chaos_worker", "holdfast_chaos_driver"],  # one campaign within the guarantee, one outside
                ["python3", "{tree}/tests/chaos/history_test.py", "--build", "tests/chaos", "--seconds", "220"], 700),
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
    """What a run before has left is kept where it is the same, and is new otherwise: a bug that was planted must be built out again."""
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


def build(tree, tools):
    """Whether it compiles, and why not."""
    targets = [t for tool in tools for t in TOOLS[tool][0]]
    command = ["cmake", "--build", str(SCRATCH / "out"), "--target", *targets]
    if not (SCRATCH / "out" / "build.ninja").exists():
        subprocess.run(["cmake", "--preset", "test", "-S", str(tree), "-B", str(SCRATCH / "out")], check=True, cwd=tree,
                       stdout=subprocess.DEVNULL)
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    return done.returncode == 0, done.stdout


def fails(tree, tool):
    _, command, limit = TOOLS[tool]
    command = [word.format(tree=tree) for word in command]
    begun = time.monotonic()
    process = subprocess.Popen(command, cwd=SCRATCH / "out", stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
    try:
        failed = process.wait(timeout=limit) != 0
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, 9)
        process.wait()
        failed = True
    return failed, time.monotonic() - begun


def run(mutants, tools):
    tree = copy_tree()
    works, text = build(tree, tools)
    if not works:
        sys.exit("the tree itself does not build:\n" + text[-4000:])
    for tool in tools:
        failed, seconds = fails(tree, tool)
        print(f"without any bug, {tool}: {'FAILS' if failed else 'passes'} ({seconds:.0f} s)", flush=True)
        if failed:
            return False
    caught = {tool: 0 for tool in tools}
    survivors = []
    for m in mutants:
        place = tree / m.file
        sound = place.read_text(encoding="utf-8")
        place.write_text(sound.replace(m.before, m.after), encoding="utf-8")
        works, text = build(tree, tools)
        if not works:
            sys.exit(f"{m.name}: does not compile\n" + text[-4000:])
        by = []
        for tool in tools:
            failed, seconds = fails(tree, tool)
            if failed:
                caught[tool] += 1
                by.append(f"{tool} ({seconds:.0f} s)")
        print(f"{'caught by ' + ', '.join(by) if by else 'SURVIVES':<50} {m.name}", flush=True)
        if not by:
            survivors.append(m.name)
        place.write_text(sound, encoding="utf-8")
    total = len(mutants)
    print(", ".join(f"{tool}: {n} of {total}" for tool, n in caught.items()) + f"; survivors: {len(survivors)}")
    return not survivors


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--only", default="")
    parser.add_argument("--tools", default=",".join(TOOLS))
    given = parser.parse_args()
    if not check():
        sys.exit(1)
    if given.check:
        return
    tools = given.tools.split(",")
    if unknown := [t for t in tools if t not in TOOLS]:
        sys.exit(f"no such tool: {unknown[0]}; there are {', '.join(TOOLS)}")
    if not run([m for m in MUTANTS if given.only in m.name], tools):
        sys.exit(1)


main()
