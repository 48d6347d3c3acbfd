"""The logs in examples/logs: whole, labelled, small, and made by the script that says it makes them."""

import csv
import json
import subprocess
import sys
from pathlib import Path

import pytest

from trainscope.detectors import DETECTORS

EXAMPLES = Path(__file__).parents[2] / "examples"
LOGS = EXAMPLES / "logs"
FILES = sorted(path for path in LOGS.rglob("*") if path.is_file())
EXPECTED = json.loads((EXAMPLES / "expected.json").read_text(encoding="utf-8"))


def rows(path: Path) -> list[dict]:
    if path.suffix == ".csv":
        with path.open(encoding="utf-8", newline="") as file:
            return list(csv.DictReader(file, strict=True))
    if path.suffix == ".jsonl":
        return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    return json.loads(path.read_text(encoding="utf-8"))["log_history"]


@pytest.mark.parametrize("path", [p for p in FILES if "tfevents" not in p.name], ids=lambda p: p.name)
def test_every_text_log_parses_with_the_standard_library_and_has_the_run_in_it(path):
    found = rows(path)
    assert len(found) >= 100
    assert all("step" in row or "_step" in row for row in found)
    assert not any(None in row or None in row.values() for row in found), "a row of another length"


def test_every_log_belongs_to_exactly_one_labelled_run():
    listed = [name for run in EXPECTED.values() for name in run["files"]]
    assert sorted(listed) == sorted(path.relative_to(LOGS).as_posix() for path in FILES)


@pytest.mark.parametrize("name", EXPECTED)
def test_a_label_names_known_detectors_and_steps_inside_the_run(name):
    run = EXPECTED[name]
    known = {detector.id for detector in DETECTORS}
    assert {one["detector"] for one in run["expect"]} | set(run["allow"]) <= known
    last = max(int(row.get("step") or row.get("_step") or 0) for row in rows(LOGS / run["files"][0]))
    assert all(0 <= one["start"] < one["end"] <= last for one in run["expect"])


@pytest.mark.parametrize("name", EXPECTED)
def test_only_a_healthy_run_expects_nothing_and_every_run_comes_in_two_layouts(name):
    run = EXPECTED[name]
    assert (run["expect"] == []) == name.startswith("healthy")
    assert len(run["files"]) >= 2


def test_the_readme_explains_every_run():
    readme = (EXAMPLES / "README.md").read_text(encoding="utf-8")
    assert [name for name in EXPECTED if f"| `{name}` |" not in readme] == []


def test_the_logs_are_small_enough_to_ship():
    sizes = [path.stat().st_size for path in FILES]
    assert max(sizes) < 200_000
    assert sum(sizes) < 2_000_000


@pytest.mark.slow
def test_the_event_file_holds_the_same_numbers_as_the_table_beside_it():
    event_accumulator = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    events = event_accumulator.EventAccumulator(str(LOGS / "slow_down"), size_guidance={"scalars": 0})
    events.Reload()
    table = rows(LOGS / "slow_down.csv")
    for tag, column in (("train/loss", "loss"), ("train/step_time", "step_time"), ("eval/loss", "eval_loss")):
        logged = [(event.step, pytest.approx(event.value, rel=1e-6)) for event in events.Scalars(tag)]
        assert logged == [(int(row["step"]), float(row[column])) for row in table if row[column]]


@pytest.mark.slow
def test_regenerated_logs_have_the_same_bytes(tmp_path, warm):
    pytest.importorskip("sklearn")
    names = ("healthy_digits", "plateau")
    only = [word for name in names for word in ("--only", name)]
    script = warm(sys.executable, str(EXAMPLES / "generate_logs.py"), *only, "--out", str(tmp_path))
    subprocess.run(script, check=True, capture_output=True)
    assert sorted(p.name for p in tmp_path.iterdir()) == sorted(f for name in names for f in EXPECTED[name]["files"])
    for path in tmp_path.iterdir():
        assert path.read_bytes() == (LOGS / path.name).read_bytes()


@pytest.mark.slow
def test_an_unknown_run_is_refused_in_one_line_with_the_known_ones(tmp_path, warm):
    script = warm(
        sys.executable, str(EXAMPLES / "generate_logs.py"), "--only", "lossspike", "--out", str(tmp_path / "x")
    )
    done = subprocess.run(script, capture_output=True, text=True)
    assert done.returncode == 2
    assert "loss_spike" in done.stderr
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "x").exists()
