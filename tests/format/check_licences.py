#!/usr/bin/env python3
# SPDX-License-Identifier: BSL-1.0
"""check_licences.py names|reuse [ROOT]: the licence of every file.

  names  each file has the SPDX line of the licence near its head, or REUSE.toml has its path; the two copies of the
         licence are equal
  reuse  `reuse lint` accepts the tree; the tool is taken from the PATH or from PyPI, else exit status 77

Prints a line for each file without a licence, with the text to add. Exit status 1 if there is any."""
import fnmatch
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))
from optional_tools import fetch  # noqa: E402

LINE = ": ".join(("SPDX-License-Identifier", "BSL-1.0"))  # in two parts: `reuse` takes it for this file's own
HEAD = 8  # lines: a manifest of a generator may have to begin otherwise
COPIES = ("LICENSE", "LICENSES/BSL-1.0.txt")
REUSE = "reuse==5.0.2"
COMMENTS = {  # by suffix or by name; the others have `#`
    (".cpp", ".hpp", ".java", ".go", ".mod", ".rs", ".js", ".mjs", ".dict"): "// {}",
    (".lua", ".sql"): "-- {}",
    (".tla", ".cfg"): r"\* {}",
    (".md", ".html", ".xml", ".svg"): "<!-- {} -->",
}


def files_of(root):
    """Files of the repository, and new ones that Git would take; without Git all but builds."""
    listed = subprocess.run(["git", "-C", root, "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
                            capture_output=True, text=True, check=False) if (root / ".git").exists() else None
    if listed and not listed.returncode:
        names = filter(None, listed.stdout.split("\0"))
    else:
        names = (p.relative_to(root).as_posix() for p in root.rglob("*"))
    for name in sorted(set(names)):
        if not re.match(r"(build|\.git)/", name) and "__pycache__" not in name and (root / name).is_file():
            yield name


def patterns_of(root):
    """Paths of which REUSE.toml names the licence."""
    tables = tomllib.loads((root / "REUSE.toml").read_text(encoding="utf-8"))["annotations"]
    return [pattern for table in tables if "SPDX-License-Identifier" in table for pattern in table["path"]]


def line_for(name):
    for keys, comment in COMMENTS.items():
        if name.endswith(keys):
            return comment.format(LINE)
    return f"# {LINE}"


def has_line(path):
    with open(path, encoding="utf-8", errors="replace") as file:
        return any(LINE in line for _, line in zip(range(HEAD), file))


def names(root):
    patterns = patterns_of(root)
    texts = {(root / copy).read_text(encoding="utf-8") for copy in COPIES}
    if len(texts) > 1:
        yield f"{COPIES[1]} differs from {COPIES[0]}: copy it"
    for name in files_of(root):
        if name in COPIES or any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns):
            continue
        if not has_line(root / name):
            yield f"{name} names no licence: add `{line_for(name)}` at its head, or its path to REUSE.toml"


def reuse(root):
    with tempfile.TemporaryDirectory() as folder:
        program = shutil.which("reuse")
        if not program:
            fetch("a virtual environment", sys.executable, "-m", "venv", folder)
            fetch(f"{REUSE} from PyPI", f"{folder}/bin/pip", "install", "--quiet", "--retries", "1", REUSE)
            program = f"{folder}/bin/reuse"
        tree = Path(folder, "tree")  # what Git knows: builds of this tree are no part of it
        for name in files_of(root):
            (tree / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(root / name, tree / name)
        linted = subprocess.run([program, "--root", tree, "lint"], capture_output=True, text=True, check=False)
    if linted.returncode:
        yield linted.stdout + linted.stderr


def main():
    check = {"names": names, "reuse": reuse}[sys.argv[1]]
    root = Path(sys.argv[2] if len(sys.argv) > 2 else Path(__file__).resolve().parents[2])
    found = list(check(root))
    print("\n".join(found) or "every file has its licence")
    sys.exit(bool(found))


if __name__ == "__main__":
    main()
