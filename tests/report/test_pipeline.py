from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from trainscope.core.errors import ConfigError, NoDataError, ReadError
from trainscope.core.run import Run, Series
from trainscope.core.settings import Settings
from trainscope.report.pipeline import analyze, analyze_runs, is_judgeable


def write_log(path: Path, *, header: str = "step,loss", bad: bool = False) -> str:
    rows = [f"{i},{'nan' if bad and i > 30 else 3 - i / 50}" for i in range(60)]
    path.write_text("\n".join([header, *rows]) + "\n", encoding="utf-8")
    return str(path)


def test_a_healthy_log_passes(tmp_path: Path):
    analysis = analyze([write_log(tmp_path / "a.csv")], Settings())
    assert analysis.document.verdict.status == "pass"
    (entry,) = analysis.document.runs
    assert analysis.runs[entry.id].get("train/loss") is not None


def test_a_log_of_nan_fails(tmp_path: Path):
    document = analyze([write_log(tmp_path / "a.csv", bad=True)], Settings()).document
    assert document.verdict.status == "fail"
    assert "non_finite" in {f.detector for f in document.runs[0].findings}


def test_one_unreadable_log_stops_no_other_and_never_passes(tmp_path: Path):
    bad = tmp_path / "bad.csv"
    bad.write_bytes(bytes(range(256)) * 4)
    document = analyze([write_log(tmp_path / "a.csv"), str(bad)], Settings()).document
    assert [r.name for r in document.runs] == ["a"]
    assert document.verdict.status == "error"
    assert [(e.kind, Path(e.source).name) for e in document.errors] == [("unreadable", "bad.csv")]


def test_one_empty_log_among_others_is_told_and_never_passes(tmp_path: Path):
    empty = tmp_path / "empty.csv"
    empty.write_text("step,loss\n")
    document = analyze([write_log(tmp_path / "a.csv"), str(empty)], Settings()).document
    assert document.verdict.status == "error"
    assert [e.kind for e in document.errors] == ["no_data"]


def test_nothing_that_can_be_judged_is_not_clean(tmp_path: Path):
    path = tmp_path / "scores.csv"
    path.write_text("step,accuracy,f1\n" + "".join(f"{i},0.{i},0.{i}\n" for i in range(10, 60)))
    with pytest.raises(ReadError, match=r"nothing to judge.*train/accuracy, f1"):
        analyze([str(path)], Settings())
    document = analyze([write_log(tmp_path / "a.csv"), str(path)], Settings()).document
    assert document.verdict.status == "error"
    assert [e.kind for e in document.errors] == ["not_judgeable"]


def test_nothing_matched_is_no_data(tmp_path: Path):
    with pytest.raises(NoDataError):
        analyze([str(tmp_path / "*.csv")], Settings())


def test_only_unreadable_logs_raise_the_first_reason(tmp_path: Path):
    for name in ("a.csv", "b.csv"):
        (tmp_path / name).write_bytes(bytes(range(256)) * 4)
    with pytest.raises(ReadError, match=r"a\.csv: .*and 1 more"):
        analyze([str(tmp_path / "a.csv"), str(tmp_path / "b.csv")], Settings())


def test_progress_is_told_before_each_log_and_at_the_end(tmp_path: Path):
    told: list[tuple[int, int]] = []
    paths = [write_log(tmp_path / "a.csv"), write_log(tmp_path / "b.csv")]
    analyze(paths, Settings(), progress=lambda done, total, _: told.append((done, total)))
    assert told == [(0, 2), (1, 2), (2, 2)]


def test_an_unknown_detector_is_refused_before_anything_is_read():
    with pytest.raises(ConfigError, match="did you mean 'non_finite'"):
        analyze(["does-not-exist.csv"], Settings(select=["non_finit"]))


@pytest.mark.parametrize(
    ("name", "judgeable"),
    [
        ("train/loss", True), ("eval/loss", True), ("train/grad_norm", True), ("train/reward", True),
        ("policy_loss", True), ("train/accuracy", False), ("learning_rate", False), ("epoch", False),
        ("train/samples_per_second", False),
    ],
)  # fmt: skip
def test_a_loss_a_gradient_norm_or_a_reward_is_needed(name, judgeable):
    run = Run("r", "s", "csv", {name: Series(name, np.arange(3), np.ones(3))})
    assert is_judgeable(run) is judgeable


def test_runs_in_memory_that_cannot_be_judged_do_not_pass():
    run = Run("r", "s", "csv", {"f1": Series("f1", np.arange(3), np.ones(3))})
    assert analyze_runs([run], Settings()).document.verdict.status == "error"
