#!/usr/bin/env python3
# SPDX-License-Identifier: BSL-1.0
"""site_test.py build SITE.SH SITE         builds the site into the folder SITE
site_test.py browse SITE [SCREENSHOTS]  opens it from the folder in headless Chromium, and searches as a reader does

`browse` searches try_with_lock_for, follows the first hit, and looks at pages 360 and 1,280 pixels wide: nothing may be
wider than the window. Exit status 77 where MkDocs, Doxygen or Chromium is not to be had."""
import base64
import json
import re
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from pathlib import Path

SEARCHED = "try_with_lock_for"
WIDTHS = (360, 1280)
PAGES = ("index.html", "docs/quickstart.html", "docs/guide/which_lock.html", "docs/guide/errors.html", "reference/index.html",
         "reference/with_lock.html", "reference/config.html")
EXPECTED = ("index.html", "docs/quickstart.html", "reference/with_lock.html", "search/search_index.js")


def skip(reason):
    print(f"skipped: {reason}")
    sys.exit(77)


def build(script, site):
    done = subprocess.run(["sh", script, site], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    print(done.stdout, end="")
    if done.returncode:
        sys.exit(done.returncode)
    missing = [name for name in EXPECTED if not Path(site, name).is_file()]
    if missing:
        sys.exit(f"not built: {', '.join(missing)}")
    fetched = re.search(r"<(?:script|link|img)[^>]*(?:src|href)=\"?https?:[^>]*>", Path(site, "index.html").read_text(encoding="utf-8"))
    if fetched:
        sys.exit(f"not from the folder: {fetched[0]}")


class Browser:
    """Chromium by WebDriver: its protocol is a few HTTP requests."""

    def __init__(self, folder):
        chromium = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
        driver = shutil.which("chromedriver")
        if not chromium or not driver:
            skip("no chromium with chromedriver: apt-get install chromium chromium-driver")
        log = Path(folder, "chromedriver.log")
        with log.open("w", encoding="utf-8") as to:
            self.driver = subprocess.Popen([driver, "--port=0"], stdout=to, stderr=to)
        self.url = None
        started = self.wait(lambda: re.search(r"started successfully on port (\d+)", log.read_text(encoding="utf-8")),
                            "chromedriver")
        self.url = f"http://127.0.0.1:{started[1]}/session"
        arguments = ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
                     "--disable-background-networking", "--disable-component-update", "--disable-sync",
                     f"--user-data-dir={folder}/profile"]
        self.options = {"binary": chromium, "args": arguments}

    def __enter__(self):
        try:
            session = self.ask("POST", "", {"capabilities": {"alwaysMatch": {"goog:chromeOptions": self.options}}})
        except BaseException:
            self.driver.terminate()
            raise
        self.url += f"/{session['sessionId']}"
        return self

    def __exit__(self, *_):
        try:
            self.ask("DELETE", "")  # ends Chromium
        finally:
            self.driver.terminate()
            self.driver.wait()

    def ask(self, method, path, body=None):
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.url + path, data, {"Content-Type": "application/json"}, method=method)
        try:
            with urllib.request.urlopen(request, timeout=120) as reply:
                return json.load(reply)["value"]
        except urllib.error.HTTPError as error:
            sys.exit(f"{path}: {error.read().decode()[:500]}")

    def open(self, path, width):
        self.ask("POST", "/goog/cdp/execute", {"cmd": "Emulation.setDeviceMetricsOverride", "params": {
            "width": width, "height": 800, "deviceScaleFactor": 1, "mobile": width < 600}})
        self.ask("POST", "/url", {"url": path.resolve().as_uri()})

    def run(self, script, *arguments):
        return self.ask("POST", "/execute/sync", {"script": script, "args": list(arguments)})

    def type(self, selector, text):
        found = self.ask("POST", "/element", {"using": "css selector", "value": selector})
        self.ask("POST", f"/element/{next(iter(found.values()))}/value", {"text": text})

    def screenshot(self, path):
        if path:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(base64.b64decode(self.ask("GET", "/screenshot")))

    @staticmethod
    def wait(condition, what):
        end = time.monotonic() + 60
        while not (found := condition()):
            if time.monotonic() > end:
                sys.exit(f"waited a minute for {what}")
            time.sleep(0.1)
        return found


def search(browser, site, shots):
    """The place in the site that the first hit leads to."""
    browser.open(site / "index.html", 1280)
    browser.run("document.querySelector('[data-md-toggle=search]').click()")
    browser.wait(lambda: browser.run("return document.querySelector('.md-search__input').offsetWidth"), "the search")
    browser.type("input.md-search__input", SEARCHED)
    hits = "return [...document.querySelectorAll('.md-search-result__link')].map(hit => [hit.href, hit.textContent])"
    found = browser.wait(lambda: browser.run(hits), f"a hit for {SEARCHED}")
    browser.screenshot(shots and shots / "search.png")
    print(f"{SEARCHED}: {len(found)} hits, the first at {found[0][0].rpartition(str(site))[2]}")
    if not any(SEARCHED in text for _, text in found):
        sys.exit(f"no hit shows {SEARCHED}")
    if not any("/reference/with_lock.html" in href for href, _ in found):
        sys.exit("the reference is not among the hits")
    browser.ask("POST", "/url", {"url": found[0][0]})
    browser.wait(lambda: SEARCHED in browser.run("return document.querySelector('article').textContent"), "the page of the first hit")


def look(browser, site, shots):
    """Complaints of pages that are wider than their window."""
    for width in WIDTHS:
        for page in PAGES:
            browser.open(site / page, width)
            browser.wait(lambda: browser.run("return document.readyState") == "complete", page)
            browser.screenshot(shots and shots / f"{width}-{page.replace('/', '-').replace('.html', '.png')}")
            is_wide = browser.run("return document.documentElement.scrollWidth")
            if is_wide > width:
                yield f"{page} is {is_wide} pixels wide in a window of {width}"


def browse(site, shots):
    if not (site / "index.html").is_file():
        skip("the site was not built")
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        with Browser(folder) as browser:
            search(browser, site, shots)
            complaints = list(look(browser, site, shots))
    print("\n".join(complaints) or "the site can be read and searched")
    sys.exit(1 if complaints else 0)


if __name__ == "__main__":
    if sys.argv[1] == "build":
        build(sys.argv[2], sys.argv[3])
    else:
        browse(Path(sys.argv[2]), Path(sys.argv[3]) if len(sys.argv) > 3 else None)
