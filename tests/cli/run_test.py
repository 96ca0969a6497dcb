#!/usr/bin/env python3
# SPDX-License-Identifier: BSL-1.0
"""run_test.py PROGRAM [CASE...]: the ends of `holdfast run`. Each case says how the command ends, and the test compares
the exit status, and that no process and no lock is left. Exit code 77: there is no Redis server to run."""
import contextlib
import ctypes
import fcntl
import os
import signal
import socket
import subprocess
import sys
import tempfile
import termios
import time

from rig import Failure, Job, Redis, check, wait_until

READY = "echo ready; "
SET_CHILD_SUBREAPER = 36  # of prctl
IDLE = READY + "while :; do sleep 0.05; done"
CASES = {}


def case(function):
    CASES[function.__name__] = function
    return function


class Skipped(Exception):
    pass


def stat_of(pid):
    """The state of a process, and the number of its parent; a process that is gone has none."""
    with contextlib.suppress(OSError):
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
            state, parent = file.read().rsplit(")", 1)[1].split()[:2]
            return state, int(parent)
    return "", 0


def children_of(parent):
    return [pid for pid in map(int, filter(str.isdigit, os.listdir("/proc"))) if stat_of(pid)[1] == parent]


class End:
    """A server, and the run on it."""

    def __init__(self, program, folder):
        self.program, self.folder, self.server, self.jobs = program, folder, Redis(folder), []

    def start(self, *arguments, url=None, **how):
        self.jobs.append(Job(self.program, "run", "job", *arguments, url=url or self.server.url, **how))
        return self.jobs[-1]

    def shell(self, script, *options, **how):
        return self.start(*options, "--", "sh", "-c", script, **how)

    def ends_with(self, job, status, lock_left=False):
        got = job.finish()
        check(got == status, f"exit status {got}, not {status}: {job.output}")
        job.leaves_nobody()
        if self.server.process.poll() is None:
            check(bool(self.server.do("EXISTS", "job")) == lock_left, f"the lock is {'gone' if lock_left else 'left'}")

    def lose(self):
        """Another has taken the lock by force."""
        self.server.do("DEL", "job")
        self.server.lock("job")

    def bash(self):
        """A shell with job control on a terminal of its own."""
        self.jobs.append(Job("bash", "--norc", "-i", url=self.server.url, terminal=True, environment={"PS1": "", "HISTFILE": ""}))
        return self.jobs[-1]

    def ticker(self):
        """A command that prints its number and "tick" again and again, and forks nothing: Ctrl-Z during a vfork() stops
        the child alone. USR1 ends it with 0, TERM too, and it says so."""
        path = os.path.join(self.folder, "ticker.py")
        with open(path, "w", encoding="utf-8") as file:
            file.write("import os, signal, time\n"
                       "signal.signal(signal.SIGUSR1, lambda *_: os._exit(0))\n"
                       "signal.signal(signal.SIGTERM, lambda *_: (os.write(2, b'heard\\n'), os._exit(0)))\n"
                       "while True:\n    os.write(2, b'%d tick\\n' % os.getpid())\n    time.sleep(0.05)\n")
        return f"{sys.executable} {path}"

    def ends_lost(self, job):
        self.ends_with(job, 79, lock_left=True)

    def close(self):
        for job in self.jobs:
            job.close()
        self.server.kill()


# The command ends by itself.

@case
def it_ends_with_0(end):
    end.ends_with(end.shell("exit 0"), 0)


@case
def it_ends_with_3(end):
    end.ends_with(end.shell("exit 3"), 3)


@case
def it_ends_with_255(end):
    end.ends_with(end.shell("exit 255"), 255)


@case
def it_kills_itself(end):
    end.ends_with(end.shell("kill -KILL $$"), 128 + signal.SIGKILL)


@case
def it_terminates_itself(end):
    end.ends_with(end.shell("kill -TERM $$"), 128 + signal.SIGTERM)


@case
def it_crashes(end):
    end.ends_with(end.shell("ulimit -c 0; kill -SEGV $$"), 128 + signal.SIGSEGV)


@case
def it_does_not_exist(end):
    end.ends_with(end.start("--", "/no/such/command"), 127)


