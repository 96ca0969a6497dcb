# SPDX-License-Identifier: BSL-1.0
"""bench_test.py PROGRAM: a quick run, whose figures mean nothing, prints a row and a JSON line for each bound; and
plots.py makes a page of it.
Exit code 77: no Redis server to run."""
import json
import subprocess
import sys
import tempfile
import xml.etree.ElementTree
from pathlib import Path

NO_SERVER = 69
PLOTS = Path(__file__).with_name("plots.py")


def run(program, *arguments):
    done = subprocess.run([program, "--quick", *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                          timeout=180, check=False)
    if done.returncode == NO_SERVER:
        print(done.stdout, end="")
        sys.exit(77)
    print(done.stdout, done.stderr, sep="")
    return done


def check(condition, why):
    if not condition:
        sys.exit(why)


def main(program):
    done = run(program)
    lines = done.stdout.splitlines()
    bounds = [json.loads(line) for line in lines if line.startswith("{")]
    table = [line for line in lines if not line.startswith(("{", "skipped: "))]
    targets = [bound["target"] for bound in bounds]
    for bound in bounds:
        check(list(bound)[:4] == ["target", "value", "limit", "ok"], f"wrong keys: {bound}")
        check(bound["value"] is not None, f"not measured: {bound}")
    check([row.split()[0] for row in table] == ["target", *targets], "the table has not the same rows as the lines")
    check(len(set(targets)) == len(targets), "a target has two lines")
    families = {"baseline", "pair", "names", "notes", "simple", "observer", "burst", "shutdown", "contention", "local", "procs",
                "permit", "permits", "shared", "fair", "beside", "waiters", "takeover", "tracking", "keep", "held", "recovery", "page", "red", "multi", "cluster", "sentinel", "min"}
    check({target.split("-")[0].split("/")[0] for target in targets} == families, "a family is missing")
    check(done.returncode == (0 if all(bound["ok"] for bound in bounds) else 1), "the exit status is not that of the bounds")

    done = run(program, "--json", "--only", "shutdown-60k")
    check([json.loads(line)["target"] for line in done.stdout.splitlines()] == ["shutdown-60k/keys", "shutdown-60k/time"],
          "--only and --json")
    check("shutdown-60k: round 1" in done.stderr, "no progress on stderr")
    check(run(program, "--only", "nonsense").returncode == 64, "an unknown name is accepted")
    check_page(bounds, [json.loads(line) for line in run(program, "--sweep").stdout.splitlines()])


def check_page(bounds, points):
    about = {"date": "2000-01-01", "cpu": "a CPU", "cores": 2, "system": "a system", "kernel": "6", "load": 0,
             "commit": "none", "minutes": 1}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        figures = folder / "quick.jsonl"
        figures.write_text("\n".join(json.dumps(line) for line in [{"run": about}, *bounds, *points]), encoding="utf-8")
        subprocess.run([sys.executable, PLOTS, "--figures", figures, "--into", folder], check=True)
        page = (folder / "benchmarks.md").read_text(encoding="utf-8")
        for bound in bounds:
            check(f"| `{bound['target']}` |" in page, f"not on the page: {bound['target']}")
            check(bound["ok"] or f"- `{bound['target']}`: " in page, f"not told that it is missed: {bound['target']}")
        for plot, series, xs in (("throughput", 3, 7), ("hand_over", 5, 7)):
            drawn = xml.etree.ElementTree.parse(folder / "benchmarks" / f"{plot}.svg").getroot()
            curves = drawn.findall("{http://www.w3.org/2000/svg}polyline")
            check([len(curve.get("points").split()) for curve in curves] == [xs] * series, f"{plot}: not every point")


if __name__ == "__main__":
    main(sys.argv[1])
