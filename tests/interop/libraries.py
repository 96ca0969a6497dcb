# SPDX-License-Identifier: BSL-1.0
"""The other libraries: how each is fetched from its registry, the command of its agent, and its table of rows."""
import shutil
from pathlib import Path
from typing import NamedTuple

import redisson_rows
from optional_tools import fetch, skip

HERE = Path(__file__).resolve().parent


class Library(NamedTuple):
    command: list
    table: list
    stress: list
    renews: bool = False  # by itself


def need(*programs):
    for program in programs:
        if not shutil.which(program):
            skip(f"no {program} in PATH")


def redisson(version, folder):
    need("java", "mvn")
    fetch(f"Redisson {version} from Maven", "mvn", "--quiet", "--batch-mode", "--file", str(HERE / "redisson" / "pom.xml"),
          f"-Dredisson={version}", f"-Dout={folder}", "compile", "dependency:copy-dependencies")
    command = ["java", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xmx256m",
               "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn", "-classpath", f"{folder}/classes:{folder}/dependency/*",
               "RedissonAgent"]
    return Library(command, redisson_rows.TABLE, redisson_rows.STRESS, renews=True)


def fetched(library, folder):
    name, _, version = library.partition("-")
    return {"redisson": redisson}[name](version, folder)