@case
def it_is_no_program(end):
    end.ends_with(end.start("--", end.folder), 126)


@case
def it_closes_its_pipes(end):
    end.ends_with(end.shell("exec <&- >&- 2>&-; exit 4"), 4)


@case
def it_leaves_a_process_that_goes_on(end):
    job = end.shell("trap '' TERM; (while :; do sleep 0.05; done) >&- 2>&- & exit 0")
    got = job.finish()
    check(got == 0, f"exit status {got}")
    check(job.processes(), "the process in the background was ended")
    check(not end.server.do("EXISTS", "job"), "the lock is left")


@case
def it_is_killed_from_outside(end):
    job = end.shell("echo $$ ready; while :; do sleep 0.05; done").wait_for(" ready")
    os.kill(int(job.output.split()[0]), signal.SIGKILL)
    # What it has started is nobody's any more, and ends soon.
    end.ends_with(job, 128 + signal.SIGKILL)


@case
def it_finds_the_lock_in_its_environment(end):
    job = end.shell("echo $HOLDFAST_LOCK_NAME $HOLDFAST_LOCK_KIND ${HOLDFAST_FENCE_TOKEN:-none} $HOLDFAST_LOCK_ID",
                    environment={"HOLDFAST_FENCE_TOKEN": "of another lock"})
    end.ends_with(job, 0)
    words = job.output.split()
    check(words[:3] == ["job", "mutex", "none"] and len(words) == 4, job.output)


@case
def it_finds_a_token_in_its_environment(end):
    job = end.shell("echo $HOLDFAST_LOCK_KIND $HOLDFAST_FENCE_TOKEN", "--fenced")
    end.ends_with(job, 0)
    kind, token = job.output.split()
    newest = int(end.server.do("GET", "redisson_lock_token:{job}"))
    check(kind == "fenced_mutex" and newest - 1000 < int(token) <= newest, job.output)


@case
def it_holds_a_simple_lock(end):
    job = end.shell(IDLE, "--simple").wait_for("ready")
    check(end.server.do("TYPE", "job") == "string", "no simple lock")
    job.signal(signal.SIGTERM)
    end.ends_with(job, 128 + signal.SIGTERM)


# Signals.

def ends_by(end, number):
    job = end.shell(IDLE).wait_for("ready")
    job.signal(number)
    end.ends_with(job, 128 + number)


@case
def a_TERM_is_forwarded(end):
    ends_by(end, signal.SIGTERM)


@case
def an_INT_is_forwarded(end):
    ends_by(end, signal.SIGINT)


@case
def a_HUP_is_forwarded(end):
    ends_by(end, signal.SIGHUP)


@case
def a_QUIT_is_forwarded(end):
    ends_by(end, signal.SIGQUIT)


@case
def a_USR1_is_handled_by_the_command(end):
    job = end.shell("trap 'exit 7' USR1; " + IDLE).wait_for("ready")
    job.signal(signal.SIGUSR1)
    end.ends_with(job, 7)


@case
def a_USR2_is_handled_and_it_goes_on(end):
    job = end.shell("trap 'echo heard' USR2; trap 'exit 8' USR1; " + IDLE).wait_for("ready")
    job.signal(signal.SIGUSR2)
    job.wait_for("heard")
    job.signal(signal.SIGUSR1)
    end.ends_with(job, 8)


@case
def a_signal_reaches_what_the_command_has_forked(end):
    job = end.shell("sh -c \"trap 'echo heard; exit' TERM; echo forked; while :; do sleep 0.05; done\" & wait; wait; exit 9")
    job.wait_for("forked")
    job.signal(signal.SIGTERM)
    job.wait_for("heard")
    end.ends_with(job, 128 + signal.SIGTERM)


@case
def a_HUP_that_is_ignored_stays_ignored(end):
    job = end.shell("trap 'exit 8' USR1; " + IDLE,
                    preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN)).wait_for("ready")
    job.signal(signal.SIGHUP)
    job.signal(signal.SIGUSR1)
    end.ends_with(job, 8)


