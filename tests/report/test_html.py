from __future__ import annotations

import base64
import hashlib
import re
from html.parser import HTMLParser

import numpy as np
import pytest

from trainscope.core.run import Run, Series
from trainscope.core.settings import Settings
from trainscope.report.html import render
from trainscope.report.pipeline import Analysis, analyze_runs

ADDRESSES = {"href", "src", "action", "xlink:href", "data", "poster", "srcset", "formaction"}


class Skeleton(HTMLParser):
    """Collects tags with the names of their attributes, and everything that is an address."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[tuple[str, tuple[str, ...]]] = []
        self.addresses: list[str] = []
        self.texts: list[str] = []

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, tuple(name for name, _ in attrs)))
        self.addresses += [value or "" for name, value in attrs if name in ADDRESSES]

    def handle_data(self, data):
        self.texts.append(data)


def parsed(page: str) -> Skeleton:
    skeleton = Skeleton()
    skeleton.feed(page)
    skeleton.close()
    return skeleton


def test_the_page_is_as_agreed(several: Analysis, golden):
    golden("report/several.html", render(several.document, several.runs))


def test_the_page_runs_nothing_and_loads_nothing(several: Analysis):
    page = render(several.document, several.runs)
    skeleton = parsed(page)
    names = {tag for tag, _ in skeleton.tags}
    assert not names & {"script", "img", "link", "iframe", "object", "embed", "form", "image", "use", "base"}
    attributes = {a for _, attrs in skeleton.tags for a in attrs}
    assert not [a for a in attributes if a.startswith("on") or a == "style"]
    assert skeleton.addresses
    assert all(a.startswith("#") for a in skeleton.addresses)
    assert not re.search(r"url\(|@import|https?://", page)


def test_the_policy_allows_the_one_style_sheet_and_nothing_else(several: Analysis):
    page = render(several.document, several.runs)
    (css,) = re.findall(r"<style>(.*?)</style>", page, re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(css.encode()).digest()).decode()
    (policy,) = re.findall(r'http-equiv="Content-Security-Policy" content="([^"]*)"', page)
    expected = f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    assert policy.replace("&#39;", "'") == expected


def test_every_chart_has_a_text_alternative_with_numbers(several: Analysis):
    page = render(several.document, several.runs)
    charts = re.findall(r'<svg class="chart[^>]*>', page)
    assert len(charts) > 5
    for chart in charts:
        assert 'role="img"' in chart
        assert re.search(r'aria-label="[^"]*Starts at [\d.]', chart)


@pytest.mark.slow
def test_hostile_names_change_nothing_but_the_text(hostile: str, named):
    one, plain = named(hostile), named("plain")
    ours, benign = parsed(render(one.document, one.runs)), parsed(render(plain.document, plain.runs))
    # A hostile name may stand for another kind of metric, and so for other charts: count those apart.
    drawing = {
        "svg",
        "g",
        "path",
        "line",
        "text",
        "rect",
        "circle",
        "title",
        "span",
        "figure",
        "figcaption",
        "b",
    }
    outside = [t for t in ours.tags if t[0] not in drawing]
    assert outside == [t for t in benign.tags if t[0] not in drawing] or _only_layout_differs(ours, benign)
    assert {tag for tag, _ in ours.tags} <= {tag for tag, _ in benign.tags} | drawing | {
        "dl",
        "dt",
        "dd",
        "small",
    }
    assert all(a.startswith("#") for a in ours.addresses)
    assert not [a for _, attrs in ours.tags for a in attrs if a.startswith("on") or a == "style"]


def _only_layout_differs(ours: Skeleton, benign: Skeleton) -> bool:
    layout = {"div", "dl", "dt", "dd", "small", "p"}
    drawing = {
        "svg",
        "g",
        "path",
        "line",
        "text",
        "rect",
        "circle",
        "title",
        "span",
        "figure",
        "figcaption",
        "b",
    }
    skip = layout | drawing
    return [t for t in ours.tags if t[0] not in skip] == [t for t in benign.tags if t[0] not in skip]


def test_markup_in_a_name_is_shown_as_text(named):
    one = named("<script>alert(1)</script>")
    assert "<script>alert(1)</script>" in parsed(render(one.document, one.runs)).texts


def test_a_document_without_its_runs_is_shown_without_charts(several: Analysis):
    page = render(several.document, {})
    assert 'class="chart' not in page
    assert "Loss spike" in page


def test_ids_are_unique_and_every_link_has_its_target(several: Analysis):
    page = render(several.document, several.runs)
    ids = re.findall(r'\sid="([^"]*)"', page)
    assert len(ids) == len(set(ids))
    assert {a.removeprefix("#") for a in re.findall(r'href="([^"]*)"', page)} <= set(ids)


@pytest.mark.slow
def test_a_million_points_make_a_small_page():
    rng = np.random.default_rng(0)
    step = np.arange(1_000_000)
    series = {n: Series(n, step, rng.normal(2, 0.1, len(step))) for n in ("train/loss", "train/grad_norm")}
    analysis = analyze_runs([Run("big", "big.csv", "csv", series)], Settings())
    assert len(render(analysis.document, analysis.runs)) < 200_000


def test_a_page_under_fail_on_never_does_not_say_pass_over_errors(several: Analysis):
    verdict = several.document.verdict.model_copy(update={"status": "pass", "fail_on": "never"})
    page = render(several.document.model_copy(update={"verdict": verdict}), {})
    assert "<h1>Not gated</h1>" in page
    assert '<section class="card verdict not_gated">' in page
    assert "Pass" not in page
