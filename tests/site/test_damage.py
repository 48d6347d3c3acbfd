"""Sites whose logs, records, marker or pages are damaged, gone or written by two at once."""

import json
import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from trainscope.core.errors import StoreError
from trainscope.core.settings import Settings
from trainscope.site.build import Options, build
from trainscope.site.files import MARKER, SiteFolder
from trainscope.site.shared import LISTS

from .builds import LOGS, files, made

pytest.importorskip("altair")
pytest.importorskip("vl_convert")
pytestmark = pytest.mark.slow


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


def test_a_damaged_record_is_made_again_from_its_log_and_another_is_told(logs, site):
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
    (logs / "loss_spike.jsonl").unlink()
    made(logs, site)
    whole = files(site)
    marker = site / MARKER
    lie = json.loads(marker.read_text())
    lie["inputs"]["logs/healthy.jsonl"]["runs"] = ["../../logs", "/etc"]
    for text in ("{", "[]", '{"version": "1", "inputs": [], "pages": {}}', "\ufeff", json.dumps(lie | {"whole": ""})):
        marker.write_text(text)
        assert made(logs, site).failures == ()
        assert files(site) == whole


def test_a_file_that_somebody_deleted_is_made_again(logs, site):
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


def test_two_builds_at_once_leave_a_whole_site(logs, first_site, tmp_path):
    site = tmp_path / "site"
    start = "from trainscope.cli.main import main; main()"
    command = [sys.executable, "-c", start, "site", "build", str(logs), "--out", str(site), "--jobs", "1"]
    with ThreadPoolExecutor(2) as pool:
        both = list(pool.map(lambda _: subprocess.run(command, capture_output=True, text=True, check=False), range(2)))
    assert [(one.returncode, one.stderr.count("\n")) for one in both] == [(0, 1)] * 2
    assert not list(site.rglob("*.part"))
    made(logs, site)
    assert files(site) == files(first_site)


def test_what_a_killed_build_had_begun_is_gone_after_the_next(logs, site):
    whole = files(site)
    (run, *_) = (site / "runs").iterdir()
    old, young = run / ".index.html.4711.part", site / ".runs.js.4712.part"
    for part, age in ((old, 3600), (young, 1)):
        part.write_text("half")
        os.utime(part, (time.time() - age,) * 2)
    made(logs, site)
    assert not old.exists()
    assert young.exists()  # of another build, perhaps
    young.unlink()
    assert files(site) == whole
