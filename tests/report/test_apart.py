"""What is read is never written over."""

from __future__ import annotations

from pathlib import Path

import pytest

from trainscope.core.errors import ConfigError
from trainscope.report.apart import keep_apart


@pytest.mark.parametrize(
    "name",
    [
        "meta.json",
        "manifest.json",
        "smoke.json",
        "global.arrow",
        "layers/head.weight.arrow",
        "checkpoints/100.pt",
        "rng_states/step_100.pkl",
        "checkpoint-60/trainer_state.json",
        "events.out.tfevents.1.host",
    ],
)
def test_a_file_of_a_runs_folder_is_kept(tmp_path: Path, name: str) -> None:
    file = tmp_path / "run" / name
    file.parent.mkdir(parents=True)
    file.write_text("x")
    with pytest.raises(ConfigError, match="is one of the logs to judge; name another file"):
        keep_apart(file, [str(tmp_path / "run")])
    keep_apart(file, [str(tmp_path / "other")])


def test_a_report_that_lies_in_a_runs_folder_is_written_anew(tmp_path: Path) -> None:
    (tmp_path / "report.md").write_text("# Case file")
    keep_apart(tmp_path / "report.md", [str(tmp_path)])


def test_a_log_with_an_address_is_kept(tmp_path: Path) -> None:
    log = tmp_path / "my log.csv"
    log.write_text("step,loss\n")
    for given in (f"file://{log}", log.as_uri()):
        with pytest.raises(ConfigError):
            keep_apart(log, [given])
