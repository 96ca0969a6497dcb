#!/usr/bin/env python3
# SPDX-License-Identifier: BSL-1.0
"""plots.py --bench PROGRAM | --figures FILE [--into FOLDER]: docs/benchmarks.md, its tables and its drawings.

  --bench    runs the whole bench, then its sweep: eighteen minutes on a machine that does nothing else. What it said is
             kept beside the drawings, in figures.jsonl
  --figures  draws again from such a file
  --into     in place of docs; a page that is not there yet is made from the one in docs

Exit status 0, also where a bound is not kept: the page says so."""
import argparse
import datetime
import json
import math
import os
import platform
import re
import subprocess
import sys
import time
from pathlib import Path
from xml.sax.saxutils import escape

ROOT = Path(__file__).resolve().parents[2]
OURS, PEER, BARE = "#0b6aa2", "#c4541c", "#7a828c"
INK, FAINT, RULE = "#1f2328", "#656d76", "#e3e6ea"
DASHED, DOTTED = "7 5", "2 4"

# Of each plot: series, its label, how it is drawn.
THROUGHPUT = [("bare", "bare client, same bytes", BARE, ""),
              ("holdfast", "holdfast", OURS, ""),
              ("redisson", "bare client, Redisson's bytes", PEER, "")]
HAND_OVER = [("redisson-processes", "Redisson, to another process", PEER, DASHED),
             ("redisson", "Redisson, in one process", PEER, ""),
             ("holdfast-processes", "holdfast, to another process", OURS, DASHED),
             ("two-trips", "two round trips, idle process", BARE, DOTTED),
             ("holdfast", "holdfast, in one process", OURS, "")]


# ---- measuring