@case
def a_command_that_ignores_TERM_is_killed_by_others(end):
    job = end.shell("trap 'echo ignored' TERM; echo $$ ready; while :; do sleep 0.05; done").wait_for(" ready")
    job.signal(signal.SIGTERM)
    job.wait_for("ignored")
    os.kill(int(job.output.split()[0]), signal.SIGKILL)
    end.ends_with(job, 128 + signal.SIGKILL)


# The lock is lost.

@case
def lost_it_gets_TERM(end):
    job = end.shell("trap 'echo heard; exit 0' TERM; " + IDLE, "--ttl", "3").wait_for("ready")
    end.lose()
    end.ends_lost(job.wait_for("heard"))


@case
def lost_it_ignores_TERM(end):
    job = end.shell("trap 'echo ignored' TERM; " + IDLE, "--ttl", "3", "--grace", "0.3").wait_for("ready")
    end.lose()
    end.ends_lost(job.wait_for("ignored"))


@case
def lost_it_has_forked_and_all_ignore_TERM(end):
    job = end.shell("trap '' TERM; sh -c 'while :; do sleep 0.05; done' & sh -c 'while :; do sleep 0.05; done' & " + IDLE,
                    "--ttl", "3", "--grace", "0.3").wait_for("ready")
    end.lose()
    end.ends_lost(job)


@case
def lost_it_ends_but_not_what_it_has_forked(end):
    job = end.shell("sh -c \"trap '' TERM; while :; do sleep 0.05; done\" & trap 'exit 0' TERM; " + IDLE, "--ttl", "3")
    job.wait_for("ready")
    end.lose()
    end.ends_lost(job)


@case
def lost_it_is_killed(end):
    job = end.shell("trap 'echo heard' TERM; " + IDLE, "--ttl", "3", "--on-lost", "kill").wait_for("ready")
    end.lose()
    end.ends_lost(job)
    check("heard" not in job.output, job.output)


@case
def lost_it_is_warned(end):
    job = end.shell("trap 'exit 5' USR1; " + IDLE, "--ttl", "3", "--on-lost", "warn").wait_for("ready")
    end.lose()
    job.wait_for("the lock is lost")
    job.signal(signal.SIGUSR1)
    end.ends_with(job, 5, lock_left=True)


@case
def lost_it_learns_by_its_pipe(end):
    job = end.start("--ttl", "3", "--on-lost", "warn", "--", sys.executable, "-c",
                    "import os; print('ready', flush=True); os.read(int(os.environ['HOLDFAST_LOST_FD']), 1); raise SystemExit(6)")
    job.wait_for("ready")
    end.lose()
    end.ends_with(job, 6, lock_left=True)


@case
def lost_it_is_stopped(end):
    job = end.shell("echo $$ ready; kill -STOP $$; exit 0", "--ttl", "3").wait_for(" ready")
    pid = int(job.output.split()[0])
    wait_until(lambda: stat_of(pid)[0] == "T", "it stops")
    end.lose()
    end.ends_lost(job)


@case
def lost_it_has_closed_its_pipes(end):
    job = end.shell("exec 3>&1; eval \"exec $HOLDFAST_LOST_FD<&-\"; echo ready; exec <&- >&- 2>&-; while :; do sleep 0.05; done",
                    "--ttl", "3").wait_for("ready")
    end.lose()
    end.ends_lost(job)


@case
def lost_after_max_hold(end):
    job = end.shell(IDLE, "--ttl", "1", "--max-hold", "0.2").wait_for("ready")
    end.ends_with(job, 79)


@case
def lost_and_found_out_at_the_end(end):
    job = end.shell("echo ready; read line", "--ttl", "3600", stdin=subprocess.PIPE).wait_for("ready")
    end.lose()
    job.process.stdin.close()
    end.ends_lost(job)


@case
def the_server_is_killed(end):
    job = end.shell(IDLE, "--ttl", "2").wait_for("ready")
    end.server.kill()
    end.ends_with(job, 79)


@case
def the_server_is_killed_and_the_command_ends_in_time(end):
    job = end.shell("trap 'exit 5' USR1; " + IDLE, "--ttl", "600").wait_for("ready")
    end.server.kill()
    job.signal(signal.SIGUSR1)
    end.ends_with(job, 5)
    check("Redis does not confirm the release" in job.output, job.output)


