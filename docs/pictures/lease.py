#!/usr/bin/env python3
# SPDX-License-Identifier: BSL-1.0
"""lease.py > lease.svg: draws the life of a lease, for the README. The test `docs` compares lease.svg with the output.

The times are those of the defaults: a TTL of 30 s, renewed every 10 s, of which the drift takes 0.3 s. Colours follow
the reader's setting for light or dark."""
from xml.sax.saxutils import escape

WIDTH, HEIGHT = 860, 372
LEFT, RIGHT = 150, 830
END = 60  # seconds
TTL, DRIFT = 30, 0.3
RENEWED = (0, 10, 20)
OUTAGE = 24
UNANSWERED = 30
EXPIRED = RENEWED[-1] + TTL
LOST = EXPIRED - DRIFT
YOURS, REDIS, OTHER, AXIS = 96, 170, 282, 336  # the tops of the rows
BAR = 36
CURVE = 78  # the height of a full TTL

LIGHT = {"paper": "#ffffff", "ink": "#1f2328", "faint": "#59636e", "rule": "#d1d9e0", "held": "#1a7f37",
         "doubt": "#bf8700", "lost": "#cf222e", "other": "#0969da", "shade": "#eff2f5"}
DARK = {"paper": "#0d1117", "ink": "#f0f6fc", "faint": "#9198a1", "rule": "#3d444d", "held": "#3fb950",
        "doubt": "#d29922", "lost": "#f85149", "other": "#4493f8", "shade": "#21262d"}


def coloured(colours):
    yield f"text{{fill:{colours['ink']}}}"
    yield f".rule{{stroke:{colours['rule']}}}"
    yield f".mark{{stroke:{colours['lost']}}}"
    yield f".bar{{fill:{colours['paper']}}}"
    for name in ("faint", "paper", "held", "doubt", "other", "shade"):
        yield f".{name}{{fill:{colours[name]}}}"


def style():
    rules = ["text{font-size:13px}", ".title{font-size:18px;font-weight:600}", ".bar{font-weight:600}",
             ".mark{stroke-dasharray:4 4}", *coloured(LIGHT),
             "@media (prefers-color-scheme: dark){", *coloured(DARK), "}"]
    return "<style>\n" + "\n".join(rules) + "\n</style>"


def x_of(second):
    return LEFT + (RIGHT - LEFT) * second / END


def text(x, y, words, kind="", anchor="start"):
    names = f' class="{kind}"' if kind else ""
    return f'<text x="{x:.1f}" y="{y}" text-anchor="{anchor}"{names}>{escape(words)}</text>'


def bar(begin, end, top, kind, words=""):
    left, right = x_of(begin), x_of(end)
    drawn = f'<rect x="{left:.1f}" y="{top}" width="{right - left:.1f}" height="{BAR}" rx="4" class="{kind}"/>'
    return drawn + (text((left + right) / 2, top + 23, words, "bar", "middle") if words else "")


def line(x1, y1, x2, y2, kind):
    return f'<line x1="{x1:.1f}" y1="{y1}" x2="{x2:.1f}" y2="{y2}" class="{kind}"/>'


def remaining_ttl():
    """The TTL that Redis has left: it falls, and each renewal lifts it."""
    foot = REDIS + CURVE
    points = [(0, foot)]
    for begin, end in zip(RENEWED, (*RENEWED[1:], EXPIRED)):
        points += [(begin, REDIS), (end, REDIS + CURVE * (end - begin) / TTL)]
    return '<polygon points="' + " ".join(f"{x_of(s):.1f},{y:.1f}" for s, y in points) + '" class="held" opacity="0.75"/>'


def picture():
    yield (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" '
           'font-family="system-ui, -apple-system, Segoe UI, Roboto, Helvetica, Arial, sans-serif">')
    yield ("<title>The life of a lease: locked at 0 s, renewed at 10 s and 20 s, cut off at 24 s, suspended at 30 s, "
           "lost at 49.7 s, before its key expires at 50 s and another process gets the lock</title>")
    yield style()
    yield f'<rect width="{WIDTH}" height="{HEIGHT}" rx="8" class="paper"/>'
    yield text(20, 32, "The life of a lease", "title")
    yield text(20, 53, "TTL 30 s, renewed every TTL/3; the network is cut at 24 s", "faint")

    left, right = x_of(OUTAGE), x_of(END)
    yield f'<rect x="{left:.1f}" y="68" width="{right - left:.1f}" height="{AXIS - 68}" class="shade"/>'
    yield text(left + 8, 85, "your process cannot reach Redis", "faint")

    yield text(20, YOURS + 23, "Your process")
    yield bar(0, UNANSWERED, YOURS, "held", "held")
    yield bar(UNANSWERED, LOST, YOURS, "doubt", "suspended: still held")
    yield text(x_of(LOST) + 8, YOURS + 16, "lost at 49.7 s:")
    yield text(x_of(LOST) + 8, YOURS + 32, "work cancelled")

    yield text(20, REDIS + 36, "TTL in Redis")
    yield remaining_ttl()
    yield line(LEFT, REDIS + CURVE, RIGHT, REDIS + CURVE, "rule")
    for second, words in zip(RENEWED, ("lock()", "renewed", "renewed")):
        yield text(x_of(second) + 4, REDIS - 8, words, "faint")
    yield text(x_of(UNANSWERED) + 4, REDIS - 8, "no answer", "faint")
    yield text(x_of(EXPIRED) + 8, REDIS + CURVE - 8, "expires at 50 s", "faint")

    yield text(20, OTHER + 23, "Another process")
    yield text(x_of(0) + 4, OTHER + 23, "waits", "faint")
    yield bar(EXPIRED, END, OTHER, "other", "held")

    yield line(x_of(LOST), YOURS, x_of(LOST), AXIS, "mark")
    yield line(LEFT, AXIS, RIGHT, AXIS, "rule")
    for second in range(0, END + 1, 10):
        yield text(x_of(second), AXIS + 20, f"{second} s", "faint", "middle")
    yield "</svg>"


print("\n".join(picture()))
