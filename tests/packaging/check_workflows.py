#!/usr/bin/env python3
# SPDX-License-Identifier: BSL-1.0
"""check_workflows.py [ROOT]: each job of .github/workflows runs what this tree has.

  commands  each is a script of the tree, a preset of CMakePresets.json, a program of a CMakeLists.txt, or a tool of TOOLS
  actions   each is pinned by a tag
  rights    each workflow names its permissions; none uses a secret

Prints each violation as workflow: job: text. Exit status 1 if there is any. 77: PyYAML cannot be had."""
import itertools
import json
import re
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))
from optional_tools import fetch  # noqa: E402

TOOLS = {"apt-get", "sysctl", "git"}
INTERPRETERS = {"sh", "python3"}
PINNED = re.compile(r"[\w.-]+/[\w./-]+@v\d+(\.\d+)*")


def import_yaml():
    try:
        import yaml
    except ImportError:
        folder = tempfile.mkdtemp()
        fetch("PyYAML from PyPI", sys.executable, "-m", "pip", "install", "--quiet", "--retries", "1", "--target", folder, "PyYAML")
        sys.path.insert(0, folder)
        import yaml
    return yaml


class Tree:
    def __init__(self, root):
        self.root = root
        presets = json.loads((root / "CMakePresets.json").read_text(encoding="utf-8"))
        self.presets = {kind: {each["name"] for each in presets.get(f"{kind}Presets", ())}
                        for kind in ("configure", "build", "test", "workflow")}
        lists = [path.read_text(encoding="utf-8") for path in root.glob("tests/**/CMakeLists.txt")]
        names = {name for text in lists for name in re.findall(r"add_executable\(([\w${}]+)", text)}
        self.programs = [re.sub(r"\$\{\w+\}", r"\\w+", name) for name in names]  # a name may end with a variable

    def fault_of(self, words):
        """Of one simple command; None: it can run."""
        while words and (words[0] == "sudo" or words[0].startswith("--preserve-env")):
            words = words[1:]
        head, rest = words[0], words[1:]
        if head in TOOLS:
            return None
        if head in ("cmake", "ctest"):
            return self.fault_of_preset(head, rest)
        script = rest[0] if head in INTERPRETERS and rest else head
        if script.startswith("build/"):
            known = any(re.fullmatch(pattern, Path(script).name) for pattern in self.programs)
            return None if known else f"no program {script}"
        return None if (self.root / script).is_file() else f"no script {script}"

    def fault_of_preset(self, head, rest):
        kind = "test" if head == "ctest" else "workflow" if "--workflow" in rest else "build" if "--build" in rest else "configure"
        if "--preset" not in rest:
            return None if "--build" in rest else f"{head} without a preset"
        name = rest[rest.index("--preset") + 1]
        return None if name in self.presets[kind] else f"no {kind} preset {name}"


def settings_of(matrix):
    """All combinations of a matrix, each a dict."""
    lists = {key: values for key, values in matrix.items() if key not in ("include", "exclude")}
    found = [dict(zip(lists, values)) for values in itertools.product(*lists.values())] if lists else []
    return found + matrix.get("include", []) or [{}]


def simple_commands(text):
    """Those within $( ) come first, as a shell runs them."""
    for inner in re.findall(r"\$\(([^()]*)\)", text):
        yield from simple_commands(inner)
    for part in re.split(r"&&|\|\||\n|;", re.sub(r"\$\([^()]*\)", "x", text)):
        words = shlex.split(part, comments=True)
        if words:
            yield words


def faults_of_job(tree, job):
    for setting, step in itertools.product(settings_of(job.get("strategy", {}).get("matrix", {})), job["steps"]):
        if "uses" in step and not PINNED.fullmatch(step["uses"]):
            yield f"{step['uses']} is not pinned by a tag"
        text = re.sub(r"\$\{\{\s*matrix\.(\w+)\s*\}\}", lambda found: str(setting.get(found[1], "")), step.get("run", ""))
        if "${{" in text:
            yield f"what only GitHub knows is in a command: {text}"
        for words in simple_commands(text):
            if fault := tree.fault_of(words):
                yield fault


def check(root):
    yaml, tree = import_yaml(), Tree(root)
    paths = sorted((root / ".github/workflows").glob("*.yml"))
    if not paths:
        yield "no workflows"
    for path in paths:
        text = path.read_text(encoding="utf-8")
        workflow = yaml.safe_load(text)
        if "permissions" not in workflow:
            yield f"{path.name}: it names no permissions"
        if "secrets." in text:
            yield f"{path.name}: it uses a secret"
        for name, job in workflow["jobs"].items():
            yield from (f"{path.name}: {name}: {fault}" for fault in dict.fromkeys(faults_of_job(tree, job)))


def main():
    root = Path(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).resolve().parents[2])
    faults = list(check(root))
    print("\n".join(faults) or "each job runs what the tree has")
    sys.exit(bool(faults))


if __name__ == "__main__":
    main()
