"""Pages in a browser, and everything that goes wrong in them."""

from __future__ import annotations

import json

SIZES = ((1280, 900), (390, 844))


def pages(site):
    """Return the pages of a site, with the one that archived runs share."""
    found = [p.relative_to(site).as_posix() for p in sorted(site.rglob("*.html"))]
    (old,) = [p.name for p in (site / "runs").iterdir() if not (p / "index.html").exists()]
    return [f"run.html#{old}" if page == "run.html" else page for page in found]


class Watched:
    """A page whose errors, violations and requests are written down."""

    def __init__(self, browser, base, width=1280, height=900, theme="light", **options):
        self.context = browser.new_context(viewport={"width": width, "height": height}, color_scheme=theme, **options)
        self.page = self.context.new_page()
        self.base = base
        self.wrong = []
        self.page.on("console", lambda m: self.wrong.append(f"{m.type}: {m.text}") if m.type != "log" else None)
        self.page.on("pageerror", lambda e: self.wrong.append(f"error: {e}"))
        self.page.on("dialog", lambda d: (self.wrong.append(f"dialog: {d.message}"), d.dismiss()))
        self.page.on("request", self._note)

    def _note(self, request):
        if not request.url.startswith((self.base, "data:")):
            self.wrong.append(f"request: {request.url}")

    def open(self, path):
        self.page.goto(f"{self.base}/{path}")
        return self.page

    def until(self, expression):
        # wait_for_function evaluates text, which the pages' own policy forbids.
        for _ in range(300):
            if self.page.evaluate(expression):
                return
            self.page.wait_for_timeout(100)
        raise AssertionError(f"never true: {expression}")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.context.close()


def overflow(page):
    return page.evaluate("document.documentElement.scrollWidth - innerWidth")


def run_page(built, name):
    rows = json.loads((built / "runs.json").read_text())["runs"]
    return next(row["page"] for row in rows if row["name"].startswith(name))
