# SPDX-License-Identifier: BSL-1.0
"""Is a rule of `holdfast acl` the least? Each of its words is taken away, and a command must be refused."""
import json
import re
import subprocess
import tempfile

from rig import OWNER, Job, Redis, wait_until

PREFIX = "app:"
RED = "redis://a redis://b redis://c"
RULES = {  # of acl, and the URL of the service
    "a mutex": ([], "redis://localhost"),
    "a fenced_mutex": (["--fenced"], "redis://localhost"),
    "a simple_mutex": (["--simple"], "redis://localhost"),
    "a fair_mutex": (["--fair"], "redis://localhost"),
    "names with a brace": (["--fenced", "--simple", "--fair", "--permits", "--shared", "--braces"], "redis://localhost"),
    "a semaphore": (["--permits"], "redis://localhost"),
    "a shared_mutex": (["--shared"], "redis://localhost"),
    "notes": (["--notes"], "redis://localhost"),
    "a database": ([], "redis://localhost/1"),
    "a red_lock": ([], RED),
    "an operator": (["--operator"], "redis://localhost"),
}
KINDS = {  # of run and hold, by the option of acl
    "--fenced": ["--fenced"], "--simple": ["--simple"], "--fair": ["--fair"], "--permits": ["--permits", "1"], "--notes": ["--note", "why"],
    "--shared": ["--exclusive"],
}
BEGIN = ("resetkeys", "resetchannels", "-@all")  # of a user that exists
# Commands that only an accident or a re-entry needs: the integration tests that have it.
ACCIDENTS = {
    "+client|kill": ["every kind: an answer or a command lost anywhere*"],
    "+del": ["every kind: force_unlock breaks the hold*"],
    "+getrange": ["holder tells of each kind since when*"],
    "+hget": ["every kind: an owner that holds re-enters*"],
    "+set": ["a new installation is made once*"],
    "+unsubscribe": ["every kind: a release is told*", "every kind: a stranger's hold is waited for"],
}
CLUSTER, SENTINEL = "redis+cluster://localhost?min_replicas=1", "redis+sentinel://localhost/mymaster"
IN_CLUSTERS = ["*given back on each primary of a cluster",
               "a slot that has moved is followed*", "a slot moves under its holder*", "the replicas of the node that a slot*"]
BY_SENTINELS = ["*given back through sentinels",
                "a primary that is relieved is left*", "who is cut off from the sentinels*"]


class Refused(Exception):
    pass


class Trial:
    """What services and operators do, on servers that allow these rules alone. Throws Refused."""

    def __init__(self, program, servers, rules, url):
        self.program, self.servers, self.jobs = program, servers, []
        self.database = "1" if url.endswith("/1") else "0"
        path = "?" if self.database == "0" else "?db=1&"
        several = len(servers) > 1  # URLs of a red_lock have no prefix
        self.names = PREFIX if several else ""
        self.url = " ".join(server.url + ("" if several else f"{path}key_prefix={PREFIX}") for server in servers)
        for server in servers:
            server.do("SELECT", self.database)
            server.do("FLUSHALL")
            server.do("SCRIPT", "FLUSH")
            server.do("CONFIG", "RESETSTAT")
            server.allow(rules)
            if len(servers) > 1:
                run_id = re.search(r"run_id:(\w+)", server.do("INFO", "server").decode())[1]
                server.do("SET", "holdfast:redlock", f"{run_id} 60000")

    def look(self):
        for server in self.servers:
            for gap in server.refusals():
                # `watch` tries several patterns, and the one of the rule is among them.
                if not re.match(rf"channel (?!\S+:{{{PREFIX}\*)\S+\* ", gap):
                    raise Refused(gap)

    def until(self, condition):
        def holds():
            self.look()
            return condition()
        wait_until(holds, "a command has its effect")

    def start(self, *arguments):
        self.jobs.append(Job(self.program, *arguments, url=self.url))
        return self.jobs[-1]

    def do(self, *arguments):
        self.start(*arguments).finish()
        self.look()

    def serve(self, name, kinds):
        """Take, renew, wait, be woken, ask."""
        key, name = PREFIX + name, self.names + name
        waited = kinds if kinds[:1] in (["--simple"], ["--permits"]) else []
        ttl = lambda: max(ttl_of(server, key, kinds) for server in self.servers)
        holder = self.start("hold", name, *kinds, "--ttl", "1")
        self.until(lambda: 0 < ttl() < 800)
        self.until(lambda: ttl() > 800)
        waiter = self.start("run", name, *kinds, "--", "true")
        self.until(lambda: any(re.search(rb" sub=[1-9]", server.do("CLIENT", "LIST")) for server in self.servers))
        if kinds == ["--fair"]:
            queue = "redisson_lock_queue:" + (key if "{" in key else "{" + key + "}")
            self.until(lambda: self.servers[0].do("LLEN", queue) == 1)
        holder.process.terminate()
        holder.finish()
        waiter.finish()
        self.look()
        self.do("run", name, *kinds, "-n", "--", "true")
        self.do("wait", name, *waited)
        if kinds == ["--exclusive"]:
            self.read(name, key)

    def read(self, name, key):
        """A reader, a writer that waits for it, and a reader that waits for the writer; the longest waiter is first."""
        braced = key if "{" in key else "{" + key + "}"
        waiting = lambda side: self.servers[0].do("ZCARD", f"holdfast_{side}:{braced}") == 1
        first = self.start("hold", name, "--shared", "--ttl", "1")
        self.until(lambda: self.servers[0].do("HLEN", key) == 2)
        writer = self.start("hold", name, "--exclusive")
        self.until(lambda: waiting("queue"))
        reader = self.start("run", name, "--shared", "--", "true")
        self.until(lambda: waiting("readers"))
        first.process.terminate()
        first.finish()
        self.until(lambda: self.servers[0].do("HGET", key, "mode") == b"write")
        writer.process.terminate()
        writer.finish()
        reader.finish()
        self.do("wait", name, "--shared")

    def operate(self):
        self.servers[0].lock(PREFIX + "x")
        self.servers[0].do("SET", PREFIX + "s", f"{OWNER}:1", "PX", "600000")
        self.servers[0].do("SET", PREFIX + "p", "1")
        self.servers[0].do("ZADD", "{" + PREFIX + "p}:timeout", "9e15", OWNER)
        self.servers[0].do("HSET", PREFIX + "rw", "mode", "read", f"{OWNER}:1", "1")
        self.servers[0].do("PEXPIRE", PREFIX + "rw", "600000")
        self.do("list")
        self.do("inspect", "x")
        self.do("watch", "--for", "0.05", "--every", "0.01")
        self.do("free", "x")
        self.do("free", "s")
        self.do("doctor")

    def close(self):
        for job in self.jobs:
            job.close()


