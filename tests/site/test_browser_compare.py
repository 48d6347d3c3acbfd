"""Two runs side by side in a real browser: their settings, and where they part."""

from __future__ import annotations

import json

import numpy as np
import pytest

from .runs import record, rich, write
from .watched import Watched

pytest.importorskip("playwright.sync_api")
pytestmark = pytest.mark.slow


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