def said_by(program, *arguments):
    """The JSON lines that it prints; what it left out and why, too."""
    done = subprocess.run([program, *arguments], stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode not in (0, 1):
        sys.exit(f"{program} {' '.join(arguments)}: exit status {done.returncode}\n{done.stdout}")
    for line in done.stdout.splitlines():
        if line.startswith("skipped: "):
            yield {"skipped": line.removeprefix("skipped: ")}
        else:
            yield json.loads(line)


def this_machine():
    model = re.search(r"^model name\s*: (.*)", Path("/proc/cpuinfo").read_text(encoding="utf-8"), re.M)
    system = re.search(r'^PRETTY_NAME="(.*)"', Path("/etc/os-release").read_text(encoding="utf-8"), re.M)
    commit = subprocess.run(["git", "-C", ROOT, "describe", "--always", "--dirty"], capture_output=True, text=True,
                            check=False)
    return {"date": datetime.date.today().isoformat(),
            "cpu": model[1] if model else platform.machine(),
            "cores": os.cpu_count(),
            "system": system[1] if system else platform.system(),
            "kernel": platform.release(),
            "load": os.getloadavg()[0],
            "commit": commit.stdout.strip() or "unknown"}


def measured(program):
    begun = time.monotonic()
    lines = [{"run": this_machine()}, *said_by(program, "--json"), *said_by(program, "--sweep")]
    lines.append({"took": {"minutes": (time.monotonic() - begun) / 60}})
    return lines


class Figures:
    def __init__(self, lines):
        self.about = {}
        self.rows, self.skipped = [], []
        self.plots = {}
        for line in lines:
            if "target" in line:
                self.rows.append(line)
            elif "plot" in line:
                self.plots.setdefault(line["plot"], {}).setdefault(line["series"], {})[line["x"]] = line["y"]
            elif "skipped" in line:
                self.skipped.append(line["skipped"])
            else:
                for what in line.values():
                    self.about.update(what)

    def row(self, target):
        return next((row for row in self.rows if row["target"] == target), None)


# ---- drawing

def grouped(number):
    return f"{number:,.0f}".replace(",", " ")


def thousands(number):
    return f"{number / 1000:.0f} k" if number else "0"


def microseconds(number):
    return f"{number:g} µs" if number < 1000 else f"{number / 1000:g} ms"


class Axis:
    """Where a value is, between two places, and what is written there."""

    def __init__(self, ticks, begin, end, log, text):
        self.ticks, self.begin, self.end, self.text = ticks, begin, end, text
        self.scale = math.log if log else float

    def at(self, value):
        low, high = self.scale(self.ticks[0]), self.scale(self.ticks[-1])
        return self.begin + (self.scale(value) - low) / (high - low) * (self.end - self.begin)


def from_zero(highest):
    """Four to eight steps of 1, 2 or 5 times a power of ten."""
    rough = highest / 5
    power = 10 ** math.floor(math.log10(rough))
    step = next(step * power for step in (1, 2, 5, 10) if step * power >= rough)
    return [step * n for n in range(math.ceil(highest / step) + 1)]


def one_two_five(lowest, highest):
    """Steps of a logarithmic axis."""
    powers = range(math.floor(math.log10(lowest)), math.ceil(math.log10(highest)) + 1)
    steps = [step * 10.0 ** power for power in powers for step in (1, 2, 5)]
    first = max(step for step in steps if step <= lowest)
    last = min(step for step in steps if step > highest)
    return [step for step in steps if first <= step <= last]


def apart(wanted, least):
    """The places that are wanted for labels, moved so that none is nearer than that to the next."""
    order = sorted(range(len(wanted)), key=wanted.__getitem__)
    groups = []  # each: labels, and the sum of where the first would be
    for label in order:
        groups.append(([label], wanted[label]))
        while len(groups) > 1:
            (upper, above), (lower, below) = groups[-2:]
            if above / len(upper) + len(upper) * least <= below / len(lower):
                break
            moved = above + below - len(lower) * len(upper) * least
            groups[-2:] = [(upper + lower, moved)]
    places = [0.0] * len(wanted)
    for labels, total in groups:
        for n, label in enumerate(labels):
            places[label] = total / len(labels) + n * least
    return places


class Drawing:
    WIDTH, HEIGHT = 860, 430
    LEFT, RIGHT, TOP, BOTTOM = 64, 240, 84, 56

    def __init__(self, title, subtitle, below):
        self.title, self.subtitle, self.below = title, subtitle, below
        self.parts = []

    def text(self, x, y, words, anchor="start", fill=FAINT, size=13, weight="normal"):
        self.parts.append(f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill="{fill}" font-size="{size}" '
                          f'font-weight="{weight}">{escape(words)}</text>')

    def line(self, x1, y1, x2, y2, stroke):
        self.parts.append(f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="{stroke}"/>')

    def plot(self, styles, series, y_ticks, y_log, y_text):
        """Curves against a logarithmic x axis, each with its name at its end."""
        styles = [style for style in styles if style[0] in series]
        right, bottom = self.WIDTH - self.RIGHT, self.HEIGHT - self.BOTTOM
        x = Axis(sorted({x for points in series.values() for x in points}), self.LEFT + 12, right, True, grouped)
        y = Axis(y_ticks, bottom, self.TOP, y_log, y_text)
        self.text(20, 32, self.title, fill=INK, size=18, weight="600")
        self.text(20, 53, self.subtitle)
        for tick in y.ticks:
            self.line(self.LEFT, y.at(tick), right, y.at(tick), RULE)
            self.text(self.LEFT - 8, y.at(tick) + 4.5, y.text(tick), "end", size=12)
        for tick in x.ticks:
            self.line(x.at(tick), bottom, x.at(tick), bottom + 4, FAINT)
            self.text(x.at(tick), bottom + 19, x.text(tick), "middle", size=12)
        self.text((self.LEFT + right) / 2, self.HEIGHT - 14, self.below, "middle")
        ends = [y.at(series[name][max(series[name])]) for name, *_ in styles]
        for (name, label, colour, dashes), place in zip(styles, apart(ends, 18)):
            self.curve([(x.at(at), y.at(value)) for at, value in sorted(series[name].items())], colour, dashes)
            self.text(right + 14, place + 4.5, label, fill=colour, weight="600" if colour == OURS else "normal")
        return self

    def curve(self, points, colour, dashes):
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
        dash = f' stroke-dasharray="{dashes}"' if dashes else ""
        self.parts.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2.4" '
                          f'stroke-linejoin="round" stroke-linecap="round"{dash}/>')
        self.parts += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3.2" fill="{colour}"/>' for x, y in points]

    def svg(self):
        return "\n".join([
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {self.WIDTH} {self.HEIGHT}" role="img" '
            'font-family="system-ui, -apple-system, Segoe UI, Roboto, Helvetica, Arial, sans-serif">',
            f"<title>{escape(self.title)}: {escape(self.subtitle)}</title>",
            f'<rect width="{self.WIDTH}" height="{self.HEIGHT}" rx="8" fill="#ffffff"/>', *self.parts, "</svg>", ""])


def highest(series):
    return max(value for points in series.values() for value in points.values())


def draw_throughput(series):
    return Drawing("Uncontended: pairs of lock and unlock a second", "one client, each task has a name of its own",
                   "tasks at a time").plot(THROUGHPUT, series, from_zero(highest(series)), False, thousands).svg()


def draw_hand_over(series):
    lowest = min(value for points in series.values() for value in points.values())
    return Drawing("Contended: from one holder to the next who waits, median",
                   "one name, each task holds for 1 ms and thinks for 0.5 ms; logarithmic",
                   "tasks that want it").plot(HAND_OVER, series, one_two_five(lowest, highest(series)), True,
                                              microseconds).svg()


# ---- the page

def short(value):
    """Three digits that count."""
    if value is None:
        return "–"
    if abs(value) >= 1000:
        return grouped(value)
    return f"{value:.3g}"


def bound_of(row):
    sign = {"<=": "≤ ", ">=": "≥ ", None: ""}[row["bound"]]
    return sign + f"{row['limit']:,g}".replace(",", " ") if sign else ""


def verdict(row):
    if row["value"] is None:
        return "**not measured**"
    return "" if row["bound"] is None else "kept" if row["ok"] else "**missed**"


def machine_lines(f):
    a = f.about
    return [f"- {a['date']}, commit {a['commit']}, {a['took_text']}.",
            f"- {a['cpu']}, {a['cores']} cores, {a['system']}, Linux {a['kernel']}; load average before the run "
            f"{a['load']:.2f}.",
            f"- Redis {a['redis']} without persistence on a unix socket; {a['compiler']} -O3; Boost {a['boost']}."]


def baseline_lines(f):
    row = f.row("baseline-c1")
    if not row or row["value"] is None:
        return ["Not compared in this run: " + "; ".join(f.skipped + [row["why"] if row else ""]).strip("; ") + "."]
    return [f"One at a time, the bare client makes {grouped(row['bare'])} pairs of `EVALSHA` a second, and redis-benchmark",
            f"{grouped(row['redis_benchmark'])}. The ratio is {short(row['value'])}, and is to be {bound_of(row)}."]


def throughput_lines(f):
    series = f.plots["throughput"]
    lines = ["| tasks at a time | holdfast | bare client, same bytes | holdfast ÷ bare | bare client, Redisson's bytes |",
             "|---:|---:|---:|---:|---:|"]
    for x, ours in sorted(series["holdfast"].items()):
        bare, peer = series["bare"][x], series["redisson"][x]
        lines.append(f"| {grouped(x)} | {grouped(ours)} | {grouped(bare)} | {ours / bare:.2f} | {grouped(peer)} |")
    return lines


def hand_over_lines(f):
    series = f.plots["hand_over"]
    names = ["holdfast", "redisson", "holdfast-processes", "redisson-processes", "two-trips"]
    lines = ["| tasks | holdfast, one process | Redisson, one | holdfast, two processes | Redisson, two | two round trips |",
             "|---:|---:|---:|---:|---:|---:|"]
    for x in sorted(series["holdfast"]):
        lines.append(f"| {x} | " + " | ".join(short(series[name][x]) for name in names) + " |")
    return lines


def target_lines(f):
    lines = ["| row | what | measured | bound | |", "|---|---|---:|---|---|"]
    for row in f.rows:
        lines.append(f"| `{row['target']}` | {row['what']} | {short(row['value'])} | {bound_of(row)} | {verdict(row)} |")
    return lines


def missed_lines(f):
    lines = [f"- `{row['target']}`: {short(row['value'])}, to be {bound_of(row)}"
             for row in f.rows if row["value"] is not None and not row["ok"]]
    lines += [f"- `{row['target']}`: {row['why']}" for row in f.rows if row["value"] is None]
    lines += [f"- skipped: {why}" for why in f.skipped]
    return lines or ["Every bound was kept in this run."]


PIECES = {"machine": machine_lines, "baseline": baseline_lines, "throughput": throughput_lines,
          "hand over": hand_over_lines, "rows": target_lines, "missed": missed_lines}


def filled(page, f):
    for name, lines_of in PIECES.items():
        marked = re.compile(rf"(<!-- measured: {name} -->\n).*?(<!-- end -->)", re.S)
        if not marked.search(page):
            sys.exit(f"no place for {name} in the page")
        text = "\n" + "\n".join(lines_of(f)) + "\n\n"
        page = marked.sub(lambda found, text=text: found[1] + text + found[2], page)
    return page


def main():
    parser = argparse.ArgumentParser()
    source = parser.add_mutually_exclusive_group(required=True)
    source.add_argument("--bench")
    source.add_argument("--figures", type=Path)
    parser.add_argument("--into", type=Path, default=ROOT / "docs")
    wanted = parser.parse_args()
    if wanted.bench:
        lines = measured(wanted.bench)
    else:
        lines = [json.loads(line) for line in wanted.figures.read_text(encoding="utf-8").splitlines()]
    f = Figures(lines)
    f.about["took_text"] = f"{f.about['minutes']:.0f} minutes for all of it"
    folder = wanted.into / "benchmarks"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "figures.jsonl").write_text("".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines),
                                          encoding="utf-8")
    (folder / "throughput.svg").write_text(draw_throughput(f.plots["throughput"]), encoding="utf-8")
    (folder / "hand_over.svg").write_text(draw_hand_over(f.plots["hand_over"]), encoding="utf-8")
    page = wanted.into / "benchmarks.md"
    template = page if page.exists() else ROOT / "docs" / "benchmarks.md"
    page.write_text(filled(template.read_text(encoding="utf-8"), f), encoding="utf-8")


if __name__ == "__main__":
    main()
