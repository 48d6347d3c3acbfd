from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from trainscope.core.finding import Severity
from trainscope.core.run import Note, Run, Series
from trainscope.detectors.base import Skipped

from .runs import ROWS, at, falling, findings, judged, level, only, run_of


def with_steps(step: np.ndarray, **other: object) -> Run:
    series = {"train/loss": Series("train/loss", step, falling(len(step)))}
    return replace(run_of({}), series=series, **other)


@pytest.mark.parametrize("kind", ["rewind", "out_of_order", "duplicate_step", "given_up"])
def test_what_the_reader_noted_becomes_a_warning_with_its_place(kind):
    note = Note(kind, "40 rows repeat steps 120 to 320", 40, 120, 320)
    found = only("step_order", replace(run_of({"train/loss": falling()}), notes=(note,)))
    assert found.severity is Severity.WARNING
    assert (found.start_step, found.end_step) == (120, 320)
    assert found.message.startswith("40 rows repeat steps 120 to 320: ")
    assert found.evidence["rows"] == 40


def test_a_launch_that_was_begun_anew_is_told_as_a_training_that_started_over():
    note = Note("given_up", "training began anew at step 0", 40, 0, 0)
    found = only("step_order", replace(run_of({"train/loss": falling()}), notes=(note,)))
    assert found.title == "Training started over"
    assert found.message == (
        "Training began anew at step 0: no checkpoint was found or loaded, or this is another trial."
    )
    assert found.fixes[0].startswith("Check that the checkpoint was found")


@pytest.mark.parametrize(("count", "severity"), [(1, Severity.INFO), (4, Severity.INFO), (5, Severity.WARNING)])
def test_a_few_duplicates_are_information(count, severity):
    note = Note("duplicate_step", f"{count} rows were logged twice", count, 10, 20)
    assert only("step_order", replace(run_of({"train/loss": falling()}), notes=(note,))).severity is severity


def test_notes_about_something_else_are_left_to_the_report():
    notes = (Note("bad_cell", "3 cells hold no number", 3, 10, 20), Note("rewind", "steps went back"))
    assert findings("step_order", replace(run_of({"train/loss": falling()}), notes=notes)) == []


def test_a_gap_is_found_between_its_two_points():
    step = 10 * np.arange(1, ROWS + 1)
    step[250:] += 1500
    found = only("step_order", with_steps(step))
    assert found.severity is Severity.WARNING
    assert (found.start_step, found.end_step) == (2500, 4010)
    assert found.evidence == {"gap_steps": 1510, "usual_interval": 10.0}


@pytest.mark.parametrize(("extra", "expected"), [(50, 0), (180, 0), (300, 1)])
def test_a_small_gap_is_left_out(extra, expected):
    """Less than 20 intervals."""
    step = 10 * np.arange(1, ROWS + 1)
    step[250:] += extra
    assert len(findings("step_order", with_steps(step))) == expected


def test_both_borders_of_a_gap_are_parameters():
    step = 10 * np.arange(1, ROWS + 1)
    step[250:] += 300
    assert findings("step_order", with_steps(step), gap_intervals=40.0) == []
    assert findings("step_order", with_steps(step), gap_share=0.2) == []


@pytest.mark.parametrize(
    "step",
    [
        np.concatenate((np.arange(1, 11), np.arange(500, 50_500, 500))),
        np.unique(np.geomspace(1, 1e6, 200).astype(int)),
        np.cumsum(np.random.default_rng(0).integers(1, 40, 300)),
    ],
    ids=["ten-then-every-500", "log-spaced", "irregular"],
)
def test_an_uneven_logging_interval_is_no_gap(step):
    assert findings("step_order", with_steps(step)) == []


def test_a_run_that_was_started_over_is_an_error_where_it_begins_again():
    rate = 3e-4 * np.minimum(1.0, np.arange(ROWS) / 20.0)
    loss = np.concatenate((falling(), 2.2 * level(seed=1)))
    found = only("step_order", run_of({"train/loss": loss, "learning_rate": np.concatenate((rate, rate))}))
    assert (found.title, found.severity) == ("Training started over", Severity.ERROR)
    assert abs(found.start_step - at(ROWS)) <= 10


def test_a_cosine_restart_that_keeps_the_weights_is_not_started_over():
    rate = 3e-4 * (0.005 + 0.4975 * (1.0 + np.cos(np.pi * (np.linspace(0, 4, ROWS) % 1.0))))
    assert findings("step_order", run_of({"train/loss": falling(), "learning_rate": rate})) == []


def test_rows_without_steps_are_not_judged():
    assert judged("step_order", replace(run_of({"train/loss": falling()}), x_axis="row")) == Skipped(
        "needs a step column"
    )


def test_known_false_positive_a_log_that_was_cut_out_on_purpose():
    """Somebody kept both ends of a log and threw the middle away."""
    step = 10 * np.arange(1, ROWS + 1)
    kept = np.concatenate((step[:100], step[300:]))
    assert only("step_order", with_steps(kept)).title == "Steps are missing"
