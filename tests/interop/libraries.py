# SPDX-License-Identifier: BSL-1.0
"""The other libraries: how each is fetched from its registry, the command of its agent, and its table of rows."""
import fcntl
import shutil
import sys
from pathlib import Path
from typing import NamedTuple

import redisson_rows
import simple_rows
from optional_tools import fetch, skip

HERE = Path(__file__).resolve().parent


class Library(NamedTuple):
    command: list
    table: list = simple_rows.ONE
    stress: list = simple_rows.STRESS_ONE
    prefix: str = ""  # of its keys
    renews: bool = False  # by itself
    reports: bool = True  # a release that came too late


QUORUM = {"table": simple_rows.ONE + simple_rows.SEVERAL, "stress": simple_rows.STRESS_ONE + simple_rows.STRESS_SEVERAL}


def need(*programs):
    for program in programs:
        if not shutil.which(program):
            skip(f"no {program} in PATH")


def copied(language, folder):
    """Its tools write beside the sources: into a copy."""
    place = folder / language
    shutil.copytree(HERE / language, place, dirs_exist_ok=True)
    return place


def redisson(version, folder):
    need("java", "mvn")
    place = folder / version
    fetch(f"Redisson {version} from Maven", "mvn", "--quiet", "--batch-mode", "--file", str(HERE / "redisson" / "pom.xml"),
          f"-Dredisson={version}", f"-Dout={place}", "compile", "dependency:copy-dependencies", limit=600)
    command = ["java", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xmx256m",
               "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn", "-classpath", f"{place}/classes:{place}/dependency/*", "RedissonAgent"]
    return Library(command, redisson_rows.TABLE, redisson_rows.STRESS, renews=True)


def python(library, folder, *packages):
    interpreter = folder / library / "bin" / "python"
    if not interpreter.exists():
        fetch("a virtual environment", sys.executable, "-m", "venv", str(folder / library))
    fetch(f"{library} from PyPI", str(interpreter), "-m", "pip", "install", "--quiet", *packages)
    return [str(interpreter), str(HERE / "python" / "agent.py"), library]


def node(library, version, folder):
    need("npm", "node")
    place = copied("node", folder)
    fetch(f"{library} from npm", "npm", "install", "--silent", "--no-audit", "--no-fund", f"{library}@{version}", "ioredis@5",
          cwd=place)
    return ["node", str(place / "agent.mjs"), library]


def go(library, folder):
    need("go")
    place = copied("go", folder)
    fetch(f"{library} as a Go module", "go", "build", "-mod=mod", "-o", "agent", ".", cwd=place, limit=600)
    return [str(place / "agent"), library]


def rust(folder):
    need("cargo")
    place = copied("rust", folder)
    fetch("rslock from its registry", "cargo", "build", "--quiet", cwd=place, limit=1200)
    return [str(place / "target" / "debug" / "agent")]


def red_mutex():
    skip("redis-plus-plus is in no registry of these tests; docs/examples/2_recipes/beside_red_mutex.cpp sends its commands")


def fetched(name, folder):
    """The library of this name, ready to be started; the test is skipped where it cannot be had."""
    folder.mkdir(parents=True, exist_ok=True)
    with open(folder / "fetching", "w", encoding="utf-8") as file:
        fcntl.flock(file, fcntl.LOCK_EX)  # tests of one language share the folder of its tools
        return found(name, folder)


def found(name, folder):
    family, _, version = name.partition(" ")
    return {
        "Redisson": lambda: redisson(version, folder),
        "redis-py": lambda: Library(python(name, folder, "redis>=5")),
        "redlock-ng": lambda: Library(python(name, folder, "redlock-ng==2.0.4"), **QUORUM, reports=False),
        "pottery": lambda: Library(python(name, folder, "pottery==3.0.1"), **QUORUM, prefix="redlock:"),
        "redlock": lambda: Library(node(name, "5.0.0-beta.2", folder), **QUORUM),
        "@sesamecare-oss/redlock": lambda: Library(node(name, "1.4.0", folder), **QUORUM),
        "redsync": lambda: Library(go(name, folder), **QUORUM),
        "bsm/redislock": lambda: Library(go(name, folder)),
        "rslock": lambda: Library(rust(folder), **QUORUM, reports=False),
        "RedMutex": red_mutex,
    }[family]()
