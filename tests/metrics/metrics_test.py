#!/usr/bin/env python3
# SPDX-License-Identifier: BSL-1.0
"""metrics_test.py PEER ROOT FOLDER CASE: what metrics writes, and what is shipped to watch it, before those who read it.

Fetches prometheus_client and promtool into FOLDER where they are not installed. Exit status 77: one cannot be had, or
there is no Redis server."""
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path
from unittest.mock import ANY

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))
from optional_tools import SKIPPED, fetch, run, skip  # noqa: E402

LIMIT = 60
SUFFIXES = {"histogram": ("_bucket", "_sum", "_count"), "counter": ("",), "gauge": ("",)}
PASSED_BY_GRAFANA = {"$__rate_interval": "5m", "$job": ".*", "$instance": ".*"}


def python_with_prometheus_client(folder):
    """This one, or Debian's, or one of our own."""
    own = folder / "python" / "bin" / "python"
    for python in (sys.executable, "/usr/bin/python3", str(own)):
        if shutil.which(python) and run(python, "-c", "import prometheus_client").returncode == 0:
            return python
    fetch("a virtual environment", sys.executable, "-m", "venv", str(own.parent.parent))
    fetch("prometheus_client from PyPI", str(own), "-m", "pip", "install", "--quiet", "prometheus-client>=0.16")
    return str(own)


def promtool(folder):
    """The package's own file: to install it would start a server."""
    if shutil.which("promtool"):
        return shutil.which("promtool")
    unpacked = folder / "prometheus"
    if not (unpacked / "usr/bin/promtool").exists():
        if not shutil.which("apt-get") or not shutil.which("dpkg-deb"):
            skip("no promtool, and no apt-get to fetch it with")
        own = run("apt-cache", "show", "promtool").returncode == 0  # since Debian 13
        package = "promtool" if own else "prometheus"
        for old in folder.glob(f"{package}_*.deb"):
            old.unlink()
        fetch(f"the package {package}", "apt-get", "download", package, cwd=folder)
        fetch(f"the package {package}", "dpkg-deb", "-x", str(next(folder.glob(f"{package}_*.deb"))), str(unpacked))
    return str(unpacked / "usr/bin/promtool")


def steps_of(peer):
    done = subprocess.run([peer], timeout=LIMIT, stdout=subprocess.PIPE, check=False)
    text = done.stdout.decode("utf-8")  # strictly
    if done.returncode == SKIPPED:
        skip(text.removeprefix("skipped: ").strip())
    assert done.returncode == 0, f"the peer ended with {done.returncode}"
    parts = re.split(r"^# step (.*)\n", text, flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2]))


READER = """
import json, sys
from prometheus_client.parser import text_string_to_metric_families
families = [{"name": f.name, "type": f.type, "samples": [[s.name, s.labels, s.value] for s in f.samples]}
            for f in text_string_to_metric_families(sys.stdin.read())]
json.dump(families, sys.stdout)
"""


def read(python, text):
    done = subprocess.run([python, "-c", READER], input=text.encode(), capture_output=True, timeout=LIMIT, check=False)
    assert done.returncode == 0, done.stderr.decode()
    return json.loads(done.stdout)


def value(families, name, **labels):
    found = [v for f in families for n, l, v in f["samples"] if n == name and l == labels]
    assert len(found) <= 1, f"{name}{labels} is there {len(found)} times"
    return found[0] if found else 0


def prometheus_client_reads_each_step_number_by_number(peer, _, folder):
    python = python_with_prometheus_client(folder)
    odd, emoji = 'a"b\\c\\x0ad\\xff\\x00e', "ä€😀"
    # held: a, the odd one, the simple one, all others; waiting for a; calls of a: acquired, re-entered; given back:
    # passed on or released, because a turn of 20 ms is over soon on a busy machine;
    # commands in flight, which nobody waits for while the lock is passed on
    expected = {
        "begin":           ((0, 0, 0, 0), 0, (0, 0), 0, 0),
        "re-entered":      ((1, 0, 0, 0), 0, (1, 1), 0, ANY),
        "two wait":        ((1, 0, 0, 0), 2, (1, 1), 0, ANY),
        "passed on":       ((1, 0, 0, 0), 1, (2, 1), 1, ANY),
        "passed on again": ((1, 0, 0, 0), 0, (3, 1), 2, 0),
        "in flight":       ((1, 0, 0, 0), 0, (3, 1), 2, 1),
        "two clients":     ((0, 1, 1, 1), 0, (3, 1), 3, 0),
        "lost":            ((0, 1, 1, 0), 0, (4, 1), 3, 0),
        "one shut down":   ((0, 1, 0, 0), 0, (4, 1), 3, 0),
        "end":             ((0, 0, 0, 0), 0, (4, 1), 3, 0),
    }
    steps = steps_of(peer)
    assert list(steps) == list(expected), list(steps)
    for step in expected:
        said = read(python, steps[step])
        got = lambda name, **labels: value(said, "holdfast_lock_" + name, **labels)
        found = ((got("held", kind="mutex", lock="a"),
                  got("held", kind="fenced_mutex", lock=odd), got("held", kind="simple_mutex", lock=emoji),
                  got("held", kind="mutex", lock="other")),
                 got("waiters", kind="mutex", lock="a"),
                 (got("wait_duration_seconds_count", kind="mutex", lock="a", outcome="acquired"),
                  got("wait_duration_seconds_count", kind="mutex", lock="a", outcome="reentered")),
                 sum(got("hold_duration_seconds_count", kind="mutex", lock="a", end=e) for e in ("passed", "released")),
                 sum(v for f in said if f["name"] == "holdfast_connection_in_flight" for _, _, v in f["samples"]))
        assert found == expected[step], f"{step}: {found}, and not {expected[step]}"
    end = read(python, steps["end"])
    got = lambda name, **labels: value(end, "holdfast_lock_" + name, **labels)
    assert got("lost_total", kind="mutex", lock="other", reason="denied") == 1
    assert got("lost_total", kind="mutex", lock="a", reason="not_renewed") == 1
    assert got("hold_duration_seconds_count", kind="simple_mutex", lock=emoji, end="closed") == 1
    assert got("fence_rejections_total") == 1
    for family in end:
        if family["name"] in ("holdfast_connections", "holdfast_connection_in_flight"):
            assert family["samples"] and all(v == 0 for _, _, v in family["samples"]), family
    one = read(python, steps["re-entered"])
    up = [l for f in one if f["name"] == "holdfast_connections" for _, l, v in f["samples"] if v == 1]
    assert [l["role"] for l in up] == ["command"], up
    durations = {"db_system_name": "redis", "db_operation_name": "EVALSHA", "db_stored_procedure_name": "acquire",
                 "server_address": up[0]["node"].removeprefix("redis+unix://")}
    assert value(one, "db_client_operation_duration_seconds_count", **durations) == 1, durations


