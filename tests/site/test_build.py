import json
import shutil
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from trainscope.core.errors import ConfigError, NoDataError, ReadError, StoreError
from trainscope.core.settings import Settings
from trainscope.replay.config import load
from trainscope.report.document import Document
from trainscope.site import bundle
from trainscope.site.build import Options, build
from trainscope.site.files import MARKER, SiteFolder
from trainscope.site.inputs import find
from trainscope.site.shared import LISTS

pytest.importorskip("altair")
pytest.importorskip("vl_convert")
pytestmark = pytest.mark.slow
LOGS = Path(__file__).parents[2] / "examples" / "logs"


@pytest.fixture
def logs(tmp_path):
    """Return a folder with two logs that tell of different ends."""
    home = tmp_path / "logs"
    home.mkdir()
    for name in ("loss_spike.jsonl", "healthy.jsonl"):
        shutil.copy(LOGS / name, home)
    return home


def files(site):
    return {p.relative_to(site).as_posix(): p.read_bytes() for p in sorted(site.rglob("*")) if p.is_file()}


def made(logs, out, **options):
    return build([str(logs)], out, Settings(), Options(jobs=1, **options))


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


def test_only_what_changed_is_read_and_drawn_and_records_rebuild_the_site(logs, tmp_path):
    site = tmp_path / "site"
    made(logs, site)
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


def test_an_unreadable_log_is_told_and_does_not_stop_the_others(logs, tmp_path):
    (logs / "broken.jsonl").write_text('{"step": 1, "loss": \n')
    done = made(logs, tmp_path / "site")
    assert done.runs == 2
    assert len(done.failures) == 1
    assert "broken.jsonl" in done.failures[0]
    assert "Could not be judged" in (tmp_path / "site" / "index.html").read_text()
    # It is said again the next time, though nothing changed.
    assert len(made(logs, tmp_path / "site").failures) == 1


@pytest.mark.parametrize(
    "damage", [lambda log: log.write_bytes(b"\0\1"), lambda log: log.unlink()], ids=["cut", "gone"]
)
def test_pruning_keeps_the_run_of_a_log_that_is_named_and_cannot_be_read_today(logs, tmp_path, damage):
    site, paths = tmp_path / "site", [str(logs / "healthy.jsonl"), str(logs / "loss_spike.jsonl")]
    build(paths, site, Settings(), Options(jobs=1))
    whole = sorted(p.name for p in (site / "runs").iterdir())
    damage(logs / "loss_spike.jsonl")
    for _ in range(2):
        done = build(paths, site, Settings(), Options(jobs=1, prune=True))
        assert (done.runs, done.removed, len(done.failures)) == (2, 0, 1)
        assert sorted(p.name for p in (site / "runs").iterdir()) == whole
    assert build(paths[:1], site, Settings(), Options(jobs=1, prune=True)).removed == 1


def test_a_run_that_another_build_has_taken_away_is_gone(tmp_path):
    SiteFolder(tmp_path).remove_run("0123456789ab")


def test_a_file_that_cannot_be_put_in_place_leaves_no_half_of_it(tmp_path):
    (tmp_path / "index.html").mkdir()
    with pytest.raises(StoreError, match=r"index\.html: cannot be written"):
        SiteFolder(tmp_path).write("index.html", "x")
    assert [p.name for p in tmp_path.iterdir()] == ["index.html"]


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


def test_a_damaged_record_is_made_again_from_its_log_and_another_is_told(logs, tmp_path):
    site = tmp_path / "site"
    made(logs, site)
    whole = files(site)
    (first, second) = sorted((site / "runs").glob("*/record.js"))
    first.write_text("tsRun({")
    assert made(logs, site).failures == ()
    assert files(site) == whole

    # A run whose log is gone cannot be made again, and stops no other.
    second.write_text("tsRun({")
    (logs / ("nan.jsonl")).write_bytes((LOGS / "nan.jsonl").read_bytes())
    for log in ("healthy.jsonl", "loss_spike.jsonl"):
        if second.parent.name in json.loads((site / MARKER).read_text())["inputs"][f"logs/{log}"]["runs"]:
            (logs / log).unlink()
    done = made(logs, site)
    assert (done.runs, len(done.failures)) == (2, 1)
    assert str(second) in done.failures[0]
    assert second.read_text() == "tsRun({"
    assert made(logs, site, prune=True).failures == ()
    assert not second.exists()


