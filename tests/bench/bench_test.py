# SPDX-License-Identifier: BSL-1.0
"""bench_test.py PROGRAM: a quick run, whose figures mean nothing, prints a row and a JSON line for each bound.
Exit code 77: no Redis server to run."""
import json
import subprocess
import sys

NO_SERVER = 69


def run(program, *arguments):
    done = subprocess.run([program, "--quick", *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                          timeout=90, check=False)
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
    families = {"baseline", "pair", "names", "simple", "observer", "burst", "shutdown", "contention", "local", "procs",
                "beside", "waiters", "takeover", "held", "recovery", "red", "multi", "cluster", "sentinel", "min"}
    check({target.split("-")[0].split("/")[0] for target in targets} == families, "a family is missing")
    check(done.returncode == (0 if all(bound["ok"] for bound in bounds) else 1), "the exit status is not that of the bounds")

    done = run(program, "--json", "--only", "shutdown-60k")
    check([json.loads(line)["target"] for line in done.stdout.splitlines()] == ["shutdown-60k/keys", "shutdown-60k/time"],
          "--only and --json")
    check("shutdown-60k: round 1" in done.stderr, "no progress on stderr")
    check(run(program, "--only", "nonsense").returncode == 64, "an unknown name is accepted")


if __name__ == "__main__":
    main(sys.argv[1])