def written_names(text):
    return {name + suffix for name, kind in re.findall(r"^# TYPE (\S+) (\S+)$", text, flags=re.MULTILINE)
            for suffix in SUFFIXES[kind]}


def written_labels(text):
    return set(re.findall(r'[{,](\w+)="', text))


def queries(root):
    """Where they stand, and what they are."""
    board = json.loads((root / "docs/monitoring/dashboard.json").read_text(encoding="utf-8"))
    for panel in board["panels"]:
        for target in panel["targets"]:
            expr = target["expr"]
            for variable, what in PASSED_BY_GRAFANA.items():
                expr = expr.replace(variable, what)
            yield f"dashboard.json: {panel['title']}", expr
    rules = (root / "docs/monitoring/alerts.yml").read_text(encoding="utf-8")
    found = re.findall(r"- alert: (\w+)\n(?: +#.*\n)* +expr: (?:>-\n)?((?:.|\n)*?)\n +(?:for|labels):", rules)
    assert len(found) == rules.count("- alert:") > 0, found
    for alert, expr in found:
        yield f"alerts.yml: {alert}", expr


def every_name_that_is_shipped_is_written(peer, root, _):
    text = steps_of(peer)["end"]
    names, labels = written_names(text), written_labels(text) | {"job", "instance"}
    seen = set()
    for place, expr in queries(root):
        used = set(re.findall(r"\b(?:holdfast|db_client)_\w+", expr))
        assert used, f"{place}: no name in {expr}"
        assert used <= names, f"{place}: nobody writes {used - names}"
        selected = {l for s in re.findall(r"\{([^}]*)\}", expr) for l in re.findall(r'(\w+)(?:=~|!~|!=|=)"', s)}
        grouped = {l.strip() for g in re.findall(r"by \(([^)]*)\)", expr) for l in g.split(",")}
        unknown = (selected | grouped) - labels - {"error_type", "server_port"}  # which no command had here
        assert not unknown, f"{place}: nobody writes the label {unknown}"
        seen |= used
    families = {name for name in re.findall(r"^# TYPE (\S+) ", text, flags=re.MULTILINE)}
    unseen = {f for f in families if not any(name.startswith(f) for name in seen)}
    assert not unseen, f"neither on the dashboard nor in an alert: {unseen}"
    page = (root / "docs/guide/metrics.md").read_text(encoding="utf-8")
    missing = {f for f in families if f"`{f}`" not in page}
    assert not missing, f"docs/guide/metrics.md says nothing of {missing}"
    told = set(re.findall(r"`((?:holdfast_|db_client_)\w+)`", page)) - {"holdfast_locks"}
    assert told <= names | families, f"docs/guide/metrics.md tells of {told - names - families}"


def promtool_takes_the_text_and_every_query(peer, root, folder):
    tool = promtool(folder)
    for step, text in steps_of(peer).items():
        done = subprocess.run([tool, "check", "metrics"], input=text.encode(), capture_output=True, timeout=LIMIT, check=False)
        assert done.returncode == 0, f"{step}: {done.stdout.decode()}{done.stderr.decode()}"
    rules = folder / "queries.yml"
    records = [{"record": f"query:{n}", "expr": expr} for n, (_, expr) in enumerate(queries(root))]
    rules.write_text(json.dumps({"groups": [{"name": "queries", "rules": records}]}), encoding="utf-8")  # JSON is YAML
    done = run(tool, "check", "rules", str(rules))
    assert done.returncode == 0 and f"{len(records)} rules found" in done.stdout, done.stdout + done.stderr
    records[0]["expr"] = "rate(holdfast_lock_held"  # a test that cannot fail shows nothing
    rules.write_text(json.dumps({"groups": [{"name": "queries", "rules": records}]}), encoding="utf-8")
    assert run(tool, "check", "rules", str(rules)).returncode != 0


def each_alert_rings_when_it_should_and_not_before(_, root, folder):
    tool = promtool(folder)
    for command in (("check", "rules", "alerts.yml"), ("test", "rules", "alerts_test.yml")):
        done = run(tool, *command, cwd=root / "docs/monitoring")
        print(done.stdout)
        assert done.returncode == 0 and "SUCCESS" in done.stdout, done.stdout + done.stderr
    tested = set(re.findall(r"alertname: (\w+)", (root / "docs/monitoring/alerts_test.yml").read_text(encoding="utf-8")))
    rules = set(re.findall(r"- alert: (\w+)", (root / "docs/monitoring/alerts.yml").read_text(encoding="utf-8")))
    assert tested == rules, tested ^ rules


if __name__ == "__main__":
    globals()[sys.argv[4]](sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3]))