@case
def holdfast_is_stopped_and_the_command_ends_meanwhile(end):
    job = end.shell("trap 'exit 0' USR1; echo $$ ready; while :; do sleep 0.05; done", "--ttl", "2").wait_for(" ready")
    job.signal(signal.SIGSTOP)
    wait_until(lambda: not end.server.do("EXISTS", "job"), "the lease ends")
    os.kill(int(job.output.split()[0]), signal.SIGUSR1)
    job.signal(signal.SIGCONT)
    end.ends_with(job, 79)


@case
def holdfast_is_stopped_beyond_its_lease(end):
    job = end.shell(IDLE, "--ttl", "2").wait_for("ready")
    job.signal(signal.SIGSTOP)
    wait_until(lambda: not end.server.do("EXISTS", "job"), "the lease ends")
    job.signal(signal.SIGCONT)
    end.ends_with(job, 79)


# The command does not begin.

@case
def busy_and_not_waited_for(end):
    end.server.lock("job")
    job = end.shell("echo began", "-n")
    end.ends_with(job, 75, lock_left=True)
    check("began" not in job.output, job.output)


@case
def busy_for_as_long_as_it_waits(end):
    end.server.lock("job")
    end.ends_with(end.shell("exit 0", "-w", "0.2"), 75, lock_left=True)


@case
def busy_and_then_free(end):
    first = end.shell("trap 'exit 0' USR1; " + IDLE).wait_for("ready")
    second = end.shell("exit 6")
    wait_until(lambda: end.server.do("PUBSUB", "NUMSUB", "redisson_lock__channel:{job}")[1] == 1, "the second waits")
    first.signal(signal.SIGUSR1)
    check(first.finish() == 0, first.output)
    end.ends_with(second, 6)


@case
def a_signal_comes_while_it_waits(end):
    end.server.lock("job")
    job = end.shell("echo began")
    wait_until(lambda: end.server.do("PUBSUB", "NUMSUB", "redisson_lock__channel:{job}")[1] == 1, "it waits")
    job.signal(signal.SIGTERM)
    end.ends_with(job, 128 + signal.SIGTERM, lock_left=True)
    check("began" not in job.output, job.output)


@case
def nobody_listens(end):
    end.ends_with(end.shell("exit 0", url="redis+unix:///no/such/socket"), 69)


@case
def somebody_listens_and_is_silent(end):
    path = os.path.join(end.folder, "silent.sock")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(path)
        listener.listen()
        end.ends_with(end.shell("exit 0", url="redis+unix://" + path), 69)


@case
def data_is_under_the_key(end):
    end.server.do("RPUSH", "job", "data")
    end.ends_with(end.shell("exit 0"), 65, lock_left=True)


@case
def the_password_is_wrong(end):
    end.server.do("CONFIG", "SET", "requirepass", "right")
    job = end.shell("exit 0", environment={"HOLDFAST_PASSWORD": "wrong-secret"})
    got = job.finish()
    check(got == 77, f"exit status {got}: {job.output}")
    check("wrong-secret" not in job.output, job.output)


@case
def there_is_no_command(end):
    end.ends_with(end.start(), 64)


# holdfast dies.

@case
def holdfast_is_killed_and_the_command_with_it(end):
    job = end.shell(IDLE, "--ttl", "60").wait_for("ready")
    job.signal(signal.SIGKILL)
    check(job.wait() == 128 + signal.SIGKILL, "it was not killed")
    job.leaves_nobody()
    ttl = end.server.do("PTTL", "job")
    check(0 < ttl <= 60_000, f"the lock's TTL is {ttl}")


@case
def both_are_killed(end):
    job = end.shell("echo $$ ready; while :; do sleep 0.05; done").wait_for(" ready")
    os.kill(int(job.output.split()[0]), signal.SIGKILL)
    job.signal(signal.SIGKILL)
    job.wait()
    job.leaves_nobody()


