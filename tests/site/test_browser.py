"""The pages in a real browser: from files and a server, light and dark, wide and narrow, with and without scripts."""

from __future__ import annotations

import json
import os
import re
import shutil
import threading
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import numpy as np
import pytest

from trainscope.site.serve import server_for

from .runs import record, rich, write

playwright = pytest.importorskip("playwright.sync_api")
pytestmark = pytest.mark.slow
CHROMIUM = Path(os.environ.get("CHROMIUM", "/usr/bin/chromium"))
SHOTS = os.environ.get("SITE_SHOTS")
"""Folder to leave screenshots in, for a person to look at."""
SIZES = ((1280, 900), (390, 844))


@pytest.fixture(scope="module")
def browser():
    if not CHROMIUM.exists():
        pytest.skip("needs chromium")
    with playwright.sync_playwright() as p:
        browser = p.chromium.launch(executable_path=str(CHROMIUM), args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def address(built):
    """Return the site's address on a server."""
    with server_for(built, 0) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()


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


def run_page(built, name):
    rows = json.loads((built / "runs.json").read_text())["runs"]
    return next(row["page"] for row in rows if row["name"].startswith(name))


def test_one_step_is_shown_in_all_charts_at_once(browser, built):
    with Watched(browser, built.as_uri()) as watched:
        page = watched.open(run_page(built, "moe"))
        figure = page.locator("#timeline figure").first
        figure.scroll_into_view_if_needed()
        box = figure.locator(".wide svg").bounding_box()
        # The plot is 54 px in from the left and 14 from the right of 920: this is step 300 of 0 to 399.
        scale = box["width"] / 920
        page.mouse.move(box["x"] + (54 + 852 * 300 / 399) * scale, box["y"] + box["height"] / 2)
        watched.until("document.querySelector('#timeline .read').textContent.includes('10.9')")
        readings = page.locator("#timeline .read").all_inner_texts()
        assert all("step 300" in reading for reading in readings), readings
        assert page.locator("#timeline .cross[visibility=visible]").count() == len(readings)
        assert watched.wrong == [], watched.wrong


def test_the_page_can_be_used_by_the_keyboard_alone(browser, built):
    with Watched(browser, built.as_uri()) as watched:
        page = watched.open(run_page(built, "moe"))
        page.keyboard.press("Tab")
        assert page.evaluate("document.activeElement.textContent") == "Skip to the content"
        page.keyboard.press("Enter")
        page.locator("#timeline figure").first.focus()
        page.keyboard.press("ArrowRight")
        watched.until("document.querySelector('#timeline .read').textContent.startsWith('step 20')")
        page.keyboard.press("Escape")
        watched.until("document.querySelector('#timeline .read').textContent === ''")
        page.locator("[data-explore='curves.0']").focus()
        page.keyboard.press("Enter")
        watched.until("document.querySelectorAll('#dialog .plot svg').length > 0")
        page.keyboard.press("Escape")
        watched.until("!document.getElementById('dialog').open")
        assert page.evaluate("document.activeElement.dataset.explore") == "curves.0"
        assert watched.wrong == [], watched.wrong


def test_a_layer_opens_and_the_weights_of_any_two_steps_are_compared(browser, built, rich_record):
    with Watched(browser, built.as_uri()) as watched:
        page = watched.open(run_page(built, "moe"))
        page.locator("#layers summary").first.click()
        page.locator("#layers [data-layer]").first.click()
        watched.until("document.querySelectorAll('#dialog .plot svg').length > 0")
        assert page.locator("#dialog-title").inner_text() == rich_record.layers[0].rows[0]
        page.keyboard.press("Escape")
        assert page.locator("#before option").all_inner_texts() == ["0", "100", "200", "300"]
        assert page.locator("#before").input_value() == "200"
        page.locator("#before").select_option("100")
        page.locator("#after").select_option("200")
        watched.until("document.querySelector('[data-step=after]').textContent === 'step 200'")
        weights = rich_record.weights[0]
        wanted = weights.divergence[weights.step.index(100)][weights.step.index(200)]
        assert float(page.locator("#weight-table .kl").first.inner_text()) == pytest.approx(wanted, rel=1e-3)
        assert watched.wrong == [], watched.wrong


def test_the_list_is_sorted_and_filtered_and_its_state_is_in_the_address(browser, built):
    with Watched(browser, built.as_uri()) as watched:
        page = watched.open("index.html")
        page.locator("th[data-key=loss] button").click()
        names = page.locator("#rows th").all_inner_texts()
        assert page.locator("th[data-key=loss]").get_attribute("aria-sort") == "ascending"
        assert "sort=loss" in page.url
        page.locator("#filter").fill("spikes")
        shown = page.locator("#rows th").all_inner_texts()
        assert sorted(shown) == ["an old run", "moe-8x1b", "other-spike"]
        assert names.index("stable-twin") < names.index("moe-8x1b")
        there = page.url
        page.goto("about:blank")
        page.goto(there)
        assert page.locator("#rows th").all_inner_texts() == shown
        page.locator("#rows input").nth(0).check()
        page.locator("#rows input").nth(1).check()
        assert re.search(r"compare\.html#\w+,\w+$", page.locator("#compare").get_attribute("href"))
        assert [w for w in watched.wrong if "about:blank" not in w] == []


def test_two_runs_are_compared_settings_first_and_part_where_they_part(browser, built, rich_record):

    ids = {row["name"]: row["id"] for row in json.loads((built / "runs.json").read_text())["runs"]}
    with Watched(browser, built.as_uri()) as watched:
        page = watched.open(f"compare.html#{ids['moe-8x1b']},{ids['stable-twin']}")
        watched.until("document.querySelectorAll('#plot svg').length > 0")
        assert page.locator("#settings tbody th").all_inner_texts() == ["seed"]
        assert "at step 300" in page.locator("#parting").inner_text()
        assert "Loss spike" in page.locator("#findings").inner_text()
        page.locator("#metric").select_option("learning_rate")
        watched.until("document.getElementById('parting').textContent.includes('the same at all steps')")
        assert watched.wrong == [], watched.wrong


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


def test_the_theme_stays_as_it_was_chosen(browser, address):
    with Watched(browser, address) as watched:
        page = watched.open("index.html")
        page.locator("#theme").click()
        page.goto(f"{address}/compare.html")
        assert page.locator("html").get_attribute("data-theme") == "dark"
        assert watched.wrong == [], watched.wrong


def site_of(home, records):
    """Build the site of some records, and return the id of each run by name."""
    from trainscope.core.settings import Settings
    from trainscope.site.build import Options, build

    write(home / "records", records)
    build([str(home / "records")], home / "out", Settings(), Options(jobs=1))
    return {row["name"]: row["id"] for row in json.loads((home / "out" / "runs.json").read_text())["runs"]}


def test_curves_that_begin_the_same_part_at_their_first_difference(browser, tmp_path):
    ids = site_of(tmp_path, [record(rich(name, spike=spike)) for name, spike in (("calm", None), ("spiked", 300))])
    with Watched(browser, (tmp_path / "out").as_uri()) as watched:
        page = watched.open(f"compare.html#{ids['calm']},{ids['spiked']}")
        watched.until("document.querySelectorAll('#plot svg').length > 0")
        # A spike of four steps is no parting for good; these two share every batch before it.
        wanted = "They part at step 300: up to step 299 they are the same, and there B is above A by 9."
        assert page.locator("#parting").inner_text() == wanted
        page.locator("#metric").select_option("learning_rate")
        watched.until("document.getElementById('parting').textContent.includes('the same at all steps')")
        assert watched.wrong == [], watched.wrong


def test_a_run_that_is_nan_is_not_said_to_be_the_same(browser, tmp_path):
    from trainscope.core.run import Run, Series

    step = np.arange(300)
    loss = 1.0 + np.exp(-step / 60) + 0.01 * np.random.default_rng(0).standard_normal(300)
    nan = np.where(step < 220, loss, np.nan)
    runs = [
        Run(name, f"{name}.jsonl", "jsonl", {"train/loss": Series("train/loss", step, value)}, config)
        for name, value, config in (("whole", loss, {"lr": 0.1}), ("broken", nan, {}))
    ]
    ids = site_of(tmp_path, [record(run) for run in runs])
    with Watched(browser, (tmp_path / "out").as_uri()) as watched:
        page = watched.open(f"compare.html#{ids['whole']},{ids['broken']}")
        watched.until("document.querySelectorAll('#plot svg').length > 0")
        assert page.locator("#parting").inner_text() == (
            "They are the same at all steps that they share and where both are finite. "
            "B is NaN or infinite at 80 points, first at step 220."
        )
        assert (
            page.locator("#settings")
            .inner_text()
            .endswith("Only the log of A holds settings (1): there is nothing to compare them with.")
        )
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


@pytest.mark.parametrize("size", SIZES, ids=lambda s: str(s[0]))
def test_what_the_pointer_reads_moves_nothing_on_the_page(browser, built, size):
    tops = "map(e => Math.round(e.getBoundingClientRect().top + scrollY))"
    where = f"[...document.querySelectorAll('figure, [data-explore]')].{tops}"
    with Watched(browser, built.as_uri(), *size) as watched:
        page = watched.open(run_page(built, "moe"))
        figures = page.locator("figure[data-from]")
        page.evaluate("document.querySelectorAll('details').forEach(d => { d.open = true; })")
        before, read = page.evaluate(where), 0
        for i in range(figures.count()):
            if figures.nth(i).is_visible():
                figures.nth(i).hover()
                watched.until(f"document.querySelectorAll('figure[data-from] .read')[{i}].textContent.length > 6")
                read += 1
                assert page.evaluate(where) == before
        assert read > 3


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