def test_a_marker_that_is_damaged_or_lies_costs_no_more_than_time(logs, tmp_path):
    site = tmp_path / "site"
    made(logs, site)
    whole = files(site)
    marker = site / MARKER
    lie = json.loads(marker.read_text())
    lie["inputs"]["logs/healthy.jsonl"]["runs"] = ["../../logs", "/etc"]
    for text in ("{", "[]", '{"version": "1", "inputs": [], "pages": {}}', "\ufeff", json.dumps(lie | {"whole": ""})):
        marker.write_text(text)
        assert made(logs, site).failures == ()
        assert files(site) == whole


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


def test_a_file_that_somebody_deleted_is_made_again(logs, tmp_path):
    site = tmp_path / "site"
    made(logs, site)
    whole = files(site)
    for name in (
        *LISTS,
        "assets/forms.js",
        "assets/site.css",
        *(f"runs/{r.name}/index.html" for r in (site / "runs").iterdir()),
    ):
        (site / name).unlink()
    made(logs, site)
    assert files(site) == whole


def test_two_builds_at_once_leave_a_whole_site(logs, tmp_path):
    site = tmp_path / "site"
    start = "from trainscope.cli.main import main; main()"
    command = [sys.executable, "-c", start, "site", "build", str(logs), "--out", str(site), "--jobs", "1"]
    with ThreadPoolExecutor(2) as pool:
        both = list(pool.map(lambda _: subprocess.run(command, capture_output=True, text=True, check=False), range(2)))
    assert [(one.returncode, one.stderr.count("\n")) for one in both] == [(0, 1)] * 2
    assert not list(site.rglob("*.part"))
    made(logs, site)
    made(logs, tmp_path / "alone")
    assert files(site) == files(tmp_path / "alone")


def test_a_title_of_any_bytes_is_text_and_an_empty_one_is_ours(logs, tmp_path):
    made(logs, tmp_path / "a", title="a\x01b\u202e\udc80<b>")
    assert "<b>" not in (tmp_path / "a" / "index.html").read_text()
    ElementTree.parse(tmp_path / "a" / "feed.xml")
    made(logs, tmp_path / "a", title=" ")
    assert "<h1>Training runs</h1>" in (tmp_path / "a" / "index.html").read_text()


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("run.html.j2", b"\n{{ page.nothing }}", "run.html.j2:2: .*nothing"),
        ("run.html.j2", b"{% if %}", "run.html.j2:1: "),
        ("all.html.j2", b"\n\n{{ 1/0 }}", "all.html.j2:3: division by zero"),
        ("all.html.j2", b"{{ site.title() }}", "all.html.j2:1: 'str' object is not callable"),
        ("all.html.j2", b'{% include "nope" %}', "all.html.j2:1: 'nope' not found"),
        ("all.html.j2", b'{% extends "all.html.j2" %}', "all.html.j2:1: maximum recursion"),
        ("all.html.j2", b'{{ "\\ud800" }}', "all.html.j2: .*surrogates not allowed"),
        ("feed.xml.j2", b"\xff\xfe", "feed.xml.j2: is no UTF-8 text"),
        ("site.css", b"\xff\xfe", "site.css: is no UTF-8 text"),
    ],
)
def test_a_wrong_template_is_one_line_that_says_where(logs, tmp_path, name, content, said):
    own = tmp_path / "own"
    own.mkdir()
    (own / name).write_bytes(content)
    with pytest.raises(ConfigError, match=said) as caught:
        made(logs, tmp_path / "site", templates=own)
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "site").exists()


def test_a_template_of_ones_own_takes_the_place_of_ours(logs, tmp_path):
    own = tmp_path / "own"
    own.mkdir()
    (own / "all.html.j2").write_text("<p>mine: {{ index.count }}</p>")
    made(logs, tmp_path / "site", templates=own)
    assert (tmp_path / "site" / "all.html").read_text() == "<p>mine: 2</p>"
    (own / "all.html.j2").write_text("{{ index.nothing }}")
    with pytest.raises(ConfigError, match=r"--templates: all\.html\.j2"):
        made(logs, tmp_path / "site", templates=own)
    (own / "all.html.j2").rename(own / "al.html.j2")
    with pytest.raises(ConfigError, match="no page uses al"):
        made(logs, tmp_path / "site", templates=own)
