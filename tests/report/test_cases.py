"""Case files: one run, many runs, two steps, as data and as Markdown and HTML."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import pytest

from trainscope.core.errors import NoDataError, ReadError
from trainscope.report.case_document import CaseFile
from trainscope.report.case_outputs import render
from trainscope.report.cases import report_diff, report_run, report_runs
from trainscope.report.schema import schema_text

from .case_logs import SETTINGS

SCHEMA = Path(__file__).parents[2] / "schemas" / "report-1.schema.json"


def test_the_committed_schema_is_that_of_the_types() -> None:
    assert SCHEMA.read_text(encoding="utf-8") == schema_text("report")


def test_every_kind_of_case_file_is_valid_and_reads_back(tree: Path, survey: CaseFile) -> None:
    files = [survey, report_run(str(tree / "rate0"), SETTINGS).file, report_diff(str(tree / "rate0"), 10, 200).file]
    schema = json.loads(SCHEMA.read_text(encoding="utf-8"))
    for file in files:
        text = file.to_json()
        assert "NaN" not in text
        assert "Infinity" not in text
        jsonschema.validate(json.loads(text), schema)
        assert CaseFile.model_validate_json(text).to_json() == text
    assert [f.kind for f in files] == ["runs", "run", "diff"]


def test_a_loss_that_never_moves_is_not_said_to_show_nothing(tmp_path: Path) -> None:
    (tmp_path / "flat.csv").write_text("step,loss\n" + "".join(f"{i},2.5\n" for i in range(300)))
    case = report_run(str(tmp_path / "flat.csv"), SETTINGS).file.case
    assert case is not None
    assert case.summary == "Trouble at step 0: nothing is learned. The loss shows it."


def test_a_leak_is_the_case_and_not_the_ripples_at_its_floor() -> None:
    case = report_run(str(Path(__file__).parents[2] / "examples" / "logs" / "leak.csv"), SETTINGS).file.case
    assert case is not None
    assert case.summary.startswith("Trouble at step 1: the answer leaks into the input")


@pytest.mark.slow
def test_the_same_input_gives_the_same_bytes(tree: Path, survey: CaseFile) -> None:
    again = report_runs([str(tree)], SETTINGS)
    assert again.file.to_json() == survey.to_json()
    for form in ("markdown", "html"):
        assert render(form, again) == render(form, report_runs([str(tree)], SETTINGS))


def test_one_run_is_told_in_full(tree: Path) -> None:
    reported = report_run(str(tree / "rate1"), SETTINGS)
    case = reported.file.case
    assert case is not None
    assert case.status == "broken"
    assert case.summary.startswith("Broke at step 198: ")
    assert case.main is not None
    incident = case.run.incidents[case.main - 1]
    assert incident.cause == "schedule"
    assert case.replay is not None
    assert case.replay.action == "fix"
    assert any("record the run" in text for text in case.unknown)
    text = render("markdown", reported)
    for heading in (
        "# Case file: rate1",
        "## What happened",
        "## Findings",
        "## Train again",
        "## What this run cannot",
    ):
        assert heading in text


def test_a_stable_run_has_a_short_case(tree: Path) -> None:
    reported = report_run(str(tree / "fine0"), SETTINGS)
    case = reported.file.case
    assert case is not None
    assert (case.status, case.main, case.weight_change, case.replay) == ("stable", None, None, None)
    assert "Nothing at or above warning" in render("markdown", reported)


def test_several_runs_are_no_case_and_nothing_is_no_data(tree: Path, tmp_path: Path) -> None:
    with pytest.raises(ReadError, match=r"holds 17 runs .* name one of them, or ask for --runs"):
        report_run(str(tree), SETTINGS)
    with pytest.raises(NoDataError, match="no log in this folder"):
        report_runs([str(tmp_path)], SETTINGS)


def test_a_log_has_no_difference_of_weights_and_says_so(tree: Path) -> None:
    reported = report_diff(str(tree / "rate0"), 10, 200)
    assert "No number: " in render("markdown", reported)
    assert "record the run" in render("html", reported)


def test_a_log_without_steps_says_that_it_cannot_be_planned(tmp_path: Path) -> None:
    rows = "".join(f"{e},{2 + (3 if e == 70 else 0) + 0.01 * (e % 3)}\n" for e in range(120))
    (tmp_path / "epochs.csv").write_text(f"epoch,loss\n{rows}", encoding="utf-8")
    case = report_run(str(tmp_path / "epochs.csv"), SETTINGS).file.case
    assert case is not None
    assert case.replay is None
    assert any(text.startswith("how to train again: the log counts epochs and not steps") for text in case.unknown)