def ends_at_any_moment(end, number):
    """Wherever in its start the signal comes: no process and, after TERM, no lock is left."""
    for moment in range(20):
        job = end.shell("while :; do sleep 0.05; done", "--ttl", "600")
        time.sleep(moment / 1000)
        job.signal(number)
        check(job.wait() == 128 + number, f"exit status after {moment} ms: {job.process.returncode}")
        job.leaves_nobody()
        check(number == signal.SIGKILL or not end.server.do("EXISTS", "job"), f"the lock is left after {moment} ms")
        end.server.do("DEL", "job")


@case
def a_KILL_comes_at_any_moment(end):
    ends_at_any_moment(end, signal.SIGKILL)


@case
def a_TERM_comes_at_any_moment(end):
    ends_at_any_moment(end, signal.SIGTERM)


@case
def nobody_reads_its_notices(end):
    job = end.shell("trap '' TERM; echo ready; exec >&- 2>&-; while :; do sleep 0.05; done", "--ttl", "3", "--grace", "0.2")
    job.wait_for("ready")
    job.process.stdout.close()
    end.lose()
    check(job.wait() == 79, "it did not end for the loss")
    job.leaves_nobody()
    job.process.stdout = open(os.devnull, "rb")


@case
def nobody_reads_its_full_pipe(end):
    job = end.shell("echo ready; exec yes", "--ttl", "3").wait_for("ready")
    room = bytearray(4)

    def is_full():
        before = bytes(room)
        fcntl.ioctl(job.descriptor(), termios.FIONREAD, room)
        return before == bytes(room) and int.from_bytes(room, sys.byteorder) > 32768

    wait_until(is_full, "the pipe is full")
    end.lose()
    check(job.wait() == 79, "it did not end for the loss")
    job.leaves_nobody()


# Odd parents.

@case
def its_parent_has_blocked_SIGCHLD(end):
    job = end.shell("exit 3", preexec_fn=lambda: signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGCHLD}))
    end.ends_with(job, 3)


@case
def its_parent_ignores_SIGCHLD(end):
    end.ends_with(end.shell("exit 3", preexec_fn=lambda: signal.signal(signal.SIGCHLD, signal.SIG_IGN)), 3)


@case
def as_a_subreaper_it_reaps_what_the_command_leaves(end):
    job = end.shell("( sh -c 'echo $$ orphan' & ); trap 'exit 7' USR1; while :; do sleep 0.05; done",
                    preexec_fn=lambda: ctypes.CDLL(None).prctl(SET_CHILD_SUBREAPER, 1, 0, 0, 0)).wait_for(" orphan")
    orphan = int(job.output.split()[0])
    wait_until(lambda: stat_of(orphan) == ("", 0), "the orphan is reaped")
    job.signal(signal.SIGUSR1)
    end.ends_with(job, 7)


@case
def as_process_1_it_reaps_what_the_command_leaves(end):
    if subprocess.run(["unshare", "--pid", "--fork", "true"], capture_output=True, check=False).returncode:
        raise Skipped("no process namespace may be made here")
    job = Job("unshare", "--pid", "--fork", end.program, "run", "job", "--", "sh", "-c",
              "( sh -c 'echo orphan' & ); echo first $PPID; read line; exit 7", url=end.server.url, stdin=subprocess.PIPE)
    end.jobs.append(job)
    job.wait_for("orphan").wait_for("first 1\n")
    first, = children_of(job.pid)
    wait_until(lambda: len(children_of(first)) == 1, "the orphan is reaped")
    job.process.stdin.close()
    end.ends_with(job, 7)


# A terminal.

def stops_and_goes_on(shell, rounds):
    """Ctrl-Z and fg for a job with the command ticker(), again and again. Then the job and the shell end."""
    shell.wait_for(" tick\n")
    pid = int(shell.output.split(" tick\n")[0].split()[-1])
    for times in range(1, rounds + 1):
        shell.type("\x1a")
        shell.wait_for("Stopped", times)
        wait_until(lambda: stat_of(pid)[0] == "T", "the command stops")
        shell.type("fg\n")
        wait_until(lambda: stat_of(pid)[0] in ("S", "R"), "the command goes on")
    os.kill(pid, signal.SIGUSR1)
    shell.type("echo status $?\n")
    shell.wait_for("status 0\n")
    check(shell.output.count("Stopped") == rounds, f"it has stopped again: {shell.output}")
    shell.type("exit 0\n")


