"""What ``trainscope report`` tells of a plain log: the first cause, each sentence once, in the log's own words."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from trainscope.cli.main import run
from trainscope.store.block import LayerBlock
from trainscope.store.writer import RunWriter


def log(path: Path, *, axis: str = "step", rate: np.ndarray | None = None, loss: np.ndarray) -> str:
    rates = np.full(len(loss), 1e-3) if rate is None else rate
    rows = [{axis: i, "loss": float(v), "lr": float(r)} for i, (v, r) in enumerate(zip(loss, rates, strict=True))]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return str(path)


def falling(n: int) -> np.ndarray:
    return 2 + 3 * np.exp(-np.arange(n) / 30) + 0.03 * np.random.default_rng(0).standard_normal(n)


def test_a_rate_that_climbs_a_little_at_every_step_is_the_first_cause(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rate, loss = np.full(300, 1e-3), falling(300)
    rate[200:] = 1e-3 * 1.08 ** np.arange(1, 101)
    loss[240:] += 0.02 * 1.15 ** np.arange(60)
    assert run(["report", "--run", log(tmp_path / "a.jsonl", rate=rate, loss=loss), "--format", "json"]) == 0
    case = json.loads(capsys.readouterr().out)["case"]
    first = case["run"]["incidents"][case["main"] - 1]
    assert (first["onset"], first["explanations"][0]["cause"]) == (200, "schedule")
    assert "learning rate rose 2200-fold" in case["summary"]
    assert case["replay"]["action"] == "fix"


def test_warnings_alone_are_trouble_and_every_sentence_stands_once(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    loss = falling(400)
    loss[300] = 6.0
    assert run(["report", "--run", log(tmp_path / "a.jsonl", loss=loss)]) == 0
    text = capsys.readouterr().out
    assert "⚠️ **Trouble at step 300: " in text
    assert "Broke" not in text
    assert text.count("jumped to 6 at step 300") == 2, "as a sign and as what speaks for the cause"
    assert "Told above, under What happened." in text


def test_a_log_of_epochs_is_told_in_epochs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    loss = falling(120)
    loss[100] = 6.0
    assert run(["report", "--run", log(tmp_path / "a.jsonl", axis="epoch", loss=loss)]) == 0
    text = capsys.readouterr().out
    assert "jumped to 6 at epoch 100" in text
    assert "at step" not in text
    assert "100 steps" not in text


def test_settings_that_someone_chose_are_shown_and_the_rest_is_counted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from trainscope.core.config import TrainScopeConfig

    meta = {"lr": 0.1, "smoke": {"optimizer0": {"class": "AdamW"}, "rank": 0, "faults": "[]"}, "env": {"torch": "2.0"}}
    writer = RunWriter.create(TrainScopeConfig(run_dir=str(tmp_path), run_name="a"), meta=meta)
    for step, value in enumerate(falling(60)):
        writer.append(step, {"loss": float(value)}, LayerBlock((), {}, None, None))
    writer.close()
    for form, shown in (("markdown", "`optimizer0.class` = AdamW"), ("html", "<code>optimizer0.class</code>")):
        assert run(["report", "--run", str(writer.path), "--format", form]) == 0
        text = capsys.readouterr().out
        assert shown in text
        assert "facts that the recorder found out" in text
        assert "smoke.rank" not in text
