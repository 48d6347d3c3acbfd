"""The pages in a real browser: from files and a server, light and dark, wide and narrow, with and without scripts."""

from __future__ import annotations

import json
import os
import re
import shutil
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

from .watched import SIZES, Watched, overflow, pages, run_page

pytest.importorskip("playwright.sync_api")
pytestmark = pytest.mark.slow
SHOTS = os.environ.get("SITE_SHOTS")
"""Folder to leave screenshots in, for a person to look at."""


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("size", SIZES, ids=lambda s: str(s[0]))
def test_every_page_from_a_file_is_clean(browser, built, size, theme):
    with Watched(browser, built.as_uri(), *size, theme) as watched:
        for path in pages(built):
            page = watched.open(path)
            page.wait_for_timeout(150)
            assert (path, overflow(page)) == (path, 0)
            assert (path, page.evaluate("document.querySelectorAll('.undrawn').length")) == (path, 0)
            if SHOTS:
                name = f"{re.sub(r'[^a-z0-9]+', '-', path)}-{size[0]}-{theme}.png"
                page.screenshot(path=str(Path(SHOTS) / name), full_page=True)
        assert watched.wrong == [], watched.wrong


def test_every_page_from_a_server_is_clean(browser, built, address):
    with Watched(browser, address) as watched:
        for path in pages(built):
            page = watched.open(path)
            page.wait_for_timeout(150)
            assert (path, overflow(page)) == (path, 0)
        assert watched.wrong == [], watched.wrong


def test_every_page_is_readable_without_scripts(browser, built):
    with Watched(browser, built.as_uri(), 390, 844, java_script_enabled=False) as watched:
        for path in pages(built):
            page = watched.open(path)
            assert page.locator("h1, noscript").first.inner_text()
            assert page.locator("button:visible, select:visible, input:visible").count() == 0
        page = watched.open("index.html")
        assert page.locator("#rows tr").count() == 5
        page.locator("#rows a", has_text="moe-8x1b").click()
        assert page.locator("h1").inner_text() == "moe-8x1b"
        assert page.locator("figure svg").count() > 10
        assert watched.wrong == [], watched.wrong


def test_a_long_list_keeps_its_names_on_a_phone(browser, built, tmp_path):
    # Rows out of sight are one empty row, which once had more columns than a phone shows.
    site = tmp_path / "site"
    shutil.copytree(built, site)
    columns = json.loads((site / "runs.js").read_text(encoding="utf-8").removeprefix("tsRuns(").removesuffix(");\n"))
    many = json.dumps({key: values * 100 for key, values in columns.items()})
    (site / "runs.js").write_text(f"tsRuns({many});\n", encoding="utf-8")
    with Watched(browser, site.as_uri(), 390, 844, is_mobile=True, has_touch=True) as watched:
        page = watched.open("index.html")
        watched.until("document.querySelectorAll('#rows tr.space').length > 0")
        assert page.locator("th[data-key=name]").bounding_box()["width"] > 100
        assert overflow(page) == 0


@pytest.mark.parametrize("size", [*SIZES, (820, 1180)], ids=lambda s: str(s[0]))
def test_no_figure_of_the_list_is_cut_short(browser, built, tmp_path, size):
    # 6.577e-4 that ends in dots after 6.577 reads as a loss ten thousand times as high.
    site = tmp_path / "site"
    shutil.copytree(built, site)
    columns = json.loads((site / "runs.js").read_text(encoding="utf-8").removeprefix("tsRuns(").removesuffix(");\n"))
    rows = len(columns["id"])
    columns |= {"loss": [-1.235e-10] * rows, "status": ["error"] * rows}
    columns |= {severity: [12] * rows for severity in ("error", "warning", "info")}
    (site / "runs.js").write_text(f"tsRuns({json.dumps(columns)});\n", encoding="utf-8")
    with Watched(browser, site.as_uri(), *size) as watched:
        page = watched.open("index.html")
        watched.until("document.querySelector('#rows td.num:not(.c-steps)').textContent === '-1.235e-10'")
        cut = page.evaluate(
            "[...document.querySelectorAll('#rows td')].filter(c => c.textContent && c.scrollWidth > c.clientWidth)"
            ".map(c => c.textContent)"
        )
        assert cut == []
        heights = page.evaluate("[...document.querySelectorAll('#rows tr')].map(r => r.offsetHeight)")
        assert set(heights) == {44}  # what the scrolling list reckons with
        assert page.locator("th[data-key=name]").bounding_box()["width"] > 100
        assert overflow(page) == 0


