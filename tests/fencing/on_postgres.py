# SPDX-License-Identifier: BSL-1.0
"""on_postgres.py FENCE_SQL COMMAND...: runs COMMAND where PGHOST, PGUSER and PGDATABASE name a private server with the table of FENCE_SQL
and two accounts. Exit code 77: there is no PostgreSQL to run."""
import os
import signal
import subprocess
import sys

import sql_servers
from fence_sql_test import statements_of


def main(path, *command):
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # by way of `finally`
    with sql_servers.running(sql_servers.Postgres) as server:
        server.monitor.run(statements_of(path)[0])
        server.monitor.run("CREATE TABLE account (name TEXT PRIMARY KEY, amount BIGINT)")
        server.monitor.run("INSERT INTO account VALUES ('ann', 100), ('bob', 100)")
        return subprocess.run(command, env={**os.environ, **server.environment()}, check=False).returncode


sys.exit(main(*sys.argv[1:]))
