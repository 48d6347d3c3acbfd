"""The pages as people use them in a real browser: with a mouse, with a finger, by the keyboard alone."""

from __future__ import annotations

import re

import pytest

from .watched import SIZES, Watched, run_page

pytest.importorskip("playwright.sync_api")
pytestmark = pytest.mark.slow


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


def test_the_theme_stays_as_it_was_chosen(browser, address):
    with Watched(browser, address) as watched:
        page = watched.open("index.html")
        page.locator("#theme").click()
        page.goto(f"{address}/compare.html")
        assert page.locator("html").get_attribute("data-theme") == "dark"
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