@case
def the_terminal_is_the_commands(end):
    job = end.shell("echo ready; read line; echo \"got $line\"; exit 2", terminal=True).wait_for("ready")
    job.type("a line\n")
    end.ends_with(job, 2)
    check("got a line" in job.output, job.output)


@case
def Ctrl_C_reaches_the_command_alone(end):
    job = end.shell("trap 'echo heard; exit 4' INT; " + IDLE, terminal=True).wait_for("ready")
    job.type("\x03")
    end.ends_with(job, 4)
    check(job.output.count("heard") == 1, job.output)


@case
def Ctrl_Z_stops_the_job_and_fg_continues_it(end):
    shell = end.bash()
    shell.type(f"{end.program} run job --ttl 600 -- sh -c 'echo ready; read line; echo got $line; exit 3'\n")
    shell.wait_for("ready\n")
    shell.type("\x1a")
    shell.wait_for("Stopped")
    check(end.server.do("EXISTS", "job"), "the lock is gone")
    shells_own = os.tcgetpgrp(shell.terminal)
    shell.type("fg\n")
    wait_until(lambda: os.tcgetpgrp(shell.terminal) != shells_own, "the job is in the foreground")
    shell.type("words\n")
    shell.wait_for("got words\n")
    shell.type("echo status $?\n")
    shell.wait_for("status 3\n")
    shell.type("exit 0\n")
    end.ends_with(shell, 0)


@case
def Ctrl_Z_in_a_pipeline_stops_the_command_too(end):
    shell = end.bash()
    shell.type(f"{end.program} run job --ttl 600 -- {end.ticker()} | cat\n")
    shell.wait_for(" tick\n")
    pid = int(shell.output.split(" tick\n")[0].split()[-1])
    shell.type("\x1a")
    shell.wait_for("Stopped")
    check(stat_of(pid)[0] == "T", "the command goes on")
    shell.type("fg\n")
    wait_until(lambda: stat_of(pid)[0] in ("S", "R"), "the command goes on")
    os.kill(pid, signal.SIGUSR1)
    shell.type("echo status $?\n")
    shell.wait_for("status 0\n")
    shell.type("exit 0\n")
    end.ends_with(shell, 0)


@case
def Ctrl_Z_and_fg_may_follow_each_other_at_once(end):
    shell = end.bash()
    shell.type(f"{end.program} run job --ttl 600 -- {end.ticker()}\n")
    stops_and_goes_on(shell, 100)
    end.ends_with(shell, 0)


@case
def after_fg_a_pager_behind_it_reads_the_terminal(end):
    shell = end.bash()
    shell.type(f"{end.program} run job --ttl 600 -- {end.ticker()} | sh -c 'read line < /dev/tty; echo got $line'\n")
    shell.wait_for(" tick\n")
    pid = int(shell.output.split(" tick\n")[0].split()[-1])
    jobs_own = os.getpgid(stat_of(pid)[1])
    shell.type("\x1a")
    shell.wait_for("Stopped")
    shell.type("fg\n")
    wait_until(lambda: stat_of(pid)[0] in ("S", "R"), "the command goes on")
    check(os.tcgetpgrp(shell.terminal) == jobs_own, "the pager has lost the terminal")
    shell.type("words\n")
    shell.wait_for("got words\n")
    os.kill(pid, signal.SIGUSR1)
    shell.type("echo status $?\n")
    shell.wait_for("status 0\n")
    shell.type("exit 0\n")
    end.ends_with(shell, 0)


@case
def Ctrl_Z_stops_two_that_share_a_pipe(end):
    for rounds in (1, 1, 1, 100):  # at the first stop of a job they have something to tell each other
        shell = end.bash()
        shell.type(f"{end.program} run job --ttl 600 -- {end.ticker()} 2>&1 | {end.program} run other --ttl 600 -- cat\n")
        stops_and_goes_on(shell, rounds)
        end.ends_with(shell, 0)


