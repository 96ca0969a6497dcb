#!/usr/bin/env python3
# SPDX-License-Identifier: BSL-1.0
"""check_workflows_test.py: a job that cannot run is found. Exit status 77: PyYAML cannot be had."""
import subprocess
import sys
import tempfile
from pathlib import Path

SCRIPT = Path(__file__).with_name("check_workflows.py")
WORKFLOW = """
on: {push: {tags: ["v*"]}}
permissions: {contents: read}
jobs:
  one:
    strategy: {matrix: {preset: [test], include: [{command: python3 tests/a.py --seconds 5}]}}
    steps:
      - uses: actions/checkout@v4
      - run: apt-get update && apt-get install -y $(sh cmake/a.sh --packages)
      - run: |
          cmake --workflow --preset test  # a comment
          sudo --preserve-env=X sh cmake/a.sh sid
      - run: build/test/tests/life --seeds 1
      - run: ${{ matrix.command }}
"""
TREE = {
    ".github/workflows/ci.yml": WORKFLOW,
    "CMakePresets.json": '{"workflowPresets": [{"name": "test"}]}',
    "cmake/a.sh": "",
    "tests/a.py": "",
    "tests/CMakeLists.txt": "add_executable(life life.cpp)\n",
}
FAULTS = (
    ("checkout@v4", "checkout@main", "actions/checkout@main is not pinned by a tag"),
    ("$(sh cmake/a.sh", "$(sh cmake/b.sh", "no script cmake/b.sh"),
    ("sh cmake/a.sh sid", "sh cmake/b.sh sid", "no script cmake/b.sh"),
    ("python3 tests/a.py", "python3 tests/b.py", "no script tests/b.py"),
    ("--preset test", "--preset tset", "no workflow preset tset"),
    ("tests/life", "tests/live", "no program build/test/tests/live"),
    ("--seeds 1", "--seeds ${{ github.run_id }}", "what only GitHub knows"),
    ("permissions: {contents: read}\n", "", "names no permissions"),
    ("--seeds 1", "--seeds ${{ secrets.SEED }}", "uses a secret"),
)


def check(files):
    with tempfile.TemporaryDirectory() as scratch:
        root = Path(scratch)
        for name, text in files.items():
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_text(text, encoding="utf-8")
        done = subprocess.run([sys.executable, SCRIPT, root], capture_output=True, text=True)
    if done.returncode == 77:
        print(done.stdout)
        sys.exit(77)
    return done


def main():
    fine = check(TREE)
    assert fine.returncode == 0, fine
    for good, bad, fault in FAULTS:
        found = check(TREE | {".github/workflows/ci.yml": WORKFLOW.replace(good, bad)})
        assert found.returncode == 1 and fault in found.stdout, (bad, found)
    del TREE[".github/workflows/ci.yml"]
    assert check(TREE).returncode == 1, "a tree without workflows passes"


main()