def ttl_of(server, key, kinds):
    if "--permits" not in kinds:
        return server.do("PTTL", key)
    seconds, micros = server.do("TIME")
    first = server.do("ZRANGE", (key if "{" in key else "{" + key + "}") + ":timeout", "0", "0", "WITHSCORES")
    return int(first[1]) - int(seconds) * 1000 - int(micros) // 1000 if first else -2


def rules_of(program, options, url, line=0):
    urls = [word for one in url.split() for word in ("--url", one)]
    text = subprocess.check_output([program, "acl", "--json", "--server-version", "7.0", "--prefix", PREFIX, *options, *urls])
    return json.loads(text.splitlines()[line])["rules"]


def refusal(program, servers, title, rules):
    """What was refused; empty: nothing."""
    options, url = RULES[title]
    trial = Trial(program, servers if url == RED else servers[:1], rules, url)
    try:
        for kind in [[], *(KINDS[word] for word in options if word in KINDS)]:
            for name in ["x", "{x}y"] if "--braces" in options else ["x"]:
                trial.serve(name, kind)
        if "--operator" in options:
            trial.operate()
        trial.look()
    except Refused as found:
        return str(found)
    finally:
        trial.close()
    return ""


def judge(suite):
    """Prints a line for each word of each rule. The number of words that nothing needs."""
    too_much, tried = [], {}
    with tempfile.TemporaryDirectory(prefix="holdfast-acl-") as folder:
        servers = [Redis(folder) for _ in range(3)]
        try:
            for title, (options, url) in RULES.items():
                rules = rules_of(suite.program, options, url)
                gap = refusal(suite.program, servers, title, rules)
                print(f"{title}: all {len(rules)} words: {gap or 'enough'}", flush=True)
                if gap:
                    too_much.append(title)
                    continue
                for word in rules:
                    if word in BEGIN:
                        continue
                    why = refusal(suite.program, servers, title, [other for other in rules if other != word])
                    if not why and word in ACCIDENTS:
                        if word not in tried:
                            tried[word] = suite.refused_without(word, ACCIDENTS[word])
                        why = tried[word]
                    if not why:
                        too_much.append(word)
                    print(f"{title}: without {word}: {why or 'NOTHING IS REFUSED'}", flush=True)
        finally:
            for server in servers:
                server.kill()
    def try_without(title, label, words, tests):
        for word in words:
            why = suite.refused_without(label + word, tests)
            if not why:
                too_much.append(word)
            print(f"{title}: without {word}: {why or 'NOTHING IS REFUSED'}", flush=True)

    base = rules_of(suite.program, [], "redis://localhost")
    cluster = rules_of(suite.program, [], CLUSTER)
    try_without("a cluster, with min_replicas", "", [word for word in cluster if word not in base], IN_CLUSTERS)
    sentinels = rules_of(suite.program, [], SENTINEL, 1)
    try_without("sentinels", "sentinel:", [word for word in sentinels if word not in BEGIN], BY_SENTINELS)
    return len(too_much)