@case
def Ctrl_Z_stops_all_where_the_terminal_is_with_the_command_alone(end):
    shell = end.bash()
    shells_own = os.getpgid(shell.pid)
    shell.type(f"{end.program} run job --ttl 600 -- sh -c 'echo $$ ready >&2; read line; echo got $line' | cat\n")
    shell.wait_for(" ready\n")
    pid = int(shell.output.split(" ready\n")[0].split()[-1])
    wait_until(lambda: os.tcgetpgrp(shell.terminal) == pid, "the command reads the terminal")
    shell.type("\x1a")
    shell.wait_for("Stopped")
    shell.type("fg\n")
    wait_until(lambda: os.tcgetpgrp(shell.terminal) != shells_own, "the job is in the foreground")
    shell.type("words\n")
    shell.wait_for("got words\n")
    shell.type("exit 0\n")
    end.ends_with(shell, 0)


@case
def a_TSTP_for_holdfast_is_not_for_the_rest_of_its_job(end):
    shell = end.bash()
    rest = "trap 'echo heard' TSTP; trap 'echo asked' USR1; echo $$ rest; while :; do sleep 0.05; done"
    shell.type(f"{end.program} run job --ttl 600 -- {end.ticker()} | sh -c \"{rest.replace('$', chr(92) + '$')}\"\n")
    shell.wait_for(" tick\n").wait_for(" rest\n")
    pid, rests_own = (int(shell.output.split(mark)[0].split()[-1]) for mark in (" tick\n", " rest\n"))
    own = stat_of(pid)[1]
    os.kill(own, signal.SIGTSTP)
    wait_until(lambda: stat_of(own)[0] == "T", "it stops")
    for times in (1, 2):  # the first answer may come before that to an older signal
        os.kill(rests_own, signal.SIGUSR1)
        shell.wait_for("asked\n", times)
    check("heard" not in shell.output.replace("echo heard", ""), shell.output)


@case
def a_TSTP_for_holdfast_stops_the_command_too(end):
    shell = end.bash()
    shell.type(f"{end.program} run job --ttl 600 -- {end.ticker()}\n")
    shell.wait_for(" tick\n")
    pid = int(shell.output.split(" tick\n")[0].split()[-1])
    os.kill(stat_of(pid)[1], signal.SIGTSTP)
    shell.wait_for("Stopped")
    wait_until(lambda: stat_of(pid)[0] == "T", "the command stops")
    shell.type("fg\n")
    wait_until(lambda: stat_of(pid)[0] in ("S", "R"), "the command goes on")
    os.kill(pid, signal.SIGUSR1)
    shell.type("echo status $?\n")
    shell.wait_for("status 0\n")
    shell.type("exit 0\n")
    end.ends_with(shell, 0)


@case
def stopped_beyond_its_lease_it_does_not_go_on(end):
    shell = end.bash()
    shell.type(f"{end.program} run job --ttl 1 -- {end.ticker()}\n")
    shell.wait_for(" tick\n")
    shell.type("\x1a")
    shell.wait_for("Stopped")
    wait_until(lambda: not end.server.do("EXISTS", "job"), "the lease ends")
    shell.type("fg; echo status $?\n")
    shell.wait_for("status 79\n")
    later = shell.output.split("Stopped")[1]
    check("heard\n" in later and " tick\n" not in later, shell.output)
    shell.type("exit 0\n")
    end.ends_with(shell, 0)


@case
def a_command_whose_output_is_a_file_reads_the_terminal(end):
    shell = end.bash()
    shell.type(f"{end.program} run job -- sh -c 'echo ready >&2; read line; echo got $line >&2; exit 3' > {end.folder}/output\n")
    shell.wait_for("ready\n")
    shell.type("words\n")
    shell.wait_for("got words\n")
    shell.type("echo status $?\n")
    shell.wait_for("status 3\n")
    shell.type("exit 0\n")
    end.ends_with(shell, 0)


