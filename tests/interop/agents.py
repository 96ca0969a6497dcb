# SPDX-License-Identifier: BSL-1.0
"""Programs that lock on command: one of holdfast, one for each other language.

An agent reads a command a line and answers it in a line that begins with the command's number. Commands of one task
come one after another; the task owns what it locks (a thread, a goroutine, an owner of holdfast). Words are separated by
a space, names and paths are percent-encoded, `-` as a TTL is the library's own default. The commands:

  NUMBER TASK connect PLACE TOPOLOGY HOSTS TTL POLL PUBSUB PUSH   ok
  NUMBER TASK lock    PLACE KIND NAME TTL                     ok [TOKEN], when it is granted
  NUMBER TASK try     PLACE KIND NAME TTL                     ok [TOKEN], busy, or later: the servers did not answer
  NUMBER TASK unlock  PLACE KIND NAME                         ok, lost, or unconfirmed: the servers did not answer
  NUMBER TASK renew   PLACE KIND NAME TTL                     ok, lost
  NUMBER TASK force   PLACE KIND NAME                         yes, no: nobody held it
  NUMBER TASK stress  PLACE KIND NAME TTL ROUNDS MS FILE      ok ROUNDS: so often FILE was counted up under the lock,
                                                              or, with KIND read, was the same at both ends of a hold

An agent may have more: `error TEXT` answers those that it does not know."""
import concurrent.futures
import itertools
import subprocess
import threading
import time
import urllib.parse

LIMIT = 120  # seconds: for an answer that must come, on however busy a machine


def encoded(text):
    return urllib.parse.quote(str(text), safe="")


class Agent:
    """A program, started when it is first needed and again after it was killed."""

    def __init__(self, command, log):
        self.command, self.log = command, log
        self.numbers = itertools.count(1)
        self.alone = threading.Lock()  # for a row that stops or kills it
        self.state = threading.Lock()
        self.process, self.answers, self.places = None, {}, {}

    def ask(self, place, task, verb, *words):
        """A future of the answer. The agent connects to the place first."""
        with self.state:
            self.start()
            if place.name not in self.places:
                self.places[place.name] = self.send("connect", "connect", place.name, *place.terms())
            connected = self.places[place.name]
        reply = connected.result(LIMIT)
        assert reply == "ok", f"{self.command[-1]} connects: {reply}"
        with self.state:
            return self.send(task, verb, place.name, *words)

    def start(self):
        if self.process:
            return
        self.process = subprocess.Popen(self.command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                        stderr=open(self.log, "a", encoding="utf-8"))
        threading.Thread(target=self.read, args=(self.process, self.answers), daemon=True).start()

    def send(self, task, verb, *words):
        number, answer = str(next(self.numbers)), concurrent.futures.Future()
        self.answers[number] = answer
        self.process.stdin.write(" ".join((number, task, verb, *map(str, words))) + "\n")
        self.process.stdin.flush()
        return answer

    @staticmethod
    def read(process, answers):
        for line in process.stdout:
            number, _, text = line.rstrip("\n").partition(" ")
            answers.pop(number).set_result(text)
        for answer in list(answers.values()):
            answer.set_result("error: the agent ended")

    def signal(self, number):
        self.process.send_signal(number)

    def kill(self):
        with self.state:
            if self.process:
                self.process.kill()
                self.process.wait()
            self.process, self.answers, self.places = None, {}, {}


class Side:
    """One of two libraries: an agent that lives, and one that a row may stop or kill."""

    def __init__(self, name, command, folder, ours=False, renews=True, reports=True):
        self.name, self.ours = name, ours
        self.renews = renews  # by itself; else by command
        self.reports = reports  # a release that came too late
        log = "ours" if ours else "theirs"
        self.agent = Agent(command, folder / f"{log}.log")
        self.victim = Agent(command, folder / f"{log}_victim.log")

    def owner(self, lock):
        return Owner(self.agent, lock)

    def finds_out(self, released):
        """Whether it tells a late release from one in time, or is known not to."""
        return not released or not self.reports

    def end(self):
        self.agent.kill()
        self.victim.kill()


class Owner:
    """A task of an agent, and the lock that it is about."""
    numbers = itertools.count(1)

    def __init__(self, agent, lock, task=None):
        self.agent, self.target, self.task = agent, lock, task or str(next(self.numbers))

    def at(self, lock):
        """The same task, and another lock."""
        return Owner(self.agent, lock, self.task)

    def begin(self, verb, *words):
        target = self.target
        return self.agent.ask(target.place, self.task, verb, target.kind, encoded(target.name), *words)

    def ask(self, verb, *words):
        return self.begin(verb, *words).result(LIMIT)

    def lock(self, ttl="-"):
        """The fencing token, or None."""
        return self.granted(self.begin("lock", ttl))

    @staticmethod
    def granted(waiting):
        word, *token = waiting.result(LIMIT).split()
        assert word == "ok", waiting.result()
        return int(token[0]) if token else None

    def try_lock(self, ttl="-"):
        """ok or busy; again as long as the servers do not answer in time."""
        end = time.monotonic() + LIMIT
        while (reply := self.ask("try", ttl).split()[0]) == "later" and time.monotonic() < end:
            time.sleep(0.1)
        return reply

    def unlock(self):
        """True: it was held to the end. An unlock that is not confirmed goes on in the background."""
        reply = self.ask("unlock")
        assert reply in ("ok", "unconfirmed", "lost"), reply
        return reply != "lost"

    def renew(self, ttl):
        return self.ask("renew", ttl)

    def force(self):
        reply = self.ask("force")
        assert reply in ("yes", "no"), reply
        return reply == "yes"

