"""Case files as pages: they load nothing, and a hostile name does nothing in them."""

from __future__ import annotations

import base64
import hashlib
import html.parser
import json
import re
from pathlib import Path

import pytest

from trainscope.report import case_html, case_markdown
from trainscope.report.case_document import CaseFile
from trainscope.report.case_outputs import render
from trainscope.report.cases import report_diff, report_run, report_runs

from .case_logs import SETTINGS
from .conftest import hostile_names


class Page(html.parser.HTMLParser):
    """Collects the tags of a page and what stands in its style sheet."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))


def parsed(text: str) -> Page:
    page = Page()
    page.feed(text)
    return page


@pytest.mark.parametrize("what", ["survey", "case", "diff"])
def test_the_page_loads_nothing_and_allows_only_its_own_style(tree: Path, what: str) -> None:
    reported = {
        "survey": lambda: report_runs([str(tree)], SETTINGS),
        "case": lambda: report_run(str(tree / "spike0"), SETTINGS),
        "diff": lambda: report_diff(str(tree / "spike0"), 1, 2),
    }[what]()
    text = render("html", reported)
    page = parsed(text)
    css = text[text.index("<style>") + len("<style>") : text.index("</style>")]
    digest = base64.b64encode(hashlib.sha256(css.encode()).digest()).decode()
    assert f"default-src 'none'; style-src 'sha256-{digest}'" in text
    assert {tag for tag, _ in page.tags}.isdisjoint({"script", "link", "img", "iframe", "object", "embed", "form"})
    for tag, attributes in page.tags:
        assert "style" not in attributes, tag
        assert not any(name.startswith("on") for name in attributes), tag
        assert attributes.get("href", "#").startswith("#"), attributes
    ids = [attributes["id"] for _, attributes in page.tags if "id" in attributes]
    assert len(ids) == len(set(ids))
    assert not re.search(r"\bnan\b|\binf\b", re.sub(r"<style>.*?</style>", "", text, flags=re.DOTALL))


@pytest.fixture(scope="module")
def plain(tree: Path, survey: CaseFile) -> list[tuple[CaseFile, int, int]]:
    """Case files with how many tags and lines they have."""
    files = [_renamed(f, "plain") for f in (report_run(str(tree / "spike0"), SETTINGS).file, survey)]
    return [(f, len(parsed(case_html.render(f)).tags), case_markdown.render(f).count("\n")) for f in files]


@pytest.mark.slow
@pytest.mark.parametrize("name", hostile_names())
def test_a_hostile_name_is_shown_and_does_nothing(name: str, plain: list[tuple[CaseFile, int, int]]) -> None:
    for file, tags, lines in plain:
        evil = _renamed(file, name)
        assert len(parsed(case_html.render(evil)).tags) == tags
        assert case_markdown.render(evil).count("\n") == lines
        json.loads(evil.to_json())


def _renamed(file: CaseFile, name: str) -> CaseFile:
    """Return a case file where names of runs, layers, settings and signals are the given one."""
    name = name.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    data = file.model_dump(mode="json")

    def walk(value: object) -> None:
        if isinstance(value, dict):
            for key, under in value.items():
                if (
                    key in ("name", "where", "key", "signal", "title", "message", "reason", "event")
                    and under is not None
                ):
                    value[key] = name
                elif key in (
                    "also",
                    "places",
                    "signals",
                    "because",
                    "fixes",
                    "missing",
                    "unknown",
                    "commands",
                    "notes",
                ):
                    value[key] = [name if isinstance(v, str) else v for v in under]
                if key != "metrics":  # a run whose metrics have other names has other tiles
                    walk(value[key])
        elif isinstance(value, list):
            for under in value:
                walk(under)

    walk(data)
    for cluster in (data["survey"] or {}).get("clusters", []):
        cluster["shares"] = dict.fromkeys(cluster["signals"], 0.5)
        cluster["found"] = dict.fromkeys(cluster["found"], 1)
    return CaseFile.model_validate(data)


@pytest.mark.parametrize(("name", "is_told"), [("fine0", True), ("spike0", False)])
def test_a_run_without_findings_is_told_to_have_none_and_no_other_is(tree: Path, name: str, is_told: bool) -> None:
    text = case_markdown.render(report_run(str(tree / name), SETTINGS).file)
    assert bool(re.search(r"## Findings\n\nNone; \d+ detectors ran\.\n", text)) == is_told