@case
def in_the_background_it_stops_when_it_reads_the_terminal(end):
    shell = end.bash()
    shell.type(f"set -b; {end.program} run job --ttl 600 -- sh -c 'read line; echo got $line; exit 3' &\n")
    shell.wait_for("Stopped")
    shell.type("fg\n")
    shells_own = os.getpgid(shell.pid)
    wait_until(lambda: os.tcgetpgrp(shell.terminal) != shells_own, "the job is in the foreground")
    shell.type("words\n")
    shell.wait_for("got words\n")
    shell.type("echo status $?\n")
    shell.wait_for("status 3\n")
    shell.type("exit 0\n")
    end.ends_with(shell, 0)


@case
def it_ends_in_the_background_and_the_shell_keeps_the_terminal(end):
    shell = end.bash()
    shell.type(f"{end.program} run job --ttl 600 -- {end.ticker()}\n")
    shell.wait_for(" tick\n")
    pid = int(shell.output.split(" tick\n")[0].split()[-1])
    shell.type("\x1a")
    shell.wait_for("Stopped")
    shell.type("bg\n")
    wait_until(lambda: stat_of(pid)[0] in ("S", "R"), "the command goes on")
    shells_own = os.getpgid(shell.pid)
    wait_until(lambda: os.tcgetpgrp(shell.terminal) == shells_own, "the shell has the terminal")
    os.kill(pid, signal.SIGUSR1)
    wait_until(lambda: not end.server.do("EXISTS", "job"), "it ends")
    check(os.tcgetpgrp(shell.terminal) == shells_own, "the shell has lost its terminal")
    shell.type("wait; echo still $((1 + 1))\n")
    shell.wait_for("still 2\n")
    shell.type("exit 0\n")
    end.ends_with(shell, 0)


@case
def lost_on_a_terminal_that_stops_writers_in_the_background(end):
    shell = end.bash()
    shell.type(f"stty tostop; {end.program} run job --ttl 3 -- sh -c '{IDLE}'\n")
    shell.wait_for("ready\n")
    end.lose()
    shell.wait_for("the lock is lost")
    shell.type("echo status $?\n")
    shell.wait_for("status 79\n")
    shell.type("exit 0\n")
    end.ends_with(shell, 0, lock_left=True)


@case
def the_terminal_is_closed(end):
    job = end.shell(IDLE, terminal=True).wait_for("ready")
    os.close(job.terminal)
    job.terminal = os.open("/dev/null", os.O_RDONLY)
    got = job.wait()
    check(got == 128 + signal.SIGHUP, f"exit status {got}")
    job.leaves_nobody()
    check(not end.server.do("EXISTS", "job"), "the lock is left")


@case
def stdin_is_the_commands(end):
    with open(os.path.join(end.folder, "input"), "w+", encoding="utf-8") as file:
        file.write("from a file")
        file.seek(0)
        job = end.start("--", "cat", stdin=file)
        end.ends_with(job, 0)
    check(job.output == "from a file", job.output)


@case
def a_command_has_options_of_its_own(end):
    job = end.start("-n", "--", "sh", "-c", "echo \"$@\"", "-", "--json", "-n", "--", "x")
    end.ends_with(job, 0)
    check(job.output == "--json -n -- x\n", job.output)


@case
def messages_for_systemd_pass_through(end):
    path = os.path.join(end.folder, "notify.sock")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listener:
        listener.bind(path)
        listener.settimeout(60)
        job = end.start("--", sys.executable, "-c",
                        "import os, socket; s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM); "
                        "s.sendto(b'READY=1', os.environ['NOTIFY_SOCKET'])", environment={"NOTIFY_SOCKET": path})
        check(listener.recv(64) == b"READY=1", "no message")
        end.ends_with(job, 0)


def main():
    program, *names = sys.argv[1:]
    failed = 0
    for name in names or CASES:
        with tempfile.TemporaryDirectory(prefix="holdfast-cli-") as folder:
            end = End(program, folder)
            try:
                CASES[name](end)
                print(f"passed: {name}", flush=True)
            except Skipped as reason:
                print(f"skipped: {name}: {reason}", flush=True)
            except (Failure, subprocess.TimeoutExpired) as failure:
                failed += 1
                print(f"FAILED: {name}: {failure}", flush=True)
            finally:
                end.close()
    print(f"{len(names or CASES) - failed} of {len(names or CASES)} ends")
    sys.exit(bool(failed))


if __name__ == "__main__":
    main()