def test_hostile_names_are_text_wherever_they_stand(browser, built):
    with Watched(browser, built.as_uri()) as watched:
        page = watched.open(run_page(built, "</script>"))
        assert page.locator("h1").inner_text() == r"</script><script>alert(1)</script>\u202e{{ 7*7 }}"
        assert page.evaluate("document.querySelectorAll('script').length") == 1
        for figure in page.locator("#timeline figure").all()[:3]:
            figure.hover()
        page.locator("#layers summary").first.click()
        for button in page.locator("#layers [data-layer]").all()[:6]:
            button.click()
            watched.until("document.querySelectorAll('#dialog .plot svg').length > 0")
            page.keyboard.press("Escape")
        assert watched.wrong == [], watched.wrong


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_paper_is_white_in_every_theme_and_has_no_endless_listing(browser, built, theme):
    with Watched(browser, built.as_uri(), theme=theme) as watched:
        page = watched.open(run_page(built, "moe"))
        page.locator("#theme").click()
        page.locator("#theme").click() if theme == "dark" else None
        page.emulate_media(media="print")
        card = page.locator("#timeline .card").first
        assert card.evaluate("e => getComputedStyle(e).backgroundColor") in ("rgb(255, 255, 255)", "#fff")
        assert not page.locator("#config").is_visible()
        assert page.locator("#layers table").first.is_visible()
        assert watched.wrong == [], watched.wrong


def test_an_interactive_chart_fits_a_phone(browser, built):
    with Watched(browser, built.as_uri(), 390, 844, is_mobile=True, has_touch=True) as watched:
        for path in pages(built):
            page = watched.open(path)
            if path.startswith("runs/"):
                page.locator("[data-explore]").first.click()
            if not path.startswith("run"):
                continue
            watched.until("document.querySelectorAll('.plot svg text').length > 0")
            sizes = page.evaluate(
                "[...document.querySelectorAll('.plot svg text')].map(t => t.getBoundingClientRect().height)"
            )
            assert (path, min(sizes) > 9) == (path, True)
        assert watched.wrong == [], watched.wrong


class Links(HTMLParser):
    def __init__(self):
        super().__init__()
        self.links, self.ids = [], []

    def handle_starttag(self, tag, attrs):
        for name, value in attrs:
            if name in ("href", "src"):
                self.links.append(value)
            if name == "id":
                self.ids.append(value)


def test_no_link_is_broken_and_no_id_stands_twice(built):
    parsed = {}
    for path in built.rglob("*.html"):
        parsed[path] = Links()
        parsed[path].feed(path.read_text(encoding="utf-8"))
    broken = []
    for path, found in parsed.items():
        assert len(set(found.ids)) == len(found.ids), path
        for link in found.links:
            parts = urlsplit(link)
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            known = parts.fragment in parsed[target].ids if target in parsed else True
            by_script = target.name in ("run.html", "compare.html")
            if parts.scheme != "data" and not (target.is_file() and (not parts.fragment or known or by_script)):
                broken.append((path.name, link))
    assert broken == []


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("size", SIZES, ids=lambda s: str(s[0]))
def test_axe_finds_no_barrier(browser, built, size, theme):
    axe = pytest.importorskip("axe_playwright_python")
    rules = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]
    source = (Path(axe.__file__).parent / "axe.min.js").read_text(encoding="utf-8")
    with Watched(browser, built.as_uri(), *size, theme, bypass_csp=True) as watched:
        for path in pages(built):
            page = watched.open(path)
            page.wait_for_timeout(300)
            page.evaluate(source)
            found = page.evaluate("rules => axe.run(document, { runOnly: rules })", rules)
            told = [
                (v["id"], [n["target"][0] for n in v["nodes"]][:3], v["nodes"][0]["failureSummary"])
                for v in found["violations"]
            ]
            assert (path, told) == (path, [])
