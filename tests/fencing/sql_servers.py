# SPDX-License-Identifier: BSL-1.0
"""Private PostgreSQL and MariaDB servers on a unix socket in a folder of their own, and sessions with them by their command line clients.

A server runs as an ordinary user: both refuse root. Without the programs a test ends by skip(), which names them."""
import contextlib
import glob
import os
import pwd
import re
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time

LIMIT = 60  # s: as long as anything may take on a busy machine
END = "end-of-the-answer"


def skip(reason):
    print("skipped: " + reason)
    sys.exit(77)


def program(name, *folders):
    """Debian has servers where PATH does not lead, and a slow wrapper of psql where it does."""
    found = [p for folder in folders for p in sorted(glob.glob(f"{folder}/{name}"))]
    return found[-1] if found else shutil.which(name)


def eventually(what, condition):
    deadline = time.monotonic() + LIMIT
    while not (result := condition()):
        if time.monotonic() > deadline:
            raise AssertionError("in vain: " + what)
        time.sleep(0.01)
    return result


def nobody():
    entry = pwd.getpwnam("nobody")
    return entry.pw_uid, entry.pw_gid


def hand_over(path):
    """To the user as whom a server runs."""
    if os.geteuid() == 0:
        os.chown(path, *nobody())


class Failed(Exception):
    """The server has refused a statement."""


class Session:
    """One connection. Rows come as the client prints them."""

    def __init__(self, command, end_command, own_id):
        self.end_command = end_command
        self.client = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                       env={**os.environ, "LC_ALL": "C.UTF-8"})
        self.received = b""
        self.id = self.run(own_id)[0]

    def send(self, sql):
        self.client.stdin.write(f"{sql};\n{self.end_command}\n".encode())
        self.client.stdin.flush()

    def answered(self):
        return bool(select.select([self.client.stdout], [], [], 0)[0])

    def answer(self):
        end = f"{END}\n".encode()
        while not self.received.endswith(end):
            if not select.select([self.client.stdout], [], [], LIMIT)[0]:
                raise AssertionError("no answer, but: " + self.received.decode())
            piece = os.read(self.client.stdout.fileno(), 65536)
            if not piece:
                raise AssertionError("the client has ended: " + self.received.decode())
            self.received += piece
        text, self.received = self.received.removesuffix(end).decode(), b""
        if re.search("^ERROR", text, re.MULTILINE):
            raise Failed(text)
        return text.splitlines()

    def run(self, sql):
        self.send(sql)
        return self.answer()


class Server:
    """What both have in common: they are started, and stopped by pid. `monitor` is a session that is there from the start."""

    def __init__(self, folder):
        self.folder = folder
        self.process = None
        self.monitor = None
        self.sessions = []

    def as_user(self):
        """Popen's arguments for whatever works in the folder."""
        return dict(zip(("user", "group", "extra_groups"), (*nobody(), []))) if os.geteuid() == 0 else {}

    def launch(self, command):
        with open(os.path.join(self.folder, "log"), "w", encoding="utf-8") as log:
            self.process = subprocess.Popen(command, cwd=self.folder, stdout=log, stderr=log, **self.as_user())
        eventually("a server that takes connections", self.takes_connections)

    def takes_connections(self):
        if self.process.poll() is not None:
            with open(os.path.join(self.folder, "log"), encoding="utf-8") as log:
                raise AssertionError("the server has ended: " + log.read())
        with contextlib.suppress(AssertionError, BrokenPipeError):
            self.monitor = self.session()
            return True

    def stop(self):
        for session in self.sessions:
            session.client.kill()
            session.client.wait()
        if self.process:
            self.process.send_signal(self.STOP)
            try:
                self.process.wait(LIMIT)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()

    def open(self, *arguments):
        session = Session(*arguments)
        self.sessions.append(session)
        return session

    def wait_until_blocked(self, session):
        def blocked():
            assert not session.answered(), "did not wait: " + str(session.answer())
            return self.monitor.run(self.BLOCKED.format(session.id)) == ["1"]
        eventually("a statement that waits for another transaction", blocked)


