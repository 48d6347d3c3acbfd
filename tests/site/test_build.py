"""What a build of the site makes of logs and records, again and again."""

import json
import shutil
import xml.etree.ElementTree as ElementTree

import pytest

from trainscope.core.errors import ConfigError, NoDataError, ReadError
from trainscope.core.settings import Settings
from trainscope.replay.config import load
from trainscope.report.document import Document
from trainscope.site import bundle, drawing
from trainscope.site.build import Options, build
from trainscope.site.files import MARKER
from trainscope.site.inputs import find

from .builds import LOGS, files, made

pytest.importorskip("altair")
pytest.importorskip("vl_convert")
pytestmark = pytest.mark.slow


def test_the_same_logs_give_the_same_bytes_and_an_unchanged_site_is_left_alone(logs, tmp_path):
    first = made(logs, tmp_path / "a")
    second = made(logs, tmp_path / "b")
    assert files(tmp_path / "a") == files(tmp_path / "b")
    assert (first.runs, first.read, first.drawn, first.undrawn) == (2, 2, 2, 0)
    before = {p: p.stat().st_mtime_ns for p in (tmp_path / "a").rglob("*") if p.is_file() and p.name != MARKER}
    again = made(logs, tmp_path / "a")
    assert (again.runs, again.read, again.drawn) == (2, 0, 0)
    assert {p: p.stat().st_mtime_ns for p in before} == before
    assert again.size == second.size


def test_only_what_changed_is_read_and_drawn_and_records_rebuild_the_site(logs, site, tmp_path):
    shutil.copy(LOGS / "nan.jsonl", logs)
    added = made(logs, site)
    assert (added.runs, added.read, added.drawn) == (3, 1, 1)

    # From the records alone the same pages come out.
    other = build([str(site / "runs")], tmp_path / "other", Settings(), Options(jobs=1))
    assert other.runs == 3
    assert find([str(site)], Settings()) == find([str(site / "runs")], Settings())
    ours, theirs = files(site), files(tmp_path / "other")
    del ours[MARKER], theirs[MARKER]
    assert ours == theirs

    # A run goes only when asked to.
    (logs / "nan.jsonl").unlink()
    assert made(logs, site).runs == 3
    pruned = made(logs, site, prune=True)
    assert (pruned.runs, pruned.removed, pruned.read) == (2, 1, 0)
    assert len(list((site / "runs").iterdir())) == 2
    assert b"nan" not in files(site)["runs.js"]


def test_a_chart_that_could_not_be_drawn_in_time_is_drawn_by_the_next_build(logs, tmp_path, monkeypatch):
    site = tmp_path / "site"
    with monkeypatch.context() as hurried:
        hurried.setattr(drawing, "TIMEOUT", 0.001)  # seconds for a chart, as on a machine that stood still
        first = made(logs, site)
    pages = [*site.glob("runs/*/index.html")]
    assert first.undrawn > 0
    assert any('class="undrawn"' in p.read_text() for p in pages)
    again = made(logs, site)
    assert (again.read, again.drawn, again.undrawn) == (0, 2, 0)
    assert not any('class="undrawn"' in p.read_text() for p in pages)
    assert made(logs, site).drawn == 0


def test_older_runs_move_to_the_archive(logs, tmp_path):
    site = tmp_path / "site"
    done = made(logs, site, keep=1)
    assert (done.runs, done.archived, done.drawn) == (2, 1, 1)
    pages = {p.name: sorted(f.name for f in p.iterdir()) for p in (site / "runs").iterdir()}
    assert sorted(map(len, pages.values())) == [3, 6] or sorted(map(len, pages.values())) == [3, 7]
    listed = json.loads((site / "runs.json").read_text())["runs"]
    (old,) = [r for r in listed if r["archived"]]
    assert old["page"] == f"run.html#{old['id']}"
    assert bundle.read(site / "runs" / old["id"] / bundle.NAME).archived
    assert not (site / "runs" / old["id"] / "index.html").exists()


def test_what_other_programs_read_is_valid(logs, tmp_path):
    site = tmp_path / "site"
    made(logs, site, base_url="https://example.org/runs")
    for row in json.loads((site / "runs.json").read_text())["runs"]:
        document = Document.model_validate_json((site / row["findings"]).read_text())
        assert document.runs[0].id == row["id"]
        assert document.verdict.status == row["status"]
    plans = list(site.glob("runs/*/replay_config.json"))
    assert plans
    assert load(plans[0]).source.name == "loss_spike"
    feed = ElementTree.parse(site / "feed.xml").getroot()
    links = [item.findtext("link") for item in feed.iter("item")]
    assert links
    assert all(link.startswith("https://example.org/runs/runs/") for link in links)
    ElementTree.parse(site / "badge.svg")


def test_nothing_to_read_is_an_error_and_another_folder_is_never_written_over(logs, tmp_path):
    (tmp_path / "empty").mkdir()
    with pytest.raises((NoDataError, ReadError)):
        made(tmp_path / "empty", tmp_path / "site")
    mine = tmp_path / "mine"
    mine.mkdir()
    (mine / "thesis.tex").write_text("do not touch")
    with pytest.raises(ConfigError, match="holds other files and no site"):
        made(logs, mine)
    assert [p.name for p in mine.iterdir()] == ["thesis.tex"]
    with pytest.raises(ConfigError, match="is a file"):
        made(logs, mine / "thesis.tex")


def test_a_run_that_is_still_written_is_one_run_and_another_start_is_a_second(logs, tmp_path):
    site, lines = tmp_path / "site", (LOGS / "healthy.jsonl").read_text().splitlines(keepends=True)
    for log in logs.iterdir():
        log.unlink()
    for count in (200, 400, len(lines)):
        (logs / "train.jsonl").write_text("".join(lines[:count]))
        done = made(logs, site)
        assert done.runs == 1
    assert json.loads((site / "runs.json").read_text())["runs"][0]["last_step"] == 600
    (logs / "train.jsonl").write_bytes((LOGS / "overfitting.jsonl").read_bytes())
    assert made(logs, site).runs == 2
