#!/usr/bin/env python3
# SPDX-License-Identifier: BSL-1.0
"""page_test.py PROGRAM CASE [PICTURES]: the page of `holdfast serve` in a headless Chromium, as its readers see it.

With PICTURES, a folder, `looks` writes the pictures of the documents there. Exit code 77: there is no Redis server, no
Chromium with chromedriver, or, for `accessible`, no npm that fetches axe-core."""
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "docs"))
from rig import LIMIT, OWNER, Election, ErrorReply, Failure, check, wait_until  # noqa: E402
from serve_test import Page, Place  # noqa: E402
from site_test import Browser, skip  # noqa: E402

AXE = "axe-core@4.14.1"
MARKUP = "<img src=x onerror=document.title='run'>"
CASES = {}


def case(function):
    CASES[function.__name__] = function
    return function


class Reader(Browser):
    """A browser that looks at the page."""

    def see(self, page, width=1280, token=None, scheme="light", motion="no-preference"):
        self.resize(width)
        self.devtools("Emulation.setEmulatedMedia", features=[
            {"name": "prefers-color-scheme", "value": scheme}, {"name": "prefers-reduced-motion", "value": motion}])
        self.ask("POST", "/url", {"url": "about:blank"})  # a fragment alone would load nothing
        self.ask("POST", "/url", {"url": page.url + (f"#token={token}" if token else "")})
        wait_until(lambda: self.text("#state") == "Live", "the page is live")

    def resize(self, width, height=900):
        self.devtools("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 600)

    def devtools(self, command, **parameters):
        return self.ask("POST", "/goog/cdp/execute", {"cmd": command, "params": parameters})

    def text(self, selector):
        return self.run("const found = document.querySelector(arguments[0]); return found && found.textContent", selector)

    def names(self):
        return self.run("return [...document.querySelectorAll('#rows .row')].map(row => row.querySelector('.name span').textContent)")

    def row(self, name):
        """The texts of a row; None: there is none."""
        return self.run("""for (const row of document.querySelectorAll('#rows .row'))
            if (row.querySelector('.name span').textContent === arguments[0]) return [...row.children].map(cell => cell.textContent)""", name)

    def bar(self):
        """The share of the first bar that is full; None: there is none."""
        return self.run("""const bar = document.querySelector('#rows .bar');
            return bar && new DOMMatrix(getComputedStyle(bar).transform).a""")

    def log(self):
        return self.run("return [...document.querySelectorAll('#log li')].map(line => line.textContent)")

    def click(self, selector):
        self.run("document.querySelector(arguments[0]).click()", selector)

    def logs(self, *words):
        return any(all(word in line for word in words) for line in self.log())


@case
def a_lock_from_its_grant_to_its_end(place, reader):
    page = Page(place)
    reader.see(page)
    holder = place.hold("orders:42", "--ttl", "6", "--note", "order 42")
    row = wait_until(lambda: reader.row("orders:42"), "the lock appears")
    check("mutex" in row[1] and str(holder.pid) in row[2], row)
    wait_until(lambda: "order 42" in reader.row("orders:42")[7], "its note appears")

    seen = [reader.bar()]

    def drains_and_jumps():
        seen.append(reader.bar())
        # Five samples in a row that fall: it moves by itself, not only when something is read.
        runs = [end for end in range(4, len(seen)) if all(seen[at] < seen[at - 1] for at in range(end - 3, end + 1))]
        return runs and any(seen[at] > seen[at - 1] + 0.1 for at in range(runs[0], len(seen)))

    wait_until(drains_and_jumps, "the bar drains, and jumps when the lease is renewed")
    check(max(seen) <= 1, f"a bar is never more than full: {seen}")
    place.start("hold", "orders:42")
    wait_until(lambda: reader.row("orders:42")[5] == "1", "the waiter is counted")
    holder.signal(signal.SIGTERM)
    wait_until(lambda: reader.logs("orders:42", "released"), "the release is logged")
    place.jobs[-1].wait_for("held").signal(signal.SIGTERM)
    wait_until(lambda: not reader.names(), "the lock disappears")

    place.server.lock("lost")
    wait_until(lambda: reader.row("lost"), "the next lock appears")
    place.server.do("DEL", "lost")
    wait_until(lambda: reader.logs("lost", "ended without a release"), "the loss is logged")
    wait_until(lambda: not reader.names(), "the lost lock disappears")


@case
def a_leader_is_shown(place, reader):
    page = Page(place)
    election = Election(place.server)
    term = election.elect(1, MARKUP)
    reader.see(page)
    wait_until(lambda: reader.row("region"), "the election appears")
    row = reader.row("region")
    check(MARKUP in row[0] and "election" in row[1] and str(term) in row[6], row)
    election.proclaim(1, "10.0.0.7:443")
    wait_until(lambda: reader.logs("region", "has another value", "10.0.0.7:443"), "the new value is logged")
    wait_until(lambda: "10.0.0.7:443" in reader.row("region")[0], "the new value is shown")
    election.resign(1)
    wait_until(lambda: reader.logs("region", "released"), "the release is logged")
    check(reader.run("return document.title") == "Locks - holdfast", "the value was run")


@case
def a_name_is_text(place, reader):
    page = Page(place)
    place.server.lock(MARKUP)
    place.server.lock(b"\xff")
    reader.see(page)
    wait_until(lambda: sorted(reader.names()) == sorted([MARKUP, "\\xff"]), "the names are shown as text")
    reader.type("#filter", "<img")
    wait_until(lambda: reader.names() == [MARKUP], "the filter finds it")
    place.server.do("DEL", MARKUP)
    wait_until(lambda: reader.logs(MARKUP, "ended"), "the log shows it as text")
    check(reader.run("return document.images.length + document.querySelectorAll('script').length") == 1, "the name became an element")
    check(reader.run("return document.title") == "Locks - holdfast", "the name was run")


@case
def a_hold_is_broken_once(place, reader):
    page = Page(place, "--allow-free")
    place.server.lock("orders:42")
    reader.see(page)
    wait_until(lambda: reader.row("orders:42"), "the lock appears")
    check(reader.run("return document.querySelector('#rows button.free').hidden"), "it can be freed without the token")
    reader.see(page, token=page.token)
    wait_until(lambda: reader.row("orders:42"), "the lock appears")
    check(reader.run("return location.hash") == "", "the token stays in the address")
    reader.click("#rows button.free")
    check(reader.run("return document.querySelector('#ask').open"), "it is not asked for")
    check(f"{OWNER}:1" in reader.text("#question") and "orders:42" in reader.text("#question"), reader.text("#question"))
    reader.click("#no")
    check(place.server.keys() == [b"orders:42"], "it was freed without a yes")
    reader.click("#rows button.free")
    place.server.do("DEL", "orders:42")
    place.server.lock("orders:42", owner=f"{OWNER}:2")
    reader.click("#yes")
    wait_until(lambda: reader.logs("orders:42", "not freed", "another holds it now"), "another holder is left alone")
    check(place.server.keys() == [b"orders:42"], "another holder was freed")
    wait_until(lambda: f"{OWNER}:2" in reader.row("orders:42")[2], "the other holder is shown")
    reader.click("#rows button.free")
    reader.click("#yes")
    wait_until(lambda: reader.logs("orders:42", "freed from this page"), "it is logged")
    wait_until(lambda: not reader.names() and not place.server.keys(), "it is free")


@case
def ten_thousand_locks(place, reader):
    connection = place.server.connection
    for number in range(10_000):
        connection.socket.sendall(b"*4\r\n$4\r\nHSET\r\n$10\r\nlock:%05d\r\n$38\r\n%s:1\r\n$1\r\n1\r\n" % (number, OWNER.encode()))
    for _ in range(10_000):
        connection.read()
    page = Page(place)
    reader.see(page)
    wait_until(lambda: reader.text("#totals").startswith("10000 of 10000 locks"), "all are counted")
    check(len(reader.names()) < 60, f"{len(reader.names())} rows are elements")
    reader.run("const scroller = document.querySelector('#scroller'); scroller.scrollTop = scroller.scrollHeight")
    wait_until(lambda: "lock:09999" in reader.names(), "the last row is in reach")
    begin = time.monotonic()
    reader.type("#filter", "04242")
    wait_until(lambda: reader.names() == ["lock:04242"], "the filter finds one")
    print(f"10,000 locks: filtered in {time.monotonic() - begin:.2f} s")


@case
def keys_and_widths(place, reader):
    page = Page(place)
    holder = place.hold("b", "--ttl", "30")
    place.server.lock("a", ttl=60_000)
    reader.see(page)
    wait_until(lambda: reader.names() == ["a", "b"], "both appear")
    reader.run("document.querySelector('#titles button').focus()")
    reader.ask("POST", "/actions", {"actions": [{"type": "key", "id": "keys", "actions": [
        {"type": kind, "value": "\ue007"} for kind in ("keyDown", "keyUp")]}]})
    wait_until(lambda: reader.run("return document.querySelector('#titles [role=columnheader]').getAttribute('aria-sort')") == "descending",
               "a key sorts")
    order = "return [...document.querySelectorAll('#rows .row')].sort((l, r) => l.ariaRowIndex - r.ariaRowIndex).map(row => row.querySelector('.name span').textContent)"
    wait_until(lambda: reader.run(order) == ["b", "a"], "the order is reversed")
    for width in (360, 768, 1280, 1920):
        reader.resize(width)
        check(reader.run("return document.documentElement.scrollWidth") <= width, f"wider than {width} pixels")
    reader.see(page)
    wait_until(lambda: reader.row("b"), "the lock appears")
    moved = reader.ask("POST", "/execute/async", {"script": """
        const done = arguments[0], bar = document.querySelector('#rows .bar');
        let sum = 0;
        new PerformanceObserver(list => { for (const shift of list.getEntries()) sum += shift.value; }).observe({type: 'layout-shift', buffered: false});
        setTimeout(() => done([sum, new DOMMatrix(getComputedStyle(bar).transform).a, bar.getAnimations().length]), 1500);""", "args": []})
    check(moved[0] == 0 and moved[2] == 1, f"the layout shifts while bars move, or they do not move: {moved}")
    reader.see(page, motion="reduce")
    wait_until(lambda: reader.row("b"), "the lock appears")
    check(reader.run("return document.getAnimations().length") == 0, "something moves for a reader who wants no motion")
    holder.signal(signal.SIGTERM)


def fetch_axe(folder):
    if not shutil.which("npm"):
        skip("no npm")
    done = subprocess.run(["npm", "install", "--no-save", "--silent", "--prefix", folder, AXE], capture_output=True, text=True, check=False)
    script = Path(folder, "node_modules/axe-core/axe.min.js")
    if done.returncode or not script.is_file():
        skip(f"{AXE} cannot be fetched: {done.stderr[-200:]}")
    return script.read_text(encoding="utf-8")


@case
def accessible(place, reader):
    axe = fetch_axe(place.folder)
    page = Page(place, "--allow-free")
    fill(place)
    for scheme in ("light", "dark"):
        for width in (360, 1280):
            reader.see(page, width=width, token=page.token, scheme=scheme)
            wait_until(lambda: len(reader.names()) >= 5, "the locks appear")
            wait_until(lambda: reader.text("#servers"), "the servers appear")
            found = reader.ask("POST", "/execute/async", {"args": [], "script": axe + """;
                const done = arguments[arguments.length - 1];
                axe.run().then(result => done(result.violations.map(one => `${one.id}: ${one.nodes.map(node => node.html).slice(0, 3)}`)),
                               error => done([String(error)]));"""})
            check(found == [], f"{scheme}, {width} pixels: {found}")


def fill(place):
    """Locks of several kinds, with waiters."""
    place.hold("deploy:web", "--ttl", "20", "--note", "release 4.2", "--fenced")
    place.start("hold", "deploy:web", "--fenced")
    place.start("hold", "deploy:web", "--fenced")
    place.hold("invoice:2026-11", "--ttl", "12", "--note", "monthly run")
    place.hold("reports", "--shared")
    place.hold("reports", "--shared")
    place.hold("uploads", "--permits", "4", "--take", "2")
    place.hold("orders:42", "--simple", "--ttl", "8")
    place.start("hold", "orders:42", "--simple")


@case
def looks(place, reader):
    pictures = Path(sys.argv[3]) if len(sys.argv) > 3 else None
    page = Page(place, "--allow-free")
    fill(place)
    place.hold("import:old").signal(signal.SIGKILL)
    place.server.do("DEL", "import:old")
    for name, width, height, scheme in (("light", 1280, 900, "light"), ("dark", 1280, 900, "dark"), ("narrow", 390, 800, "light")):
        reader.see(page, width=width, scheme=scheme, token=page.token)
        reader.resize(width, height)
        wait_until(lambda: len(reader.names()) >= 5 and reader.text("#servers"), "the locks appear")
        wait_until(lambda: "3 waiters" in reader.text("#totals"), "the waiters are counted")
        wait_until(lambda: 0.5 < reader.bar() < 0.85, "a bar is drained in part")
        reader.screenshot(pictures and pictures / f"page-{name}.png")


def main():
    program, name = sys.argv[1:3]
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    with tempfile.TemporaryDirectory(prefix="holdfast-page-", ignore_cleanup_errors=True) as folder:
        browser = Reader(folder)  # skips, before a server starts
        place = Place(program, folder)
        place.folder = folder
        try:
            with browser as reader:
                CASES[name](place, reader)
        except (Failure, ErrorReply) as failure:
            sys.exit(f"{name}: {failure}")
        finally:
            place.close()


if __name__ == "__main__":
    main()