class Postgres(Server):
    STOP = signal.SIGINT  # and wait for no session
    SETTINGS = ("RESET ALL",)
    BLOCKED = "SELECT (cardinality(pg_blocking_pids({})) > 0)::int"
    BEGIN = "BEGIN ISOLATION LEVEL {}"
    OTHER_LEVELS = "REPEATABLE READ", "SERIALIZABLE"
    REPEAT = "could not serialize access"
    SHORT_PATIENCE = "SET idle_in_transaction_session_timeout = '100ms'"

    def __init__(self, folder):
        super().__init__(folder)
        folders = "/usr/lib/postgresql/*/bin", "/usr/pgsql-*/bin"
        initdb, postgres, self.psql = (program(p, *folders) for p in ("initdb", "postgres", "psql"))
        if not (initdb and postgres and self.psql):
            skip("no PostgreSQL: initdb, postgres, psql")
        self.programs = initdb, postgres

    def start(self):
        initdb, postgres = self.programs
        data = os.path.join(self.folder, "data")
        subprocess.run([initdb, "-D", data, "-U", "fence", "-A", "trust", "-E", "UTF8", "--no-locale", "--no-sync"],
                       cwd=self.folder, stdout=subprocess.DEVNULL, check=True, **self.as_user())
        self.launch([postgres, "-D", data, "-k", self.folder, "-c", "listen_addresses=", "-c", "fsync=off",
                     "-c", "shared_buffers=8MB", "-c", "autovacuum=off"])

    def session(self):
        return self.open([self.psql, "-X", "-q", "-A", "-t", "-h", self.folder, "-U", "fence", "postgres"],
                         "\\echo " + END, "SELECT pg_backend_pid()")

    def environment(self):
        return {"PGHOST": self.folder, "PGUSER": "fence", "PGDATABASE": "postgres"}


class Mariadb(Server):
    STOP = signal.SIGTERM
    # The default, and that of 11.6 and later, for new sessions.
    SETTINGS = "SET GLOBAL innodb_snapshot_isolation = OFF", "SET GLOBAL innodb_snapshot_isolation = ON"
    # Of all sessions: information_schema.innodb_trx would say whose it is, but is not brought up to date while it is
    # polled.
    BLOCKED = "SELECT VARIABLE_VALUE FROM information_schema.global_status WHERE VARIABLE_NAME = 'Innodb_row_lock_current_waits'"
    BEGIN = "SET TRANSACTION ISOLATION LEVEL {}; BEGIN"
    OTHER_LEVELS = "READ COMMITTED", "SERIALIZABLE"
    REPEAT = "Record has changed since last read"
    SHORT_PATIENCE = "SET SESSION idle_transaction_timeout = 1"

    def __init__(self, folder):
        super().__init__(folder)
        self.mariadbd, self.mariadb = program("mariadbd", "/usr/sbin", "/usr/libexec"), program("mariadb")
        if not (self.mariadbd and self.mariadb):
            skip("no MariaDB: mariadbd, mariadb")
        self.socket = os.path.join(folder, "sock")

    def start(self):
        data = os.path.join(self.folder, "data")
        os.mkdir(data)
        hand_over(data)
        # Without grant tables nothing has to be installed into an empty folder, which would take longer than the tests.
        self.launch([self.mariadbd, "--no-defaults", "--datadir=" + data, "--socket=" + self.socket, "--skip-networking", "--tmpdir=" + data,
                     "--skip-grant-tables", "--innodb-buffer-pool-size=8M", "--innodb-log-file-size=4M"])
        self.monitor.run("CREATE DATABASE fence; USE fence")

    def session(self):
        database = ["fence"] if self.monitor else []
        return self.open([self.mariadb, "--no-defaults", "--batch", "--skip-column-names", "--unbuffered", "--force",
                          "--skip-reconnect", "--socket=" + self.socket, *database],
                         f"SELECT '{END}';", "SELECT CONNECTION_ID()")


KINDS = {"postgres": Postgres, "mariadb": Mariadb}


@contextlib.contextmanager
def running(kind):
    """As root the folder is not in TMPDIR, which may be root's alone."""
    with tempfile.TemporaryDirectory(prefix="fence-", dir="/tmp" if os.geteuid() == 0 else None) as folder:
        hand_over(folder)
        server = kind(folder)
        try:
            server.start()
            yield server
        finally:
            server.stop()
